//! Which hosts and resources share an entry or a list on the plan's screen, and what keeps them
//! apart.

use super::tests::{of_hosts, plan};
use super::*;
use railwright_base::{Address, SourceLocation};
use railwright_plan::{
    AttributeDifference, AutomaticRollback, BlockedReason, ChangeReason, DrainPolicy, NotEmptied,
    PlannedDiff,
};
use railwright_resource::{DesiredResource, Plane, Reading, ResourceDeclaration};
use std::sync::Arc;

#[test]
fn what_is_blocked_for_a_step_of_its_own_host_is_one_entry_for_all_hosts() {
    let plan = of_hosts(&["n1", "n2", "n3"], |name, node| {
        let cause = format!("host/{name}/kernel_parameter/iommu");
        node.blocked = Some(BlockedReason::NeedsStep(cause));
    });
    let text = render_plan_screen(&plan, &PlanNextSteps::default());
    assert_eq!(
        text.matches("blocked  it needs kernel_parameter/iommu, which is blocked")
            .count(),
        1,
        "{text}"
    );
    assert!(text.contains(" - n[1-3]         file x"), "{text}");
}

#[test]
fn rails_with_the_same_to_say_are_one_entry_and_one_that_differs_stands_apart() {
    let rails = ["ens0f0np0", "ens1f0np0", "ens2f0np0"];
    let mut plan = plan("x");
    let first = plan.nodes.remove(0);
    for (host, rail) in ["n1", "n2"]
        .into_iter()
        .flat_map(|host| rails.map(|rail| (host, rail)))
    {
        let mut node = first.clone();
        (node.target, node.after, node.disruption) =
            (Some(Target::host(host)), Vec::new(), Disruption::LinkBlip);
        node.interrupts = Arc::new([format!("traffic on {rail} stops")]);
        let NodeKind::Change { members, .. } = &mut node.kind else {
            panic!()
        };
        members[0].resource.address = Address::host(host, "link", rail);
        let diff = Arc::make_mut(&mut members[0].diff);
        (diff.removal, diff.residue) = (false, Vec::new());
        let of = |attribute: &str, desired: Reading| AttributeDifference {
            attribute: attribute.to_owned(),
            plane: Plane::Running,
            desired,
            actual: Reading::Absent,
            by: None,
        };
        diff.differences = vec![
            of("mtu", Reading::is(9000)),
            of("addresses", Reading::is(format!("{host}.{rail}"))),
        ];
        if rail == "ens2f0np0" {
            diff.differences.push(of("up", Reading::is(true)));
        }
        plan.nodes.push(node);
    }
    let text = render_plan_screen(&plan, &PlanNextSteps::default());
    let entries: Vec<&str> = text.lines().filter(|line| line.starts_with(" ~")).collect();
    assert_eq!(
        entries,
        [
            " ~ n[1-2]         link ens[0-1]f0np0",
            " ~ n[1-2]         link ens2f0np0"
        ],
        "{text}"
    );
    assert!(
        text.contains("interrupts traffic on ens[0-1]f0np0 stops\n")
            && text.contains("2 between them\n"),
        "{text}"
    );
}

/// A node for each of these hosts and sysctls, and what it differs in: (attribute, plane, actual,
/// desired).
fn sysctls(
    hosts: &[&str],
    names: &[&str],
    reason: &ChangeReason,
    differences: &[(&str, Plane, Reading, Reading)],
) -> Plan {
    let mut plan = plan("x");
    let first = plan.nodes.remove(0);
    for (name, host) in names
        .iter()
        .flat_map(|name| hosts.iter().map(move |host| (name, host)))
    {
        let mut node = first.clone();
        (node.target, node.interrupts) = (Some(Target::host(*host)), Arc::default());
        node.after.clear();
        let NodeKind::Change { members, .. } = &mut node.kind else {
            unreachable!()
        };
        let place = SourceLocation {
            file: "x/cluster.yaml".to_owned(),
            line: 7,
            column: 1,
            path: "fabric".to_owned(),
        };
        let declaration = ResourceDeclaration {
            kind: "sysctl".to_owned(),
            body: serde_json::Value::Null,
            module: format!("m/{name}"),
            places: vec![place],
        };
        members[0].resource = DesiredResource {
            address: Address::host(host, "sysctl", name),
            after: Vec::new(),
            declaration: declaration.into(),
        };
        members[0].reason = reason.clone();
        let differences = differences
            .iter()
            .map(|(attribute, plane, actual, desired)| AttributeDifference {
                attribute: (*attribute).to_owned(),
                plane: *plane,
                actual: actual.clone(),
                desired: desired.clone(),
                by: None,
            });
        let diff = PlannedDiff {
            removal: false,
            differences: differences.collect(),
            residue: Vec::new(),
            ..(*members[0].diff).clone()
        };
        members[0].diff = Arc::new(diff);
        plan.nodes.push(node);
    }
    plan
}

