//! How an armed automatic rollback ends: it is confirmed over a new connection, or the host puts
//! everything back.

use super::look::again_seen;
use super::rollback_timer_queries::{QUESTION, RollbackTimerQuery, RollbackTimerState};
use super::unproven::Unproven;
use super::with_rollback::ArmedRollbackTimer;
use super::{ChangeStep, Halt, halt_with_problem};
use crate::context::RunEvent;
use crate::precondition::ObservedMember;
use crate::trouble;
use railwright_base::Digest;
use railwright_resource::rollback_scope::RollbackScope;
use railwright_state::run_status::StepIntent;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_system::clock::{self, Deadline};
use std::time::Duration;

/// The attribute by which a unit says that no restart is pending.
const RESTARTED: &str = "restarted";

impl<'a> ChangeStep<'a> {
    /// Confirms over the connection that has checked the step; true when the automatic rollback is
    /// disarmed.
    pub(super) async fn confirm_rollback_timer(
        &mut self,
        watch: &ArmedRollbackTimer,
    ) -> Result<bool, Halt> {
        let mut asked = false;
        while !watch.prove.left().is_zero() {
            match self.ask_anew(RollbackTimerQuery::Disarm, watch).await? {
                // What was confirmed with an answer that got lost is gone when it is asked again.
                Some((0, _)) => return Ok(self.note_over(watch, true, "")),
                Some((1, _)) if asked => return Ok(self.note_over(watch, true, "")),
                Some((75 | 1, _)) => return Ok(false),
                _ => asked = true,
            }
            clock::sleep_for(self.shared.context.patience.settle_poll).await;
        }
        Ok(false)
    }

    fn note_over(&self, watch: &ArmedRollbackTimer, confirmed: bool, failed: &str) -> bool {
        let (node, token, failed) = (self.node.id.clone(), watch.token.clone(), failed.to_owned());
        self.shared.journal.note(JournalEntry::RollbackTimerEnded {
            node: node.clone(),
            token,
            confirmed,
            failed: failed.clone(),
        });
        (self.shared.sink)(RunEvent::RollbackTimerEnded {
            node,
            confirmed,
            failed,
        });
        confirmed
    }

    /// Has the host put everything back, and waits until it has: at once where it can be told to,
    /// else when the rollback timer expires. Nothing where that could not be seen.
    async fn wait_until_back(
        &mut self,
        watch: &ArmedRollbackTimer,
    ) -> Result<Option<String>, Halt> {
        (self.shared.sink)(RunEvent::RollbackTimerFires {
            node: self.node.id.clone(),
            seconds: watch.seconds,
        });
        while !watch.back.left().is_zero() {
            match self.standing(watch).await {
                RollbackTimerState::Reverted(failed) => return Ok(Some(failed)),
                RollbackTimerState::Armed => {
                    drop(self.ask_anew(RollbackTimerQuery::Fire, watch).await?)
                }
                RollbackTimerState::None => return Ok(None),
                RollbackTimerState::Reverting | RollbackTimerState::Unknown => {}
            }
            clock::sleep_for(self.shared.context.patience.settle_poll).await;
        }
        Ok(None)
    }

    pub(super) async fn taken_back(
        &mut self,
        watch: &ArmedRollbackTimer,
        before: &[ObservedMember<'a>],
        why: Unproven,
    ) -> Halt {
        let back = match self.wait_until_back(watch).await {
            Ok(back) => back,
            Err(halt) => return halt,
        };
        let Some(failed) = back else {
            let why = why.sentence();
            let problem = trouble::rollback_timer_not_seen(
                &self.node.id,
                self.host,
                &watch.token,
                &why,
                &self.shared.next,
            );
            return halt_with_problem(
                NodeOutcome::Unknown {
                    reason: format!("{why}; and whether it was rolled back is not known"),
                },
                problem,
            );
        };
        self.note_over(watch, false, &failed);
        let as_before = failed.is_empty() && self.is_as_before(before).await;
        let (outcome, problem) = self.unproven(&why, as_before, &failed);
        halt_with_problem(outcome, problem)
    }

    /// A netdev that was told to come up again may take a while to be as it was. A restart that was
    /// pending may be done now: the rollback has restarted the unit.
    async fn is_as_before(&mut self, before: &[ObservedMember<'a>]) -> bool {
        let (desired, found_before) = (self.desired(), digest_readings(before));
        let settle = Deadline::after(self.shared.context.patience.settle);
        loop {
            match clock::await_with_timeout(QUESTION, self.look_once(&desired)).await {
                Some(Ok(answers)) => {
                    if digest_readings(&again_seen(before, &answers)) == found_before {
                        return true;
                    }
                }
                _ => self.writer = None,
            }
            if settle.left().is_zero() {
                return false;
            }
            clock::sleep_for(self.shared.context.patience.settle_poll).await;
        }
    }

    /// An earlier part of the run died with its automatic rollback still armed. What is in sync is
    /// confirmed over this connection, which is a new one; anything else is put back first, and so
    /// is what hosts behind a switch have to bear: whether they did was not found out. True when
    /// the host has to be re-checked.
    pub(super) async fn settle_earlier_rollback(
        &mut self,
        earlier: &StepIntent,
        seen: &[ObservedMember<'a>],
    ) -> Result<bool, Halt> {
        let seconds = self.rollback_timer_s();
        let whole = Duration::from_secs(seconds.into());
        let (prove, back) = (
            Deadline::after(whole),
            Deadline::after(whole + self.grace()),
        );
        let watch = ArmedRollbackTimer {
            token: earlier.token.clone(),
            scope: RollbackScope::default(),
            seconds,
            prove,
            back,
        };
        match self.standing(&watch).await {
            RollbackTimerState::None => {
                let accept = &self.shared.decisions.accept;
                if seen
                    .iter()
                    .all(|s| s.is_settled() && !accept.contains(s.address()))
                {
                    self.prove_kept_change(&watch.token).await?;
                }
                return Ok(false);
            }
            RollbackTimerState::Reverted(failed) => {
                self.note_over(&watch, false, &failed);
                return Ok(false);
            }
            RollbackTimerState::Armed
                if seen.iter().all(ObservedMember::is_settled)
                    && self.hosts_behind().is_none()
                    && self.confirm_rollback_timer(&watch).await? =>
            {
                return Ok(false);
            }
            RollbackTimerState::Armed
            | RollbackTimerState::Reverting
            | RollbackTimerState::Unknown => {}
        }
        match self.wait_until_back(&watch).await? {
            Some(failed) => {
                self.note_over(&watch, false, &failed);
                Ok(true)
            }
            None => Err(self.unknown(
                "its automatic rollback was armed, and whether it has acted is not known"
                    .to_owned(),
            )),
        }
    }
}

/// The digest of what was read, without pending restarts.
fn digest_readings(seen: &[ObservedMember]) -> Digest {
    let mut readings = Vec::new();
    for s in seen {
        for (name, attribute) in &s.diff.attributes {
            if name != RESTARTED {
                readings.push((s.address(), name, &attribute.actual));
            }
        }
    }
    Digest::of(&readings)
}
