//! Findings that are alike but for names that count up together are one entry: rails that were
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
    pub wanted: Option<CableEnd>,
    /// Where it is.
    pub found: Option<CableEnd>,
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
        let host = finding
            .plugs
            .first()
            .map_or(String::new(), |plug| plug.end.device.clone());
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
        words: finding.plugs.iter().map(of_plug).collect(),
        count,
    }
}

fn of_plug(plug: &Plug) -> PlugDescription {
    let Plug {
        end,
        wanted,
        found,
        owner,
        line,
    } = plug.clone();
    PlugDescription {
        host: end.device,
        nic: end.port,
        wanted,
        found,
        owner,
        line,
    }
}

/// All findings as entries, in the order of the first of each.
pub fn fold_cabling_findings(findings: &[CablingFinding]) -> Vec<CablingEntry<'_>> {
    let mut alike: IndexMap<String, Vec<&CablingFinding>> = IndexMap::new();
    for finding in findings {
        alike
            .entry(build_shape_key(finding))
            .or_default()
            .push(finding);
    }
    let mut entries = Vec::new();
    for (_, members) in alike {
        match members[0].kind {
            CablingFindingKind::NoLink | CablingFindingKind::Unknown => {
                entries.extend(by_nics(&members))
            }
            CablingFindingKind::Silent => entries.push(merge_silent_findings(&members)),
            _ => entries.extend(
                split_into_runs(members)
                    .iter()
                    .map(|run| fold_finding_run(run)),
            ),
        }
    }
    entries
}

