//! What ended a whole run, for the person on call.

use super::NextCommands;
use jiff::Timestamp;
use railwright_base::text::{self, format_count, one_line};
use railwright_base::{Diagnostic, Target, TargetKind, nodeset};
use railwright_knowledge::spec::window::{self, WindowState};
use railwright_plan::{NOTHING_TO_CHECK, Outage, RolloutPolicy};
use railwright_resource::Disruption;
use railwright_state::fenced_folder::LockTakenOver;
use railwright_state::journal_writer::JournalError;
use railwright_transport::TransportError;
use std::collections::BTreeMap;

fn describe_skipped_steps(steps: usize) -> String {
    match steps {
        0 => "gates alone were not begun".to_owned(),
        1 => "1 step was not begun".to_owned(),
        _ => format!("{steps} steps were not begun"),
    }
}

/// The budget stopped the run.
pub fn report_budget_stop(
    skipped: usize,
    out: &BTreeMap<String, Option<String>>,
    limit: usize,
    next: &NextCommands,
) -> Diagnostic {
    let (hosts, verb) = (
        format_count(out.len(), "host"),
        if out.len() == 1 { "is" } else { "are" },
    );
    let mut by_reason: BTreeMap<&Option<String>, Vec<&String>> = BTreeMap::new();
    for (host, why) in out {
        by_reason.entry(why).or_default().push(host);
    }
    let mut which = Vec::new();
    for (why, names) in by_reason {
        let names = nodeset::fold_node_set(&names);
        which.push(match why {
            Some(why) => format!("{names} ({})", one_line(why, 160)),
            None => names,
        });
    }
    let which = one_line(&which.join(", "), 600);
    Diagnostic::error(
        "RW0620",
        format!("stopped by the budget: {hosts} {verb} out of service, {limit} may be: {which}"),
    )
    .effect("one more disruption could leave too few hosts to work with")
    .state(describe_skipped_steps(skipped))
    .next("fix the hosts named above; rollout.max_unavailable sets the limit")
    .next(next.resume())
    .next(format!(
        "or {}: a new plan verifies first whom runs left out of service",
        next.apply()
    ))
}

/// All that could be done is done, and hosts of earlier runs were not passed by a gate.
pub fn still_out_of_service(outages: &BTreeMap<&str, &Outage>, next: &NextCommands) -> Diagnostic {
    let names = nodeset::fold_node_set(&outages.keys().collect::<Vec<_>>());
    let (is, first) = (
        if outages.len() == 1 { "is" } else { "are" },
        outages.values().next(),
    );
    let because = first.map_or(String::new(), |outage| one_line(&outage.words(), 300));
    Diagnostic::warning(
        "RW0655",
        format!("{names} {is} still out of service: {because}"),
    )
    .effect("they count in the budget of every run until a gate passes them")
    .state("no gate verified them in this run")
    .next(format!(
        "{} verifies them before anything else, once they answer and are not excluded",
        next.apply()
    ))
    .next(format!(
        "{}: takes them as in service",
        next.return_to_service(&names)
    ))
}

/// Steps that follow power cycles and need an empty node, on these hosts.
pub fn left_to_new_plan(steps: usize, hosts: &str, next: &NextCommands) -> Diagnostic {
    let (what, is) = (
        format_count(steps, "step"),
        if steps == 1 { "is" } else { "are" },
    );
    Diagnostic::warning(
        "RW0660",
        format!("{what} on {hosts} {is} left to a new plan"),
    )
    .effect("the hosts are without what these steps bring")
    .state("pods may be back on their nodes since the power cycle, so nothing of it was begun")
    .next(format!(
        "{} shows the steps; applied, it empties the nodes first",
        next.plan()
    ))
}

/// A gate that has nothing to check, on hosts that failed an earlier one.
pub fn nothing_to_check(hosts: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        NOTHING_TO_CHECK,
        format!("{hosts} failed an earlier gate, and this one has nothing to check there"),
    )
    .effect("what was wrong then may be so still; nothing else is disturbed until it is known")
    .state("the hosts are still out of service; nothing was done to them")
    .next(
        "bring the checks back that the spec had then (a module that was switched off, rails), and \
         apply again",
    )
    .next(format!(
        "or {}: takes them as in service",
        next.return_to_service(hosts)
    ))
}

