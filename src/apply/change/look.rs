//! Looks at the step's host: before anything is done, and again after a connection was lost, once
//! what goes on there by itself is over.

use super::{ChangeStep, Halt, halt_with_problem};
use crate::precondition::{ObservedMember, has_moved, moves_by_plan, observe_member};
use crate::running_steps::{Busy, wait_until_idle};
use crate::trouble;
use railwright_plan::{Member, NodeKind, PlanNode};
use railwright_resource::{Action, Read, ReadResults};
use railwright_state::NodeOutcome;
use railwright_system::clock;
use railwright_transport::{TransportError, Writer};
use std::collections::BTreeSet;
use std::time::Duration;

impl<'a> ChangeStep<'a> {
    /// Connects and reads. The first step on a host, and the drain of its node, also compares what
    /// the later ones will find with the plan, so that a host that moved is left alone before
    /// anything of it is changed, and keeps its pods.
    pub(super) async fn look(&mut self) -> Result<ReadResults, Halt> {
        let writer = self
            .shared
            .connect(self.host)
            .await
            .map_err(|error| self.unreachable(&error))?;
        if let Err(lost) = self.shared.heart.confirm(self.host, &writer).await {
            return Err(halt_with_problem(
                NodeOutcome::LockLost {
                    reason: lost.message.clone(),
                },
                *lost,
            ));
        }
        self.writer = Some(writer);
        self.shared.note_look(self.n);
        let is_first = self.node.is_change() && self.shared.is_first_on(self.host);
        if is_first {
            self.until_others_are_over().await?;
        }
        let compares = is_first || matches!(self.node.kind, NodeKind::Drain { .. });
        let ahead = if compares { self.ahead() } else { Vec::new() };
        let mut desired = self.desired();
        for (_, member) in &ahead {
            desired.extend(self.shared.reads(member));
        }
        let Some(writer) = &self.writer else {
            return Err(self.unknown("there is no connection".to_owned()));
        };
        let answers = read_answers(writer, &desired)
            .await
            .map_err(|error| self.unreachable(&error))?;
        self.compare_ahead(&ahead, &answers)?;
        Ok(answers)
    }

    /// The resources of later steps are as the plan saw them.
    fn compare_ahead(
        &self,
        ahead: &[(&PlanNode, &Member)],
        answers: &ReadResults,
    ) -> Result<(), Halt> {
        for (node, member) in ahead {
            let prior = self.shared.prior(&member.resource.address);
            if let Some(reason) = has_moved(&observe_member(member, prior, answers, false)) {
                let problem = trouble::report_stale_target(&node.id, &reason, &self.shared.next);
                return Err(halt_with_problem(NodeOutcome::Stale { reason }, problem));
            }
        }
        Ok(())
    }

    /// Other steps that an earlier part of the run began on the host may run there to this day, and
    /// the host does one thing at a time.
    async fn until_others_are_over(&mut self) -> Result<(), Halt> {
        let shared = self.shared;
        for m in shared.on_target(self.node.target.as_ref()) {
            let node = &shared.plan.nodes[*m];
            if *m == self.n {
                continue;
            }
            if let Some(intent) = shared.may_still_run(node) {
                self.until_idle(self.longest(node, &[]), &intent.token)
                    .await?;
            }
        }
        Ok(())
    }

    /// What has to be read to decide the step.
    pub(super) fn desired(&self) -> BTreeSet<Read> {
        self.node
            .members()
            .iter()
            .flat_map(|member| self.shared.reads(member))
            .collect()
    }

    /// The resources of the host's other steps that nothing of ours has touched or will touch
    /// before.
    fn ahead(&self) -> Vec<(&'a PlanNode, &'a Member)> {
        let (shared, mut ahead) = (self.shared, Vec::new());
        for m in shared.on_target(self.node.target.as_ref()) {
            let node = &shared.plan.nodes[*m];
            if !node.is_change()
                || node.blocked.is_some()
                || shared.is_looked_at(*m)
                || shared.may_have_moved(*m)
            {
                continue;
            }
            for member in node.members() {
                if !moves_by_plan(member) {
                    ahead.push((node, member));
                }
            }
        }
        ahead
    }

