//! Applies one change: look once more, journal the intent, act, and read again. Success is never an
//! exit status.
//!
//! In the order of a step: `look`; `with_rollback` where it can cut our connection (`rollback_timer_queries`,
//! `rollback`, `unproven`); `execution`; `behind` for the hosts behind a switch; `await_in_sync`;
//! `confirmation`. That somebody else sets a field back is decided by
//! `ObservedMember::set_back_by` (`precondition/seen`) and told by `trouble::fought_over`.

mod await_in_sync;
mod behind;
mod confirmation;
mod execution;
mod look;
mod rollback;
mod rollback_timer_queries;
mod unproven;
mod with_rollback;

use super::cluster_node::{Halt, halt_with_problem};
use super::precondition::{ObservedMember, StepDecision, decide_step, diff_again, observe_member};
use super::shared::RunContext;
use super::trouble;
use railwright_base::{Address, Diagnostic, Target};
use railwright_plan::{AppliedResource, PlanNode};
use railwright_resource::ReadResults;
use railwright_state::NodeOutcome;
use railwright_state::journal_writer::JournalError;
use railwright_state::run_status::StepIntent;
use railwright_transport::{TargetAccess, TransportError, Writer};
use std::collections::BTreeSet;

/// How a step ended, with what is to be remembered and said.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// How.
    pub outcome: NodeOutcome,
    /// What went wrong.
    pub problems: Vec<Diagnostic>,
    /// What is to be remembered as applied.
    pub applied: Vec<(Address, AppliedResource)>,
    /// What is to be forgotten.
    pub removed: Vec<Address>,
    /// Somebody switched the host off and on since this part of the run began.
    pub went_out: bool,
    /// Hosts that became ready, where not all did.
    pub spares: Option<BTreeSet<Target>>,
}

impl Finish {
    /// An outcome with nothing more to it.
    pub fn of(outcome: NodeOutcome) -> Self {
        Finish {
            outcome,
            problems: Vec::new(),
            applied: Vec::new(),
            removed: Vec::new(),
            went_out: false,
            spares: None,
        }
    }

    /// An outcome with a problem to report.
    pub fn with_problem(outcome: NodeOutcome, problem: Diagnostic) -> Self {
        Finish {
            problems: vec![problem],
            ..Finish::of(outcome)
        }
    }
}

/// Applies the change with this number; the outcome is journalled, and written to the host when it
/// is done.
pub(super) async fn apply_change(shared: &RunContext, n: usize) -> Result<Finish, JournalError> {
    let mut step = ChangeStep::new(shared, n);
    let node = step.node;
    let mut finish = match step.carry_out().await {
        Ok(finish) => finish,
        Err(Halt::Journal(broken)) => return Err(broken),
        Err(Halt::Over(finish)) => Finish {
            applied: step.unfinished(),
            ..step.after_acting(*finish)
        },
    };
    finish
        .problems
        .extend(shared.finish(node, &finish, step.writer.as_ref()).await);
    Ok(finish)
}

/// Compares the host of the drain with this number with the plan: no pod is ended for a host that
/// has moved and is left alone.
pub(super) async fn compare_before_drain(shared: &RunContext, n: usize) -> Result<(), Halt> {
    ChangeStep::new(shared, n).look().await.map(drop)
}

struct ChangeStep<'a> {
    shared: &'a RunContext,
    n: usize,
    node: &'a PlanNode,
    host: &'a str,
    writer: Option<Writer>,
    /// What it began and may have done, unless the host itself puts that back.
    begun: Option<StepIntent>,
    /// The hosts behind it that were in service before it.
    behind: Vec<String>,
}

impl<'a> ChangeStep<'a> {
    fn new(shared: &'a RunContext, n: usize) -> Self {
        let node = &shared.plan.nodes[n];
        let host = node.target.as_ref().map_or("", |target| &*target.name);
        ChangeStep {
            shared,
            n,
            node,
            host,
            writer: None,
            begun: None,
            behind: Vec::new(),
        }
    }

