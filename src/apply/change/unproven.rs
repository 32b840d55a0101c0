//! Why a step under an automatic rollback is not confirmed, and how that is reported.

use super::execution::ActionFailure;
use super::{ChangeStep, Halt};
use crate::trouble::{self, complaint_of};
use railwright_base::{Diagnostic, Reason};
use railwright_resource::switch::NOT_TAKEN;
use railwright_state::NodeOutcome;

/// Why.
pub(super) enum Unproven {
    /// An action ended so.
    Action(ActionFailure),
    /// The step is over, and nothing is asked of the automatic rollback any more.
    Over(Halt),
    /// Anything else, in a sentence that fits after "rolled back automatically:".
    Because(Reason),
}

impl From<Reason> for Unproven {
    fn from(why: Reason) -> Self {
        Unproven::Because(why)
    }
}

impl Unproven {
    /// Fits after "rolled back automatically:".
    pub(super) fn sentence(&self) -> String {
        match self {
            Unproven::Action(failure) => format!(
                "{} failed: {}",
                failure.word.replace('_', " "),
                complaint_of(failure.code, &failure.stderr)
            ),
            Unproven::Over(_) => String::new(),
            Unproven::Because(why) => why.to_string(),
        }
    }
}

impl ChangeStep<'_> {
    /// How the step ended once everything is rolled back, but for what `failed` says. What a switch
    /// refused before anything was changed was not rolled back: there the refusal is the error, and
    /// not the rollback.
    pub(super) fn unproven(
        &self,
        why: &Unproven,
        as_before: bool,
        failed: &str,
    ) -> (NodeOutcome, Diagnostic) {
        let (id, next) = (&self.node.id, &self.shared.next);
        if let Unproven::Action(failure) = why
            && failure.code == NOT_TAKEN
            && as_before
            && self.is_switch()
        {
            let problem = failure
                .diagnostic(id, next)
                .state(trouble::after_failure(id, true, &[]));
            let complaint = complaint_of(NOT_TAKEN, &failure.stderr);
            let reason = format!("not taken by the switch: {complaint}");
            return (NodeOutcome::Failed { reason }, problem);
        }
        let why = why.sentence();
        let problem = trouble::taken_back(id, self.host, &why, as_before, failed, next);
        (
            NodeOutcome::Failed {
                reason: format!("rolled back automatically: {why}"),
            },
            problem,
        )
    }
}
