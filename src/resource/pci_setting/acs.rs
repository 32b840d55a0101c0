//! Access Control Services of the bridges above GPUs and NICs. With its redirection on, what a GPU
//! and a NIC say to each other goes up to the root complex and through the IOMMU, and not across
//! the switch that they share.
//!
//! `off` clears all seven bits of the control word, as NVIDIA's guide has it (NVIDIA/nccl:
//! docs/userguide/source/troubleshooting/ gpu_troubleshooting.rst); `redirect-off` clears request
//! redirect, completion redirect and egress control, as the kernel's `pci=disable_acs_redir=` does
//! (drivers/pci/pci.c), and leaves source validation and the rest as they are.

use super::config::{ACS_ALL, ACS_REDIRECT, acs_words, is_address};
use super::found::{PciBridgeTree, read_bridge_tree};
use super::script::{self, PciRegister, PciWrite};
use super::{
    PersistenceUnit, build_kept_setting_diff, build_uniform_diff, check_addresses, check_netdevs,
    parse_name_list, refuse_if_unwritable, wait_or_refuse,
};
use crate::fields::Fields;
use crate::host;
use crate::keeper::Trigger;
use crate::{
    Action, Assessment, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const MODES: [(&str, u16); 2] = [("off", ACS_ALL), ("redirect-off", ACS_REDIRECT)];

pub(super) fn check_acs_body(fields: &mut Fields<'_>) {
    if let Some(mode) = fields
        .text("acs", true)
        .filter(|mode| MODES.iter().all(|(name, _)| name != mode))
    {
        fields.error(
            "/acs",
            format!("`{mode}` is no way to set ACS"),
            Some("off or redirect-off".to_owned()),
        );
    }
    for field in ["netdev", "address"] {
        if fields.get(field).is_some() {
            let help =
                Some("`netdevs` for the bridges above NICs, `bridges` for addresses".to_owned());
            fields.error(
                &format!("/{field}"),
                format!("`{field}` belongs to `max_read_request`"),
                help,
            );
        }
    }
    match (
        fields.get("netdevs").is_some(),
        fields.get("bridges").is_some(),
    ) {
        (true, false) => check_netdevs(fields),
        (false, true) => check_addresses(fields, "bridges"),
        _ => fields.error(
            "",
            "the bridges are those above `netdevs` and the GPUs, or named in `bridges`",
            None,
        ),
    }
}

fn find_acs_mode(wish: &DesiredResource) -> (&str, u16) {
    let wanted = wish.text("acs").unwrap_or_default();
    MODES
        .into_iter()
        .find(|(name, _)| *name == wanted)
        .unwrap_or((wanted, 0))
}

pub(super) fn build_acs_unit(wish: &DesiredResource) -> PersistenceUnit {
    let (name, mask) = find_acs_mode(wish);
    let commands = script::keep_acs(
        name,
        mask,
        &parse_name_list(wish, "netdevs"),
        &parse_name_list(wish, "bridges"),
    );
    PersistenceUnit::new("pci-setting", "acs", Trigger::PciBridge, &commands)
}

/// The bridges that are meant; why it is not applicable, or what is missing, as the error.
fn select_bridges(
    wish: &DesiredResource,
    tree: &PciBridgeTree,
    answers: &ReadResults,
) -> Result<BTreeSet<String>, Reading> {
    let named: BTreeSet<String> = parse_name_list(wish, "bridges").into_iter().collect();
    if let Some(absent) = named.iter().find(|bridge| !tree.has(bridge)) {
        return Err(Reading::is(format!("no bridge {absent}")));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let facts = host::decode_host_facts(answers).map_err(Reading::Unknown)?;
    if !matches!(facts.virtualization.as_str(), "" | "none") {
        let reason = "a virtual machine needs ACS, and the switches are its host's".to_owned();
        return Err(Reading::NotApplicable(reason.into()));
    }
    let netdevs = parse_name_list(wish, "netdevs");
    match tree.lacks(&netdevs) {
        Some(absent) => Err(Reading::is(format!("no PCI device below {absent}"))),
        None => Ok(tree.above(&netdevs)),
    }
}

pub(super) fn diff_acs(wish: &DesiredResource, answers: &ReadResults) -> Assessment {
    let (name, mask) = find_acs_mode(wish);
    let wanted = Reading::is(name);
    let tree = match read_bridge_tree(answers) {
        Ok(tree) => tree,
        Err(reason) => return build_uniform_diff("acs", &wanted, &Reading::Unknown(reason)),
    };
    let bridges = match select_bridges(wish, &tree, answers) {
        Ok(bridges) => bridges,
        Err(Reading::Is(absent)) => {
            let mut assessment = build_uniform_diff("acs", &wanted, &Reading::Absent);
            wait_or_refuse(
                wish,
                format!("there is {}", absent.as_str().unwrap_or_default()).into(),
                &mut assessment,
            );
            return assessment;
        }
        Err(reading) => return build_uniform_diff("acs", &wanted, &reading),
    };
    let words = match tree.acs(&bridges) {
        Err(reason) => return build_uniform_diff("acs", &wanted, &Reading::Unknown(reason)),
        Ok(words) if words.is_empty() => {
            let reason = "no bridge above the GPUs and NICs has ACS".to_owned();
            return build_uniform_diff("acs", &wanted, &Reading::NotApplicable(reason.into()));
        }
        Ok(words) => words,
    };
    diff_acs_control_words(wish, answers, &tree, &words, mask)
}

fn diff_acs_control_words(
    wish: &DesiredResource,
    answers: &ReadResults,
    tree: &PciBridgeTree,
    words: &BTreeMap<String, u16>,
    mask: u16,
) -> Assessment {
    let (name, _) = find_acs_mode(wish);
    let wanted = Reading::is(name);
    let on: BTreeMap<&String, u16> = words
        .iter()
        .filter(|(_, word)| **word & mask != 0)
        .map(|(bridge, word)| (bridge, *word))
        .collect();
    let found = if on.is_empty() {
        wanted.clone()
    } else {
        Reading::is(describe_acs_control_words(&on))
    };
    let keeper = build_acs_unit(wish);
    let kept = keeper.kept(answers);
    let mut assessment = build_kept_setting_diff("acs", &wanted, &found, &keeper, &kept);
    assessment.before = json!({ "bridges": words });
    let Ok(kept) = kept else { return assessment };
    if assessment.is_met() || assessment.has_unknown() {
        return assessment;
    }
    let all: BTreeSet<String> = words.keys().cloned().collect();
    if let Some(passed) = tree.passed_below(&all) {
        assessment.refusal = Some(format!(
            "{passed} is lent to a virtual machine or a program (vfio), and ACS is what keeps it \
             from reaching the other devices: take it back first, or leave ACS alone on this host"
        ));
        return assessment;
    }
    if refuse_if_unwritable(wish, answers, tree.means, &mut assessment) {
        return assessment;
    }
    assessment.actions = keeper.write(&kept);
    if !on.is_empty() {
        let writes = on
            .keys()
            .map(|bridge| build_acs_write(bridge, 0, mask))
            .collect();
        assessment.actions.push(Action::SetPci { writes });
        record_acs_disruption(
            &mut assessment,
            "devices below these bridges reach each other past the IOMMU: nothing of this host can \
             be lent to a virtual machine",
        );
    }
    assessment
}

fn build_acs_write(bridge: &str, value: u16, mask: u16) -> PciWrite {
    PciWrite {
        address: bridge.to_owned(),
        register: PciRegister::AcsControl,
        value,
        mask,
    }
}

/// `0000:3a:00.0 ReqRedir+CmpltRedir, 0000:3a:01.0 ...`.
fn describe_acs_control_words(on: &BTreeMap<&String, u16>) -> String {
    on.iter()
        .map(|(bridge, word)| format!("{bridge} {}", acs_words(*word)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn record_acs_disruption(assessment: &mut Assessment, words: &str) {
    assessment.disruption = Disruption::Reload;
    assessment.interrupts = vec![words.to_owned()];
}

/// The words of before come back on the bridges that are still there.
pub(super) fn plan_acs_undo(before: &Value, answers: &ReadResults, assessment: &mut Assessment) {
    let old: BTreeMap<String, u16> = before
        .get("bridges")
        .and_then(|bridges| serde_json::from_value(bridges.clone()).ok())
        .unwrap_or_default();
    let bridges = old
        .keys()
        .filter(|bridge| is_address(bridge))
        .cloned()
        .collect();
    let now = read_bridge_tree(answers).and_then(|tree| Ok((tree.acs(&bridges)?, tree.means)));
    let (Ok((now, means)), false) = (now, old.is_empty()) else {
        assessment.residue = vec!["ACS stays as it is until the next reboot".to_owned()];
        return;
    };
    let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
    let mut writes: Vec<PciWrite> = Vec::new();
    for (bridge, word) in &now {
        there.insert(bridge, *word);
        let Some(earlier) = old.get(bridge).map(|earlier| earlier & ACS_ALL) else {
            continue;
        };
        back.insert(bridge, earlier);
        if earlier != *word {
            writes.push(build_acs_write(bridge, earlier, ACS_ALL));
        }
    }
    if !writes.is_empty() && !means.can_write() {
        assessment.residue =
            vec!["ACS stays as it is until the next reboot: nothing here can write it".to_owned()];
        return;
    }
    let attribute = Attribute::in_plane(
        Plane::Running,
        Reading::is(describe_acs_control_words(&back)),
        Reading::is(describe_acs_control_words(&there)),
    );
    assessment.attributes.insert("acs".to_owned(), attribute);
    if !writes.is_empty() {
        assessment.actions.push(Action::SetPci { writes });
        record_acs_disruption(
            assessment,
            "what GPUs and NICs say to each other takes the way through the root complex again",
        );
    }
}
