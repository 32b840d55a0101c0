//! Which port is in which, by all views together: what one end says of the other holds for both.

use super::names::{Names, Spot};
use super::view::{Heard, Silent, View};
use railwright_knowledge::spec::cabling::End;
use std::collections::{BTreeMap, BTreeSet};

/// Ports by the ports that they are in.
#[derive(Debug, Default)]
pub struct Plugs {
    of: BTreeMap<End, BTreeSet<End>>,
    /// Who else is heard, by port.
    others: BTreeMap<End, Vec<Spot>>,
}

impl Plugs {
    /// Of these views.
    pub fn of<'v>(views: impl IntoIterator<Item = (&'v String, &'v Result<View, Silent>)>, names: &Names) -> Plugs {
        let mut plugs = Plugs::default();
        for (device, view) in views {
            let Ok(view) = view else { continue };
            for (port, heard) in &view.ports {
                let Heard::Neighbours(neighbours) = heard else { continue };
                let here = End::new(device, port);
                for neighbour in neighbours {
                    match names.spot(neighbour) {
                        // A NIC with virtual functions may hear itself.
                        Spot::At(there) if there == here => {}
                        Spot::At(there) => {
                            plugs.of.entry(there.clone()).or_default().insert(here.clone());
                            plugs.of.entry(here.clone()).or_default().insert(there);
                        }
                        other => plugs.others.entry(here.clone()).or_default().push(other),
                    }
                }
            }
        }
        plugs.others.values_mut().for_each(|spots| spots.sort());
        plugs
    }

    /// Whether these two are in each other.
    pub fn are(&self, one: &End, other: &End) -> bool {
        self.of.get(one).is_some_and(|there| there.contains(other))
    }

    /// The port that this one is in; where several say so, the first of them.
    pub fn found(&self, end: &End) -> Option<&End> {
        self.of.get(end)?.first()
    }

    /// The one port that this one is in; none where several say so.
    pub fn only(&self, end: &End) -> Option<&End> {
        self.of.get(end).filter(|there| there.len() == 1)?.first()
    }

    /// Who is heard and cannot be told to a port of the spec; strangers first.
    pub fn other(&self, end: &End) -> Option<&Spot> {
        self.others.get(end)?.first()
    }
}
