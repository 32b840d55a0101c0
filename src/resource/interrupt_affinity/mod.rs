//! `interrupt_affinity`: the CPUs that handle the interrupts of a NIC: those of its NUMA node, or a
//! list, one interrupt after the other to the next CPU, as NVIDIA's own tool does it
//! (Mellanox/mlnx-tools: ofed_scripts/set_irq_affinity_bynode.sh). Its name is the netdev's.
//!
//! The kernel forgets it at a reboot, and with every queue that comes anew; a unit of ours binds
//! them again. irqbalance moves interrupts while it runs: with it, the resource is refused.
//! Interrupts that the kernel manages by itself cannot be bound.

pub mod found;
pub mod script;

use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::systemd_unit::found::FoundUnit;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use found::{InterruptFacts, Interrupts, parse_cpu_list, read_interrupts};
use railwright_base::Reason;
use railwright_base::text::one_line;
use schemars::JsonSchema;
use script::InterruptBinding;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kind.
pub struct InterruptAffinity;

const BALANCER: &str = "irqbalance.service";
const LOCAL: &str = "numa-local";

/// The desired state of the interrupts of a NIC.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InterruptAffinityBody {
    netdev: String,
    /// numa-local, or a list such as 0-7,16.
    cpus: String,
    known_after: Option<String>,
}

impl Body for InterruptAffinityBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.check_known_after(self.known_after.as_deref());
        if self
            .cpu_list()
            .is_some_and(|list| parse_cpu_list(list).is_none())
        {
            errors.add(
                "/cpus",
                format!("`{}` is no list of CPUs", self.cpus),
                "numa-local, or a list such as 0-7,16",
            );
        }
    }
}

impl InterruptAffinityBody {
    /// The CPUs, where they are not those of the NUMA node.
    fn cpu_list(&self) -> Option<&str> {
        (self.cpus != LOCAL).then_some(&self.cpus)
    }
}

/// Where each interrupt was handled before our first change, by number and name: a number alone may
/// be another's after a reload of the driver.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorInterruptAffinity {
    interrupts: BTreeMap<u32, [String; 2]>,
}

