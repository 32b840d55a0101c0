//! The kinds of switches on configurations of EOS, and on what their own commands make of those.

use super::edit::{ANY_QUEUE, group_commands_by_section, render_command_chunks};
use crate::switch::buffer::SwitchBuffer;
use crate::switch::ecn::SwitchEcn;
use crate::switch::edit::SwitchEdit;
use crate::switch::port::SwitchPort;
use crate::switch::qos::SwitchQos;
use crate::switch::test_support::{edits, resource};
use crate::test_support::answered;
use crate::{Action, DesiredResource, Disruption, ReadResults, ResourceDiff, ResourceKind};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PORT: &str = "Ethernet1/1";

fn qos() -> DesiredResource {
    let body = json!({ "system": "eos", "port": PORT, "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "watchdog_detection_ms": 200 });
    resource(&SwitchQos, body)
}

fn ecn(min: u64, max: u64, probability: u64) -> DesiredResource {
    let body = json!({ "system": "eos", "port": PORT, "priority": 3, "min_bytes": min, "max_bytes": max, "probability_percent": probability });
    resource(&SwitchEcn, body)
}

fn port(body: &Value) -> DesiredResource {
    let mut whole = json!({ "system": "eos", "port": PORT });
    whole
        .as_object_mut()
        .unwrap()
        .extend(body.as_object().unwrap().clone());
    resource(&SwitchPort, whole)
}

/// Commands by the sections that lead to them, in order.
type Model = BTreeMap<Vec<String>, Vec<String>>;

fn model(lines: &[&str]) -> Model {
    let mut model = Model::from([(
        Vec::new(),
        vec![
            format!("interface {PORT}"),
            "interface Ethernet1/2".to_owned(),
        ],
    )]);
    for line in lines {
        let mut words: Vec<String> = line.split(": ").map(str::to_owned).collect();
        let command = words.pop().unwrap();
        put(&mut model, &words, &command);
    }
    model
}

fn put(model: &mut Model, section: &[String], command: &str) {
    if let Some((last, above)) = section.split_last()
        && !model.get(above).is_some_and(|lines| lines.contains(last))
    {
        put(model, above, last);
    }
    let lines = model.entry(section.to_vec()).or_default();
    lines.retain(|line| named(line) != named(command));
    // What is so from the start is not shown.
    let is_gone = command.starts_with("default ")
        || (command.starts_with("no ")
            && !["no priority", "no qos trust", "no switchport"].contains(&command));
    if !is_gone && command != "priority strict" {
        lines.push(command.to_owned());
    }
}

/// What a command is about, whatever it sets.
fn named(line: &str) -> String {
    let bare = line
        .strip_prefix("no ")
        .or_else(|| line.strip_prefix("default "))
        .unwrap_or(line);
    let watchdog = "priority-flow-control pause watchdog";
    let families = [
        "mtu",
        "shutdown",
        "qos trust",
        "random-detect ecn count",
        "random-detect ecn",
        "bandwidth guaranteed",
        "bandwidth percent",
    ];
    match bare {
        bare if bare.starts_with("priority-flow-control priority") => {
            bare.split(' ').take(3).collect::<Vec<_>>().join(" ")
        }
        bare if bare.starts_with(watchdog) => bare
            .split(' ')
            .take(5)
            .filter(|word| *word != "on")
            .collect::<Vec<_>>()
            .join(" "),
        bare if bare.starts_with("priority-flow-control") => "priority-flow-control".to_owned(),
        "priority strict" | "priority" => "priority".to_owned(),
        bare => families
            .iter()
            .find(|family| bare.starts_with(**family))
            .map_or(bare, |family| family)
            .to_owned(),
    }
}

fn text(model: &Model, word: &str) -> String {
    fn below(model: &Model, section: &[String], out: &mut String) {
        for line in model.get(section).into_iter().flatten() {
            out.push_str(&format!("{}{line}\n", "   ".repeat(section.len())));
            below(model, &[section, std::slice::from_ref(line)].concat(), out);
        }
    }
    let mut out = format!("! railwright {word}\n");
    below(model, &[], &mut out);
    out + "end\n"
}

/// What the switch makes of a configuration by the commands of a session, one whose unicast queues
/// are apart.
fn patched(config: &Model, edits: &[SwitchEdit]) -> Model {
    let mut out = config.clone();
    for chunk in render_command_chunks(&SwitchEdit::eos(edits)) {
        let mut section: Vec<String> = Vec::new();
        for line in chunk.replace(ANY_QUEUE, "uc-tx-queue").lines() {
            match line {
                "exit" => drop(section.pop()),
                _ if line.starts_with("interface ")
                    || line.contains("tx-queue ") && !line.contains(" to ") =>
                {
                    section.push(line.to_owned())
                }
                command => put(&mut out, &section, command),
            }
        }
        assert!(section.is_empty(), "{chunk}");
    }
    out
}

fn answers(resource: &DesiredResource, running: &Model, saved: Option<&Model>) -> ReadResults {
    let reads = SwitchPort.reads(resource);
    let saved = saved.map_or((1, String::new()), |saved| (0, text(saved, "saved")));
    answered(&[
        (&reads[0], 0, &text(running, "running")),
        (&reads[1], saved.0, &saved.1),
    ])
}

fn diff(kind: &dyn ResourceKind, resource: &DesiredResource, running: &Model) -> ResourceDiff {
    kind.diff(resource, &answers(resource, running, Some(running)))
}

/// Of sections with nothing in them nothing is left.
fn pruned(model: &Model) -> Model {
    let mut out = model.clone();
    out.retain(|_, lines| !lines.is_empty());
    let is_empty = |section: &[String], line: &String| {
        let is_queue = line.contains("tx-queue ") && !line.contains(" to ");
        is_queue && !out.contains_key(&[section, std::slice::from_ref(line)].concat())
    };
    let mut out: Model = out
        .iter()
        .map(|(at, all)| {
            (
                at.clone(),
                all.iter()
                    .filter(|line| !is_empty(at, line))
                    .cloned()
                    .collect(),
            )
        })
        .collect();
    out.retain(|_, lines| !lines.is_empty());
    out.values_mut().for_each(|lines| lines.sort());
    out
}

/// As planned, then done, then saved: in sync; and undone it is as it was, but for what the switch
/// has for all its ports.
fn round(kind: &dyn ResourceKind, resource: &DesiredResource, config: &Model) -> Model {
    let first = diff(kind, resource, config);
    assert_eq!(first.refusal, None);
    let done = patched(config, &edits(&first));
    let unsaved = kind.diff(resource, &answers(resource, &done, Some(config)));
    assert!(
        matches!(unsaved.actions.as_slice(), [Action::SaveSwitch { .. }]),
        "{unsaved:?}"
    );
    let saved = diff(kind, resource, &done);
    assert!(saved.is_met() && saved.actions.is_empty(), "{saved:?}");
    assert!(kind.can_read_before(&first.before), "{}", first.before);
    let undo = kind.undo(
        resource,
        &first.before,
        &answers(resource, &done, Some(&done)),
    );
    let back = patched(&done, &edits(&undo));
    let undone = kind.undo(
        resource,
        &first.before,
        &answers(resource, &back, Some(&back)),
    );
    assert!(undone.is_met() && undone.actions.is_empty(), "{undone:?}");
    back
}

fn lines(diff: &ResourceDiff) -> Vec<String> {
    let edits = SwitchEdit::eos(&edits(diff));
    let of = |(section, lines): (&[String], Vec<&str>)| {
        let below = section.get(1..).unwrap_or_default().join(": ");
        lines
            .into_iter()
            .map(|line| format!("{below} {line}").trim().to_owned())
            .collect::<Vec<_>>()
    };
    group_commands_by_section(&edits)
        .into_iter()
        .flat_map(of)
        .collect()
}

#[test]
fn the_class_of_the_fabric_on_a_port_as_it_is_delivered() {
    let config = model(&[]);
    let first = diff(&SwitchQos, &qos(), &config);
    let desired = [
        "priority-flow-control on",
        "priority-flow-control pause watchdog",
        "priority-flow-control pause watchdog port action drop",
        "priority-flow-control pause watchdog port timer timeout 0.2 polling-interval auto \
         recovery-time 0.2",
        "priority-flow-control priority 3 no-drop",
        "qos trust dscp",
        "[uc-]tx-queue 3 bandwidth guaranteed 100",
    ];
    assert_eq!(lines(&first), desired);
    assert_eq!(
        (first.disruption, first.transaction.as_deref()),
        (Disruption::Reload, Some("switch"))
    );
    assert!(
        first.interrupts[0].starts_with("Ethernet1/1 may lose packets"),
        "{:?}",
        first.interrupts
    );
    assert_eq!(pruned(&round(&SwitchQos, &qos(), &config)), pruned(&config));
    // A routed port trusts DSCP from the start, and a switch that has queues by one word is set by
    // that.
    let routed = model(&[
        "interface Ethernet1/1: no switchport",
        "interface Ethernet1/2: tx-queue 1: bandwidth percent 5",
    ]);
    let said = lines(&diff(&SwitchQos, &qos(), &routed));
    assert!(
        !said.contains(&"qos trust dscp".to_owned())
            && said.contains(&"tx-queue 3 bandwidth guaranteed 100".to_owned()),
        "{said:?}"
    );
}

#[test]
fn what_a_profile_says_counts_and_is_never_edited() {
    let profile = [
        "interface Ethernet1/1: service-profile ROCE",
        "qos profile ROCE: qos trust dscp",
        "qos profile ROCE: priority-flow-control on",
        "qos profile ROCE: priority-flow-control priority 3 no-drop",
        "qos profile ROCE: uc-tx-queue 3: bandwidth guaranteed 100",
        "qos profile ROCE: uc-tx-queue 3: random-detect ecn minimum-threshold 1000000 bytes \
         maximum-threshold 2000000 bytes max-mark-probability 10 weight 0",
        "priority-flow-control pause watchdog default timeout 0.20",
        "priority-flow-control pause watchdog default recovery-time 0.20",
        "priority-flow-control pause watchdog action drop",
    ];
    let config = model(&profile);
    for (kind, resource) in [
        (&SwitchQos as &dyn ResourceKind, qos()),
        (&SwitchEcn, ecn(1_000_000, 2_000_000, 10)),
    ] {
        let found = diff(kind, &resource, &config);
        assert!(found.is_met() && found.actions.is_empty(), "{found:?}");
    }
    let held = diff(&SwitchEcn, &ecn(1, 2, 3), &config)
        .refusal
        .unwrap_or_default();
    assert!(
        held.contains(
            "has the QoS profile ROCE, which says `random-detect ecn minimum-threshold 1000000"
        ),
        "{held}"
    );
    assert!(
        held.contains(
            "say `random-detect ecn minimum-threshold 1 bytes maximum-threshold 2 bytes \
             max-mark-probability 3` there"
        ),
        "{held}"
    );
    // In kilobytes nobody knows how many bytes are meant.
    let kilo = model(&[
        "interface Ethernet1/1: uc-tx-queue 3: random-detect ecn minimum-threshold 256 kbytes \
         maximum-threshold 512 kbytes max-mark-probability 100",
    ]);
    assert_eq!(
        lines(&diff(&SwitchEcn, &ecn(256_000, 512_000, 100), &kilo)).len(),
        1
    );
    assert_eq!(
        pruned(&round(&SwitchEcn, &ecn(256_000, 512_000, 100), &kilo)),
        pruned(&kilo)
    );
}

#[test]
fn a_port_that_does_not_run_is_gone_only_where_nothing_of_it_is_saved() {
    let (resource, config) = (ecn(1000, 2000, 10), model(&[]));
    let first = diff(&SwitchEcn, &resource, &config);
    let done = patched(&config, &edits(&first));
    let empty = Model::new();
    let without = Model::from([(Vec::new(), vec!["interface Ethernet1/2".to_owned()])]);
    let undo = |running, saved| {
        let answers = answers(&resource, running, Some(saved));
        SwitchEcn.undo(&resource, &first.before, &answers)
    };
    for (running, saved) in [(&empty, &done), (&empty, &empty), (&without, &done)] {
        let undo = undo(running, saved);
        assert!(undo.only_unknown() && undo.residue.is_empty(), "{undo:?}");
    }
    let undo = undo(&without, &without);
    assert!(undo.is_met() && undo.residue.len() == 1, "{undo:?}");
}

/// The resources of one port go out together, and are undone one after the other.
#[test]
fn the_resources_of_a_port_fit_together() {
    let config = model(&[
        "interface Ethernet1/1: mtu 1500",
        "interface Ethernet1/1: priority-flow-control priority 4 no-drop",
        "interface Ethernet1/1: uc-tx-queue 6: no priority",
    ]);
    let resources = [
        (
            &SwitchPort as &dyn ResourceKind,
            port(&json!({ "mtu": 9000 })),
        ),
        (&SwitchQos, qos()),
        (&SwitchEcn, ecn(1000, 2000, 10)),
    ];
    let firsts = resources
        .clone()
        .map(|(kind, resource)| diff(kind, &resource, &config));
    let all: Vec<SwitchEdit> = firsts.iter().flat_map(edits).collect();
    let done = patched(&config, &all);
    let mut back = done.clone();
    for ((kind, resource), first) in resources.iter().zip(&firsts) {
        assert!(diff(*kind, resource, &done).is_met());
        back = patched(
            &back,
            &edits(&kind.undo(
                resource,
                &first.before,
                &answers(resource, &back, Some(&back)),
            )),
        );
    }
    assert_eq!(pruned(&back), pruned(&config));
}

#[test]
fn a_map_that_nobody_set_is_told_and_stays() {
    let body = json!({ "system": "eos", "port": PORT, "priority": 5, "dscp": 10 });
    let resource = resource(&SwitchQos, body);
    let first = diff(&SwitchQos, &resource, &model(&[]));
    assert_eq!(lines(&first)[0], "qos map dscp 10 to traffic-class 5");
    assert!(
        first
            .interrupts
            .iter()
            .any(|line| line.starts_with("all ports that trust DSCP go by the new map")),
        "{:?}",
        first.interrupts
    );
    let done = patched(&model(&[]), &edits(&first));
    let undo = SwitchQos.undo(
        &resource,
        &first.before,
        &answers(&resource, &done, Some(&done)),
    );
    assert_eq!(
        undo.residue,
        [
            "qos map dscp 10 to traffic-class 5 stays: other ports may need it (`no qos map dscp \
             10`)"
        ]
    );
    let held = diff(
        &SwitchQos,
        &resource,
        &model(&["qos map dscp 9 10 to traffic-class 1"]),
    )
    .refusal
    .unwrap_or_default();
    assert!(
        held.starts_with(
            "DSCP 10 has class 1 on all ports of this switch (`qos map dscp 9 10 to traffic-class \
             1`)"
        ),
        "{held}"
    );
}

#[test]
fn ports_go_round_and_stay_up() {
    let config = model(&[
        "interface Ethernet1/1: shutdown",
        "interface defaults: mtu 9000",
    ]);
    let done = round(
        &SwitchPort,
        &port(&json!({ "mtu": 9214, "up": true })),
        &config,
    );
    assert_eq!(
        pruned(&done),
        pruned(&model(&["interface defaults: mtu 9000"])),
        "it stays up"
    );
    assert!(
        diff(&SwitchPort, &port(&json!({ "mtu": 9000 })), &config).is_met(),
        "the default of all counts"
    );
    assert_eq!(
        SwitchPort
            .check(&json!({ "system": "eos", "port": PORT, "mtu": 9216 }))
            .len(),
        1
    );
}

#[test]
fn what_cannot_be_had_is_held_with_its_reason() {
    let said = |kind: &dyn ResourceKind, resource: &DesiredResource, lines: &[&str]| {
        diff(kind, resource, &model(lines))
            .refusal
            .unwrap_or_default()
    };
    let of_qos = |line: &str| said(&SwitchQos, &qos(), &[line]);
    assert!(
        of_qos("qos map traffic-class 3 to tx-queue 1")
            .starts_with("packets of class 3 leave by queue 1")
    );
    assert!(
        of_qos("priority-flow-control all off")
            .starts_with("PFC is off on all ports of this switch")
    );
    assert!(
        of_qos("interface Ethernet1/1: service-policy type qos input P")
            .starts_with("`service-policy type qos input P` decides")
    );
    assert!(
        of_qos("interface Ethernet1/1: uc-tx-queue 7: no priority")
            .starts_with("queue 7 of Ethernet1/1 is served in turn")
    );
    let forward = json!({ "system": "eos", "port": PORT, "priority": 3, "dscp": 26, "watchdog_detection_ms": 200, "watchdog_action": "forward" });
    assert!(
        said(&SwitchQos, &resource(&SwitchQos, forward), &[]).contains("cannot be set to forward")
    );
    let mtu = port(&json!({ "mtu": 9000 }));
    assert!(
        said(&SwitchPort, &mtu, &["interface Ethernet1/1: l2 mtu 1500"])
            .starts_with("`l2 mtu 1500` of Ethernet1/1 lets no packet")
    );
    let other = resource(
        &SwitchPort,
        json!({ "system": "eos", "port": "Ethernet9/1", "mtu": 9000 }),
    );
    assert_eq!(
        said(&SwitchPort, &other, &[]),
        "the switch has no port Ethernet9/1; it has Ethernet1/[1-2]"
    );
    let cable =
        SwitchBuffer.check(&json!({ "system": "eos", "port": PORT, "cable_m": 5, "priority": 3 }));
    assert_eq!(
        cable[0].message,
        "EOS has no setting for the length of a cable"
    );
    let reads = SwitchPort.reads(&mtu);
    let unknown = SwitchPort.diff(&mtu, &answered(&[(&reads[0], 69, ""), (&reads[1], 0, "%")]));
    assert!(
        unknown.only_unknown() && unknown.actions.is_empty(),
        "{unknown:?}"
    );
}

fn configs() -> impl Strategy<Value = Model> {
    let section = proptest::sample::select(vec![
        "interface Ethernet1/1",
        "interface Ethernet1/2",
        "qos profile P",
    ]);
    let queue = proptest::sample::select(vec!["QUEUE 3", "QUEUE 6", "QUEUE 7"]);
    let own = proptest::sample::select(vec![
        "qos trust dscp",
        "qos trust cos",
        "no qos trust",
        "no switchport",
        "priority-flow-control on",
        "priority-flow-control priority 3 no-drop",
        "priority-flow-control priority 4 no-drop",
        "priority-flow-control priority 3 drop",
        "priority-flow-control pause watchdog",
        "priority-flow-control pause watchdog port action no-drop",
        "mtu 9214",
        "l2 mtu 9000",
        "shutdown",
        "priority-flow-control pause watchdog port timer timeout 0.2 polling-interval auto \
         recovery-time 1.11 forced",
        "service-policy type qos input X",
    ]);
    let of_queue = proptest::sample::select(vec![
        "random-detect ecn minimum-threshold 1 bytes maximum-threshold 2 bytes \
         max-mark-probability 3",
        "random-detect ecn count",
        "random-detect ecn minimum-threshold 1 segments maximum-threshold 2 segments",
        "bandwidth guaranteed percent 10",
        "bandwidth percent 5",
        "no priority",
    ]);
    let global = proptest::sample::select(vec![
        "qos map dscp 26 to traffic-class 1",
        "qos map dscp 24-31 to traffic-class 3",
        "qos map traffic-class 3 to tx-queue 1",
        "priority-flow-control pause watchdog default timeout 0.2",
        "priority-flow-control pause watchdog default recovery-time 0.2",
        "priority-flow-control pause watchdog action drop",
        "interface Ethernet1/1: service-profile P",
    ]);
    let line = (section, queue, own, of_queue, global, 0u8..8).prop_map(
        |(section, queue, own, of_queue, global, kind)| match kind {
            0..4 => format!("{section}: {own}"),
            4..7 => format!("{section}: {queue}: {of_queue}"),
            _ => global.to_owned(),
        },
    );
    // One chip has one word for its queues.
    let word = proptest::sample::select(vec!["uc-tx-queue", "tx-queue"]);
    (proptest::collection::vec(line, 0..10), word).prop_map(|(lines, word)| {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| line.replace("QUEUE", word))
            .collect();
        model(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

proptest! {
    /// Whatever the configuration holds: the edits fit it and make what is desired, nothing of
    /// others is touched, and what is undone is the port's as it was.
    #[test]
    fn what_is_done_is_in_sync(config in configs()) {
        let resources = [(&SwitchQos as &dyn ResourceKind, qos()), (&SwitchEcn, ecn(1000, 2000, 10)), (&SwitchPort, port(&json!({ "mtu": 9000, "up": true })))];
        for (kind, resource) in resources {
            let first = diff(kind, &resource, &config);
            if first.refusal.is_none() && !first.is_met() {
                let done = patched(&config, &edits(&first));
                let after = diff(kind, &resource, &done);
                prop_assert!(after.is_met(), "{after:?}");
                for (section, lines) in &config {
                    if section.first().is_some_and(|first| first != &format!("interface {PORT}")) {
                        prop_assert_eq!(done.get(section), Some(lines));
                    }
                }
                let back = patched(&done, &edits(&kind.undo(&resource, &first.before, &answers(&resource, &done, Some(&done)))));
                let undone = kind.undo(&resource, &first.before, &answers(&resource, &back, Some(&back)));
                prop_assert!(undone.is_met(), "{undone:?}");
                if kind.name() != "switch_port" {
                    prop_assert_eq!(pruned(&back), pruned(&config));
                }
            }
        }
    }
}
