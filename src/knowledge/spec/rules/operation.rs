//! How changes are rolled out and what the fabric must deliver.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::model::{Spec, VerifySection};
use crate::spec::rollout::HostBudget;
use crate::spec::window;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::format_count;
use railwright_base::{Diagnostic, Severity};
use railwright_resource::Disruption;
use serde_json::Value;
use std::collections::BTreeSet;

/// The sections `rollout` and `verify`.
pub fn check_rollout_and_verify(checker: &mut SpecChecker<'_>, spec: &Spec) {
    if spec.rollout.canary == Some(0) {
        let finding = new_spec_error(
            "RW0116",
            "a first wave of 0 hosts proves nothing",
            "the first mistake would reach a whole batch",
            "write how many hosts of each hardware class go first; 1 is common",
        );
        checker.find("rollout.canary", "at least 1", finding);
    }
    for amount in list_rollout_amounts(spec) {
        check_rollout_amount(checker, &amount);
    }
    check_times(checker, spec);
    check_verify(checker, &spec.verify);
}

fn check_rollout_amount(checker: &mut SpecChecker<'_>, amount: &RolloutAmount<'_>) {
    let fix = "write a number such as `2`, or text such as `10%`";
    let (label, message, effect, fix) = match HostBudget::read(amount.value) {
        Some(HostBudget::Hosts(0) | HostBudget::Percent(0)) => (
            "at least 1",
            format!("{} of 0 hosts", amount.noun),
            amount.zero,
            "write at least 1",
        ),
        Some(_) => return,
        None => match percent_beyond(amount.value) {
            Some(percent) => (
                "at most 100%",
                format!("{percent} % is more than all hosts"),
                "the budget would hold nothing back",
                fix,
            ),
            None => (
                "neither of the two",
                format!("`{}` is a number of hosts or a percentage", amount.name),
                amount.unread,
                fix,
            ),
        },
    };
    let finding = new_spec_error("RW0116", message, effect, fix);
    checker.find(&amount.path, label, finding);
}

/// The percentage where it is a number above 100.
fn percent_beyond(value: &Value) -> Option<u64> {
    let digits = value.as_str()?.strip_suffix('%')?.trim_end();
    digits.parse().ok().filter(|percent| *percent > 100)
}

fn check_times(checker: &mut SpecChecker<'_>, spec: &Spec) {
    for (index, window) in spec.rollout.windows.iter().enumerate() {
        if let Err(unread) = window.read() {
            let finding = new_spec_error(
                "RW0126",
                format!(
                    "the maintenance window's `{}` cannot be read: {}",
                    unread.key, unread.why
                ),
                "nobody knows when disruptive steps may begin",
                unread.fix,
            );
            checker.find(
                &format!("rollout.windows[{index}].{}", unread.key),
                "here",
                finding,
            );
        }
    }
    if let Some(deadline) = spec
        .rollout
        .deadline
        .as_ref()
        .filter(|deadline| window::parse_duration(deadline).is_none())
    {
        let finding = new_spec_error(
            "RW0126",
            format!("`{}` is no duration", truncate_user_text(deadline)),
            "nobody knows when a run has to end",
            "write such as `4h` or `90m`",
        );
        checker.find("rollout.deadline", "here", finding);
    }
    check_rollback_timers(checker, spec);
    check_drain(checker, spec);
}

/// How long hosts and switches wait for a sign that a change did not cut them off.
fn check_rollback_timers(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let rollout = &spec.rollout;
    for (key, stated, seconds, whose, fix) in [
        (
            "rollback_timer",
            &rollout.rollback_timer,
            rollout.rollback_timer_s(),
            "host",
            "write from `20s` to `1h`; `3m` is common",
        ),
        (
            "switch_rollback_timer",
            &rollout.switch_rollback_timer,
            rollout.switch_rollback_timer_s(),
            "switch",
            "write from `20s` to `2h`; `15m` is common",
        ),
    ] {
        if let Some(stated) = stated.as_ref().filter(|_| seconds.is_none()) {
            let finding = new_spec_error(
                "RW0126",
                format!(
                    "`{}` is no time for an automatic rollback",
                    truncate_user_text(stated)
                ),
                &format!("nobody knows when a {whose} rolls back what cut it off"),
                fix,
            );
            checker.find(&format!("rollout.{key}"), "here", finding);
        }
    }
}

