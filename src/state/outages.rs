//! Who is out of service, and which machine that is: an outage goes with the machine, whatever its
//! name in the spec. Pure.

use super::lineage::Descent;
use super::recognition::{TargetIdentity, are_two};
use super::{ClusterState, HostRecord};
use railwright_base::{MachineId, Redaction, Target};
use railwright_plan::{Outage, OutageCause, note_outage};
use std::collections::{BTreeMap, BTreeSet};

impl ClusterState {
    /// A machine that is out of service stays so under another name of the spec, also where it
    /// comes back after its name went to another machine. A name keeps what is said of it only
    /// where its machine is seen nowhere, or where its id is that of several.
    pub(super) fn follow_outages(&mut self, seen: &BTreeMap<Target, TargetIdentity>) {
        if self.outages.is_empty() && self.machine_outages.is_empty() {
            return;
        }
        let names = self.names_of_machines(seen);
        for (name, outage) in self.outages.clone() {
            let Some(machine) = self.machines.get(&name) else {
                continue;
            };
            if self.cloned.contains(machine) {
                continue;
            }
            note_outage(&mut self.machine_outages, machine.clone(), outage);
            let target = names.get(machine);
            if target.is_some_and(|target| *target.name != *name) {
                self.outages.remove(&name);
            }
        }
        for (machine, target) in names {
            if let Some(outage) = self.machine_outages.get(machine) {
                note_outage(&mut self.outages, target.name.to_string(), outage.clone());
            }
        }
    }

    /// What other runs than this one left of a host, as far as it says it itself and this side
    /// remembers it. What this run began before it was cut off is in its own journal; a record that
    /// this side knows nothing of is another's, also where it has the name of this run: a copy of
    /// the folder went on with it.
    pub fn outage_by_others(
        &self,
        host: &str,
        identity: &TargetIdentity,
        run: &str,
    ) -> Option<Outage> {
        let machine = identity.machine_id.known();
        if let Some(record) = identity.record.read()
            && let Some(outage) = self.outage_of_record(host, record, machine)
        {
            return Some(outage);
        }
        if let Some(machine) = machine
            && !self.cloned.contains(machine)
            && let Some(outage) = self.machine_outages.get(machine)
            && outage.run != run
        {
            return Some(outage.clone());
        }
        let outage = self.power_cycled(host, machine, identity.boot_id.as_deref())?;
        (outage.run != run).then_some(outage)
    }

    /// The outage in a host's record, where a run that this side knows nothing of wrote it.
    fn outage_of_record(
        &self,
        host: &str,
        record: &HostRecord,
        now: Option<&MachineId>,
    ) -> Option<Outage> {
        let is_known =
            !are_two(now, self.machines.get(host)) && self.descent(record) == Descent::Known;
        if is_known || record.is_of_another(now) {
            return None;
        }
        match &self.cluster {
            Some(ours) if ours.id == record.cluster.id => record.outage.clone(),
            _ => None,
        }
    }

    /// Hosts that this side remembers as out of service for certain, and of which a record that
    /// another folder's run wrote after that says something else: they may be in service again.
    pub fn given_back(&self, seen: &BTreeMap<Target, TargetIdentity>) -> BTreeSet<Target> {
        let mut given_back = BTreeSet::new();
        for (target, identity) in seen {
            if let Some(outage) = self.outages.get(&*target.name)
                && let Some(record) = identity.record.read()
                && is_given_back(outage, record)
            {
                given_back.insert(target.clone());
            }
        }
        given_back
    }

    /// A gate passed whoever has this name now, in this boot, where that is known. Says whether it
    /// was out of service.
    pub fn end_outage(&mut self, host: &str, boot: Option<&str>) -> bool {
        if let Some(machine) = self.machines.get(host) {
            self.machine_outages.remove(machine);
        }
        self.wait_on(host, boot);
        self.outages.remove(host).is_some()
    }

    /// What checks said once, without values that are secrets now: it may come onto any screen.
    pub fn redact_outages(&mut self, redaction: Option<&Redaction>) {
        for outage in self.outages.values_mut() {
            outage.redact(redaction);
        }
        for outage in self.machine_outages.values_mut() {
            outage.redact(redaction);
        }
    }

    /// Somebody decided that whoever has this name now is in service, and waits for nothing.
    pub(super) fn return_to_service(&mut self, host: &str) {
        self.end_outage(host, None);
        self.wait_no_more(host);
    }
}

