//! Findings that are identical but for names that count up together are one entry: rails that were
//! crossed on sixty hosts are one sentence.

use indexmap::IndexMap;
use railwright_base::nodeset::{self, mask_numbers, natural_order};
use railwright_knowledge::spec::cabling::{CableEnd, write};
use railwright_verify::cabling::{
    CablingFinding, CablingFindingKind, Plug, Silent, UnknownCableReason,
};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A plug in words: of one host, or of many in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlugDescription {
    /// The host, or the hosts.
    pub host: String,
    /// Its NIC, or its NICs.
    pub nic: String,
    /// Where it belongs: a switch and its ports.
    pub desired: Option<CableEnd>,
    /// Where it is.
    pub actual: Option<CableEnd>,
    /// Whose port that is.
    pub owner: Option<CableEnd>,
    /// The line of the file, where it is one.
    pub line: Option<u32>,
}

/// One or several findings.
#[derive(Debug, Clone)]
pub struct CablingEntry<'f> {
    /// The first of them.
    pub finding: &'f CablingFinding,
    /// Its plugs, each of one host or many.
    pub words: Vec<PlugDescription>,
    /// How many cables it is about, by hosts and NICs.
    pub count: usize,
}

/// The code of a finding: that of its kind, or why a device could not be reached.
pub fn select_finding_code(finding: &CablingFinding) -> &str {
    match &finding.why {
        Some(UnknownCableReason::Silent(Silent::Unreached(trouble))) => &trouble.code,
        _ => finding.kind.code(),
    }
}

/// One finding by itself.
pub fn build_single_entry(finding: &CablingFinding) -> CablingEntry<'_> {
    let count = finding.plugs.len();
    if matches!(finding.kind, CablingFindingKind::Silent) {
        let host = match finding.plugs.first() {
            Some(plug) => plug.end.device.clone(),
            None => String::new(),
        };
        return CablingEntry {
            finding,
            words: vec![PlugDescription {
                host,
                ..PlugDescription::default()
            }],
            count,
        };
    }
    CablingEntry {
        finding,
        words: finding.plugs.iter().map(describe_plug).collect(),
        count,
    }
}

fn describe_plug(plug: &Plug) -> PlugDescription {
    let Plug {
        end,
        desired,
        actual,
        owner,
        line,
    } = plug.clone();
    PlugDescription {
        host: end.device,
        nic: end.port,
        desired,
        actual,
        owner,
        line,
    }
}

/// All findings as entries, in the order of the first of each.
pub fn fold_cabling_findings(findings: &[CablingFinding]) -> Vec<CablingEntry<'_>> {
    let mut identical: IndexMap<String, Vec<&CablingFinding>> = IndexMap::new();
    for finding in findings {
        identical
            .entry(build_shape_key(finding))
            .or_default()
            .push(finding);
    }
    let mut entries = Vec::new();
    for members in identical.into_values() {
        match members[0].kind {
            CablingFindingKind::NoLink | CablingFindingKind::Unknown => {
                entries.extend(group_by_nics(&members))
            }
            CablingFindingKind::Silent => entries.push(merge_silent_findings(&members)),
            _ => {
                for run in split_into_runs(members) {
                    entries.push(fold_finding_run(&run));
                }
            }
        }
    }
    entries
}

/// What makes two findings the same entry.
fn build_shape_key(finding: &CablingFinding) -> String {
    let why = match &finding.why {
        Some(UnknownCableReason::Silent(silent)) => silent.shared_message(),
        Some(UnknownCableReason::Unclear { device, said }) => {
            format!("{device} {}", mask_numbers(said))
        }
        // a chassis is one machine's
        other => format!("{other:?}"),
    };
    if matches!(
        finding.kind,
        CablingFindingKind::NoLink | CablingFindingKind::Unknown | CablingFindingKind::Silent
    ) {
        return format!("{:?} {} {why}", finding.kind, select_finding_code(finding));
    }
    let first = finding.plugs.first().map(|plug| &plug.end.device);
    let plugs: Vec<String> = finding
        .plugs
        .iter()
        .map(|plug| build_plug_key(plug, first))
        .collect();
    format!("{:?} {plugs:?}", finding.kind)
}

/// What is the same of a plug in all findings of one shape; `first` is the device of their first
/// plug.
fn build_plug_key(plug: &Plug, first: Option<&String>) -> String {
    let own = &plug.end;
    let ports = [&plug.desired, &plug.actual].map(|end| {
        end.as_ref()
            .map(|end| (&end.device, mask_numbers(&end.port)))
    });
    let devices = [Some(own), plug.owner.as_ref()].map(|end| {
        end.map(|end| {
            (
                Some(&end.device) == first,
                mask_numbers(&end.device),
                &end.port,
            )
        })
    });
    format!("{devices:?} {ports:?}")
}

/// The names of a finding that may differ from those of another with the same shape.
fn list_varying_names(finding: &CablingFinding) -> Vec<&str> {
    let mut out = Vec::new();
    for plug in &finding.plugs {
        out.push(plug.end.device.as_str());
        for end in [&plug.desired, &plug.actual].into_iter().flatten() {
            out.push(end.port.as_str());
        }
        if let Some(owner) = &plug.owner {
            out.push(owner.device.as_str());
        }
    }
    out
}