    /// How its target is reached, where the inventory has it.
    fn access(&self) -> Option<&'a TargetAccess> {
        self.shared.context.hosts.get(self.host)
    }

    async fn carry_out(&mut self) -> Result<Finish, Halt> {
        let earlier = self.earlier();
        let mut answers = self.look().await?;
        if let Some(intent) = self.shared.may_still_run(self.node)
            && self
                .until_idle(self.longest(self.node, &[]), &intent.token)
                .await?
        {
            answers = self.look().await?;
        }
        let mut seen = self.see(&answers);
        if let Some(intent) = &earlier
            && self.node.is_change()
            && self.may_have_rollback()
            && self.settle_earlier_rollback(intent, &seen).await?
        {
            let answers = self.look().await?;
            seen = self.see(&answers);
        }
        let mut verdict = self.decide(&seen, earlier.as_ref());
        if matches!(verdict, StepDecision::Act(_))
            && self.rollback_reason(&seen).is_some()
            && self.ask_behind().await?
        {
            // Hosts take up to a minute to pass a gate; what was seen before it may have moved
            // since.
            let answers = self.look().await?;
            seen = self.see(&answers);
            verdict = self.decide(&seen, earlier.as_ref());
        }
        match (verdict, earlier) {
            (StepDecision::Met, Some(intent)) if seen.iter().all(ObservedMember::is_settled) => {
                self.confirm(&seen, intent, &[]).await
            }
            (StepDecision::Met, earlier) => Ok(self.done(&seen, earlier.as_ref())),
            (StepDecision::Act(actions), earlier) => self.act(actions, seen, earlier).await,
            (other, _) => Err(self.refused(other)),
        }
    }

    fn decide(&self, seen: &[ObservedMember], earlier: Option<&StepIntent>) -> StepDecision {
        let decisions = &self.shared.decisions;
        match earlier {
            Some(intent) => diff_again(
                &self.node.kind,
                seen,
                intent,
                &decisions.redo,
                &decisions.accept,
            ),
            None => decide_step(&self.node.kind, seen),
        }
    }

    /// What an earlier part of the run began and did not finish well.
    fn earlier(&self) -> Option<StepIntent> {
        self.shared.earlier.nodes.get(&self.node.id)?.intent.clone()
    }

    fn see(&self, answers: &ReadResults) -> Vec<ObservedMember<'a>> {
        let moved_by_us = self.shared.may_have_moved(self.n);
        let mut seen = Vec::new();
        for member in self.node.members() {
            let prior = self.shared.prior(&member.resource.address);
            seen.push(observe_member(member, prior, answers, moved_by_us));
        }
        seen
    }

    fn unreachable(&self, error: &TransportError) -> Halt {
        let target = self.node.target.as_ref();
        let on = target.map(Target::to_string).unwrap_or_default();
        let problem = trouble::not_reached(on, error, &self.shared.next);
        halt_with_problem(
            NodeOutcome::Unreachable {
                reason: error.one_line(),
            },
            problem,
        )
    }

    fn refused(&self, verdict: StepDecision) -> Halt {
        let (id, next) = (&self.node.id, &self.shared.next);
        match verdict {
            StepDecision::Unannounced(reason) => halt_with_problem(
                NodeOutcome::Stale {
                    reason: reason.clone(),
                },
                trouble::report_unannounced_step(id, &reason, next),
            ),
            StepDecision::Undecided(reason) => self.unknown(reason),
            StepDecision::Stale(reason) => halt_with_problem(
                NodeOutcome::Stale {
                    reason: reason.clone(),
                },
                trouble::report_stale_target(id, &reason, next),
            ),
            StepDecision::Met | StepDecision::Act(_) => {
                self.unknown("the step came to no decision".to_owned())
            }
        }
    }

    fn unknown(&self, reason: String) -> Halt {
        let resources: Vec<String> = self
            .node
            .members()
            .iter()
            .map(|m| m.resource.address.to_string())
            .collect();
        let problem =
            trouble::report_unknown_outcome(&self.node.id, &reason, &resources, &self.shared.next);
        halt_with_problem(NodeOutcome::Unknown { reason }, problem)
    }

    /// What it undoes.
    fn removals(&self) -> Vec<String> {
        self.node
            .members()
            .iter()
            .filter(|m| m.diff.removal)
            .map(|m| m.resource.address.to_string())
            .collect()
    }
}
