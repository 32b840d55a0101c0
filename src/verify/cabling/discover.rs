//! Cables of what was heard, for a file that nobody has written yet.

use super::names::{CablingNames, Spot};
use super::plugs::Plugs;
use super::view::{DeviceLldpView, PortLldpState, Silent, Views};
use railwright_base::Reason;
use railwright_base::nodeset::{expand_node_set, expand_ports};
use railwright_knowledge::spec::cabling::CableEnd;
use std::collections::BTreeSet;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscoveredCables {
    /// A NIC and the port that it is in; or two ports of switches.
    pub cables: Vec<(CableEnd, CableEnd)>,
    /// NICs of which nobody can tell, with the reason.
    pub unseen: Vec<(CableEnd, String)>,
    /// Devices that the spec does not have, as they call themselves.
    pub strangers: BTreeSet<String>,
}

/// The cables of these NICs, as they or else the switches hear them, and those between switches;
/// what devices that reported nothing would have said is left to whoever tells of the devices.
pub fn discover_cables(
    nics: &[CableEnd],
    switches: &BTreeSet<&str>,
    names: &CablingNames,
    views: &Views,
) -> DiscoveredCables {
    let mut discovered = discover_nic_cables(nics, names, views);
    let mut switch_views = Vec::new();
    for (device, view) in views {
        if switches.contains(device.as_str()) {
            switch_views.push((device, view));
        }
    }
    let plugs = Plugs::of(switch_views.iter().copied(), names);
    let heard_by_hosts: BTreeSet<CableEnd> = discovered
        .cables
        .iter()
        .map(|(nic, _)| nic.clone())
        .collect();
    for nic in nics {
        if heard_by_hosts.contains(nic) {
            continue;
        }
        if let Some(there) = find_writable_plug(nic, &plugs) {
            discovered.cables.push((nic.clone(), there.clone()));
        }
    }
    let cabled: BTreeSet<&CableEnd> = discovered.cables.iter().map(|(nic, _)| nic).collect();
    discovered.unseen.retain(|(nic, _)| !cabled.contains(nic));
    let between = find_switch_cables(&switch_views, switches, &plugs);
    discovered.cables.extend(between);
    discovered
}

/// Cables between two switches, each once.
fn find_switch_cables(
    views: &[(&String, &Result<DeviceLldpView, Silent>)],
    switches: &BTreeSet<&str>,
    plugs: &Plugs,
) -> BTreeSet<(CableEnd, CableEnd)> {
    let mut between = BTreeSet::new();
    for (device, view) in views {
        let Ok(view) = view else { continue };
        for port in view.ports.keys() {
            let here = CableEnd::new(*device, port);
            let Some(there) = find_writable_plug(&here, plugs) else {
                continue;
            };
            if !switches.contains(there.device.as_str()) {
                continue;
            }
            // Both ends tell of the same cable.
            if here < *there {
                between.insert((here, there.clone()));
            } else {
                between.insert((there.clone(), here));
            }
        }
    }
    between
}

/// The one port that an end is in, where a file can name both.
fn find_writable_plug<'p>(end: &CableEnd, plugs: &'p Plugs) -> Option<&'p CableEnd> {
    let there = plugs.only(end)?;
    (is_writable(end) && is_writable(there)).then_some(there)
}

/// What a file cannot say, or would say of several, is not written.
fn is_writable(end: &CableEnd) -> bool {
    !end.port.contains(['[', ','])
        && !end.device.contains(['[', ','])
        && matches!(expand_node_set(&end.device), Ok(names) if names.len() == 1)
        && matches!(expand_ports(&end.port), Ok(names) if names.len() == 1)
}

/// What the hosts themselves hear.
fn discover_nic_cables(nics: &[CableEnd], names: &CablingNames, views: &Views) -> DiscoveredCables {
    let mut discovered = DiscoveredCables::default();
    for nic in nics {
        let Some(Ok(view)) = views.get(&nic.device) else {
            continue;
        };
        let resolved = match view.ports.get(&nic.port) {
            None => Err("is not there".into()),
            Some(PortLldpState::NoLink) => Err("has no link".into()),
            Some(PortLldpState::Down) => Err("is down".into()),
            Some(PortLldpState::Neighbours(neighbours)) => {
                let mut spots: Vec<Spot> = neighbours
                    .iter()
                    .map(|neighbour| names.spot(neighbour))
                    .collect();
                spots.retain(|spot| !is_nic_spot(spot, nic));
                spots.sort();
                resolve_single_spot(&spots)
            }
        };
        match resolved {
            Ok((end, is_known)) => {
                if !is_known {
                    discovered.strangers.insert(end.device.clone());
                }
                discovered.cables.push((nic.clone(), end));
            }
            Err(why) => discovered.unseen.push((nic.clone(), why.to_string())),
        }
    }
    discovered
}

fn is_nic_spot(spot: &Spot, nic: &CableEnd) -> bool {
    matches!(spot, Spot::At(end) if end == nic)
}

/// The one port that these are about, and whether the spec has its device.
fn resolve_single_spot(spots: &[Spot]) -> Result<(CableEnd, bool), Reason> {
    let (end, is_known) = match spots {
        [Spot::At(end)] => (end, true),
        [Spot::Stranger(end)] => (end, false),
        [] => return Err("hears nobody".into()),
        [Spot::Unclear { device, .. }] => {
            return Err(format!(
                "hears {device}, which names its port in no way that a file could"
            )
            .into());
        }
        [Spot::Nameless(chassis)] => {
            return Err(format!("hears somebody who says no name (chassis {chassis})").into());
        }
        several => return Err(format!("hears {} neighbours on one port", several.len()).into()),
    };
    match is_writable(end) {
        true => Ok((end.clone(), is_known)),
        false => Err(format!(
            "hears {} `{}`, which is no name that a file could have",
            end.device, end.port
        )
        .into()),
    }
}
