//! `interrupt_affinity`: the CPUs that handle the interrupts of a NIC: those of its NUMA node, or a
//! list, one interrupt after the other to the next CPU, as NVIDIA's own tool does it
//! (Mellanox/mlnx-tools: ofed_scripts/set_irq_affinity_bynode.sh). Its name is the netdev's.
//!
//! The kernel forgets it at a reboot, and with every queue that comes anew; a unit of ours binds
//! them again. irqbalance moves interrupts while it runs: with it, the wish is refused. Interrupts
//! that the kernel manages by itself cannot be bound.

pub mod found;
pub mod script;

use super::fields::Fields;
use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::systemd_unit::found::FoundUnit;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Plane, Read, ReadResults, Reading,
    ResourceKind,
};
use crate::body::read_text_field;
use found::{InterruptFacts, Interrupts, parse_cpu_list, read_interrupts};
use railwright_base::Reason;
use railwright_base::text::one_line;
use script::InterruptBinding;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kind.
pub struct InterruptAffinity;

const BALANCER: &str = "irqbalance.service";
const LOCAL: &str = "numa-local";

impl ResourceKind for InterruptAffinity {
    fn name(&self) -> &'static str {
        "interrupt_affinity"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &["netdev", "cpus", "known_after"]);
        fields.netdev(true);
        fields.resource("known_after");
        if let Some(list) = fields
            .text("cpus", true)
            .filter(|list| *list != LOCAL && parse_cpu_list(list).is_none())
        {
            fields.error(
                "/cpus",
                format!("`{list}` is no list of CPUs"),
                Some("numa-local, or a list such as 0-7,16".to_owned()),
            );
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let mut reads = vec![
            Read::Interrupts {
                netdev: extract_netdev_name(wish).to_owned(),
            },
            Read::Unit {
                name: BALANCER.to_owned(),
            },
        ];
        reads.extend(build_affinity_unit(wish).reads());
        reads
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        match read_interrupts(answers, extract_netdev_name(wish)) {
            Err(reason) => build_uniform_diff(wish, &Reading::Unknown(reason)),
            Ok(InterruptFacts::NoInterrupts) => {
                let reason = format!("{} has no interrupts of its own", extract_netdev_name(wish));
                build_uniform_diff(wish, &Reading::NotApplicable(reason.into()))
            }
            Ok(InterruptFacts::Missing) => {
                let mut assessment = build_uniform_diff(wish, &Reading::Absent);
                wait_or_refuse(
                    wish,
                    format!("there is no netdev {}", extract_netdev_name(wish)).into(),
                    &mut assessment,
                );
                assessment
            }
            Ok(InterruptFacts::There(interrupts)) => diff_interrupts(wish, answers, &interrupts),
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        plan_affinity_undo(last_applied, before, answers)
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

fn extract_netdev_name(wish: &DesiredResource) -> &str {
    wish.text("netdev").unwrap_or_default()
}

fn extract_cpu_list(wish: &DesiredResource) -> Option<&str> {
    wish.text("cpus").filter(|list| *list != LOCAL)
}

fn build_affinity_unit(wish: &DesiredResource) -> PersistenceUnit {
    let trigger = Trigger::Netdev(extract_netdev_name(wish).to_owned());
    PersistenceUnit::new(
        "interrupt-affinity",
        extract_netdev_name(wish),
        trigger,
        &script::render_affinity_unit_script(extract_netdev_name(wish), extract_cpu_list(wish)),
    )
}

fn build_desired_reading(wish: &DesiredResource) -> Reading {
    Reading::is(wish.text("cpus").unwrap_or_default())
}

/// One that cannot be judged, or has no meaning here, in both planes.
fn build_uniform_diff(wish: &DesiredResource, found: &Reading) -> Assessment {
    let attribute = Attribute::in_plane(
        Plane::Persisted,
        build_desired_reading(wish),
        found.clone(),
    )
    .and(Plane::Running, build_desired_reading(wish), found.clone());
    Assessment {
        attributes: [("cpus".to_owned(), attribute)].into(),
        ..Assessment::default()
    }
}

/// What is not there yet, or not gone yet, waits for the step that the wish names, or something is
/// wrong.
fn wait_or_refuse(wish: &DesiredResource, reason: Reason, assessment: &mut Assessment) {
    assessment.wait_or_refuse(
        wish,
        &["reload_systemd", "set_interrupts", "write_file"],
        || reason.to_string(),
    );
}

fn diff_interrupts(
    wish: &DesiredResource,
    answers: &ReadResults,
    interrupts: &Interrupts,
) -> Assessment {
    let targets = extract_cpu_list(wish)
        .and_then(parse_cpu_list)
        .unwrap_or_else(|| interrupts.local.clone());
    if let Some(offline) = targets.iter().find(|cpu| !interrupts.online.contains(cpu)) {
        let refusal = Some(format!("CPU {offline} is not online on this host"));
        return Assessment {
            refusal,
            ..build_uniform_diff(wish, &Reading::Absent)
        };
    }
    let mut all = interrupts.all.values();
    if !interrupts.all.is_empty() && all.all(|interrupt| interrupt.is_managed) {
        let reason = format!(
            "the kernel manages the interrupts of {} by itself and lets nobody bind them",
            extract_netdev_name(wish)
        );
        return build_uniform_diff(wish, &Reading::NotApplicable(reason.into()));
    }
    let astray = find_misplaced_interrupts(interrupts, &targets);
    let found = if astray.is_empty() {
        build_desired_reading(wish)
    } else {
        Reading::is(describe_misplaced_interrupts(interrupts, &astray))
    };
    let keeper = build_affinity_unit(wish);
    let kept = keeper.kept(answers);
    let persisted = read_persisted_cpus(wish, &keeper, &kept);
    let wanted = build_desired_reading(wish);
    let cpus = Attribute::in_plane(Plane::Persisted, wanted.clone(), persisted).and(
        Plane::Running,
        wanted,
        found,
    );
    let unit = keeper.attribute(&kept);
    let mut assessment = Assessment {
        attributes: [("cpus".to_owned(), cpus), ("unit".to_owned(), unit)].into(),
        before: json!({ "interrupts": collect_current_affinity(interrupts) }),
        ..Assessment::default()
    };
    if diff_irqbalance(wish, answers, &mut assessment) {
        return assessment;
    }
    let Ok(kept) = kept else { return assessment };
    if assessment.is_met() || assessment.has_unknown() {
        return assessment;
    }
    assessment.actions = keeper.write(&kept);
    if !astray.is_empty() {
        assessment.actions.push(Action::SetInterrupts {
            interrupts: build_interrupt_bindings(astray),
        });
    }
    assessment
}

/// Notes irqbalance unless it is stopped: nothing is bound beside it. Returns whether it was noted.
fn diff_irqbalance(
    wish: &DesiredResource,
    answers: &ReadResults,
    assessment: &mut Assessment,
) -> bool {
    let balancer = read_irqbalance_state(answers);
    if balancer == Reading::is("stopped") {
        return false;
    }
    let runs = balancer == Reading::is("runs");
    assessment.attributes.insert(
        "irqbalance".to_owned(),
        Attribute::in_plane(Plane::Running, Reading::is("stopped"), balancer),
    );
    if runs {
        let reason = "irqbalance runs and would move the interrupts again: say `tuning: \
                      { irqbalance: false }`, or leave them to it";
        wait_or_refuse(wish, reason.to_owned().into(), assessment);
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
            Ok(unit)
                if matches!(
                    unit.property("ActiveState"),
                    "active" | "activating" | "reloading"
                ) =>
            {
                Reading::is("runs")
            }
            Ok(_) => Reading::is("stopped"),
        },
    }
}

/// The interrupts that are handled elsewhere than wished, with where they belong.
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
    wish: &DesiredResource,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Reading {
    keeper.persisted(kept, build_desired_reading(wish), |text| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("cpus='")?.strip_suffix('\''));
        value.map_or_else(
            || Reading::is("changed"),
            |value| Reading::is(one_line(value, 60)),
        )
    })
}

