//! What holds for every plan.

use crate::world::*;
use proptest::prelude::*;
use railwright_base::{Address, Target};
use railwright_plan::by_hand::{is_by_hand, release_power_cycles};
use railwright_plan::*;
use railwright_resource::{AnswerStatus, DesiredResource, Disruption, ReadResult};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Random resources on three hosts with random edges that point backwards in the list, so that
/// there is no ring.
fn worlds() -> impl Strategy<Value = World> {
    let one = (
        0usize..3,
        proptest::option::of("[01]"),
        any::<[bool; 3]>(),
        0usize..4,
        proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
    );
    proptest::collection::vec(one, 1..16).prop_map(|many| {
        let mut world = World::new();
        let mut names: Vec<String> = Vec::new();
        for (n, (host, found, [reboot, drain, power_cycle], transaction, after)) in
            many.into_iter().enumerate()
        {
            let name = format!("host/n{host}/a/{n:02}");
            let mut body =
                json!({"value": "1", "reboot": reboot, "drain": drain, "power_cycle": power_cycle});
            if transaction > 0 {
                body["transaction"] = json!(format!("t{transaction}"));
            }
            let mine: Vec<String> = names
                .iter()
                .filter(|x| x.starts_with(&format!("host/n{host}/")))
                .cloned()
                .collect();
            let after: BTreeSet<String> = if mine.is_empty() {
                BTreeSet::new()
            } else {
                after.iter().map(|i| i.get(&mine).clone()).collect()
            };
            let after: Vec<&str> = after.iter().map(String::as_str).collect();
            world = world.resource(&name, found.as_deref(), body, &after);
            names.push(name);
        }
        world.targets.sort();
        world
    })
}

/// The gate itself, where it is one of this host.
fn gate_of(plan: &Plan, gate: &railwright_apply::steps::ScheduledStep, host: &Target) -> NodeKind {
    let kind = plan
        .nodes
        .iter()
        .find(|node| node.id == gate.id)
        .map(|node| node.kind.clone());
    kind.filter(|kind| matches!(kind, NodeKind::Gate { hosts } if hosts.iter().any(|name| **name == *host.name)))
        .unwrap_or(NodeKind::Barrier)
}

