//! Hosts that wait for a power cycle by hand: in another boot they are out of service, whether the run that waits goes on or not. Pure.

use super::State;
use super::recognition::{TargetIdentity, are_two};
use super::run_status::RunStatus;
use crate::base::{MachineId, Target};
use crate::plan::by_hand::{changes_before_power_cycles, may_wait};
use crate::plan::{Outage, OutageCause, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host that waits for a power cycle by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedPowerCycle {
    /// The name that it had then.
    pub host: String,
    /// The run that waits.
    pub run: String,
    /// The boot in which the steps before it were done, or a gate passed the host since: another one is the power cycle, or a reboot by
    /// somebody else. Nothing where somebody decided that the host is in service: the boot of the next look.
    pub boot_id: Option<String>,
    /// The machine, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Since when, RFC 3339.
    pub since: String,
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
    /// Both are about one host, as far as its machine is known.
    fn is_of(&self, host: &str, machine: Option<&MachineId>) -> bool {
        self.host == host && !are_two(machine, self.machine.as_ref())
    }
}

impl RunStatus {
    fn due_power_cycles(&self, plan: &Plan) -> Vec<DueInRun> {
        let due = |(n, changes): (usize, Vec<&str>)| {
            let (node, host) = (&plan.nodes[n], &*plan.nodes[n].target.as_ref()?.name);
            let last = self.last_done(changes.into_iter())?;
            let in_service = self.in_service_since(host);
            let boot_id = if in_service > last.finished { self.boot_in_service(host) } else { self.boot_at(host, last.finished) };
            let awaited = AwaitedPowerCycle {
                host: host.to_owned(),
                run: self.run.clone(),
                boot_id: boot_id.map(str::to_owned),
                machine: self.machines.get(host).map(|(machine, _)| machine.clone()),
                since: last.over_at.clone()?,
            };
            let is_done = self.last_done([node.id.as_str()].into_iter()).is_some();
            Some(DueInRun { awaited, is_done, sequence: in_service.max(last.finished) })
        };
        changes_before_power_cycles(&plan.nodes).into_iter().filter_map(due).collect()
    }
}

impl State {
    /// What a run waits for, as far as it went, by its plan; what is remembered goes as far as the record `known`. What other runs wait for
    /// stays, but for hosts that this one waits for or has seen switched off and on, and those that it passed and its plan asks nothing of.
    pub(super) fn await_power_cycles(&mut self, run: &RunStatus, plan: &Plan, known: u64) {
        let due = run.due_power_cycles(plan);
        let passed = run.proven.iter().filter(|(host, sequence)| **sequence > known && !may_wait(plan, host)).map(|(host, _)| host);
        let passed: Vec<(&str, Option<&MachineId>)> =
            passed.map(|host| (&**host, run.machines.get(host).map(|(machine, _)| machine))).collect();
        let is_over = |of: &AwaitedPowerCycle| {
            let is_due = due.iter().any(|due| of.is_of(&due.awaited.host, due.awaited.machine.as_ref()));
            of.run == run.run || is_due || passed.iter().any(|(host, machine)| of.is_of(host, *machine))
        };
        let (before, others) = std::mem::take(&mut self.awaited_power_cycles).into_iter().partition::<Vec<_>, _>(is_over);
        self.awaited_power_cycles = others;
        for DueInRun { awaited, sequence, .. } in due.into_iter().filter(|due| !due.is_done) {
            // What was seen of it since is not in the journal.
            let same = |of: &&AwaitedPowerCycle| sequence <= known && of.run == awaited.run && of.host == awaited.host;
            self.awaited_power_cycles.push(before.iter().find(same).cloned().unwrap_or(awaited));
        }
    }

    /// Whoever waits for a power cycle by hand and is in another boot is out of service.
    pub(super) fn note_power_cycles(&mut self, seen: &BTreeMap<Target, TargetIdentity>) {
        for (target, identity) in seen {
            let (machine, Some(boot)) = (identity.machine_id.known(), identity.boot_id.as_deref()) else { continue };
            if let Some(outage) = self.power_cycled(&target.name, machine, Some(boot)) {
                self.outages.entry(target.name.to_string()).or_insert(outage);
            } else if let Some(n) = self.awaited(&target.name, machine) {
                self.awaited_power_cycles[n].boot_id.get_or_insert_with(|| boot.to_owned());
            }
        }
    }

    /// The outage of a host that waits for a power cycle by hand, under the name that it had then, and is in another boot: no gate has passed
    /// it since.
    pub fn power_cycled(&self, host: &str, machine: Option<&MachineId>, boot: Option<&str>) -> Option<Outage> {
        let awaited = &self.awaited_power_cycles[self.awaited(host, machine)?];
        boot.zip(awaited.boot_id.as_deref()).filter(|(now, before)| now != before)?;
        let cause = OutageCause::Unproven { node: format!("{}/reboot", Target::host(host)) };
        Some(Outage { cause, since: awaited.since.clone(), run: awaited.run.clone() })
    }

    /// Whether a host of this name waits for a power cycle by hand.
    pub fn awaits_power_cycle(&self, host: &str) -> bool {
        self.awaited(host, self.machines.get(host)).is_some()
    }

    /// A gate passed the host in this boot, or somebody decided so of whichever it is in: it waits on in that one.
    pub(super) fn wait_on(&mut self, host: &str, boot: Option<&str>) {
        if let Some(n) = self.awaited(host, self.machines.get(host)) {
            self.awaited_power_cycles[n].boot_id = boot.map(str::to_owned);
        }
    }

    /// What a machine waits for, whatever its name is now; by the name where one of the two is not known, or is that of several.
    fn awaited(&self, host: &str, machine: Option<&MachineId>) -> Option<usize> {
        let machine = machine.filter(|machine| !self.cloned.contains(machine));
        let all = || self.awaited_power_cycles.iter();
        let of_machine = machine.and_then(|_| all().position(|awaited| awaited.machine.as_ref() == machine));
        of_machine.or_else(|| all().position(|awaited| awaited.is_of(host, machine)))
    }
}
