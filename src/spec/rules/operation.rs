//! How changes are rolled out and what the fabric must deliver.

use super::{Checker, error};
use crate::base::text::counted;
use crate::spec::model::{Spec, Verify};
use crate::spec::rollout::Budget;

/// The sections `rollout` and `verify`.
pub fn check(checker: &mut Checker<'_>, spec: &Spec) {
    if spec.rollout.canary == Some(0) {
        let finding = error(
            "RW0116",
            "a first wave of 0 hosts proves nothing",
            "the first mistake would reach a whole batch",
            "write how many hosts go first; 1 is common",
        );
        checker.find("rollout.canary", "at least 1", finding);
    }
    let budget = spec.rollout.max_unavailable.as_ref().map(Budget::read);
    let effect = "no host could ever be taken out of service, so nothing disruptive would be applied";
    match budget {
        Some(None) if percent_beyond(spec).is_some() => {
            let percent = percent_beyond(spec).unwrap_or_default();
            let effect = "the budget would hold nothing back";
            let finding =
                error("RW0116", format!("{percent} % is more than all hosts"), effect, "write a number such as `2`, or text such as `10%`");
            checker.find("rollout.max_unavailable", "at most 100%", finding);
        }
        Some(None) => {
            let finding = error(
                "RW0116",
                "`max_unavailable` is a number of hosts or a percentage",
                "the budget cannot be kept",
                "write a number such as `2`, or text such as `10%`",
            );
            checker.find("rollout.max_unavailable", "neither of the two", finding);
        }
        Some(Some(Budget::Hosts(0) | Budget::Percent(0))) => {
            checker.find("rollout.max_unavailable", "at least 1", error("RW0116", "a budget of 0 hosts", effect, "write at least 1"));
        }
        _ => {}
    }
    check_verify(checker, &spec.verify);
}

/// The percentage where it is a number above 100.
fn percent_beyond(spec: &Spec) -> Option<u64> {
    let digits = spec.rollout.max_unavailable.as_ref()?.as_str()?.strip_suffix('%')?.trim_end();
    digits.parse().ok().filter(|percent| *percent > 100)
}

/// A share that is less than one host; percentages round down, so that a budget is never exceeded.
pub fn check_budget(checker: &mut Checker<'_>, spec: &Spec, hosts: usize) {
    if let Some(Budget::Percent(percent @ 1..)) = spec.rollout.max_unavailable.as_ref().and_then(Budget::read)
        && hosts > 0
        && Budget::Percent(percent).of(hosts) == 0
    {
        let effect = "no host could ever be taken out of service, so nothing disruptive would be applied";
        let least = 100usize.div_ceil(hosts);
        let message = format!("{percent} % of {} rounds down to 0", counted(hosts, "host"));
        checker.find(
            "rollout.max_unavailable",
            "less than one host",
            error("RW0116", message, effect, format!("write `1`, or at least `{least}%`")),
        );
    }
}

fn check_verify(checker: &mut Checker<'_>, verify: &Verify) {
    let effect = "the check would always pass or always fail";
    if let Some(gbps) = verify.write_bandwidth_gbps.filter(|gbps| !(*gbps > 0.0 && *gbps <= 10_000.0)) {
        let finding = error(
            "RW0124",
            format!("{gbps} Gb/s is no expectation"),
            effect,
            "write what a pair must reach at least, such as 180 for a 200 Gb/s NIC",
        );
        checker.find("verify.write_bandwidth_gbps", "more than 0, at most 10000", finding);
    }
    if let Some(us) = verify.read_latency_us.filter(|us| !(*us > 0.0 && *us <= 1_000_000.0)) {
        let finding = error("RW0124", format!("{us} us is no expectation"), effect, "write what a pair may take at most, such as 5");
        checker.find("verify.read_latency_us", "more than 0, at most 1000000", finding);
    }
    if let Some(seconds) = verify.duration_s.filter(|seconds| !(1..=3600).contains(seconds)) {
        let finding = error("RW0124", format!("a run cannot take {seconds} s"), effect, "write a number from 1 to 3600; 2 is usual");
        checker.find("verify.duration_s", "1 to 3600 is possible", finding);
    }
}
