//! `interrupt_affinity`: the CPUs that handle the interrupts of a NIC: those of its NUMA node, or a list, one interrupt after the other
//! to the next CPU, as NVIDIA's own tool does it (Mellanox/mlnx-tools: ofed_scripts/set_irq_affinity_bynode.sh). Its name is
//! the netdev's.
//!
//! The kernel forgets it at a reboot, and with every queue that comes anew; a unit of ours binds them again. irqbalance moves
//! interrupts while it runs: with it, the wish is refused. Interrupts that the kernel manages by itself cannot be bound.

pub mod found;
pub mod script;

use super::fields::Fields;
use super::keeper::{Keeper, Kept, Trigger};
use super::systemd_unit::found::FoundUnit;
use super::{Action, Answers, Assessment, Attribute, BodyError, Kind, Plane, Read, Reading, Wish};
use found::{Found, Interrupts, cpus, found};
use railwright_base::text::one_line;
use script::Binding;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kind.
pub struct InterruptAffinity;

const BALANCER: &str = "irqbalance.service";
const LOCAL: &str = "numa-local";

impl Kind for InterruptAffinity {
    fn name(&self) -> &'static str {
        "interrupt_affinity"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("netdev")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &["netdev", "cpus", "known_after"]);
        fields.netdev(true);
        fields.resource("known_after");
        if let Some(list) = fields.text("cpus", true).filter(|list| *list != LOCAL && cpus(list).is_none()) {
            fields.error("/cpus", format!("`{list}` is no list of CPUs"), Some("numa-local, or a list such as 0-7,16".to_owned()));
        }
        fields.finish()
    }

    fn reads(&self, wish: &Wish) -> Vec<Read> {
        let mut reads = vec![Read::Interrupts { netdev: netdev(wish).to_owned() }, Read::Unit { name: BALANCER.to_owned() }];
        reads.extend(keeper(wish).reads());
        reads
    }

    fn assess(&self, wish: &Wish, answers: &Answers) -> Assessment {
        match found(answers, netdev(wish)) {
            Err(reason) => everywhere(wish, &Reading::Unknown(reason)),
            Ok(Found::NoInterrupts) => {
                let reason = format!("{} has no interrupts of its own", netdev(wish));
                everywhere(wish, &Reading::NotApplicable(reason))
            }
            Ok(Found::Missing) => {
                let mut assessment = everywhere(wish, &Reading::Absent);
                wait_or_refuse(wish, format!("there is no netdev {}", netdev(wish)), &mut assessment);
                assessment
            }
            Ok(Found::There(interrupts)) => judge(wish, answers, &interrupts),
        }
    }

    fn undo(&self, last_applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
        undo(last_applied, before, answers)
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module", "kernel_module_build", "link", "systemd_unit"]
    }
}

fn netdev(wish: &Wish) -> &str {
    wish.text("netdev").unwrap_or_default()
}

fn list(wish: &Wish) -> Option<&str> {
    wish.text("cpus").filter(|list| *list != LOCAL)
}

fn keeper(wish: &Wish) -> Keeper {
    let trigger = Trigger::Netdev(netdev(wish).to_owned());
    Keeper::new("interrupt-affinity", netdev(wish), trigger, &script::keep(netdev(wish), list(wish)))
}

fn wanted(wish: &Wish) -> Reading {
    Reading::is(wish.text("cpus").unwrap_or_default())
}

/// One that cannot be judged, or has no meaning here, in both planes.
fn everywhere(wish: &Wish, found: &Reading) -> Assessment {
    let attribute = Attribute::in_plane(Plane::Persisted, wanted(wish), found.clone()).and(Plane::Running, wanted(wish), found.clone());
    Assessment { attributes: [("cpus".to_owned(), attribute)].into(), ..Assessment::default() }
}

/// What is not there yet, or not gone yet, waits for the step that the wish names, or something is wrong.
fn wait_or_refuse(wish: &Wish, reason: String, assessment: &mut Assessment) {
    assessment.wait_or_refuse(wish, &["reload_systemd", "set_interrupts", "write_file"], || reason);
}

fn judge(wish: &Wish, answers: &Answers, interrupts: &Interrupts) -> Assessment {
    let targets = list(wish).and_then(cpus).unwrap_or_else(|| interrupts.local.clone());
    if let Some(offline) = targets.iter().find(|cpu| !interrupts.online.contains(cpu)) {
        let refusal = Some(format!("CPU {offline} is not online on this host"));
        return Assessment { refusal, ..everywhere(wish, &Reading::Absent) };
    }
    if !interrupts.all.is_empty() && interrupts.all.values().all(|interrupt| interrupt.is_managed) {
        let reason = format!("the kernel manages the interrupts of {} by itself and lets nobody bind them", netdev(wish));
        return everywhere(wish, &Reading::NotApplicable(reason));
    }
    let astray = astray(interrupts, &targets);
    let found = if astray.is_empty() { wanted(wish) } else { Reading::is(told(interrupts, &astray)) };
    let keeper = keeper(wish);
    let kept = keeper.kept(answers);
    let attribute =
        Attribute::in_plane(Plane::Persisted, wanted(wish), persisted(wish, &keeper, &kept)).and(Plane::Running, wanted(wish), found);
    let mut assessment = Assessment { attributes: [("cpus".to_owned(), attribute)].into(), ..Assessment::default() };
    assessment.attributes.insert("unit".to_owned(), keeper.attribute(&kept));
    assessment.before = json!({ "interrupts": remembered(interrupts) });
    let balancer = balancer(answers);
    if balancer != Reading::is("stopped") {
        let runs = balancer == Reading::is("runs");
        assessment.attributes.insert("irqbalance".to_owned(), Attribute::in_plane(Plane::Running, Reading::is("stopped"), balancer));
        if !runs {
            return assessment;
        }
        let reason = "irqbalance runs and would move the interrupts again: say `tuning: { irqbalance: false }`, or leave them to it";
        wait_or_refuse(wish, reason.to_owned(), &mut assessment);
        return assessment;
    }
    let Ok(kept) = kept else { return assessment };
    if assessment.is_met() || assessment.has_unknown() {
        return assessment;
    }
    assessment.actions = keeper.write(&kept);
    if !astray.is_empty() {
        assessment.actions.push(Action::SetInterrupts { interrupts: bindings(astray) });
    }
    assessment
}

