//! Carries out one change: look once more, journal the intent, act, and read again. Success is
//! never an exit status.

mod behind;
mod guard_questions;
mod guarded;
mod look;
mod settle;
mod unproven;

use self::look::again_seen;
use self::settle::{SettleOutcome, left_waiting, not_gone, not_ready};
use super::cluster_node::{Halt, halt_with_problem};
use super::context::RunEvent;
use super::occupied::confirm_empty;
use super::precondition::{
    ObservedMember, StepDecision, actions_digest, decide_step, disturbs_too_much, judge_again,
    may_interrupt_netdev, observe_member,
};
use super::shared::RunContext;
use super::trouble;
use railwright_base::{Address, Diagnostic, Digest, Target};
use railwright_plan::{AppliedResource, Member, NodeKind, PlanNode};
use railwright_resource::complaint::find_failure_message;
use railwright_resource::kubernetes_object::request::MOVED;
use railwright_resource::{Action, ReadResults};
use railwright_state::journal::MemberIntent;
use railwright_state::journal_writer::JournalError;
use railwright_state::run_status::StepIntent;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_system::clock;
use railwright_transport::{ExecutionOutcome, TransportError, Writer};
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
    /// Hosts for which it came about what was waited for, where it did not for all.
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

    /// An outcome that is told.
    pub fn told(outcome: NodeOutcome, problem: Diagnostic) -> Self {
        Finish {
            problems: vec![problem],
            ..Finish::of(outcome)
        }
    }
}

/// Carries out the change with this number; the outcome is journalled, and written to the host when
/// it is done.
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

