//! Whoever can write to a plan file can give it a new digest; what it may then do is what the spec
//! declares, and no more.

use crate::room::Room;
use railwright_apply::{ApplyOutcome, DesiredSpec, RunExitClass, apply_plan};
use railwright_plan::{
    BlockedReason, ChangeReason, NodeKind, Plan, PlanNode, UnknownFinding, content,
};
use railwright_report as report;
use railwright_resource::{Action, Disruption};
use railwright_transport::sim::{SimulatedFault, SimulatedTrouble};
use serde_json::json;
use std::sync::Arc;

fn room() -> Room {
    let mut room =
        Room::of(&["a"]).resource("file", json!({ "path": "/etc/one", "content": "1\n" }), &[]);
    room.context.desired = Some(Arc::new(DesiredSpec {
        resources: room.resources.clone(),
        rollout: room.rollout.clone(),
        ..DesiredSpec::default()
    }));
    room
}

/// A pull that changes a module's checks leaves its resources as they were.
#[tokio::test(start_paused = true)]
async fn a_plan_of_other_modules_is_not_carried_out() {
    let room = room();
    let outcome = edited(&room, |plan| {
        let digest = railwright_base::Digest::of_bytes(b"module");
        plan.modules.insert("story".into(), digest);
    })
    .await;
    assert_eq!(outcome.problems[0].code, "RW0626");
    assert!(outcome.problems[0].message.contains("the module story"));
    told_nothing(&room);
}

async fn edited(room: &Room, edit: impl FnOnce(&mut Plan)) -> ApplyOutcome {
    let mut plan = room.plan().await;
    edit(&mut plan);
    plan.digest = content::compute_plan_digest(&plan).to_string();
    apply_plan(&plan, &room.context, room.sink()).await
}

fn change(plan: &mut Plan) -> (&mut Vec<railwright_plan::Member>, &mut Arc<[Action]>) {
    let node = plan.nodes.iter_mut().find(|node| node.is_change()).unwrap();
    match &mut node.kind {
        NodeKind::Change {
            members, actions, ..
        } => (members, actions),
        other => panic!("{other:?}"),
    }
}

fn told_nothing(room: &Room) {
    room.host("a", |host| {
        assert!(
            host.told.is_empty() && host.lock.held.is_none(),
            "{:?} {:?}",
            host.told,
            host.lock
        )
    });
}