/// Whether the run that wrote this record seems to have ended the outage. The run that left the
/// host may not have been able to write it down.
fn is_given_back(outage: &Outage, record: &HostRecord) -> bool {
    if outage.cause.is_in_doubt() {
        return false;
    }
    match &record.outage {
        Some(recorded) if !recorded.cause.is_in_doubt() => false,
        Some(recorded) if recorded.run == outage.run => {
            matches!(recorded.cause, OutageCause::GivenBack { .. })
        }
        _ => record.run != outage.run && record.earlier.has_run(&outage.run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_cycles::AwaitedPowerCycle;
    use railwright_resource::host::{MachineIdReading, RunningMachine};

    fn machine(digit: char) -> MachineId {
        digit.to_string().repeat(32).parse().unwrap()
    }

    fn outage() -> Outage {
        Outage {
            cause: OutageCause::Unproven {
                node: "n".to_owned(),
            },
            since: "t".to_owned(),
            run: "r".to_owned(),
        }
    }

    #[test]
    fn an_outage_goes_with_its_machine() {
        let seen = |hosts: &[(&str, Option<char>)]| {
            let one = |(name, digit): &(&str, Option<char>)| {
                let machine_id = digit.map_or(MachineIdReading::Unknown, |digit| {
                    MachineIdReading::Known(machine(digit))
                });
                (
                    Target::host(name),
                    TargetIdentity {
                        machine_id,
                        ..TargetIdentity::default()
                    },
                )
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
            let machines = [
                ("a".to_owned(), machine('1')),
                ("b".to_owned(), machine('2')),
            ]
            .into();
            let mut state = ClusterState {
                outages: [("a".to_owned(), outage())].into(),
                machines,
                ..ClusterState::default()
            };
            state.recognize("att", &seen(hosts));
            assert_eq!(state.outages.keys().collect::<Vec<_>>(), out, "{hosts:?}");
        }
    }

    #[test]
    fn what_a_run_left_itself_hides_nothing_that_others_left() {
        let of_run = |run: &str| Outage {
            run: run.to_owned(),
            ..outage()
        };
        let waits = |run: &str| AwaitedPowerCycle {
            host: "a".to_owned(),
            run: run.to_owned(),
            boot_id: "1".to_owned(),
            machine: Some(machine('1')),
            since: "t".to_owned(),
            resources: BTreeMap::new(),
        };
        let identity = TargetIdentity {
            machine_id: MachineIdReading::Known(machine('1')),
            boot_id: Some("2".to_owned()),
            ..TargetIdentity::default()
        };
        for (of_machine, awaited, found) in [
            (Some("own"), Some("other"), Some("other")),
            (Some("other"), Some("own"), Some("other")),
            (Some("own"), Some("own"), None),
            (Some("own"), None, None),
            (None, Some("other"), Some("other")),
        ] {
            let machine_outages = of_machine
                .map(|run| (machine('1'), of_run(run)))
                .into_iter()
                .collect();
            let awaited_power_cycles = awaited.map(waits).into_iter().collect();
            let state = ClusterState {
                machine_outages,
                awaited_power_cycles,
                ..ClusterState::default()
            };
            let outage = state.outage_by_others("a", &identity, "own");
            assert_eq!(
                outage.as_ref().map(|outage| outage.run.as_str()),
                found,
                "{of_machine:?} {awaited:?}"
            );
        }
    }

    #[test]
    fn an_outage_goes_with_the_machine_until_a_gate_passes_it() {
        let host = |name: &str, digit: char| {
            let machine_id = MachineIdReading::Known(machine(digit));
            (
                Target::host(name),
                TargetIdentity {
                    machine_id,
                    ..TargetIdentity::default()
                },
            )
        };
        let machines = [
            ("a".to_owned(), machine('1')),
            ("b".to_owned(), machine('2')),
            ("former".to_owned(), machine('1')),
        ]
        .into();
        let mut state = ClusterState {
            outages: [("a".to_owned(), outage())].into(),
            machines,
            ..ClusterState::default()
        };
        state.recognize("att", &[host("renamed", '1')].into());
        assert_eq!(
            (
                state.outages.keys().cloned().collect::<Vec<_>>(),
                &state.machines["a"]
            ),
            (vec!["renamed".to_owned()], &machine('1'))
        );
        state.recognize("att", &[host("a", '1')].into());
        let mut out = |seen: &[(&str, char)], passed: &str| {
            state.recognize(
                "att",
                &seen
                    .iter()
                    .map(|(name, digit)| host(name, *digit))
                    .collect(),
            );
            let out: Vec<String> = state.outages.keys().cloned().collect();
            state.end_outage(passed, None);
            out.join(",")
        };
        assert_eq!(
            out(&[("a", '2')], "a"),
            "a",
            "a spare has its name while it is down, and passes the gate"
        );
        assert_eq!(out(&[("a", '2')], ""), "");
        assert_eq!(
            out(&[("a", '2'), ("b", '1')], "b"),
            "b",
            "it comes back as another host"
        );
        assert_eq!(out(&[("a", '2'), ("b", '1')], ""), "");
        // Two of one image: what one of them passes says nothing of the other.
        let machines = [
            ("a".to_owned(), machine('1')),
            ("b".to_owned(), machine('1')),
        ]
        .into();
        let mut clones = ClusterState {
            outages: [("a".to_owned(), outage())].into(),
            machines,
            ..ClusterState::default()
        };
        let running = |(target, identity): (Target, TargetIdentity)| {
            let machine_id = identity.machine_id.known().cloned().unwrap();
            let running = RunningMachine {
                machine_id,
                boot_id: target.name.to_string(),
                pid_namespace: String::new(),
            };
            (
                target,
                TargetIdentity {
                    running: Some(running),
                    ..identity
                },
            )
        };
        clones.recognize("att", &[host("a", '1'), host("b", '1')].map(running).into());
        for seen in [&[("b", '1')][..], &[("a", '3'), ("b", '1')]] {
            clones.recognize(
                "att",
                &seen
                    .iter()
                    .map(|(name, digit)| host(name, *digit))
                    .collect(),
            );
            assert_eq!(clones.outages.keys().collect::<Vec<_>>(), ["a"], "{seen:?}");
            clones.end_outage("b", None);
        }
    }
}
