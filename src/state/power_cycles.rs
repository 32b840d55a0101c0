//! Hosts that wait for a power cycle by hand: in another boot they are out of service, whether the run that waits goes on or not. Pure.

use super::State;
use super::recognition::{TargetIdentity, are_two};
use super::run_status::RunStatus;
use crate::base::{MachineId, Target};
use crate::plan::by_hand::changes_before_power_cycles;
use crate::plan::{Outage, OutageCause, Plan, note_outage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host that waits for a power cycle by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedPowerCycle {
    /// The run that waits.
    pub run: String,
    /// The boot in which the steps before it were done: another one is the power cycle, or a reboot by somebody else.
    pub boot_id: String,
    /// The machine, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Since when, RFC 3339.
    pub since: String,
}

impl RunStatus {
    /// The hosts on which all is done that comes before a power cycle by hand of the run's plan, and not the power cycle.
    fn awaited_power_cycles(&self, plan: &Plan) -> BTreeMap<String, AwaitedPowerCycle> {
        let awaited = |(n, changes): (usize, Vec<&str>)| {
            let (node, host) = (&plan.nodes[n], &*plan.nodes[n].target.as_ref()?.name);
            let last = self.last_done(changes.into_iter())?;
            let (boot_id, since) = (self.boot_at(host, last.finished)?.to_owned(), last.over_at.clone()?);
            let machine = self.machines.get(host).map(|(machine, _)| machine.clone());
            let awaited = AwaitedPowerCycle { run: self.run.clone(), boot_id, machine, since };
            self.last_done([node.id.as_str()].into_iter()).is_none().then(|| (host.to_owned(), awaited))
        };
        changes_before_power_cycles(&plan.nodes).into_iter().filter_map(awaited).collect()
    }
}

impl State {
    /// What a run waits for, as far as it went, by its plan. What other runs wait for stays.
    pub(super) fn await_power_cycles(&mut self, run: &RunStatus, plan: &Plan) {
        self.awaited_power_cycles.retain(|_, awaited| awaited.run != run.run);
        self.awaited_power_cycles.extend(run.awaited_power_cycles(plan));
    }

    /// Whoever waited for a power cycle by hand and is in another boot is out of service.
    pub(super) fn note_power_cycles(&mut self, seen: &BTreeMap<Target, TargetIdentity>) {
        for (target, identity) in seen {
            let (machine, boot) = (identity.machine_id.known(), identity.boot_id.as_deref());
            let Some((name, outage)) = self.power_cycled(&target.name, machine, boot) else { continue };
            self.awaited_power_cycles.remove(&name);
            note_outage(&mut self.outages, target.name.to_string(), outage);
        }
    }

    /// The outage of a host that waited for a power cycle by hand, under the name that it had then, and is in another boot: no gate
    /// has passed it since.
    pub fn power_cycled(&self, host: &str, machine: Option<&MachineId>, boot: Option<&str>) -> Option<(String, Outage)> {
        let (name, awaited) = self.awaited(host, machine)?;
        boot.filter(|boot| *boot != awaited.boot_id)?;
        let cause = OutageCause::Unproven { node: format!("{}/reboot", Target::host(host)) };
        Some((name.clone(), Outage { cause, since: awaited.since.clone(), run: awaited.run.clone() }))
    }

    /// A host that is in another boot was switched off and on, and a gate passed it.
    pub(super) fn end_power_cycle(&mut self, host: &str, boot: Option<&str>) {
        let power_cycled = self.power_cycled(host, self.machines.get(host), boot);
        power_cycled.into_iter().for_each(|(name, _)| drop(self.awaited_power_cycles.remove(&name)));
    }

    /// What a machine waits for, whatever its name is now; by the name where one of the two is not known, or is that of several.
    fn awaited(&self, host: &str, machine: Option<&MachineId>) -> Option<(&String, &AwaitedPowerCycle)> {
        let machine = machine.filter(|machine| !self.cloned.contains(machine));
        let of_machine = machine.and_then(|_| self.awaited_power_cycles.iter().find(|(_, awaited)| awaited.machine.as_ref() == machine));
        let of_name = || self.awaited_power_cycles.get_key_value(host).filter(|(_, awaited)| !are_two(machine, awaited.machine.as_ref()));
        of_machine.or_else(of_name)
    }
}
