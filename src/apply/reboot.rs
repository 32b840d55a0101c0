//! Reboots a host and proves it: the boot id is another one, and what waited for the reboot is in
//! effect.

use super::change::Finish;
use super::context::RunEvent;
use super::occupied::confirm_empty;
use super::precondition::{ObservedMember, observe_member};
use super::preflight::host_now;
use super::shared::RunContext;
use super::trouble;
use super::unready::Unready;
use railwright_base::{Digest, Reason, Target};
use railwright_plan::Member;
use railwright_resource::{Action, Read, ReadResults};
use railwright_state::journal_writer::JournalError;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_system::clock;
use railwright_transport::{BoxFuture, ExecutionOutcome, TransportError, Writer};
use std::collections::BTreeSet;

/// Executes the reboot with this number.
pub(super) async fn reboot_host(shared: &RunContext, n: usize) -> Result<Finish, JournalError> {
    let node = &shared.plan.nodes[n];
    let host = node.target.as_ref().map_or("", |target| &*target.name);
    let finish = reboot_and_verify(shared, n, host).await?;
    let writer = match finish.outcome {
        NodeOutcome::Failed { .. } => shared.connect(host).await.ok(),
        _ if !finish.removed.is_empty() => shared.connect(host).await.ok(),
        _ => None,
    };
    let _ = shared.finish(node, &finish, writer.as_ref()).await;
    Ok(finish)
}

async fn reboot_and_verify(
    shared: &RunContext,
    n: usize,
    host: &str,
) -> Result<Finish, JournalError> {
    let mut order = RebootRequest::default();
    let before = match start_reboot(shared, n, host, &mut order).await? {
        Ok(before) => before,
        Err(finish) => return Ok(*finish),
    };
    (shared.sink)(RunEvent::Rebooting {
        host: host.to_owned(),
    });
    let limit = shared.context.patience.reboot;
    let mut answered = 0;
    match clock::await_with_timeout(
        limit,
        come_back(shared, n, host, &before, &mut order, &mut answered),
    )
    .await
    {
        Some(back) => {
            let after = match back? {
                Ok(after) => after,
                Err(finish) => return Ok(*finish),
            };
            shared.booted(host, after.clone());
            shared.journal.note(JournalEntry::Rebooted {
                host: host.to_owned(),
                from: before,
                to: after,
            });
            (shared.sink)(RunEvent::Rebooted {
                host: host.to_owned(),
            });
            Ok(verify_reboot(shared, n, host).await)
        }
        None => Ok(finish_missed_reboot(shared, host, answered > 0)),
    }
}

/// Asks for the reboot, unless an earlier part of the run has: the boot that it is to end, or how
/// the step is over already.
async fn start_reboot(
    shared: &RunContext,
    n: usize,
    host: &str,
    order: &mut RebootRequest,
) -> Result<Result<String, Box<Finish>>, JournalError> {
    let status = shared.earlier.nodes.get(&shared.plan.nodes[n].id);
    let earlier = status.and_then(|status| status.intent.as_ref());
    let asked_in = earlier.and_then(|intent| intent.boot_id.clone());
    order.attempt = earlier.map_or(0, |intent| intent.attempt);
    let (writer, now) = match (boot_id(shared, host).await, asked_in.clone()) {
        (Ok(found), _) => found,
        // It answered a moment ago, and goes down only now.
        (Err(Unready::NotReached(_)), Some(before)) => {
            order.unheard = true;
            return Ok(Ok(before));
        }
        (Err(unready), _) => {
            let outcome = NodeOutcome::Unreachable {
                reason: unready.reason(),
            };
            let problem = unready.diagnostic(&Target::host(host), &shared.next);
            return Ok(Err(Box::new(Finish::with_problem(outcome, problem))));
        }
    };
    if let Err(lost) = shared.heart.confirm(host, &writer).await {
        let outcome = NodeOutcome::LockLost {
            reason: lost.message.clone(),
        };
        return Ok(Err(Box::new(Finish::with_problem(outcome, *lost))));
    }
    match asked_in {
        // It has happened since.
        Some(before) if before != now => Ok(Ok(before)),
        _ if !is_needed(shared, n, &writer).await => {
            let (members, _) = collect_earlier_members(shared, n);
            Ok(Err(Box::new(finish_boot(shared, &members, false))))
        }
        _ => {
            if let Err(finish) = confirm_empty(shared, n).await {
                return Ok(Err(finish));
            }
            order.attempt += 1;
            Ok(request_reboot(shared, n, host, &writer, &now, order)
                .await?
                .map(|()| now))
        }
    }
}

/// Whether something that came before it on the host still waits for it: somebody may have rebooted
/// the host meanwhile, and a plan file may hold a reboot that no step needs. A host that gives no
/// answer may be on its way down already.
async fn is_needed(shared: &RunContext, n: usize, writer: &Writer) -> bool {
    let (members, desired) = collect_earlier_members(shared, n);
    match writer.reader().read(&desired).await {
        Ok(answers) => !list_differing_members(shared, &members, &answers).is_empty(),
        Err(_) => true,
    }
}

