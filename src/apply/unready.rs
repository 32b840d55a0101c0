//! Why a host, a switch or a cluster cannot be worked on in a run.

use super::running_steps::Busy;
use super::trouble::{self, LockedTarget, NextCommands};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Target};
use railwright_transport::TransportError;

/// Why a host cannot be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unready {
    /// It cannot be reached.
    NotReached(TransportError),
    /// It can, and is not fit for it.
    Unfit(String),
    /// Its lock cannot be taken: why.
    NotLockable(LockedTarget, String),
    /// A step of an earlier run still runs on it.
    Busy(Busy),
    /// It is another machine than the one that the run began on.
    Reinstalled,
}

impl From<TransportError> for Unready {
    fn from(error: TransportError) -> Self {
        Unready::NotReached(error)
    }
}

impl From<Busy> for Unready {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::NotAsked(error) => Unready::NotReached(error),
            Busy::UnclearAnswer(_) => Unready::Unfit(busy.reason()),
            Busy::Runs(_) | Busy::RollbackPending(_) | Busy::Interrupted => Unready::Busy(busy),
        }
    }
}

impl Unready {
    /// In one line.
    pub fn reason(&self) -> String {
        match self {
            Unready::NotReached(error) => error.one_line(),
            Unready::Unfit(reason) => one_line(reason, 300),
            Unready::NotLockable(_, reason) => {
                format!("its lock cannot be taken: {}", one_line(reason, 200))
            }
            Unready::Busy(busy) => busy.reason(),
            Unready::Reinstalled => "it was re-installed since the run began".to_owned(),
        }
    }

    /// For the person on call.
    pub fn diagnostic(&self, target: &Target, next: &NextCommands) -> Diagnostic {
        match self {
            Unready::NotReached(error) => trouble::not_reached(target.to_string(), error, next),
            Unready::Unfit(reason) => trouble::not_workable(target, reason, next),
            Unready::NotLockable(of, reason) => trouble::lock_failed(of, reason, next),
            Unready::Busy(Busy::Interrupted) => trouble::interrupted_early(),
            Unready::Busy(busy) => trouble::still_runs(&target.name, &busy.reason(), next),
            Unready::Reinstalled => trouble::report_reinstalled_target(target, next),
        }
    }
}
