//! Which port is in which, by all views together: what one end says of the other holds for both.

use super::names::{CablingNames, Spot};
use super::view::{DeviceLldpView, PortLldpState, Silent};
use railwright_knowledge::spec::cabling::CableEnd;
use std::collections::{BTreeMap, BTreeSet};

/// Ports by the ports that they are in.
#[derive(Debug, Default)]
pub struct Plugs {
    of: BTreeMap<CableEnd, BTreeSet<CableEnd>>,
    /// Who else is heard, by port.
    others: BTreeMap<CableEnd, Vec<Spot>>,
}

impl Plugs {
    /// Of these views.
    pub fn of<'v>(
        views: impl IntoIterator<Item = (&'v String, &'v Result<DeviceLldpView, Silent>)>,
        names: &CablingNames,
    ) -> Plugs {
        let mut plugs = Plugs::default();
        for (device, view) in views {
            let Ok(view) = view else { continue };
            for (port, heard) in &view.ports {
                let PortLldpState::Neighbours(neighbours) = heard else {
                    continue;
                };
                let here = CableEnd::new(device, port);
                for neighbour in neighbours {
                    match names.spot(neighbour) {
                        // A NIC with virtual functions may hear itself.
                        Spot::At(there) if there == here => {}
                        Spot::At(there) => {
                            plugs
                                .of
                                .entry(there.clone())
                                .or_default()
                                .insert(here.clone());
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
    pub fn are(&self, one: &CableEnd, other: &CableEnd) -> bool {
        self.of.get(one).is_some_and(|there| there.contains(other))
    }

    /// The port that this one is in; where several say so, the first of them.
    pub fn found(&self, end: &CableEnd) -> Option<&CableEnd> {
        self.of.get(end)?.first()
    }

    /// The one port that this one is in; none where several say so.
    pub fn only(&self, end: &CableEnd) -> Option<&CableEnd> {
        self.of.get(end).filter(|there| there.len() == 1)?.first()
    }

    /// Who is heard and cannot be matched to a port of the spec; strangers first.
    pub fn other(&self, end: &CableEnd) -> Option<&Spot> {
        self.others.get(end)?.first()
    }
}
