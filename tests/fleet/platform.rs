//! What only the setup program of a machine switches on is work by hand: nothing waits for it, and
//! the next plan proves it.

use crate::room::Room;
use railwright_apply::{RunExitClass, apply_plan};
use railwright_drift as drift;
use railwright_plan::{NodeKind, Plan};
use railwright_resource::{AnswerStatus, DesiredResource, ReadResult, ReadResults, kind_named};
use serde_json::json;

fn room() -> Room {
    let feature = json!({ "feature": "iommu", "effect": "it has nothing to act on", "advice": [{ "says": "Or leave it", "source": "a page" }] });
    let room = Room::of(&["a", "b"])
        .resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &[],
        )
        .resource("platform_feature", feature, &[])
        .resource("sysctl", json!({ "key": "net.a", "value": "7" }), &[]);
    room.host("a", |host| host.offers_iommu = false);
    room
}

/// What is blocked, and why.
fn blocked(plan: &Plan) -> Vec<(&str, String)> {
    plan.nodes
        .iter()
        .filter_map(|node| Some((node.id.as_str(), node.blocked.as_ref()?.to_string())))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_blocked_alone_until_somebody_switches_it_on() {
    let room = room();
    let plan = room.plan().await;
    let why = "by hand: switch on Intel VT-d in the setup program (BIOS) of Simulated Server and \
               boot it again; a plan after that proves it. Until then it has nothing to act on. Or \
               leave it (a page)";
    assert_eq!(
        blocked(&plan),
        [("host/a/platform_feature/iommu", why.to_owned())]
    );
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, outcome.counts.blocked),
        (RunExitClass::Incomplete, 1)
    );
    assert!(
        room.host("a", |host| host
            .loader
            .running
            .contains(&"iommu=pt".to_owned())),
        "all else is done"
    );

    let second = room.plan().await;
    assert_eq!(blocked(&second).len(), 1, "a reboot alone does not fix it");
    room.host("a", |host| host.offers_iommu = true);
    let third = room.plan().await;
    let found: Vec<_> = third
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Adopt { .. }))
        .map(|node| node.id.as_str())
        .collect();
    assert_eq!(
        (blocked(&third), found),
        (vec![], vec!["host/a/found"]),
        "proven from what is read"
    );
    assert_eq!(
        apply_plan(&third, &room.context, room.sink()).await.ending,
        RunExitClass::Done
    );

    room.host("b", |host| host.offers_iommu = false);
    assert_eq!(
        drifted(&room),
        ["host/b/platform_feature/iommu#offered"],
        "a BIOS that was set to its defaults again"
    );
}

fn drifted(room: &Room) -> Vec<String> {
    let answers = |resource: &DesiredResource| -> ReadResults {
        let reads = kind_named(&resource.kind).unwrap().reads(resource);
        let mut all = ReadResults::default();
        room.host(&resource.address.target.name, |host| {
            for read in &reads {
                let (code, out) = host.answer(read);
                all.insert(
                    read.key(),
                    ReadResult {
                        status: AnswerStatus::Exit(code),
                        out,
                    },
                );
            }
        });
        all
    };
    let diff = |resource: &DesiredResource| {
        Ok(kind_named(&resource.kind)
            .unwrap()
            .diff(resource, &answers(resource)))
    };
    let state = room.state();
    let report = drift::compute_drift(
        &Default::default(),
        &room.resources,
        &Default::default(),
        drift::compare::DiffFunctions {
            diff: &diff,
            left: &|applied, _| diff(applied),
        },
        &state.last_applied,
    );
    report
        .findings
        .iter()
        .map(|finding| finding.address.to_string())
        .collect()
}
