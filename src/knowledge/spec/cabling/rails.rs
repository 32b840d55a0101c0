//! What a cabling file may say and looks wrong: NICs without a cable, and rails that are not what
//! rails are for. Traffic of a rail stays on the leaf of that rail; a NIC on another leaf works,
//! and pays for it under load.
//!
//! Rails are checked where the spec means them as networks of their own (every rail has its subnet)
//! and every host of the group is cabled. Units of hosts with leaves of their own are a design, and
//! so are two rails of every host on a leaf where there are fewer leaves than rails.

use super::{COLUMNS, Cable};
use crate::spec::hosts::{Host, Rail};
use crate::spec::load::LoadedSpec;
use crate::spec::source::SourceText;
use ipnet::IpNet;
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, Label};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most lines that one warning points at.
const PLACES_MAX: usize = 4;

/// Where the rails of a host are plugged in: the cable of each rail.
struct CabledHost<'a> {
    host: &'a Host,
    cables: Vec<&'a Cable>,
}

impl CabledHost<'_> {
    /// The leaf of each rail.
    fn leaves(&self) -> Vec<&str> {
        self.cables
            .iter()
            .map(|cable| cable.to.device.as_str())
            .collect()
    }
}

/// The cables by host and NIC.
type CablesByNic<'a> = HashMap<(&'a str, &'a str), &'a Cable>;

fn find_rail_cable<'a>(
    by_nic: &CablesByNic<'a>,
    host: &'a Host,
    rail: &'a Rail,
) -> Option<&'a Cable> {
    by_nic.get(&(&*host.name, &*rail.port)).copied()
}

/// The cables of these hosts; nothing where a rail of one has none.
fn find_host_cables<'a>(
    hosts: &[&'a Host],
    by_nic: &CablesByNic<'a>,
) -> Option<Vec<CabledHost<'a>>> {
    let mut cabled = Vec::new();
    for &host in hosts {
        let mut cables = Vec::new();
        for rail in &host.netdevs {
            cables.push(find_rail_cable(by_nic, host, rail)?);
        }
        cabled.push(CabledHost { host, cables });
    }
    Some(cabled)
}

/// All warnings of a file that is sound.
pub fn find_cabling_warnings(
    loaded: &LoadedSpec,
    source: &SourceText,
    cables: &[Cable],
) -> Vec<Diagnostic> {
    let mut by_nic = CablesByNic::new();
    for cable in cables {
        by_nic.insert((&cable.from.device, &cable.from.port), cable);
    }
    let mut warnings = find_uncabled_nics(loaded, source, &by_nic);
    let mut cabled = Vec::new();
    for group in 0..loaded.spec.nodes.len() {
        let hosts = loaded.hosts.iter().filter(|host| host.group == group);
        let hosts: Vec<&Host> = hosts.collect();
        if let Some(of_group) = find_host_cables(&hosts, &by_nic)
            && are_networks(&hosts)
        {
            cabled.extend(of_group);
        }
    }
    warnings.extend(shared_leaves(source, &cabled));
    warnings.extend(find_stray_hosts(source, &cabled));
    warnings
}

/// Hosts and rails without a cable, said once for all that are identical.
fn find_uncabled_nics<'a>(
    loaded: &'a LoadedSpec,
    source: &SourceText,
    by_nic: &CablesByNic<'a>,
) -> Vec<Diagnostic> {
    let mut identical: BTreeMap<Option<Vec<&str>>, Vec<&str>> = BTreeMap::new();
    for host in &loaded.hosts {
        let mut without: Vec<&str> = Vec::new();
        for rail in &host.netdevs {
            if find_rail_cable(by_nic, host, rail).is_none() {
                without.push(&rail.port);
            }
        }
        if !without.is_empty() {
            let of_some = (without.len() < host.netdevs.len()).then_some(without);
            identical.entry(of_some).or_default().push(&host.name);
        }
    }
    let mut warnings = Vec::new();
    for (nics, hosts) in identical {
        warnings.push(describe_uncabled_nics(source, nics.as_deref(), &hosts));
    }
    warnings
}

