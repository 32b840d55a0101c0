//! Hosts that wait for a power cycle by hand: in another boot they are out of service, whether the
//! run that waits goes on or not. Pure.

use super::ClusterState;
use super::recognition::{TargetIdentity, are_two};
use super::run_status::RunStatus;
use railwright_base::{Address, Digest, MachineId, Target};
use railwright_plan::by_hand::{asks_nothing_of, changes_before_power_cycles};
use railwright_plan::{Outage, OutageCause, Plan, PlanNode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A host that waits for a power cycle by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedPowerCycle {
    /// The name that it had then.
    pub host: String,
    /// The run that waits.
    pub run: String,
    /// The boot in which the steps before it were done, or a gate passed the host since: another
    /// one is the power cycle, or a reboot by somebody else.
    pub boot_id: String,
    /// The machine, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Since when, RFC 3339.
    pub since: String,
    /// What takes effect with it, with the digest of what was desired; without one where it was
    /// undone.
    pub resources: BTreeMap<Address, Option<Digest>>,
}

/// A power cycle by hand of a run's plan, with all that comes before it done.
struct DueInRun {
    awaited: AwaitedPowerCycle,
    /// It was made.
    is_done: bool,
    /// The record that says in which boot the host was last.
    sequence: u64,
}

impl AwaitedPowerCycle {
    /// It is about this host: by the machine, where that is known of both, else by the name.
    fn is_of(&self, host: &str, machine: Option<&MachineId>) -> bool {
        match self.machine.as_ref().zip(machine) {
            Some((then, now)) => then == now,
            None => self.host == host,
        }
    }
}

impl RunStatus {
    fn due_power_cycles(&self, plan: &Plan) -> Vec<DueInRun> {
        let mut due = Vec::new();
        for (n, changes) in changes_before_power_cycles(&plan.nodes) {
            due.extend(self.due_power_cycle(&plan.nodes[n], &changes));
        }
        due
    }

    /// Nothing while one of the changes before it is not done.
    fn due_power_cycle(&self, node: &PlanNode, changes: &[&PlanNode]) -> Option<DueInRun> {
        let host = &*node.target.as_ref()?.name;
        let last = self.last_done(changes.iter().map(|change| change.id.as_str()))?;
        let proven = self.proven.get(host).copied().unwrap_or_default();
        let returned = self.returned.get(host).copied().unwrap_or_default();
        let sequence = proven.max(last.finished);
        let mut resources = BTreeMap::new();
        for member in changes.iter().flat_map(|change| change.members()) {
            if member.needs_power_cycle {
                let digest = (!member.removal).then(|| member.resource.digest());
                resources.insert(member.resource.address.clone(), digest);
            }
        }
        let awaited = AwaitedPowerCycle {
            host: host.to_owned(),
            run: self.run.clone(),
            boot_id: self.boot_at(host, sequence)?.to_owned(),
            machine: self.machines.get(host).map(|(machine, _)| machine.clone()),
            since: last.over_at.clone()?,
            resources,
        };
        let is_made = self.last_done([node.id.as_str()].into_iter()).is_some();
        Some(DueInRun {
            awaited,
            is_done: returned > last.finished || is_made,
            sequence,
        })
    }
}

impl ClusterState {
    /// What a run waits for, as far as it went, by its plan; the state knew it as far as the record
    /// `known`. What other runs wait for stays, but for hosts that this one waits for or has seen
    /// switched off and on, and those that a gate passed where the run found in effect what they
    /// waited for.
    pub(super) fn await_power_cycles(&mut self, run: &RunStatus, plan: &Plan, known: u64) {
        let due = run.due_power_cycles(plan);
        let (mut before, mut others) = (Vec::new(), Vec::new());
        for awaited in std::mem::take(&mut self.awaited_power_cycles) {
            let is_due = due
                .iter()
                .any(|due| awaited.is_of(&due.awaited.host, due.awaited.machine.as_ref()));
            let is_over = awaited.run == run.run
                || is_due
                || self.is_passed_by(run, &awaited, known) && self.is_in_effect(&awaited, plan);
            if is_over {
                before.push(awaited);
            } else {
                others.push(awaited);
            }
        }
        self.awaited_power_cycles = others;
        for due in due {
            if due.is_done {
                continue;
            }
            let (awaited, is_known) = (due.awaited, due.sequence <= known);
            // What was seen of it since is not in the journal.
            let same = before.iter().find(|earlier| {
                is_known && earlier.run == awaited.run && earlier.host == awaited.host
            });
            let same = same.cloned();
            self.awaited_power_cycles.push(same.unwrap_or(awaited));
        }
    }

    /// Whether a gate of this run passed the host after the record `known`.
    fn is_passed_by(&self, run: &RunStatus, awaited: &AwaitedPowerCycle, known: u64) -> bool {
        let mut proven = run.proven.iter();
        proven.any(|(host, sequence)| {
            *sequence > known && awaited.is_of(host, self.machines.get(host))
        })
    }

    /// Whether all that takes effect with the power cycle is applied, and the plan asks nothing of
    /// it.
    fn is_in_effect(&self, awaited: &AwaitedPowerCycle, plan: &Plan) -> bool {
        for (address, desired) in &awaited.resources {
            let applied = self.last_applied.applied(address);
            let is_applied = match (applied, desired) {
                (Some(applied), Some(desired)) => applied.digest == *desired,
                _ => false,
            };
            if !is_applied || !asks_nothing_of(plan, address) {
                return false;
            }
        }
        !awaited.resources.is_empty()
    }

    /// Whoever waits for a power cycle by hand and is in another boot is out of service.
    pub(super) fn note_power_cycles(&mut self, seen: &BTreeMap<Target, TargetIdentity>) {
        let machines: BTreeSet<&MachineId> = seen
            .values()
            .filter_map(|identity| identity.machine_id.known())
            .collect();
        for (target, identity) in seen {
            let (name, machine) = (&*target.name, identity.machine_id.known());
            let boot = identity.boot_id.as_deref();
            // One that was re-installed while it was off has its name alone; one that got another
            // name is seen under that.
            let outage = self.power_cycle_outage(name, machine, boot, |of| !machines.contains(of));
            if let Some(outage) = outage {
                self.outages.entry(name.to_owned()).or_insert(outage);
            }
        }
    }

    /// The outage of a host that waits for a power cycle by hand, under whatever name it had then,
    /// and is in another boot: no gate has passed it since.
    pub fn power_cycled(
        &self,
        host: &str,
        machine: Option<&MachineId>,
        boot: Option<&str>,
    ) -> Option<Outage> {
        self.power_cycle_outage(host, machine, boot, |_| true)
    }

    fn power_cycle_outage(
        &self,
        host: &str,
        machine: Option<&MachineId>,
        boot: Option<&str>,
        is_gone: impl Fn(&MachineId) -> bool,
    ) -> Option<Outage> {
        let awaited = &self.awaited_power_cycles[self.find_awaited(host, machine, is_gone)?];
        if boot? == awaited.boot_id {
            return None;
        }
        let node = format!("{}/reboot", Target::host(host));
        Some(Outage {
            cause: OutageCause::SwitchedOffAndOn { node },
            since: awaited.since.clone(),
            run: awaited.run.clone(),
        })
    }

    /// Whether a host of this name waits for a power cycle by hand.
    pub fn awaits_power_cycle(&self, host: &str) -> bool {
        self.find_awaited(host, self.machines.get(host), |_| true)
            .is_some()
    }

    /// A gate passed the host in this boot: it waits on in that one, where it is known.
    pub(super) fn wait_on(&mut self, host: &str, boot: Option<&str>) {
        let machine = self.machines.get(host).cloned();
        let awaited = self.find_awaited(host, machine.as_ref(), |_| true);
        if let (Some(n), Some(boot)) = (awaited, boot) {
            let awaited = &mut self.awaited_power_cycles[n];
            awaited.boot_id = boot.to_owned();
            awaited.machine = machine.or(awaited.machine.take());
        }
    }

    /// Somebody decided that the host is in service as it is.
    pub(super) fn wait_no_more(&mut self, host: &str) {
        while let Some(n) = self.find_awaited(host, self.machines.get(host), |_| true) {
            self.awaited_power_cycles.remove(n);
        }
    }

    /// What a machine waits for, whatever its name is now; by the name where one of the two is not
    /// known, is that of several, or where the machine that waits is gone and no other host's.
    fn find_awaited(
        &self,
        host: &str,
        machine: Option<&MachineId>,
        is_gone: impl Fn(&MachineId) -> bool,
    ) -> Option<usize> {
        let machine = machine.filter(|machine| !self.cloned.contains(machine));
        let mut awaited = self.awaited_power_cycles.iter();
        if let Some(n) = awaited.position(|awaited| awaited.is_of(host, machine)) {
            return Some(n);
        }
        for (n, awaited) in self.awaited_power_cycles.iter().enumerate() {
            if awaited.host != host {
                continue;
            }
            let Some(then) = &awaited.machine else {
                return Some(n);
            };
            let mut machines = self.machines.iter();
            let is_elsewhere = machines.any(|(name, known)| known == then && name != host);
            if are_two(Some(then), machine) && is_gone(then) && !is_elsewhere {
                return Some(n);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::host::MachineIdReading;

    fn machine(digit: char) -> MachineId {
        digit.to_string().repeat(32).parse().unwrap()
    }

    fn waits(host: &str, digit: Option<char>) -> AwaitedPowerCycle {
        let machine = digit.map(machine);
        let (run, since) = ("r".to_owned(), "t".to_owned());
        AwaitedPowerCycle {
            host: host.to_owned(),
            run,
            boot_id: "1".to_owned(),
            machine,
            since,
            resources: BTreeMap::new(),
        }
    }

    #[test]
    fn who_waits_is_known_by_its_machine_and_by_its_name_where_that_is_gone() {
        for (awaited, seen, out) in [
            (Some('a'), &[("h", Some('a'), "1")][..], ""),
            (Some('a'), &[("h", Some('a'), "2")], "h"),
            (
                Some('a'),
                &[("other", Some('a'), "2"), ("h", Some('b'), "2")],
                "other",
            ),
            (Some('a'), &[("h", Some('b'), "2")], "h"),
            (Some('a'), &[("h", None, "2")], "h"),
            (None, &[("h", Some('b'), "2")], "h"),
            (None, &[("other", Some('b'), "2")], ""),
        ] {
            let mut state = ClusterState {
                awaited_power_cycles: vec![waits("h", awaited)],
                ..ClusterState::default()
            };
            let identity = |digit: Option<char>, boot: &str| TargetIdentity {
                machine_id: digit.map_or(MachineIdReading::Unknown, |digit| {
                    MachineIdReading::Known(machine(digit))
                }),
                boot_id: Some(boot.to_owned()),
                ..TargetIdentity::default()
            };
            let seen: BTreeMap<_, _> = seen
                .iter()
                .map(|(name, digit, boot)| (Target::host(name), identity(*digit, boot)))
                .collect();
            state.recognize("att", &seen);
            assert_eq!(
                state.outages.keys().cloned().collect::<Vec<_>>().join(","),
                out,
                "{awaited:?} {seen:?}"
            );
            state.outages.clear();
            // A gate passed it in that boot, and it waits on.
            for (target, identity) in &seen {
                state.end_outage(&target.name, identity.boot_id.as_deref());
            }
            state.recognize("att", &seen);
            assert!(
                state.outages.is_empty() && state.awaited_power_cycles.len() == 1,
                "{awaited:?} {seen:?}"
            );
        }
    }
}
