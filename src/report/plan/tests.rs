//! The plan's screen: what it says of each change, of the gate, of the end and of a drain.

use super::*;
use railwright_base::{Address, Digest};
use railwright_plan::{
    AttributeDifference, ChangeReason, GateCoverage, Member, PlannedDiff, RolloutPolicy,
};
use railwright_resource::{DesiredResource, Plane, Reading, ResourceDeclaration};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A removal, every text of it as a host's own record may have it.
pub(super) fn plan(text: &str) -> Plan {
    let address = Address::host("a", "file", text);
    let resource = DesiredResource {
        address: address.clone(),
        after: Vec::new(),
        declaration: ResourceDeclaration {
            kind: "file".to_owned(),
            body: serde_json::Value::Null,
            module: text.to_owned(),
            places: Vec::new(),
        }
        .into(),
    };
    let member = Member {
        resource,
        reason: ChangeReason::Takeover,
        diff: Arc::new(PlannedDiff {
            removal: true,
            differences: Vec::new(),
            fingerprint: Digest::of(&0),
            before: serde_json::Value::Null,
            residue: vec![text.to_owned()],
            since: Vec::new(),
            needs_power_cycle: false,
        }),
    };
    let node = PlanNode {
        id: address.to_string(),
        kind: NodeKind::Change {
            members: vec![member],
            actions: Arc::default(),
            announced: Arc::new([text.to_owned()]),
            disturbs: Arc::default(),
            interrupts_netdevs: Arc::default(),
            automatic_rollback: None,
        },
        target: Some(address.target),
        disruption: Disruption::Reload,
        interrupts: Arc::new([text.to_owned()]),
        after: vec![text.to_owned()],
        wave: 0,
        blocked: None,
    };
    Plan {
        format_version: "1.0".to_owned(),
        made_by: String::new(),
        cluster: text.to_owned(),
        cluster_id: None,
        inventory: Default::default(),
        spec_digest: Digest::of(&0),
        modules: BTreeMap::new(),
        state_digest: Digest::of(&0),
        observed_at: text.to_owned(),
        narrowed: vec![text.to_owned()],
        rollout: RolloutPolicy {
            canary: 1,
            max_unavailable: 1,
            max_disruption: Disruption::Reboot,
            ..RolloutPolicy::default()
        },
        proof: GateCoverage::Rdma,
        nodes: vec![node],
        unchanged: BTreeMap::new(),
        unknown: Vec::new(),
        refused: Vec::new(),
        reinstalled: Vec::new(),
        renamed: BTreeMap::new(),
        waived: vec![],
        dropped: Default::default(),
        not_emptied: Default::default(),
        unavailable: Default::default(),
        no_ssh: Default::default(),
        digest: String::new(),
    }
}

/// The plan above for these hosts, its text replaced.
pub(super) fn of_hosts(names: &[&str], change: impl Fn(&str, &mut PlanNode)) -> Plan {
    let mut plan = plan("x");
    let first = plan.nodes.remove(0);
    for name in names {
        let mut node = first.clone();
        node.target = Some(Target::host(*name));
        node.after.clear();
        change(name, &mut node);
        plan.nodes.push(node);
    }
    plan
}