/// The NICs of these hosts that have no cable; `nics` is nothing where none has one.
fn describe_uncabled_nics(
    source: &SourceText,
    nics: Option<&[&str]>,
    hosts: &[&str],
) -> Diagnostic {
    let verb = if hosts.len() == 1 { "has" } else { "have" };
    let hosts = one_line(&fold_node_set(hosts), 60);
    let what = match nics {
        Some(nics) => format!(" of {}", one_line(&fold_node_set(nics), 80)),
        None => String::new(),
    };
    let header = find_table_header(source);
    Diagnostic::warning("RW0157", format!("{hosts} {verb} no cable{what}"))
        .at(source.name(), header, "no line of this table names them")
        .effect("where these NICs are plugged in is compared with nothing")
        .next("write their lines; `railwright discover cabling` writes what the hosts hear")
}

/// The header of the table.
fn find_table_header(source: &SourceText) -> std::ops::Range<usize> {
    let mut lines = (0..source.line_count()).map(|line| source.line_span(line));
    let header = lines.find(|span| source.text()[span.clone()].contains(COLUMNS[1]));
    header.unwrap_or(0..0)
}

/// Whether each rail of these hosts is a network of its own.
fn are_networks(hosts: &[&Host]) -> bool {
    let mut networks: BTreeMap<u32, BTreeSet<IpNet>> = BTreeMap::new();
    for rail in hosts.iter().flat_map(|host| &host.netdevs) {
        let Some(address) = &rail.address else {
            return false;
        };
        let Ok(address) = address.parse::<IpNet>() else {
            return false;
        };
        networks
            .entry(rail.rail)
            .or_default()
            .insert(address.trunc());
    }
    let distinct: BTreeSet<&IpNet> = networks.values().flatten().collect();
    networks.len() > 1
        && networks.values().all(|of_rail| of_rail.len() == 1)
        && distinct.len() == networks.len()
}

