//! Whether the folder of a lab was made here. It holds programs that are run and the numbers of
//! processes that are ended, and a folder of that name comes with any archive or clone.
//!
//! Whoever makes it writes down in it what nobody can know before: the number that the file system
//! gave to the folder, with the machine. It has to be this user's own besides.

use super::Result;
use super::folder::new_folder_error;
use railwright_base::{Diagnostic, Digest};
use railwright_system::files;
use std::io;
use std::path::Path;

/// The file in the folder.
const FILE: &str = "made-here";
/// A digest is not longer.
const LIMIT_BYTES: u64 = 200;

/// Marks a folder that is empty as made here, and refuses one that is not.
pub fn claim_folder(root: &Path) -> Result<()> {
    let failed = |error: io::Error| new_folder_error(root, &error);
    let (owner, mark) = (files::is_own(root), compute_mark(root).map_err(failed)?);
    if !owner.map_err(failed)? {
        return Err(report_foreign_folder(root, "it belongs to another user"));
    }
    if files::names_in(root).map_err(failed)?.is_empty() {
        return files::write_atomic(&root.join(FILE), mark.as_bytes(), 0o600).map_err(failed);
    }
    match files::read_ordinary(&root.join(FILE), LIMIT_BYTES) {
        Ok(found) if found == mark.as_bytes() => Ok(()),
        _ => Err(report_foreign_folder(
            root,
            "railwright did not make it there",
        )),
    }
}

fn compute_mark(root: &Path) -> io::Result<String> {
    let machine = files::read_ordinary(Path::new("/etc/machine-id"), LIMIT_BYTES);
    let what = (files::inode_of(root)?, machine.unwrap_or_default());
    Ok(Digest::of(&what).to_string())
}

fn report_foreign_folder(root: &Path, why: &str) -> Box<Diagnostic> {
    let shown = root.display();
    Diagnostic::error("RW0906", format!("{shown} is no lab of yours: {why}"))
        .effect("a lab's folder holds programs that are run: they could be anybody's")
        .state("nothing was run or changed")
        .next(format!(
            "where you know it, such as a lab that was copied: move it away, and keep only its \
             cache: mv {shown} {shown}.old"
        ))
        .next("or choose another folder with RAILWRIGHT_LAB_DIR")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_came_from_elsewhere_is_no_lab() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("own");
        std::fs::create_dir(&own).unwrap();
        claim_folder(&own).unwrap();
        std::fs::write(own.join("lab.json"), "{}").unwrap();
        claim_folder(&own).unwrap();
        // Moved it is still the one that was made; a copy is not.
        let moved = place.path().join("moved");
        std::fs::rename(&own, &moved).unwrap();
        claim_folder(&moved).unwrap();
        let copy = place.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        for name in [FILE, "lab.json"] {
            std::fs::copy(moved.join(name), copy.join(name)).unwrap();
        }
        let strange = place.path().join("strange");
        std::fs::create_dir_all(strange.join("cache/kubernetes")).unwrap();
        for folder in [copy, strange] {
            let refused = claim_folder(&folder).unwrap_err();
            assert_eq!(refused.code, "RW0906");
            assert!(
                refused.message.contains("no lab of yours"),
                "{}",
                refused.message
            );
        }
    }
}
