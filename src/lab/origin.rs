//! Whether the folder of a lab was made here. It holds programs that are run and the numbers of
//! processes that are ended, and a folder of that name comes with any archive or clone.
//!
//! Whoever makes it writes down in it what nobody else can know: the number that the file system
//! gave to the folder, with a secret of this user. The folder has to be this user's own besides.

use super::Result;
use super::folder::new_folder_error;
use railwright_base::{Diagnostic, Digest, quote};
use railwright_system::{clock, files, process};
use std::io;
use std::path::{Path, PathBuf};

/// The file in the folder.
const FILE: &str = "made-here";
/// A digest is not longer.
const LIMIT_BYTES: u64 = 200;

/// Marks a folder that is empty as made here, and refuses one that was not.
pub fn claim_folder(root: &Path) -> Result<()> {
    let secret = read_user_secret()?;
    claim_folder_with_secret(root, &secret)
}

fn claim_folder_with_secret(root: &Path, secret: &[u8]) -> Result<()> {
    let failed = |error: io::Error| new_folder_error(root, &error);
    let inode = files::inode_of(root).map_err(failed)?;
    let mark = Digest::of(&(inode, secret)).to_string();
    if !files::is_own(root).map_err(failed)? {
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

/// The secret of this user's labs, made where there is none yet.
fn read_user_secret() -> Result<Vec<u8>> {
    let state = match (
        process::read_variable("XDG_STATE_HOME"),
        process::read_variable("HOME"),
    ) {
        (Some(state), _) => PathBuf::from(state),
        (None, Some(home)) => PathBuf::from(home).join(".local/state"),
        (None, None) => return Err(report_homeless_user()),
    };
    let folder = state.join("railwright");
    let path = folder.join("lab-secret");
    let failed = |error: io::Error| new_folder_error(&path, &error);
    if !files::is_present(&path) {
        let secret = clock::generate_nonce().map_err(failed)?;
        files::make_private_folder(&folder).map_err(failed)?;
        files::write_new(&path, secret.as_bytes(), 0o600).map_err(failed)?;
    }
    files::read_ordinary(&path, LIMIT_BYTES).map_err(failed)
}

fn report_homeless_user() -> Box<Diagnostic> {
    Diagnostic::error("RW0906", "neither HOME nor XDG_STATE_HOME is set")
        .effect("whether the folder of a lab is yours is known by a secret that lies there")
        .state("nothing was run or changed")
        .next("set HOME, and run the command again")
        .into()
}

fn report_foreign_folder(root: &Path, why: &str) -> Box<Diagnostic> {
    let (shown, quoted) = (root.display(), quote::quote_path(root));
    Diagnostic::error("RW0906", format!("{shown} is no lab of yours: {why}"))
        .effect("a lab's folder holds programs that are run: they could be anybody's")
        .state("nothing was run or changed")
        .next(format!(
            "move it away: mv {quoted} {quoted}.old; of a lab that was copied, its cache can come \
             back into the new one"
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
        claim_folder_with_secret(&own, b"s").unwrap();
        std::fs::write(own.join("lab.json"), "{}").unwrap();
        claim_folder_with_secret(&own, b"s").unwrap();
        let of_another = claim_folder_with_secret(&own, b"t").unwrap_err();
        assert_eq!(of_another.code, "RW0906");
        // Moved it is still the one that was made; a copy is not.
        let moved = place.path().join("moved");
        std::fs::rename(&own, &moved).unwrap();
        claim_folder_with_secret(&moved, b"s").unwrap();
        let copy = place.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        for name in [FILE, "lab.json"] {
            std::fs::copy(moved.join(name), copy.join(name)).unwrap();
        }
        let strange = place.path().join("strange");
        std::fs::create_dir_all(strange.join("cache/kubernetes")).unwrap();
        for folder in [copy, strange] {
            let refused = claim_folder_with_secret(&folder, b"s").unwrap_err();
            assert_eq!(refused.code, "RW0906");
            assert!(
                refused.message.contains("no lab of yours"),
                "{}",
                refused.message
            );
        }
    }
}
