//! The cables of the file against those that are.

use super::moves::find_cable_moves;
use super::names::{CablingNames, Spot};
use super::plugs::Plugs;
use super::view::{PortLldpState, Silent, Views};
use super::{
    CablingComparison, CablingCounts, CablingFinding, CablingFindingKind, Plug, UnknownCableReason,
};
use railwright_knowledge::spec::cabling::{Cable, CableEnd};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub struct CablingScope<'a> {
    /// The cables of the file.
    pub cables: &'a [Cable],
    /// NICs that should be in the fabric, those without a cable among them.
    pub nics: &'a [CableEnd],
    /// Who is called how.
    pub names: &'a CablingNames,
}

/// How one cable is.
enum CableState<'a> {
    Right,
    Wrong(Plug),
    Stranger(CableEnd),
    NoLink,
    Unknown(UnknownCableReason),
    Silent(&'a str, &'a Silent),
    NotAsked,
}

/// What differs, and what nobody can tell.
pub fn compare_cabling(scope: CablingScope, views: &Views) -> CablingComparison {
    let plugs = Plugs::of(views, scope.names);
    let belongs: HashMap<&CableEnd, &CableEnd> = scope
        .cables
        .iter()
        .flat_map(|cable| [(&cable.from, &cable.to), (&cable.to, &cable.from)])
        .collect();
    let mut counts = CablingCounts::default();
    let (mut wrong, mut findings) = (Vec::new(), Vec::new());
    let mut silent: BTreeMap<&str, (&Silent, Vec<Plug>)> = BTreeMap::new();
    for cable in scope.cables {
        counts.cables += 1;
        match classify_cable(cable, views, &plugs, &belongs) {
            CableState::Right => counts.right += 1,
            CableState::NotAsked => counts.not_asked += 1,
            CableState::Wrong(plug) => {
                counts.wrong += 1;
                wrong.push(plug);
            }
            CableState::Silent(device, why) => {
                counts.unknown += 1;
                let plug = plug_from_cable(cable);
                // It is told of the device that tells nothing, whichever end of the cable it is.
                let plug = match cable.from.device == device {
                    true => plug,
                    false => Plug {
                        end: cable.to.clone(),
                        wanted: Some(cable.from.clone()),
                        ..plug
                    },
                };
                silent
                    .entry(device)
                    .or_insert((why, Vec::new()))
                    .1
                    .push(plug);
            }
            CableState::Stranger(there) => {
                counts.wrong += 1;
                findings.push(new_cabling_finding(
                    CablingFindingKind::UnknownDevice,
                    Plug {
                        found: Some(there),
                        ..plug_from_cable(cable)
                    },
                ));
            }
            CableState::NoLink => {
                counts.wrong += 1;
                findings.push(new_cabling_finding(
                    CablingFindingKind::NoLink,
                    plug_from_cable(cable),
                ));
            }
            CableState::Unknown(why) => {
                counts.unknown += 1;
                findings.push(CablingFinding {
                    why: Some(why),
                    ..new_cabling_finding(CablingFindingKind::Unknown, plug_from_cable(cable))
                });
            }
        }
    }
    counts.cables -= counts.not_asked;
    let mut all = find_cable_moves(wrong);
    all.extend(findings);
    all.extend(find_uncabled_nics(scope, &plugs, &belongs));
    // A device that has no cable in the file, and told nothing, is worth a word too.
    for (device, why) in views
        .iter()
        .filter_map(|(device, view)| Some((device.as_str(), view.as_ref().err()?)))
    {
        silent.entry(device).or_insert((why, Vec::new()));
    }
    let told = |(device, (why, plugs)): (&str, (&Silent, Vec<Plug>))| CablingFinding {
        kind: CablingFindingKind::Silent,
        plugs: if plugs.is_empty() {
            vec![of_device(device)]
        } else {
            plugs
        },
        why: Some(UnknownCableReason::Silent(why.clone())),
    };
    all.extend(silent.into_iter().map(told));
    all.sort_by_key(|finding| {
        (
            finding.kind,
            finding.plugs.first().map(|plug| plug.end.clone()),
        )
    });
    CablingComparison {
        findings: all,
        counts,
    }
}

