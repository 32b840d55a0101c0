//! Nodes of a cluster beside a simulated fleet, emptied before their hosts are disturbed.

use crate::automatic_rollback::reached_over_eth0;
use crate::nodes::Nodes;
use crate::room::{Room, codes};
use railwright_apply::{
    ApplyOutcome, Context, Decisions, DesiredSpec, RunEvent, RunExitClass, apply_plan, resume_run,
};
use railwright_base::Target;
use railwright_plan::DrainPolicy;
use railwright_resource::Disruption;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kernel setting and a parameter that needs a reboot. The node is emptied for what disturbs at
/// least so much.
fn room(from: Disruption) -> (Room, Nodes) {
    let mut room = Room::of(&["a"])
        .resource("sysctl", json!({ "key": "net.a", "value": "5" }), &[])
        .resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &[],
        );
    let nodes = emptied(&mut room, from);
    (room, nodes)
}

/// A cluster beside a room, whose nodes are emptied for what disturbs at least so much.
pub fn emptied(room: &mut Room, from: Disruption) -> Nodes {
    room.rollout.drain = Some(DrainPolicy {
        from,
        evict: true,
        timeout_s: 900,
        evict_unmanaged: false,
        delete_local_data: false,
    });
    Nodes::beside(room)
}

/// A run in which somebody does this to the nodes as soon as one was emptied.
async fn meddled(room: &mut Room, from: Disruption, meddle: Meddle) -> ApplyOutcome {
    let nodes = emptied(room, from);
    let meddles = move |event: RunEvent| match event {
        RunEvent::StepFinished { node, .. } if node.ends_with("/drain") => meddle(&nodes),
        _ => {}
    };
    apply_plan(&room.plan().await, &room.context, Arc::new(meddles)).await
}

/// What somebody does to the nodes.
type Meddle = fn(&Nodes);