fn check_drain(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(drain) = &spec.rollout.drain else {
        return;
    };
    if let Some(timeout) = drain
        .timeout
        .as_ref()
        .filter(|_| drain.timeout_s().is_none())
    {
        let finding = new_spec_error(
            "RW0126",
            format!(
                "`{}` is no time in which a node could be emptied",
                truncate_user_text(timeout)
            ),
            "nobody knows when a node whose pods stay is given back",
            "write from `1m` to `24h`; `15m` is common",
        );
        checker.find("rollout.drain.timeout", "here", finding);
    }
    if !(Disruption::Restart..=Disruption::Reboot).contains(&drain.from()) {
        let finding = new_spec_error(
            "RW0126",
            format!(
                "`{}` is no disruption that a node could be emptied for",
                drain.from().word()
            ),
            "either every change would empty a node, or none would",
            "write `restart`, `link_blip`, `drain` or `reboot`; to empty none: pods: leave",
        );
        checker.find("rollout.drain.from", "here", finding);
    }
    if spec.kubernetes.is_none() {
        let fix = "name the cluster (kubernetes: { context: prod }), or take `drain` out";
        let finding = new_spec_error(
            "RW0126",
            "no Kubernetes cluster is named whose nodes could be emptied".to_owned(),
            "hosts are disturbed with all that runs on them",
            fix,
        );
        checker.find("rollout.drain", "of which cluster", finding);
    }
}

/// A number of hosts or a percentage in the section `rollout`.
struct RolloutAmount<'a> {
    path: String,
    name: &'static str,
    noun: &'static str,
    value: &'a Value,
    /// What follows when nobody knows the number.
    unread: &'static str,
    /// What follows when it is 0.
    zero: &'static str,
}

fn list_rollout_amounts(spec: &Spec) -> Vec<RolloutAmount<'_>> {
    let rollout = &spec.rollout;
    let mut amounts = Vec::new();
    if let Some(value) = &rollout.max_unavailable {
        amounts.push(RolloutAmount {
            path: "rollout.max_unavailable".to_owned(),
            name: "max_unavailable",
            noun: "a budget",
            value,
            unread: "the budget cannot be kept",
            zero: "no host could ever be taken out of service, so nothing disruptive would be \
                   applied",
        });
    }
    if let Some(value) = &rollout.failure_budget {
        amounts.push(RolloutAmount {
            path: "rollout.failure_budget".to_owned(),
            name: "failure_budget",
            noun: "a budget",
            value,
            unread: "nobody knows how many hosts may be lost",
            zero: "the rollout would have to stop before it began; 1 stops it at the first host \
                   that is lost",
        });
    }
    for (index, value) in rollout.batches.iter().enumerate() {
        amounts.push(RolloutAmount {
            path: format!("rollout.batches[{index}]"),
            name: "batches",
            noun: "a wave",
            value,
            unread: "how far a wave reaches is not known",
            zero: "the rollout would never get on",
        });
    }
    amounts
}

/// Shares that are less than one host: percentages round down, so that a budget is never exceeded.
pub fn check_budget(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: usize) {
    for part in list_rollout_amounts(spec) {
        if let Some(HostBudget::Percent(percent @ 1..)) = HostBudget::read(part.value)
            && hosts > 0
            && HostBudget::Percent(percent).of(hosts) == 0
        {
            let least = 100usize.div_ceil(hosts);
            let message = format!(
                "{percent} % of {} rounds down to 0",
                format_count(hosts, "host")
            );
            let finding = new_spec_error(
                "RW0116",
                message,
                part.zero,
                format!("write `1`, or at least `{least}%`"),
            );
            checker.find(&part.path, "less than one host", finding);
        }
    }
}

