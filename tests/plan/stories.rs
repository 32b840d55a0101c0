//! What a plan says, story by story.

use crate::world::*;
use railwright_base::Target;
use railwright_plan::*;
use railwright_resource::{Action, Disruption, Reading, TargetReadFailure};
use serde_json::json;

#[test]
fn kubernetes_and_switch_resources_pass_like_any_other() {
    let plan = World::new()
        .resource(
            "kube/prod/DaemonSet.apps/kube-system/rdma",
            None,
            json!({"value": "1"}),
            &["switch/leaf1/port/Ethernet1%2F1"],
        )
        .resource(
            "switch/leaf1/port/Ethernet1%2F1",
            None,
            json!({"value": "9216"}),
            &[],
        )
        .resource(
            "host/n1/link/ens1",
            None,
            json!({"value": "9000"}),
            &["switch/leaf1/port/Ethernet1%2F1"],
        )
        .plan();
    assert_eq!(
        ids(&plan),
        [
            "switch/leaf1/port/Ethernet1%2F1",
            "host/n1/link/ens1",
            "gate/0",
            "kube/prod/DaemonSet.apps/kube-system/rdma"
        ]
    );
    let bytes = file::serialize_plan(&plan);
    assert_eq!(file::parse_plan_file("p", &bytes).unwrap(), plan);
}

#[test]
fn every_change_says_why() {
    let plan = World::new()
        .resource("host/n1/a/new", None, json!({"value": "1"}), &[])
        .resource("host/n1/a/takeover", Some("0"), json!({"value": "1"}), &[])
        .resource("host/n1/a/spec", Some("0"), json!({"value": "1"}), &[])
        .applied("host/n1/a/spec", json!({"value": "0"}))
        .resource("host/n1/a/drift", Some("0"), json!({"value": "1"}), &[])
        .applied("host/n1/a/drift", json!({"value": "1"}))
        .resource(
            "host/n1/a/input",
            Some("0"),
            json!({"value": "1", "input": "the chart x"}),
            &[],
        )
        .applied(
            "host/n1/a/input",
            json!({"value": "1", "input": "the chart x"}),
        )
        .resource("host/n1/a/met", Some("1"), json!({"value": "1"}), &[])
        .applied("host/n1/a/gone", json!({"value": "1"}))
        .plan();
    assert_eq!(reason(&plan, "host/n1/a/new"), ChangeReason::New);
    assert_eq!(reason(&plan, "host/n1/a/takeover"), ChangeReason::Takeover);
    assert_eq!(
        reason(&plan, "host/n1/a/spec"),
        ChangeReason::SpecChanged { places: vec![] }
    );
    assert_eq!(reason(&plan, "host/n1/a/drift"), ChangeReason::Drifted);
    assert_eq!(
        reason(&plan, "host/n1/a/input"),
        ChangeReason::InputChanged {
            input: "the chart x".to_owned()
        }
    );
    assert_eq!(
        reason(&plan, "host/n1/a/gone"),
        ChangeReason::RemovedFromSpec
    );
    assert_eq!(plan.unchanged[&Target::host("n1")], 1);
}

