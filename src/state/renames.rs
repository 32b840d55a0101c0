//! A host that has another name in the spec than when it was applied to: what is remembered of it
//! goes with its machine. Pure.

use super::ClusterState;
use super::recognition::TargetIdentity;
use railwright_base::{Address, MachineId, Target, TargetKind};
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
        let mut targets: BTreeMap<&MachineId, Vec<&Target>> = BTreeMap::new();
        for (target, identity) in seen {
            if let Some(machine) = identity.machine_id.known()
                && !self.cloned.contains(machine)
            {
                targets.entry(machine).or_default().push(target);
            }
        }
        let mut names = BTreeMap::new();
        for (machine, targets) in targets {
            if let [target] = targets[..] {
                names.insert(machine, target);
            }
        }
        names
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
        moves.extend(self.find_displaced(&former, seen));
        let new_names: BTreeMap<&str, &Target> = moves
            .iter()
            .map(|(target, former)| (former.as_str(), target))
            .collect();
        let (mut moved, mut kept) = (Vec::new(), BTreeMap::new());
        for (address, applied) in std::mem::take(&mut self.last_applied.resources) {
            if find_new_target(&address, &new_names).is_some() {
                moved.push((address, applied));
            } else {
                kept.insert(address, applied);
            }
        }
        self.last_applied.resources = kept;
        let set_aside = self.move_host_memory(&moves);
        for (mut address, mut applied) in moved {
            for before in &mut applied.after {
                rename_target(before, &new_names);
            }
            rename_target(&mut address, &new_names);
            self.last_applied.resources.insert(address, applied);
        }
        Renames { former, set_aside }
    }

    /// The former name of each host whose machine is remembered under exactly one other name.
    fn find_former_names(
        &self,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> BTreeMap<Target, String> {
        let mut names_before: BTreeMap<&MachineId, Vec<&String>> = BTreeMap::new();
        for (name, machine) in &self.machines {
            if self.lineages.contains_key(name) {
                names_before.entry(machine).or_default().push(name);
            }
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
        // Two hosts may swap their names: all is taken before anything is put down.
        let mut slices = Vec::new();
        for (target, former) in moves {
            let lineage = self.lineages.remove(former);
            let taken_over = self.taken_over.remove(former);
            let machine = self.machines.get(former).cloned();
            slices.push((target, lineage, taken_over, machine));
        }
        let mut set_aside = BTreeMap::new();
        for (target, lineage, taken_over, machine) in slices {
            if let Some(machine) = machine
                && let Some(count) = self.settle_machine(&target.name, &machine)
                && count > 0
            {
                set_aside.insert(target.clone(), count);
            }
            if let Some(lineage) = lineage {
                self.lineages.insert(target.name.to_string(), lineage);
            }
            if let Some(taken_over) = taken_over {
                self.taken_over.insert(target.name.to_string(), taken_over);
            }
        }
        set_aside
    }

    /// Where the memory of a machine goes whose name another one has now, while it is not seen
    /// itself: under the name that came free, as when two hosts swap their names and only one of
    /// them is looked at. Whoever is seen under that name later has its own, or is new.
    fn find_displaced(
        &self,
        former: &BTreeMap<Target, String>,
        seen: &BTreeMap<Target, TargetIdentity>,
    ) -> BTreeMap<Target, String> {
        let goes_on: BTreeSet<&String> = former.values().collect();
        let mut displaced = BTreeMap::new();
        for target in former.keys() {
            let name = target.name.to_string();
            let Some(machine) = self.machines.get(&name) else {
                continue;
            };
            if goes_on.contains(&name)
                || !self.lineages.contains_key(&name)
                || self.cloned.contains(machine)
            {
                continue;
            }
            let mut free = target.clone();
            while let Some(before) = former.get(&free) {
                free = Target::host(before);
            }
            let identity = seen.get(&free);
            if identity.is_none_or(|identity| identity.machine_id.known().is_none()) {
                displaced.insert(free, name);
            }
        }
        displaced
    }
}

fn rename_target(address: &mut Address, new_names: &BTreeMap<&str, &Target>) {
    if let Some(target) = find_new_target(address, new_names) {
        address.target = target.clone();
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
