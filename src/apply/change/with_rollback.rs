//! A step that can cut our own connection: the host keeps what it touches and is armed first; the
//! step is checked over a new connection and confirmed over that one. Whatever goes wrong in
//! between, the host puts everything back: when it is told to, when the time is over, or with its
//! next boot.

use super::execution::ActionsOutcome;
use super::look::{again_seen, read_answers, seen_after_actions};
use super::rollback_timer_queries::{QUESTION, RollbackTimerQuery, RollbackTimerState};
use super::unproven::Unproven;
use super::{ChangeStep, Halt, halt_with_problem};
use crate::context::RunEvent;
use crate::precondition::{ObservedMember, StepDecision, go_on};
use crate::trouble::{self, complaint_of};
use railwright_base::text::one_line;
use railwright_base::{Reason, TargetKind};
use railwright_plan::NodeKind;
use railwright_resource::rollback_scope::{NotRolledBack, RollbackScope, find_rollback_reason};
use railwright_resource::{Action, Read};
use railwright_state::run_status::StepIntent;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_system::clock::{self, Deadline};
use railwright_transport::{ExecutionOutcome, TargetAccess, TransportError};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often what is still to be done may be done: a unit can only be read once its file is
/// there.
const ROUNDS: usize = 3;
/// What a host may take to put everything back, or to boot, after the rollback timer has expired.
const GRACE: Duration = Duration::from_secs(300);
/// What a switch may take after the rollback timer has expired: a patch that still runs is waited
/// for, then what differs is put back or all is loaded again, each for minutes.
const SWITCH_GRACE: Duration = Duration::from_secs(2100);

/// An automatic rollback that is armed on the host.
pub(super) struct ArmedRollbackTimer {
    pub(super) token: String,
    pub(super) scope: RollbackScope,
    pub(super) seconds: u32,
    /// Until then it can be confirmed with certainty: before the rollback timer itself expires.
    pub(super) prove: Deadline,
    /// Until then the host must have put everything back.
    pub(super) back: Deadline,
}

impl<'a> ChangeStep<'a> {
    /// Why what is not as desired yet needs an automatic rollback; nothing where it needs none. On
    /// this very machine there is no connection.
    pub(super) fn rollback_reason(&self, seen: &[ObservedMember]) -> Option<String> {
        if self.access().is_some_and(TargetAccess::is_this_machine) {
            return None;
        }
        let ours = self.shared.host(self.host).ssh_netdevs;
        for s in seen.iter().filter(|s| !s.is_settled()) {
            let reason = find_rollback_reason(&s.member.resource, &s.diff, &ours);
            if reason.is_some() {
                return reason;
            }
        }
        match &self.node.kind {
            NodeKind::Change {
                automatic_rollback: Some(rollback),
                ..
            } => Some(rollback.because.clone()),
            _ => None,
        }
    }

    /// Whether an automatic rollback of an earlier attempt may be armed, whatever is in sync by
    /// now. A cluster has none.
    pub(super) fn may_have_rollback(&self) -> bool {
        self.access()
            .is_some_and(|access| !access.is_this_machine() && access.cluster().is_none())
    }

    /// Acts under an automatic rollback.
    pub(super) async fn act_with_rollback(
        &mut self,
        actions: Vec<Action>,
        seen: Vec<ObservedMember<'a>>,
        earlier: Option<StepIntent>,
        because: &str,
    ) -> Result<super::Finish, Halt> {
        self.keep_to_the_limit(&seen)?;
        let resources = self.node.members().iter().map(|member| &member.resource);
        let scope = RollbackScope::over(&actions, resources).map_err(|NotRolledBack(word)| {
            self.refused(StepDecision::Unannounced(format!(
                "{because}, and no automatic rollback covers what {} does",
                word.replace('_', " ")
            )))
        })?;
        self.confirm_empty().await?;
        let begun = self.intend(&actions, &seen, earlier, None).await?;
        let watch = self.arm(scope, &begun).await?;
        let mut proven = self.prove(&watch, actions, &seen).await;
        if proven.is_ok()
            && let Err(why) = self.still_in_service(watch.prove).await
        {
            proven = Err(why.into());
        }
        let now = match proven {
            Ok(now) => now,
            // The host rolls it back by itself, before whoever has the lock now writes anything.
            Err(Unproven::Over(halt)) => return Err(halt),
            Err(why) => return Err(self.taken_back(&watch, &seen, why).await),
        };
        if !self.confirm_rollback_timer(&watch).await? {
            let why = Unproven::Because("it was not confirmed in time".into());
            return Err(self.taken_back(&watch, &seen, why).await);
        }
        if now.iter().all(ObservedMember::is_settled) {
            Ok(self.done(&now, Some(&begun)))
        } else {
            self.save_confirmed(&now, begun).await
        }
    }

