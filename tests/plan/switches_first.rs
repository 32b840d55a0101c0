//! On which side of the hosts a switch goes, and which hosts a switch holds that cannot be made
//! right.

use crate::world::*;
use railwright_base::Target;
use railwright_resource::{Disruption, TargetReadFailure};
use serde_json::{Value, json};

fn body() -> Value {
    json!({ "value": "1" })
}

/// Two hosts behind three leaves, which differ in what there is to do.
fn world() -> World {
    World::new()
        .resource("host/n1/a/file", None, body(), &[])
        .resource("switch/leaf1/a/kept", Some("1"), body(), &[])
        .applied("switch/leaf1/a/gone", body())
        .resource("switch/leaf2/a/class", None, body(), &[])
        .resource("switch/leaf3/a/class", None, body(), &[])
}

/// Why the steps of this host are blocked.
fn blocked(world: World, host: &str) -> Option<String> {
    let plan = world.plan();
    let blocked = &node(&plan, &format!("host/{host}/a/file")).blocked;
    blocked.as_ref().map(ToString::to_string)
}

#[test]
fn switches_go_first_one_at_a_time_and_what_is_taken_back_from_one_goes_last() {
    let plan = world().plan();
    let steps: Vec<&str> = ids(&plan)
        .into_iter()
        .filter(|id| !id.ends_with("/found"))
        .collect();
    assert_eq!(
        steps,
        [
            "switch/leaf2/a/class",
            "switch/leaf3/a/class",
            "host/n1/a/file",
            "gate/0",
            "switch/leaf1/a/gone"
        ]
    );
    assert_eq!(
        node(&plan, "switch/leaf3/a/class").after,
        ["switch/leaf2/a/class"]
    );
    assert_eq!(
        node(&plan, "host/n1/a/file").after,
        ["switch/leaf2/a/class", "switch/leaf3/a/class"]
    );
    assert_eq!(node(&plan, "switch/leaf1/a/gone").after, ["gate/0"]);
}

#[test]
fn a_switch_that_is_blocked_blocks_the_hosts_behind_it_and_all_where_nobody_knows_which_they_are() {
    let mut one = world().resource("host/n2/a/file", None, body(), &[]);
    one.rollout.max_disruption = Disruption::None;
    let one = one.resource(
        "switch/leaf4/a/class",
        None,
        json!({ "value": "1", "drain": true }),
        &[],
    );
    for host in ["n1", "n2"] {
        assert!(
            blocked(one.clone(), host).is_some_and(|why| why.contains("switch/leaf4/a/class")),
            "{host}"
        );
    }
    let mut cabled = one;
    cabled.rollout.behind = [("leaf4".to_owned(), "n2".to_owned())].into();
    assert_eq!(blocked(cabled.clone(), "n1"), None);
    assert!(blocked(cabled, "n2").is_some_and(|why| why.contains("switch/leaf4/a/class")));
}

#[test]
fn a_switch_that_could_not_be_read_holds_the_hosts_behind_it_unless_it_is_left_out() {
    let mut lost = world();
    let leaf2 = "switch/leaf2".parse::<Target>().unwrap();
    lost.observation.targets.get_mut(&leaf2).unwrap().problem = Some(TargetReadFailure {
        code: "RW0501".into(),
        message: "leaf2 cannot be reached".into(),
        shared_message: "cannot be reached".into(),
        next: Vec::new(),
    });
    assert!(blocked(lost.clone(), "n1").is_some_and(
        |why| why.contains("behind switch/leaf2") && why.contains("--exclude switch/leaf2")
    ));
    let mut elsewhere = lost.clone();
    elsewhere.rollout.behind = [("leaf2".to_owned(), "n7".to_owned())].into();
    assert_eq!(blocked(elsewhere, "n1"), None);
    let mut without = lost.clone();
    without.selection.excludes = vec!["switch/leaf2".to_owned()];
    assert_eq!(blocked(without, "n1"), None);
    // It has no resources: nobody waits for it.
    lost.resources
        .retain(|resource| resource.address.target != leaf2);
    assert_eq!(blocked(lost, "n1"), None);
}

#[test]
fn what_is_taken_back_from_a_switch_waits_for_a_host_behind_it_that_is_blocked() {
    let kept = ["host/n1", "host/n2", "switch/leaf1", "switch/leaf2"];
    let there = kept.iter().fold(World::new(), |world, target| {
        world.resource(&format!("{target}/a/kept"), Some("1"), body(), &[])
    });
    let mut one = there
        .applied("host/n1/a/gone", json!({ "value": "1", "drain": true }))
        .applied("host/n2/a/gone", body())
        .applied("switch/leaf1/a/gone", body())
        .applied("switch/leaf2/a/gone", body());
    let blocked = |world: &World, leaf: &str| {
        let plan = world.plan();
        let blocked = &node(&plan, &format!("switch/{leaf}/a/gone")).blocked;
        blocked.as_ref().map(ToString::to_string)
    };
    assert_eq!(
        (blocked(&one, "leaf1"), blocked(&one, "leaf2")),
        (None, None)
    );
    one.rollout.max_disruption = Disruption::None;
    for leaf in ["leaf1", "leaf2"] {
        assert!(
            blocked(&one, leaf).is_some_and(|why| why.contains("host/n1/a/gone")),
            "{:?}",
            blocked(&one, leaf)
        );
    }
    one.rollout.behind = [
        ("leaf1".to_owned(), "n1".to_owned()),
        ("leaf2".to_owned(), "n2".to_owned()),
    ]
    .into();
    assert!(blocked(&one, "leaf1").is_some());
    assert_eq!(blocked(&one, "leaf2"), None);
}
