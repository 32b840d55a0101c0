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

/// What the cables came to, cable by cable.
#[derive(Default)]
struct ComparedCables<'a> {
    counts: CablingCounts,
    /// Plugs that are in another port than the file says.
    wrong: Vec<Plug>,
    findings: Vec<CablingFinding>,
    /// Devices that reported nothing, each with why and with its cables.
    silent: BTreeMap<&'a str, (&'a Silent, Vec<Plug>)>,
}

impl<'a> ComparedCables<'a> {
    fn add(&mut self, cable: &Cable, state: CableState<'a>) {
        self.counts.cables += 1;
        match state {
            CableState::Right => self.counts.right += 1,
            CableState::NotAsked => self.counts.not_asked += 1,
            CableState::Wrong(plug) => {
                self.counts.wrong += 1;
                self.wrong.push(plug);
            }
            CableState::Silent(device, why) => {
                self.counts.unknown += 1;
                let (_, plugs) = self.silent.entry(device).or_insert((why, Vec::new()));
                plugs.push(plug_at_device(cable, device));
            }
            CableState::Stranger(there) => {
                self.counts.wrong += 1;
                self.findings.push(new_cabling_finding(
                    CablingFindingKind::UnknownDevice,
                    Plug {
                        actual: Some(there),
                        ..plug_from_cable(cable)
                    },
                ));
            }
            CableState::NoLink => {
                self.counts.wrong += 1;
                self.findings.push(new_cabling_finding(
                    CablingFindingKind::NoLink,
                    plug_from_cable(cable),
                ));
            }
            CableState::Unknown(why) => {
                self.counts.unknown += 1;
                self.findings.push(CablingFinding {
                    why: Some(why),
                    ..new_cabling_finding(CablingFindingKind::Unknown, plug_from_cable(cable))
                });
            }
        }
    }
}

/// What differs, and what nobody can tell.
pub fn compare_cabling(scope: CablingScope, views: &Views) -> CablingComparison {
    let plugs = Plugs::of(views, scope.names);
    let mut belongs: HashMap<&CableEnd, &CableEnd> = HashMap::new();
    for cable in scope.cables {
        belongs.insert(&cable.from, &cable.to);
        belongs.insert(&cable.to, &cable.from);
    }
    let mut compared = ComparedCables::default();
    for cable in scope.cables {
        compared.add(cable, classify_cable(cable, views, &plugs, &belongs));
    }
    let ComparedCables {
        mut counts,
        wrong,
        findings,
        mut silent,
    } = compared;
    counts.cables -= counts.not_asked;
    let mut all = find_cable_moves(wrong);
    all.extend(findings);
    all.extend(find_uncabled_nics(scope, &plugs, &belongs));
    // A device that has no cable in the file, and reported nothing, is worth a word too.
    for (device, view) in views {
        if let Err(why) = view {
            silent.entry(device).or_insert((why, Vec::new()));
        }
    }
    for (device, (why, plugs)) in silent {
        all.push(new_silent_device_finding(device, why, plugs));
    }
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
        return CableState::Wrong(Plug {
            actual: Some(found.clone()),
            owner: belongs.get(found).copied().cloned(),
            ..plug_from_cable(cable)
        });
    }
    let mut looks: Vec<CableState> = [&cable.from, &cable.to]
        .into_iter()
        .filter_map(|end| classify_cable_end(end, views, plugs))
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
fn classify_cable_end<'a>(
    end: &CableEnd,
    views: &'a Views,
    plugs: &Plugs,
) -> Option<CableState<'a>> {
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
    let mut findings = Vec::new();
    for nic in scope.nics {
        if cabled.contains(nic) {
            continue;
        }
        let Some(actual) = plugs.found(nic) else {
            continue;
        };
        let plug = Plug {
            end: nic.clone(),
            desired: None,
            actual: Some(actual.clone()),
            owner: belongs.get(actual).copied().cloned(),
            line: None,
        };
        findings.push(new_cabling_finding(CablingFindingKind::NotInFile, plug));
    }
    findings
}

fn new_cabling_finding(kind: CablingFindingKind, plug: Plug) -> CablingFinding {
    CablingFinding {
        kind,
        plugs: vec![plug],
        why: None,
    }
}

fn new_silent_device_finding(device: &str, why: &Silent, plugs: Vec<Plug>) -> CablingFinding {
    CablingFinding {
        kind: CablingFindingKind::Silent,
        plugs: if plugs.is_empty() {
            vec![new_device_plug(device)]
        } else {
            plugs
        },
        why: Some(UnknownCableReason::Silent(why.clone())),
    }
}

/// The plug of a cable at the device that tells nothing, whichever end of the cable that is.
fn plug_at_device(cable: &Cable, device: &str) -> Plug {
    let plug = plug_from_cable(cable);
    if cable.from.device == device {
        return plug;
    }
    Plug {
        end: cable.to.clone(),
        desired: Some(cable.from.clone()),
        ..plug
    }
}

fn plug_from_cable(cable: &Cable) -> Plug {
    Plug {
        end: cable.from.clone(),
        desired: Some(cable.to.clone()),
        actual: None,
        owner: None,
        line: Some(cable.line),
    }
}

fn new_device_plug(device: &str) -> Plug {
    Plug {
        end: CableEnd::new(device, ""),
        desired: None,
        actual: None,
        owner: None,
        line: None,
    }
}
