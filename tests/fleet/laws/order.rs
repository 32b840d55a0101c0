//! Law 5: the plan's bytes do not depend on host order or parallelism. Law 6: `--target X` is X and
//! its prerequisites, `--exclude X` is all but X and what needs X; and a part first and then the
//! rest comes to the whole. Both in worlds that have lived: with removals, drift, reboots, hosts
//! that are down, and a leaf.

use super::case::{Case, Freedom, benign, free_cases};
use super::settled::{come_to_rest, ensure_same_world};
use super::{Held, ensure, law};
use railwright_apply::apply_plan;
use railwright_base::{Address, Target};
use railwright_plan::{
    ChangeReason, LastApplied, Member, NodeKind, Plan, PlanNode, PlanSelection, file,
};
use railwright_resource::{DesiredResource, Observation, kind_named};
use std::collections::{BTreeMap, BTreeSet};

/// A world that has lived, and is not done.
const LIVED: Freedom = Freedom {
    edits: 3,
    down: true,
    leaf: true,
    lived: true,
    policy: true,
    failing: 0,
};

#[test]
fn law_5_the_plan_does_not_depend_on_order_or_parallelism() {
    law(
        "law_5",
        free_cases(5, benign(), 0, LIVED),
        async |case: &Case| {
            let room = case.lived_room().await;
            let last = room.state().last_applied;
            let mut resources = room.resources.clone();
            let observation = room.observe(&resources, &last, 1).await;
            let part = list_resources(&room.plan_of(
                &resources,
                &last,
                &observation,
                PlanSelection::default(),
            ))
            .into_iter()
            .nth(case.crash.0 % 7);
            let parts = [
                PlanSelection::default(),
                chosen(part.iter(), true),
                chosen(part.iter(), false),
            ];
            let plans = |resources: &[DesiredResource], observation: &Observation| {
                parts.clone().map(|part| {
                    file::serialize_plan(&room.plan_of(resources, &last, observation, part))
                })
            };
            let before = plans(&resources, &observation);
            // A shuffle by the case's own numbers, so that it can be run again.
            let salt = case.crash.0;
            resources.sort_by_key(|resource| {
                railwright_base::Digest::of(&(salt, &resource.address)).to_string()
            });
            let observation = room.observe(&resources, &last, 64).await;
            ensure!(
                before == plans(&resources, &observation),
                "the order of the resources shows"
            );
            Ok(if case.hosts.len() > 1 {
                Held::Yes
            } else {
                Held::Beside
            })
        },
    );
}

/// Narrowed to these, or to all but them.
fn chosen<'a>(
    names: impl Iterator<Item = &'a (impl ToString + 'a)>,
    are_kept: bool,
) -> PlanSelection {
    let (names, none) = (names.map(ToString::to_string).collect(), Vec::new());
    if are_kept {
        PlanSelection {
            targets: names,
            excludes: none,
        }
    } else {
        PlanSelection {
            targets: none,
            excludes: names,
        }
    }
}

fn list_resources(plan: &Plan) -> BTreeSet<Address> {
    plan.nodes
        .iter()
        .flat_map(PlanNode::members)
        .map(|member| member.resource.address.clone())
        .collect()
}

/// What a plan is about by itself, and not because another step of it comes before.
fn own_resources(plan: &Plan) -> BTreeSet<Address> {
    let follows = |member: &&Member| matches!(member.reason, ChangeReason::Disturbed { .. });
    let members = plan
        .nodes
        .iter()
        .flat_map(PlanNode::members)
        .filter(|member| !follows(member));
    members
        .map(|member| member.resource.address.clone())
        .collect()
}

/// Of each resource, all that come before it: by the spec's own word, and, if it counts, by the
/// kinds'. What is removed goes the other way round, and keeps no order with what stays.
fn before(
    resources: &[DesiredResource],
    last: &LastApplied,
    kinds_count: bool,
) -> BTreeMap<Address, BTreeSet<Address>> {
    let removed = last
        .not_in_spec(resources)
        .map(|(address, applied)| (true, applied.resource(address)));
    let all: Vec<(bool, DesiredResource)> = resources
        .iter()
        .map(|resource| (false, resource.clone()))
        .chain(removed)
        .collect();
    let follows = |late: &DesiredResource, early: &DesiredResource| {
        let kinds = if kinds_count {
            kind_named(&late.kind).unwrap().after_kinds()
        } else {
            &[]
        };
        let of_kind =
            early.address.target == late.address.target && kinds.contains(&early.kind.as_str());
        late.after.contains(&early.address) || of_kind
    };
    let direct = |(is_removed, own): &(bool, DesiredResource)| -> BTreeSet<Address> {
        let first = |(other_is_removed, other): &&(bool, DesiredResource)| match (
            is_removed,
            other_is_removed,
        ) {
            (false, false) => follows(own, other),
            (true, true) => follows(other, own),
            _ => false,
        };
        all.iter()
            .filter(first)
            .map(|(_, other)| other.address.clone())
            .collect()
    };
    let mut before: BTreeMap<Address, BTreeSet<Address>> = all
        .iter()
        .map(|item| (item.1.address.clone(), direct(item)))
        .collect();
    for _ in &all {
        for (_, resource) in &all {
            let further: BTreeSet<Address> = before[&resource.address]
                .iter()
                .flat_map(|early| before[early].iter().cloned())
                .collect();
            before.get_mut(&resource.address).unwrap().extend(further);
        }
    }
    before
}

