//! Images that carry the RDMA user space: from a base, a kind of fabric and entries of the
//! catalogue to a Containerfile.
//!
//! `check` holds what was asked for to what can stand in such a file, `containerfile` writes it.
//! Nothing is built, and nothing is fetched.

mod check;
mod containerfile;
#[cfg(test)]
mod tests;

use super::asked::RequestPlaces;
use railwright_base::Diagnostic;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::catalog::user_space::{AptRepository, ExampleEntry, UserSpaceEntry};

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct ImageRequest {
    /// The image that it begins with.
    pub base: String,
    /// The code name of the base's release, which packages are of.
    pub suite: String,
    /// The kind of fabric, as the spec has it.
    pub fabric: String,
    /// The drivers of its NICs, as far as they are known.
    pub drivers: Vec<String>,
    /// The key of the repository, where packages come from one.
    pub key: Option<RepositorySigningKey>,
    /// The example that it brings.
    pub example: Option<String>,
}

/// A key that somebody has checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositorySigningKey {
    /// Its file, as it was named: from the folder that the image is built in.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// What was asked for, with the entries that it comes to, and found sound.
#[derive(Debug, Clone, Copy)]
struct Sound<'a> {
    request: &'a ImageRequest,
    entry: &'a UserSpaceEntry,
    /// The repository, its suite for the base's release, and its key with the path as it is
    /// written.
    repository: Option<(
        &'a AptRepository,
        &'a str,
        &'a RepositorySigningKey,
        &'a str,
    )>,
    example: Option<&'a ExampleEntry>,
}

/// The Containerfile, or all that keeps it from being written.
pub fn render_containerfile(
    request: &ImageRequest,
    catalog: &Catalog,
    asked: &RequestPlaces,
) -> Result<String, Vec<Diagnostic>> {
    Ok(containerfile::write_containerfile(
        &check::check_image_request(request, catalog, asked)?,
    ))
}