    /// After how many seconds its target rolls back what was not confirmed.
    pub(super) fn rollback_timer_s(&self) -> u32 {
        self.shared
            .plan
            .rollout
            .rollback_timer_s(self.shared.context.target(self.host).kind)
    }

    pub(super) fn grace(&self) -> Duration {
        if self.is_switch() {
            SWITCH_GRACE
        } else {
            GRACE
        }
    }

    pub(super) fn is_switch(&self) -> bool {
        self.shared.context.target(self.host).kind == TargetKind::Switch
    }

    async fn arm(
        &mut self,
        scope: RollbackScope,
        intent: &StepIntent,
    ) -> Result<ArmedRollbackTimer, Halt> {
        let watch = self.new_rollback_timer(intent.token.clone(), scope);
        let armed = match &self.writer {
            Some(writer) => writer.arm(&watch.token, &watch.scope, watch.seconds).await,
            None => Err(self.no_connection()),
        };
        let reason = match armed {
            Ok(ExecutionOutcome::Ended { code: 0, .. }) => {
                let watch = self.new_rollback_timer(watch.token, watch.scope);
                return self.note_armed(watch).await;
            }
            Err(TransportError::LockLost { holder, .. }) => {
                return Err(self.lock_lost(holder.as_deref()));
            }
            Ok(ExecutionOutcome::Ended {
                code: 75, stdout, ..
            }) if !stdout.trim().is_empty() => {
                format!("the automatic rollback {} is still armed", stdout.trim())
            }
            Ok(ExecutionOutcome::Ended { code, stderr, .. }) => complaint_of(code, &stderr),
            Ok(ExecutionOutcome::Unknown { reason }) => {
                return Err(self.give_up_arming(&watch, reason.as_words()).await);
            }
            Err(error) => return Err(self.give_up_arming(&watch, &error.to_string()).await),
        };
        Err(self.halt_unarmed(&reason))
    }

    fn halt_unarmed(&self, reason: &str) -> Halt {
        let problem = trouble::rollback_timer_not_armed(&self.node.id, reason, &self.shared.next);
        let reason = format!("its automatic rollback could not be armed: {reason}");
        halt_with_problem(NodeOutcome::Failed { reason }, problem)
    }

    /// The answer got lost: the automatic rollback may be armed, and would undo what others change
    /// meanwhile. Nothing is begun under it, and it is disarmed; where that gets no answer either,
    /// that is reported.
    async fn give_up_arming(&mut self, watch: &ArmedRollbackTimer, reason: &str) -> Halt {
        self.wait_for_unconnected(watch).await;
        match self.ask_anew(RollbackTimerQuery::Disarm, watch).await {
            Err(halt) => halt,
            Ok(Some((0 | 1, _))) => self.halt_unarmed(reason),
            Ok(_) => {
                let (seconds, next) = (watch.seconds, &self.shared.next);
                let problem =
                    trouble::rollback_timer_in_doubt(&self.node.id, reason, seconds, next);
                let reason =
                    format!("whether its automatic rollback is armed is not known: {reason}");
                halt_with_problem(NodeOutcome::Unknown { reason }, problem)
            }
        }
    }

    fn new_rollback_timer(&self, token: String, scope: RollbackScope) -> ArmedRollbackTimer {
        let seconds = self.rollback_timer_s();
        // The host's own time began a moment ago; the quarter that is left over covers that.
        let whole = Duration::from_secs(seconds.into());
        ArmedRollbackTimer {
            token,
            scope,
            seconds,
            prove: Deadline::after(whole * 3 / 4),
            back: Deadline::after(whole + self.grace()),
        }
    }

    /// Journals an automatic rollback that was armed a moment ago.
    async fn note_armed(&self, watch: ArmedRollbackTimer) -> Result<ArmedRollbackTimer, Halt> {
        let (node, seconds) = (self.node.id.clone(), watch.seconds);
        let entry = JournalEntry::RollbackTimerArmed {
            node: node.clone(),
            token: watch.token.clone(),
            seconds,
            hosts_passed: !self.behind.is_empty(),
        };
        self.shared.journal.commit(entry).await?;
        (self.shared.sink)(RunEvent::RollbackTimerArmed { node, seconds });
        Ok(watch)
    }

