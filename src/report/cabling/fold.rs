//! Findings that are alike but for names that count up together are one entry: rails that were crossed on sixty hosts are one sentence.

use indexmap::IndexMap;
use railwright_base::nodeset::{self, natural_order, pattern};
use railwright_knowledge::spec::cabling::{End, write};
use railwright_verify::cabling::{Finding, Kind, Plug, Silent, Why};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A plug in words: of one host, or of many in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The host, or the hosts.
    pub host: String,
    /// Its NIC, or its NICs.
    pub nic: String,
    /// Where it belongs: a switch and its ports.
    pub wanted: Option<End>,
    /// Where it is.
    pub found: Option<End>,
    /// Whose port that is.
    pub owner: Option<End>,
    /// The line of the file, where it is one.
    pub line: Option<u32>,
}

/// One or several findings.
#[derive(Debug, Clone)]
pub struct Entry<'f> {
    /// The first of them.
    pub finding: &'f Finding,
    /// Its plugs, each of one host or many.
    pub words: Vec<Words>,
    /// How many cables it is about, by hosts and NICs.
    pub count: usize,
}

/// The code of a finding: that of its kind, or why a device could not be reached.
pub fn code(finding: &Finding) -> &str {
    match &finding.why {
        Some(Why::Silent(Silent::Unreached(trouble))) => &trouble.code,
        _ => finding.kind.code(),
    }
}

/// One finding by itself.
pub fn single(finding: &Finding) -> Entry<'_> {
    let count = finding.plugs.len();
    if matches!(finding.kind, Kind::Silent) {
        let host = finding.plugs.first().map_or(String::new(), |plug| plug.end.device.clone());
        return Entry { finding, words: vec![Words { host, ..Words::default() }], count };
    }
    Entry { finding, words: finding.plugs.iter().map(of_plug).collect(), count }
}

fn of_plug(plug: &Plug) -> Words {
    let Plug { end, wanted, found, owner, line } = plug.clone();
    Words { host: end.device, nic: end.port, wanted, found, owner, line }
}

/// All findings as entries, in the order of the first of each.
pub fn entries(findings: &[Finding]) -> Vec<Entry<'_>> {
    let mut alike: IndexMap<String, Vec<&Finding>> = IndexMap::new();
    for finding in findings {
        alike.entry(shape(finding)).or_default().push(finding);
    }
    let mut entries = Vec::new();
    for (_, members) in alike {
        match members[0].kind {
            Kind::NoLink | Kind::Unknown => entries.extend(by_nics(&members)),
            Kind::Silent => entries.push(silent(&members)),
            _ => entries.extend(runs(members).iter().map(|run| moved(run))),
        }
    }
    entries
}

/// What makes two findings the same entry.
fn shape(finding: &Finding) -> String {
    let why = match &finding.why {
        Some(Why::Silent(silent)) => silent.alike(),
        Some(Why::Unclear { device, said }) => format!("{device} {}", pattern(said)),
        // a chassis is one machine's
        other => format!("{other:?}"),
    };
    if matches!(finding.kind, Kind::NoLink | Kind::Unknown | Kind::Silent) {
        return format!("{:?} {} {why}", finding.kind, code(finding));
    }
    let first = finding.plugs.first().map(|plug| &plug.end.device);
    let there = |end: &Option<End>| end.as_ref().map(|end| (end.device.clone(), pattern(&end.port)));
    let owner = |end: &Option<End>| end.as_ref().map(|end| (Some(&end.device) == first, pattern(&end.device), end.port.clone()));
    let plug = |plug: &Plug| {
        let is_first = Some(&plug.end.device) == first;
        (is_first, pattern(&plug.end.device), plug.end.port.clone(), there(&plug.wanted), there(&plug.found), owner(&plug.owner))
    };
    format!("{:?} {:?}", finding.kind, finding.plugs.iter().map(plug).collect::<Vec<_>>())
}

/// The names of a finding that may differ from those of another with the same shape.
fn columns(finding: &Finding) -> Vec<&str> {
    let mut out = Vec::new();
    for plug in &finding.plugs {
        out.push(plug.end.device.as_str());
        out.extend([&plug.wanted, &plug.found].into_iter().flatten().map(|end| end.port.as_str()));
        out.extend(plug.owner.as_ref().map(|end| end.device.as_str()));
    }
    out
}