/// Findings of one shape, parted so that in each part every name is the same, or counts up with the
/// hosts.
fn split_into_runs(mut members: Vec<&CablingFinding>) -> Vec<Vec<&CablingFinding>> {
    members.sort_by(|a, b| natural_order(list_varying_names(a)[0], list_varying_names(b)[0]));
    let mut runs: Vec<(Option<Vec<Ordering>>, Vec<&CablingFinding>)> = Vec::new();
    for member in members {
        if let Some((known, run)) = runs.last_mut()
            && let Some(last) = run.last()
        {
            let steps = compare_varying_names(last, member);
            if steps.iter().all(|step| step.is_le())
                && known.as_ref().is_none_or(|known| *known == steps)
            {
                *known = Some(steps);
                run.push(member);
                continue;
            }
        }
        runs.push((None, vec![member]));
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

fn compare_varying_names(last: &CablingFinding, next: &CablingFinding) -> Vec<Ordering> {
    let mut steps = Vec::new();
    for (last, next) in list_varying_names(last)
        .iter()
        .zip(list_varying_names(next))
    {
        steps.push(natural_order(last, next));
    }
    steps
}

/// A run as one entry.
fn fold_finding_run<'f>(run: &[&'f CablingFinding]) -> CablingEntry<'f> {
    let one = build_single_entry(run[0]);
    if run.len() == 1 {
        return one;
    }
    let mut words = Vec::new();
    for (place, first) in one.words.into_iter().enumerate() {
        let plugs: Vec<&Plug> = run
            .iter()
            .filter_map(|finding| finding.plugs.get(place))
            .collect();
        words.push(fold_plugs(&plugs, first));
    }
    let count = run.iter().map(|finding| finding.plugs.len()).sum();
    CablingEntry {
        finding: one.finding,
        words,
        count,
    }
}

/// The plugs at one place of a run's findings as one, with the names of all of them; `first` says
/// the first.
fn fold_plugs(plugs: &[&Plug], first: PlugDescription) -> PlugDescription {
    let hosts: Vec<&str> = plugs.iter().map(|plug| plug.end.device.as_str()).collect();
    let mut words = PlugDescription {
        host: nodeset::fold_node_set(&hosts),
        line: None,
        ..first
    };
    if let Some(desired) = &mut words.desired {
        desired.port = fold_end_ports(plugs.iter().filter_map(|plug| plug.desired.as_ref()));
    }
    if let Some(actual) = &mut words.actual {
        actual.port = fold_end_ports(plugs.iter().filter_map(|plug| plug.actual.as_ref()));
    }
    if let Some(owner) = &mut words.owner {
        let owners = plugs.iter().filter_map(|plug| plug.owner.as_ref());
        let devices: Vec<&str> = owners.map(|owner| owner.device.as_str()).collect();
        owner.device = nodeset::fold_node_set(&devices);
    }
    words
}

fn fold_end_ports<'a>(ends: impl Iterator<Item = &'a CableEnd>) -> String {
    let mut ports: Vec<&str> = ends.map(|end| end.port.as_str()).collect();
    ports.dedup();
    write::fold_port_names(&ports)
}

/// Findings with nothing to be moved: NICs of the same hosts together.
fn group_by_nics<'f>(members: &[&'f CablingFinding]) -> Vec<CablingEntry<'f>> {
    let mut hosts: IndexMap<&str, Vec<&'f CablingFinding>> = IndexMap::new();
    for finding in members {
        if let Some(plug) = finding.plugs.first() {
            hosts.entry(&plug.end.port).or_default().push(*finding);
        }
    }
    let mut nics: IndexMap<(String, BTreeSet<&str>), Vec<&'f CablingFinding>> = IndexMap::new();
    for (nic, findings) in hosts {
        let devices: BTreeSet<&str> = findings
            .iter()
            .flat_map(|finding| &finding.plugs)
            .map(|plug| plug.end.device.as_str())
            .collect();
        nics.entry((mask_numbers(nic), devices))
            .or_default()
            .extend(findings);
    }
    nics.into_values()
        .map(|findings| merge_link_findings(&findings))
        .collect()
}

fn merge_link_findings<'f>(findings: &[&'f CablingFinding]) -> CablingEntry<'f> {
    if findings.len() == 1 {
        return build_single_entry(findings[0]);
    }
    let (mut hosts, mut nics) = (Vec::new(), Vec::new());
    for plug in findings.iter().flat_map(|finding| &finding.plugs) {
        hosts.push(&plug.end.device);
        nics.push(&plug.end.port);
    }
    let words = PlugDescription {
        host: nodeset::fold_node_set(&hosts),
        nic: nodeset::fold_node_set(&nics),
        ..PlugDescription::default()
    };
    CablingEntry {
        finding: findings[0],
        words: vec![words],
        count: hosts.len(),
    }
}

fn merge_silent_findings<'f>(members: &[&'f CablingFinding]) -> CablingEntry<'f> {
    let mut hosts = Vec::new();
    for plug in members.iter().filter_map(|finding| finding.plugs.first()) {
        hosts.push(&plug.end.device);
    }
    CablingEntry {
        finding: members[0],
        words: vec![PlugDescription {
            host: nodeset::fold_node_set(&hosts),
            ..PlugDescription::default()
        }],
        count: hosts.len(),
    }
}