/// Those that are not in sync. What was undone is remembered by the plan alone; where that does not
/// say what was there before, its own step has checked it.
pub(super) fn list_differing_members<'a>(
    shared: &RunContext,
    members: &[&'a Member],
    answers: &ReadResults,
) -> Vec<ObservedMember<'a>> {
    let mut differing = Vec::new();
    for &member in members {
        let prior = shared.prior(&member.resource.address);
        if member.removal && member.before.is_null() && prior.is_none() {
            continue;
        }
        let seen = observe_member(member, prior, answers, true);
        if !seen.diff.is_met() {
            differing.push(seen);
        }
    }
    differing
}

/// All that came before the boot on its host is in sync; what was undone and waited for it is
/// forgotten.
pub(super) fn finish_boot(shared: &RunContext, members: &[&Member], changed: bool) -> Finish {
    let mut finish = Finish::of(NodeOutcome::Done { changed });
    for member in members {
        let address = &member.resource.address;
        if member.removal && shared.prior(address).is_some() {
            finish.removed.push(address.clone());
        }
    }
    finish
}

/// The resources that come before the reboot on its host, and what has to be read to compare them.
pub(super) fn collect_earlier_members(shared: &RunContext, n: usize) -> (Vec<&Member>, Vec<Read>) {
    let members: Vec<&Member> = shared
        .earlier_on_target(n)
        .into_iter()
        .flat_map(|m| shared.plan.nodes[m].members())
        .collect();
    let desired: BTreeSet<Read> = members
        .iter()
        .flat_map(|member| shared.reads(member))
        .collect();
    (members, desired.into_iter().collect())
}

fn finish_missed_reboot(shared: &RunContext, host: &str, answered: bool) -> Finish {
    let minutes = shared.context.patience.reboot.as_secs() / 60;
    if answered {
        let problem = trouble::not_rebooted(host, minutes, &shared.next);
        Finish::with_problem(
            NodeOutcome::Failed {
                reason: "the host did not reboot".to_owned(),
            },
            problem,
        )
    } else {
        let problem = trouble::not_back(host, minutes, &shared.next);
        Finish::with_problem(
            NodeOutcome::Unknown {
                reason: "the host did not come back from its reboot".to_owned(),
            },
            problem,
        )
    }
}

/// How often a reboot is asked for again where nobody knows whether the host heard it.
const ASKED_AGAIN: u32 = 3;
/// So many looks in a row at a host that is up in its old boot, before that: one that heard is on
/// its way down by then.
const STILL_UP: u32 = 3;

/// What is known of the order to reboot.
#[derive(Default)]
struct RebootRequest {
    /// Counts from 1 within the run.
    attempt: u32,
    /// The connection was lost before the host answered, so the order may never have arrived.
    unheard: bool,
    /// How often it was asked for again.
    again: u32,
}

/// Journals the intent and asks for the reboot. A lost connection is what a reboot looks like, so
/// only a plain refusal of the host ends the step here.
async fn request_reboot(
    shared: &RunContext,
    n: usize,
    host: &str,
    writer: &Writer,
    boot: &str,
    order: &mut RebootRequest,
) -> Result<Result<(), Box<Finish>>, JournalError> {
    let node = &shared.plan.nodes[n];
    let attempt = order.attempt;
    if let Err(finish) = shared.record_leaving(n, attempt, writer).await {
        return Ok(Err(finish));
    }
    let token = format!("{}-{n}-{attempt}", shared.run);
    let entry = JournalEntry::NodeStarted {
        node: node.id.clone(),
        host: shared.host_of(n),
        disruptive: shared.is_disruptive(n),
        drains: false,
        attempt,
        token: token.clone(),
        actions: Digest::of(&[Action::Reboot]),
        members: Vec::new(),
        boot_id: Some(boot.to_owned()),
    };
    shared.journal.commit(entry).await?;
    shared.note_acted(n);
    (shared.sink)(RunEvent::ActionStarted {
        node: node.id.clone(),
        index: 0,
        count: 1,
        word: Action::Reboot.word(),
    });
    match writer.perform(&Action::Reboot, &token).await {
        Ok(ExecutionOutcome::Ended {
            code,
            stdout,
            stderr,
        }) if code != 0 => {
            let problem =
                trouble::action_failed(&node.id, "reboot", code, &stdout, &stderr, &shared.next);
            let outcome = NodeOutcome::Failed {
                reason: format!("{host} refused to reboot (exit status {code})"),
            };
            Ok(Err(Box::new(Finish::with_problem(outcome, problem))))
        }
        Err(TransportError::LockLost { holder, .. }) => {
            let lost = shared.heart.lost(host, holder.as_deref());
            let outcome = NodeOutcome::LockLost {
                reason: lost.message.clone(),
            };
            Ok(Err(Box::new(Finish::with_problem(outcome, lost))))
        }
        performed => {
            order.unheard = !matches!(performed, Ok(ExecutionOutcome::Ended { .. }));
            Ok(Ok(()))
        }
    }
}

