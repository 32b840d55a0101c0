//! The signals of the scheduler, what it wants done, and the limits that it keeps to.

use railwright_base::Target;
use railwright_plan::OutageCertainty;
use railwright_state::NodeOutcome;
use std::collections::{BTreeMap, BTreeSet};

/// What happened, for the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// Begin; these targets cannot be reached, for these reasons.
    Begin {
        /// By target.
        unreachable: BTreeMap<Target, String>,
    },
    /// A step ended.
    Finished {
        /// Its number.
        step: usize,
        /// How.
        outcome: NodeOutcome,
    },
    /// Somebody switched the host of this step off and on under the run.
    WentOut {
        /// Its number.
        step: usize,
    },
    /// These hosts became ready, and not all that the step waited for: they go on, whatever becomes
    /// of the step.
    Spare {
        /// Its number.
        step: usize,
        /// The hosts.
        hosts: BTreeSet<Target>,
    },
    /// It was looked at who else is out of service.
    Looked {
        /// Hosts that are, whoever caused it, and how sure that is.
        out: BTreeMap<Target, OutageCertainty>,
        /// Hosts that may carry jobs by what they and their cluster say, whatever earlier runs and
        /// parts of this one did.
        may_serve: BTreeSet<Target>,
    },
    /// A gate was checked for these hosts.
    GateAnswered {
        /// Its number.
        step: usize,
        /// The hosts that were checked.
        hosts: BTreeSet<Target>,
        /// Why it did not pass.
        problem: Option<String>,
    },
    /// The maintenance window closed: nothing that needs one starts any more, and what follows it
    /// is left.
    Close,
    /// The deadline came: start nothing new.
    Expire,
    /// Start nothing new until `Continue`.
    Pause,
    /// Go on after `Pause`.
    Continue,
    /// First Ctrl-C: start nothing new.
    Interrupt,
    /// Second Ctrl-C: wait for nothing.
    Abandon,
}

/// Why the end of a step is not known that was running when nobody waited for it any more.
pub const GIVEN_UP: &str = "given up while it ran";

/// What the scheduler wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulerCommand {
    /// Execute this step.
    Run {
        /// Its number.
        step: usize,
    },
    /// Check these hosts for this gate.
    Check {
        /// The gate's number.
        step: usize,
        /// The hosts.
        hosts: BTreeSet<Target>,
    },
    /// Look who is out of service by nobody's doing here: one more host is about to be disturbed.
    Look,
    /// Record the fate of a step that was never started, or was given up.
    Settle {
        /// Its number.
        step: usize,
        /// The fate.
        outcome: NodeOutcome,
    },
    /// All is over.
    End,
}

/// The rollout's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Steps at the same time.
    pub parallel: usize,
    /// Hosts out of service at the same time.
    pub max_unavailable: usize,
    /// Hosts that may be lost in a run before nothing is begun on further ones.
    pub failure_budget: usize,
    /// Who else is out of service is asked before one more host is disturbed.
    pub looks: bool,
}

/// What an earlier part of the run already did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Steps that are done, by id.
    pub done: BTreeSet<String>,
    /// Hosts that are out of service still: begun, and no gate passed since.
    pub out_of_service: BTreeSet<Target>,
    /// Those of them that may be in service all the same, and how sure that is: nothing that
    /// disturbs them was begun but emptying their nodes, and no gate found anything.
    pub in_doubt: BTreeMap<Target, OutageCertainty>,
}
