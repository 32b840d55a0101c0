//! Which files an inventory may have opened. It is untrusted input: what it names outside its
//! folder, or hidden in it, is opened only where targets are contacted.

use railwright_base::Diagnostic;
use railwright_system::files;
use railwright_system::folder::{self, FolderEntryKind};
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside each other below `.railwright`: `runs`, and one for each run.
const STATE_DEPTH_MAX: usize = 3;

/// Why a file that the spec names is not opened.
#[derive(Debug)]
pub enum NotOpened {
    /// It lies outside the inventory.
    Outside,
    /// It lies in the inventory, and a part of its path begins with `.`: the state with its key, a
    /// repository, what other programs keep. What Kubernetes mounted there is not hidden.
    Hidden,
    /// It is not there, is no ordinary file, or cannot be read.
    Unreadable(io::Error),
}

/// Where a file of the inventory lies, below `root`, without links. `path` is absolute.
pub fn find_inventory_file(root: &Path, path: &str) -> Result<PathBuf, NotOpened> {
    // Whether something outside is there is nobody's business.
    let named = folder::without_parents(Path::new(path))
        .filter(|named| named.starts_with(root))
        .ok_or(NotOpened::Outside)?;
    let real = folder::real_path(&named).map_err(NotOpened::Unreadable)?;
    match real.strip_prefix(root) {
        Err(_) => Err(NotOpened::Outside),
        Ok(below) if folder::is_hidden(below) && !folder::is_mounted(root, below) => {
            Err(NotOpened::Hidden)
        }
        Ok(below) => Ok(below.to_owned()),
    }
}

/// What is in such a file, of at most `limit` bytes.
pub fn read_inventory_file(root: &Path, path: &str, limit: u64) -> Result<Vec<u8>, NotOpened> {
    files::read_beneath(root, &find_inventory_file(root, path)?, limit)
        .map_err(NotOpened::Unreadable)
}

/// Refuses a state folder that leads elsewhere, where it would be read and written, and one with a
/// device, a socket or a pipe in it: a disk would be written to, and a pipe waited for.
pub fn state_is_within(root: &Path) -> Result<(), Box<Diagnostic>> {
    let state = root.join(".railwright");
    let refused = |path: &Path, what: &str, effect: &str| {
        let named = path
            .strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string();
        Diagnostic::error(
            "RW0162",
            format!("{} is {what}", railwright_base::text::one_line(&named, 120)),
        )
        .effect(format!(
            "{effect}, and whoever writes the inventory chooses where that is"
        ))
        .state("nothing was read and nothing was changed")
        .next(
            "take it away; state lies in ordinary files of the inventory's own folder \
             `.railwright`",
        )
    };
    let link = |path: &Path| {
        refused(
            path,
            "a link",
            "state would be read and written where the link leads",
        )
    };
    if folder::is_link(&state) {
        return Err(link(&state).into());
    }
    let mut open = vec![(state, 0)];
    while let Some((below, depth)) = open.pop() {
        // What cannot be listed is reported by whoever reads it.
        for (path, kind) in folder::own_entries(&below).unwrap_or_default() {
            match kind {
                FolderEntryKind::LinkOutside => return Err(link(&path).into()),
                FolderEntryKind::Special => {
                    return Err(refused(
                        &path,
                        "no ordinary file",
                        "state would be read from a device or a pipe, or written to it",
                    )
                    .into());
                }
                FolderEntryKind::Folder if depth < STATE_DEPTH_MAX => open.push((path, depth + 1)),
                FolderEntryKind::File | FolderEntryKind::Folder => {}
            }
        }
    }
    Ok(())
}
