//! Who is out of service, and which machine that is: an outage goes with the machine, whatever its name in the spec. Pure.

use super::lineage::Descent;
use super::recognition::{TargetIdentity, are_two};
use super::{HostRecord, State};
use crate::base::{MachineId, Target};
use crate::plan::{Outage, OutageCause, note_outage};
use crate::resource::host::RunningMachine;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A host that waits for a power cycle by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedPowerCycle {
    /// The run that waits.
    pub run: String,
    /// The boot that the host was seen in last: another one is the power cycle, or a reboot by somebody else.
    pub boot_id: String,
    /// Since when, RFC 3339.
    pub since: String,
}

impl State {
    /// A machine that is out of service stays so under another name of the spec, also where it comes back after its name went to another
    /// machine. A name keeps what is said of it only where its machine is seen nowhere, or where its id is that of several.
    pub(super) fn follow_outages(&mut self, seen: &BTreeMap<Target, TargetIdentity>) {
        if self.outages.is_empty() && self.machine_outages.is_empty() {
            return;
        }
        let mut names: BTreeMap<&MachineId, BTreeSet<&str>> = BTreeMap::new();
        for (machine, target) in seen.iter().filter_map(|(target, identity)| Some((identity.machine_id.known()?, target))) {
            names.entry(machine).or_default().insert(&target.name);
        }
        let cloned = self.cloned_ids(&names);
        for (name, outage) in self.outages.clone() {
            let Some(machine) = self.machines.get(&name).filter(|machine| !cloned.contains(machine)) else { continue };
            self.machine_outages.entry(machine.clone()).or_insert(outage);
            if names.get(machine).is_some_and(|names| !names.contains(name.as_str())) {
                self.outages.remove(&name);
                // Whoever is seen under this name is settled later.
                if !names.values().any(|names| names.contains(name.as_str())) {
                    self.machines.remove(&name);
                }
            }
        }
        let now = names.iter().filter(|(machine, _)| !cloned.contains(**machine));
        for (name, outage) in now.filter_map(|(machine, names)| Some((names.first()?, self.machine_outages.get(*machine)?))) {
            note_outage(&mut self.outages, name, outage.clone());
        }
    }

    /// The ids that several hosts have or had: they were made part of an image.
    fn cloned_ids(&self, names: &BTreeMap<&MachineId, BTreeSet<&str>>) -> BTreeSet<MachineId> {
        let mut remembered: BTreeMap<&MachineId, usize> = BTreeMap::new();
        for machine in self.machines.values() {
            *remembered.entry(machine).or_default() += 1;
        }
        let seen = |machine: &MachineId| names.get(machine).map_or(0, BTreeSet::len);
        remembered.into_iter().filter(|(machine, count)| *count > 1 || seen(machine) > 1).map(|(machine, _)| machine.clone()).collect()
    }

    /// Whoever waited for a power cycle by hand and is in another boot is out of service.
    pub(super) fn note_power_cycles(&mut self, seen: &BTreeMap<Target, TargetIdentity>) {
        for (target, identity) in seen {
            if let Some(outage) = self.power_cycled(&target.name, identity.running.as_ref()) {
                self.awaited_power_cycles.remove(&*target.name);
                note_outage(&mut self.outages, &target.name, outage);
            }
        }
    }

    /// The outage of a host that waited for a power cycle by hand and is in another boot: no gate has passed it since.
    pub fn power_cycled(&self, host: &str, now: Option<&RunningMachine>) -> Option<Outage> {
        let awaited = self.awaited_power_cycles.get(host).filter(|awaited| now.is_some_and(|now| now.boot_id != awaited.boot_id))?;
        let cause = OutageCause::Unproven { node: format!("{}/reboot", Target::host(host)) };
        Some(Outage { cause, since: awaited.since.clone(), run: awaited.run.clone() })
    }

    /// The outage in a host's record, where a run that this side knows nothing of wrote it.
    pub fn outage_of_others(&self, host: &str, record: &HostRecord, now: Option<&MachineId>) -> Option<Outage> {
        let is_known = !are_two(now, self.machines.get(host)) && self.descent(record) == Descent::Known;
        let is_ours = self.cluster.as_ref().is_some_and(|ours| ours.id == record.cluster.id) && !record.is_of_another(now);
        record.outage.clone().filter(|_| is_ours && !is_known)
    }

