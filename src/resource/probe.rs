//! Probes: short-lived test traffic that `verify` starts on hosts. A probe leaves nothing behind: what it starts runs
//! under a transient unit with a deadline, so the host itself ends it even if we die.

use serde::{Deserialize, Serialize};

/// One probe on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// A word for the journal of the host and for messages: `ib_write_bw-server`.
    pub name: String,
    /// The POSIX sh script, fed to `sh -s`.
    pub script: String,
    /// After this many seconds the host ends it.
    pub lease_s: u32,
}