impl ResourceKind for InterruptAffinity {
    fn name(&self) -> &'static str {
        "interrupt_affinity"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<InterruptAffinityBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<InterruptAffinityBody>(&resource.body);
        let mut reads = vec![
            Read::Interrupts {
                netdev: body.netdev.clone(),
            },
            Read::Unit {
                name: BALANCER.to_owned(),
            },
        ];
        reads.extend(build_affinity_unit(&body).reads());
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<InterruptAffinityBody>(&resource.body);
        let netdev = &body.netdev;
        match read_interrupts(answers, netdev) {
            Err(reason) => build_uniform_diff(body, &Reading::Unknown(reason)),
            Ok(InterruptFacts::NoInterrupts) => {
                let reason = format!("{netdev} has no interrupts of its own");
                build_uniform_diff(body, &Reading::NotApplicable(reason.into()))
            }
            Ok(InterruptFacts::Missing) => {
                let mut diff = build_uniform_diff(body, &Reading::Absent);
                let reason = format!("there is no netdev {netdev}");
                wait_or_refuse(resource, reason.into(), &mut diff);
                diff
            }
            Ok(InterruptFacts::There(interrupts)) => {
                diff_interrupts(resource, body, answers, &interrupts)
            }
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        plan_affinity_undo(&read_body(&last_applied.body), before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorInterruptAffinity::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &[
            "package",
            "kernel_module",
            "kernel_module_build",
            "link",
            "systemd_unit",
        ]
    }
}

fn build_affinity_unit(body: &InterruptAffinityBody) -> PersistenceUnit {
    let commands = script::render_affinity_unit_script(&body.netdev, body.cpu_list());
    let trigger = Trigger::Netdev(body.netdev.clone());
    PersistenceUnit::new("interrupt-affinity", &body.netdev, trigger, &commands)
}

/// One that cannot be compared, or has no meaning here, in both planes.
fn build_uniform_diff(body: &InterruptAffinityBody, actual: &Reading) -> ResourceDiff {
    let desired = Reading::is(body.cpus.as_str());
    let attribute = Attribute::in_plane(Plane::Persisted, desired.clone(), actual.clone()).and(
        Plane::Running,
        desired,
        actual.clone(),
    );
    ResourceDiff {
        attributes: [("cpus".to_owned(), attribute)].into(),
        ..ResourceDiff::default()
    }
}

/// What is not there yet, or not gone yet, waits for the step that the resource names, or something
/// is wrong.
fn wait_or_refuse(resource: &DesiredResource, reason: Reason, diff: &mut ResourceDiff) {
    diff.wait_or_refuse(
        resource,
        &["reload_systemd", "set_interrupts", "write_file"],
        || reason.to_string(),
    );
}

fn diff_interrupts(
    resource: &DesiredResource,
    body: &InterruptAffinityBody,
    answers: &ReadResults,
    interrupts: &Interrupts,
) -> ResourceDiff {
    let desired = Reading::is(body.cpus.as_str());
    let listed = body.cpu_list().and_then(parse_cpu_list);
    let targets = listed.unwrap_or_else(|| interrupts.local.clone());
    if let Some(offline) = targets.iter().find(|cpu| !interrupts.online.contains(cpu)) {
        let refusal = Some(format!("CPU {offline} is not online on this host"));
        return ResourceDiff {
            refusal,
            ..build_uniform_diff(body, &Reading::Absent)
        };
    }
    let mut all = interrupts.all.values();
    if !interrupts.all.is_empty() && all.all(|interrupt| interrupt.is_managed) {
        let reason = format!(
            "the kernel manages the interrupts of {} by itself and lets nobody bind them",
            body.netdev
        );
        return build_uniform_diff(body, &Reading::NotApplicable(reason.into()));
    }
    let astray = find_misplaced_interrupts(interrupts, &targets);
    let actual = if astray.is_empty() {
        desired.clone()
    } else {
        Reading::is(describe_misplaced_interrupts(interrupts, &astray))
    };
    let keeper = build_affinity_unit(body);
    let kept = keeper.kept(answers);
    let persisted = read_persisted_cpus(&desired, &keeper, &kept);
    let cpus = Attribute::in_plane(Plane::Persisted, desired.clone(), persisted).and(
        Plane::Running,
        desired,
        actual,
    );
    let unit = keeper.attribute(&kept);
    let mut diff = ResourceDiff {
        attributes: [("cpus".to_owned(), cpus), ("unit".to_owned(), unit)].into(),
        before: serde_json::to_value(collect_current_affinity(interrupts)).unwrap_or_default(),
        ..ResourceDiff::default()
    };
    if diff_irqbalance(resource, answers, &mut diff) {
        return diff;
    }
    let Ok(kept) = kept else { return diff };
    if diff.is_met() || diff.has_unknown() {
        return diff;
    }
    diff.actions = keeper.write(&kept);
    if !astray.is_empty() {
        diff.actions.push(Action::SetInterrupts {
            interrupts: build_interrupt_bindings(astray),
        });
    }
    diff
}

/// Notes irqbalance unless it is stopped: nothing is bound beside it. Returns whether it was noted.
fn diff_irqbalance(
    resource: &DesiredResource,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) -> bool {
    let balancer = read_irqbalance_state(answers);
    if balancer == Reading::is("stopped") {
        return false;
    }
    let runs = balancer == Reading::is("runs");
    diff.attributes.insert(
        "irqbalance".to_owned(),
        Attribute::in_plane(Plane::Running, Reading::is("stopped"), balancer),
    );
    if runs {
        let reason = "irqbalance runs and would move the interrupts again: say `tuning: \
                      { irqbalance: false }`, or leave them to it";
        wait_or_refuse(resource, reason.to_owned().into(), diff);
    }
    true
}

/// Whether irqbalance runs. Where there is no systemd, or no such unit, nothing of the distribution
/// starts it.
fn read_irqbalance_state(answers: &ReadResults) -> Reading {
    match answers.output(&Read::Unit {
        name: BALANCER.to_owned(),
    }) {
        Err(reason) => Reading::Unknown(reason),
        Ok((69, _)) => Reading::is("stopped"),
        Ok(_) => match FoundUnit::of(BALANCER, answers) {
            Err(reason) => Reading::Unknown(reason),
            Ok(unit) if unit.is_running() => Reading::is("runs"),
            Ok(_) => Reading::is("stopped"),
        },
    }
}

/// The interrupts that are handled on other CPUs than desired, with where they belong.
fn find_misplaced_interrupts(interrupts: &Interrupts, targets: &[u32]) -> BTreeMap<u32, String> {
    let mut misplaced = BTreeMap::new();
    for (number, cpu) in interrupts.spread(targets) {
        let interrupt = interrupts.all.get(&number);
        let actual = interrupt.and_then(|interrupt| parse_cpu_list(&interrupt.list));
        if actual != Some(vec![cpu]) {
            misplaced.insert(number, cpu.to_string());
        }
    }
    misplaced
}

fn build_interrupt_bindings(all: BTreeMap<u32, String>) -> Vec<InterruptBinding> {
    all.into_iter()
        .map(|(number, cpus)| InterruptBinding { number, cpus })
        .collect()
}

/// `3 of 16 elsewhere: mlx5_comp0 on 0-63, ...`.
fn describe_misplaced_interrupts(
    interrupts: &Interrupts,
    astray: &BTreeMap<u32, String>,
) -> String {
    let some = astray
        .keys()
        .filter_map(|number| interrupts.all.get(number))
        .take(3);
    let some: Vec<String> = some
        .map(|interrupt| {
            format!(
                "{} on {}",
                one_line(&interrupt.name, 40),
                one_line(&interrupt.list, 40)
            )
        })
        .collect();
    let more = if astray.len() > 3 { ", ..." } else { "" };
    format!(
        "{} of {} elsewhere: {}{more}",
        astray.len(),
        interrupts.all.len(),
        some.join(", ")
    )
}

fn read_persisted_cpus(
    desired: &Reading,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Reading {
    keeper.persisted(kept, desired.clone(), |text| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("cpus='")?.strip_suffix('\''));
        value.map_or_else(
            || Reading::is("changed"),
            |value| Reading::is(one_line(value, 60)),
        )
    })
}