    /// Acts and reads again over new connections until all is in sync; else why it is not.
    async fn prove(
        &mut self,
        watch: &ArmedRollbackTimer,
        mut actions: Vec<Action>,
        seen: &[ObservedMember<'a>],
    ) -> Result<Vec<ObservedMember<'a>>, Unproven> {
        let mut done: Vec<Action> = Vec::new();
        for round in 1.. {
            self.perform_with_rollback(watch, &actions).await?;
            done.append(&mut actions);
            self.server_reads(watch).await?;
            let now = self.look_with_rollback(watch, seen, &done).await?;
            if now.iter().all(ObservedMember::is_settled)
                || (self.saves_last() && self.only_to_save(&now).is_some())
            {
                return Ok(now);
            }
            // A target with its own automatic rollback takes no second change while the first waits
            // for its confirmation.
            let may_go_on = round < ROUNDS && !self.saves_last();
            actions = self
                .further(watch, &now)
                .filter(|_| may_go_on)
                .ok_or_else(|| describe_not_settled(&now))?;
            if !matches!(self.standing(watch).await, RollbackTimerState::Armed) {
                return Err(Unproven::Because("its rollback is no longer armed".into()));
            }
        }
        Err(Unproven::Because("it did not come to an end".into()))
    }

    /// Performs the actions before the rollback timer expires. Where it has expired or the
    /// connection is lost, what is read next shows how far they came.
    async fn perform_with_rollback(
        &mut self,
        watch: &ArmedRollbackTimer,
        actions: &[Action],
    ) -> Result<(), Unproven> {
        let performed = self.perform(actions, &watch.token);
        let acted = clock::await_with_timeout(watch.prove.left(), performed).await;
        match acted {
            Some(ActionsOutcome::Failed(failure)) => Err(Unproven::Action(failure)),
            Some(ActionsOutcome::LockLost { holder, .. }) => {
                Err(Unproven::Over(self.lock_lost(holder.as_deref())))
            }
            Some(ActionsOutcome::Lost(_)) if watch.scope.is_of_switch() => {
                // What is read before a switch is through with its patch is half of it.
                self.wait_for_unconnected(watch).await;
                Ok(())
            }
            Some(ActionsOutcome::All | ActionsOutcome::Lost(_)) | None => Ok(()),
        }
    }

    /// Waits over a new connection for what goes on while nobody is connected.
    async fn wait_for_unconnected(&mut self, watch: &ArmedRollbackTimer) {
        if self.reconnect().await.is_ok() {
            drop(self.until_idle(watch.prove.left(), &watch.token).await);
        }
    }

    /// What runs is checked and confirmed before it is saved.
    fn saves_last(&self) -> bool {
        self.access()
            .is_some_and(TargetAccess::saves_what_is_confirmed)
    }

    /// What saves what runs, where that is all that is still to be done.
    fn only_to_save(&self, now: &[ObservedMember]) -> Option<Vec<Action>> {
        let StepDecision::Act(more) = go_on(&self.node.kind, now) else {
            return None;
        };
        more.iter()
            .all(|action| matches!(action, Action::SaveSwitch { .. }))
            .then_some(more)
    }

