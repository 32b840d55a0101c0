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
    PciSettingBody, PersistenceUnit, PriorPciSetting, build_kept_setting_diff, build_uniform_diff,
    refuse_if_unwritable, wait_or_refuse,
};
use crate::host;
use crate::keeper::Trigger;
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading, ResourceDiff,
};
use railwright_base::Reason;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How ACS is set.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AcsMode {
    Off,
    RedirectOff,
}

impl AcsMode {
    fn word(self) -> &'static str {
        match self {
            AcsMode::Off => "off",
            AcsMode::RedirectOff => "redirect-off",
        }
    }

    /// The bits of the control word that are cleared.
    fn mask(self) -> u16 {
        match self {
            AcsMode::Off => ACS_ALL,
            AcsMode::RedirectOff => ACS_REDIRECT,
        }
    }
}

pub(super) fn build_acs_unit(body: &PciSettingBody, mode: AcsMode) -> PersistenceUnit {
    let bridges = Vec::from_iter(body.bridges.iter().flatten().cloned());
    let commands = script::keep_acs(mode.word(), mode.mask(), &body.list_netdevs(), &bridges);
    PersistenceUnit::new("pci-setting", "acs", Trigger::PciBridge, &commands)
}

/// The bridges that are meant; why it is not applicable, or what is missing, as the error.
fn select_bridges(
    body: &PciSettingBody,
    tree: &PciBridgeTree,
    answers: &ReadResults,
) -> Result<BTreeSet<String>, Reading> {
    let named = body.bridges.clone().unwrap_or_default();
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
    let netdevs = body.list_netdevs();
    match tree.lacks(&netdevs) {
        Some(absent) => Err(Reading::is(format!("no PCI device below {absent}"))),
        None => Ok(tree.above(&netdevs)),
    }
}

pub(super) fn diff_acs(
    resource: &DesiredResource,
    body: &PciSettingBody,
    mode: AcsMode,
    answers: &ReadResults,
) -> ResourceDiff {
    let desired = Reading::is(mode.word());
    let tree = match read_bridge_tree(answers) {
        Ok(tree) => tree,
        Err(reason) => return build_uniform_diff("acs", &desired, &Reading::Unknown(reason)),
    };
    let bridges = match select_bridges(body, &tree, answers) {
        Ok(bridges) => bridges,
        Err(Reading::Is(absent)) => {
            let mut diff = build_uniform_diff("acs", &desired, &Reading::Absent);
            wait_or_refuse(
                resource,
                format!("there is {}", absent.as_str().unwrap_or_default()).into(),
                &mut diff,
            );
            return diff;
        }
        Err(reading) => return build_uniform_diff("acs", &desired, &reading),
    };
    let words = match tree.acs(&bridges) {
        Err(reason) => return build_uniform_diff("acs", &desired, &Reading::Unknown(reason)),
        Ok(words) if words.is_empty() => {
            let reason = "no bridge above the GPUs and NICs has ACS".to_owned();
            return build_uniform_diff("acs", &desired, &Reading::NotApplicable(reason.into()));
        }
        Ok(words) => words,
    };
    diff_acs_control_words(resource, body, mode, answers, &tree, &words)
}

fn diff_acs_control_words(
    resource: &DesiredResource,
    body: &PciSettingBody,
    mode: AcsMode,
    answers: &ReadResults,
    tree: &PciBridgeTree,
    words: &BTreeMap<String, u16>,
) -> ResourceDiff {
    let (desired, mask) = (Reading::is(mode.word()), mode.mask());
    let on: BTreeMap<&String, u16> = words
        .iter()
        .filter(|(_, word)| **word & mask != 0)
        .map(|(bridge, word)| (bridge, *word))
        .collect();
    let actual = if on.is_empty() {
        desired.clone()
    } else {
        Reading::is(describe_acs_control_words(&on))
    };
    let keeper = build_acs_unit(body, mode);
    let kept = keeper.kept(answers);
    let mut diff = build_kept_setting_diff("acs", &desired, &actual, &keeper, &kept);
    let before = PriorPciSetting::Bridges(words.clone());
    diff.before = serde_json::to_value(before).unwrap_or_default();
    let Ok(kept) = kept else { return diff };
    if diff.is_met() || diff.has_unknown() {
        return diff;
    }
    let all: BTreeSet<String> = words.keys().cloned().collect();
    if let Some(passed) = tree.passed_below(&all) {
        diff.refusal = Some(format!(
            "{passed} is lent to a virtual machine or a program (vfio), and ACS is what keeps it \
             from reaching the other devices: undo it first, or leave ACS alone on this host"
        ));
        return diff;
    }
    if refuse_if_unwritable(resource, body, answers, tree.means, &mut diff) {
        return diff;
    }
    diff.actions = keeper.write(&kept);
    if !on.is_empty() {
        let writes = on
            .keys()
            .map(|bridge| build_acs_write(bridge, 0, mask))
            .collect();
        diff.actions.push(Action::SetPci { writes });
        record_acs_disruption(
            &mut diff,
            "devices below these bridges reach each other past the IOMMU: nothing of this host can \
             be lent to a virtual machine",
        );
    }
    diff
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

fn record_acs_disruption(diff: &mut ResourceDiff, words: &str) {
    diff.disruption = Disruption::Reload;
    diff.interrupts = vec![words.to_owned()];
}

/// The words of before come back on the bridges that are still there. An error where those of now
/// are unknown.
pub(super) fn plan_acs_undo(
    before: &Value,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) -> Result<(), Reason> {
    let old = match PriorPciSetting::deserialize(before) {
        Ok(PriorPciSetting::Bridges(words)) => words,
        _ => BTreeMap::new(),
    };
    let bridges = old
        .keys()
        .filter(|bridge| is_address(bridge))
        .cloned()
        .collect();
    let tree = read_bridge_tree(answers)?;
    let now = tree.acs(&bridges)?;
    if old.is_empty() {
        diff.residue = vec!["ACS stays as it is until the next reboot".to_owned()];
        return Ok(());
    }
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
    if !writes.is_empty() && !tree.means.can_write() {
        diff.residue =
            vec!["ACS stays as it is until the next reboot: nothing here can write it".to_owned()];
        return Ok(());
    }
    let attribute = Attribute::in_plane(
        Plane::Running,
        Reading::is(describe_acs_control_words(&back)),
        Reading::is(describe_acs_control_words(&there)),
    );
    diff.attributes.insert("acs".to_owned(), attribute);
    if !writes.is_empty() {
        diff.actions.push(Action::SetPci { writes });
        record_acs_disruption(
            diff,
            "what GPUs and NICs say to each other takes the way through the root complex again",
        );
    }
    Ok(())
}