    /// A new connection, tried for as long as a resource may take to settle. An attempt that is
    /// under way then, say against a packet filter that swallows it, is seen through.
    pub(super) async fn reconnect(&mut self) -> Result<(), TransportError> {
        self.writer = None;
        let patience = &self.shared.context.patience;
        let end = clock::Deadline::after(patience.settle);
        loop {
            match self.shared.connect(self.host).await {
                Ok(writer) => {
                    self.writer = Some(writer);
                    return Ok(());
                }
                Err(error) if end.left().is_zero() => return Err(error),
                Err(_) => clock::sleep_for(patience.settle_poll).await,
            }
        }
    }

    pub(super) fn looks(&self) -> u32 {
        self.shared.context.patience.looks()
    }

    /// What the host looks like after the connection was lost. What this attempt began and still
    /// runs is waited for.
    pub(super) async fn look_again(
        &mut self,
        reason: &str,
        limit: Duration,
        token: &str,
    ) -> Result<ReadResults, Halt> {
        let desired = self.desired();
        if self.reconnect().await.is_ok() {
            self.until_idle(limit, token).await?;
            if let Some(writer) = &self.writer
                && let Ok(answers) = read_answers(writer, &desired).await
            {
                return Ok(answers);
            }
        }
        Err(self.unknown(format!("{reason}; and the host could not be re-checked")))
    }

    /// How long an action of a step may take: of these, or of those that were planned.
    pub(super) fn longest(&self, node: &PlanNode, actions: &[Action]) -> Duration {
        let planned: &[Action] = match &node.kind {
            NodeKind::Change { actions, .. } => actions,
            _ => &[],
        };
        let mut longest = self.shared.context.patience.earlier_step;
        for action in actions.iter().chain(planned) {
            longest = longest.max(Duration::from_secs(action.limit_s().into()));
        }
        longest
    }

    /// Waits for what an attempt began on the host, also over new connections; whether there was
    /// something to wait for.
    pub(super) async fn until_idle(&mut self, limit: Duration, token: &str) -> Result<bool, Halt> {
        let shared = self.shared;
        let mut connections = 5;
        loop {
            let Some(writer) = &self.writer else {
                return Err(self.unknown("there is no connection".to_owned()));
            };
            match wait_until_idle(
                self.host,
                writer,
                &shared.context,
                &shared.sink,
                limit,
                Some(&shared.run),
                Some(token),
            )
            .await
            {
                Ok(waited) => return Ok(waited),
                Err(Busy::NotAsked(_) | Busy::UnclearAnswer(_))
                    if connections > 0 && self.reconnect().await.is_ok() =>
                {
                    connections -= 1
                }
                Err(busy) => return Err(self.unknown(busy.reason())),
            }
        }
    }

    /// After a failure: reads once more, so that the one on call knows whether the step is half
    /// done.
    pub(super) async fn is_untouched(&self, before: &[ObservedMember<'a>]) -> bool {
        let desired = self.desired();
        let Some(writer) = &self.writer else {
            return false;
        };
        let Ok(answers) = read_answers(writer, &desired).await else {
            return false;
        };
        let now = again_seen(before, &answers);
        now.iter()
            .zip(before)
            .all(|(now, before)| now.diff.fingerprint() == before.diff.fingerprint())
    }
}

/// Observes these resources once more, by new answers.
pub(super) fn again_seen<'a>(
    seen: &[ObservedMember<'a>],
    answers: &ReadResults,
) -> Vec<ObservedMember<'a>> {
    seen.iter()
        .map(|s| observe_member(s.member, s.prior.clone(), answers, true))
        .collect()
}

/// What is seen right after our own actions: what may not last is not in sync yet.
pub(super) fn seen_after_actions<'a>(
    seen: &[ObservedMember<'a>],
    answers: &ReadResults,
) -> Vec<ObservedMember<'a>> {
    let mut now = again_seen(seen, answers);
    for member in &mut now {
        member.expect_to_last(answers);
    }
    now
}

pub(super) async fn read_answers(
    writer: &Writer,
    desired: &BTreeSet<Read>,
) -> Result<ReadResults, TransportError> {
    let desired: Vec<Read> = desired.iter().cloned().collect();
    writer.reader().read(&desired).await
}
