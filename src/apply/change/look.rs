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
        let mut wanted = self.wanted();
        wanted.extend(
            ahead
                .iter()
                .flat_map(|(_, member)| self.shared.reads(member)),
        );
        let Some(writer) = &self.writer else {
            return Err(self.unknown("there is no connection".to_owned()));
        };
        let answers = read_answers(writer, &wanted)
            .await
            .map_err(|error| self.unreachable(&error))?;
        for (node, member) in ahead {
            if let Some(reason) = has_moved(&observe_member(
                member,
                self.shared.prior(&member.wish.address),
                &answers,
                false,
            )) {
                let outcome = NodeOutcome::Stale {
                    reason: reason.clone(),
                };
                return Err(halt_with_problem(
                    outcome,
                    trouble::report_stale_target(&node.id, &reason, &self.shared.next),
                ));
            }
        }
        Ok(answers)
    }

    /// Other steps that an earlier part of the run began on the host may run there to this day, and
    /// the host does one thing at a time.
    async fn until_others_are_over(&mut self) -> Result<(), Halt> {
        let (shared, n) = (self.shared, self.n);
        let others = shared
            .on_target(self.node.target.as_ref())
            .iter()
            .filter(|m| **m != n)
            .map(|m| &shared.plan.nodes[*m]);
        for (node, intent) in others.filter_map(|node| Some((node, shared.may_still_run(node)?))) {
            self.until_idle(self.longest(node, &[]), &intent.token)
                .await?;
        }
        Ok(())
    }

    /// What has to be read to judge the step.
    pub(super) fn wanted(&self) -> BTreeSet<Read> {
        self.node
            .members()
            .iter()
            .flat_map(|member| self.shared.reads(member))
            .collect()
    }

    /// The resources of the host's other steps that nothing of ours has touched or will touch
    /// before.
    fn ahead(&self) -> Vec<(&'a PlanNode, &'a Member)> {
        let shared = self.shared;
        let untouched = |m: &usize| {
            let node = &shared.plan.nodes[*m];
            node.is_change()
                && node.held.is_none()
                && !shared.is_looked_at(*m)
                && !shared.may_have_moved(*m)
        };
        let nodes = shared
            .on_target(self.node.target.as_ref())
            .iter()
            .copied()
            .filter(untouched)
            .map(|m| &shared.plan.nodes[m]);
        nodes
            .flat_map(|node| node.members().iter().map(move |member| (node, member)))
            .filter(|(_, m)| !moves_by_plan(m))
            .collect()
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
        let wanted = self.wanted();
        if self.reconnect().await.is_ok() {
            self.until_idle(limit, token).await?;
            if let Some(writer) = &self.writer
                && let Ok(answers) = read_answers(writer, &wanted).await
            {
                return Ok(answers);
            }
        }
        Err(self.unknown(format!("{reason}; and the host could not be re-checked")))
    }

    /// How long an action of a step may take: of these, or of those that were planned.
    pub(super) fn longest(&self, node: &PlanNode, actions: &[Action]) -> Duration {
        let planned: &[Action] = if let NodeKind::Change { actions, .. } = &node.kind {
            actions
        } else {
            &[]
        };
        let longest = actions
            .iter()
            .chain(planned)
            .map(|action| Duration::from_secs(action.limit_s().into()))
            .max();
        longest
            .unwrap_or_default()
            .max(self.shared.context.patience.earlier_step)
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
                Err(Busy::NotAsked(_) | Busy::NotTold(_))
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
        let wanted = self.wanted();
        let Some(writer) = &self.writer else {
            return false;
        };
        let now = read_answers(writer, &wanted)
            .await
            .map(|answers| again_seen(before, &answers));
        now.is_ok_and(|now| {
            now.iter().zip(before).all(|(now, before)| {
                now.assessment.fingerprint() == before.assessment.fingerprint()
            })
        })
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

pub(super) async fn read_answers(
    writer: &Writer,
    wanted: &BTreeSet<Read>,
) -> Result<ReadResults, TransportError> {
    let wanted: Vec<Read> = wanted.iter().cloned().collect();
    writer.reader().read(&wanted).await
}