/// Where each is handled now.
fn collect_current_affinity(interrupts: &Interrupts) -> PriorInterruptAffinity {
    let all = interrupts.all.iter();
    let interrupts = all.map(|(number, interrupt)| {
        let place = [interrupt.name.clone(), interrupt.list.clone()];
        (*number, place)
    });
    PriorInterruptAffinity {
        interrupts: interrupts.collect(),
    }
}

/// What was bound before goes back to where it was; queues that have come since stay where they
/// are.
fn plan_affinity_undo(
    body: &InterruptAffinityBody,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let interrupts = match read_interrupts(answers, &body.netdev) {
        Err(reason) => return ResourceDiff::unknown_undo(Plane::Running, before, reason),
        Ok(interrupts) => interrupts,
    };
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    build_affinity_unit(body).take_back(&mut diff, answers);
    let prior = PriorInterruptAffinity::deserialize(before).unwrap_or_default();
    let InterruptFacts::There(now) = interrupts else {
        return diff;
    };
    let mut back = BTreeMap::new();
    for (number, interrupt) in now
        .all
        .iter()
        .filter(|(_, interrupt)| !interrupt.is_managed)
    {
        let Some([name, list]) = prior.interrupts.get(number) else {
            continue;
        };
        let is_list = parse_cpu_list(list)
            .is_some_and(|cpus| cpus.iter().all(|cpu| now.online.contains(cpu)));
        if *name == interrupt.name
            && is_list
            && parse_cpu_list(list) != parse_cpu_list(&interrupt.list)
        {
            back.insert(*number, list.clone());
        }
    }
    let found = if back.is_empty() {
        Reading::is("as before")
    } else {
        Reading::is(describe_misplaced_interrupts(&now, &back))
    };
    diff.attributes.insert(
        "cpus".to_owned(),
        Attribute::in_plane(Plane::Running, Reading::is("as before"), found),
    );
    if !back.is_empty() {
        diff.actions.push(Action::SetInterrupts {
            interrupts: build_interrupt_bindings(back),
        });
    }
    diff
}

#[cfg(test)]
mod tests;
