//! Whether an image, or a pod of it, has what programs load to use RDMA: by what the loader and
//! libibverbs would find, without running either.
//!
//! `seen` is what was found in a root, and where a loader looks; `root` reads it from a folder,
//! `program` is the same as one program of sh for a pod, with the reader of what that says.
//! `machine` is which machine and distribution an image is for. `evaluation` says what it comes to.

pub mod evaluation;
mod machine;
pub mod program;
pub mod root;
pub mod seen;
#[cfg(test)]
mod tests;

pub use evaluation::{ImageCheckItem, ImageFinding, check_image_contents, compute_image_verdict};
pub use seen::{ImageContents, PodSeen};

use railwright_knowledge::catalog::user_space::UserSpaceEntry;

/// What is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRequirements {
    /// The kind of fabric.
    pub fabric: String,
    /// Libraries that programs load, by the names that they load.
    pub libraries: Vec<String>,
    /// Names of providers.
    pub providers: Vec<String>,
}

impl ImageRequirements {
    /// For NICs of these drivers on this kind of fabric.
    pub fn of(fabric: &str, entry: &UserSpaceEntry, drivers: &[&str]) -> Self {
        let providers = entry
            .providers_of(drivers)
            .into_iter()
            .map(str::to_owned)
            .collect();
        ImageRequirements {
            fabric: fabric.to_owned(),
            libraries: entry.libraries.clone(),
            providers,
        }
    }
}