/// The screen's entries, without what stands around them.
fn entries_of(plan: &Plan) -> String {
    let text = render_plan_screen(plan, &PlanNextSteps::default());
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("RELOAD"))
        .skip(1);
    lines
        .take_while(|line| !line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn many_resources_with_little_to_say_are_a_list() {
    let (is, absent) = (|value: i32| Reading::is(value), || Reading::Absent);
    let both = [
        ("value", Plane::Persisted, absent(), is(4)),
        ("value", Plane::Running, is(1), is(4)),
    ];
    let identical = [
        ("value", Plane::Persisted, is(1), is(4)),
        ("value", Plane::Running, is(1), is(4)),
    ];
    let names = ["net.a", "net.long.er", "net.b"];
    insta::assert_snapshot!(entries_of(&sysctls(&["n1", "n2"], &names, &ChangeReason::Takeover, &both)), @r"
     ~ n[1-2]         sysctl, 3 of them
           net.a        value absent (persisted), 1 (running) -> 4   x/cluster.yaml:7
           net.long.er  value absent (persisted), 1 (running) -> 4   x/cluster.yaml:7
           net.b        value absent (persisted), 1 (running) -> 4   x/cluster.yaml:7
           because  not managed yet, and differs from the spec: module m
    ");
    insta::assert_snapshot!(entries_of(&sysctls(&["n1"], &names, &ChangeReason::New, &identical)), @r"
     + n1             sysctl, 3 of them
           net.a        value 4   x/cluster.yaml:7
           net.long.er  value 4   x/cluster.yaml:7
           net.b        value 4   x/cluster.yaml:7
           because  new: module m
    ");
    insta::assert_snapshot!(entries_of(&sysctls(&["n1"], &names, &ChangeReason::Drifted, &identical)), @r"
     ~ n1             sysctl, 3 of them
           net.a        value 1 -> 4 (persisted, running)
           net.long.er  value 1 -> 4 (persisted, running)
           net.b        value 1 -> 4 (persisted, running)
           because  drifted: changed on the target since we applied it
    ");
}

#[test]
fn no_host_is_lost_where_two_resources_look_alike_on_the_screen() {
    let differences = [("value", Plane::Running, Reading::is(1), Reading::is(4))];
    let mut both = sysctls(&["n1"], &["x\u{7}"], &ChangeReason::Drifted, &differences);
    both.nodes.extend(
        sysctls(
            &["n2", "n3"],
            &["x\u{8}"],
            &ChangeReason::Drifted,
            &differences,
        )
        .nodes,
    );
    assert!(
        entries_of(&both).starts_with(" ~ n[1-3] "),
        "{}",
        entries_of(&both)
    );
}

#[test]
fn what_only_some_hosts_roll_back_or_lose_is_told_of_those() {
    let differences = [("value", Plane::Running, Reading::is(1), Reading::is(4))];
    let mut plan = sysctls(
        &["n1", "n2", "n3"],
        &["x"],
        &ChangeReason::Drifted,
        &differences,
    );
    if let NodeKind::Change {
        automatic_rollback, ..
    } = &mut plan.nodes[1].kind
    {
        *automatic_rollback = Some(AutomaticRollback {
            because: "e1 carries our own connection".to_owned(),
            seconds: 180,
        });
    }
    plan.nodes[2].interrupts = Arc::new(["a link".to_owned()]);
    insta::assert_snapshot!(entries_of(&plan), @r"
     ~ n1             sysctl x
           value (running)        1 -> 4
           because  drifted: changed on the target since we applied it
     ~ n2             sysctl x
           value (running)        1 -> 4
           because  drifted: changed on the target since we applied it
           rollback reverts by itself after 180 s unless confirmed over a new connection (e1 carries
                    our own connection)
     ~ n3             sysctl x
           value (running)        1 -> 4
           because  drifted: changed on the target since we applied it
           interrupts a link
    ");
}

#[test]
fn few_resources_or_long_ones_or_those_of_other_hosts_are_no_list() {
    let differences = [("value", Plane::Running, Reading::is(1), Reading::is(4))];
    let is_list = |plan: &Plan| entries_of(plan).contains("of them");
    assert!(is_list(&sysctls(
        &["n1"],
        &["a", "b", "c"],
        &ChangeReason::Takeover,
        &differences
    )));
    assert!(!is_list(&sysctls(
        &["n1"],
        &["a", "b"],
        &ChangeReason::Takeover,
        &differences
    )));
    let long = "x".repeat(70);
    let mixed = sysctls(
        &["n1"],
        &["a", "b", &long],
        &ChangeReason::Takeover,
        &differences,
    );
    assert!(!is_list(&mixed) && entries_of(&mixed).contains(&long));
    let mut other = sysctls(
        &["n1", "n2"],
        &["a", "b", "c"],
        &ChangeReason::Takeover,
        &differences,
    );
    other.nodes.pop();
    assert!(!is_list(&other), "{}", entries_of(&other));
    let disturbs = sysctls(
        &["n1"],
        &["a", "b", "c"],
        &ChangeReason::Takeover,
        &differences,
    );
    let nodes = disturbs
        .nodes
        .iter()
        .cloned()
        .map(|node| PlanNode {
            interrupts: Arc::new(["a link".to_owned()]),
            ..node
        })
        .collect();
    assert!(!is_list(&Plan { nodes, ..disturbs }));
}

#[test]
fn a_host_that_nothing_empties_is_not_under_a_heading_that_says_so() {
    let cluster = Target::kube("prod");
    let policy = |from| {
        let (evict, timeout_s) = (true, 900);
        Some(DrainPolicy {
            from,
            evict,
            timeout_s,
            evict_unmanaged: false,
            delete_local_data: false,
        })
    };
    let mut plan = of_hosts(&["n1", "n2", "n3"], |_, node| {
        (node.disruption, node.interrupts) = (Disruption::Drain, Arc::default())
    });
    let kind = NodeKind::Drain {
        cluster: cluster.clone(),
        node: "n1".to_owned(),
    };
    plan.nodes.push(PlanNode {
        id: "host/n1/drain".to_owned(),
        kind,
        ..plan.nodes[0].clone()
    });
    let absent = |host: &str| NotEmptied {
        host: Target::host(host),
        cluster: cluster.clone(),
        node: format!("cn-{host}"),
    };
    (plan.rollout.drain, plan.not_emptied) = (
        policy(Disruption::LinkBlip),
        ["n2", "n3"].map(absent).into(),
    );
    let text = render_plan_screen(&plan, &PlanNextSteps::default());
    let sections = |text: &str| {
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with("DRAIN"))
            .take_while(|line| !line.starts_with("order"));
        let lines = lines.filter(|line| {
            line.starts_with(|c: char| c.is_ascii_uppercase())
                || [" !", " -"].iter().any(|m| line.starts_with(m))
        });
        lines
            .map(|line| format!("{}\n", line.trim_end_matches('-').trim_end()))
            .collect::<String>()
    };
    insta::assert_snapshot!(sections(&text), @r"
    DRAIN: only on nodes that are empty
     - n1             file x
     ! n1             drain
    DRAIN: what runs on them is disturbed; nothing empties them first
     - n[2-3]         file x
    NOT EMPTIED: disturbed as they are, whatever runs on them
     ! n[2-3]         kube/prod has no node cn-n[2-3]; under another name, kubernetes_node in the spec
    ");
    // A node that only a reboot empties is full when less is done.
    plan.rollout.drain = policy(Disruption::Reboot);
    assert!(
        !render_plan_screen(&plan, &PlanNextSteps::default())
            .contains("only on nodes that are empty")
    );
    (plan.rollout.drain, plan.not_emptied) = (None, Vec::new());
    plan.nodes.pop();
    insta::assert_snapshot!(sections(&render_plan_screen(&plan, &PlanNextSteps::default())), @r"
    DRAIN: what runs on them is disturbed; nothing empties them first
     - n[1-3]         file x
    ");
}
