//! The scripts of a guarded command, as POSIX sh.

use crate::base::quote::sh;

/// The read probe, as the module wrote it. It runs in a shell of its own, so that it cannot end ours.
pub fn read_script(script: &str) -> String {
    format!("sh -c {} </dev/null\n", sh(script))
}

/// The command, as the module wrote it.
pub fn run_script(script: &str) -> String {
    format!("sh -c {} </dev/null\n", sh(script))
}
