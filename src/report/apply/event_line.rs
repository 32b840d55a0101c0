//! The line that an event of a run gets on the screen, as far as it gets one.

use super::describe_step;
use crate::wrap::{COLUMNS, break_words};
use railwright_apply::RunEvent;
use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line, sanitize_text};
use railwright_state::{NodeOutcome, OrderKind, Skip};
use std::time::Duration;

/// So many columns are before each line: the clock.
const CLOCK: usize = "00:00:00  ".len();

/// The line of an event; none where it would only be noise.
pub(super) fn render_event_line(event: &RunEvent, in_full: bool) -> Option<String> {
    render_host_event(event, in_full)
        .or_else(|| render_rollback_timer_event(event, in_full))
        .or_else(|| render_step_event(event, in_full))
        .or_else(|| render_run_event(event))
}

/// The line of an event that concerns a whole host.
fn render_host_event(event: &RunEvent, in_full: bool) -> Option<String> {
    Some(match event {
        RunEvent::HostReady { host, locked: true } if in_full => {
            format!("{}  reached and locked", sanitize_text(host))
        }
        RunEvent::HostReady {
            host,
            locked: false,
        } if in_full => format!(
            "{}  reached; over NVUE it keeps no lock",
            sanitize_text(host)
        ),
        RunEvent::HostBusy { host } => format!(
            "{}  an earlier step is still running on it; waiting",
            sanitize_text(host)
        ),
        RunEvent::RollbackPending { host } => {
            format!(
                "{}  an automatic rollback of an earlier run is still armed on it; waiting for its end",
                sanitize_text(host)
            )
        }
        RunEvent::HostUnreachable { host, reason } => format!(
            "{}  NOT REACHED: {}",
            sanitize_text(host),
            one_line(reason, 160)
        ),
        RunEvent::Rebooting { host } => format!("{}  rebooting", sanitize_text(host)),
        RunEvent::Rebooted { host } => {
            format!("{}  back, with another boot id", sanitize_text(host))
        }
        RunEvent::PowerCycled { host } => {
            format!(
                "{}  power cycle confirmed: another boot id, and what waited for it is in effect",
                sanitize_text(host)
            )
        }
        _ => return None,
    })
}

/// The line of an event about an automatic rollback or the hosts attached to a switch.
fn render_rollback_timer_event(event: &RunEvent, in_full: bool) -> Option<String> {
    Some(match event {
        RunEvent::RollbackTimerArmed { node, seconds } if in_full => {
            let whose = if node.starts_with("switch/") {
                "switch"
            } else {
                "host"
            };
            format!(
                "{}  automatic rollback armed: the {whose} reverts it after {seconds} s unless it \
                 is confirmed",
                describe_step(node)
            )
        }
        RunEvent::BehindChecked {
            node,
            hosts,
            before,
            failure,
        } => {
            return render_attached_hosts_check(node, hosts, *before, failure.as_deref(), in_full);
        }
        RunEvent::RollbackTimerFires { node, seconds } => {
            format!(
                "{}  NOT CONFIRMED: everything is rolled back, within {seconds} s",
                describe_step(node)
            )
        }
        RunEvent::RollbackTimerEnded {
            node,
            confirmed: true,
            ..
        } if in_full => {
            format!(
                "{}  confirmed over a new connection, rollback disarmed",
                describe_step(node)
            )
        }
        RunEvent::RollbackTimerEnded {
            node,
            confirmed: false,
            failed,
        } => match one_line(failed.trim(), 400) {
            failed if failed.is_empty() => {
                format!("{}  rolled back automatically", describe_step(node))
            }
            failed => format!("{}  NOT ALL ROLLED BACK: {failed}", describe_step(node)),
        },
        _ => return None,
    })
}

/// The line of an event of a step or a gate.
fn render_step_event(event: &RunEvent, in_full: bool) -> Option<String> {
    Some(match event {
        RunEvent::StepWaits { node, words } => {
            let line = format!("{}  waits: {}", describe_step(node), one_line(words, 240));
            break_words(line.split(' '), CLOCK, CLOCK, COLUMNS)
        }
        RunEvent::StepFinished { node, outcome } => {
            return render_finished_step(node, outcome, in_full);
        }
        RunEvent::GateStarted { hosts, .. } => {
            format!(
                "{}  gate: what `verify` proves, on what the hosts have",
                nodeset::fold_node_set(hosts)
            )
        }
        RunEvent::GateFinished { hosts, result, .. } => match result.failure() {
            None => format!("{}  gate passed", nodeset::fold_node_set(hosts)),
            Some(why) => format!(
                "{}  GATE FAILED: {}",
                nodeset::fold_node_set(hosts),
                one_line(&why, 200)
            ),
        },
        _ => return None,
    })
}

