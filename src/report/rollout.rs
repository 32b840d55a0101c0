//! How a run stands, for people: its waves with their hosts folded, what goes on, what went wrong,
//! how long it will likely take; and the same forecast beside a plan.

use super::out_of_service;
use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use jiff::{SignedDuration, Timestamp};
use railwright_apply::status::{GateState, RolloutStatus, RunPhase, StepNote, WaveStatus};
use railwright_apply::{Estimate, Past};
use railwright_base::nodeset;
use railwright_base::text::{clean_line, format_count, format_duration, one_line, sanitize_text};
use railwright_plan::Unavailable;

/// More notes than this are cut.
const NOTES: usize = 12;
/// So many identical waves, one after the other, are one line.
const FOLDED_FROM: usize = 3;

/// The whole screen.
pub fn render_rollout_screen(status: &RolloutStatus, inventory: &str, now: Timestamp) -> String {
    let mut out = render_run_header(status, now);
    out.push_str(&format!(
        "steps    {} of {} over\n",
        status.steps_over, status.steps
    ));
    out.push_str(&wrap_labelled_text(
        "budget   ",
        &format_rollout_budget(status),
        COLUMNS,
    ));
    out.push_str(&render_power_cycles(&status.power_cycles));
    out.push_str(&render_unavailable_hosts(&status.out_of_service));
    render_wave_lines(&status.waves, now)
        .into_iter()
        .for_each(|line| out.push_str(&line));
    let title = if status.life == RunPhase::Dead {
        "OPEN: what went on when it died"
    } else {
        "NOW: what goes on"
    };
    render_step_notes(&mut out, title, " . ", &status.active, now);
    render_step_notes(
        &mut out,
        "NOT DONE: what went wrong",
        " ! ",
        &status.failed,
        now,
    );
    out.push('\n');
    out.push_str(&render_time_left(status, now));
    out.push_str(&render_next_line(status, inventory));
    sanitize_text(&out)
}

/// Which run it is, and whether it goes on.
fn render_run_header(status: &RolloutStatus, now: Timestamp) -> String {
    let ending = match &status.ending {
        Some(ending) => format!(", {ending}"),
        None => String::new(),
    };
    let mut out = wrap_labelled_text(
        "run      ",
        &format!(
            "{} {}{ending}, begun by {} on {} at {}{}",
            status.run,
            status.life.word(),
            status.who,
            status.machine,
            status.started_at,
            format_time_ago(&status.started_at, now)
        ),
        COLUMNS,
    );
    if let Some(since) = &status.paused_since {
        out.push_str(&wrap_labelled_text(
            "paused   ",
            &format!(
                "since {since}{}: nothing new starts",
                format_time_ago(since, now)
            ),
            COLUMNS,
        ));
    }
    if status.life == RunPhase::Dead {
        let text = format!(
            "its process is gone, and it did not end in order; its last word was at {}{}",
            status.latest_at,
            format_time_ago(&status.latest_at, now)
        );
        out.push_str(&wrap_labelled_text("dead     ", &text, COLUMNS));
    }
    out
}

/// How long what is left will likely take; nothing for a run that ended and left nothing.
fn render_time_left(status: &RolloutStatus, now: Timestamp) -> String {
    let Some(left) = &status.left else {
        return match status.ending {
            Some(_) => String::new(),
            None => "left     no estimate yet (no completed run)\n".to_owned(),
        };
    };
    let words = match status.life {
        RunPhase::Running => {
            describe_time_left(left, compute_longest_wait(&status.active, now), now)
        }
        _ => format!(
            "{} once it goes on; by the journals of {}",
            format_estimate(left),
            format_count(left.runs, "run")
        ),
    };
    wrap_labelled_text("left     ", &words, COLUMNS)
}

fn format_rollout_budget(status: &RolloutStatus) -> String {
    let (out, lost) = (
        format_host_set(&status.unavailable),
        nodeset::expand_node_set(&status.lost).map_or(0, |names| names.len()),
    );
    format!(
        "{} of at most {} out of service{out}; {lost} of {} lost{}",
        status.unavailable_count,
        status.max_unavailable,
        status.failure_budget,
        if lost > 0 {
            format_host_set(&status.lost)
        } else {
            String::new()
        }
    )
}

fn format_host_set(set: &str) -> String {
    if set.is_empty() {
        String::new()
    } else {
        format!(" ({})", clean_line(set))
    }
}

/// The hosts that runs left out of service, this one or an earlier one, a line for each reason.
fn render_unavailable_hosts(all: &[Unavailable]) -> String {
    out_of_service::fold_by_reason(all)
        .iter()
        .map(|(why, hosts)| wrap_labelled_text("out      ", &format!("{hosts}: {why}"), COLUMNS))
        .collect()
}

