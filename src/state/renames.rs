//! A host that has another name in the spec than when it was applied to: what is remembered of it
//! goes with its machine. Pure.

use super::ClusterState;
use super::recognition::TargetIdentity;
use railwright_base::{Address, MachineId, Target, TargetKind};
use railwright_plan::AppliedResource;
use std::collections::{BTreeMap, BTreeSet};

/// What came of following the machines.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Renames {
    /// The former name of each host that has another one now.
    pub former: BTreeMap<Target, String>,
    /// Resources of other machines that had these names before, and are set aside.
    pub set_aside: BTreeMap<Target, usize>,
}

impl ClusterState {
    /// The one name under which each machine is seen, but for machines whose id is that of several.
    pub(super) fn names_of_machines<'a>(
        &self,
        seen: &'a BTreeMap<Target, TargetIdentity>,
    ) -> BTreeMap<&'a MachineId, &'a Target> {
        let mut names: BTreeMap<&MachineId, BTreeSet<&Target>> = BTreeMap::new();
        for (target, machine) in seen
            .iter()
            .filter_map(|(target, identity)| Some((target, identity.machine_id.known()?)))
        {
            names.entry(machine).or_default().insert(target);
        }
        let one = |(machine, names): (_, BTreeSet<&'a Target>)| {
            Some((
                machine,
                names.first().copied().filter(|_| names.len() == 1)?,
            ))
        };
        names
            .into_iter()
            .filter(|(machine, _)| !self.cloned.contains(*machine))
            .filter_map(one)
            .collect()
    }

    /// Moves what is remembered of machines that are seen under another name than before, what no
    /// record says yet too. A machine of which something is remembered under several names keeps it
    /// there: nobody knows which of them was the last.
    pub(super) fn follow_renames(&mut self, seen: &BTreeMap<Target, TargetIdentity>) -> Renames {
        let former = self.find_former_names(seen);
        if former.is_empty() {
            return Renames::default();
        }
        let mut moves = former.clone();
        moves.extend(self.displaced(&former, seen));
        let new_names: BTreeMap<&str, &Target> = moves
            .iter()
            .map(|(target, former)| (former.as_str(), target))
            .collect();
        let (moved, kept): (BTreeMap<Address, AppliedResource>, _) =
            std::mem::take(&mut self.last_applied.resources)
                .into_iter()
                .partition(|(address, _)| find_new_target(address, &new_names).is_some());
        self.last_applied.resources = kept;
        let set_aside = self.move_host_memory(&moves);
        let rename = |address: Address| match find_new_target(&address, &new_names) {
            Some(target) => Address {
                target: target.clone(),
                ..address
            },
            None => address,
        };
        let renamed = moved.into_iter().map(|(address, applied)| {
            let after = applied.after.into_iter().map(rename).collect();
            (rename(address), AppliedResource { after, ..applied })
        });
        self.last_applied.resources.extend(renamed);
        Renames { former, set_aside }
    }

    /// The former name of each host whose machine is remembered under exactly one other name.
    fn find_former_names(
        &self,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> BTreeMap<Target, String> {
        let mut names_before: BTreeMap<&MachineId, Vec<&String>> = BTreeMap::new();
        for (name, machine) in self
            .machines
            .iter()
            .filter(|(name, _)| self.lineages.contains_key(*name))
        {
            names_before.entry(machine).or_default().push(name);
        }
        let mut former_names = BTreeMap::new();
        for (machine, target) in self.names_of_machines(seen) {
            let is_known = self.machines.get(&*target.name) == Some(machine);
            if target.kind != TargetKind::Host || is_known {
                continue;
            }
            if let Some([former]) = names_before.get(machine).map(Vec::as_slice) {
                former_names.insert(target.clone(), (*former).clone());
            }
        }
        former_names
    }

    /// Moves what is remembered of hosts, but for their resources, from the former name of each
    /// target to its own. Returns how many resources of other machines are set aside there.
    fn move_host_memory(&mut self, moves: &BTreeMap<Target, String>) -> BTreeMap<Target, usize> {
        let take_slice = |former: &String| {
            (
                self.lineages.remove(former),
                self.taken_over.remove(former),
                self.machines.get(former).cloned(),
            )
        };
        // Two hosts may swap their names: all is taken before anything is put down.
        let slices: Vec<_> = moves.values().map(take_slice).collect();
        let mut set_aside = BTreeMap::new();
        for (target, (lineage, taken_over, machine)) in moves.keys().zip(slices) {
            let count = machine
                .and_then(|machine| self.settle_machine(&target.name, &machine))
                .unwrap_or_default();
            if count > 0 {
                set_aside.insert(target.clone(), count);
            }
            self.lineages
                .extend(lineage.map(|lineage| (target.name.to_string(), lineage)));
            self.taken_over
                .extend(taken_over.map(|taken_over| (target.name.to_string(), taken_over)));
        }
        set_aside
    }

    /// Where the memory of a machine goes whose name another one has now, while it is not seen
    /// itself: under the name that came free, as when two hosts swap their names and only one of
    /// them is looked at. Whoever is seen under that name later has its own, or is new.
    fn displaced(
        &self,
        former: &BTreeMap<Target, String>,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> BTreeMap<Target, String> {
        let goes_on: BTreeSet<&String> = former.values().collect();
        let is_left = |target: &&Target| {
            let name = target.name.to_string();
            let machine = self
                .machines
                .get(&name)
                .filter(|_| !goes_on.contains(&name) && self.lineages.contains_key(&name));
            machine.is_some_and(|machine| !self.cloned.contains(machine))
        };
        let free_name = |target: &Target| {
            let mut free = Target::host(former.get(target)?);
            while let Some(before) = former.get(&free) {
                free = Target::host(before);
            }
            Some(free).filter(|free| {
                seen.get(free)
                    .is_none_or(|identity| identity.machine_id.known().is_none())
            })
        };
        former
            .keys()
            .filter(is_left)
            .filter_map(|target| Some((free_name(target)?, target.name.to_string())))
            .collect()
    }
}

/// Where a resource goes whose host had another name: `new_names` are targets by former name.
fn find_new_target<'a>(
    address: &Address,
    new_names: &BTreeMap<&str, &'a Target>,
) -> Option<&'a Target> {
    if address.target.kind != TargetKind::Host {
        return None;
    }
    new_names.get(&*address.target.name).copied()
}