/// What makes two findings the same entry.
fn build_shape_key(finding: &CablingFinding) -> String {
    let why = match &finding.why {
        Some(UnknownCableReason::Silent(silent)) => silent.alike(),
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
    let there = |end: &Option<CableEnd>| {
        end.as_ref()
            .map(|end| (end.device.clone(), mask_numbers(&end.port)))
    };
    let owner = |end: &Option<CableEnd>| {
        end.as_ref().map(|end| {
            (
                Some(&end.device) == first,
                mask_numbers(&end.device),
                end.port.clone(),
            )
        })
    };
    let plug = |plug: &Plug| {
        let is_first = Some(&plug.end.device) == first;
        (
            is_first,
            mask_numbers(&plug.end.device),
            plug.end.port.clone(),
            there(&plug.wanted),
            there(&plug.found),
            owner(&plug.owner),
        )
    };
    format!(
        "{:?} {:?}",
        finding.kind,
        finding.plugs.iter().map(plug).collect::<Vec<_>>()
    )
}

/// The names of a finding that may differ from those of another with the same shape.
fn list_varying_names(finding: &CablingFinding) -> Vec<&str> {
    let mut out = Vec::new();
    for plug in &finding.plugs {
        out.push(plug.end.device.as_str());
        out.extend(
            [&plug.wanted, &plug.found]
                .into_iter()
                .flatten()
                .map(|end| end.port.as_str()),
        );
        out.extend(plug.owner.as_ref().map(|end| end.device.as_str()));
    }
    out
}

/// Findings of one shape, parted so that in each part every name is the same, or counts up with the
/// hosts.
fn split_into_runs(mut members: Vec<&CablingFinding>) -> Vec<Vec<&CablingFinding>> {
    members.sort_by(|a, b| natural_order(list_varying_names(a)[0], list_varying_names(b)[0]));
    let mut runs: Vec<(Option<Vec<Ordering>>, Vec<&CablingFinding>)> = Vec::new();
    for member in members {
        let steps = runs.last().and_then(|(_, run)| run.last()).map(|last| {
            let pairs = list_varying_names(last)
                .into_iter()
                .zip(list_varying_names(member));
            pairs
                .map(|(last, next)| natural_order(last, next))
                .collect::<Vec<_>>()
        });
        match (runs.last_mut(), steps) {
            (Some((known, run)), Some(steps))
                if steps.iter().all(|step| step.is_le())
                    && known.as_ref().is_none_or(|known| *known == steps) =>
            {
                *known = Some(steps);
                run.push(member);
            }
            _ => runs.push((None, vec![member])),
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

/// A run as one entry.
fn fold_finding_run<'f>(run: &[&'f CablingFinding]) -> CablingEntry<'f> {
    let one = build_single_entry(run[0]);
    if run.len() == 1 {
        return one;
    }
    let folded =
        |place: usize, of: &dyn Fn(&Plug) -> Option<String>, fold: fn(&[&str]) -> String| {
            fold_plug_names(run, place, of, fold)
        };
    let word = |place: usize, words: PlugDescription| {
        let port = |of: fn(&Plug) -> Option<&CableEnd>| {
            folded(
                place,
                &|plug| Some(of(plug)?.port.clone()),
                write::fold_port_names,
            )
        };
        let owner = folded(
            place,
            &|plug| Some(plug.owner.as_ref()?.device.clone()),
            |names| nodeset::fold_node_set(names),
        );
        PlugDescription {
            host: folded(place, &|plug| Some(plug.end.device.clone()), |names| {
                nodeset::fold_node_set(names)
            })
            .unwrap_or_default(),
            wanted: words
                .wanted
                .zip(port(|plug| plug.wanted.as_ref()))
                .map(|(end, port)| CableEnd { port, ..end }),
            found: words
                .found
                .zip(port(|plug| plug.found.as_ref()))
                .map(|(end, port)| CableEnd { port, ..end }),
            owner: words
                .owner
                .zip(owner)
                .map(|(end, device)| CableEnd { device, ..end }),
            line: None,
            ..words
        }
    };
    let count = run.iter().map(|finding| finding.plugs.len()).sum();
    CablingEntry {
        finding: one.finding,
        words: one
            .words
            .into_iter()
            .enumerate()
            .map(|(place, words)| word(place, words))
            .collect(),
        count,
    }
}

/// The names that `of` finds at this place of each finding, folded; nothing where there are none.
fn fold_plug_names(
    run: &[&CablingFinding],
    place: usize,
    of: &dyn Fn(&Plug) -> Option<String>,
    fold: fn(&[&str]) -> String,
) -> Option<String> {
    let names: Vec<String> = run
        .iter()
        .filter_map(|finding| of(finding.plugs.get(place)?))
        .collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.dedup();
    (!names.is_empty()).then(|| fold(&names))
}

/// Findings with nothing to be moved: NICs of the same hosts together.
fn by_nics<'f>(members: &[&'f CablingFinding]) -> Vec<CablingEntry<'f>> {
    let mut hosts: IndexMap<&str, Vec<&'f CablingFinding>> = IndexMap::new();
    for (finding, plug) in members
        .iter()
        .filter_map(|finding| Some((*finding, finding.plugs.first()?)))
    {
        hosts.entry(&plug.end.port).or_default().push(finding);
    }
    let mut nics: IndexMap<(String, BTreeSet<&str>), Vec<&'f CablingFinding>> = IndexMap::new();
    for (nic, findings) in hosts {
        let of: BTreeSet<&str> = findings
            .iter()
            .flat_map(|finding| &finding.plugs)
            .map(|plug| plug.end.device.as_str())
            .collect();
        nics.entry((mask_numbers(nic), of))
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
    let plugs: Vec<&Plug> = findings.iter().flat_map(|finding| &finding.plugs).collect();
    let names = |of: fn(&Plug) -> &str| {
        plugs
            .iter()
            .map(|plug| of(plug))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let (hosts, nics) = (names(|plug| &plug.end.device), names(|plug| &plug.end.port));
    let words = PlugDescription {
        host: nodeset::fold_node_set(&hosts),
        nic: nodeset::fold_node_set(&nics),
        ..PlugDescription::default()
    };
    CablingEntry {
        finding: findings[0],
        words: vec![words],
        count: plugs.len(),
    }
}

fn merge_silent_findings<'f>(members: &[&'f CablingFinding]) -> CablingEntry<'f> {
    let hosts: Vec<&str> = members
        .iter()
        .filter_map(|finding| finding.plugs.first())
        .map(|plug| plug.end.device.as_str())
        .collect();
    CablingEntry {
        finding: members[0],
        words: vec![PlugDescription {
            host: nodeset::fold_node_set(&hosts),
            ..PlugDescription::default()
        }],
        count: hosts.len(),
    }
}
