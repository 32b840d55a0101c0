//! Nodes of a cluster beside a simulated fleet, emptied before their hosts are disturbed.

use crate::nodes::Nodes;
use crate::room::Room;
use railwright::apply::{Ending, apply};
use railwright::plan::DrainPolicy;
use railwright::resource::Disruption;
use serde_json::json;

/// A kernel setting and a parameter that needs a reboot. The node is emptied for what disturbs at least so much.
fn room(from: Disruption) -> (Room, Nodes) {
    let mut room = Room::of(&["a"]).wish("sysctl", json!({ "key": "net.a", "value": "5" }), &[]).wish(
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
        &[],
    );
    let nodes = Nodes::beside(&mut room);
    room.rollout.drain = Some(DrainPolicy { from, evict: true, timeout_s: 900, evict_unmanaged: false, delete_local_data: false });
    (room, nodes)
}

#[tokio::test(start_paused = true)]
async fn a_node_is_emptied_and_given_back() {
    let (room, nodes) = room(Disruption::Reboot);
    let outcome = apply(&room.plan().await, &room.context, room.sink()).await;
    assert_eq!((outcome.ending, room.host("a", |host| host.boot)), (Ending::Done, 1));
    assert_eq!((nodes.cordoned(), nodes.in_use().len()), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_ended_for_a_host_that_has_moved() {
    let (room, nodes) = room(Disruption::None);
    let (plan, before) = (room.plan().await, nodes.states());
    room.host("a", |host| host.kernel.set_sysctl("net.a", "9").unwrap());
    let outcome = apply(&plan, &room.context, room.sink()).await;
    assert_eq!((outcome.ending, nodes.states()), (Ending::Incomplete, before), "{:?}", outcome.problems);
    assert!(room.host("a", |host| host.told.is_empty()));
}

/// That a node is not Ready says nothing of the pods that still end on it.
#[tokio::test(start_paused = true)]
async fn a_pod_that_still_ends_is_waited_for_unless_nobody_would_say_that_it_ended() {
    for lost in [false, true] {
        let (room, nodes) = room(Disruption::None);
        let plan = room.plan().await;
        nodes.keep_ended("a", lost);
        let outcome = apply(&plan, &room.context, room.sink()).await;
        let told = |code: &str, words: &str| outcome.problems.iter().any(|problem| problem.code == code && problem.message.contains(words));
        let kept = told("RW0648", "1 pod is on it still: ml/train (Job train)");
        let gone = told("RW0652", "count as gone, and nobody has said so: ml/train (Job train)");
        assert_eq!((kept, gone), (!lost, lost), "{:?}", outcome.problems);
        assert_eq!(room.host("a", |host| host.told.is_empty()), !lost);
    }
}