/// Whether irqbalance runs. Where there is no systemd, or no such unit, nothing of the distribution starts it.
fn balancer(answers: &Answers) -> Reading {
    match answers.output(&Read::Unit { name: BALANCER.to_owned() }) {
        Err(reason) => Reading::Unknown(reason),
        Ok((69, _)) => Reading::is("stopped"),
        Ok(_) => match FoundUnit::of(BALANCER, answers) {
            Err(reason) => Reading::Unknown(reason),
            Ok(unit) if matches!(unit.property("ActiveState"), "active" | "activating" | "reloading") => Reading::is("runs"),
            Ok(_) => Reading::is("stopped"),
        },
    }
}

/// The interrupts that are handled elsewhere than wished, with where they belong.
fn astray(interrupts: &Interrupts, targets: &[u32]) -> BTreeMap<u32, String> {
    let wished = interrupts.spread(targets).into_iter();
    let is_there =
        |number: &u32, cpu: u32| interrupts.all.get(number).and_then(|interrupt| cpus(&interrupt.list)).is_some_and(|is| is == [cpu]);
    wished.filter(|(number, cpu)| !is_there(number, *cpu)).map(|(number, cpu)| (number, cpu.to_string())).collect()
}

fn bindings(all: BTreeMap<u32, String>) -> Vec<Binding> {
    all.into_iter().map(|(number, cpus)| Binding { number, cpus }).collect()
}

/// `3 of 16 elsewhere: mlx5_comp0 on 0-63, ...`.
fn told(interrupts: &Interrupts, astray: &BTreeMap<u32, String>) -> String {
    let some = astray.keys().filter_map(|number| interrupts.all.get(number)).take(3);
    let some: Vec<String> =
        some.map(|interrupt| format!("{} on {}", one_line(&interrupt.name, 40), one_line(&interrupt.list, 40))).collect();
    let more = if astray.len() > 3 { ", ..." } else { "" };
    format!("{} of {} elsewhere: {}{more}", astray.len(), interrupts.all.len(), some.join(", "))
}

fn persisted(wish: &Wish, keeper: &Keeper, kept: &Result<Kept, String>) -> Reading {
    keeper.persisted(kept, wanted(wish), |text| {
        let value = text.lines().find_map(|line| line.strip_prefix("cpus='")?.strip_suffix('\''));
        value.map_or_else(|| Reading::is("changed"), |value| Reading::is(one_line(value, 60)))
    })
}

/// Where each is handled now, by number and name: a number alone may be another's after a reload of the driver.
fn remembered(interrupts: &Interrupts) -> BTreeMap<String, [String; 2]> {
    interrupts.all.iter().map(|(number, interrupt)| (number.to_string(), [interrupt.name.clone(), interrupt.list.clone()])).collect()
}

/// What was bound before goes back to where it was; queues that have come since stay where they are.
fn undo(wish: &Wish, before: &Value, answers: &Answers) -> Assessment {
    let mut assessment = Assessment { before: before.clone(), ..Assessment::default() };
    keeper(wish).take_back(&mut assessment, answers);
    let old: BTreeMap<String, [String; 2]> =
        before.get("interrupts").and_then(|old| serde_json::from_value(old.clone()).ok()).unwrap_or_default();
    let Ok(Found::There(now)) = found(answers, netdev(wish)) else { return assessment };
    let mut back = BTreeMap::new();
    for (number, interrupt) in now.all.iter().filter(|(_, interrupt)| !interrupt.is_managed) {
        let Some([name, list]) = old.get(&number.to_string()) else { continue };
        let is_list = cpus(list).is_some_and(|cpus| cpus.iter().all(|cpu| now.online.contains(cpu)));
        if *name == interrupt.name && is_list && cpus(list) != cpus(&interrupt.list) {
            back.insert(*number, list.clone());
        }
    }
    let found = if back.is_empty() { Reading::is("as before") } else { Reading::is(told(&now, &back)) };
    assessment.attributes.insert("cpus".to_owned(), Attribute::in_plane(Plane::Running, Reading::is("as before"), found));
    if !back.is_empty() {
        assessment.actions.push(Action::SetInterrupts { interrupts: bindings(back) });
    }
    assessment
}

#[cfg(test)]
mod tests;
