//! What the lab is doing, as values for whoever shows it.

use std::time::Duration;

/// A step that takes long enough to be announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabStep {
    /// Packages are fetched and the machines' disk is built; once for a recipe.
    Image,
    /// The repository is indexed and signed.
    Repository,
    /// A short machine shows whether hardware virtualisation works here.
    Probe,
    /// The machines boot.
    Boot,
    /// The bare state is kept for a fresh start in seconds.
    Snapshot,
    /// The machines go back to their bare state.
    Restore,
    /// Kubernetes is built from its sources; once for these versions.
    Kubernetes,
    /// A control plane starts and the machines become its nodes.
    Join,
}

impl LabStep {
    /// What is said of it.
    pub fn text(self) -> &'static str {
        match self {
            LabStep::Image => "building the machines' disk (once for this recipe)",
            LabStep::Repository => "indexing and signing the package repository",
            LabStep::Probe => "probing whether KVM reaches user space",
            LabStep::Boot => "booting",
            LabStep::Snapshot => "keeping the bare state as a snapshot",
            LabStep::Restore => "restoring the bare state",
            LabStep::Kubernetes => "building Kubernetes (once for these versions)",
            LabStep::Join => "starting the control plane, and the machines as its nodes",
        }
    }

    /// How long it usually takes on two cores without KVM, in seconds.
    pub fn usual_s(self) -> (u32, u32) {
        match self {
            LabStep::Image => (50, 120),
            LabStep::Repository => (1, 3),
            LabStep::Probe => (2, 10),
            LabStep::Boot => (15, 40),
            LabStep::Snapshot => (1, 3),
            LabStep::Restore => (2, 6),
            LabStep::Kubernetes => (30, 360),
            LabStep::Join => (15, 40),
        }
    }

    /// When it is given up: ten times the usual, because a busy computer is no fault.
    pub fn limit(self) -> Duration {
        Duration::from_secs(u64::from(self.usual_s().1) * 10)
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabEvent {
    /// A step begins.
    Starts(LabStep),
    /// A step is over, after this time.
    Ended(LabStep, Duration),
    /// A part of the running step, or a fact worth a line.
    Note(String),
}

/// Takes the events; several threads may report.
pub type Listener<'a> = &'a (dyn Fn(LabEvent) + Sync);

/// Announces a step, does it, and says how long it took when it went well.
pub(super) fn run_timed_step<T>(
    listener: Listener<'_>,
    step: LabStep,
    work: impl FnOnce() -> super::Result<T>,
) -> super::Result<T> {
    listener(LabEvent::Starts(step));
    let watch = railwright_system::clock::Stopwatch::start();
    let done = work()?;
    listener(LabEvent::Ended(step, watch.elapsed()));
    Ok(done)
}
