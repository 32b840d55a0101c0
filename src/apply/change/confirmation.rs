//! How a change ended: read again until it is in sync, and what is remembered and forgotten then.

use super::await_in_sync::{SettleOutcome, left_waiting, not_gone, not_ready};
use super::{ChangeStep, Finish, Halt, halt_with_problem};
use crate::precondition::{ObservedMember, may_interrupt_netdev};
use crate::trouble;
use railwright_base::Address;
use railwright_plan::{AppliedResource, NodeKind};
use railwright_resource::Action;
use railwright_state::NodeOutcome;
use railwright_state::journal::MemberIntent;
use railwright_state::run_status::StepIntent;
use railwright_system::clock;

impl<'a> ChangeStep<'a> {
    /// Reads again until all is in sync. A change that interrupts a netdev is checked over a new
    /// connection.
    pub(super) async fn confirm(
        &mut self,
        seen: &[ObservedMember<'a>],
        intent: StepIntent,
        actions: &[Action],
    ) -> Result<Finish, Halt> {
        let desired = self.desired();
        let longest = actions.iter().map(Action::waits_s).max();
        let waits = longest.filter(|seconds| *seconds > 0);
        let interrupts = match &self.node.kind {
            NodeKind::Change {
                interrupts_netdevs, ..
            } => !interrupts_netdevs.is_empty(),
            _ => false,
        };
        if (interrupts || may_interrupt_netdev(seen))
            && let Err(error) = self.reconnect().await
        {
            return Err(self.unknown(format!("no new connection could be made after it: {error}")));
        }
        match self.settled(seen, &desired, waits).await? {
            SettleOutcome::As(now) => Ok(self.done(&now, Some(&intent))),
            SettleOutcome::Interrupted(what) => {
                let problem = left_waiting(&self.node.id, &what, &self.shared.next);
                let reason = format!("stopped while it was waited for: {what}");
                Err(halt_with_problem(NodeOutcome::Unknown { reason }, problem))
            }
            SettleOutcome::Not { now, trouble } => Err(self.not_settled(seen, &now, trouble)),
        }
    }

    /// The actions ended well, and yet it is not as desired; `trouble` says why, where more is known
    /// of it.
    fn not_settled(
        &self,
        before: &[ObservedMember<'a>],
        now: &[ObservedMember<'a>],
        trouble: Option<String>,
    ) -> Halt {
        let open: Vec<&ObservedMember> = now.iter().filter(|s| !s.is_settled()).collect();
        let mut what: Vec<String> = open.iter().map(|s| s.what_differs()).collect();
        let mut hopeless = open.iter().filter_map(|s| s.diff.hopeless.as_ref());
        what.extend(hopeless.next().map(|hopeless| hopeless.why.clone()));
        what.extend(trouble);
        let what = what.join("; ");
        if open.iter().all(|s| s.diff.only_unknown()) {
            return self.unknown(format!("it could not be read again: {what}"));
        }
        let mut pairs = now.iter().zip(before).filter(|(now, _)| !now.is_settled());
        let rival = pairs.find_map(|(now, before)| now.set_back_by(before));
        let spares = self.spared(&open);
        let (id, next) = (&self.node.id, &self.shared.next);
        let problem = match (open.iter().all(|s| s.diff.only_waits()), rival) {
            (true, _) if open.iter().all(|s| s.member.removal) => not_gone(&open, id, next),
            (true, _) => not_ready(id, &what, spares.is_some(), next),
            (false, Some(rival)) => trouble::fought_over(id, &what, rival, next),
            (false, None) => {
                let problem = trouble::not_in_sync(id, &what, next);
                trouble::or_forget(problem, &self.removals(), next)
            }
        };
        let reason = format!("not as desired after it: {what}");
        let finish = Finish::with_problem(NodeOutcome::Failed { reason }, problem);
        Halt::Over(Box::new(Finish { spares, ..finish }))
    }

    /// Done: what is remembered of each member, and what is forgotten.
    pub(super) fn done(&self, seen: &[ObservedMember], intent: Option<&StepIntent>) -> Finish {
        let mut finish = Finish::of(NodeOutcome::Done {
            changed: intent.is_some(),
        });
        for s in seen {
            if s.member.removal {
                let address = s.address().clone();
                match &s.prior {
                    // It waits for a reboot, which may never come: it is forgotten after it.
                    Some(prior) if !s.diff.is_met() => {
                        let waiting = AppliedResource {
                            unfinished: true,
                            ..prior.clone()
                        };
                        finish.applied.push((address, waiting));
                    }
                    _ => finish.removed.push(address),
                }
                continue;
            }
            let mut firsts = intent.iter().flat_map(|intent| &intent.first);
            let first = match firsts.find(|first| first.address == *s.address()) {
                Some(first) => first.clone(),
                None => s.intent(self.shared.context.secrets.redaction()),
            };
            finish
                .applied
                .push((s.address().clone(), self.applied(s, first)));
        }
        finish
    }

    /// A step that acted and was then left alone is not as it was: nobody knows how it stands.
    pub(super) fn after_acting(&self, finish: Finish) -> Finish {
        match finish.outcome {
            NodeOutcome::Stale { reason } if self.begun.is_some() => {
                let note = "the step acted before that, and its connection was lost; how it stands \
                            is not known";
                let problems = finish.problems.into_iter();
                let problems = problems.map(|problem| problem.state(note)).collect();
                Finish {
                    outcome: NodeOutcome::Unknown { reason },
                    problems,
                    ..finish
                }
            }
            outcome => Finish { outcome, ..finish },
        }
    }

    /// What a step that did not come through may have made, so that it is undone should it leave
    /// the spec: of a resource that was applied before, beside what was applied.
    pub(super) fn unfinished(&self) -> Vec<(Address, AppliedResource)> {
        let Some(begun) = &self.begun else {
            return Vec::new();
        };
        let mut unfinished = Vec::new();
        for member in self.node.members() {
            let address = &member.resource.address;
            let mut firsts = begun.first.iter().filter(|first| !first.met);
            let Some(first) = firsts.find(|first| first.address == *address) else {
                continue;
            };
            if member.removal {
                continue;
            }
            let before = first.before.clone();
            let resource = match self.shared.prior(address) {
                Some(mut prior) => {
                    prior.note_begun(&member.resource.body, before);
                    prior
                }
                None => AppliedResource::unfinished(
                    &member.resource,
                    before,
                    &self.shared.run,
                    clock::read_current_time(),
                ),
            };
            unfinished.push((address.clone(), resource));
        }
        unfinished
    }

    fn applied(&self, seen: &ObservedMember, first: MemberIntent) -> AppliedResource {
        let adopted = first.met && seen.prior.as_ref().is_none_or(|prior| prior.adopted);
        AppliedResource::of(
            &seen.member.resource,
            first.before,
            adopted,
            &self.shared.run,
            clock::read_current_time(),
        )
    }
}
