//! Executes the actions of one change: journals the intent, performs them one after the other, and
//! looks over a new connection what came of them where the old one was lost.

use super::look::again_seen;
use super::{ChangeStep, Finish, Halt, halt_with_problem};
use crate::context::RunEvent;
use crate::occupied;
use crate::precondition::{
    ObservedMember, StepDecision, actions_digest, diff_again, disturbs_too_much,
};
use crate::trouble::{self, NextCommands};
use railwright_base::{Diagnostic, Digest};
use railwright_resource::Action;
use railwright_resource::complaint::find_failure_message;
use railwright_resource::kubernetes_object::request::MOVED;
use railwright_state::journal::MemberIntent;
use railwright_state::run_status::StepIntent;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_transport::{ExecutionOutcome, TransportError};
use std::collections::BTreeSet;

/// How the actions of one attempt ended.
pub(super) enum ActionsOutcome {
    All,
    Failed(ActionFailure),
    Lost(String),
    /// The lock of the target is no longer ours.
    LockLost {
        /// Who has it.
        holder: Option<String>,
        /// The place of the action that was not begun because of it.
        index: usize,
    },
}

/// An action that ended with an exit status other than 0.
pub(super) struct ActionFailure {
    pub(super) word: String,
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Its place among the actions: those before it ended well.
    index: usize,
}

impl ActionFailure {
    pub(super) fn diagnostic(&self, node: &str, next: &NextCommands) -> Diagnostic {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        trouble::action_failed(node, &self.word, self.code, stdout, stderr, next)
    }
}

/// Why the first action has left an object alone that somebody moved since it was read.
fn find_moved_reason(acted: &ActionsOutcome, actions: &[Action]) -> Option<String> {
    let ActionsOutcome::Failed(failure) = acted else {
        return None;
    };
    let leaves_alone = actions.first().is_some_and(Action::leaves_moved_alone);
    if failure.code != MOVED || failure.index > 0 || !leaves_alone {
        return None;
    }
    Some(find_failure_message(&failure.stderr).unwrap_or_default())
}

impl<'a> ChangeStep<'a> {
    /// Acts until the step is done or given up. A lost connection is looked into over a new one;
    /// the step is done again once where that is safe.
    pub(super) async fn act(
        &mut self,
        mut actions: Vec<Action>,
        mut seen: Vec<ObservedMember<'a>>,
        earlier: Option<StepIntent>,
    ) -> Result<Finish, Halt> {
        if let Some(because) = self.rollback_reason(&seen) {
            return self
                .act_with_rollback(actions, seen, earlier, &because)
                .await;
        }
        // A long action outlives many connections; each time it is looked for under its token
        // first.
        let tries = match actions.iter().any(Action::is_long) {
            true => 5,
            false => 2,
        };
        let still_running = self.shared.may_still_run(self.node);
        let mut token = still_running.map(|intent| intent.token.clone());
        let (mut intent, none) = (earlier, BTreeSet::new());
        for turn in 1..=tries {
            self.keep_to_the_limit(&seen)?;
            self.confirm_empty().await?;
            let begun = self
                .intend(&actions, &seen, intent.take(), token.take())
                .await?;
            let acted = self.perform(&actions, &begun.token).await;
            (intent, token) = (Some(begun.clone()), Some(begun.token.clone()));
            if let Some(why) = find_moved_reason(&acted, &actions) {
                return Err(self.refused(StepDecision::Stale(why)));
            }
            let is_first = self.begun.is_none();
            if !matches!(acted, ActionsOutcome::LockLost { index: 0, .. }) {
                self.begun.get_or_insert_with(|| begun.clone());
            }
            let reason = match acted {
                ActionsOutcome::All => return self.confirm(&seen, begun, &actions).await,
                ActionsOutcome::Failed(failure) => {
                    let halt = self.handle_failed_action(&failure, &actions, &seen, is_first);
                    return Err(halt.await);
                }
                ActionsOutcome::LockLost { holder, .. } => {
                    return Err(self.lock_lost(holder.as_deref()));
                }
                ActionsOutcome::Lost(reason) => reason,
            };
            let longest = self.longest(self.node, &actions);
            let answers = self.look_again(&reason, longest, &begun.token).await?;
            seen = again_seen(&seen, &answers);
            match diff_again(&self.node.kind, &seen, &begun, &none, &none) {
                StepDecision::Met => return self.confirm(&seen, begun, &actions).await,
                StepDecision::Act(once_more) if turn < tries => actions = once_more,
                StepDecision::Act(_) => {
                    let why = format!("the connection was lost {turn} times: {reason}");
                    return Err(self.unknown(why));
                }
                other => return Err(self.refused(other)),
            }
        }
        Err(self.unknown("the connection was lost every time".to_owned()))
    }

