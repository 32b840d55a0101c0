//! Switches: numbers that their systems take, and names that stand for one device each.

use super::kubernetes::check_kubernetes_name;
use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::Host;
use crate::spec::model::{EcnThresholds, MTU_BYTES, Spec, SwitchGroup, WatchdogTimes};
use railwright_base::nodeset::{NAMES_MAX, expand_node_set, fold_node_set};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The code of a value that no switch takes.
const VALUE: &str = "RW0160";
/// The code of a name that stands for two devices.
const NAME: &str = "RW0161";

/// The speeds of Ethernet ports that switches of a fabric have, in Gb/s (IEEE 802.3).
const SPEEDS_GBPS: [u32; 10] = [1, 10, 25, 40, 50, 100, 200, 400, 800, 1600];
/// Metres of cable; SONiC takes whole numbers of any length, and no rail is longer than this.
const CABLE_M: RangeInclusive<u16> = 1..=9999;
/// Microseconds for a packet and its answer across an idle fabric.
const ROUND_TRIP_US: RangeInclusive<u16> = 1..=1000;
/// Milliseconds of the watchdog (sonic-net/sonic-buildimage:
/// src/sonic-yang-models/yang-models/sonic-pfcwd.yang).
const DETECTION_MS: RangeInclusive<u32> = 100..=5000;
const RESTORATION_MS: RangeInclusive<u32> = 100..=60_000;
const POLLING_MS: RangeInclusive<u32> = 100..=1000;

/// The `switches` section, one entry after the other.
pub fn check_switch_groups(checker: &mut SpecChecker<'_>, spec: &Spec) {
    for (index, switch) in spec.switches.iter().enumerate() {
        let at = format!("switches[{index}]");
        check_port_settings(checker, switch, &at);
        check_traffic_priorities(checker, switch, &at);
        if let Some(thresholds) = switch.ecn.as_ref().and_then(|ecn| ecn.thresholds()) {
            check_ecn_thresholds(checker, thresholds, &at);
        }
        if let Some(times) = switch
            .watchdog
            .as_ref()
            .and_then(|watchdog| watchdog.times())
        {
            check_watchdog_times(checker, times, &at);
        }
    }
}

/// A number that is not in its range; what is left out is in it.
fn check_range<T: PartialOrd + Display + Copy>(
    checker: &mut SpecChecker<'_>,
    path: &str,
    value: Option<T>,
    range: &RangeInclusive<T>,
    words: (&str, &str),
) {
    let Some(value) = value.filter(|value| !range.contains(value)) else {
        return;
    };
    let (what, effect) = words;
    let possible = format!("{} to {}", range.start(), range.end());
    let finding = new_spec_error(
        VALUE,
        format!("{value} is out of range for {what}"),
        effect,
        format!("write a number from {possible}"),
    );
    checker.find(path, &format!("{possible} is possible"), finding);
}

fn check_port_settings(checker: &mut SpecChecker<'_>, switch: &SwitchGroup, at: &str) {
    let effect = "the switch refuses it and keeps what it has, and larger packets of the hosts are \
                  dropped there";
    let (mtus, what) = match switch.os {
        Some(os) => (os.mtus(), format!("the MTU of a port with {}", os.name())),
        None => (MTU_BYTES, "the MTU of a port".to_owned()),
    };
    let path = format!("{at}.mtu");
    check_range(
        checker,
        &path,
        switch.mtu.map(u64::from),
        &mtus,
        (&what, effect),
    );
    let effect = "the buffer for what is on its way when a pause is asked for is sized by it";
    check_range(
        checker,
        &format!("{at}.cable_length_m"),
        switch.cable_length_m,
        &CABLE_M,
        ("the length of a cable", effect),
    );
    if let Some(speed) = switch
        .port_speed_gbps
        .filter(|speed| !SPEEDS_GBPS.contains(speed))
    {
        let effect = "buffers and thresholds are sized by the speed of the port";
        let speeds = SPEEDS_GBPS.map(|speed| speed.to_string()).join(", ");
        let finding = new_spec_error(
            VALUE,
            format!("no port has {speed} Gb/s"),
            effect,
            format!("write one of {speeds}"),
        );
        checker.find(
            &format!("{at}.port_speed_gbps"),
            "no speed of Ethernet",
            finding,
        );
    }
    if let Some(model) = switch
        .model
        .as_ref()
        .filter(|model| model.trim().is_empty())
    {
        let effect = "nothing that depends on the chip could be checked";
        let fix = "write a model (`railwright catalog switch`), or leave the key out";
        let message = format!("`{}` is no model", truncate_user_text(model));
        let finding = new_spec_error(VALUE, message, effect, fix);
        checker.find(&format!("{at}.model"), "empty", finding);
    }
}

