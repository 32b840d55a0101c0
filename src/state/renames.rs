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
        let mut renames = Renames::default();
        let mut former_names: BTreeMap<&MachineId, Vec<&String>> = BTreeMap::new();
        for (name, machine) in self
            .machines
            .iter()
            .filter(|(name, _)| self.lineages.contains_key(*name))
        {
            former_names.entry(machine).or_default().push(name);
        }
        for (machine, target) in self
            .names_of_machines(seen)
            .into_iter()
            .filter(|(_, target)| target.kind == TargetKind::Host)
        {
            let is_new = self.machines.get(&*target.name) != Some(machine);
            if let Some([former]) = former_names
                .get(machine)
                .map(Vec::as_slice)
                .filter(|_| is_new)
            {
                renames.former.insert(target.clone(), (*former).clone());
            }
        }
        if renames.former.is_empty() {
            return renames;
        }
        let moves: BTreeMap<Target, String> = renames
            .former
            .clone()
            .into_iter()
            .chain(self.displaced(&renames.former, seen))
            .collect();
        let new_names: BTreeMap<&str, &Target> = moves
            .iter()
            .map(|(target, former)| (former.as_str(), target))
            .collect();
        let is_moved = |address: &Address| {
            address.target.kind == TargetKind::Host && new_names.contains_key(&*address.target.name)
        };
        let (moved, kept): (BTreeMap<Address, AppliedResource>, _) =
            std::mem::take(&mut self.last_applied.resources)
                .into_iter()
                .partition(|(address, _)| is_moved(address));
        self.last_applied.resources = kept;
        let take_slice = |former: &String| {
            (
                self.lineages.remove(former),
                self.taken_over.remove(former),
                self.machines.get(former).cloned(),
            )
        };
        let slices: Vec<_> = moves.values().map(take_slice).collect();
        for ((target, _), (lineage, taken_over, machine)) in moves.iter().zip(slices) {
            let count = machine
                .and_then(|machine| self.settle_machine(&target.name, &machine))
                .unwrap_or_default();
            renames
                .set_aside
                .extend((count > 0).then(|| (target.clone(), count)));
            self.lineages
                .extend(lineage.map(|lineage| (target.name.to_string(), lineage)));
            self.taken_over
                .extend(taken_over.map(|taken_over| (target.name.to_string(), taken_over)));
        }
        let rename = |address: Address| match new_names
            .get(&*address.target.name)
            .filter(|_| is_moved(&address))
        {
            Some(target) => Address {
                target: (*target).clone(),
                ..address
            },
            None => address,
        };
        let renamed = moved.into_iter().map(|(address, applied)| {
            let after = applied.after.into_iter().map(rename).collect();
            (rename(address), AppliedResource { after, ..applied })
        });
        self.last_applied.resources.extend(renamed);
        renames
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