    /// An action ended with an error. A first attempt that left everything as it was has begun
    /// nothing.
    async fn handle_failed_action(
        &mut self,
        failure: &ActionFailure,
        actions: &[Action],
        seen: &[ObservedMember<'a>],
        is_first: bool,
    ) -> Halt {
        let untouched = self.is_untouched(seen).await;
        if untouched && is_first {
            self.begun = None;
        }
        let (id, next) = (&self.node.id, &self.shared.next);
        let done = actions.get(..failure.index).unwrap_or_default();
        let problem = failure
            .diagnostic(id, next)
            .state(trouble::after_failure(id, untouched, done));
        let problem = trouble::or_forget(problem, &self.removals(), next);
        let reason = format!("{} ended with exit status {}", failure.word, failure.code);
        halt_with_problem(NodeOutcome::Failed { reason }, problem)
    }

    /// In the last moment before the intent: the node that was emptied for this step still is.
    pub(super) async fn confirm_empty(&self) -> Result<(), Halt> {
        occupied::confirm_empty(self.shared, self.n)
            .await
            .map_err(Halt::Over)
    }

    pub(super) fn keep_to_the_limit(&self, seen: &[ObservedMember]) -> Result<(), Halt> {
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

    /// The intent, durable before anything is done. A first attempt that would disturb its host
    /// does not begin where the host cannot write that down.
    pub(super) async fn intend(
        &self,
        actions: &[Action],
        seen: &[ObservedMember<'_>],
        earlier: Option<StepIntent>,
        token: Option<String>,
    ) -> Result<StepIntent, Halt> {
        let attempt = earlier.as_ref().map_or(1, |intent| intent.attempt + 1);
        if let Some(writer) = &self.writer {
            let recorded = self.shared.record_leaving(self.n, attempt, writer).await;
            recorded.map_err(Halt::Over)?;
        }
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
            drains: false,
            attempt,
            token: intent.token.clone(),
            actions: intent.actions.clone(),
            members: latest,
            boot_id: intent.boot_id.clone(),
        };
        self.shared.journal.commit(entry).await?;
        self.shared.note_acted(self.n);
        Ok(intent)
    }

    pub(super) async fn perform(&mut self, actions: &[Action], token: &str) -> ActionsOutcome {
        for (index, action) in actions.iter().enumerate() {
            if action.waits_s() > 0 {
                continue;
            }
            let word = action.word();
            self.note_begun(index, actions.len(), &word);
            // By its content, not its place: another attempt may have fewer actions.
            let token = format!("{token}-{}", Digest::of(action).short());
            let performed = match self.perform_one(action, &token).await {
                Ok(performed) => performed,
                Err(TransportError::LockLost { holder, .. }) => {
                    return ActionsOutcome::LockLost { holder, index };
                }
                Err(error) => ExecutionOutcome::Unknown {
                    reason: error.to_string().into(),
                },
            };
            let code = match &performed {
                ExecutionOutcome::Ended { code, .. } => Some(*code),
                ExecutionOutcome::Unknown { .. } => None,
            };
            let node = self.node.id.clone();
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
                    return ActionsOutcome::Failed(ActionFailure {
                        word,
                        code,
                        stdout,
                        stderr,
                        index,
                    });
                }
                ExecutionOutcome::Unknown { reason } => {
                    return ActionsOutcome::Lost(reason.to_string());
                }
            }
        }
        ActionsOutcome::All
    }

    /// Shows and journals that an action goes out.
    fn note_begun(&self, index: usize, count: usize, word: &str) {
        let (node, word) = (self.node.id.clone(), word.to_owned());
        (self.shared.sink)(RunEvent::ActionStarted {
            node: node.clone(),
            index,
            count,
            word: word.clone(),
        });
        self.shared
            .journal
            .note(JournalEntry::ActionSent { node, index, word });
    }

    async fn perform_one(
        &self,
        action: &Action,
        token: &str,
    ) -> Result<ExecutionOutcome, TransportError> {
        match &self.writer {
            Some(writer) => writer.perform(action, token).await,
            None => Ok(ExecutionOutcome::Unknown {
                reason: "there is no connection".into(),
            }),
        }
    }

    /// Somebody else has the lock of the target, and nothing of this step is written any more.
    pub(super) fn lock_lost(&self, holder: Option<&str>) -> Halt {
        let lost = self.shared.heart.lost(self.host, holder);
        halt_with_problem(
            NodeOutcome::LockLost {
                reason: lost.message.clone(),
            },
            lost,
        )
    }
}