/// The hosts that a plan reboots.
fn rebooted(plan: &Plan) -> BTreeSet<&Target> {
    plan.nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Reboot))
        .filter_map(|node| node.target.as_ref())
        .collect()
}

/// The hosts of which something in a plan needs a reboot, by what its kind makes of it.
fn need_reboot<'a>(plan: &'a Plan, observation: &Observation) -> BTreeSet<&'a Target> {
    let needs = |node: &&PlanNode| {
        node.members().iter().any(|member| {
            let answers = &observation.targets[&member.resource.address.target].answers;
            !member.removal
                && kind_named(&member.resource.kind)
                    .unwrap()
                    .diff(&member.resource, answers)
                    .needs_reboot
        })
    };
    plan.nodes
        .iter()
        .filter(|node| node.is_change() && node.blocked.is_none())
        .filter(needs)
        .filter_map(|node| node.target.as_ref())
        .collect()
}

#[test]
fn law_6_target_and_exclude_are_one_another_turned_round() {
    law(
        "law_6_target",
        free_cases(3, benign(), 0, LIVED),
        async |case: &Case| {
            let room = case.lived_room().await;
            let last = room.state().last_applied;
            let observation = room.observe(&room.resources, &last, 8).await;
            let plan = |selection| room.plan_of(&room.resources, &last, &observation, selection);
            let whole = plan(PlanSelection::default());
            let all = own_resources(&whole);
            let Some(address) = all.iter().nth(case.crash.0 % all.len().max(1)) else {
                return Ok(Held::Beside);
            };
            // A resource, or all of its host.
            let x = if case.crash.1 {
                address.to_string()
            } else {
                address.target.to_string()
            };
            let own: BTreeSet<&Address> = all
                .iter()
                .filter(|other| {
                    *other == address || !case.crash.1 && other.target == address.target
                })
                .collect();
            let (with_x, without_x) = (
                plan(chosen([&x].into_iter(), true)),
                plan(chosen([&x].into_iter(), false)),
            );
            ensure!(
                with_x.narrowed == [format!("--target {x}")]
                    && without_x.narrowed == [format!("--exclude {x}")],
                "it does not say that it is narrowed"
            );
            let (only, without) = (list_resources(&with_x), list_resources(&without_x));
            ensure!(
                own.iter()
                    .all(|own| only.contains(own) && !without.contains(own)),
                "{x} itself is on the wrong side"
            );
            ensure!(
                only.is_subset(&list_resources(&whole))
                    && without.is_subset(&list_resources(&whole)),
                "there is more in a part than in the whole"
            );
            let (said, ruled) = (
                before(&room.resources, &last, false),
                before(&room.resources, &last, true),
            );
            for other in all.iter().filter(|other| !own.contains(other)) {
                let (with, apart) = (only.contains(other), without.contains(other));
                let comes_first = |order: &BTreeMap<Address, BTreeSet<Address>>| {
                    own.iter().any(|own| order[*own].contains(other))
                };
                let comes_after = |order: &BTreeMap<Address, BTreeSet<Address>>| {
                    own.iter().any(|own| order[other].contains(*own))
                };
                // A kind's own rule gives way to the spec, so it may bring something along and need
                // not.
                ensure!(
                    !(with && apart) || comes_first(&ruled),
                    "{other} is in both, and {x} does not need it"
                );
                ensure!(
                    with || apart || comes_after(&ruled),
                    "{other} is in neither, and does not need {x}"
                );
                ensure!(
                    with || !comes_first(&said),
                    "{x} needs {other}, which --target leaves out"
                );
                ensure!(
                    !apart || !comes_after(&said),
                    "{other} needs {x}, and --exclude keeps it"
                );
            }
            for part in [&whole, &with_x, &without_x] {
                let (reboots, needs) = (rebooted(part), need_reboot(part, &observation));
                ensure!(
                    needs.is_subset(&reboots),
                    "{:?} need a reboot, and {reboots:?} get one",
                    needs
                );
                ensure!(
                    reboots.is_subset(&rebooted(&whole)),
                    "a part reboots {reboots:?}"
                );
            }
            Ok(Held::Yes)
        },
    );
}

#[test]
fn law_6_a_part_first_and_then_the_rest_is_the_whole() {
    let freedom = Freedom {
        down: false,
        ..LIVED
    };
    law(
        "law_6_a_part_first",
        free_cases(3, benign(), 0, freedom),
        async |case: &Case| {
            let (whole, parted) = (case.lived_room().await, case.lived_room().await);
            let last = parted.state().last_applied;
            let observation = parted.observe(&parted.resources, &last, 8).await;
            let all = list_resources(&parted.plan_of(
                &parted.resources,
                &last,
                &observation,
                PlanSelection::default(),
            ));
            let Some(address) = all.iter().nth(case.crash.0 % all.len().max(1)) else {
                return Ok(Held::Beside);
            };
            let part = parted.plan_of(
                &parted.resources,
                &last,
                &observation,
                chosen([address].into_iter(), case.crash.1),
            );
            apply_plan(&part, &parted.context, parted.sink()).await;
            if !come_to_rest(&whole).await? || !come_to_rest(&parted).await? {
                return Ok(Held::Beside);
            }
            ensure_same_world(case, &parted, &whole)?;
            Ok(Held::Yes)
        },
    );
}