/// Where each is handled now, by number and name: a number alone may be another's after a reload of
/// the driver.
fn collect_current_affinity(interrupts: &Interrupts) -> BTreeMap<String, [String; 2]> {
    interrupts
        .all
        .iter()
        .map(|(number, interrupt)| {
            (
                number.to_string(),
                [interrupt.name.clone(), interrupt.list.clone()],
            )
        })
        .collect()
}

/// What was bound before goes back to where it was; queues that have come since stay where they
/// are.
fn plan_affinity_undo(wish: &DesiredResource, before: &Value, answers: &ReadResults) -> Assessment {
    let mut assessment = Assessment {
        before: before.clone(),
        ..Assessment::default()
    };
    build_affinity_unit(wish).take_back(&mut assessment, answers);
    let old: BTreeMap<String, [String; 2]> = before
        .get("interrupts")
        .and_then(|old| serde_json::from_value(old.clone()).ok())
        .unwrap_or_default();
    let Ok(InterruptFacts::There(now)) = read_interrupts(answers, extract_netdev_name(wish)) else {
        return assessment;
    };
    let mut back = BTreeMap::new();
    for (number, interrupt) in now
        .all
        .iter()
        .filter(|(_, interrupt)| !interrupt.is_managed)
    {
        let Some([name, list]) = old.get(&number.to_string()) else {
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
    assessment.attributes.insert(
        "cpus".to_owned(),
        Attribute::in_plane(Plane::Running, Reading::is("as before"), found),
    );
    if !back.is_empty() {
        assessment.actions.push(Action::SetInterrupts {
            interrupts: build_interrupt_bindings(back),
        });
    }
    assessment
}

#[cfg(test)]
mod tests;