/// Waves that are larger than the budget: the budget holds, so they are not what they seem.
pub fn check_waves(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: usize) {
    let rollout = &spec.rollout;
    let budget = rollout.max_unavailable(hosts);
    if budget == 0 {
        return;
    }
    let source = if rollout.max_unavailable.is_some() {
        ""
    } else {
        ", as nothing else is said"
    };
    if let Some(canary) = rollout.canary.filter(|canary| *canary as usize > budget) {
        let message = format!(
            "{canary} canary hosts, and {} may be out of service at the same time{source}",
            format_count(budget, "host")
        );
        let effect = "no more hosts than that go first: what breaks on the others of a class is \
                      seen in a later wave";
        checker.find(
            "rollout.canary",
            "more than `max_unavailable`",
            new_wave_warning(budget, message, effect),
        );
    }
    for (index, value) in rollout.batches.iter().enumerate() {
        let Some(batch) = HostBudget::read(value) else {
            continue;
        };
        let batch = batch.of(hosts);
        if batch <= budget {
            continue;
        }
        let message = format!(
            "a wave of {}, and {budget} may be out of service at the same time{source}",
            format_count(batch, "host")
        );
        let effect = "its hosts are taken in turn, so that the rollout takes as long as with \
                      smaller waves and has fewer gates";
        checker.find(
            &format!("rollout.batches[{index}]"),
            "more than `max_unavailable`",
            new_wave_warning(budget, message, effect),
        );
    }
}

fn new_wave_warning(budget: usize, message: String, effect: &str) -> Diagnostic {
    let fix = format!("write at most {budget}, or raise `max_unavailable`");
    Diagnostic {
        severity: Severity::Warning,
        ..new_spec_error("RW0129", message, effect, fix)
    }
}

/// A failure domain is a label that every node has: a host of which nobody knows where it stands
/// could go down with any other.
pub fn check_domain(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(label) = &spec.rollout.failure_domain else {
        return;
    };
    let effect = "which hosts go down together is not known, so a wave could reach two failure \
                  domains at once";
    let shown = truncate_user_text(label);
    let labels = spec.nodes.iter().flat_map(|group| group.labels.keys());
    let known: BTreeSet<&str> = labels.map(String::as_str).collect();
    if !known.contains(label.as_str()) {
        let fix = match find_nearest_word(label, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write it at the nodes: labels: {{ {shown}: ... }}"),
        };
        let message = format!("no node has a label `{shown}`");
        let finding = new_spec_error("RW0125", message, effect, fix);
        checker.find("rollout.failure_domain", "no such label", finding);
        return;
    }
    for (index, group) in spec.nodes.iter().enumerate() {
        if group.labels.contains_key(label) {
            continue;
        }
        let message = format!(
            "{} has no label `{shown}`, which `rollout.failure_domain` names",
            truncate_user_text(&group.name)
        );
        let fix = format!("write where these hosts stand: labels: {{ {shown}: ... }}");
        let finding = new_spec_error("RW0125", message, effect, fix);
        checker.find(
            &format!("nodes[{index}].name"),
            "in no failure domain",
            finding,
        );
    }
}

fn check_verify(checker: &mut SpecChecker<'_>, verify: &VerifySection) {
    let effect = "the check would always pass or always fail";
    let bandwidths = [
        ("write_bandwidth_gbps", verify.write_bandwidth_gbps),
        ("gpu_bandwidth_gbps", verify.gpu_bandwidth_gbps),
    ];
    for (key, gbps) in bandwidths {
        let Some(gbps) = gbps.filter(|gbps| !(*gbps > 0.0 && *gbps <= 10_000.0)) else {
            continue;
        };
        let message = format!("{gbps} Gb/s is no expectation");
        let fix = "write what a pair must reach at least, such as 180 for a 200 Gb/s NIC";
        let finding = new_spec_error("RW0124", message, effect, fix);
        let label = "more than 0, at most 10000";
        checker.find(&format!("verify.{key}"), label, finding);
    }
    if let Some(us) = verify.read_latency_us
        && !(us > 0.0 && us <= 1_000_000.0)
    {
        let message = format!("{us} us is no expectation");
        let fix = "write what a pair may take at most, such as 5";
        let finding = new_spec_error("RW0124", message, effect, fix);
        let label = "more than 0, at most 1000000";
        checker.find("verify.read_latency_us", label, finding);
    }
    if let Some(seconds) = verify.duration_s
        && !(1..=3600).contains(&seconds)
    {
        let message = format!("a run cannot take {seconds} s");
        let fix = "write a number from 1 to 3600; 2 is usual";
        let finding = new_spec_error("RW0124", message, effect, fix);
        checker.find("verify.duration_s", "1 to 3600 is possible", finding);
    }
}