fn check_traffic_priorities(checker: &mut SpecChecker<'_>, switch: &SwitchGroup, at: &str) {
    let mut seen = BTreeSet::new();
    for (index, priority) in switch.pfc.iter().flatten().enumerate() {
        let path = format!("{at}.pfc[{index}]");
        check_priority(checker, &path, *priority);
        if !seen.insert(priority) {
            let effect = "the switch refuses the list";
            let message = format!("priority {priority} stands twice in `pfc`");
            let finding = new_spec_error(VALUE, message, effect, "name it once");
            checker.find(&path, "again here", finding);
        }
    }
    for (dscp, priority) in switch.dscp.iter().flatten() {
        check_priority(checker, &format!("{at}.dscp.{}", dscp.0), *priority);
    }
}

fn check_priority(checker: &mut SpecChecker<'_>, path: &str, priority: u8) {
    let words = (
        "a priority",
        "Ethernet has the priorities 0 to 7 (IEEE 802.1Q)",
    );
    check_range(checker, path, Some(priority), &(0..=7), words);
}

fn check_ecn_thresholds(checker: &mut SpecChecker<'_>, thresholds: &EcnThresholds, at: &str) {
    let effect = "the switch refuses the profile, and marks nothing";
    check_range(
        checker,
        &format!("{at}.ecn.probability_percent"),
        thresholds.probability_percent,
        &(0..=100),
        ("a share in percent", effect),
    );
    let effect = "the thresholds are chosen by it";
    check_range(
        checker,
        &format!("{at}.ecn.round_trip_us"),
        thresholds.round_trip_us,
        &ROUND_TRIP_US,
        ("a round trip in microseconds", effect),
    );
    let (here, absent) = match (thresholds.min_bytes, thresholds.max_bytes) {
        (Some(min), Some(max)) if min >= max => {
            return report_crossed_thresholds(checker, min, max, at);
        }
        (Some(_), None) => ("min_bytes", "max_bytes"),
        (None, Some(_)) => ("max_bytes", "min_bytes"),
        (Some(_), Some(_)) | (None, None) => return,
    };
    let effect = "the other one would be chosen without a look at this one";
    let finding = new_spec_error(
        VALUE,
        format!("`{here}` needs `{absent}` beside it"),
        effect,
        format!("add `{absent}`, or leave both out"),
    );
    checker.find(&format!("{at}.ecn.{here}"), "alone", finding);
}

fn report_crossed_thresholds(checker: &mut SpecChecker<'_>, min: u64, max: u64, at: &str) {
    let effect = "nothing lies between them: packets are marked all at once or not at all, \
                  and senders stop instead of slowing down";
    let message =
        format!("packets would be marked from {min} bytes on and all of them from {max} on");
    let fix = "let `min_bytes` be the smaller one, a quarter of `max_bytes` for example";
    let finding = new_spec_error(VALUE, message, effect, fix);
    checker.find_with(
        &format!("{at}.ecn.min_bytes"),
        "not below",
        (&format!("{at}.ecn.max_bytes"), "this one"),
        finding,
    );
}

fn check_watchdog_times(checker: &mut SpecChecker<'_>, times: &WatchdogTimes, at: &str) {
    let effect = "the switch refuses the value, and the watchdog does not watch the port";
    let fields = [
        ("detection_ms", times.detection_ms, DETECTION_MS),
        ("restoration_ms", times.restoration_ms, RESTORATION_MS),
        ("polling_ms", times.polling_ms, POLLING_MS),
    ];
    for (key, value, range) in &fields {
        check_range(
            checker,
            &format!("{at}.watchdog.{key}"),
            *value,
            range,
            ("a time of the watchdog in milliseconds", effect),
        );
    }
    let Some(polling) = times.polling_ms else {
        return;
    };
    for (key, value, _) in &fields[..2] {
        let Some(value) = value.filter(|value| *value < polling) else {
            continue;
        };
        let effect = "what is shorter than the time between two looks is never seen, and the \
                      switch refuses it";
        let message = format!("the watchdog looks every {polling} ms, and `{key}` is {value}");
        let finding = new_spec_error(
            VALUE,
            message,
            effect,
            format!("write {polling} or more, or let it look more often"),
        );
        let path = format!("{at}.watchdog.{key}");
        checker.find_with(
            &path,
            "shorter than",
            (
                &format!("{at}.watchdog.polling_ms"),
                "the time between two looks",
            ),
            finding,
        );
    }
}