/// The hosts that somebody has to switch off and on, and which of them go first.
fn render_power_cycles(waves: &[String]) -> String {
    let names: Vec<String> = waves
        .iter()
        .flat_map(|set| nodeset::expand_node_set(set).unwrap_or_default())
        .collect();
    match waves {
        [] => String::new(),
        [all] => wrap_labelled_text(
            "waits    ",
            &format!("for a power cycle by hand of {}", clean_line(all)),
            COLUMNS,
        ),
        [first, ..] => {
            let text = format!(
                "for a power cycle by hand of {} ({} first)",
                nodeset::fold_node_set(&names),
                clean_line(first)
            );
            wrap_labelled_text("waits    ", &text, COLUMNS)
        }
    }
}

/// ` (12 min ago)`; nothing for a moment that cannot be read or is not past.
fn format_time_ago(at: &str, now: Timestamp) -> String {
    let Ok(at) = at.parse::<Timestamp>() else {
        return String::new();
    };
    match u64::try_from(now.as_second() - at.as_second()) {
        Ok(seconds) => format!(" ({} ago)", format_duration(seconds)),
        Err(_) => String::new(),
    }
}

/// A line a wave; identical waves in one.
fn render_wave_lines(waves: &[WaveStatus], now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    let mut first = 0;
    while first < waves.len() {
        let wave = &waves[first];
        let identical = waves[first..]
            .iter()
            .take_while(|other| is_equivalent(wave, other))
            .count();
        let taken = if identical >= FOLDED_FROM {
            identical
        } else {
            1
        };
        let number = if taken > 1 {
            format!("{}-{}", wave.wave, waves[first + taken - 1].wave)
        } else {
            wave.wave.to_string()
        };
        let hosts = wave.hosts.keys().map(|state| {
            let sets = waves[first..first + taken]
                .iter()
                .filter_map(|wave| wave.hosts.get(state));
            let names: Vec<String> = sets
                .flat_map(|set| nodeset::expand_node_set(set).unwrap_or_default())
                .collect();
            format!("{} {}", nodeset::fold_node_set(&names), state.word())
        });
        let text = format!(
            "{}   gate {}",
            hosts.collect::<Vec<_>>().join(", "),
            describe_gate_state(&wave.gate, taken, now)
        );
        lines.push(wrap_labelled_text(
            &format!("wave     {number:<7} "),
            &text,
            COLUMNS,
        ));
        first += taken;
    }
    lines
}

/// Waves on which there is nothing to tell apart: all hosts in one state, and the gate.
fn is_equivalent(one: &WaveStatus, other: &WaveStatus) -> bool {
    let same_gate = std::mem::discriminant(&one.gate) == std::mem::discriminant(&other.gate);
    same_gate
        && one.hosts.len() == 1
        && other.hosts.len() == 1
        && one.hosts.keys().eq(other.hosts.keys())
}

fn describe_gate_state(gate: &GateState, waves: usize, now: Timestamp) -> String {
    match gate {
        GateState::Waiting => "waiting".to_owned(),
        GateState::Checking { since } => format!("is being checked{}", format_time_ago(since, now)),
        GateState::Passed { at } if waves == 1 => format!("passed{}", format_time_ago(at, now)),
        GateState::Passed { .. } => "passed, each".to_owned(),
        GateState::Failed { at } => format!("FAILED{}", format_time_ago(at, now)),
        GateState::Skipped => "not asked".to_owned(),
    }
}

fn render_step_notes(
    out: &mut String,
    title: &str,
    mark: &str,
    notes: &[StepNote],
    now: Timestamp,
) {
    if notes.is_empty() {
        return;
    }
    out.push_str(&render_heading(title));
    for note in notes.iter().take(NOTES) {
        let waits = match note.waits_s {
            Some(seconds) => format!(", and waits for {} at most", format_duration(seconds)),
            None => String::new(),
        };
        let text = format!(
            "{}   {}{}{waits}",
            super::apply::describe_step(&note.node),
            one_line(&note.what, 200),
            format_time_ago(&note.since, now)
        );
        out.push_str(&wrap_labelled_text(mark, &text, COLUMNS));
    }
    if notes.len() > NOTES {
        out.push_str(&format!(
            "   and {} more: --json has all\n",
            notes.len() - NOTES
        ));
    }
}

fn format_estimate(estimate: &Estimate) -> String {
    let seconds = if estimate.seconds < 60 {
        "under a minute".to_owned()
    } else {
        format!(
            "about {}",
            format_duration(round_long_duration(estimate.seconds))
        )
    };
    let never: Vec<String> = estimate
        .never_seen
        .iter()
        .map(|kind| kind.replace('_', " "))
        .collect();
    let never = if never.is_empty() {
        String::new()
    } else {
        format!(
            ", not counting what was never done here before: {}",
            never.join(", ")
        )
    };
    format!("{seconds}{never}")
}