#[test]
fn a_removal_says_what_somebody_changed_since() {
    let world = |now: Option<&str>| {
        let mut world = World::new()
            .resource("host/n1/a/x", now, json!({"value": "1"}), &[])
            .applied("host/n1/a/x", json!({"value": "1"}));
        world.resources.clear();
        let plan = world.plan();
        let member = node(&plan, "host/n1/a/x").members()[0].clone();
        assert!(member.removal);
        member
            .since
            .iter()
            .map(|d| (d.attribute.clone(), d.desired.clone(), d.actual.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        world(Some("7")),
        [("value".to_owned(), Reading::is("1"), Reading::is("7"))]
    );
    assert_eq!(world(Some("1")), []);
    assert_eq!(world(None), [], "what is gone already cannot be lost");
}

#[test]
fn what_is_in_sync_is_recorded_once() {
    let world = |last: LastApplied| {
        let world = World::new()
            .resource("host/n1/a/new", None, json!({"value": "1"}), &[])
            .resource(
                "host/n1/a/met",
                Some("1"),
                json!({"value": "1"}),
                &["host/n1/a/new"],
            );
        World {
            last,
            ..world.resource("host/n2/a/met", Some("1"), json!({"value": "1"}), &[])
        }
    };
    let plan = world(LastApplied::default()).plan();
    assert_eq!(
        ids(&plan),
        ["host/n1/a/new", "gate/0", "host/n1/found", "host/n2/found"],
        "a host that changes nothing needs no gate"
    );
    assert_eq!(
        (
            reason(&plan, "host/n2/found"),
            node(&plan, "host/n2/found").is_change()
        ),
        (ChangeReason::InSync, false)
    );
    assert_eq!(plan.unchanged.values().sum::<usize>(), 2);
    let same = World::new()
        .applied("host/n1/a/met", json!({"value": "1"}))
        .applied("host/n2/a/met", json!({"value": "0"}));
    assert_eq!(
        ids(&world(same.last).plan()),
        ["host/n1/a/new", "gate/0", "host/n2/found"],
        "what is remembered otherwise is written anew"
    );
}

#[test]
fn holds_are_let_go_before_the_one_install_and_taken_after_it() {
    let manager = railwright_resource::action::PackageManager::Dnf;
    let install = |name: &str| Action::InstallPackages {
        manager,
        packages: vec![railwright_resource::action::PackageVersion {
            name: name.into(),
            version: Some("2".into()),
        }],
    };
    let hold = |name: &str, hold| Action::HoldPackages {
        manager,
        names: vec![name.into()],
        hold,
    };
    let of = |name: &str| [hold(name, false), install(name), hold(name, true)];
    let joined = join_actions(
        [
            vec![hold("blocked", true)],
            of("a").to_vec(),
            of("b").to_vec(),
        ]
        .concat()
        .iter(),
    );
    let words: Vec<String> = joined.iter().map(Action::word).collect();
    assert_eq!(
        words,
        ["hold_packages", "install_packages", "hold_packages"]
    );
    assert!(
        joined
            .iter()
            .all(|action| serde_json::to_string(action).unwrap().contains("\"b\"")),
        "{joined:?}"
    );
    assert!(matches!(
        &joined[0],
        Action::HoldPackages { hold: false, .. }
    ));
}

#[test]
fn one_reboot_serves_all_that_need_one_and_the_rest_comes_after_it() {
    let reboot = json!({"value": "1", "reboot": true});
    let plan = World::new()
        .resource("host/n1/a/package", None, json!({"value": "1"}), &[])
        .resource(
            "host/n1/a/kernel",
            None,
            reboot.clone(),
            &["host/n1/a/package"],
        )
        .resource("host/n1/a/iommu", None, reboot, &[])
        .resource("host/n1/a/qos", None, json!({"value": "1"}), &[])
        .resource("host/n1/a/mtu", Some("1"), json!({"value": "1"}), &[])
        .plan();
    assert_eq!(
        plan.nodes
            .iter()
            .filter(|n| n.kind == NodeKind::Reboot)
            .count(),
        1
    );
    assert_eq!(
        node(&plan, "host/n1/reboot").after,
        ["host/n1/a/iommu", "host/n1/a/kernel", "host/n1/a/package"]
    );
    assert_eq!(node(&plan, "host/n1/a/qos").after, ["host/n1/reboot"]);
    assert_eq!(
        reason(&plan, "host/n1/a/mtu"),
        ChangeReason::Disturbed {
            by: "host/n1/reboot".into()
        }
    );
    assert!(plan.unchanged.is_empty());
}

#[test]
fn a_reboot_above_the_limit_is_blocked_and_blocks_only_what_needs_it() {
    let mut world = World::new()
        .resource(
            "host/n1/a/kernel",
            None,
            json!({"value": "1", "reboot": true}),
            &[],
        )
        .resource(
            "host/n1/a/driver",
            None,
            json!({"value": "1"}),
            &["host/n1/a/kernel"],
        )
        .resource("host/n1/a/file", None, json!({"value": "1"}), &[]);
    world.rollout.max_disruption = Disruption::LinkBlip;
    let plan = world.plan();
    assert!(
        node(&plan, "host/n1/a/kernel")
            .blocked
            .as_ref()
            .unwrap()
            .to_string()
            .contains("reboot")
    );
    assert!(
        node(&plan, "host/n1/a/driver")
            .blocked
            .as_ref()
            .unwrap()
            .to_string()
            .contains("host/n1/a/kernel")
    );
    assert_eq!(node(&plan, "host/n1/a/file").blocked, None);
    assert_eq!(node(&plan, "gate/0").after, ["host/n1/a/file"]);
}

/// A setting that needs a power cycle, something before it and something after it, on each host.
fn power_cycled(hosts: &[&str]) -> World {
    hosts.iter().fold(World::new(), |world, host| {
        let at = |name: &str| format!("host/{host}/a/{name}");
        world
            .resource(&at("before"), None, json!({"value": "1"}), &[])
            .resource(
                &at("card"),
                None,
                json!({"value": "1", "reboot": true, "power_cycle": true}),
                &[&at("before")],
            )
            .resource(&at("after"), None, json!({"value": "1"}), &[&at("card")])
    })
}

#[test]
fn what_comes_after_a_power_cycle_is_taken_up_in_waves_after_all_others() {
    let plan = power_cycled(&["n1", "n2"]).plan();
    assert!(
        node(&plan, "host/n1/reboot")
            .blocked
            .as_ref()
            .unwrap()
            .to_string()
            .contains("done by hand; `resume`")
    );
    let later = by_hand::release_power_cycles(&plan).unwrap();
    let told = |id: &str| {
        (
            node(&later, id).wave,
            node(&later, id).blocked.is_some(),
            node(&later, id).after.join(" "),
        )
    };
    let is = |wave, after: &str| (wave, false, after.to_owned());
    assert_eq!(
        told("host/n2/a/card"),
        is(1, "host/n2/a/before"),
        "as it was"
    );
    assert_eq!(
        told("host/n1/reboot"),
        is(2, "host/n1/a/before host/n1/a/card")
    );
    assert_eq!(
        (told("host/n1/a/after"), told("gate/2")),
        (
            is(2, "host/n1/a/card host/n1/reboot"),
            is(2, "host/n1/a/after")
        )
    );
    assert_eq!(
        told("host/n2/reboot"),
        is(3, "host/n2/a/before host/n2/a/card"),
        "that it was made is told in any order"
    );
    assert_eq!(
        (told("host/n2/a/after"), told("gate/3")),
        (
            is(3, "host/n2/a/card host/n2/reboot gate/2"),
            is(3, "host/n2/a/after")
        )
    );
    assert_eq!(by_hand::release_power_cycles(&later), None);
}

#[test]
fn what_needs_an_empty_node_is_not_taken_up_after_a_power_cycle() {
    let mut world = power_cycled(&["n1"]).resource(
        "host/n1/a/last",
        None,
        json!({"value": "1", "drain": true}),
        &["host/n1/a/after"],
    );
    world.rollout.drain = Some(DrainPolicy {
        from: Disruption::Drain,
        evict: true,
        timeout_s: 900,
        evict_unmanaged: false,
        delete_local_data: false,
    });
    let later = by_hand::release_power_cycles(&world.plan()).unwrap();
    assert_eq!(node(&later, "host/n1/a/after").blocked, None);
    assert_eq!(
        node(&later, "host/n1/a/last").blocked,
        Some(BlockedReason::NeedsEmptyNode)
    );
    assert_eq!(by_hand::release_power_cycles(&later), None);
}

#[test]
fn what_something_else_holds_too_is_not_taken_up_after_a_power_cycle() {
    let mut world = power_cycled(&["n1"]).resource(
        "host/n1/a/drained",
        None,
        json!({"value": "1", "drain": true}),
        &["host/n1/a/card"],
    );
    world.rollout.max_disruption = Disruption::LinkBlip;
    let later = by_hand::release_power_cycles(&world.plan()).unwrap();
    assert!(
        node(&later, "host/n1/a/after").blocked.is_none()
            && node(&later, "host/n1/a/drained").blocked.is_some()
    );
    let mut world = World::new()
        .resource(
            "host/n1/a/drained",
            None,
            json!({"value": "1", "drain": true}),
            &[],
        )
        .resource(
            "host/n1/a/card",
            None,
            json!({"value": "1", "reboot": true, "power_cycle": true}),
            &["host/n1/a/drained"],
        );
    world.rollout.max_disruption = Disruption::LinkBlip;
    let plan = world.plan();
    assert_eq!(
        node(&plan, "host/n1/reboot").blocked,
        Some(BlockedReason::NeedsStep("host/n1/a/drained".to_owned()))
    );
    assert_eq!(by_hand::release_power_cycles(&plan), None);
}

#[test]
fn a_host_that_needs_a_reboot_is_not_like_one_that_needs_a_power_cycle() {
    let card = |power_cycle| json!({"value": "1", "reboot": true, "power_cycle": power_cycle});
    let plan = World::new()
        .resource("host/n1/a/card", None, card(true), &[])
        .resource("host/n2/a/card", None, card(false), &[])
        .plan();
    let told = ["n1", "n2"].map(|host| node(&plan, &format!("host/{host}/reboot")).disruption);
    assert_eq!(told, [Disruption::PowerCycle, Disruption::Reboot]);
}

#[test]
fn a_transaction_is_split_where_something_must_happen_between_its_members() {
    let packages = json!({"value": "1", "transaction": "packages"});
    let plan = World::new()
        .resource("host/n1/package/a", None, packages.clone(), &[])
        .resource(
            "host/n1/file/key",
            None,
            json!({"value": "1"}),
            &["host/n1/package/a"],
        )
        .resource(
            "host/n1/package/b",
            None,
            packages.clone(),
            &["host/n1/file/key"],
        )
        .resource("host/n1/package/c", None, packages, &[])
        .plan();
    let members = |id: &str| {
        node(&plan, id)
            .members()
            .iter()
            .map(|m| m.resource.address.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(members("host/n1/transaction/packages"), ["a", "c"]);
    assert_eq!(members("host/n1/transaction/packages-2"), ["b"]);
}

#[test]
fn transactions_that_interleave_stay_single() {
    let of = |word: &str| json!({"value": "1", "transaction": word});
    let plan = World::new()
        .resource("host/n1/a/a1", None, of("t1"), &[])
        .resource("host/n1/a/a2", None, of("t1"), &["host/n1/a/b2"])
        .resource("host/n1/a/b1", None, of("t2"), &["host/n1/a/a1"])
        .resource("host/n1/a/b2", None, of("t2"), &[])
        .plan();
    assert_eq!(
        plan.nodes
            .iter()
            .filter(|n| !n.members().is_empty())
            .count(),
        4
    );
}

#[test]
fn what_a_change_resets_is_looked_at_again_after_it() {
    let plan = World::new()
        .resource(
            "host/n1/driver/mlx5",
            None,
            json!({"value": "1", "disturbs": "link/*"}),
            &[],
        )
        .resource(
            "host/n1/link/ens1",
            Some("9000"),
            json!({"value": "9000"}),
            &[],
        )
        .plan();
    assert_eq!(
        node(&plan, "host/n1/link/ens1").after,
        ["host/n1/driver/mlx5"]
    );
    assert!(
        matches!(&node(&plan, "host/n1/link/ens1").kind, NodeKind::Change { announced, .. } if **announced == ["*"])
    );
}

#[test]
fn hosts_follow_in_waves_with_a_gate_between() {
    let mut world = World::new();
    for host in ["n1", "n2", "n3", "n4", "n5"] {
        world = world.resource(
            &format!("host/{host}/a/x"),
            None,
            json!({"value": "1"}),
            &[],
        );
    }
    world.rollout.max_unavailable = 3;
    let plan = world.plan();
    let waves: Vec<usize> = ["n1", "n2", "n3", "n4", "n5"]
        .iter()
        .map(|h| node(&plan, &format!("host/{h}/a/x")).wave)
        .collect();
    assert_eq!(waves, [0, 1, 1, 1, 2]);
    assert_eq!(node(&plan, "host/n3/a/x").after, ["gate/0"]);
    assert_eq!(node(&plan, "gate/1").after.len(), 3);
}

#[test]
fn a_target_that_cannot_be_read_is_unknown_and_no_more() {
    let mut world = World::new()
        .resource("host/n1/a/x", None, json!({"value": "1"}), &[])
        .resource("host/n2/a/x", None, json!({"value": "1"}), &[]);
    world
        .observation
        .targets
        .get_mut(&Target::host("n2"))
        .unwrap()
        .problem = Some(no_route());
    let plan = world.plan();
    assert_eq!(ids(&plan), ["host/n1/a/x", "gate/0"]);
    assert_eq!(
        plan.unknown,
        [UnknownFinding::target(&Target::host("n2"), &no_route())]
    );
}

#[test]
fn a_target_that_cannot_be_read_can_be_left_out() {
    let mut world = World::new()
        .resource("host/n1/a/x", None, json!({"value": "1"}), &[])
        .resource("host/n2/a/x", None, json!({"value": "1"}), &[]);
    world
        .observation
        .targets
        .get_mut(&Target::host("n2"))
        .unwrap()
        .problem = Some(no_route());
    for (targets, excludes, unknown) in [
        (vec![], vec!["host/n2"], 0),
        (vec!["host/n1"], vec![], 0),
        (vec!["host/n1/a/x"], vec![], 0),
        (vec!["host/n2", "host/n1"], vec![], 1),
    ] {
        let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        world.selection = PlanSelection {
            targets: texts(targets),
            excludes: texts(excludes),
        };
        assert_eq!(
            (ids(&world.plan()), world.plan().unknown.len()),
            (vec!["host/n1/a/x", "gate/0"], unknown),
            "{:?}",
            world.selection
        );
    }
    world.selection = PlanSelection {
        targets: vec!["host/n2/a/x".to_owned()],
        excludes: vec![],
    };
    assert!(
        world.try_plan().unwrap_err()[0]
            .message
            .contains("could not be read")
    );
}

fn no_route() -> TargetReadFailure {
    TargetReadFailure {
        code: "RW0401".into(),
        message: "n2 is not reachable: no route".into(),
        shared_message: "no route".into(),
        next: vec![],
    }
}

#[test]
fn a_field_that_left_the_spec_is_named_until_it_is_forgotten() {
    let resource = json!({"value": "1", "map": {"kept": 1}});
    let world = World::new().resource("host/n1/a/x", Some("1"), resource.clone(), &[]);
    let world = world.applied(
        "host/n1/a/x",
        json!({"value": "1", "extra": 9000, "map": {"kept": 2, "gone": 8}}),
    );
    let plan = world.plan();
    assert_eq!(
        plan.dropped,
        [("extra", "9000"), ("map.gone", "8")].map(|(field, value)| DroppedField {
            field: format!("host/n1/a/x#{field}").parse().unwrap(),
            value: value.into()
        })
    );
    assert_eq!(
        ids(&plan),
        ["host/n1/found"],
        "and the record is brought up to date"
    );
    let screen = railwright_report::plan::render_plan_screen(&plan, &Default::default());
    assert!(
        screen.contains("LEFT AS APPLIED")
            && screen.contains(" . n1             a x: extra   9000\n"),
        "{screen}"
    );
    let mut world = world.applied("host/n1/a/x", resource);
    assert_eq!(
        (world.plan().dropped, ids(&world.plan()).len()),
        (vec![], 0)
    );
    // A change that was cut off may have made them.
    for applied in world.last.resources.values_mut() {
        applied.begun = vec![json!({"value": "1", "extra": 9000, "map": {"gone": 8}})];
    }
    let begun = world.plan();
    assert_eq!(
        (begun.dropped, ids(&world.plan())),
        (plan.dropped, vec!["host/n1/found"])
    );
}

#[test]
fn an_edited_plan_file_is_refused() {
    let plan = World::new()
        .resource("host/n1/a/x", None, json!({"value": "1"}), &[])
        .plan();
    let text = String::from_utf8(file::serialize_plan(&plan)).unwrap();
    let code = |text: &str| {
        file::parse_plan_file("p", text.as_bytes())
            .unwrap_err()
            .code
    };
    assert_eq!(
        code(&text.replace("\"limit_s\": 1", "\"limit_s\": 2")),
        "RW0304"
    );
    assert_eq!(
        code(&text.replace("\"format_version\": \"6.0\"", "\"format_version\": \"1.0\"")),
        "RW0303"
    );
    assert_eq!(code("{"), "RW0302");
    assert_eq!(code("[]"), "RW0303");
    let mut nothing = plan.clone();
    for node in &mut nothing.nodes {
        if let NodeKind::Change { members, .. } = &mut node.kind {
            members.clear();
        }
    }
    nothing.digest = content::compute_plan_digest(&nothing).to_string();
    let problem = file::parse_plan_file("p", &file::serialize_plan(&nothing)).unwrap_err();
    assert!(
        problem.code == "RW0302" && problem.message.contains("has no members"),
        "{problem:?}"
    );
}

#[test]
fn a_plan_file_whose_hosts_out_of_service_no_plan_would_name_is_refused() {
    let plan = World::new()
        .resource("host/n1/a/x", None, json!({"value": "1"}), &[])
        .plan();
    let read = |sets: &[&str]| {
        let unavailable = |set: &&str| Unavailable {
            hosts: (*set).to_owned(),
            why: Unavailability::NotReady,
        };
        let mut plan = Plan {
            unavailable: sets.iter().map(unavailable).collect(),
            ..plan.clone()
        };
        plan.digest = content::compute_plan_digest(&plan).to_string();
        file::parse_plan_file("p", &file::serialize_plan(&plan))
    };
    assert!(read(&["n[1-60000]", "m[1-40000]"]).is_ok());
    for (sets, why) in [
        (
            &["n[1-3]", "n3"][..],
            "the host `n3` is out of service twice",
        ),
        (
            &["n[1-60000]", "m[1-40001]"][..],
            "it has more than 100000 hosts out of service",
        ),
        (
            &["n[1-3"][..],
            "its hosts out of service, `n[1-3`: `[` without `]`",
        ),
    ] {
        let problem = read(sets).unwrap_err();
        assert!(
            problem.code == "RW0302" && problem.message.contains(why),
            "{problem:?}"
        );
    }
}

#[test]
fn a_selection_that_matches_nothing_is_an_error() {
    let mut world = World::new().resource("host/n1/a/x", None, json!({"value": "1"}), &[]);
    world.selection.targets = vec!["host/n11".into()];
    assert_eq!(world.try_plan().unwrap_err()[0].code, "RW0301");
    world.selection.targets = vec!["host/n1/a/xx".into()];
    assert_eq!(
        world.try_plan().unwrap_err()[0].next[0],
        "did you mean 'host/n1/a/x'?"
    );
}

#[test]
fn a_ring_of_resources_is_named() {
    let world = World::new()
        .resource("host/n1/a/x", None, json!({"value": "1"}), &["host/n1/a/y"])
        .resource("host/n1/a/y", None, json!({"value": "1"}), &["host/n1/a/x"]);
    let problem = &world.try_plan().unwrap_err()[0];
    assert!(
        problem
            .message
            .contains("host/n1/a/x (m/r) before host/n1/a/y"),
        "{}",
        problem.message
    );
}

/// What hosts keep of themselves is theirs to forge, and refuses no plan of the others.
#[test]
fn a_ring_of_what_is_remembered_refuses_nothing() {
    let made = ["host/n1/a/x", "host/n1/a/y", "host/n2/a/z"];
    let mut world = World::new().resource("host/n2/a/w", None, json!({"value": "1"}), &[]);
    for address in made {
        let body = json!({"value": "1"});
        world = world
            .resource(address, Some("1"), body.clone(), &[])
            .applied(address, body);
        world.resources.pop();
    }
    // A ring of its own, one through another host, and one through the gate between the waves.
    let rings = [
        vec![(0, 1), (1, 0), (0, 0)],
        vec![(0, 2), (2, 0)],
        vec![(0, 2)],
        vec![(2, 0)],
    ];
    for ring in rings {
        let mut world = world.clone();
        for (n, before) in &ring {
            let applied = world.last.resources.get_mut(&made[*n].parse().unwrap());
            applied.unwrap().after.push(made[*before].parse().unwrap());
        }
        let plan = world.plan();
        for address in made.iter().chain(&["host/n2/a/w"]) {
            node(&plan, address);
        }
    }
    // As far as it is no ring, what came first goes last.
    let applied = world.last.resources.get_mut(&made[1].parse().unwrap());
    applied.unwrap().after.push(made[0].parse().unwrap());
    assert_eq!(node(&world.plan(), made[0]).after, [made[1]]);
}
