//! What the commands about cabling share: which hosts are asked, and what they hear.

use super::CommandFailure;
use super::subject::report_host_without_ssh;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, nodeset};
use railwright_knowledge::spec::cabling::CableEnd;
use railwright_knowledge::spec::model::FabricKind;
use railwright_knowledge::spec::{Host, SwitchNode};
use railwright_observe::{self as observe, HostRequest};
use railwright_report as report;
use railwright_resource::switch::{SwitchSystem, decode_switch_neighbours};
use railwright_resource::{Read, TargetObservation, lldp};
use railwright_session::{Inventory, secrets};
use railwright_transport::{TargetAccess, TargetContact};
use railwright_verify::cabling::{DeviceLldpView, Silent, Views};
use std::collections::BTreeMap;

/// InfiniBand has no LLDP, so that nobody there hears anybody.
pub fn has_lldp(inventory: &Inventory) -> Result<(), CommandFailure> {
    if inventory.loaded.spec.fabric.kind != FabricKind::Infiniband {
        return Ok(());
    }
    let problem = Diagnostic::error(
        "RW1043",
        "the cables of an InfiniBand fabric cannot be heard: it has no LLDP",
    )
    .effect("it is not known where its NICs are plugged in")
    .state("no host was asked")
    .next("on a host of the fabric: ibnetdiscover, or iblinkinfo");
    Err(problem.into())
}

/// The hosts of this node-set that have rails and are reached, all of them where none is named;
/// those without SSH are reported apart.
pub fn select_rail_hosts<'i>(
    inventory: &'i Inventory,
    set: Option<&str>,
) -> Result<Vec<&'i Host>, CommandFailure> {
    let mut hosts = match set {
        Some(set) => expand_reached_hosts(inventory, set)?,
        None => {
            print_hosts_without_ssh(inventory);
            inventory.loaded.reached().collect()
        }
    };
    hosts.retain(|host| !host.netdevs.is_empty());
    if hosts.is_empty() && select_switches(inventory, set).is_empty() {
        return Err(report_no_cable_sources(inventory).into());
    }
    Ok(hosts)
}

fn print_hosts_without_ssh(inventory: &Inventory) {
    let without: Vec<&str> = inventory.loaded.without_ssh();
    if !without.is_empty() {
        report::out::print_note(&format!(
            "left out, because they have no SSH: {}",
            one_line(&nodeset::fold_node_set(&without), 200)
        ));
    }
}

fn expand_reached_hosts<'i>(
    inventory: &'i Inventory,
    set: &str,
) -> Result<Vec<&'i Host>, CommandFailure> {
    let known: Vec<&str> = list_host_names(inventory);
    let names = nodeset::expand_node_set(set)
        .map_err(|error| report_no_hosts(set, &known, &error.to_string()))?;
    let mut hosts = Vec::new();
    for name in &names {
        let Some(host) = inventory.loaded.host(name) else {
            let near = match find_nearest_word(name, known.iter().copied()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            let why = format!("{name} is not in the inventory{near}");
            return Err(report_no_hosts(set, &known, &why).into());
        };
        if host.ssh.is_none() {
            return Err(report_host_without_ssh(name, &inventory.word).into());
        }
        hosts.push(host);
    }
    Ok(hosts)
}

fn list_host_names(inventory: &Inventory) -> Vec<&str> {
    let hosts = inventory.loaded.hosts.iter();
    hosts.map(|host| host.name.as_str()).collect()
}

fn report_no_hosts(set: &str, known: &[&str], why: &str) -> Diagnostic {
    let message = format!("{} names no hosts: {why}", one_line(set, 80));
    Diagnostic::error("RW1011", message)
        .state("no host was asked")
        .next(hosts_to_name(known.iter().copied()))
}

