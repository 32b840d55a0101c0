//! Proves a power cycle that somebody made by hand, as a reboot of ours is checked: the boot id is
//! another one than when the steps before it were done, and what waited for it is in effect.
//! Nothing is done to the host here.

use super::change::Finish;
use super::context::RunEvent;
use super::precondition::ObservedMember;
use super::reboot::{
    boot_id, collect_earlier_members, finish_boot, list_differing_members, wait_until_settled,
};
use super::shared::RunContext;
use super::trouble::{self, NextCommands};
use super::unready::Unready;
use railwright_base::{Diagnostic, Reason, Target};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{Member, OutageCause};
use railwright_resource::Read;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_transport::TransportError;

/// Looks whether the power cycle with this number was made.
pub(super) async fn by_hand(shared: &RunContext, n: usize) -> Finish {
    let node = &shared.plan.nodes[n];
    let host = node.target.as_ref().map_or("", |target| &*target.name);
    let finish = check_power_cycle(shared, n, host).await;
    if finish.outcome == (NodeOutcome::Done { changed: true }) {
        shared.note_acted(n);
    }
    let writer = match finish.removed.is_empty() {
        true => None,
        false => shared.connect(host).await.ok(),
    };
    let _ = shared.finish(node, &finish, writer.as_ref()).await;
    let is_failed = matches!(
        finish.outcome,
        NodeOutcome::Failed { .. } | NodeOutcome::Unknown { .. }
    );
    let is_unsaid = is_failed
        && shared.note_outage(
            host,
            OutageCause::StepFailed {
                node: node.id.clone(),
            },
        );
    if finish.went_out || is_unsaid {
        // Whatever is in the way of it is in the way of the gate too, which tells.
        let _ = shared.record_hosts(vec![host.to_owned()]).await;
    }
    finish
}

/// The number of the power cycle by hand that a host waits for in this run.
pub(super) fn awaited_power_cycle(shared: &RunContext, host: &str) -> Option<usize> {
    let own = shared.on_target(Some(&Target::host(host)));
    own.iter()
        .copied()
        .find(|n| is_by_hand(&shared.plan.nodes[*n]) && !shared.has_acted(*n))
}

/// A host that waits for the power cycle with this number is in this boot now. Where that is
/// another one than this part of the run knew, it is out of service, which is journalled; that the
/// host writes it down is the caller's. Says whether it is so.
pub(super) fn note_boot(shared: &RunContext, n: usize, host: &str, now: &str) -> bool {
    let Some(from) = shared.host(host).boot_id.filter(|from| from != now) else {
        return false;
    };
    shared.booted(host, now.to_owned());
    shared.journal.note(JournalEntry::Rebooted {
        host: host.to_owned(),
        from,
        to: now.to_owned(),
    });
    shared.note_outage(
        host,
        OutageCause::SwitchedOffAndOn {
            node: shared.plan.nodes[n].id.clone(),
        },
    );
    true
}

/// What is said of a host that cannot be reached while it waits for its power cycle.
pub(super) fn may_be_off(problem: Diagnostic) -> Diagnostic {
    problem.next(
        "it waits for a power cycle, so somebody may have switched it off: see that it is switched \
         on again",
    )
}

async fn check_power_cycle(shared: &RunContext, n: usize, host: &str) -> Finish {
    let (writer, now) = match boot_id(shared, host).await {
        Ok(actual) => actual,
        Err(unready) => {
            let outcome = NodeOutcome::Unreachable {
                reason: unready.reason(),
            };
            let problem = unready.diagnostic(&Target::host(host), &shared.next);
            let problem = match unready {
                Unready::NotReached(_) => may_be_off(problem),
                _ => problem,
            };
            return Finish::with_problem(outcome, problem);
        }
    };
    if let Err(lost) = shared.heart.confirm(host, &writer).await {
        return Finish::with_problem(
            NodeOutcome::LockLost {
                reason: lost.message.clone(),
            },
            *lost,
        );
    }
    let from = boot_before(shared, n, host).filter(|from| *from != now);
    // What was so when this part of the run began is journalled and counted already, and the host
    // may have passed a gate since.
    let went_out = note_boot(shared, n, host, &now);
    let (members, desired) = collect_earlier_members(shared, n);
    let was_made = from.is_some();
    let finish = wait_until_settled(shared, host, "power cycle", || {
        Box::pin(async {
            match still_open(shared, host, &members, &desired).await {
                Ok(open) => conclude_power_cycle(shared, n, host, open, was_made),
                Err(error) => Err(error.to_string().into()),
            }
        })
    });
    Finish {
        went_out,
        ..finish.await
    }
}

