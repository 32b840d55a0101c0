//! Whoever can write to a plan file can give it a new digest; what it may then do is what the spec wishes, and no more.

use crate::room::Room;
use railwright::apply::{ApplyOutcome, Ending, Wished, apply};
use railwright::plan::{NodeKind, Plan, Reason, file};
use railwright::resource::{Action, Disruption};
use serde_json::json;
use std::sync::Arc;

fn room() -> Room {
    let mut room = Room::of(&["a"]).wish("file", json!({ "path": "/etc/one", "content": "1\n" }), &[]);
    room.context.wished = Some(Arc::new(Wished { wishes: room.wishes.clone(), rollout: room.rollout.clone() }));
    room
}

async fn edited(room: &Room, edit: impl FnOnce(&mut Plan)) -> ApplyOutcome {
    let mut plan = room.plan().await;
    edit(&mut plan);
    plan.digest = file::digest(&plan).to_string();
    apply(&plan, &room.context, room.sink()).await
}

fn change(plan: &mut Plan) -> (&mut Vec<railwright::plan::Member>, &mut Vec<Action>) {
    let node = plan.nodes.iter_mut().find(|node| node.is_change()).unwrap();
    match &mut node.kind {
        NodeKind::Change { members, actions, .. } => (members, actions),
        other => panic!("{other:?}"),
    }
}

fn told_nothing(room: &Room) {
    room.host("a", |host| assert!(host.told.is_empty() && host.lock.is_none(), "{:?} {:?}", host.told, host.lock));
}

#[tokio::test(start_paused = true)]
async fn an_untouched_plan_is_carried_out() {
    let room = room();
    assert_eq!(edited(&room, |_| ()).await.ending, Ending::Done);
    assert_eq!(room.plan().await.nodes, []);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_no_resource_needs_is_not_carried_out() {
    let room = room();
    let more = Action::RunCommand { script: "id".into(), limit_s: 9, environment: Default::default(), input: None };
    let outcome = edited(&room, |plan| change(plan).1.push(more)).await;
    assert_eq!((outcome.ending, outcome.problems[0].code), (Ending::Incomplete, "RW0611"), "{:?}", outcome.problems);
    told_nothing(&room);
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_is_not_in_the_spec_is_refused() {
    let one = |edit: fn(&mut Plan)| async move {
        let room = room();
        let outcome = edited(&room, edit).await;
        assert_eq!((outcome.ending, outcome.problems[0].code), (Ending::Refused, "RW0626"), "{:?}", outcome.problems);
        told_nothing(&room);
    };
    one(|plan| change(plan).0[0].wish.body["content"] = json!("2\n")).await;
    one(|plan| change(plan).0[0].wish.address = "host/a/file/%2Fetc%2Ftwo".parse().unwrap()).await;
    one(|plan| {
        let member = &mut change(plan).0[0];
        (member.removal, member.reason) = (true, Reason::RemovedFromSpec);
    })
    .await;
    one(|plan| plan.rollout.max_unavailable = 1000).await;
    one(|plan| plan.nodes.iter_mut().for_each(|node| node.disruption = Disruption::PowerCycle)).await;
}

#[tokio::test(start_paused = true)]
async fn a_removal_of_something_else_than_was_applied_is_refused() {
    let mut room = room();
    assert_eq!(edited(&room, |_| ()).await.ending, Ending::Done);
    room.wishes.clear();
    room.context.wished = Some(Arc::new(Wished { wishes: Vec::new(), rollout: room.rollout.clone() }));
    let outcome = edited(&room, |plan| change(plan).0[0].wish.body["path"] = json!("/etc/passwd")).await;
    assert_eq!((outcome.ending, outcome.problems[0].code), (Ending::Refused, "RW0626"), "{:?}", outcome.problems);
    assert_eq!(edited(&room, |_| ()).await.ending, Ending::Done);
    room.host("a", |host| assert!(!host.disk.files.contains_key("/etc/one")));
}