/// Nobody knows the seconds of an hour to come.
fn round_long_duration(seconds: u64) -> u64 {
    if seconds >= 600 {
        seconds.div_ceil(60) * 60
    } else {
        seconds
    }
}

/// For how many seconds from now on what goes on may still wait: how long that took in earlier runs
/// says little of this time.
fn compute_longest_wait(active: &[StepNote], now: Timestamp) -> Option<u64> {
    active
        .iter()
        .filter_map(|note| compute_time_left(now, note))
        .max()
}

fn compute_time_left(now: Timestamp, note: &StepNote) -> Option<u64> {
    let since = note.since.parse::<Timestamp>().ok()?;
    Some(
        note.waits_s?
            .saturating_sub(u64::try_from(now.as_second() - since.as_second()).unwrap_or_default()),
    )
}

fn describe_time_left(left: &Estimate, waits: Option<u64>, now: Timestamp) -> String {
    let seconds = i64::try_from(left.seconds).unwrap_or(i64::MAX);
    let end = match (waits, now.checked_add(SignedDuration::from_secs(seconds))) {
        (Some(seconds), _) => format!(
            ", or {} more where what is waited for takes its time",
            format_duration(seconds)
        ),
        (None, Ok(end)) => format!(": likely over at {end}"),
        (None, Err(_)) => String::new(),
    };
    format!(
        "{}{end}; by the journals of {}",
        format_estimate(left),
        format_count(left.runs, "run")
    )
}

/// The line beside a plan that says how long it will likely take.
pub fn render_estimate_line(estimate: Option<&Estimate>) -> String {
    let text = match estimate {
        None => "no estimate yet (no completed run)".to_owned(),
        Some(estimate) => {
            let reboot = match estimate.reboot_s {
                Some(seconds) => format!("; a reboot takes {}", format_duration(seconds)),
                None => String::new(),
            };
            format!(
                "{}, by the journals of {}{reboot}",
                format_estimate(estimate),
                format_count(estimate.runs, "run")
            )
        }
    };
    wrap_labelled_text("time     ", &text, COLUMNS)
}

/// The forecast for a plan that was not begun.
pub fn estimate_plan_duration(
    plan: &railwright_plan::Plan,
    past: &Past,
    parallel: usize,
) -> Option<Estimate> {
    let steps = railwright_apply::steps::build_steps(plan).ok()?;
    past.estimate(&steps, &|_| false, plan.rollout.max_unavailable, parallel)
}