/// How the step ends; an error with what differs, where that may settle by itself.
fn conclude_power_cycle(
    shared: &RunContext,
    n: usize,
    host: &str,
    open: Open,
    was_made: bool,
) -> Result<Finish, Reason> {
    match open {
        Open::Nothing => Ok(finish_power_cycle(shared, n, host, was_made)),
        Open::Waits(_) if !was_made => Ok(Finish::of(NodeOutcome::Blocked {
            reason: "it waits for a power cycle, which is done by hand".to_owned(),
        })),
        Open::Waits(what) => {
            let reason = format!(
                "it was rebooted and not switched off, so it waits for its power cycle still: \
                 {what}"
            );
            Ok(Finish::with_problem(
                NodeOutcome::Blocked { reason },
                only_rebooted(host, &what, &shared.next),
            ))
        }
        Open::Differs(what) if !was_made => {
            let id = &shared.plan.nodes[n].id;
            let problem = trouble::report_stale_target(id, &what, &shared.next);
            Ok(Finish::with_problem(
                NodeOutcome::Stale { reason: what },
                problem,
            ))
        }
        Open::Differs(what) => Err(what.into()),
    }
}

fn finish_power_cycle(shared: &RunContext, n: usize, host: &str, was_made: bool) -> Finish {
    if was_made {
        (shared.sink)(RunEvent::PowerCycled {
            host: host.to_owned(),
        });
    }
    let (members, _) = collect_earlier_members(shared, n);
    finish_boot(shared, &members, was_made)
}

/// The boot in which the last step before it was done: in this part of the run, or when that was
/// journalled.
fn boot_before(shared: &RunContext, n: usize, host: &str) -> Option<String> {
    let earlier = shared
        .earlier_on_target(n)
        .into_iter()
        .map(|m| &shared.plan.nodes[m]);
    let changes = earlier
        .filter(|node| node.is_change())
        .map(|node| node.id.as_str());
    match shared.earlier.last_done(changes) {
        Some(last) => shared
            .earlier
            .boot_at(host, last.finished)
            .map(str::to_owned),
        None => shared.host(host).boot_id,
    }
}

/// How it stands with what came before the power cycle.
enum Open {
    Nothing,
    /// Everything that differs is fixed by the next boot.
    Waits(String),
    Differs(String),
}

async fn still_open(
    shared: &RunContext,
    host: &str,
    members: &[&Member],
    desired: &[Read],
) -> Result<Open, TransportError> {
    let answers = shared.connect(host).await?.reader().read(desired).await?;
    let open = list_differing_members(shared, members, &answers);
    let what: Vec<String> = open.iter().map(ObservedMember::what_differs).collect();
    let what = what.join("; ");
    Ok(match open.iter().all(ObservedMember::is_settled) {
        _ if open.is_empty() => Open::Nothing,
        true => Open::Waits(what),
        false => Open::Differs(what),
    })
}

/// The host has another boot id, and what was to come with its power cycle did not come.
fn only_rebooted(host: &str, what: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::warning(
        "RW0645",
        format!(
            "the host was rebooted, and what waits for its power cycle is not in effect: {what}"
        ),
    )
    .on(format!("host/{host}"))
    .effect(
        "its NICs run with the settings of before; the rest of the plan on this host waits, and it \
         has passed no gate since",
    )
    .state("nothing was done to it now; the settings are written and wait in the firmware")
    .next(format!(
        "switch {host} off and on again: a reboot leaves its cards under power, and they keep what \
         they run with"
    ))
    .next(format!("then {}", next.resume()))
}