/// How hosts are named, by those that there are.
pub fn hosts_to_name<'h>(hosts: impl Iterator<Item = &'h str>) -> String {
    let names: Vec<&str> = hosts.take(4).collect();
    match names.as_slice() {
        [] => "the inventory has no hosts; leave --host out".to_owned(),
        [one] => format!("name hosts of the inventory: --host {}", one_line(one, 60)),
        [one, ..] => {
            format!(
                "name hosts of the inventory: --host {}, --host '{}'",
                one_line(one, 60),
                one_line(&nodeset::fold_node_set(&names), 60)
            )
        }
    }
}

fn report_no_cable_sources(inventory: &Inventory) -> Diagnostic {
    Diagnostic::error(
        "RW1043",
        "nobody can be asked for cables: no host has rails and SSH, and no switch is reached",
    )
    .effect("where NICs are plugged in is heard on hosts and switches")
    .state("nothing was asked")
    .next(format!(
        "say in {} which NICs hosts have (`nics`), and how they are reached (`ssh`)",
        inventory.word
    ))
}

/// The NICs of these hosts; where switches are asked, of all hosts: a switch hears those too that
/// are not reached.
pub fn list_nics(
    inventory: &Inventory,
    hosts: &[&Host],
    switches: &[&SwitchNode],
) -> Vec<CableEnd> {
    let all: Vec<&Host> = if switches.is_empty() {
        hosts.to_vec()
    } else {
        inventory.loaded.hosts.iter().collect()
    };
    let mut ends = Vec::new();
    for host in all {
        for rail in &host.netdevs {
            ends.push(CableEnd::new(&host.name, &rail.port));
        }
    }
    ends
}

/// The switches that are reached; none where only some hosts are asked.
pub fn select_switches<'i>(inventory: &'i Inventory, set: Option<&str>) -> Vec<&'i SwitchNode> {
    inventory
        .loaded
        .managed_switches()
        .filter(|_| set.is_none())
        .collect()
}

/// What these hosts and switches hear. Changes nothing on them.
pub async fn read_neighbours(
    inventory: &Inventory,
    hosts: &[&Host],
    switches: &[&SwitchNode],
) -> Views {
    let systems: BTreeMap<&str, SwitchSystem> = switches
        .iter()
        .filter_map(|switch| Some((switch.name.as_str(), inventory.system_of(&switch.name)?)))
        .collect();
    let mut requests: Vec<HostRequest> = Vec::new();
    for host in hosts {
        let read = Read::LldpNeighbours;
        requests.extend(request_neighbours(inventory.access(host), read));
    }
    for switch in switches {
        if let Some(&system) = systems.get(switch.name.as_str()) {
            let read = Read::SwitchNeighbours { system };
            requests.extend(request_neighbours(inventory.access_of_switch(switch), read));
        }
    }
    let progress = report::progress::HostReadProgress::new(requests.len());
    let connector = secrets::connector_to_look(inventory, TargetContact::begin());
    let observed =
        observe::observe_hosts(&*connector, requests, observe::DEFAULT_PARALLEL, &|event| {
            progress.show(&event)
        })
        .await;
    progress.end();
    let mut views = Views::new();
    for (target, found) in observed.targets {
        let system = systems.get(&*target.name).copied();
        views.insert(target.name.to_string(), decode_view(system, found));
    }
    views
}

/// Nothing where the device is not reached.
fn request_neighbours(access: Option<TargetAccess>, read: Read) -> Option<HostRequest> {
    Some(HostRequest {
        access: access?,
        reads: vec![read],
    })
}

/// What a switch with this system hears, or a host where there is none.
fn decode_view(
    system: Option<SwitchSystem>,
    found: TargetObservation,
) -> Result<DeviceLldpView, Silent> {
    if let Some(trouble) = found.problem {
        return Err(Silent::Unreached(Box::new(trouble)));
    }
    let Some(system) = system else {
        return lldp::decode_host_neighbours(&found.answers)
            .map(DeviceLldpView::of)
            .map_err(Silent::from);
    };
    decode_switch_neighbours(system, &found.answers)
        .map(DeviceLldpView::of)
        .map_err(|silence| Silent::of_switch(silence, system))
}