    /// Saves what was confirmed, where the target has not done so by itself. What runs is in sync,
    /// and stays whatever comes of it.
    async fn save_confirmed(
        &mut self,
        proven: &[ObservedMember<'a>],
        begun: StepIntent,
    ) -> Result<super::Finish, Halt> {
        let desired = self.desired();
        self.begun = Some(begun.clone());
        let now = match clock::await_with_timeout(QUESTION, self.look_once(&desired)).await {
            Some(Ok(answers)) => again_seen(proven, &answers),
            _ => {
                return Err(self.unknown(
                    "it was confirmed, and whether it is saved could not be read".to_owned(),
                ));
            }
        };
        let actions = self.only_to_save(&now).unwrap_or_default();
        match self.perform(&actions, &begun.token).await {
            ActionsOutcome::All => self.confirm(&now, begun, &actions).await,
            ActionsOutcome::Failed(failure) => {
                let problem = failure.diagnostic(&self.node.id, &self.shared.next).state(
                    "the switch runs what was desired, which was checked and confirmed; a boot \
                     would set it back to what is saved",
                );
                let complaint = complaint_of(failure.code, &failure.stderr);
                let reason = format!("confirmed and not saved: {complaint}");
                Err(halt_with_problem(NodeOutcome::Failed { reason }, problem))
            }
            ActionsOutcome::LockLost { holder, .. } => Err(self.lock_lost(holder.as_deref())),
            ActionsOutcome::Lost(reason) => Err(self.unknown(format!(
                "it was confirmed, and whether it is saved is not known: {reason}"
            ))),
        }
    }

    /// What the SSH server was given it has to read before a new connection proves anything. One
    /// that cannot be asked any more shows soon enough.
    async fn server_reads(&mut self, watch: &ArmedRollbackTimer) -> Result<(), Unproven> {
        if !watch.scope.is_of_server() {
            return Ok(());
        }
        match self
            .ask_anew(RollbackTimerQuery::ServerReads, watch)
            .await
            .map_err(Unproven::Over)?
        {
            Some((0, _)) | None => Ok(()),
            Some((_, said)) => {
                let why = format!(
                    "the SSH server does not take its configuration: {}",
                    one_line(&said, 200)
                );
                Err(Unproven::Because(why.into()))
            }
        }
    }

    /// What is still to be done, if it was announced, may be done, and is covered by the automatic
    /// rollback that is armed.
    fn further(&self, watch: &ArmedRollbackTimer, now: &[ObservedMember]) -> Option<Vec<Action>> {
        let StepDecision::Act(actions) = go_on(&self.node.kind, now) else {
            return None;
        };
        let needed = RollbackScope::over(&actions, []).ok()?;
        let may = watch.scope.covers(&needed) && self.keep_to_the_limit(now).is_ok();
        may.then_some(actions)
    }

    /// Reads over a new connection until all is in sync, or something is to be done that was not
    /// done yet, or it has had the time to settle.
    async fn look_with_rollback(
        &mut self,
        watch: &ArmedRollbackTimer,
        seen: &[ObservedMember<'a>],
        done: &[Action],
    ) -> Result<Vec<ObservedMember<'a>>, Reason> {
        let desired = self.desired();
        let (mut now, mut why, mut settle) = (None, None, None);
        self.writer = None;
        loop {
            let left = watch.prove.left();
            if left.is_zero() || settle.is_some_and(|settle: Deadline| settle.left().is_zero()) {
                break;
            }
            match clock::await_with_timeout(left, self.look_once(&desired)).await {
                None => why = Some(format!("no answer within {} s", watch.seconds * 3 / 4)),
                Some(Err(error)) => (self.writer, why) = (None, Some(error.one_line())),
                Some(Ok(answers)) => {
                    let seen = seen_after_actions(seen, &answers);
                    let over = seen.iter().all(ObservedMember::is_settled)
                        || match go_on(&self.node.kind, &seen) {
                            StepDecision::Act(more) => more.iter().any(|new| !done.contains(new)),
                            _ => false,
                        };
                    now = Some(seen);
                    if over {
                        break;
                    }
                    if settle.is_none() {
                        settle = Some(Deadline::after(self.shared.context.patience.settle));
                    }
                }
            }
            clock::sleep_for(self.shared.context.patience.settle_poll).await;
        }
        now.ok_or_else(|| {
            format!(
                "no new connection could be made: {}",
                why.unwrap_or_else(|| "there was no time left".to_owned())
            )
            .into()
        })
    }

    pub(super) async fn look_once(
        &mut self,
        desired: &BTreeSet<Read>,
    ) -> Result<railwright_resource::ReadResults, TransportError> {
        if self.writer.is_none() {
            self.writer = Some(self.shared.connect(self.host).await?);
        }
        match &self.writer {
            Some(writer) => read_answers(writer, desired).await,
            None => Err(self.no_connection()),
        }
    }
}

/// Why a step cannot be confirmed: what differs, or what the target says that it cannot do, which is
/// why the rest was not gone on with.
fn describe_not_settled(now: &[ObservedMember]) -> Reason {
    let open: Vec<&ObservedMember> = now.iter().filter(|s| !s.is_settled()).collect();
    let mut refusals = open.iter().filter_map(|s| {
        let refusal = s.diff.refusal.as_ref()?;
        Some(format!("{}: {refusal}", s.address().within_target()))
    });
    let what = match refusals.next() {
        Some(refusal) => refusal,
        None => {
            let differs: Vec<String> = open.iter().map(|s| s.what_differs()).collect();
            differs.join("; ")
        }
    };
    format!("read again over a new connection it is not as desired: {what}").into()
}
