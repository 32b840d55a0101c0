//! Which files an inventory may have opened. It is untrusted input: what it names outside its folder, or hidden in it, is opened only by a
//! command that contacts targets.

use crate::base::Diagnostic;
use crate::system::files;
use crate::system::folder::{self, EntryKind};
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside each other below `.railwright`: `runs`, and one for each run.
const STATE_DEPTH_MAX: usize = 3;

/// Why a file that the spec names is not opened.
#[derive(Debug)]
pub enum NotOpened {
    /// It lies outside the inventory.
    Outside,
    /// It lies in the inventory, and a part of its path begins with `.`: the state with its key, a repository, what other programs keep.
    Hidden,
    /// It is not there, is no ordinary file, or cannot be read.
    Unreadable(io::Error),
}

/// Where a file of the inventory lies, below `root`, without links. `path` is absolute.
pub fn find(root: &Path, path: &str) -> Result<PathBuf, NotOpened> {
    // Whether something outside is there is nobody's business.
    let named = folder::without_parents(Path::new(path)).filter(|named| named.starts_with(root)).ok_or(NotOpened::Outside)?;
    let real = folder::real_path(&named).map_err(NotOpened::Unreadable)?;
    match real.strip_prefix(root) {
        Err(_) => Err(NotOpened::Outside),
        Ok(below) if folder::is_hidden(below) => Err(NotOpened::Hidden),
        Ok(below) => Ok(below.to_owned()),
    }
}

/// What is in such a file, of at most `limit` bytes.
pub fn read(root: &Path, path: &str, limit: u64) -> Result<Vec<u8>, NotOpened> {
    files::read_beneath(root, &find(root, path)?, limit).map_err(NotOpened::Unreadable)
}

/// Refuses a state folder that leads elsewhere: it would be read and written there.
pub fn state_is_within(root: &Path) -> Result<(), Box<Diagnostic>> {
    let state = root.join(".railwright");
    let refused = |path: &Path| {
        let link = path.strip_prefix(root).unwrap_or(path).display().to_string();
        Diagnostic::error("RW0162", format!("{} is a link", crate::base::text::one_line(&link, 120)))
            .effect("state would be read and written where the link leads, and whoever writes the inventory chooses where that is")
            .state("nothing was read and nothing was changed")
            .next("take the link away; state lies in the inventory's own folder `.railwright`")
    };
    if folder::is_link(&state) {
        return Err(refused(&state).into());
    }
    let mut open = vec![(state, 0)];
    while let Some((below, depth)) = open.pop() {
        // What cannot be listed is reported by whoever reads it.
        for (path, kind) in folder::own_entries(&below).unwrap_or_default() {
            match kind {
                EntryKind::LinkOutside => return Err(refused(&path).into()),
                EntryKind::Folder if depth < STATE_DEPTH_MAX => open.push((path, depth + 1)),
                EntryKind::File | EntryKind::Folder | EntryKind::Special => {}
            }
        }
    }
    Ok(())
}