/// The hosts by their leaves, the largest class first; classes that are as large stay in the order
/// of the spec.
fn group_hosts_by_leaves<'a, 'c>(
    cabled: &'c [CabledHost<'a>],
) -> Vec<(Vec<&'c str>, Vec<&'c CabledHost<'a>>)> {
    let mut classes: indexmap::IndexMap<Vec<&str>, Vec<&CabledHost>> = indexmap::IndexMap::new();
    for host in cabled {
        classes.entry(host.leaves()).or_default().push(host);
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    classes
}

/// Two rails of a host on one leaf, although there is a leaf for each.
fn shared_leaves(source: &SourceText, cabled: &[CabledHost]) -> Vec<Diagnostic> {
    let all: BTreeSet<&str> = cabled.iter().flat_map(CabledHost::leaves).collect();
    let mut warnings = Vec::new();
    for (leaves, hosts) in group_hosts_by_leaves(cabled) {
        let Some(first) = hosts.first().filter(|_| all.len() >= leaves.len()) else {
            continue;
        };
        let mut of_leaf: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (rail, leaf) in leaves.iter().enumerate() {
            of_leaf.entry(leaf).or_default().push(rail);
        }
        of_leaf.retain(|_, rails| rails.len() > 1);
        let Some((leaf, rails)) = of_leaf.first_key_value() else {
            continue;
        };
        let numbers: Vec<String> = rails.iter().map(ToString::to_string).collect();
        let others = if of_leaf.len() > 1 {
            format!(", and {} more so", format_count(of_leaf.len() - 1, "leaf"))
        } else {
            String::new()
        };
        let mut warning = Diagnostic::warning(
            "RW0158",
            format!(
                "rails {} of {} are on {leaf}{others}",
                numbers.join(", "),
                format_host_names(&hosts)
            ),
        )
        .effect(
            "these rails are networks of their own, and share one leaf: when it fails, or is full, \
             both are",
        )
        .next("plug each rail into a leaf of its own, or correct the lines");
        let mut lines: Vec<u32> = rails.iter().map(|rail| first.cables[*rail].line).collect();
        lines.dedup();
        for line in lines.into_iter().take(PLACES_MAX) {
            warning = warning.labelled(new_line_label(source, line, "on this leaf"));
        }
        warnings.push(warning);
    }
    warnings
}

/// Hosts of which a rail is on another leaf than that rail of the hosts they share leaves with.
fn find_stray_hosts(source: &SourceText, cabled: &[CabledHost]) -> Vec<Diagnostic> {
    let mut units: Vec<(Vec<&str>, Vec<&CabledHost>)> = Vec::new();
    let mut warnings = Vec::new();
    for (leaves, hosts) in group_hosts_by_leaves(cabled) {
        let of_its_leaves = units.iter().find(|(unit, _)| {
            unit.len() == leaves.len() && unit.iter().any(|leaf| leaves.contains(leaf))
        });
        match of_its_leaves {
            Some((unit, others)) => warnings.push(new_stray_rail_warning(
                source,
                (&leaves, &hosts),
                (unit, others),
            )),
            None => units.push((leaves, hosts)),
        }
    }
    warnings
}

/// Hosts, and the leaf of each of their rails.
type Unit<'u, 'a> = (&'u [&'u str], &'u [&'u CabledHost<'a>]);

fn new_stray_rail_warning(
    source: &SourceText,
    (leaves, hosts): Unit,
    (unit, others): Unit,
) -> Diagnostic {
    let mut rails: Vec<usize> = Vec::new();
    let (mut numbers, mut here, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    for (rail, (leaf, other)) in leaves.iter().zip(unit).enumerate() {
        if leaf != other {
            rails.push(rail);
            numbers.push(rail.to_string());
            here.push(*leaf);
            elsewhere.push(*other);
        }
    }
    let (what, verb) = match rails.len() {
        1 => ("rail", "is"),
        _ => ("rails", "are"),
    };
    let message = format!(
        "{what} {} of {} {verb} on {}, of {} on {}",
        numbers.join(", "),
        format_host_names(hosts),
        here.join(", "),
        format_host_names(others),
        elsewhere.join(", ")
    );
    let labels = list_stray_labels(source, &rails, hosts, others);
    let warning = Diagnostic::warning("RW0159", message)
        .effect(
            "traffic of a rail stays on the leaf of that rail; from here it takes the way over the \
             spines, or none",
        )
        .next("look at the cables, and correct the lines or the cables");
    labels.into_iter().fold(warning, Diagnostic::labelled)
}

/// The lines of these rails of the first host, and that of the first rail of the first other host.
fn list_stray_labels(
    source: &SourceText,
    rails: &[usize],
    hosts: &[&CabledHost],
    others: &[&CabledHost],
) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    if let Some(host) = hosts.first() {
        for rail in rails.iter().take(PLACES_MAX) {
            let line = host.cables[*rail].line;
            labels.push(new_line_label(source, line, "another leaf here"));
        }
    }
    if let (Some(host), Some(rail)) = (others.first(), rails.first()) {
        let line = host.cables[*rail].line;
        let text = "the leaf of this rail elsewhere";
        labels.push(new_line_label(source, line, text));
    }
    labels.dedup_by(|next, first| next.span == first.span);
    labels
}

fn format_host_names(hosts: &[&CabledHost]) -> String {
    let names = hosts.iter().map(|cabled| cabled.host.name.as_str());
    one_line(&fold_node_set(&names.collect::<Vec<_>>()), 60)
}

fn new_line_label(source: &SourceText, line: u32, text: &str) -> Label {
    Label {
        file: source.name().to_owned(),
        span: source.line_span(line.saturating_sub(1) as usize),
        text: text.to_owned(),
    }
}
