//! How many files and connections this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// More than this is of no use, and what is started by us would take long to close them.
const MOST: u64 = 65_536;

/// Raises the limit as far as it may be. What cannot be raised stays.
pub fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard.min(MOST)
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(MOST), hard);
    }
}

/// How many may be open.
pub fn read_descriptor_limit() -> usize {
    getrlimit(Resource::RLIMIT_NOFILE)
        .map_or(256, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
}

/// True when there is no descriptor left, in this process or on this machine (errno(3): EMFILE,
/// ENFILE).
pub fn are_used_up(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}
