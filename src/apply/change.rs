//! Carries out one change: look once more, journal the intent, act, and read again. Success is never an exit status.

use super::context::Event;
use super::idle::idle;
use super::precondition::{
    Seen, Verdict, actions_digest, disturbs_too_much, has_moved, interrupts, judge, judge_again, moves_by_plan, reads, see,
};
use super::shared::Shared;
use super::trouble;
use crate::base::{Address, Diagnostic, Digest};
use crate::plan::{Applied, Member, Node, NodeKind};
use crate::resource::{Action, Answers, Read};
use crate::state::journal::MemberIntent;
use crate::state::journal_writer::JournalError;
use crate::state::run_status::Intent;
use crate::state::{Entry, Outcome};
use crate::system::clock;
use crate::transport::{Performed, TransportError, Writer};
use std::collections::BTreeSet;
use std::time::Duration;

/// How a step ended, with what is to be remembered and said.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// How.
    pub outcome: Outcome,
    /// What went wrong.
    pub problems: Vec<Diagnostic>,
    /// What is to be remembered as applied.
    pub applied: Vec<(Address, Applied)>,
    /// What is to be forgotten.
    pub removed: Vec<Address>,
}

impl Finish {
    /// An outcome with nothing more to it.
    pub fn of(outcome: Outcome) -> Self {
        Finish { outcome, problems: Vec::new(), applied: Vec::new(), removed: Vec::new() }
    }

    /// An outcome that is told.
    pub fn told(outcome: Outcome, problem: Diagnostic) -> Self {
        Finish { problems: vec![problem], ..Finish::of(outcome) }
    }
}

/// Carries out the change with this number; the outcome is journalled, and written to the host when it is done.
pub(super) async fn change(shared: &Shared, n: usize) -> Result<Finish, JournalError> {
    let node = &shared.plan.nodes[n];
    let host = node.target.as_ref().map(|target| target.name.as_str()).unwrap_or_default();
    let mut step = Step { shared, n, node, host, writer: None };
    let mut finish = match step.carry_out().await {
        Ok(finish) => finish,
        Err(Halt::Journal(broken)) => return Err(broken),
        Err(Halt::Over(finish)) => *finish,
    };
    finish.problems.extend(shared.finish(node, &finish, step.writer.as_ref()).await);
    Ok(finish)
}

/// Why a step goes no further.
enum Halt {
    Journal(JournalError),
    Over(Box<Finish>),
}

impl From<JournalError> for Halt {
    fn from(broken: JournalError) -> Self {
        Halt::Journal(broken)
    }
}

fn over(outcome: Outcome, problem: Diagnostic) -> Halt {
    Halt::Over(Box::new(Finish::told(outcome, problem)))
}

/// How the actions of one attempt ended.
enum Acted {
    All,
    Failed { word: String, code: i32, stdout: String, stderr: String },
    Lost(String),
}

struct Step<'a> {
    shared: &'a Shared,
    n: usize,
    node: &'a Node,
    host: &'a str,
    writer: Option<Writer>,
}

impl<'a> Step<'a> {
    async fn carry_out(&mut self) -> Result<Finish, Halt> {
        let earlier = self.earlier();
        let answers = self.look().await?;
        let seen = self.see(&answers);
        let decisions = &self.shared.decisions;
        let verdict = match &earlier {
            Some(intent) => judge_again(&self.node.kind, &seen, intent, &decisions.redo, &decisions.accept),
            None => judge(&self.node.kind, &seen),
        };
        match verdict {
            Verdict::Met => Ok(self.done(&seen, earlier.as_ref())),
            Verdict::Act(actions) => self.act(actions, seen, earlier).await,
            other => Err(self.refused(other)),
        }
    }

    /// What an earlier part of the run began and did not finish well.
    fn earlier(&self) -> Option<Intent> {
        self.shared.earlier.nodes.get(&self.node.id)?.intent.clone()
    }