/// How the actions of one attempt ended.
enum ActionsOutcome {
    All,
    Failed {
        word: String,
        code: i32,
        stdout: String,
        stderr: String,
        /// Its place among the actions: those before it ended well.
        index: usize,
    },
    Lost(String),
    /// The lock of the target is no longer ours.
    LockLost {
        /// Who has it.
        holder: Option<String>,
        /// The place of the action that was not begun because of it.
        index: usize,
    },
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
            && self.may_be_guarded()
            && self.settle_earlier_guard(intent, &seen).await?
        {
            let answers = self.look().await?;
            seen = self.see(&answers);
        }
        let mut verdict = self.decide(&seen, earlier.as_ref());
        if matches!(verdict, StepDecision::Act(_))
            && self.guard_reason(&seen).is_some()
            && self.ask_behind().await
        {
            // Hosts take up to a minute to pass a gate; what was seen before it may have moved
            // since.
            let answers = self.look().await?;
            seen = self.see(&answers);
            verdict = self.decide(&seen, earlier.as_ref());
        }
        match verdict {
            StepDecision::Met => Ok(self.done(&seen, earlier.as_ref())),
            StepDecision::Act(actions) => self.act(actions, seen, earlier).await,
            other => Err(self.refused(other)),
        }
    }

    fn decide(&self, seen: &[ObservedMember], earlier: Option<&StepIntent>) -> StepDecision {
        let decisions = &self.shared.decisions;
        match earlier {
            Some(intent) => judge_again(
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
        let prior = |member: &Member| self.shared.prior(&member.wish.address);
        self.node
            .members()
            .iter()
            .map(|member| observe_member(member, prior(member), answers, moved_by_us))
            .collect()
    }

    fn unreachable(&self, error: &TransportError) -> Halt {
        let on = self
            .node
            .target
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
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
            .map(|m| m.wish.address.to_string())
            .collect();
        let problem =
            trouble::report_unknown_outcome(&self.node.id, &reason, &resources, &self.shared.next);
        halt_with_problem(NodeOutcome::Unknown { reason }, problem)
    }

    /// What it takes back.
    fn removals(&self) -> Vec<String> {
        self.node
            .members()
            .iter()
            .filter(|m| m.found.removal)
            .map(|m| m.wish.address.to_string())
            .collect()
    }

    /// Acts until the step is done or given up. A lost connection is looked into over a new one;
    /// the step is done again once where that is safe.
    async fn act(
        &mut self,
        mut actions: Vec<Action>,
        mut seen: Vec<ObservedMember<'a>>,
        earlier: Option<StepIntent>,
    ) -> Result<Finish, Halt> {
        if let Some(because) = self.guard_reason(&seen) {
            return self.act_guarded(actions, seen, earlier, &because).await;
        }
        // A long action outlives many connections; each time it is looked for under its token
        // first.
        let tries = if actions.iter().any(Action::is_long) {
            5
        } else {
            2
        };
        let mut token = self
            .shared
            .may_still_run(self.node)
            .map(|intent| intent.token.clone());
        let mut intent = earlier;
        for turn in 1..=tries {
            self.keep_to_the_limit(&seen)?;
            self.confirm_empty().await?;
            let begun = self
                .intend(&actions, &seen, intent.take(), token.take())
                .await?;
            let acted = self.perform(&actions, &begun.token).await;
            (intent, token) = (Some(begun.clone()), Some(begun.token.clone()));
            if let ActionsOutcome::Failed {
                code: MOVED,
                stderr,
                index: 0,
                ..
            } = &acted
                && actions.first().is_some_and(Action::leaves_moved_alone)
            {
                return Err(self.refused(StepDecision::Stale(
                    find_failure_message(stderr).unwrap_or_default(),
                )));
            }
            let is_first = self.begun.is_none();
            if !matches!(acted, ActionsOutcome::LockLost { index: 0, .. }) {
                self.begun.get_or_insert_with(|| begun.clone());
            }
            match acted {
                ActionsOutcome::All => return self.confirm(&seen, begun, &actions).await,
                ActionsOutcome::Failed {
                    word,
                    code,
                    stdout,
                    stderr,
                    index,
                } => {
                    let untouched = self.is_untouched(&seen).await;
                    if untouched && is_first {
                        self.begun = None;
                    }
                    let done = actions.get(..index).unwrap_or_default();
                    let problem = trouble::action_failed(
                        &self.node.id,
                        &word,
                        code,
                        &stdout,
                        &stderr,
                        &self.shared.next,
                    )
                    .state(trouble::after_failure(
                        &self.node.id,
                        untouched,
                        done,
                    ));
                    let problem = trouble::or_forget(problem, &self.removals(), &self.shared.next);
                    return Err(halt_with_problem(
                        NodeOutcome::Failed {
                            reason: format!("{word} ended with exit status {code}"),
                        },
                        problem,
                    ));
                }
                ActionsOutcome::LockLost { holder, .. } => {
                    return Err(self.lock_lost(holder.as_deref()));
                }
                ActionsOutcome::Lost(reason) => {
                    let answers = self
                        .look_again(&reason, self.longest(self.node, &actions), &begun.token)
                        .await?;
                    seen = again_seen(&seen, &answers);
                    let none = BTreeSet::new();
                    match judge_again(&self.node.kind, &seen, &begun, &none, &none) {
                        StepDecision::Met => return Ok(self.done(&seen, Some(&begun))),
                        StepDecision::Act(once_more) if turn < tries => actions = once_more,
                        StepDecision::Act(_) => {
                            return Err(self.unknown(format!(
                                "the connection was lost {turn} times: {reason}"
                            )));
                        }
                        other => return Err(self.refused(other)),
                    }
                }
            }
        }
        Err(self.unknown("the connection was lost every time".to_owned()))
    }

    /// In the last moment before the intent: the node that was emptied for this step still is.
    async fn confirm_empty(&self) -> Result<(), Halt> {
        confirm_empty(self.shared, self.n).await.map_err(Halt::Over)
    }

    fn keep_to_the_limit(&self, seen: &[ObservedMember]) -> Result<(), Halt> {
        match disturbs_too_much(
            seen,
            self.node.disruption,
            self.shared.plan.rollout.max_disruption,
        ) {
            None => Ok(()),
            Some(reason) => Err(halt_with_problem(
                NodeOutcome::Stale {
                    reason: reason.clone(),
                },
                trouble::report_unannounced_step(&self.node.id, &reason, &self.shared.next),
            )),
        }
    }

    /// The intent, durable before anything is done.
    async fn intend(
        &self,
        actions: &[Action],
        seen: &[ObservedMember<'_>],
        earlier: Option<StepIntent>,
        token: Option<String>,
    ) -> Result<StepIntent, Halt> {
        let attempt = earlier.as_ref().map_or(1, |intent| intent.attempt + 1);
        let latest: Vec<MemberIntent> = seen
            .iter()
            .map(|seen| seen.intent(self.shared.context.secrets.redaction()))
            .collect();
        let intent = StepIntent {
            attempt,
            token: token.unwrap_or_else(|| format!("{}-{}-{attempt}", self.shared.run, self.n)),
            actions: actions_digest(actions),
            first: earlier.map_or_else(|| latest.clone(), |intent| intent.first),
            latest: latest.clone(),
            boot_id: self.shared.host(self.host).boot_id,
            sequence: 0,
        };
        let entry = JournalEntry::NodeStarted {
            node: self.node.id.clone(),
            host: self.shared.host_of(self.n),
            disruptive: self.shared.is_disruptive(self.n),
            attempt,
            token: intent.token.clone(),
            actions: intent.actions.clone(),
            members: latest,
            boot_id: intent.boot_id.clone(),
        };
        self.shared.journal.commit(entry).await?;
        self.shared.note_acted(self.n);
        if let Some(writer) = &self.writer {
            self.shared.record_leaving(self.n, writer).await;
        }
        Ok(intent)
    }

    async fn perform(&mut self, actions: &[Action], token: &str) -> ActionsOutcome {
        for (index, action) in actions
            .iter()
            .enumerate()
            .filter(|(_, action)| action.waits_s() == 0)
        {
            let (node, word) = (self.node.id.clone(), action.word());
            (self.shared.sink)(RunEvent::ActionStarted {
                node: node.clone(),
                index,
                count: actions.len(),
                word: word.clone(),
            });
            self.shared.journal.note(JournalEntry::ActionSent {
                node: node.clone(),
                index,
                word: word.clone(),
            });
            // By its content, not its place: another attempt may have fewer actions.
            let performed = self
                .perform_one(action, &format!("{token}-{}", Digest::of(action).short()))
                .await;
            let performed = match performed {
                Err(TransportError::LockLost { holder, .. }) => {
                    return ActionsOutcome::LockLost { holder, index };
                }
                other => other.unwrap_or_else(|error| ExecutionOutcome::Unknown {
                    reason: error.to_string(),
                }),
            };
            let code = if let ExecutionOutcome::Ended { code, .. } = &performed {
                Some(*code)
            } else {
                None
            };
            self.shared
                .journal
                .note(JournalEntry::ActionEnded { node, index, code });
            match performed {
                ExecutionOutcome::Ended { code: 0, .. } => {}
                ExecutionOutcome::Ended {
                    code,
                    stdout,
                    stderr,
                } => {
                    return ActionsOutcome::Failed {
                        word,
                        code,
                        stdout,
                        stderr,
                        index,
                    };
                }
                ExecutionOutcome::Unknown { reason } => return ActionsOutcome::Lost(reason),
            }
        }
        ActionsOutcome::All
    }

    async fn perform_one(
        &self,
        action: &Action,
        token: &str,
    ) -> Result<ExecutionOutcome, TransportError> {
        match &self.writer {
            Some(writer) => writer.perform(action, token).await,
            None => Ok(ExecutionOutcome::Unknown {
                reason: "there is no connection".to_owned(),
            }),
        }
    }

    /// Somebody else has the lock of the target, and nothing of this step is written any more.
    fn lock_lost(&self, holder: Option<&str>) -> Halt {
        let lost = self.shared.heart.lost(self.host, holder);
        halt_with_problem(
            NodeOutcome::LockLost {
                reason: lost.message.clone(),
            },
            lost,
        )
    }

    /// Reads again until all is as wished. A change that interrupts a netdev is proven over a new
    /// connection.
    async fn confirm(
        &mut self,
        seen: &[ObservedMember<'a>],
        intent: StepIntent,
        actions: &[Action],
    ) -> Result<Finish, Halt> {
        let wanted = self.wanted();
        let waits = actions
            .iter()
            .map(Action::waits_s)
            .max()
            .filter(|seconds| *seconds > 0);
        let interrupts = matches!(&self.node.kind, NodeKind::Change { interrupts_netdevs, .. } if !interrupts_netdevs.is_empty())
            || may_interrupt_netdev(seen);
        if interrupts && let Err(error) = self.reconnect().await {
            return Err(self.unknown(format!("no new connection could be made after it: {error}")));
        }
        let (now, trouble) = match self.settled(seen, &wanted, waits).await? {
            SettleOutcome::As(now) => return Ok(self.done(&now, Some(&intent))),
            SettleOutcome::Interrupted(what) => {
                let problem = left_waiting(&self.node.id, &what, &self.shared.next);
                return Err(halt_with_problem(
                    NodeOutcome::Unknown {
                        reason: format!("stopped while it was waited for: {what}"),
                    },
                    problem,
                ));
            }
            SettleOutcome::Not { now, trouble } => (now, trouble),
        };
        let open: Vec<&ObservedMember> = now.iter().filter(|s| !s.is_settled()).collect();
        let hopeless = open.iter().find_map(|s| {
            s.assessment
                .hopeless
                .as_ref()
                .map(|hopeless| hopeless.why.clone())
        });
        let what: Vec<String> = open.iter().map(|s| s.what_differs()).collect();
        let what = what
            .into_iter()
            .chain(hopeless)
            .chain(trouble)
            .collect::<Vec<_>>()
            .join("; ");
        if open.iter().all(|s| s.assessment.only_unknown()) {
            return Err(self.unknown(format!("it could not be read again: {what}")));
        }
        let rival = open.iter().find_map(|s| s.rival());
        let spares = self.spared(&open);
        let problem = match (open.iter().all(|s| s.assessment.only_waits()), rival) {
            (true, _) if open.iter().all(|s| s.member.removal) => {
                not_gone(&open, &self.node.id, &self.shared.next)
            }
            (true, _) => not_ready(&self.node.id, &what, spares.is_some(), &self.shared.next),
            (false, Some(rival)) => {
                trouble::fought_over(&self.node.id, &what, rival, &self.shared.next)
            }
            (false, None) => {
                let problem = trouble::not_as_wished(&self.node.id, &what, &self.shared.next);
                trouble::or_forget(problem, &self.removals(), &self.shared.next)
            }
        };
        let finish = Finish::told(
            NodeOutcome::Failed {
                reason: format!("not as wished after it: {what}"),
            },
            problem,
        );
        Err(Halt::Over(Box::new(Finish { spares, ..finish })))
    }

    /// Done: what is remembered of each member, and what is forgotten.
    fn done(&self, seen: &[ObservedMember], intent: Option<&StepIntent>) -> Finish {
        let mut finish = Finish::of(NodeOutcome::Done {
            changed: intent.is_some(),
        });
        for s in seen {
            if s.member.removal {
                finish.removed.push(s.address().clone());
                continue;
            }
            let first = intent
                .and_then(|intent| intent.first.iter().find(|m| m.address == *s.address()))
                .cloned();
            let first = first.unwrap_or_else(|| s.intent(self.shared.context.secrets.redaction()));
            finish
                .applied
                .push((s.address().clone(), self.applied(s, first)));
        }
        finish
    }

    /// A step that acted and was then left alone is not as it was: nobody knows how it stands.
    fn after_acting(&self, finish: Finish) -> Finish {
        match finish.outcome {
            NodeOutcome::Stale { reason } if self.begun.is_some() => {
                let told = "the step acted before that, and its connection was lost; how it stands \
                            is not known";
                let problems = finish
                    .problems
                    .into_iter()
                    .map(|problem| problem.state(told))
                    .collect();
                Finish {
                    outcome: NodeOutcome::Unknown { reason },
                    problems,
                    ..finish
                }
            }
            outcome => Finish { outcome, ..finish },
        }
    }

    /// What a step that did not come through may have made of resources that were never applied, so
    /// that it is taken back should their wish go.
    fn unfinished(&self) -> Vec<(Address, AppliedResource)> {
        let of = |member: &Member| {
            let address = &member.wish.address;
            let first = self
                .begun
                .as_ref()?
                .first
                .iter()
                .find(|first| first.address == *address && !first.met)?;
            if member.removal
                || self
                    .shared
                    .prior(address)
                    .is_some_and(|prior| !prior.unfinished)
            {
                return None;
            }
            Some((
                address.clone(),
                AppliedResource::unfinished(
                    &member.wish,
                    first.before.clone(),
                    &self.shared.run,
                    clock::read_current_time(),
                ),
            ))
        };
        self.node.members().iter().filter_map(of).collect()
    }

    fn applied(&self, seen: &ObservedMember, first: MemberIntent) -> AppliedResource {
        let adopted = first.met && seen.prior.as_ref().is_none_or(|prior| prior.adopted);
        AppliedResource::of(
            &seen.member.wish,
            first.before,
            adopted,
            &self.shared.run,
            clock::read_current_time(),
        )
    }
}