fn render_next_line(status: &RolloutStatus, inventory: &str) -> String {
    match (status.life, status.ending.as_deref()) {
        (RunPhase::Running, _) => {
            format!("next     railwright rollout pause {inventory}, or rollout abort {inventory}\n")
        }
        (RunPhase::Paused, _) => format!(
            "next     railwright rollout continue {inventory}, or rollout abort {inventory}\n"
        ),
        (RunPhase::Ending, _) => {
            format!(
                "next     it starts nothing new; once it is over, railwright resume {inventory}\n"
            )
        }
        (RunPhase::Over, Some("done")) if !status.out_of_service.is_empty() => {
            format!("next     railwright apply {inventory}\n")
        }
        // Without a host that a gate could ask there is none that test traffic could be started on.
        (RunPhase::Over, Some("done")) if status.waves.is_empty() => {
            format!("next     railwright drift {inventory}\n")
        }
        (RunPhase::Over, Some("done")) => format!("next     railwright verify {inventory}\n"),
        (RunPhase::Over, _) if !status.resumable => {
            format!("next     railwright plan {inventory}\n")
        }
        _ => format!("next     railwright resume {inventory}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_apply::status::HostState;

    fn wave(wave: usize, hosts: &[(HostState, &str)], gate: GateState) -> WaveStatus {
        WaveStatus {
            wave,
            hosts: hosts
                .iter()
                .map(|(state, set)| (*state, (*set).to_owned()))
                .collect(),
            gate,
        }
    }

    fn status() -> RolloutStatus {
        let at = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z");
        let mut waves: Vec<WaveStatus> = (1..=4)
            .map(|n| {
                wave(
                    n,
                    &[(HostState::Done, &format!("n{n}"))],
                    GateState::Passed { at: at(n as u32) },
                )
            })
            .collect();
        waves.push(wave(
            5,
            &[
                (HostState::Failed, "n5"),
                (HostState::Running, "n[6-7]"),
                (HostState::Waiting, "n8"),
            ],
            GateState::Waiting,
        ));
        waves.push(wave(
            6,
            &[(HostState::Done, "n9")],
            GateState::Checking { since: at(29) },
        ));
        waves.extend((7..=200).map(|n| {
            wave(
                n,
                &[(HostState::Waiting, &format!("n{}", n + 3))],
                GateState::Waiting,
            )
        }));
        let note = |node: &str, what: &str, minute| StepNote {
            node: node.to_owned(),
            what: what.to_owned(),
            since: at(minute),
            waits_s: None,
        };
        RolloutStatus {
            run: "r0034-1a2b3c".to_owned(),
            plan: "d".to_owned(),
            who: "ann".to_owned(),
            machine: "ops1".to_owned(),
            started_at: at(0),
            latest_at: at(29),
            life: RunPhase::Running,
            paused_since: None,
            ending: None,
            waves,
            steps_over: 40,
            steps: 900,
            unavailable: "n[5-7]".to_owned(),
            unavailable_count: 3,
            max_unavailable: 4,
            lost: "n5".to_owned(),
            failure_budget: 5,
            power_cycles: Vec::new(),
            out_of_service: Vec::new(),
            resumable: true,
            active: vec![
                note("host/n6/reboot", "running", 24),
                note("host/n7/file/%2Fetc%2Fx", "running", 29),
            ],
            failed: vec![note(
                "host/n5/link/ens1",
                "failed: not as desired after it\u{1b}[2J",
                20,
            )],
            left: Some(Estimate {
                seconds: 7300,
                never_seen: ["link_qos".to_owned()].into(),
                runs: 3,
                reboot_s: Some(245),
            }),
        }
    }

    #[test]
    fn two_hundred_waves_fit_a_screen_and_what_is_under_way_stands_out() {
        let now = "2026-01-01T00:30:00Z".parse().unwrap();
        insta::assert_snapshot!(render_rollout_screen(&status(), "inv", now), @r##"
        run      r0034-1a2b3c running, begun by ann on ops1 at 2026-01-01T00:00:00Z (30 min ago)
        steps    40 of 900 over
        budget   3 of at most 4 out of service (n[5-7]); 1 of 5 lost (n5)
        wave     1-4     n[1-4] done   gate passed, each
        wave     5       n5 failed, n[6-7] running, n8 waiting   gate waiting
        wave     6       n9 done   gate is being checked (1 min ago)
        wave     7-200   n[10-203] waiting   gate waiting

        NOW: what goes on -------------------------------------------------------------------------------
         . n6  reboot   running (6 min ago)
         . n7  file /etc/x   running (1 min ago)

        NOT DONE: what went wrong -----------------------------------------------------------------------
         ! n5  link ens1   failed: not as desired after it�[2J (10 min ago)

        left     about 2 h 2 min, not counting what was never done here before: link qos: likely over at
                 2026-01-01T02:31:40Z; by the journals of 3 runs
        next     railwright rollout pause inv, or rollout abort inv
        "##);
        let paused = RolloutStatus {
            life: RunPhase::Paused,
            paused_since: Some("2026-01-01T00:29:30Z".to_owned()),
            left: None,
            ..status()
        };
        let text = render_rollout_screen(&paused, "inv", now);
        assert!(
            text.contains("paused   since 2026-01-01T00:29:30Z (30 s ago): nothing new starts\n"),
            "{text}"
        );
        assert!(
            text.contains("left     no estimate yet")
                && text.ends_with("railwright rollout continue inv, or rollout abort inv\n"),
            "{text}"
        );
        let waiting = StepNote {
            waits_s: Some(300),
            ..status().active.remove(1)
        };
        let text = render_rollout_screen(
            &RolloutStatus {
                active: vec![waiting],
                ..status()
            },
            "inv",
            now,
        );
        assert!(
            text.contains("running (1 min ago), and waits for 5 min at most\n"),
            "{text}"
        );
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains(
                "link qos, or 4 min more where what is waited for takes its time; by the journals \
                 of 3 runs"
            ),
            "{text}"
        );
        assert!(!text.contains("likely over"), "{text}");
        let dead = render_rollout_screen(
            &RolloutStatus {
                life: RunPhase::Dead,
                ..status()
            },
            "inv",
            now,
        );
        assert!(
            dead.contains("its last word was at 2026-01-01T00:29:00Z")
                && dead.ends_with("railwright resume inv\n"),
            "{dead}"
        );
    }

    #[test]
    fn a_forecast_says_what_it_is_based_on_and_does_not_guess() {
        assert_eq!(
            render_estimate_line(None),
            "time     no estimate yet (no completed run)\n"
        );
        let estimate = Estimate {
            seconds: 45,
            never_seen: Default::default(),
            runs: 1,
            reboot_s: None,
        };
        assert_eq!(
            render_estimate_line(Some(&estimate)),
            "time     under a minute, by the journals of 1 run\n"
        );
        let left = status().left.unwrap();
        assert_eq!(
            render_estimate_line(Some(&left)),
            "time     about 2 h 2 min, not counting what was never done here before: link qos, by \
             the journals of\n         3 runs; a reboot takes 4 min 5 s\n"
        );
    }
}
