//! Which files an inventory may have opened. It is untrusted input: what it names outside its folder is opened only by a command
//! that contacts targets.

use crate::base::Diagnostic;
use crate::system::folder::{self, EntryKind};
use crate::transport::TargetContact;
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside each other below `.railwright`: `runs`, and one for each run.
const STATE_DEPTH_MAX: usize = 3;

/// Why a file that the spec names is not opened.
#[derive(Debug)]
pub enum NotOpened {
    /// It lies outside the inventory, and no target is contacted.
    Outside,
    /// It is not there, or cannot be looked for.
    NotThere(io::Error),
}

/// Where a file lies, for somebody who opens it. `root` is the inventory, and `path` absolute.
pub fn opened(root: &Path, path: &str, contact: Option<TargetContact>) -> Result<PathBuf, NotOpened> {
    let path = PathBuf::from(path);
    if contact.is_some() {
        return Ok(path);
    }
    // Whether something outside is there is nobody's business.
    let Some(named) = folder::without_parents(&path).filter(|named| named.starts_with(root)) else { return Err(NotOpened::Outside) };
    let real = folder::real_path(&named).map_err(NotOpened::NotThere)?;
    if real.starts_with(root) { Ok(real) } else { Err(NotOpened::Outside) }
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
