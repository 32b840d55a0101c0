//! Cables of what was heard, for a file that nobody has written yet.

use super::names::{CablingNames, Spot};
use super::plugs::Plugs;
use super::view::{PortLldpState, Views};
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
/// what devices that told nothing would have said is left to whoever tells of the devices.
pub fn discover_cables(
    nics: &[CableEnd],
    switches: &BTreeSet<&str>,
    names: &CablingNames,
    views: &Views,
) -> DiscoveredCables {
    let mut out = of_nics(nics, names, views);
    let of_switches = || {
        views
            .iter()
            .filter(|(device, _)| switches.contains(device.as_str()))
    };
    let plugs = Plugs::of(of_switches(), names);
    let told: BTreeSet<CableEnd> = out.cables.iter().map(|(nic, _)| nic.clone()).collect();
    let heard = |nic: &CableEnd| {
        plugs
            .only(nic)
            .filter(|there| is_writable(nic) && is_writable(there))
            .cloned()
    };
    out.cables.extend(
        nics.iter()
            .filter(|nic| !told.contains(nic))
            .filter_map(|nic| Some((nic.clone(), heard(nic)?))),
    );
    let told: BTreeSet<&CableEnd> = out.cables.iter().map(|(nic, _)| nic).collect();
    out.unseen.retain(|(nic, _)| !told.contains(nic));
    let ports = of_switches().filter_map(|(device, view)| Some((device, view.as_ref().ok()?)));
    let ports = ports.flat_map(|(device, view)| {
        view.ports
            .keys()
            .map(move |port| CableEnd::new(device, port))
    });
    let between = |here: CableEnd| {
        let there = heard(&here).filter(|there| switches.contains(there.device.as_str()))?;
        // Both ends tell of the same cable.
        Some(if here < there {
            (here, there)
        } else {
            (there, here)
        })
    };
    let between: BTreeSet<(CableEnd, CableEnd)> = ports.filter_map(between).collect();
    out.cables.extend(between);
    out
}

/// What a file cannot say, or would say of several, is not written.
fn is_writable(end: &CableEnd) -> bool {
    let is_one =
        |names: Result<Vec<String>, _>| names.is_ok_and(|names: Vec<String>| names.len() == 1);
    !end.port.contains(['[', ','])
        && !end.device.contains(['[', ','])
        && is_one(expand_node_set(&end.device))
        && is_one(expand_ports(&end.port))
}

/// What the hosts themselves hear.
fn of_nics(nics: &[CableEnd], names: &CablingNames, views: &Views) -> DiscoveredCables {
    let mut out = DiscoveredCables::default();
    for nic in nics {
        let Some(Ok(view)) = views.get(&nic.device) else {
            continue;
        };
        match view.ports.get(&nic.port) {
            None => out.unseen.push((nic.clone(), "is not there".to_owned())),
            Some(PortLldpState::NoLink) => out.unseen.push((nic.clone(), "has no link".to_owned())),
            Some(PortLldpState::Down) => out.unseen.push((nic.clone(), "is down".to_owned())),
            Some(PortLldpState::Neighbours(all)) => {
                let mut spots: Vec<Spot> = all
                    .iter()
                    .map(|neighbour| names.spot(neighbour))
                    .filter(|spot| !is_nic_spot(spot, nic))
                    .collect();
                spots.sort();
                match resolve_single_spot(&spots) {
                    Ok((end, is_known)) => {
                        if !is_known {
                            out.strangers.insert(end.device.clone());
                        }
                        out.cables.push((nic.clone(), end));
                    }
                    Err(why) => out.unseen.push((nic.clone(), why)),
                }
            }
        }
    }
    out
}

fn is_nic_spot(spot: &Spot, nic: &CableEnd) -> bool {
    matches!(spot, Spot::At(end) if end == nic)
}

/// The one port that these are about, and whether the spec has its device.
fn resolve_single_spot(spots: &[Spot]) -> Result<(CableEnd, bool), String> {
    let (end, is_known) = match spots {
        [Spot::At(end)] => (end, true),
        [Spot::Stranger(end)] => (end, false),
        [] => return Err("hears nobody".to_owned()),
        [Spot::Unclear { device, .. }] => {
            return Err(format!(
                "hears {device}, which names its port in no way that a file could"
            ));
        }
        [Spot::Nameless(chassis)] => {
            return Err(format!(
                "hears somebody who says no name (chassis {chassis})"
            ));
        }
        several => return Err(format!("hears {} neighbours on one port", several.len())),
    };
    match is_writable(end) {
        true => Ok((end.clone(), is_known)),
        false => Err(format!(
            "hears {} `{}`, which is no name that a file could have",
            end.device, end.port
        )),
    }
}