#[tokio::test(start_paused = true)]
async fn an_untouched_plan_is_carried_out() {
    let room = room();
    assert_eq!(edited(&room, |_| ()).await.ending, RunExitClass::Done);
    assert_eq!(room.plan().await.nodes, []);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_no_resource_needs_is_not_carried_out() {
    let room = room();
    let more = Action::RunCommand {
        script: "id".into(),
        limit_s: 9,
        environment: Default::default(),
        input: None,
    };
    let outcome = edited(&room, |plan| {
        let actions = change(plan).1;
        *actions = actions.iter().cloned().chain([more]).collect();
    })
    .await;
    assert_eq!(
        (outcome.ending, &*outcome.problems[0].code),
        (RunExitClass::Incomplete, "RW0611"),
        "{:?}",
        outcome.problems
    );
    told_nothing(&room);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_in_the_spec_is_refused() {
    let one = |edit: fn(&mut Plan)| async move {
        let room = room();
        let outcome = edited(&room, edit).await;
        assert_eq!(
            (outcome.ending, &*outcome.problems[0].code),
            (RunExitClass::Refused, "RW0626"),
            "{:?}",
            outcome.problems
        );
        told_nothing(&room);
    };
    one(|plan| {
        Arc::make_mut(&mut change(plan).0[0].resource.declaration).body["content"] = json!("2\n")
    })
    .await;
    one(|plan| change(plan).0[0].resource.address = "host/a/file/%2Fetc%2Ftwo".parse().unwrap())
        .await;
    one(|plan| {
        let member = &mut change(plan).0[0];
        Arc::make_mut(&mut member.diff).removal = true;
        member.reason = ChangeReason::RemovedFromSpec;
    })
    .await;
    one(|plan| plan.rollout.max_unavailable = 1000).await;
    one(|plan| {
        plan.nodes
            .iter_mut()
            .for_each(|node| node.disruption = Disruption::PowerCycle)
    })
    .await;
}

/// Two files of which one comes after the other, on three hosts of which two may be out of service.
fn fleet() -> Room {
    let mut room = Room::of(&["a", "b", "c"])
        .resource("file", json!({ "path": "/etc/one", "content": "1\n" }), &[])
        .resource(
            "file",
            json!({ "path": "/etc/two", "content": "2\n" }),
            &["file/%2Fetc%2Fone"],
        );
    room.context.desired = Some(Arc::new(DesiredSpec {
        resources: room.resources.clone(),
        rollout: room.rollout.clone(),
        ..DesiredSpec::default()
    }));
    room
}

fn gate(plan: &mut Plan, n: usize) -> &mut PlanNode {
    plan.nodes
        .iter_mut()
        .filter(|node| matches!(node.kind, NodeKind::Gate { .. }))
        .nth(n)
        .unwrap()
}

/// A reboot after the steps of the host, and before its gate.
fn add_reboot(plan: &mut Plan, host: &str, disruption: Disruption) {
    let id = format!("host/{host}/reboot");
    let step = plan
        .nodes
        .iter()
        .find(|node| node.id.ends_with("two") && node.id.contains(&format!("/{host}/")))
        .unwrap();
    let reboot = PlanNode {
        id: id.clone(),
        kind: NodeKind::Reboot,
        disruption,
        after: vec![step.id.clone()],
        ..step.clone()
    };
    let gates =
        plan.nodes.iter_mut().filter(|node| matches!(&node.kind, NodeKind::Gate { hosts } if hosts.iter().any(|name| name == host)));
    gates.for_each(|gate| gate.after.push(id.clone()));
    plan.nodes.push(reboot);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_lost_what_holds_it_together_is_refused() {
    let one = |what: &'static str, edit: fn(&mut Plan)| async move {
        let room = fleet();
        let outcome = edited(&room, edit).await;
        let codes: Vec<_> = outcome
            .problems
            .iter()
            .map(|problem| problem.code.clone())
            .collect();
        assert_eq!(
            (outcome.ending, codes.first().map(|code| &**code)),
            (RunExitClass::Refused, Some("RW0640")),
            "{what}: {:?}",
            outcome.problems
        );
        assert!(
            outcome.problems[0].message.contains(what),
            "{what}: {:?}",
            outcome.problems
        );
        told_nothing(&room);
    };
    let no_gate = "no gate proves the host";
    one(no_gate, |plan| {
        plan.nodes
            .retain(|node| !matches!(node.kind, NodeKind::Gate { .. }));
        plan.nodes
            .iter_mut()
            .for_each(|node| node.after.retain(|id| !id.starts_with("gate/")));
    })
    .await;
    one(no_gate, |plan| {
        gate(plan, 0).kind = NodeKind::Gate { hosts: Vec::new() }
    })
    .await;
    one(no_gate, |plan| {
        gate(plan, 1).blocked = Some(BlockedReason::Stated("later".to_owned()))
    })
    .await;
    one("does not wait for it", |plan| gate(plan, 0).after.clear()).await;
    one("does not wait for it", |plan| {
        plan.nodes
            .iter_mut()
            .filter(|node| node.is_change())
            .for_each(|node| node.wave = 0)
    })
    .await;
    // All in one wave: no canary goes first.
    one("its waves are not those", |plan| {
        let all: Vec<String> = plan
            .nodes
            .iter()
            .filter(|node| node.is_change())
            .map(|node| node.id.clone())
            .collect();
        gate(plan, 1).kind = NodeKind::Gate {
            hosts: ["a", "b", "c"].map(str::to_owned).to_vec(),
        };
        gate(plan, 1).after = all;
        plan.nodes.retain(|node| node.id != "gate/0");
        plan.nodes.iter_mut().for_each(|node| node.wave = 0);
        plan.nodes
            .iter_mut()
            .for_each(|node| node.after.retain(|id| id != "gate/0"));
    })
    .await;
    one("does not wait for file/%2Fetc%2Fone", |plan| {
        plan.nodes
            .iter_mut()
            .filter(|node| node.id.ends_with("two"))
            .for_each(|node| node.after.clear());
        // The gates wait for both all the same.
        let ones: Vec<(usize, String)> = plan
            .nodes
            .iter()
            .filter(|n| n.id.ends_with("one"))
            .map(|n| (n.wave, n.id.clone()))
            .collect();
        (0..2).for_each(|n| {
            gate(plan, n).after.extend(
                ones.iter()
                    .filter(|(wave, _)| *wave == n)
                    .map(|(_, id)| id.clone()),
            )
        });
    })
    .await;
    one("no step of the host comes before its reboot", |plan| {
        add_reboot(plan, "a", Disruption::Reboot);
        plan.nodes.last_mut().unwrap().after.clear();
    })
    .await;
    one("the reboot does not count as one", |plan| {
        add_reboot(plan, "a", Disruption::None)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_no_step_needs_is_left_out() {
    let room = fleet();
    assert_eq!(
        edited(&room, |plan| add_reboot(plan, "b", Disruption::Reboot))
            .await
            .ending,
        RunExitClass::Done
    );
    room.host("b", |host| {
        assert_eq!(
            (host.boot, host.told.clone()),
            (0, vec!["write_file".to_owned(), "write_file".to_owned()])
        )
    });
}

/// A file after a setting that needs a power cycle: both are blocked, and a resumed run takes them
/// up.
fn power_cycled() -> Room {
    let setting =
        json!({ "netdev": "ens1", "settings": { "SRIOV_EN": 1 }, "takes_effect": "power_cycle" });
    let mut room = Room::of(&["a"])
        .resource("firmware_setting", setting, &[])
        .resource(
            "file",
            json!({ "path": "/etc/one", "content": "1\n" }),
            &["firmware_setting/ens1"],
        );
    room.host("a", |host| host.firmware.put("ens1", "SRIOV_EN", "0", true));
    room.context.desired = Some(Arc::new(DesiredSpec {
        resources: room.resources.clone(),
        rollout: room.rollout.clone(),
        ..DesiredSpec::default()
    }));
    room
}

fn blocked(plan: &mut Plan) -> &mut PlanNode {
    plan.nodes
        .iter_mut()
        .find(|node| node.is_change() && node.blocked.is_some())
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_a_power_cycle_is_looked_at_before_the_run_begins() {
    let one = |code: &'static str, edit: fn(&mut Plan)| async move {
        let room = power_cycled();
        let outcome = edited(&room, edit).await;
        assert_eq!(
            (outcome.ending, &*outcome.problems[0].code),
            (RunExitClass::Refused, code),
            "{:?}",
            outcome.problems
        );
        told_nothing(&room);
    };
    one("RW0626", |plan| match &mut blocked(plan).kind {
        NodeKind::Change { members, .. } => {
            Arc::make_mut(&mut members[0].resource.declaration).body["content"] = json!("2\n")
        }
        other => panic!("{other:?}"),
    })
    .await;
    one("RW0626", |plan| {
        blocked(plan).disruption = Disruption::Reinstall
    })
    .await;
    one("RW0640", |plan| {
        plan.nodes
            .iter_mut()
            .filter(|node| node.kind == NodeKind::Reboot)
            .for_each(|node| node.blocked = None)
    })
    .await;
    let room = power_cycled();
    assert_eq!(
        edited(&room, |_| ()).await.ending,
        RunExitClass::Waiting,
        "an untouched one is carried out"
    );
}

#[tokio::test(start_paused = true)]
async fn a_removal_of_something_else_than_was_applied_is_refused() {
    let mut room = room();
    assert_eq!(edited(&room, |_| ()).await.ending, RunExitClass::Done);
    room.resources.clear();
    room.context.desired = Some(Arc::new(DesiredSpec {
        resources: Vec::new(),
        rollout: room.rollout.clone(),
        ..DesiredSpec::default()
    }));
    let outcome = edited(&room, |plan| {
        Arc::make_mut(&mut change(plan).0[0].resource.declaration).body["path"] =
            json!("/etc/passwd")
    })
    .await;
    assert_eq!(
        (outcome.ending, &*outcome.problems[0].code),
        (RunExitClass::Refused, "RW0626"),
        "{:?}",
        outcome.problems
    );
    assert_eq!(edited(&room, |_| ()).await.ending, RunExitClass::Done);
    room.host("a", |host| {
        assert!(!host.disk.files.contains_key("/etc/one"))
    });
}

/// A plan of somebody else is shown: what stands in it begins no line of its own, wherever the
/// screen has it.
#[tokio::test(start_paused = true)]
async fn no_name_of_a_plan_begins_a_line() {
    let room = Room::of(&["a", "b", "c"]).resource(
        "file",
        json!({ "path": "/etc/one", "content": "1\n" }),
        &[],
    );
    for host in ["b", "c"] {
        room.host(host, |host| {
            host.faults.push(SimulatedFault {
                after: 0,
                word: None,
                trouble: SimulatedTrouble::Unreachable(u32::MAX),
            })
        });
    }
    let text = serde_json::to_string(&room.plan().await).unwrap();
    let text = text
        .replace("host/", r"host/x\nSPOOF-")
        .replace("\"RW0", r#""x\nSPOOF-RW0"#);
    let mut plan: Plan = serde_json::from_str(&text).unwrap();
    for node in &mut plan.nodes {
        if let NodeKind::Gate { hosts, .. } = &mut node.kind {
            hosts
                .iter_mut()
                .for_each(|host| host.insert_str(0, "x\nSPOOF-"));
        }
    }
    plan.unknown
        .push(UnknownFinding::new("host/a/x\nSPOOF-what", "nobody knows"));
    let screen = report::plan::render_plan_screen(&plan, &report::plan::PlanNextSteps::default());
    for name in ["SPOOF-a", "SPOOF-b", "SPOOF-RW0", "SPOOF-what"] {
        assert!(screen.contains(name), "{name}: {screen}");
    }
    assert!(
        !screen
            .lines()
            .any(|line| line.trim_start().starts_with("SPOOF")),
        "{screen}"
    );
}