fn classify_cable<'a>(
    cable: &Cable,
    views: &'a Views,
    plugs: &Plugs,
    belongs: &HashMap<&CableEnd, &CableEnd>,
) -> CableState<'a> {
    if plugs.are(&cable.from, &cable.to) {
        return CableState::Right;
    }
    if let Some(found) = plugs.found(&cable.from) {
        let owner = belongs.get(found).map(|owner| (*owner).clone());
        return CableState::Wrong(Plug {
            found: Some(found.clone()),
            owner,
            ..plug_from_cable(cable)
        });
    }
    let mut looks: Vec<CableState> = [&cable.from, &cable.to]
        .into_iter()
        .filter_map(|end| from_an_end(end, views, plugs))
        .collect();
    // What is known counts for more than what is not.
    looks.sort_by_key(|look| match look {
        CableState::Stranger(_) => 0,
        CableState::NoLink => 1,
        CableState::Unknown(_) => 2,
        _ => 3,
    });
    looks.into_iter().next().unwrap_or(CableState::NotAsked)
}

/// What a device says of a port on which the cable's other end is not heard; nothing where it was
/// not asked.
fn from_an_end<'a>(end: &CableEnd, views: &'a Views, plugs: &Plugs) -> Option<CableState<'a>> {
    let (device, view) = views.get_key_value(&end.device)?;
    let view = match view {
        Ok(view) => view,
        Err(why) => return Some(CableState::Silent(device, why)),
    };
    // Where this cable's other end is in, nobody tells; but not here.
    if let Some(other) = plugs.found(end) {
        return Some(CableState::Unknown(UnknownCableReason::Taken(
            other.clone(),
        )));
    }
    Some(
        match (plugs.other(end).cloned(), view.ports.get(&end.port)) {
            (Some(Spot::Stranger(there)), _) => CableState::Stranger(there),
            (Some(Spot::Unclear { device, said }), _) => {
                CableState::Unknown(UnknownCableReason::Unclear { device, said })
            }
            (Some(Spot::Nameless(chassis)), _) => {
                CableState::Unknown(UnknownCableReason::Nameless(chassis))
            }
            (_, None) => CableState::Unknown(UnknownCableReason::Absent),
            (_, Some(PortLldpState::NoLink)) => CableState::NoLink,
            (_, Some(PortLldpState::Down)) => CableState::Unknown(UnknownCableReason::Down),
            (_, Some(PortLldpState::Neighbours(_))) => {
                CableState::Unknown(UnknownCableReason::HearsNobody)
            }
        },
    )
}

/// NICs that the file has no cable for and that are in a port all the same.
fn find_uncabled_nics(
    scope: CablingScope,
    plugs: &Plugs,
    belongs: &HashMap<&CableEnd, &CableEnd>,
) -> Vec<CablingFinding> {
    let cabled: BTreeSet<&CableEnd> = scope.cables.iter().map(|cable| &cable.from).collect();
    let of = |nic: &CableEnd| {
        let found = plugs.found(nic)?.clone();
        let owner = belongs.get(&found).map(|owner| (*owner).clone());
        let plug = Plug {
            end: nic.clone(),
            wanted: None,
            found: Some(found),
            owner,
            line: None,
        };
        Some(new_cabling_finding(CablingFindingKind::NotInFile, plug))
    };
    scope
        .nics
        .iter()
        .filter(|nic| !cabled.contains(nic))
        .filter_map(of)
        .collect()
}

fn new_cabling_finding(kind: CablingFindingKind, plug: Plug) -> CablingFinding {
    CablingFinding {
        kind,
        plugs: vec![plug],
        why: None,
    }
}

fn plug_from_cable(cable: &Cable) -> Plug {
    Plug {
        end: cable.from.clone(),
        wanted: Some(cable.to.clone()),
        found: None,
        owner: None,
        line: Some(cable.line),
    }
}

fn of_device(device: &str) -> Plug {
    Plug {
        end: CableEnd::new(device, ""),
        wanted: None,
        found: None,
        owner: None,
        line: None,
    }
}