/// Findings of one shape, parted so that in each part every name is the same, or counts up with the hosts.
fn runs(mut members: Vec<&Finding>) -> Vec<Vec<&Finding>> {
    members.sort_by(|a, b| natural_order(columns(a)[0], columns(b)[0]));
    let mut runs: Vec<(Option<Vec<Ordering>>, Vec<&Finding>)> = Vec::new();
    for member in members {
        let steps = runs.last().and_then(|(_, run)| run.last()).map(|last| {
            let pairs = columns(last).into_iter().zip(columns(member));
            pairs.map(|(last, next)| natural_order(last, next)).collect::<Vec<_>>()
        });
        match (runs.last_mut(), steps) {
            (Some((known, run)), Some(steps))
                if steps.iter().all(|step| step.is_le()) && known.as_ref().is_none_or(|known| *known == steps) =>
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
fn moved<'f>(run: &[&'f Finding]) -> Entry<'f> {
    let one = single(run[0]);
    if run.len() == 1 {
        return one;
    }
    let folded = |place: usize, of: &dyn Fn(&Plug) -> Option<String>, fold: fn(&[&str]) -> String| -> Option<String> {
        let names: Vec<String> = run.iter().filter_map(|finding| of(finding.plugs.get(place)?)).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.dedup();
        (!names.is_empty()).then(|| fold(&names))
    };
    let word = |place: usize, words: Words| {
        let port = |of: fn(&Plug) -> Option<&End>| folded(place, &|plug| Some(of(plug)?.port.clone()), write::ports);
        let owner = folded(place, &|plug| Some(plug.owner.as_ref()?.device.clone()), |names| nodeset::fold(names));
        Words {
            host: folded(place, &|plug| Some(plug.end.device.clone()), |names| nodeset::fold(names)).unwrap_or_default(),
            wanted: words.wanted.zip(port(|plug| plug.wanted.as_ref())).map(|(end, port)| End { port, ..end }),
            found: words.found.zip(port(|plug| plug.found.as_ref())).map(|(end, port)| End { port, ..end }),
            owner: words.owner.zip(owner).map(|(end, device)| End { device, ..end }),
            line: None,
            ..words
        }
    };
    let count = run.iter().map(|finding| finding.plugs.len()).sum();
    Entry { finding: one.finding, words: one.words.into_iter().enumerate().map(|(place, words)| word(place, words)).collect(), count }
}

/// Findings with nothing to be moved: NICs of the same hosts together.
fn by_nics<'f>(members: &[&'f Finding]) -> Vec<Entry<'f>> {
    let mut hosts: IndexMap<&str, Vec<&'f Finding>> = IndexMap::new();
    for (finding, plug) in members.iter().filter_map(|finding| Some((*finding, finding.plugs.first()?))) {
        hosts.entry(&plug.end.port).or_default().push(finding);
    }
    let mut nics: IndexMap<(String, BTreeSet<&str>), Vec<&'f Finding>> = IndexMap::new();
    for (nic, findings) in hosts {
        let of: BTreeSet<&str> = findings.iter().flat_map(|finding| &finding.plugs).map(|plug| plug.end.device.as_str()).collect();
        nics.entry((pattern(nic), of)).or_default().extend(findings);
    }
    nics.into_values().map(|findings| many(&findings)).collect()
}

fn many<'f>(findings: &[&'f Finding]) -> Entry<'f> {
    if findings.len() == 1 {
        return single(findings[0]);
    }
    let plugs: Vec<&Plug> = findings.iter().flat_map(|finding| &finding.plugs).collect();
    let names = |of: fn(&Plug) -> &str| plugs.iter().map(|plug| of(plug)).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let (hosts, nics) = (names(|plug| &plug.end.device), names(|plug| &plug.end.port));
    let words = Words { host: nodeset::fold(&hosts), nic: nodeset::fold(&nics), ..Words::default() };
    Entry { finding: findings[0], words: vec![words], count: plugs.len() }
}

fn silent<'f>(members: &[&'f Finding]) -> Entry<'f> {
    let hosts: Vec<&str> = members.iter().filter_map(|finding| finding.plugs.first()).map(|plug| plug.end.device.as_str()).collect();
    Entry { finding: members[0], words: vec![Words { host: nodeset::fold(&hosts), ..Words::default() }], count: hosts.len() }
}