/// The line of an event that concerns the whole run.
fn render_run_event(event: &RunEvent) -> Option<String> {
    Some(match event {
        RunEvent::RunStarted { run, steps } => {
            format!("run {run}: {}", format_count(*steps, "step"))
        }
        RunEvent::Ordered { order, who } => match order {
            OrderKind::Pause => format!(
                "PAUSED by {}: nothing new starts until `railwright rollout continue`",
                sanitize_text(who)
            ),
            OrderKind::Continue => format!("goes on, by {}", sanitize_text(who)),
            OrderKind::Abort => format!("ABORTED by {}", sanitize_text(who)),
        },
        RunEvent::Halted { because, running } => {
            let what = if *because == Skip::Deadline {
                "the deadline came"
            } else {
                "the maintenance window closed"
            };
            format!("{what}: nothing new starts, {running} steps are finished first")
        }
        RunEvent::Interrupted {
            running,
            reboot_limit,
        } => render_stop_notice(running, *reboot_limit),
        _ => return None,
    })
}

/// Hosts that do not pass their gate before the change say nothing of it afterwards, which whoever
/// waits has to know.
fn render_attached_hosts_check(
    node: &str,
    hosts: &str,
    before: bool,
    failure: Option<&str>,
    in_full: bool,
) -> Option<String> {
    let (hosts, when) = (
        sanitize_text(hosts),
        if before {
            "before the change"
        } else {
            "after the change"
        },
    );
    let outcome = match failure {
        None if !in_full => return None,
        None => format!("{hosts} behind it pass their gate {when}"),
        Some(why) if before => {
            format!(
                "{hosts} behind it do not pass their gate as it is, and will prove nothing of the \
                 change: {}",
                one_line(why, 160)
            )
        }
        Some(why) => format!(
            "{hosts} behind it DO NOT PASS their gate {when}: {}",
            one_line(why, 160)
        ),
    };
    let line = format!("{}  {outcome}", describe_step(node));
    Some(break_words(line.split(' '), CLOCK, CLOCK, COLUMNS))
}

/// What a first Ctrl-C waits for. A host with eight GPUs reboots for a quarter of an hour, so
/// whoever stops a run has to know that, and how to leave all the same.
fn render_stop_notice(running: &[String], reboot_limit: Option<Duration>) -> String {
    let leave = "Ctrl-C again leaves at once, and resume looks at what was left";
    if running.is_empty() {
        return format!("stopping: nothing new starts; {leave}");
    }
    let mut shown: Vec<String> = running
        .iter()
        .take(3)
        .map(|node| describe_step(node))
        .collect();
    if running.len() > shown.len() {
        shown.push(format!("{} more", running.len() - shown.len()));
    }
    let verb = if running.len() == 1 { "is" } else { "are" };
    let wait = reboot_limit.map_or(String::new(), |limit| {
        format!(
            "\n          a reboot is waited for up to {} min",
            limit.as_secs().div_ceil(60)
        )
    });
    let steps = format!(
        "stopping: nothing new starts; {} {verb} finished first: {}",
        format_count(running.len(), "step"),
        shown.join(", ")
    );
    format!(
        "{}{wait}\n          {leave}",
        break_words(steps.split(' '), CLOCK, CLOCK, COLUMNS)
    )
}

fn render_finished_step(node: &str, outcome: &NodeOutcome, in_full: bool) -> Option<String> {
    if node.starts_with("gate/") {
        return None;
    }
    let words = match outcome {
        NodeOutcome::Done { changed: true } if in_full => "done".to_owned(),
        NodeOutcome::Done { changed: false } if in_full => "is in sync".to_owned(),
        NodeOutcome::Done { .. } | NodeOutcome::Blocked { .. } | NodeOutcome::Skipped { .. } => {
            return None;
        }
        other => other.word().to_uppercase(),
    };
    Some(format!("{}  {words}", describe_step(node)))
}