/// Somebody returns a host to service that is in service.
pub fn not_out_of_service(host: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0656",
        format!(
            "{} is not out of service by any run that this folder knows of",
            one_line(host, 60)
        ),
    )
    .effect(
        "hosts that are unreachable, NotReady or cordoned by others come back by themselves, or by \
         whoever has them",
    )
    .state("nothing was changed")
    .next(format!(
        "railwright state list {} shows the hosts that are out of service",
        next.inventory
    ))
}

fn decision_not_recorded(reason: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0657",
        format!("the decision cannot be recorded: {}", one_line(reason, 300)),
    )
    .effect("nobody could tell later who took the hosts as in service, and why")
    .state("nothing was changed: the hosts are still out of service")
}

/// The decision about a host could not be written down.
pub fn return_not_recorded(error: &JournalError) -> Diagnostic {
    decision_not_recorded(&error.to_string())
        .next(
            "make space or repair the disk that holds the state folder, then run the same command \
             again",
        )
        .next(
            "or apply the inventory: a gate that passes the hosts returns them to service as well",
        )
}

/// The decision about a host has no journal to stand in: what is known of the host came from its
/// record.
pub fn return_without_journal(next: &NextCommands) -> Diagnostic {
    decision_not_recorded("decisions stand in the journal of a run, and this folder has begun none")
        .next(format!(
            "{}: a gate that passes the hosts returns them to service",
            next.apply()
        ))
}

/// As many hosts were lost as may be.
pub fn failure_budget(
    skipped: usize,
    lost: usize,
    limit: usize,
    next: &NextCommands,
) -> Diagnostic {
    Diagnostic::error(
        "RW0620",
        format!(
            "stopped by the failure budget: {lost} hosts were lost, and at {limit} nothing new is \
             begun"
        ),
    )
    .effect("what went wrong on these hosts may go wrong on every further one")
    .state(format!(
        "{}; what was begun on other hosts was finished",
        describe_skipped_steps(skipped)
    ))
    .next("fix the hosts named above; rollout.failure_budget sets the limit")
    .next(next.resume())
}

/// No maintenance window is open.
pub fn outside_windows(policy: &RolloutPolicy, now: Timestamp, next: &str) -> Diagnostic {
    let least = match policy.windows_for.unwrap_or_default() {
        Disruption::None => "every step".to_owned(),
        least => format!("{} or more", least.word().replace('_', " ")),
    };
    Diagnostic::error(
        "RW0628",
        format!(
            "no maintenance window is open now, and the plan has steps that wait for one ({least})"
        ),
    )
    .effect("jobs run on these hosts; what disturbs them waits for a window (rollout.windows)")
    .state("nothing was changed")
    .next(format!("{}: {next}", describe_window_opening(policy, now)))
    .next("or leave out what disturbs: --exclude ADDRESS")
}

/// The maintenance window closed before all was done.
pub fn window_closed(
    skipped: usize,
    policy: &RolloutPolicy,
    now: Timestamp,
    next: &NextCommands,
) -> Diagnostic {
    Diagnostic::error(
        "RW0629",
        "the maintenance window closed before all was done",
    )
    .effect("a host of which only a part was done counts as out of service")
    .state(format!(
        "what ran was finished, and what was through was checked by its gate; {}",
        describe_skipped_steps(skipped)
    ))
    .next(format!(
        "{}: {}",
        describe_window_opening(policy, now),
        next.resume()
    ))
}

/// The run has gone on for as long as it may.
pub fn report_deadline_passed(skipped: usize, seconds: u64, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0630",
        format!(
            "the run's deadline came after {}",
            text::format_duration(seconds)
        ),
    )
    .effect("a host of which only a part was done counts as out of service")
    .state(format!(
        "what ran was finished, and what was through was checked by its gate; {}",
        describe_skipped_steps(skipped)
    ))
    .next(format!(
        "{} goes on, with the same deadline from then on (rollout.deadline)",
        next.resume()
    ))
}