#[test]
fn a_plan_of_which_nothing_may_be_carried_out_does_not_end_with_an_apply() {
    let blocked = of_hosts(&["n1"], |_, node| {
        node.blocked = Some(BlockedReason::Stated("somebody else's".to_owned()))
    });
    let end = |plan: &Plan, file: Option<&str>| {
        let next = PlanNextSteps {
            file: file.map(str::to_owned),
            inventory: "inv".to_owned(),
            ..PlanNextSteps::default()
        };
        render_plan_screen(plan, &next)
            .lines()
            .find(|line| line.starts_with("next "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        end(&blocked, None),
        "next     fix what blocks it, then plan again: railwright plan inv x"
    );
    assert_eq!(
        end(&blocked, Some("a.plan")),
        "next     fix what blocks it, then plan again"
    );
    let open = of_hosts(&["n1"], |_, _| ());
    assert_eq!(
        end(&open, Some("a.plan")),
        "next     railwright apply a.plan"
    );
}

#[test]
fn a_removal_that_takes_nothing_back_says_so_and_show_has_what_stays() {
    let removed = |differs: bool| {
        of_hosts(&["n1"], |_, node| {
            let NodeKind::Change { members, .. } = &mut node.kind else {
                return;
            };
            members[0].reason = ChangeReason::RemovedFromSpec;
            let diff = Arc::make_mut(&mut members[0].diff);
            diff.residue = vec!["the firmware stays".to_owned()];
            let (desired, there) = (Reading::Absent, Reading::is("y"));
            let difference = AttributeDifference {
                attribute: "content".to_owned(),
                plane: Plane::Persisted,
                desired,
                actual: there,
                by: None,
            };
            diff.differences
                .extend(Some(difference).filter(|_| differs));
        })
    };
    let text = render_plan_screen(&removed(false), &PlanNextSteps::default());
    assert!(
        text.contains(
            "because  removed from spec: nothing of it is to be rolled back, and it is forgotten"
        ),
        "{text}"
    );
    assert!(text.contains("summary  1 forgotten,"), "{text}");
    let text = render_plan_screen(&removed(true), &PlanNextSteps::default());
    assert!(
        text.contains("what was there before our first change comes back")
            && text.contains("summary  1 removed,"),
        "{text}"
    );
    let shown = render_plan_details(&removed(true), &["host".to_owned()]).unwrap();
    assert!(shown.contains("leaves   the firmware stays\n"), "{shown}");
}

#[test]
fn what_a_release_makes_is_told_by_its_kinds_where_it_is_much() {
    let release = |count: usize| {
        of_hosts(&["n1"], |_, node| {
            let NodeKind::Change { members, .. } = &mut node.kind else {
                return;
            };
            members[0].reason = ChangeReason::New;
            let body = serde_json::json!({ "name": "rails", "namespace": "rdma" });
            members[0].resource = DesiredResource::of(
                "kube/prod/helm_release/rdma/rails".parse().unwrap(),
                "helm_release",
                body,
            );
            let diff = Arc::make_mut(&mut members[0].diff);
            let made = (0..count).map(|n| {
                format!(
                    "{} rdma/a{n}",
                    if n == 0 {
                        "DaemonSet.apps"
                    } else {
                        "ConfigMap.core"
                    }
                )
            });
            let hook = "hook Job.batch rdma/h (pre-install)".to_owned();
            let of = |attribute: String, desired: &str| AttributeDifference {
                attribute,
                plane: Plane::Persisted,
                desired: Reading::is(desired),
                actual: Reading::Absent,
                by: None,
            };
            (diff.removal, diff.residue) = (false, Vec::new());
            let named = [of("chart".to_owned(), "rails"), of(hook, "made")];
            diff.differences = named
                .into_iter()
                .chain(made.map(|name| of(name, "made")))
                .collect();
        })
    };
    let text = render_plan_screen(&release(20), &PlanNextSteps::default());
    assert!(
        text.contains(
            "       chart rails, hook Job.batch rdma/h (pre-install) made\n       makes    20 objects: 19 ConfigMap.core, 1 DaemonSet.apps; railwright show PLAN"
        ),
        "{text}"
    );
    let few = render_plan_screen(&release(3), &PlanNextSteps::default());
    assert!(
        few.contains(
            "chart rails, hook Job.batch rdma/h (pre-install) made, DaemonSet.apps rdma/a0 made"
        ),
        "{few}"
    );
}

#[test]
fn a_removal_says_what_it_drops_and_planes_are_explained_where_they_stand() {
    let since = |actual: &str| AttributeDifference {
        attribute: "content".to_owned(),
        plane: Plane::Persisted,
        desired: Reading::is("ours"),
        actual: Reading::is(actual),
        by: None,
    };
    let plan = of_hosts(&["n1", "n2"], |name, node| {
        let NodeKind::Change { members, .. } = &mut node.kind else {
            return;
        };
        let diff = Arc::make_mut(&mut members[0].diff);
        diff.since = vec![since(&format!("theirs on {name}"))];
        diff.differences = vec![AttributeDifference {
            desired: Reading::Absent,
            ..since("x")
        }];
    });
    let text = render_plan_screen(&plan, &PlanNextSteps::default());
    let (drops, more) = (
        "drops    what somebody changed since we applied it: content (persisted)",
        "ours -> theirs on n1; ours -> theirs on n2",
    );
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains(&drops.split_whitespace().collect::<Vec<_>>().join(" "))
            && flat.contains(more),
        "{text}"
    );
    assert!(
        text.contains("       content (persisted)    x -> absent\n")
            && text.contains("\nplanes   persisted: "),
        "{text}"
    );
    assert!(
        !render_plan_screen(&of_hosts(&["n1"], |_, _| ()), &PlanNextSteps::default())
            .contains("planes   ")
    );
}

#[test]
fn a_gate_says_what_it_proves_and_a_resource_how_it_is_named() {
    let mut plan = of_hosts(&["n1"], |_, _| ());
    let gate = NodeKind::Gate {
        hosts: vec!["n1".to_owned()],
    };
    plan.nodes.push(PlanNode {
        id: "gate/0".to_owned(),
        kind: gate,
        target: None,
        disruption: Disruption::None,
        ..plan.nodes[0].clone()
    });
    let next = PlanNextSteps {
        file: Some("p.plan".to_owned()),
        ..PlanNextSteps::default()
    };
    for (proof, words) in [
        (GateCoverage::Rdma, "then a gate of RDMA checks"),
        (
            GateCoverage::RdmaAndNccl,
            "then a gate of RDMA checks and NCCL's tests",
        ),
        (GateCoverage::Nccl, "then a gate of NCCL's tests"),
        (
            GateCoverage::ModuleChecks,
            "then a gate of the modules' checks",
        ),
        (
            GateCoverage::Nothing,
            "then a gate with nothing to check (no rails, no checks)",
        ),
        (GateCoverage::NotSaid, "then a gate"),
    ] {
        plan.proof = proof;
        let text = render_plan_screen(&plan, &next);
        let line = text.lines().find(|line| line.starts_with("waves")).unwrap();
        assert!(line.ends_with(words), "{line}");
        assert!(text.contains("railwright show p.plan a file x\n"), "{text}");
    }
}

#[test]
fn no_name_writes_to_the_terminal_or_begins_a_line_of_its_own() {
    let hostile = plan("x\n - all hosts  nothing\u{1b}[2J\u{7}\u{202e}");
    for text in [
        render_plan_screen(&hostile, &PlanNextSteps::default()),
        render_plan_details(&hostile, &["host/a".to_owned()]).unwrap(),
    ] {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert!(
            !text.lines().any(|line| line.starts_with(" - all hosts")),
            "{text}"
        );
        assert!(text.contains("x\u{fffd} - all hosts"), "{text}");
    }
}
