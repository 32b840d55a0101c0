//! The package repository of a lab: the packages that a bare machine lacks, indexed and signed with
//! the lab's own key, and beside them the fake source of nv_peer_mem.

use super::folder::{LabFolder, new_folder_error};
use super::image::Image;
use super::keys::{Keyring, expect_success};
use super::tarball::source_tarball;
use super::{Result, assets};
use railwright_system::{files, process::Program};
use std::path::Path;

/// The fake source, as `src/NAME` of the server.
pub const STAND_IN_SOURCE: &str = "nv_peer_mem-1.0-9.tar.gz";

/// Publishes the packages of an image, unless they are published and signed already.
pub fn publish_packages(folder: &LabFolder, image: &Image) -> Result<()> {
    let target = folder.served();
    let stamp = target.join("stamp");
    if files::read_limited(&stamp, 200).is_ok_and(|text| text == image.build.as_bytes())
        && files::is_present(&folder.repository_key())
    {
        return publish_source(&target);
    }
    files::remove_path(&target).map_err(|error| new_folder_error(&target, &error))?;
    files::make_folder(&target).map_err(|error| new_folder_error(&target, &error))?;
    link_packages(&image.folder.join("packages"), &target)?;
    publish_source(&target)?;
    sign_repository(folder, &target)?;
    write_repository_file(&stamp, image.build.as_bytes())
}

fn link_packages(from: &Path, to: &Path) -> Result<()> {
    for name in files::names_in(from).map_err(|error| new_folder_error(from, &error))? {
        files::link_or_copy(&from.join(&name), &to.join(&name))
            .map_err(|error| new_folder_error(&to.join(&name), &error))?;
    }
    Ok(())
}

fn publish_source(target: &Path) -> Result<()> {
    let folder = target.join("src");
    files::make_folder(&folder).map_err(|error| new_folder_error(&folder, &error))?;
    write_repository_file(&folder.join(STAND_IN_SOURCE), &stand_in_source())
}

fn stand_in_source() -> Vec<u8> {
    source_tarball(
        assets::files_below("nv_peer_mem")
            .into_iter()
            .map(|(path, bytes)| (format!("nv_peer_mem-1.0-9/{path}"), bytes)),
    )
}

/// A flat repository: Packages, Release, and both forms of its signature.
fn sign_repository(folder: &LabFolder, target: &Path) -> Result<()> {
    let archive = |arguments: &[&str]| {
        let program = Program::new("apt-ftparchive")
            .arguments(arguments.iter().copied())
            .folder(target);
        expect_success("apt-ftparchive", &program, b"")
    };
    write_repository_file(&target.join("Packages"), &archive(&["packages", "."])?)?;
    let option = |key: &str, value: &str| format!("APT::FTPArchive::Release::{key}={value}");
    let release = archive(&[
        "-o",
        &option("Origin", "railwright-lab"),
        "-o",
        &option("Label", "railwright-lab"),
        "-o",
        &option("Suite", "lab"),
        "release",
        ".",
    ])?;
    let keyring = Keyring::open(folder)?;
    write_repository_file(&target.join("InRelease"), &keyring.sign_around(&release)?)?;
    write_repository_file(&target.join("Release.gpg"), &keyring.sign_apart(&release)?)?;
    write_repository_file(&target.join("Release"), &release)
}

fn write_repository_file(path: &Path, bytes: &[u8]) -> Result<()> {
    files::write_atomic(path, bytes, 0o644).map_err(|error| new_folder_error(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_base::Digest;

    /// Inventories name this checksum: when the fake source changes, they change with it.
    #[test]
    fn the_stand_in_source_has_the_checksum_that_inventories_name() {
        insta::assert_snapshot!(Digest::of_bytes(&stand_in_source()), @"2052cd013f1154313f0c649cef7e4e43d6c4117278eb7939d9be74722823755e");
    }
}