    fn see(&self, answers: &Answers) -> Vec<Seen<'a>> {
        let moved_by_us = self.shared.may_have_moved(self.n);
        let prior = |member: &Member| self.shared.prior(&member.wish.address);
        self.node.members().iter().map(|member| see(member, prior(member), answers, moved_by_us)).collect()
    }

    /// Connects and reads. The first step on a host also compares what the later ones will find with the plan, so that a
    /// host that moved is left alone before anything of it is changed.
    async fn look(&mut self) -> Result<Answers, Halt> {
        let writer = self.shared.connect(self.host).await.map_err(|error| self.unreachable(&error))?;
        if let Err(lost) = self.shared.heart.confirm(self.host, &writer).await {
            return Err(over(Outcome::Stale { reason: lost.message.clone() }, *lost));
        }
        let ahead = if self.node.is_change() && self.shared.is_first_on(self.host) { self.ahead() } else { Vec::new() };
        let mut wanted: BTreeSet<Read> = self.node.members().iter().flat_map(reads).collect();
        wanted.extend(ahead.iter().flat_map(|(_, member)| reads(member)));
        let answers = read(&writer, &wanted).await.map_err(|error| self.unreachable(&error))?;
        self.writer = Some(writer);
        for (node, member) in ahead {
            if let Some(reason) = has_moved(&see(member, self.shared.prior(&member.wish.address), &answers, false)) {
                let outcome = Outcome::Stale { reason: reason.clone() };
                return Err(over(outcome, trouble::stale(&node.id, &reason, &self.shared.next)));
            }
        }
        Ok(answers)
    }

    /// The resources of the host's other steps that nothing of ours has touched or will touch before.
    fn ahead(&self) -> Vec<(&'a Node, &'a Member)> {
        let shared = self.shared;
        let untouched = |m: &usize| {
            let node = &shared.plan.nodes[*m];
            let begun = shared.earlier.nodes.get(&node.id).is_some_and(|status| status.intent.is_some() || status.outcome.is_some());
            *m != self.n && node.is_change() && node.held.is_none() && !begun && !shared.may_have_moved(*m)
        };
        let nodes = shared.on_target(self.node.target.as_ref()).iter().copied().filter(untouched).map(|m| &shared.plan.nodes[m]);
        nodes.flat_map(|node| node.members().iter().map(move |member| (node, member))).filter(|(_, m)| !moves_by_plan(m)).collect()
    }

    fn unreachable(&self, error: &TransportError) -> Halt {
        over(Outcome::Unreachable { reason: error.one_line() }, trouble::not_reached(self.host, error, &self.shared.next))
    }

    fn refused(&self, verdict: Verdict) -> Halt {
        let (id, next) = (&self.node.id, &self.shared.next);
        match verdict {
            Verdict::Unannounced(reason) => over(Outcome::Stale { reason: reason.clone() }, trouble::unannounced(id, &reason, next)),
            Verdict::Undecided(reason) => self.unknown(reason),
            Verdict::Stale(reason) => over(Outcome::Stale { reason: reason.clone() }, trouble::stale(id, &reason, next)),
            Verdict::Met | Verdict::Act(_) => self.unknown("the step came to no decision".to_owned()),
        }
    }

    fn unknown(&self, reason: String) -> Halt {
        let resources: Vec<String> = self.node.members().iter().map(|m| m.wish.address.to_string()).collect();
        let problem = trouble::unknown(&self.node.id, &reason, &resources, &self.shared.next);
        over(Outcome::Unknown { reason }, problem)
    }

    /// Acts until the step is done or given up. A lost connection is looked into over a new one; the step is done again
    /// once where that is safe.
    async fn act(&mut self, mut actions: Vec<Action>, mut seen: Vec<Seen<'a>>, earlier: Option<Intent>) -> Result<Finish, Halt> {
        // A long action outlives many connections; each time it is looked for under its token first.
        let tries = if actions.iter().any(Action::is_long) { 5 } else { 2 };
        let mut token = earlier.as_ref().filter(|_| self.may_still_run()).map(|intent| intent.token.clone());
        let mut intent = earlier;
        for turn in 1..=tries {
            self.spare_our_connection(&seen)?;
            self.keep_to_the_limit(&seen)?;
            let begun = self.intend(&actions, &seen, intent.take(), token.take()).await?;
            let acted = self.perform(&actions, &begun.token).await;
            (intent, token) = (Some(begun.clone()), Some(begun.token.clone()));
            match acted {
                Acted::All => return self.confirm(&seen, begun).await,
                Acted::Failed { word, code, stdout, stderr } => {
                    let untouched = self.is_untouched(&seen).await;
                    let problem = trouble::action_failed(&self.node.id, &word, code, &stdout, &stderr, &self.shared.next)
                        .state(trouble::after_failure(untouched));
                    return Err(over(Outcome::Failed { reason: format!("{word} ended with exit status {code}") }, problem));
                }
                Acted::Lost(reason) => {
                    let answers = self.look_again(&reason, &actions).await?;
                    seen = again_seen(&seen, &answers);
                    let none = BTreeSet::new();
                    match judge_again(&self.node.kind, &seen, &begun, &none, &none) {
                        Verdict::Met => return Ok(self.done(&seen, Some(&begun))),
                        Verdict::Act(once_more) if turn < tries => actions = once_more,
                        Verdict::Act(_) => return Err(self.unknown(format!("the connection was lost {turn} times: {reason}"))),
                        other => return Err(self.refused(other)),
                    }
                }
            }
        }
        Err(self.unknown("the connection was lost every time".to_owned()))
    }

    /// What was refused at the start of the run may show only now, when the actions are known.
    fn spare_our_connection(&self, seen: &[Seen]) -> Result<(), Halt> {
        let ours = self.shared.host(self.host).ssh_netdevs;
        let cut = interrupts(seen).find(|netdev| ours.contains(*netdev));
        match cut {
            None => Ok(()),
            Some(netdev) => {
                let reason = format!("it would interrupt {netdev}, which carries our own connection");
                Err(over(Outcome::Stale { reason: reason.clone() }, trouble::unannounced(&self.node.id, &reason, &self.shared.next)))
            }
        }
    }

    fn keep_to_the_limit(&self, seen: &[Seen]) -> Result<(), Halt> {
        match disturbs_too_much(seen, self.node.disruption, self.shared.plan.rollout.max_disruption) {
            None => Ok(()),
            Some(reason) => {
                Err(over(Outcome::Stale { reason: reason.clone() }, trouble::unannounced(&self.node.id, &reason, &self.shared.next)))
            }
        }
    }

    /// An earlier part of the run does not know how its attempt ended: what it started may run on the host to this day,
    /// and must be found under the same token rather than be started twice.
    fn may_still_run(&self) -> bool {
        let outcome = self.shared.earlier.nodes.get(&self.node.id).and_then(|status| status.outcome.as_ref());
        !matches!(outcome, Some(Outcome::Failed { .. } | Outcome::Done { .. }))
    }

    /// The intent, durable before anything is done.
    async fn intend(&self, actions: &[Action], seen: &[Seen<'_>], earlier: Option<Intent>, token: Option<String>) -> Result<Intent, Halt> {
        let attempt = earlier.as_ref().map_or(1, |intent| intent.attempt + 1);
        let latest: Vec<MemberIntent> = seen.iter().map(Seen::intent).collect();
        let intent = Intent {
            attempt,
            token: token.unwrap_or_else(|| format!("{}-{}-{attempt}", self.shared.run, self.n)),
            actions: actions_digest(actions),
            first: earlier.map_or_else(|| latest.clone(), |intent| intent.first),
            latest: latest.clone(),
            boot_id: self.shared.host(self.host).boot_id,
            sequence: 0,
        };
        let entry = Entry::NodeStarted {
            node: self.node.id.clone(),
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

    async fn perform(&mut self, actions: &[Action], token: &str) -> Acted {
        for (index, action) in actions.iter().enumerate() {
            let (node, word) = (self.node.id.clone(), action.word());
            (self.shared.sink)(Event::ActionStarted { node: node.clone(), index, count: actions.len(), word: word.clone() });
            self.shared.journal.note(Entry::ActionSent { node: node.clone(), index, word: word.clone() });
            // By its content, not its place: another attempt may have fewer actions.
            let performed = self.perform_one(action, &format!("{token}-{}", Digest::of(action).short())).await;
            let code = if let Performed::Ended { code, .. } = &performed { Some(*code) } else { None };
            self.shared.journal.note(Entry::ActionEnded { node, index, code });
            match performed {
                Performed::Ended { code: 0, .. } => {}
                Performed::Ended { code, stdout, stderr } => return Acted::Failed { word, code, stdout, stderr },
                Performed::Unknown { reason } => return Acted::Lost(reason),
            }
        }
        Acted::All
    }

    async fn perform_one(&self, action: &Action, token: &str) -> Performed {
        let Some(writer) = &self.writer else { return Performed::Unknown { reason: "there is no connection".to_owned() } };
        writer.perform(action, token).await.unwrap_or_else(|error| Performed::Unknown { reason: error.to_string() })
    }

    /// A new connection, tried for as long as a resource may take to settle.
    async fn reconnect(&mut self) -> Result<(), TransportError> {
        self.writer = None;
        let mut last = None;
        for turn in 0..self.looks() {
            if turn > 0 {
                clock::pause(self.shared.context.patience.settle_poll).await;
            }
            match self.shared.connect(self.host).await {
                Ok(writer) => {
                    self.writer = Some(writer);
                    return Ok(());
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| TransportError::Lost { host: self.host.to_owned(), reason: "no attempt was made".to_owned() }))
    }

    fn looks(&self) -> u32 {
        self.shared.context.patience.looks()
    }

    /// What the host looks like after the connection was lost. A short action that still runs is waited for, for as long
    /// as it may take.
    async fn look_again(&mut self, reason: &str, actions: &[Action]) -> Result<Answers, Halt> {
        let wanted = self.node.members().iter().flat_map(reads).collect();
        let limit = actions.iter().filter(|action| !action.is_long()).map(|action| action.limit_s()).max().unwrap_or_default();
        if self.reconnect().await.is_ok()
            && let Some(writer) = &self.writer
        {
            let shared = self.shared;
            let limit = Duration::from_secs(limit.into());
            if let Err(busy) = idle(self.host, writer, &shared.context, &shared.sink, limit).await {
                return Err(self.unknown(format!("{reason}; {}", busy.reason())));
            }
            if let Ok(answers) = read(writer, &wanted).await {
                return Ok(answers);
            }
        }
        Err(self.unknown(format!("{reason}; and the host could not be looked at again")))
    }

    /// After a failure: reads once more, so that the one on call knows whether the step is half done.
    async fn is_untouched(&self, before: &[Seen<'a>]) -> bool {
        let wanted = self.node.members().iter().flat_map(reads).collect();
        let Some(writer) = &self.writer else { return false };
        let now = read(writer, &wanted).await.map(|answers| again_seen(before, &answers));
        now.is_ok_and(|now| now.iter().zip(before).all(|(now, before)| now.assessment.fingerprint() == before.assessment.fingerprint()))
    }

    /// Reads again until all is as wished. A change that interrupts a netdev is proven over a new connection.
    async fn confirm(&mut self, seen: &[Seen<'a>], intent: Intent) -> Result<Finish, Halt> {
        let wanted: BTreeSet<Read> = self.node.members().iter().flat_map(reads).collect();
        let interrupts =
            matches!(&self.node.kind, NodeKind::Change { interrupts_netdev: Some(_), .. }) || interrupts(seen).next().is_some();
        if interrupts && let Err(error) = self.reconnect().await {
            return Err(self.unknown(format!("no new connection could be made after it: {error}")));
        }
        let mut now = seen.to_vec();
        for turn in 0..self.looks() {
            if turn > 0 {
                clock::pause(self.shared.context.patience.settle_poll).await;
            }
            let answers = match &self.writer {
                Some(writer) => read(writer, &wanted).await,
                None => break,
            };
            match answers {
                Ok(answers) => now = again_seen(seen, &answers),
                Err(error) if self.reconnect().await.is_err() => return Err(self.unknown(error.to_string())),
                Err(_) => continue,
            }
            if now.iter().all(Seen::is_settled) {
                return Ok(self.done(&now, Some(&intent)));
            }
        }
        let open: Vec<&Seen> = now.iter().filter(|s| !s.is_settled()).collect();
        let what: Vec<String> = open.iter().map(|s| s.what_differs()).collect();
        let what = what.join("; ");
        if open.iter().all(|s| s.assessment.only_unknown()) {
            return Err(self.unknown(format!("it could not be read again: {what}")));
        }
        let problem = trouble::not_as_wished(&self.node.id, &what, &self.shared.next);
        Err(over(Outcome::Failed { reason: format!("not as wished after it: {what}") }, problem))
    }

    /// Done: what is remembered of each member, and what is forgotten.
    fn done(&self, seen: &[Seen], intent: Option<&Intent>) -> Finish {
        let mut finish = Finish::of(Outcome::Done { changed: intent.is_some() });
        for s in seen {
            if s.member.removal {
                finish.removed.push(s.address().clone());
                continue;
            }
            let own = s.intent();
            let first = intent.and_then(|intent| intent.first.iter().find(|m| m.address == *s.address())).unwrap_or(&own);
            finish.applied.push((s.address().clone(), self.applied(s, first)));
        }
        finish
    }

    fn applied(&self, seen: &Seen, first: &MemberIntent) -> Applied {
        let adopted = first.met && seen.prior.as_ref().is_none_or(|prior| prior.adopted);
        Applied::of(&seen.member.wish, first.before.clone(), adopted, &self.shared.run, clock::now())
    }
}

/// The same resources by new answers.
fn again_seen<'a>(seen: &[Seen<'a>], answers: &Answers) -> Vec<Seen<'a>> {
    seen.iter().map(|s| see(s.member, s.prior.clone(), answers, true)).collect()
}

async fn read(writer: &Writer, wanted: &BTreeSet<Read>) -> Result<Answers, TransportError> {
    let wanted: Vec<Read> = wanted.iter().cloned().collect();
    writer.reader().read(&wanted).await
}
