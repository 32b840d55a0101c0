//! Exit codes of all commands. That of a run is made of its exit class
//! (`apply::outcome::compute_exit_class`).

/// How a command ends; the number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// Failed, or invalid input.
    Failed = 1,
    /// Changes (`plan --detailed-exitcode`) or drift (`drift`, always).
    Changes = 2,
    /// Incomplete: something unknown, unreachable, stale or blocked.
    Incomplete = 3,
    /// Refused, nothing was changed.
    Refused = 4,
    /// Stopped by budget or gate.
    Stopped = 5,
    /// The command line itself.
    Usage = 64,
    /// Our own bug.
    Bug = 70,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}
