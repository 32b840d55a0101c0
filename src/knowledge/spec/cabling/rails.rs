//! What a cabling file may say and looks wrong: NICs without a cable, and rails that are not what
//! rails are for. Traffic of a rail stays on the leaf of that rail; a NIC on another leaf works,
//! and pays for it under load.
//!
//! Rails are judged where the spec means them as networks of their own (every rail has its subnet)
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

/// All warnings of a file that is sound.
pub fn find_cabling_warnings(
    loaded: &LoadedSpec,
    source: &SourceText,
    cables: &[Cable],
) -> Vec<Diagnostic> {
    let of_nic: HashMap<(&str, &str), &Cable> = cables
        .iter()
        .map(|cable| {
            (
                (cable.from.device.as_str(), cable.from.port.as_str()),
                cable,
            )
        })
        .collect();
    let cable = |host: &Host, rail: &Rail| {
        of_nic
            .get(&(host.name.as_str(), rail.port.as_str()))
            .copied()
    };
    let mut warnings = find_uncabled_nics(loaded, source, &cable);
    let mut cabled = Vec::new();
    for group in 0..loaded.spec.nodes.len() {
        let hosts: Vec<&Host> = loaded
            .hosts
            .iter()
            .filter(|host| host.group == group)
            .collect();
        let of_host = |host: &&'_ Host| {
            host.netdevs
                .iter()
                .map(|rail| cable(host, rail))
                .collect::<Option<Vec<&Cable>>>()
        };
        let Some(of_group) = hosts.iter().map(of_host).collect::<Option<Vec<_>>>() else {
            continue;
        };
        if are_networks(&hosts) {
            cabled.extend(
                hosts
                    .into_iter()
                    .zip(of_group)
                    .map(|(host, cables)| CabledHost { host, cables }),
            );
        }
    }
    warnings.extend(shared_leaves(source, &cabled));
    warnings.extend(find_stray_hosts(source, &cabled));
    warnings
}

/// Hosts and rails without a cable, said once for all that are alike.
fn find_uncabled_nics<'a>(
    loaded: &LoadedSpec,
    source: &SourceText,
    cable: &dyn Fn(&Host, &Rail) -> Option<&'a Cable>,
) -> Vec<Diagnostic> {
    let mut alike: BTreeMap<Option<Vec<&str>>, Vec<&str>> = BTreeMap::new();
    for host in loaded.hosts.iter().filter(|host| !host.netdevs.is_empty()) {
        let without: Vec<&str> = host
            .netdevs
            .iter()
            .filter(|rail| cable(host, rail).is_none())
            .map(|rail| rail.port.as_str())
            .collect();
        if !without.is_empty() {
            let of_some = (without.len() < host.netdevs.len()).then_some(without);
            alike.entry(of_some).or_default().push(&host.name);
        }
    }
    let warning = |(nics, hosts): (Option<Vec<&str>>, Vec<&str>)| {
        let verb = if hosts.len() == 1 { "has" } else { "have" };
        let (hosts, what) = (
            one_line(&fold_node_set(&hosts), 60),
            nics.map_or(String::new(), |nics| {
                format!(" of {}", one_line(&fold_node_set(&nics), 80))
            }),
        );
        Diagnostic::warning("RW0157", format!("{hosts} {verb} no cable{what}"))
            .at(
                source.name(),
                find_table_header(source),
                "no line of this table names them",
            )
            .effect("where these NICs are plugged in is compared with nothing")
            .next("write their lines; `railwright discover cabling` writes what the hosts hear")
    };
    alike.into_iter().map(warning).collect()
}

/// The header of the table.
fn find_table_header(source: &SourceText) -> std::ops::Range<usize> {
    let lines = (0..source.line_count()).map(|line| source.line_span(line));
    lines
        .into_iter()
        .find(|span| source.text()[span.clone()].contains(COLUMNS[1]))
        .unwrap_or(0..0)
}

/// Whether each rail of these hosts is a network of its own.
fn are_networks(hosts: &[&Host]) -> bool {
    let mut networks: BTreeMap<u32, BTreeSet<IpNet>> = BTreeMap::new();
    for rail in hosts.iter().flat_map(|host| &host.netdevs) {
        let Some(address) = rail
            .address
            .as_ref()
            .and_then(|address| address.parse::<IpNet>().ok())
        else {
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
        leaves
            .iter()
            .enumerate()
            .for_each(|(rail, leaf)| of_leaf.entry(leaf).or_default().push(rail));
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
        let warning = Diagnostic::warning(
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
        let places = lines.into_iter().take(PLACES_MAX);
        warnings.push(places.fold(warning, |warning, line| {
            warning.labelled(new_line_label(source, line, "on this leaf"))
        }));
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
    let rails: Vec<usize> = (0..leaves.len())
        .filter(|rail| leaves[*rail] != unit[*rail])
        .collect();
    let on = |leaves: &[&str]| {
        rails
            .iter()
            .map(|rail| leaves[*rail])
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (what, numbers) = (
        if rails.len() == 1 { "rail" } else { "rails" },
        rails.iter().map(ToString::to_string).collect::<Vec<_>>(),
    );
    let (verb, of_others) = (
        if rails.len() == 1 { "is" } else { "are" },
        format_host_names(others),
    );
    let message = format!(
        "{what} {} of {} {verb} on {}, of {of_others} on {}",
        numbers.join(", "),
        format_host_names(hosts),
        on(leaves),
        on(unit)
    );
    let warning = Diagnostic::warning("RW0159", message)
        .effect(
            "traffic of a rail stays on the leaf of that rail; from here it takes the way over the \
             spines, or none",
        )
        .next("look at the cables, and correct the lines or the cables");
    let place = |of: &[&CabledHost], rail: &usize, text: &str| {
        Some(new_line_label(source, of.first()?.cables[*rail].line, text))
    };
    let mut labels: Vec<Label> = rails
        .iter()
        .take(PLACES_MAX)
        .filter_map(|rail| place(hosts, rail, "another leaf here"))
        .collect();
    labels.extend(
        rails
            .first()
            .and_then(|rail| place(others, rail, "the leaf of this rail elsewhere")),
    );
    labels.dedup_by(|next, first| next.span == first.span);
    labels.into_iter().fold(warning, Diagnostic::labelled)
}

fn format_host_names(hosts: &[&CabledHost]) -> String {
    one_line(
        &fold_node_set(
            &hosts
                .iter()
                .map(|cabled| cabled.host.name.as_str())
                .collect::<Vec<_>>(),
        ),
        60,
    )
}

fn new_line_label(source: &SourceText, line: u32, text: &str) -> Label {
    Label {
        file: source.name().to_owned(),
        span: source.line_span(line.saturating_sub(1) as usize),
        text: text.to_owned(),
    }
}
