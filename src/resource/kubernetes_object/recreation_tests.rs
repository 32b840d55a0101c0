//! When a change has an object deleted and recreated, and what that disrupts.

use super::access::ApiVerb;
use super::ownership::add_ownership_marks;
use super::request::REFUSED;
use super::tests::{answers, body, diff, is_of_u1, object, resource};
use super::{KubernetesObject, MANAGER};
use crate::{Action, Disruption, ResourceDiff, ResourceKind};
use serde_json::{Value, json};

#[test]
fn a_field_that_never_changes_takes_leave_to_make_the_object_anew() {
    let (desired, actual) = (json!({ "a": "2" }), json!({ "a": "1" }));
    let says = "Forbidden: field is immutable when `immutable` is set";
    let causes = json!([{ "reason": "FieldValueForbidden", "field": "data", "message": says }]);
    let immutable = (
        REFUSED,
        &json!({ "message": format!("ConfigMap \"devices\" is invalid: data: {says}"), "causes": causes }),
    );
    let held = diff(
        &resource(body(&desired, false)),
        (0, &object(&actual, MANAGER)),
        immutable,
    );
    assert!(
        held.refusal
            .as_ref()
            .unwrap()
            .ends_with("`replace: true` beside the manifest has it deleted and recreated"),
        "{held:?}"
    );
    let mut allowed = body(&desired, false);
    allowed["replace"] = json!(true);
    let anew = diff(
        &resource(allowed.clone()),
        (0, &object(&actual, MANAGER)),
        immutable,
    );
    assert_eq!(
        (anew.refusal.as_ref(), anew.disruption),
        (None, Disruption::Restart)
    );
    let words: Vec<String> = anew.actions.iter().map(Action::word).collect();
    assert_eq!(words, ["delete_object", "apply_object"]);
    assert!(
        matches!(&anew.actions[0], Action::DeleteObject { precondition, .. } if is_of_u1(precondition))
    );
    assert!(
        KubernetesObject
            .changes(&resource(allowed.clone()), false)
            .iter()
            .any(|(_, verb)| *verb == ApiVerb::Delete)
    );
    // What was never ours, or is refused for another reason, is not deleted for it.
    let theirs = diff(
        &resource(allowed.clone()),
        (0, &object(&actual, "kubectl-edit")),
        immutable,
    );
    assert!(
        theirs
            .refusal
            .as_ref()
            .unwrap()
            .ends_with("which is done by hand"),
        "{theirs:?}"
    );
    let other = diff(
        &resource(allowed.clone()),
        (0, &object(&actual, MANAGER)),
        (REFUSED, &json!("data: Too long")),
    );
    assert!(other.refusal.is_some(), "{other:?}");
    let mut mixed = immutable.1.clone();
    mixed["causes"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "reason": "FieldValueInvalid", "field": "data", "message": "Invalid value: 1: no" }));
    let mixed = diff(
        &resource(allowed.clone()),
        (0, &object(&actual, MANAGER)),
        (REFUSED, &mixed),
    );
    assert!(
        mixed.refusal.is_some(),
        "what is refused anew as well is not deleted: {mixed:?}"
    );
    allowed["manifest"] =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } });
    assert_eq!(KubernetesObject.check(&allowed)[0].pointer, "/replace");
}

/// As KubeRay does with the template of a RayCluster.
#[test]
fn a_field_whose_change_changes_nothing_that_runs_takes_a_new_object() {
    let cluster = |image: &str, replicas: u32| {
        let containers = json!([{ "name": "ray-worker", "image": image }]);
        let group = json!({ "groupName": "workers", "replicas": replicas, "template": { "spec": { "containers": containers } } });
        json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "ray", "namespace": "ml" }, "spec": { "workerGroupSpecs": [group] } })
    };
    let body = |adopt: bool| json!({ "cluster": "lab", "adopt": adopt, "replace": ["spec.rayVersion", "spec.workerGroupSpecs.template"], "manifest": cluster("x:2", 3) });
    assert_eq!(KubernetesObject.check(&body(false)), []);
    let live = |image: &str, replicas: u32, adopt: bool| {
        let mut object = add_ownership_marks(cluster(image, replicas), "lab", adopt);
        object["metadata"]["uid"] = json!("u1");
        object["metadata"]["managedFields"] = json!([{ "manager": MANAGER, "operation": "Apply", "fieldsV1": { "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } } }]);
        object
    };
    let of = |body: Value, found: Value, preview: Value| {
        diff(&resource(body), (0, &found), (0, &preview))
    };
    let words = |found: &ResourceDiff| found.actions.iter().map(Action::word).collect::<Vec<_>>();
    let anew = of(body(false), live("x:1", 3, false), live("x:2", 3, false));
    assert_eq!(
        (words(&anew), anew.disruption),
        (
            vec!["delete_object".to_owned(), "apply_object".to_owned()],
            Disruption::Restart
        )
    );
    let says = "RayCluster.ray.io ml/ray is deleted, and its pods with it, and recreated: its \
                controller leaves its pods as they are when this changes";
    assert_eq!(anew.interrupts, [says]);
    assert!(
        anew.attributes
            .contains_key("spec.workerGroupSpecs[0].template.spec.containers[ray-worker].image"),
        "{anew:?}"
    );
    // It scales by itself.
    let scaled = of(body(false), live("x:2", 2, false), live("x:2", 3, false));
    assert_eq!(
        (words(&scaled), scaled.disruption),
        (vec!["apply_object".to_owned()], Disruption::None)
    );
    let fewer = of(body(false), live("x:2", 5, false), live("x:2", 3, false));
    assert_eq!(
        (words(&fewer), fewer.interrupts),
        (
            vec!["apply_object".to_owned()],
            vec!["2 pods of RayCluster.ray.io ml/ray end".to_owned()]
        )
    );
    // Of groups that cannot be told apart nobody knows what changed.
    let mut more = live("x:2", 3, false);
    more["spec"]["workerGroupSpecs"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "groupName": "more" }));
    assert_eq!(
        words(&of(body(false), more, live("x:2", 3, false))),
        ["delete_object", "apply_object"]
    );
    // What was there before us is not deleted.
    let held = of(body(true), live("x:1", 3, true), live("x:2", 3, true));
    assert!(
        held.refusal
            .as_ref()
            .unwrap()
            .ends_with("which is done by hand"),
        "{held:?}"
    );
    let gone = KubernetesObject.undo(
        &resource(body(false)),
        &json!({ "existed": false }),
        &answers(
            &resource(body(false)),
            (0, &live("x:2", 3, false)),
            (0, &json!("")),
        ),
    );
    assert_eq!(
        (gone.disruption, gone.interrupts),
        (
            Disruption::Restart,
            vec!["pods of RayCluster.ray.io ml/ray end".to_owned()]
        )
    );
    for wrong in [
        json!([]),
        json!([""]),
        json!(["spec..a"]),
        json!([1]),
        json!("spec"),
    ] {
        let mut wrongly = body(false);
        wrongly["replace"] = wrong;
        assert_eq!(KubernetesObject.check(&wrongly)[0].pointer, "/replace");
    }
}
