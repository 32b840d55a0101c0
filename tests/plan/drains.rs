//! Which nodes of a Kubernetes cluster are emptied, and where in the plan.

use crate::world::*;
use railwright_base::Target;
use railwright_plan::*;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{AnswerStatus, Disruption, Read, ReadResult};
use serde_json::{Value, json};

const CLUSTER: &str = "kube/prod";

fn policy() -> DrainPolicy {
    DrainPolicy {
        from: Disruption::LinkBlip,
        evict: true,
        timeout_s: 900,
        evict_unmanaged: false,
        delete_local_data: false,
    }
}

/// Hosts `nN` are nodes `cn-nN`; `nodes` is what the cluster says of them.
fn emptied(mut world: World, nodes: Option<Value>) -> World {
    let cluster: Target = CLUSTER.parse().unwrap();
    let by_host = world
        .targets
        .iter()
        .map(|host| (host.clone(), format!("cn-{}", host.name)))
        .collect();
    world.nodes = Some(ClusterNodes {
        cluster: cluster.clone(),
        spec: "train".to_owned(),
        by_host,
    });
    world.rollout.drain = Some(policy());
    if let Some(nodes) = nodes {
        let answer = ReadResult {
            status: AnswerStatus::Exit(0),
            out: nodes.to_string(),
        };
        world
            .observation
            .targets
            .entry(cluster.clone())
            .or_default()
            .answers
            .insert(Read::Kubernetes(KubernetesRead::Nodes).key(), answer);
    }
    world.targets.push(cluster);
    world
}

fn there(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({ "ready": true, "schedulable": true, "gives": {} }),
            )
        })
        .collect()
}

fn one_host() -> World {
    World::new()
        .resource("host/n1/a/package", None, json!({ "value": "1" }), &[])
        .resource(
            "host/n1/a/driver",
            None,
            json!({ "value": "1", "drain": true }),
            &["host/n1/a/package"],
        )
        .resource(
            "host/n1/a/file",
            None,
            json!({ "value": "1" }),
            &["host/n1/a/driver"],
        )
        .resource("host/n1/a/other", None, json!({ "value": "1" }), &[])
}

#[test]
fn a_node_is_emptied_right_before_what_disturbs_and_given_back_after_the_gate() {
    let plan = emptied(one_host(), Some(there(&["cn-n1"]))).plan();
    let desired = [
        "host/n1/a/other",
        "host/n1/a/package",
        "host/n1/drain",
        "host/n1/a/driver",
        "host/n1/a/file",
        "gate/0",
        "host/n1/uncordon",
    ];
    assert_eq!(ids(&plan), desired);
    assert_eq!(
        node(&plan, "host/n1/drain").after,
        ["host/n1/a/package"],
        "while jobs go on"
    );
    assert_eq!(
        node(&plan, "host/n1/a/driver").after,
        ["host/n1/a/package", "host/n1/drain"]
    );
    assert_eq!(
        (
            node(&plan, "host/n1/uncordon").after.clone(),
            node(&plan, "host/n1/uncordon").wave
        ),
        (vec!["gate/0".to_owned()], 0)
    );
    assert_eq!(
        node(&plan, "host/n1/drain").on_node_of(&CLUSTER.parse().unwrap()),
        Some("cn-n1")
    );
    assert_eq!(
        file::parse_plan_file("p", &file::serialize_plan(&plan)).unwrap(),
        plan
    );
}

#[test]
fn the_next_wave_begins_once_the_nodes_of_the_one_before_are_back() {
    let reboot = json!({ "value": "1", "reboot": true });
    let world = World::new()
        .resource("host/n1/a/kernel", None, reboot.clone(), &[])
        .resource("host/n2/a/kernel", None, reboot, &[]);
    let plan = emptied(world, None).plan();
    let desired = [
        "host/n1/a/kernel",
        "host/n1/drain",
        "host/n1/reboot",
        "gate/0",
        "host/n1/uncordon",
        "host/n2/a/kernel",
        "host/n2/drain",
        "host/n2/reboot",
        "gate/1",
        "host/n2/uncordon",
    ];
    assert_eq!(
        ids(&plan),
        desired,
        "where the cluster does not say who its nodes are, the step finds out"
    );
    assert_eq!(node(&plan, "host/n2/uncordon").wave, 1);
}

#[test]
fn hosts_that_are_no_nodes_or_are_not_disturbed_are_left_alone() {
    let drains = |plan: &Plan| {
        plan.nodes
            .iter()
            .filter(|node| node.cluster().is_some())
            .count()
    };
    let no_node = emptied(one_host(), Some(there(&["cn-n2"]))).plan();
    assert_eq!(drains(&no_node), 0, "no node yet");
    let (host, cluster) = (Target::host("n1"), CLUSTER.parse().unwrap());
    assert_eq!(
        no_node.not_emptied,
        [NotEmptied {
            host,
            cluster,
            node: "cn-n1".to_owned()
        }],
        "and nobody is to think it was emptied"
    );
    assert_eq!(
        file::parse_plan_file("p", &file::serialize_plan(&no_node)).unwrap(),
        no_node
    );
    let unsaid = file::serialize_plan(&Plan {
        not_emptied: Vec::new(),
        ..no_node
    });
    assert!(
        file::parse_plan_file("p", &unsaid).is_err(),
        "what is said is a part of what is agreed to"
    );
    let quiet = World::new().resource("host/n1/a/file", None, json!({ "value": "1" }), &[]);
    let quiet = emptied(quiet, Some(there(&["cn-n2"]))).plan();
    assert_eq!((drains(&quiet), quiet.not_emptied), (0, Vec::new()));
    let mut blocked = emptied(one_host(), Some(there(&["cn-n1"])));
    blocked.rollout.max_disruption = Disruption::LinkBlip;
    assert_eq!(
        drains(&blocked.plan()),
        0,
        "what is blocked empties nothing"
    );
    let mut left = emptied(one_host(), Some(there(&["cn-n1"])));
    left.rollout.drain = None;
    assert_eq!(drains(&left.plan()), 0);
}

