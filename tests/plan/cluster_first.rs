//! What of a Kubernetes cluster comes before its hosts, and what after them.

use crate::world::*;
use railwright_apply::plan_graph_check::check_plan_graph;
use railwright_plan::*;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{
    AnswerStatus, DesiredResource, Disruption, Read, ReadResult, ResourceDeclaration,
};
use serde_json::json;

const WAIT: &str = "kube/prod/node_allocatable/aliyun%2Ferdma";

/// A controller, the wait for what it brings, and an operator; two hosts. The nodes give so much.
fn world(gives: u64) -> World {
    let body = json!({ "value": "1" });
    let mut world = World::new()
        .resource("host/n1/a/file", None, body.clone(), &[])
        .resource("host/n2/a/file", None, body.clone(), &[])
        .resource("host/n2/a/later", None, body.clone(), &["host/n2/a/file"])
        .resource(
            "kube/prod/a/controller",
            None,
            json!({ "value": "1", "drain": true }),
            &[],
        )
        .resource(
            "kube/prod/a/operator",
            None,
            body.clone(),
            &["kube/prod/a/controller"],
        )
        .resource("kube/prod/a/other", None, body, &[]);
    let wait = json!({ "resource": "aliyun/erdma", "nodes": ["n1", "n2"], "amount": 200, "before_hosts": true });
    let declaration = ResourceDeclaration {
        kind: "node_allocatable".to_owned(),
        body: wait,
        module: "m/r".into(),
        places: Vec::new(),
    };
    world.resources.push(DesiredResource {
        address: WAIT.parse().unwrap(),
        after: vec!["kube/prod/a/controller".parse().unwrap()],
        declaration: declaration.into(),
    });
    let node = json!({ "ready": true, "schedulable": true, "gives": { "aliyun/erdma": gives.to_string() } });
    let answer = ReadResult {
        status: AnswerStatus::Exit(0),
        out: json!({ "n1": node, "n2": node }).to_string(),
    };
    let cluster = world
        .observation
        .targets
        .get_mut(&"kube/prod".parse().unwrap())
        .unwrap();
    cluster
        .answers
        .insert(Read::Kubernetes(KubernetesRead::Nodes).key(), answer);
    world
}

#[test]
fn hosts_wait_for_what_the_cluster_brings_and_the_rest_of_it_for_them() {
    let plan = world(0).plan();
    let desired = [
        "kube/prod/a/controller",
        WAIT,
        "host/n1/a/file",
        "gate/0",
        "host/n2/a/file",
        "host/n2/a/later",
        "gate/1",
        "kube/prod/a/operator",
        "kube/prod/a/other",
    ];
    assert_eq!(ids(&plan), desired);
    assert_eq!(node(&plan, "host/n1/a/file").after, [WAIT]);
    assert_eq!(node(&plan, "gate/0").after, ["host/n1/a/file", WAIT]);
    assert_eq!(node(&plan, "host/n2/a/file").after, ["gate/0"]);
    assert_eq!(
        node(&plan, "kube/prod/a/operator").after,
        ["kube/prod/a/controller", "gate/1"]
    );
    assert_eq!(node(&plan, "kube/prod/a/other").after, ["gate/1"]);
    assert_eq!(
        file::parse_plan_file("p", &file::serialize_plan(&plan)).unwrap(),
        plan
    );
}

#[test]
fn where_it_is_there_nothing_waits() {
    let plan = world(200).plan();
    assert_eq!(node(&plan, "host/n1/a/file").after, [""; 0]);
    assert_eq!(node(&plan, "kube/prod/a/controller").after, ["gate/1"]);
}

#[test]
fn hosts_are_blocked_with_what_they_would_be_proven_by() {
    let mut blocked = world(0);
    blocked.rollout.max_disruption = Disruption::LinkBlip;
    let plan = blocked.plan();
    let needs = |id: &str| Some(BlockedReason::NeedsStep(id.to_owned()));
    let why = |id: &str| node(&plan, id).blocked.clone();
    assert_eq!(why(WAIT), needs("kube/prod/a/controller"));
    for host in ["host/n1/a/file", "host/n2/a/file", "host/n2/a/later"] {
        assert_eq!(why(host), needs(WAIT));
    }
    assert_eq!(
        (
            why("kube/prod/a/other"),
            plan.nodes
                .iter()
                .any(|node| matches!(node.kind, NodeKind::Gate { .. }))
        ),
        (None, false)
    );
    assert_eq!(
        check_plan_graph(&plan, Some(&blocked.resources), &blocked.last),
        vec![]
    );
}

#[test]
fn a_plan_whose_hosts_do_not_wait_is_told() {
    let world = world(0);
    let told = |plan: &Plan| {
        check_plan_graph(plan, Some(&world.resources), &world.last)
            .into_iter()
            .map(|one| one.message)
            .collect::<Vec<_>>()
    };
    let plan = world.plan();
    assert_eq!(told(&plan), [""; 0]);
    let mut hurried = plan.clone();
    hurried
        .nodes
        .iter_mut()
        .for_each(|node| node.after.retain(|id| id != WAIT));
    let said = "the plan does not hold together as its own steps need it: a host does not wait for \
                kube/prod/node_allocatable/aliyun%2Ferdma";
    assert_eq!(told(&hurried), [said]);
    let mut blocked = plan;
    blocked
        .nodes
        .iter_mut()
        .filter(|node| node.id == WAIT)
        .for_each(|node| node.blocked = Some(BlockedReason::Stated("so".to_owned())));
    assert_eq!(told(&blocked), [said]);
}