/// Whatever disturbs it: a step, a step with an automatic rollback, a reboot.
#[tokio::test(start_paused = true)]
async fn a_host_is_disturbed_only_while_its_node_is_empty() {
    let meddles: [(Meddle, &str); 3] = [
        (|nodes| nodes.bind_pod("a"), "1 pod is on it still: ml/late"),
        (|nodes| nodes.uncordon("a"), "somebody uncordoned it"),
        (
            |nodes| nodes.hide_pods("a"),
            "whether it is still empty is not known: it is too busy",
        ),
    ];
    for (meddle, words) in meddles {
        let reached = Room::with(BTreeMap::from([("a".to_owned(), reached_over_eth0())]));
        let mut rooms = [
            (
                Disruption::None,
                Room::of(&["a"]).resource("sysctl", json!({ "key": "net.a", "value": "5" }), &[]),
            ),
            (
                Disruption::None,
                reached.resource("link", json!({ "netdev": "eth0", "mtu": 1400 }), &[]),
            ),
            (
                Disruption::Reboot,
                Room::of(&["a"]).resource(
                    "kernel_parameter",
                    json!({ "parameter": "iommu", "value": "pt" }),
                    &[],
                ),
            ),
        ];
        rooms[1].1.rollout.rollback_timer_s = Some(60);
        for (n, (from, room)) in rooms.iter_mut().enumerate() {
            let outcome = meddled(room, *from, meddle).await;
            let told = outcome
                .problems
                .iter()
                .any(|problem| problem.code == "RW0729" && problem.message.contains(words));
            assert!(told, "{n}, {words}: {:?}", outcome.problems);
            // What comes before the reboot needs no empty node.
            let is_untouched = room.host("a", |host| {
                host.boot == 0 && (host.told.is_empty() || *from == Disruption::Reboot)
            });
            assert!(is_untouched, "{n}, {words}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_joined_since_the_plan_is_not_disturbed_with_its_pods_on_it() {
    for joins in [false, true] {
        let (room, nodes) = room(Disruption::Reboot);
        nodes.remove("a");
        let plan = room.plan().await;
        if joins {
            nodes.set("a", true, true);
        }
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        let told = |problem: &railwright_base::Diagnostic| {
            problem.code == "RW0610" && problem.message.contains("it was no node of")
        };
        assert_eq!(
            outcome.problems.iter().any(told),
            joins,
            "{:?}",
            outcome.problems
        );
        assert_eq!(
            room.host("a", |host| host.boot),
            u32::from(!joins),
            "{:?}",
            outcome.problems
        );
    }
}

/// Its controller would put it there again at once, so it is not ended; that it loses its devices
/// is told.
#[tokio::test(start_paused = true)]
async fn a_pod_of_the_node_itself_that_has_its_devices_is_told() {
    let (room, nodes) = room(Disruption::None);
    nodes.give_devices("a");
    let outcome = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    let told = |problem: &&railwright_base::Diagnostic| problem.code == "RW0670";
    let told = outcome.problems.iter().find(told).unwrap();
    assert!(
        told.message
            .ends_with("keep its devices: ml/plugin (DaemonSet plugin): rdma/hca"),
        "{}",
        told.message
    );
    assert_eq!(
        (outcome.ending, room.host("a", |host| host.boot)),
        (RunExitClass::Done, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_is_emptied_and_given_back() {
    let (room, nodes) = room(Disruption::Reboot);
    let outcome = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, room.host("a", |host| host.boot)),
        (RunExitClass::Done, 1)
    );
    assert_eq!((nodes.cordoned(), nodes.in_use().len()), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_ended_for_a_host_that_has_moved() {
    let (room, nodes) = room(Disruption::None);
    let (plan, before) = (room.plan().await, nodes.states());
    room.host("a", |host| host.kernel.set_sysctl("net.a", "9").unwrap());
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, nodes.states()),
        (RunExitClass::Incomplete, before),
        "{:?}",
        outcome.problems
    );
    assert!(room.host("a", |host| host.told.is_empty()));
}

/// That a node is not Ready says nothing of the pods that still end on it.
#[tokio::test(start_paused = true)]
async fn a_pod_that_still_ends_is_waited_for_unless_nobody_would_say_that_it_ended() {
    for lost in [false, true] {
        let (room, nodes) = room(Disruption::None);
        let plan = room.plan().await;
        nodes.keep_ended("a", lost);
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        let told = |code: &str, words: &str| {
            outcome
                .problems
                .iter()
                .any(|problem| problem.code == code && problem.message.contains(words))
        };
        let kept = told("RW0648", "1 pod is on it still: ml/train (Job train)");
        let gone = told(
            "RW0652",
            "count as gone, and nobody has said so: ml/train (Job train)",
        );
        assert_eq!((kept, gone), (!lost, lost), "{:?}", outcome.problems);
        assert_eq!(room.host("a", |host| host.told.is_empty()), !lost);
    }
}

/// That a host was no node when the plan was made says nothing of the node that it is by now.
#[tokio::test(start_paused = true)]
async fn a_run_is_not_resumed_where_the_spec_calls_a_node_by_another_name() {
    let mut room = Room::of(&["a", "b"]).resource(
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
        &[],
    );
    room.rollout.max_unavailable = 1;
    emptied(&mut room, Disruption::Reboot).remove("b");
    *room.gate.bad.lock().unwrap() = ["a".to_owned()].into();
    let plan = room.plan().await;
    assert_eq!(plan.not_emptied.len(), 1);
    let stopped = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(stopped.ending, RunExitClass::Stopped);
    room.gate.bad.lock().unwrap().clear();
    let resume = async |nodes: BTreeMap<String, Target>| {
        let desired = DesiredSpec {
            rollout: room.rollout.clone(),
            ..DesiredSpec::default()
        };
        let context = Context {
            desired: Some(Arc::new(desired)),
            nodes,
            ..room.context.clone()
        };
        let outcome = resume_run(&context, Decisions::default(), room.sink()).await;
        let codes: Vec<String> = codes(&outcome).into_iter().map(str::to_owned).collect();
        (codes, room.host("b", |host| host.boot))
    };
    let mut by_now = room.context.nodes.clone();
    by_now.retain(|_, host| *host != Target::host("b"));
    by_now.insert("n2x".to_owned(), Target::host("b"));
    assert_eq!(resume(by_now).await, (vec!["RW0661".to_owned()], 0));
    assert_eq!(resume(room.context.nodes.clone()).await, (vec![], 1));
}