/// When the next window opens, in words that a command can follow.
fn describe_window_opening(policy: &RolloutPolicy, now: Timestamp) -> String {
    let zone = policy
        .windows
        .first()
        .map_or("UTC", |window| window.zone.as_str());
    match window::compute_window_state(&policy.openings(), now) {
        WindowState::Open { .. } | WindowState::Closed { opens: None } => {
            "when a window is open".to_owned()
        }
        WindowState::Closed { opens: Some(at) } => {
            format!("from {} on", window::format_local_time(at, zone))
        }
    }
}

/// The user stopped the run.
pub fn report_interrupted_run(skipped: usize, next: &NextCommands) -> Diagnostic {
    Diagnostic::error("RW0621", "the run was interrupted")
        .state(format!(
            "{}; what is journalled as done stands",
            describe_skipped_steps(skipped)
        ))
        .next(next.resume())
}

/// The user stopped it while the targets were still being reached and locked.
pub fn interrupted_early() -> Diagnostic {
    Diagnostic::error("RW0621", "interrupted while the targets were being reached")
        .state("nothing was changed, and the locks that were taken were let go")
        .next("the same command begins again")
}

/// The host's record could not be written.
pub fn record_not_written(target: &Target, reason: &str) -> Diagnostic {
    let record = match target.kind {
        TargetKind::Kube => "the record that the cluster keeps of us, a Secret in kube-system,",
        TargetKind::Host | TargetKind::Switch => "the record that the host keeps of itself",
    };
    Diagnostic::warning(
        "RW0622",
        format!("{record} could not be written: {}", one_line(reason, 200)),
    )
    .on(target.to_string())
    .effect("somebody who applies from another machine does not see what was applied here")
    .state("the step is done, and remembered on this side")
    .next(
        "make room or fix what is in the way there; the next apply that changes something of it \
         writes the record",
    )
}

/// What others cannot know of a host whose record does not say that it is out of service.
const OUTAGE_UNSEEN: &str = "whoever applies from another state folder would not see that it is \
                             out of service, and could take more hosts out than \
                             rollout.max_unavailable allows";

/// What is in the way of the record of a host that did not pass its gate.
pub fn outage_not_recorded(unwritten: Diagnostic) -> Diagnostic {
    if unwritten.code != "RW0622" {
        return unwritten;
    }
    unwritten
        .effect(OUTAGE_UNSEEN)
        .state("it did not pass its gate, which only this side remembers")
}

/// The host cannot write down that it leaves service, and answers.
pub fn leaving_not_recorded(node: &str, why: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0659",
        format!(
            "the host cannot write down that it leaves service: {}",
            one_line(why, 300)
        ),
    )
    .on(node)
    .effect(OUTAGE_UNSEEN)
    .state("nothing of the step was done, and the rest of this host was left alone")
    .next("make room in /var/lib/railwright on the host, or fix what is in the way there")
    .next(next.resume())
}

/// The host would refuse to read its record again.
pub fn record_too_large(
    target: &Target,
    kib: usize,
    most_kib: usize,
    largest: &str,
    its_kib: usize,
) -> Diagnostic {
    Diagnostic::warning(
        "RW0622",
        format!(
            "the record that the host keeps of itself was not written: it would have {kib} KiB, \
             and one of more than {most_kib} KiB is not read"
        ),
    )
    .on(target.to_string())
    .effect(
        "somebody who applies from another machine does not see what was applied here since the \
         record was written last",
    )
    .state("the step is done, and remembered on this side; the record is the earlier one")
    .next(format!(
        "have the host manage less in files: what the spec says of a file and what stood in it \
         before are kept there; the largest is {largest} with {its_kib} KiB"
    ))
    .next("bring large files in a package, which is remembered by its name")
}

