//! The plan's screen.

use super::*;
use railwright_base::{Address, Digest, SourceLocation};
use railwright_plan::{
    AttributeDifference, AutomaticRollback, DrainPolicy, GateCoverage, Member, NotEmptied,
    PlannedDiff, Reason, RolloutPolicy,
};
use railwright_resource::{DesiredResource, Plane, Reading, Want};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A removal, every text of it as a host's own record may have it.
fn plan(text: &str) -> Plan {
    let address = Address::host("a", "file", text);
    let wish = DesiredResource {
        address: address.clone(),
        after: Vec::new(),
        want: Want {
            kind: "file".to_owned(),
            body: serde_json::Value::Null,
            module: text.to_owned(),
            places: Vec::new(),
        }
        .into(),
    };
    let member = Member {
        wish,
        reason: Reason::Takeover,
        found: Arc::new(PlannedDiff {
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
            guard: None,
        },
        target: Some(address.target),
        disruption: Disruption::Reload,
        interrupts: Arc::new([text.to_owned()]),
        after: vec![text.to_owned()],
        wave: 0,
        held: None,
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
fn of_hosts(names: &[&str], change: impl Fn(&str, &mut PlanNode)) -> Plan {
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
fn what_is_held_for_a_step_of_its_own_host_is_one_entry_for_all_hosts() {
    let plan = of_hosts(&["n1", "n2", "n3"], |name, node| {
        node.held = Some(format!(
            "it needs host/{name}/kernel_parameter/iommu, which is held"
        ));
    });
    let text = render_plan_screen(&plan, &PlanNextSteps::default());
    assert_eq!(
        text.matches("held     it needs kernel_parameter/iommu, which is held")
            .count(),
        1,
        "{text}"
    );
    assert!(text.contains(" - n[1-3]         file x"), "{text}");
}

#[test]
fn a_plan_of_which_nothing_may_be_carried_out_does_not_end_with_an_apply() {
    let held = of_hosts(&["n1"], |_, node| {
        node.held = Some("somebody else's".to_owned())
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
        end(&held, None),
        "next     mend what holds it, then plan again: railwright plan inv x"
    );
    assert_eq!(
        end(&held, Some("a.plan")),
        "next     mend what holds it, then plan again"
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
            members[0].reason = Reason::RemovedFromSpec;
            let found = Arc::make_mut(&mut members[0].found);
            found.residue = vec!["the firmware stays".to_owned()];
            let (wanted, there) = (Reading::Absent, Reading::is("y"));
            let difference = AttributeDifference {
                attribute: "content".to_owned(),
                plane: Plane::Persisted,
                wanted,
                found: there,
                by: None,
            };
            found
                .differences
                .extend(Some(difference).filter(|_| differs));
        })
    };
    let text = render_plan_screen(&removed(false), &PlanNextSteps::default());
    assert!(
        text.contains(
            "because  removed from spec: nothing of it is to be taken back, and it is forgotten"
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
            members[0].reason = Reason::New;
            let body = serde_json::json!({ "name": "rails", "namespace": "rdma" });
            members[0].wish = DesiredResource::of(
                "kube/prod/helm_release/rdma/rails".parse().unwrap(),
                "helm_release",
                body,
            );
            let found = Arc::make_mut(&mut members[0].found);
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
            let of = |attribute: String, wanted: &str| AttributeDifference {
                attribute,
                plane: Plane::Persisted,
                wanted: Reading::is(wanted),
                found: Reading::Absent,
                by: None,
            };
            (found.removal, found.residue) = (false, Vec::new());
            let named = [of("chart".to_owned(), "rails"), of(hook, "made")];
            found.differences = named
                .into_iter()
                .chain(made.map(|name| of(name, "made")))
                .collect();
        })
    };
    let text = render_plan_screen(&release(20), &PlanNextSteps::default());
    assert!(
        text.contains(
            "       chart rails, hook Job.batch rdma/h (pre-install) made\n       makes    20 \
             objects: 19 ConfigMap.core, 1 DaemonSet.apps; railwright show PLAN"
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
        members[0].wish.address = Address::host(host, "link", rail);
        let found = Arc::make_mut(&mut members[0].found);
        (found.removal, found.residue) = (false, Vec::new());
        let of = |attribute: &str, wanted: Reading| AttributeDifference {
            attribute: attribute.to_owned(),
            plane: Plane::Running,
            wanted,
            found: Reading::Absent,
            by: None,
        };
        found.differences = vec![
            of("mtu", Reading::is(9000)),
            of("addresses", Reading::is(format!("{host}.{rail}"))),
        ];
        if rail == "ens2f0np0" {
            found.differences.push(of("up", Reading::is(true)));
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

#[test]
fn a_removal_says_what_it_drops_and_planes_are_explained_where_they_stand() {
    let since = |found: &str| AttributeDifference {
        attribute: "content".to_owned(),
        plane: Plane::Persisted,
        wanted: Reading::is("ours"),
        found: Reading::is(found),
        by: None,
    };
    let plan = of_hosts(&["n1", "n2"], |name, node| {
        let NodeKind::Change { members, .. } = &mut node.kind else {
            return;
        };
        let found = Arc::make_mut(&mut members[0].found);
        found.since = vec![since(&format!("theirs on {name}"))];
        found.differences = vec![AttributeDifference {
            wanted: Reading::Absent,
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

/// A node for each of these hosts and sysctls, and what it differs in: (attribute, plane, found,
/// wanted).
fn sysctls(
    hosts: &[&str],
    names: &[&str],
    reason: &Reason,
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
        let want = Want {
            kind: "sysctl".to_owned(),
            body: serde_json::Value::Null,
            module: format!("m/{name}"),
            places: vec![place],
        };
        members[0].wish = DesiredResource {
            address: Address::host(host, "sysctl", name),
            after: Vec::new(),
            want: want.into(),
        };
        members[0].reason = reason.clone();
        let differences =
            differences
                .iter()
                .map(|(attribute, plane, found, wanted)| AttributeDifference {
                    attribute: (*attribute).to_owned(),
                    plane: *plane,
                    found: found.clone(),
                    wanted: wanted.clone(),
                    by: None,
                });
        let found = PlannedDiff {
            removal: false,
            differences: differences.collect(),
            residue: Vec::new(),
            ..(*members[0].found).clone()
        };
        members[0].found = Arc::new(found);
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
    let alike = [
        ("value", Plane::Persisted, is(1), is(4)),
        ("value", Plane::Running, is(1), is(4)),
    ];
    let names = ["net.a", "net.long.er", "net.b"];
    insta::assert_snapshot!(entries_of(&sysctls(&["n1", "n2"], &names, &Reason::Takeover, &both)), @r"
     ~ n[1-2]         sysctl, 3 of them
           net.a        value absent (persisted), 1 (running) -> 4   x/cluster.yaml:7
           net.long.er  value absent (persisted), 1 (running) -> 4   x/cluster.yaml:7
           net.b        value absent (persisted), 1 (running) -> 4   x/cluster.yaml:7
           because  not ours so far, and other than the spec wants it: module m
    ");
    insta::assert_snapshot!(entries_of(&sysctls(&["n1"], &names, &Reason::New, &alike)), @r"
     + n1             sysctl, 3 of them
           net.a        value 4   x/cluster.yaml:7
           net.long.er  value 4   x/cluster.yaml:7
           net.b        value 4   x/cluster.yaml:7
           because  new: module m
    ");
    insta::assert_snapshot!(entries_of(&sysctls(&["n1"], &names, &Reason::Drifted, &alike)), @r"
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
    let mut both = sysctls(&["n1"], &["x\u{7}"], &Reason::Drifted, &differences);
    both.nodes
        .extend(sysctls(&["n2", "n3"], &["x\u{8}"], &Reason::Drifted, &differences).nodes);
    assert!(
        entries_of(&both).starts_with(" ~ n[1-3] "),
        "{}",
        entries_of(&both)
    );
}

#[test]
fn what_only_some_hosts_are_guarded_against_or_lose_is_told_of_those() {
    let differences = [("value", Plane::Running, Reading::is(1), Reading::is(4))];
    let mut plan = sysctls(&["n1", "n2", "n3"], &["x"], &Reason::Drifted, &differences);
    if let NodeKind::Change { guard, .. } = &mut plan.nodes[1].kind {
        *guard = Some(AutomaticRollback {
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
           guard    reverts by itself after 180 s unless confirmed over a new connection (e1 carries
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
        &Reason::Takeover,
        &differences
    )));
    assert!(!is_list(&sysctls(
        &["n1"],
        &["a", "b"],
        &Reason::Takeover,
        &differences
    )));
    let long = "x".repeat(70);
    let mixed = sysctls(&["n1"], &["a", "b", &long], &Reason::Takeover, &differences);
    assert!(!is_list(&mixed) && entries_of(&mixed).contains(&long));
    let mut other = sysctls(
        &["n1", "n2"],
        &["a", "b", "c"],
        &Reason::Takeover,
        &differences,
    );
    other.nodes.pop();
    assert!(!is_list(&other), "{}", entries_of(&other));
    let disturbs = sysctls(&["n1"], &["a", "b", "c"], &Reason::Takeover, &differences);
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