fn tell_machine(world: &mut World, host: &str, machine: &str) {
    let answer = ReadResult {
        status: AnswerStatus::Exit(0),
        out: format!("machine_id {machine}\nend\n"),
    };
    let host = world.observation.targets.entry(Target::host(host));
    let answers = &mut host.or_default().answers;
    answers.insert(Read::Host.key(), answer);
}

#[test]
fn a_host_whose_node_is_another_machine_is_left_alone() {
    let [own, other] = ["0a", "0b"].map(|byte| byte.repeat(16));
    let plan = |of_node: Option<&String>| {
        let mut node = there(&["cn-n1"]);
        node["cn-n1"]["machine"] = json!(of_node);
        let mut world = emptied(one_host(), Some(node));
        tell_machine(&mut world, "n1", &own);
        world.plan()
    };
    let is_drained = |plan: &Plan| plan.nodes.iter().any(|node| node.id == "host/n1/drain");
    assert!(is_drained(&plan(None)) && is_drained(&plan(Some(&own))));
    let blocked = plan(Some(&other));
    assert!(!is_drained(&blocked));
    let why = node(&blocked, "host/n1/a/driver")
        .blocked
        .as_ref()
        .unwrap()
        .to_string();
    assert!(
        why.contains("the node cn-n1 is another machine")
            && why.contains(&own)
            && why.contains(&other),
        "{why}"
    );
}

#[test]
fn a_host_that_is_a_node_under_another_name_is_left_alone() {
    let own = "0a".repeat(16);
    let plan = |machines: &[(&str, &str)], nodes: &[&str]| {
        let mut known = there(&["cn-n3"]);
        for name in nodes {
            known[*name] =
                json!({ "ready": true, "schedulable": true, "gives": {}, "machine": own });
        }
        let other = World::new().resource("host/n2/a/file", None, json!({ "value": "1" }), &[]);
        let mut world = one_host();
        world.resources.extend(other.resources);
        world.targets.extend(other.targets);
        world.observation.targets.extend(other.observation.targets);
        let mut world = emptied(world, Some(known));
        for (host, machine) in machines {
            tell_machine(&mut world, host, machine);
        }
        world.plan()
    };
    let blocked = plan(&[("n1", &own)], &["hz.10.0.0.5"]);
    let why = node(&blocked, "host/n1/a/driver")
        .blocked
        .as_ref()
        .unwrap()
        .to_string();
    assert!(
        why.contains("the node hz.10.0.0.5 of kube/prod")
            && why.contains("`kubernetes_node: hz.10.0.0.5`"),
        "{why}"
    );
    assert_eq!(
        blocked.not_emptied,
        [],
        "nor is it told that it is disturbed"
    );
    assert_eq!(node(&blocked, "host/n2/a/file").blocked, None);
    // A machine-id that several have, or none, names no node.
    for (machines, nodes) in [
        (&[("n1", own.as_str())][..], &[][..]),
        (&[("n1", "")], &["hz.10.0.0.5"]),
        (&[("n1", &own)], &["hz.10.0.0.5", "hz.10.0.0.6"]),
        (&[("n1", &own), ("n2", &own)], &["hz.10.0.0.5"]),
        (&[("n1", &own)], &["cn-n2"]),
    ] {
        let plan = plan(machines, nodes);
        assert_eq!(node(&plan, "host/n1/a/driver").blocked, None, "{nodes:?}");
        assert_eq!(plan.not_emptied.len(), 1, "{nodes:?}");
    }
}

#[test]
fn a_node_that_an_earlier_run_left_cordoned_is_given_back_through_a_gate() {
    let world = || {
        World::new()
            .resource("host/n1/a/file", Some("1"), json!({ "value": "1" }), &[])
            .applied("host/n1/a/file", json!({ "value": "1" }))
    };
    let cordoned = |mark: Value| json!({ "cn-n1": { "ready": true, "schedulable": false, "cordoned": mark, "gives": {} } });
    let plan = emptied(world(), Some(cordoned(json!("{\"run\":\"r0001\"}")))).plan();
    assert_eq!(ids(&plan), ["gate/0", "host/n1/uncordon"]);
    assert!(matches!(
        &node(&plan, "host/n1/uncordon").kind,
        NodeKind::Uncordon { left: true, .. }
    ));
    assert_eq!(
        ids(&emptied(world(), Some(cordoned(Value::Null))).plan()),
        [""; 0],
        "somebody else's cordon is not ours to take"
    );
    let mut left_alone = emptied(world(), Some(cordoned(json!("{}"))));
    left_alone.rollout.drain = None;
    assert_eq!(
        ids(&left_alone.plan()),
        ["gate/0", "host/n1/uncordon"],
        "whatever the spec says of emptying nodes by now"
    );
    let mut narrowed = emptied(world(), Some(cordoned(json!("{}"))));
    narrowed.selection.excludes = vec!["host/n1".to_owned()];
    assert_eq!(ids(&narrowed.plan()), [""; 0]);
}