    /// A gate passed whoever has this name now, or somebody decided so. Says whether it was out of service.
    pub fn end_outage(&mut self, host: &str) -> bool {
        let machine = self.machines.get(host);
        machine.into_iter().for_each(|machine| drop(self.machine_outages.remove(machine)));
        self.outages.remove(host).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::host::MachineIdReading;

    fn machine(digit: char) -> MachineId {
        digit.to_string().repeat(32).parse().unwrap()
    }

    fn outage() -> Outage {
        Outage { cause: OutageCause::Unproven { node: "n".to_owned() }, since: "t".to_owned(), run: "r".to_owned() }
    }

    #[test]
    fn an_outage_goes_with_its_machine() {
        let seen = |hosts: &[(&str, Option<char>)]| {
            let one = |(name, digit): &(&str, Option<char>)| {
                let machine_id = digit.map_or(MachineIdReading::Unknown, |digit| MachineIdReading::Known(machine(digit)));
                (Target::host(name), TargetIdentity { machine_id, ..TargetIdentity::default() })
            };
            hosts.iter().map(one).collect()
        };
        for (hosts, out) in [
            (&[("a", Some('1')), ("b", Some('2'))][..], &["a"][..]),
            (&[("a", Some('2')), ("b", Some('1'))], &["b"]),
            (&[("c", Some('1')), ("b", Some('2'))], &["c"]),
            (&[("a", Some('1')), ("b", Some('1'))], &["a"]),
            (&[("b", Some('1')), ("c", Some('1'))], &["a"]),
            (&[("a", Some('3')), ("b", Some('2'))], &["a"]),
            (&[("a", None), ("b", None)], &["a"]),
            (&[("b", Some('2'))], &["a"]),
        ] {
            let machines = [("a".to_owned(), machine('1')), ("b".to_owned(), machine('2'))].into();
            let mut state = State { outages: [("a".to_owned(), outage())].into(), machines, ..State::default() };
            state.recognize("att", &seen(hosts));
            assert_eq!(state.outages.keys().collect::<Vec<_>>(), out, "{hosts:?}");
        }
    }

    #[test]
    fn an_outage_goes_with_the_machine_until_a_gate_passes_it() {
        let host = |name: &str, digit: char| {
            let machine_id = MachineIdReading::Known(machine(digit));
            (Target::host(name), TargetIdentity { machine_id, ..TargetIdentity::default() })
        };
        let machines = [("a".to_owned(), machine('1')), ("b".to_owned(), machine('2'))].into();
        let mut state = State { outages: [("a".to_owned(), outage())].into(), machines, ..State::default() };
        let mut out = |seen: &[(&str, char)], passed: &str| {
            state.recognize("att", &seen.iter().map(|(name, digit)| host(name, *digit)).collect());
            let out: Vec<String> = state.outages.keys().cloned().collect();
            state.end_outage(passed);
            out.join(",")
        };
        assert_eq!(out(&[("a", '2')], "a"), "a", "a spare has its name while it is down, and passes the gate");
        assert_eq!(out(&[("a", '2')], ""), "");
        assert_eq!(out(&[("a", '2'), ("b", '1')], "b"), "b", "it comes back as another host");
        assert_eq!(out(&[("a", '2'), ("b", '1')], ""), "");
        // Two of one image: what one of them passes says nothing of the other.
        let machines = [("a".to_owned(), machine('1')), ("b".to_owned(), machine('1'))].into();
        let mut clones = State { outages: [("a".to_owned(), outage())].into(), machines, ..State::default() };
        for seen in [&[("b", '1')][..], &[("a", '3'), ("b", '1')]] {
            clones.recognize("att", &seen.iter().map(|(name, digit)| host(name, *digit)).collect());
            assert_eq!(clones.outages.keys().collect::<Vec<_>>(), ["a"], "{seen:?}");
            clones.end_outage("b");
        }
    }
}