/// Node-sets that can be unfolded, each switch in one entry, and none that is called like a host.
pub fn check_switch_names(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let of_hosts: HashMap<&str, usize> = hosts
        .iter()
        .map(|host| (host.name.as_str(), host.group))
        .collect();
    let mut first_entry: HashMap<String, usize> = HashMap::new();
    let mut twice = SharedNames::new();
    let mut like_hosts = SharedNames::new();
    for (index, switch) in spec.switches.iter().enumerate() {
        let Some(names) = expand_switch_names(checker, index, switch) else {
            continue;
        };
        for name in names {
            if let Some(group) = of_hosts.get(name.as_str()) {
                let shared = like_hosts.entry((*group, index)).or_default();
                shared.push(name.clone());
            }
            match first_entry.get(&name) {
                Some(first) => twice.entry((*first, index)).or_default().push(name),
                None => drop(first_entry.insert(name, index)),
            }
        }
        if first_entry.len() > NAMES_MAX {
            let finding = new_spec_error(
                "RW0104",
                format!("the spec has more than {NAMES_MAX} switches"),
                "plans of this size were never tried",
                "split the cluster into several inventories",
            );
            return checker.find(
                &format!("switches[{index}].name"),
                "the limit is passed here",
                finding,
            );
        }
    }
    let names = first_entry.keys().map(String::as_str);
    check_kubernetes_name(checker, spec, "switch", names);
    report_switches_in_two_entries(checker, spec, twice);
    report_switches_named_like_hosts(checker, like_hosts);
}

/// Names that two entries of the spec have, by the index of each.
type SharedNames = BTreeMap<(usize, usize), Vec<String>>;

fn report_switches_in_two_entries(checker: &mut SpecChecker<'_>, spec: &Spec, shared: SharedNames) {
    for ((first, second), names) in shared {
        let message = format!(
            "{} in two entries of `switches`",
            format_subject_and_verb(&names, "the switch", "the switches")
        );
        let effect = "the two entries may say different things of the same device";
        let fix = format!(
            "take it out of `{}` or of `{}`",
            truncate_user_text(&spec.switches[first].name),
            truncate_user_text(&spec.switches[second].name)
        );
        let other = format!("switches[{first}].name");
        let finding = new_spec_error(NAME, message, effect, fix);
        checker.find_with(
            &format!("switches[{second}].name"),
            "again here",
            (&other, "first here"),
            finding,
        );
    }
}

fn report_switches_named_like_hosts(checker: &mut SpecChecker<'_>, shared: SharedNames) {
    for ((group, index), names) in shared {
        let message = format!(
            "{} called like a host",
            format_subject_and_verb(&names, "the switch", "the switches")
        );
        let effect = "on the command line and in node-sets the name would mean two devices";
        let finding = new_spec_error(NAME, message, effect, "call the switch by another name");
        let other = format!("nodes[{group}].name");
        checker.find_with(
            &format!("switches[{index}].name"),
            "a switch",
            (&other, "a host"),
            finding,
        );
    }
}

/// The switches of an entry; a node-set that cannot be unfolded is reported with the caret under
/// the wrong part of it.
fn expand_switch_names(
    checker: &mut SpecChecker<'_>,
    index: usize,
    switch: &SwitchGroup,
) -> Option<Vec<String>> {
    let problem = match expand_node_set(&switch.name) {
        Ok(names) => return Some(names),
        Err(problem) => problem,
    };
    let effect = "no switch of this entry can be named, so none is looked at";
    let fix = problem.fix.unwrap_or_else(|| {
        "a node-set looks like `leaf[1-8]`, `leaf1,leaf2` or `pod[1-4]leaf[1-8]`".to_owned()
    });
    let mut finding = new_spec_error("RW0110", "this is no node-set", effect, fix);
    let tree = checker.tree;
    if let Some(location) = tree.find(&format!("switches[{index}].name")) {
        finding = finding.labelled(tree.label_within(location, problem.span, &problem.message));
    }
    checker.findings.push(finding);
    None
}

/// `the switch leaf1 is`, `the switches leaf[1-2] are`.
fn format_subject_and_verb(names: &[String], one: &str, many: &str) -> String {
    match names {
        [name] => format!("{one} {} is", truncate_user_text(name)),
        names => format!("{many} {} are", truncate_user_text(&fold_node_set(names))),
    }
}

#[cfg(test)]
mod tests;
