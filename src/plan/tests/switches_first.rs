//! On which side of the hosts a switch goes.

use super::world::*;
use crate::resource::Disruption;
use serde_json::json;

#[test]
fn switches_go_first_one_at_a_time_and_what_is_taken_back_from_one_goes_last() {
    let body = || json!({ "value": "1" });
    let world = || {
        World::new()
            .wish("host/n1/a/file", None, body(), &[])
            .wish("switch/leaf1/a/kept", Some("1"), body(), &[])
            .applied("switch/leaf1/a/gone", body())
            .wish("switch/leaf2/a/class", None, body(), &[])
            .wish("switch/leaf3/a/class", None, body(), &[])
    };
    let plan = world().plan();
    let steps: Vec<&str> = ids(&plan).into_iter().filter(|id| !id.ends_with("/found")).collect();
    assert_eq!(steps, ["switch/leaf2/a/class", "switch/leaf3/a/class", "host/n1/a/file", "gate/0", "switch/leaf1/a/gone"]);
    assert_eq!(node(&plan, "switch/leaf3/a/class").after, ["switch/leaf2/a/class"]);
    assert_eq!(node(&plan, "host/n1/a/file").after, ["switch/leaf2/a/class", "switch/leaf3/a/class"]);
    assert_eq!(node(&plan, "switch/leaf1/a/gone").after, ["gate/0"]);
    // Where one of them is held, nothing is done to the hosts behind it.
    let mut held = world();
    held.rollout.max_disruption = Disruption::None;
    let plan = held.wish("switch/leaf4/a/class", None, json!({ "value": "1", "drain": true }), &[]).plan();
    assert!(node(&plan, "host/n1/a/file").held.as_ref().is_some_and(|why| why.contains("switch/leaf4/a/class")), "{:?}", ids(&plan));
}