/// Another record stands on the target than the one that ours was to replace.
pub fn record_moved(target: &Target, next: &NextCommands) -> Diagnostic {
    let word = target.kind.noun();
    Diagnostic::error(
        "RW0712",
        format!(
            "the record that the {word} keeps was changed by somebody else while this run had its \
             lock"
        ),
    )
    .on(target.to_string())
    .effect(
        "written over it, what somebody else recorded would be forgotten, and never rolled back",
    )
    .state("the step is done, and remembered on this side; the record was left as it is")
    .next(match target.kind {
        TargetKind::Kube => "find out who wrote the Secret: kubectl -n kube-system get secret -l \
                             applyset.kubernetes.io/id -o yaml --show-managed-fields"
            .to_owned(),
        TargetKind::Host | TargetKind::Switch => {
            format!("find out who wrote /var/lib/railwright/record.json on the {word}")
        }
    })
    .next(format!(
        "then make a new plan, which reads it: {}",
        next.plan()
    ))
}

/// The journal broke under the run.
pub fn journal_broken(error: &JournalError, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0709",
        format!(
            "the run was ended because {}",
            one_line(&error.to_string(), 300)
        ),
    )
    .effect("without a journal a crash could not be told from success, so nothing more was begun")
    .state("what was done stands; a step that was running is re-checked by resume")
    .next(match error {
        JournalError::LockTakenOver(_) => LockTakenOver::NEXT,
        JournalError::NotWritten(_) => "make space or repair the disk that holds the state folder",
    })
    .next(format!(
        "{}; where nothing is left to resume, {}",
        next.resume(),
        next.plan()
    ))
}

/// Nothing of a plan can be reached: one line about each kind of error, with the hosts and clusters
/// that have it.
pub fn nobody_there(
    count: usize,
    identical: &BTreeMap<String, (&TransportError, Vec<&Target>)>,
) -> Vec<Diagnostic> {
    let state = "nothing was changed, and no run was begun";
    let again = "then run the same command again";
    let mut targets = identical.values().flat_map(|(_, targets)| targets);
    let what = match targets.all(|target| target.kind == TargetKind::Host) {
        true => "hosts",
        false => "targets",
    };
    let whole = Diagnostic::error(
        "RW0632",
        format!("none of the {count} {what} of the plan can be reached"),
    )
    .effect(
        "whatever the fabric carries goes on as it is: more likely than all of them the way to \
         them is down",
    )
    .state(state)
    .next(format!(
        "check this machine's network, a jump host, a VPN; {again}"
    ));
    let mut problems = if count > 1 { vec![whole] } else { Vec::new() };
    for (message, (error, targets)) in identical {
        let mut problem = error.told(state, again);
        if targets.len() != 1 {
            problem.message = message.clone();
            problem = problem.on(format_target_names(targets));
        }
        problems.push(problem);
    }
    problems
}

/// `host/gpu[1-3], kube/prod`.
fn format_target_names(targets: &[&Target]) -> String {
    let (mut hosts, mut names) = (Vec::new(), Vec::new());
    for target in targets {
        match target.kind {
            TargetKind::Host => hosts.push(&*target.name),
            TargetKind::Kube | TargetKind::Switch => names.push(target.to_string()),
        }
    }
    if !hosts.is_empty() {
        names.insert(0, format!("host/{}", nodeset::fold_node_set(&hosts)));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_reached_is_named_as_what_it_is() {
        let error = TransportError::Local {
            reason: "no way".into(),
        };
        let (one, two, cluster) = (
            Target::host("gpu1"),
            Target::host("gpu2"),
            Target::kube("prod"),
        );
        let told = |targets: Vec<&Target>| {
            let count = targets.len();
            let all = nobody_there(
                count,
                &BTreeMap::from([("no way".to_owned(), (&error, targets))]),
            );
            all.into_iter()
                .map(|one| (one.message, one.subject.unwrap_or_default()))
                .collect::<Vec<_>>()
        };
        let whole = |words: &str| (words.to_owned(), String::new());
        let identical = |on: &str| ("no way".to_owned(), on.to_owned());
        assert_eq!(
            told(vec![&one, &two]),
            [
                whole("none of the 2 hosts of the plan can be reached"),
                identical("host/gpu[1-2]")
            ]
        );
        let both = told(vec![&one, &two, &cluster]);
        assert_eq!(
            both,
            [
                whole("none of the 3 targets of the plan can be reached"),
                identical("host/gpu[1-2], kube/prod")
            ]
        );
    }
}