/// Looks over new connections until the boot id is another one, of the same machine. `answered`
/// counts the looks in a row at which the host was up in the boot of before. Where it may not have
/// heard the order, it is asked again: over a connection of the old boot, so that the order cannot
/// reach the new one.
async fn come_back(
    shared: &RunContext,
    n: usize,
    host: &str,
    before: &str,
    order: &mut RebootRequest,
    answered: &mut u32,
) -> Result<Result<String, Box<Finish>>, JournalError> {
    loop {
        match boot_id(shared, host).await {
            Ok((_, now)) if now != before => return Ok(Ok(now)),
            Ok((writer, _)) => {
                *answered += 1;
                if order.unheard && order.again < ASKED_AGAIN && *answered > STILL_UP {
                    *answered = 1;
                    (order.again, order.attempt) = (order.again + 1, order.attempt + 1);
                    if let Err(finish) =
                        request_reboot(shared, n, host, &writer, before, order).await?
                    {
                        return Ok(Err(finish));
                    }
                }
            }
            Err(unready @ Unready::Reinstalled) => {
                let outcome = NodeOutcome::Failed {
                    reason: unready.reason(),
                };
                let problem = unready.diagnostic(&Target::host(host), &shared.next);
                return Ok(Err(Box::new(Finish::with_problem(outcome, problem))));
            }
            Err(_) => *answered = 0,
        }
        clock::sleep_for(shared.context.patience.reboot_poll).await;
    }
}

/// A new connection, and the boot that the host is in. Another machine in its place proves nothing
/// of it.
pub(super) async fn boot_id(shared: &RunContext, host: &str) -> Result<(Writer, String), Unready> {
    let look = async {
        let writer = shared.connect(host).await?;
        let answers = writer.reader().read(&[Read::Host]).await?;
        Ok::<_, TransportError>((writer, answers))
    };
    let (writer, answers) = look.await?;
    let now = host_now(&Target::host(host), &answers)?;
    let locked = shared.host(host).machine_id;
    if let Some(locked) = locked.known()
        && now.machine_id.is_another_than(locked)
    {
        return Err(Unready::Reinstalled);
    }
    let Some(boot) = now.boot_id else {
        let reason = "it does not say which boot it is in".to_owned();
        return Err(Unready::Unfit(reason));
    };
    Ok((writer, boot))
}

/// All that was done on the host before the reboot must be in sync now, in every plane.
async fn verify_reboot(shared: &RunContext, n: usize, host: &str) -> Finish {
    let (members, desired) = collect_earlier_members(shared, n);
    let mut finish = wait_until_settled(shared, host, "reboot", || {
        Box::pin(look_after_reboot(shared, host, &members, &desired))
    })
    .await;
    if matches!(finish.outcome, NodeOutcome::Failed { .. })
        && let Ok(differing) = look_at_members(shared, host, &members, &desired).await
    {
        // What was undone still runs: another reboot brings no more than this one.
        let left = differing.iter().filter(|s| s.only_waits_for_reboot());
        let removals = left.filter(|s| s.member.removal);
        finish.removed = removals.map(|s| s.address().clone()).collect();
    }
    finish
}

/// What differs of what was done before the reboot.
async fn look_at_members<'a>(
    shared: &RunContext,
    host: &str,
    members: &[&'a Member],
    desired: &[Read],
) -> Result<Vec<ObservedMember<'a>>, Reason> {
    let look = async { shared.connect(host).await?.reader().read(desired).await };
    let answers = look
        .await
        .map_err(|error: TransportError| error.to_string())?;
    Ok(list_differing_members(shared, members, &answers))
}

/// Looks until there is something to say of what a reboot was to bring, or patience ends with what
/// still differed.
pub(super) async fn wait_until_settled<'a>(
    shared: &RunContext,
    host: &str,
    after: &str,
    look: impl Fn() -> BoxFuture<'a, Result<Finish, Reason>> + Sync,
) -> Finish {
    let patience = &shared.context.patience;
    let mut last = String::new();
    for turn in 0..patience.looks() {
        if turn > 0 {
            clock::sleep_for(patience.settle_poll).await;
        }
        match look().await {
            Ok(finish) => return finish,
            Err(what) => last = what.to_string(),
        }
    }
    let problem = trouble::wrong_after_reboot(host, &last, &shared.next);
    Finish::with_problem(
        NodeOutcome::Failed {
            reason: format!("not as desired after the {after}: {last}"),
        },
        problem,
    )
}

/// One look at what was done before the reboot; an error with what differs, or why it is not known.
async fn look_after_reboot(
    shared: &RunContext,
    host: &str,
    members: &[&Member],
    desired: &[Read],
) -> Result<Finish, Reason> {
    let differing = look_at_members(shared, host, members, desired).await?;
    if differing.is_empty() {
        return Ok(finish_boot(shared, members, true));
    }
    let what: Vec<String> = differing.iter().map(ObservedMember::what_differs).collect();
    Err(what.join("; ").into())
}