proptest! {
    #[test]
    fn law_5_the_bytes_do_not_depend_on_the_order_of_the_resources(world in worlds(), seed in any::<u64>()) {
        let plan = file::serialize_plan(&world.plan());
        let mut shuffled = world;
        let len = shuffled.resources.len();
        for n in 0..len {
            shuffled.resources.swap(n, (seed as usize).wrapping_mul(n + 7) % len);
        }
        prop_assert_eq!(file::serialize_plan(&shuffled.plan()), plan);
    }

    #[test]
    fn resources_keep_their_order_in_the_plan(world in worlds()) {
        let plan = world.plan();
        let mut position = BTreeMap::new();
        for (n, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.is_change()) {
            for member in node.members() {
                position.insert(member.resource.address.clone(), n);
            }
        }
        let direct: BTreeMap<&str, &Vec<String>> = plan.nodes.iter().map(|n| (n.id.as_str(), &n.after)).collect();
        for node in &plan.nodes {
            for before in &node.after {
                prop_assert!(direct.contains_key(before.as_str()), "{} waits for {}, which is not \
                                                                    in the plan", node.id, before);
            }
        }
        for resource in &world.resources {
            for before in &resource.after {
                let looked_again = plan.nodes.iter().flat_map(PlanNode::members).any(|m| &m.resource.address == before && matches!(m.reason, ChangeReason::Disturbed { .. }));
                if let (Some(a), Some(b), false) = (position.get(before), position.get(&resource.address), looked_again) {
                    prop_assert!(a <= b, "{} before {}", before, resource.address);
                }
            }
        }
    }

    /// An honest plan is never taken for one that was edited.
    #[test]
    fn every_plan_holds_together(world in worlds(), most in 1usize..4, limit in any::<bool>()) {
        let mut world = world;
        world.rollout.max_unavailable = most;
        if limit {
            world.rollout.max_disruption = Disruption::Drain;
        }
        for n in (0..world.resources.len()).step_by(3) {
            let resource = world.resources[n].clone();
            world = world.applied(&format!("{}-gone", resource.address), resource.body.clone());
            world.last.resources.get_mut(&format!("{}-gone", resource.address).parse::<Address>().unwrap()).unwrap().after = resource.after.clone();
        }
        let plan = world.plan();
        prop_assert_eq!(railwright_apply::plan_graph_check::check_plan_graph(&plan, Some(&world.resources), &world.last), vec![]);
        if let Some(later) = release_power_cycles(&plan) {
            prop_assert_eq!(railwright_apply::plan_graph_check::loosened_later(&later, Some(&world.resources), &world.last), vec![]);
        }
    }

    /// What only a power cycle keeps waiting is taken up after all others, host by host, each with
    /// a gate after it.
    #[test]
    fn what_a_power_cycle_keeps_waiting_is_taken_up(world in worlds(), most in 1usize..4, limit in any::<bool>()) {
        let mut world = world;
        world.rollout.max_unavailable = most;
        if limit {
            world.rollout.max_disruption = Disruption::Reload;
        }
        let plan = world.plan();
        let Some(later) = release_power_cycles(&plan) else {
            let on_hand = |node: &PlanNode| is_by_hand(node) && node.blocked.as_ref().is_some_and(|blocked| blocked.to_string().contains("by hand"));
            prop_assert!(!plan.nodes.iter().any(on_hand), "a power cycle waits for nothing else, \
                                                           and is not taken up");
            return Ok(());
        };
        let steps = railwright_apply::steps::build_steps(&later).unwrap();
        let (old, gates) = steps.split_at(plan.nodes.len());
        let last = plan.nodes.iter().map(|node| node.wave).max().unwrap();
        let number: BTreeMap<&str, usize> = later.nodes.iter().enumerate().map(|(n, node)| (node.id.as_str(), n)).collect();
        let mut taken: BTreeSet<Target> = BTreeSet::new();
        for (n, (was, now)) in plan.nodes.iter().zip(&later.nodes).enumerate() {
            prop_assert_eq!(&was.id, &now.id);
            let Some(blocked) = was.blocked.as_ref().filter(|_| now.blocked.is_none()) else {
                prop_assert_eq!(was, now);
                continue;
            };
            prop_assert!(is_by_hand(now) || matches!(blocked, BlockedReason::NeedsStep(_)), "{} is blocked for itself: {blocked}", now.id);
            prop_assert!(old[n].wave > last && now.after.iter().all(|id| later.nodes[number[id.as_str()]].blocked.is_none()));
            let host = now.target.clone().unwrap();
            let proven = |gate: &&railwright_apply::steps::ScheduledStep| gate.wave == old[n].wave && later.nodes[number[gate.id.as_str()]].kind == gate_of(&later, gate, &host);
            prop_assert_eq!(gates.iter().filter(proven).count(), 1, "{} has no gate after it", now.id);
            taken.insert(host);
        }
        for host in &taken {
            prop_assert!(later.nodes.iter().any(|node| is_by_hand(node) && node.target.as_ref() == Some(host) && node.blocked.is_none()));
        }
        prop_assert!(gates[0].canary && gates[1..].iter().all(|gate| !gate.canary));
    }

    #[test]
    fn law_6_target_and_exclude_part_the_plan(world in worlds(), pick in any::<prop::sample::Index>()) {
        let members = |plan: &Plan| plan.nodes.iter().flat_map(PlanNode::members).filter(|m| !matches!(m.reason, ChangeReason::Disturbed { .. }))
            .map(|m| m.resource.address.clone()).collect::<BTreeSet<_>>();
        let all = members(&world.plan());
        prop_assume!(!all.is_empty());
        let x = pick.get(&all.iter().cloned().collect::<Vec<_>>()).clone();
        let narrowed = |targets: Vec<String>, excludes: Vec<String>, world: &World| {
            let other = World { resources: world.resources.clone(), last: world.last.clone(), observation: world.observation.clone(),
                targets: world.targets.clone(), nodes: None, rollout: world.rollout.clone(), selection: PlanSelection { targets, excludes } };
            members(&other.plan())
        };
        let only = narrowed(vec![x.to_string()], vec![], &world);
        let without = narrowed(vec![], vec![x.to_string()], &world);
        prop_assert!(only.contains(&x) && !without.contains(&x));
        let up = |from: &Address, to: &Address| -> bool {
            let mut queue = vec![from.clone()];
            while let Some(a) = queue.pop() {
                if &a == to { return true; }
                queue.extend(world.resources.iter().find(|w| w.address == a).into_iter().flat_map(|w| w.after.clone()));
            }
            false
        };
        for a in only.intersection(&without) {
            prop_assert!(up(&x, a), "{} is in both and no prerequisite of {}", a, x);
        }
        for a in all.iter().filter(|a| !only.contains(*a) && !without.contains(*a)) {
            prop_assert!(up(a, &x), "{} is in neither and no dependant of {}", a, x);
        }
    }

    /// A host's steps depend on nothing that other hosts want or say: what is planned once for many
    /// is right for each.
    #[test]
    fn each_host_gets_the_steps_that_it_would_get_alone(world in worlds(), odd in any::<[prop::sample::Index; 3]>(), applied in 1usize..4) {
        let mut world = world;
        for n in (0..world.resources.len()).step_by(applied) {
            let resource = world.resources[n].clone();
            world = world.applied(&resource.address.to_string(), resource.body.clone()).applied(&format!("{}-gone", resource.address), resource.body.clone());
        }
        let mut world = world.doubled();
        // One of them says, another wants, a third remembers what its twin does not.
        let unlike: Vec<Address> = odd.iter().map(|odd| odd.get(&world.resources).address.clone()).collect();
        let key = read(&DesiredResource::of(unlike[0].clone(), "made_up", Value::Null)).key();
        let said = ReadResult { status: AnswerStatus::Exit(0), out: "odd".into() };
        world.observation.targets.get_mut(&unlike[0].target).unwrap().answers.insert(key, said);
        let resource = world.resources.iter_mut().find(|resource| resource.address == unlike[1]).unwrap();
        std::sync::Arc::make_mut(&mut resource.declaration).body["value"] = json!("own");
        world = world.applied(&unlike[2].to_string(), json!({ "value": "earlier" }));
        let plan = world.plan();
        let open = |node: &&PlanNode| node.blocked.is_none() && !matches!(node.kind, NodeKind::Adopt { .. });
        let open: Vec<PlanNode> = plan.nodes.iter().filter(open).cloned().collect();
        prop_assert_eq!(&make::sort_nodes(open.clone()).unwrap()[..], &open[..]);
        for target in &world.targets {
            let alone = world.only(target).plan();
            let steps = |plan: &Plan| -> Vec<PlanNode> {
                let own = plan.nodes.iter().filter(|node| node.target.as_ref() == Some(target)).cloned();
                own.map(|mut node| { node.wave = 0; node.after.retain(|before| !before.starts_with("gate/")); node }).collect()
            };
            prop_assert_eq!(steps(&plan), steps(&alone));
            prop_assert_eq!(plan.unchanged.get(target), alone.unchanged.get(target));
        }
    }

    /// What is shared in memory makes no difference to the digest, and everything else does.
    #[test]
    fn a_plan_that_was_read_back_has_the_same_digest(world in worlds()) {
        let plan = world.doubled().plan();
        let read = file::parse_plan_file("p", &file::serialize_plan(&plan)).unwrap();
        prop_assert_eq!(content::compute_plan_digest(&read).to_string(), plan.digest.clone());
        prop_assert_eq!(read, plan);
    }
}
