//! The cables of the file against those that are.

use super::moves::moves;
use super::names::{Names, Spot};
use super::plugs::Plugs;
use super::view::{Heard, Silent, Views};
use super::{Comparison, Counts, Finding, Kind, Plug, Why};
use railwright_knowledge::spec::cabling::{Cable, End};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is compared.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The cables of the file.
    pub cables: &'a [Cable],
    /// NICs that should be in the fabric, those without a cable among them.
    pub nics: &'a [End],
    /// Who is called how.
    pub names: &'a Names,
}

/// How one cable is.
enum Look<'a> {
    Right,
    Wrong(Plug),
    Stranger(End),
    NoLink,
    Unknown(Why),
    Silent(&'a str, &'a Silent),
    NotAsked,
}

/// What differs, and what nobody can tell.
pub fn compare(scope: Scope, views: &Views) -> Comparison {
    let plugs = Plugs::of(views, scope.names);
    let belongs: HashMap<&End, &End> = scope.cables.iter().flat_map(|cable| [(&cable.from, &cable.to), (&cable.to, &cable.from)]).collect();
    let mut counts = Counts::default();
    let (mut wrong, mut findings) = (Vec::new(), Vec::new());
    let mut silent: BTreeMap<&str, (&Silent, Vec<Plug>)> = BTreeMap::new();
    for cable in scope.cables {
        counts.cables += 1;
        match look(cable, views, &plugs, &belongs) {
            Look::Right => counts.right += 1,
            Look::NotAsked => counts.not_asked += 1,
            Look::Wrong(plug) => {
                counts.wrong += 1;
                wrong.push(plug);
            }
            Look::Silent(device, why) => {
                counts.unknown += 1;
                let plug = unplugged(cable);
                // It is told of the device that tells nothing, whichever end of the cable it is.
                let plug = match cable.from.device == device {
                    true => plug,
                    false => Plug { end: cable.to.clone(), wanted: Some(cable.from.clone()), ..plug },
                };
                silent.entry(device).or_insert((why, Vec::new())).1.push(plug);
            }
            Look::Stranger(there) => {
                counts.wrong += 1;
                findings.push(finding(Kind::UnknownDevice, Plug { found: Some(there), ..unplugged(cable) }));
            }
            Look::NoLink => {
                counts.wrong += 1;
                findings.push(finding(Kind::NoLink, unplugged(cable)));
            }
            Look::Unknown(why) => {
                counts.unknown += 1;
                findings.push(Finding { why: Some(why), ..finding(Kind::Unknown, unplugged(cable)) });
            }
        }
    }
    counts.cables -= counts.not_asked;
    let mut all = moves(wrong);
    all.extend(findings);
    all.extend(uncabled(scope, &plugs, &belongs));
    // A device that has no cable in the file, and told nothing, is worth a word too.
    for (device, why) in views.iter().filter_map(|(device, view)| Some((device.as_str(), view.as_ref().err()?))) {
        silent.entry(device).or_insert((why, Vec::new()));
    }
    let told = |(device, (why, plugs)): (&str, (&Silent, Vec<Plug>))| Finding {
        kind: Kind::Silent,
        plugs: if plugs.is_empty() { vec![of_device(device)] } else { plugs },
        why: Some(Why::Silent(why.clone())),
    };
    all.extend(silent.into_iter().map(told));
    all.sort_by_key(|finding| (finding.kind, finding.plugs.first().map(|plug| plug.end.clone())));
    Comparison { findings: all, counts }
}

fn look<'a>(cable: &Cable, views: &'a Views, plugs: &Plugs, belongs: &HashMap<&End, &End>) -> Look<'a> {
    if plugs.are(&cable.from, &cable.to) {
        return Look::Right;
    }
    if let Some(found) = plugs.found(&cable.from) {
        let owner = belongs.get(found).map(|owner| (*owner).clone());
        return Look::Wrong(Plug { found: Some(found.clone()), owner, ..unplugged(cable) });
    }
    let mut looks: Vec<Look> = [&cable.from, &cable.to].into_iter().filter_map(|end| from_an_end(end, views, plugs)).collect();
    // What is known counts for more than what is not.
    looks.sort_by_key(|look| match look {
        Look::Stranger(_) => 0,
        Look::NoLink => 1,
        Look::Unknown(_) => 2,
        _ => 3,
    });
    looks.into_iter().next().unwrap_or(Look::NotAsked)
}

/// What a device says of a port on which the cable's other end is not heard; nothing where it was not asked.
fn from_an_end<'a>(end: &End, views: &'a Views, plugs: &Plugs) -> Option<Look<'a>> {
    let (device, view) = views.get_key_value(&end.device)?;
    let view = match view {
        Ok(view) => view,
        Err(why) => return Some(Look::Silent(device, why)),
    };
    // Where this cable's other end is in, nobody tells; but not here.
    if let Some(other) = plugs.found(end) {
        return Some(Look::Unknown(Why::Taken(other.clone())));
    }
    Some(match (plugs.other(end).cloned(), view.ports.get(&end.port)) {
        (Some(Spot::Stranger(there)), _) => Look::Stranger(there),
        (Some(Spot::Unclear { device, said }), _) => Look::Unknown(Why::Unclear { device, said }),
        (Some(Spot::Nameless(chassis)), _) => Look::Unknown(Why::Nameless(chassis)),
        (_, None) => Look::Unknown(Why::Absent),
        (_, Some(Heard::NoLink)) => Look::NoLink,
        (_, Some(Heard::Down)) => Look::Unknown(Why::Down),
        (_, Some(Heard::Neighbours(_))) => Look::Unknown(Why::HearsNobody),
    })
}

/// NICs that the file has no cable for and that are in a port all the same.
fn uncabled(scope: Scope, plugs: &Plugs, belongs: &HashMap<&End, &End>) -> Vec<Finding> {
    let cabled: BTreeSet<&End> = scope.cables.iter().map(|cable| &cable.from).collect();
    let of = |nic: &End| {
        let found = plugs.found(nic)?.clone();
        let owner = belongs.get(&found).map(|owner| (*owner).clone());
        let plug = Plug { end: nic.clone(), wanted: None, found: Some(found), owner, line: None };
        Some(finding(Kind::NotInFile, plug))
    };
    scope.nics.iter().filter(|nic| !cabled.contains(nic)).filter_map(of).collect()
}

fn finding(kind: Kind, plug: Plug) -> Finding {
    Finding { kind, plugs: vec![plug], why: None }
}

fn unplugged(cable: &Cable) -> Plug {
    Plug { end: cable.from.clone(), wanted: Some(cable.to.clone()), found: None, owner: None, line: Some(cable.line) }
}

fn of_device(device: &str) -> Plug {
    Plug { end: End::new(device, ""), wanted: None, found: None, owner: None, line: None }
}
