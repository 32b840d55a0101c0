//! Diffs of objects by an API server's answers.

use super::request::{ABSENT, NO_KIND, NOT_SAID, REFUSED};
use super::*;
use crate::{AnswerStatus, Disruption, ReadResult};
use railwright_base::{Address, Target};
use serde_json::json;

pub(super) fn body(data: &Value, adopt: bool) -> Value {
    let mut body = json!({ "cluster": "lab", "manifest": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "devices", "namespace": "kube-system" }, "data": data } });
    if adopt {
        body["adopt"] = json!(true);
    }
    body
}

pub(super) fn resource(body: Value) -> DesiredResource {
    let path = KubernetesObject.address_path(&body).unwrap();
    let address = Address {
        target: Target::kube("prod"),
        path: path.into(),
        attribute: None,
    };
    DesiredResource::of(address, "kubernetes_object", body)
}

/// The object as a server tells it, its data set by this manager.
pub(super) fn object(data: &Value, manager: &str) -> Value {
    let fields: serde_json::Map<String, Value> = data
        .as_object()
        .unwrap()
        .keys()
        .map(|key| (format!("f:{key}"), json!({})))
        .collect();
    let ours = manager == MANAGER;
    let entry = |manager: &str, operation: &str, fields: Value| json!({ "manager": manager, "operation": operation, "time": "2026-01-02T03:04:05Z", "fieldsV1": fields });
    let label = json!({ "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } });
    let mut managers = vec![entry(
        manager,
        if ours { "Apply" } else { "Update" },
        json!({ "f:data": fields }),
    )];
    managers.extend(ours.then(|| entry(MANAGER, "Apply", label)));
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
        "name": "devices", "namespace": "kube-system", "uid": "u1", "resourceVersion": "7", "managedFields": managers } });
    if ours {
        add_ownership_marks(object, "lab", false)
    } else {
        object
    }
}

pub(super) fn is_of_u1(precondition: &ObjectPrecondition) -> bool {
    matches!(precondition, ObjectPrecondition::Present { uid, .. } if uid == "u1")
}

/// The answers to the two reads of a resource: exit status and text.
pub(super) fn answers(
    resource: &DesiredResource,
    live: (i32, &Value),
    preview: (i32, &Value),
) -> ReadResults {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut answers = ReadResults::default();
    for (read, (code, value)) in KubernetesObject
        .reads(resource)
        .into_iter()
        .zip([live, preview])
    {
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(code),
                out: text(value),
            },
        );
    }
    answers
}

pub(super) fn diff(
    resource: &DesiredResource,
    live: (i32, &Value),
    preview: (i32, &Value),
) -> ResourceDiff {
    KubernetesObject.diff(resource, &answers(resource, live, preview))
}

#[test]
fn the_address_has_kind_group_namespace_and_name() {
    assert_eq!(
        resource(body(&json!({}), false)).address.to_string(),
        "kube/prod/ConfigMap.core/kube-system/devices"
    );
    let whole = json!({ "manifest": { "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "a" } } });
    assert_eq!(
        resource(whole).address.to_string(),
        "kube/prod/DaemonSet.apps/-/a"
    );
}

#[test]
fn an_object_that_is_not_there_is_made_unless_the_server_refuses_it() {
    let resource = resource(body(&json!({ "a": "1" }), false));
    let made = object(&json!({ "a": "1" }), MANAGER);
    let new = diff(&resource, (ABSENT, &json!("")), (0, &made));
    assert!(new.is_absent() && !new.is_met() && new.actions.len() == 1 && new.refusal.is_none());
    assert_eq!(new.before, json!({ "existed": false }));
    assert!(KubernetesObject.can_read_before(&new.before));
    let before_its_kind = diff(
        &resource,
        (NO_KIND, &json!("")),
        (NO_KIND, &json!("no such kind")),
    );
    assert_eq!(before_its_kind.actions.len(), 1);
    assert_eq!(before_its_kind.lacks.unwrap().what, "kind ConfigMap.core");
    let before_its_namespace = diff(
        &resource,
        (ABSENT, &json!("")),
        (NO_KIND, &json!("namespaces \"kube-system\" not found")),
    );
    assert_eq!(
        before_its_namespace.lacks.unwrap().what,
        "namespace kube-system"
    );
    let silent = diff(
        &resource,
        (ABSENT, &json!("")),
        (
            NOT_SAID,
            &json!("failed calling webhook \"a.b\": connection refused"),
        ),
    );
    assert!(
        silent.actions.is_empty() && silent.refusal.unwrap().contains("failed calling webhook")
    );
    let never_previewed = diff(
        &resource,
        (ABSENT, &json!("")),
        (
            NOT_SAID,
            &json!("admission webhook \"a\" does not support dry run"),
        ),
    );
    assert!(
        never_previewed.actions.len() == 1
            && never_previewed.attributes[OBJECT]
                .by
                .as_ref()
                .unwrap()
                .words()
                .starts_with("not previewed: ")
    );
    let refused = diff(
        &resource,
        (ABSENT, &json!("")),
        (REFUSED, &json!("data: Too long")),
    );
    assert!(refused.actions.is_empty() && refused.refusal.unwrap().contains("Too long"));
    let blind = diff(
        &resource,
        (NOT_SAID, &json!("etcd is away")),
        (NOT_SAID, &json!("etcd is away")),
    );
    assert!(blind.has_unknown() && blind.actions.is_empty());
}

#[test]
fn what_others_set_on_ours_is_drift_and_on_theirs_a_conflict() {
    let (desired, other) = (json!({ "a": "1" }), json!({ "a": "2" }));
    let resource = resource(body(&desired, false));
    let met = diff(
        &resource,
        (0, &object(&desired, MANAGER)),
        (0, &object(&desired, MANAGER)),
    );
    assert!(met.is_met() && met.actions.is_empty(), "{met:?}");

    let mut drifted = object(&desired, MANAGER);
    drifted["data"] = other.clone();
    let edited = object(&other, "kubectl-edit")["metadata"]["managedFields"][0].clone();
    let mine = drifted["metadata"]["managedFields"].as_array_mut().unwrap();
    mine[0]["fieldsV1"] = json!({ "f:data": { "f:b": {} } });
    mine.push(edited);
    let drift = diff(&resource, (0, &drifted), (0, &object(&desired, MANAGER)));
    let field = &drift.attributes["data.a"];
    assert_eq!(
        field.rival(),
        Some("set by kubectl-edit at 2026-01-02T03:04:05Z")
    );
    assert_eq!((drift.actions.len(), &drift.refusal), (1, &None));
    for (ours, is_later) in [("04", false), ("05", true)] {
        let time = format!("2026-01-02T03:04:{ours}Z");
        let entries = drifted["metadata"]["managedFields"].as_array_mut().unwrap();
        for entry in entries.iter_mut().filter(|e| e["manager"] == MANAGER) {
            entry["time"] = json!(time);
        }
        let drift = diff(&resource, (0, &drifted), (0, &object(&desired, MANAGER)));
        let field = &drift.attributes["data.a"];
        assert!(field.is_set_since(None));
        assert_eq!(field.is_set_since(field.rival()), is_later, "{time}");
    }

    let theirs = (0, &object(&other, "kubectl-edit"));
    let conflict = diff(&resource, theirs, (0, &object(&desired, MANAGER)));
    assert!(
        conflict
            .refusal
            .as_ref()
            .unwrap()
            .contains("data.a (kubectl-edit)"),
        "{conflict:?}"
    );
    let adopting = self::resource(body(&desired, true));
    assert_eq!(
        diff(&adopting, theirs, (0, &object(&desired, MANAGER))).refusal,
        None
    );
    let same = diff(
        &resource,
        (0, &object(&desired, "kubectl-edit")),
        (0, &object(&desired, MANAGER)),
    );
    assert!(same.is_met(), "what is in sync needs nobody's leave");
    let mut labelled = body(&desired, false);
    labelled["manifest"]["metadata"]["labels"] = json!({ "team": "rdma" });
    let mut previewed = add_ownership_marks(object(&desired, "kubectl-edit"), "lab", false);
    previewed["metadata"]["labels"]["team"] = json!("rdma");
    let labels = diff(
        &self::resource(labelled),
        (0, &object(&desired, "kubectl-edit")),
        (0, &previewed),
    );
    assert!(
        labels.refusal.is_some() && !labels.is_met(),
        "declared labels count: {labels:?}"
    );
}

#[test]
fn what_an_earlier_resource_left_is_known_without_a_preview_of_it() {
    let (earlier, now) = (
        resource(body(&json!({ "a": "1", "b": "2", "c": "3" }), false)),
        resource(body(&json!({ "a": "9" }), false)),
    );
    let mut live = object(&json!({ "a": "1", "b": "2", "c": "5" }), MANAGER);
    let theirs =
        object(&json!({ "c": "5" }), "kubectl-edit")["metadata"]["managedFields"][0].clone();
    let managers = live["metadata"]["managedFields"].as_array_mut().unwrap();
    managers[0]["fieldsV1"] = json!({ "f:data": { "f:a": {}, "f:b": {} } });
    managers.push(theirs);
    let answers = answers(
        &now,
        (0, &live),
        (0, &object(&json!({ "a": "9", "c": "5" }), MANAGER)),
    );
    let left = |name: &str| {
        KubernetesObject.left(&earlier, &answers).attributes[name]
            .desired
            .persisted
            .clone()
            .unwrap()
    };
    assert_eq!(
        (left("data.a"), left("data.b"), left("data.c")),
        (Reading::is("1"), Reading::is("2"), Reading::is("3"))
    );
    let of_now = |diff: ResourceDiff| diff.attributes["data.a"].desired.persisted.clone();
    assert_eq!(
        of_now(KubernetesObject.left(&now, &answers)),
        of_now(KubernetesObject.diff(&now, &answers)),
        "what was asked for is checked"
    );
    let mut both = answers.clone();
    both.insert(
        KubernetesObject.reads(&earlier)[1].key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: live.to_string(),
        },
    );
    let met = KubernetesObject.left(&earlier, &both).attributes["data.a"]
        .desired
        .persisted
        .clone();
    assert_eq!(
        met,
        Some(Reading::is("1")),
        "also where nothing of it differs"
    );
    let template = |cpu: &str| json!({ "containers": [{ "name": "x", "cpu": "1" }, { "name": "agent", "cpu": cpu, "args": ["-v"] }] });
    let every = paths::collect_all_fields(
        &json!({ "spec": template("1000m"), "data": { "a": "{\"l\":[{\"name\":\"r\",\"max\":1}]}" } }),
        &json!({ "spec": template("1") }),
    );
    let actual = |shown: &str| {
        every
            .iter()
            .find(|field| field.shown == shown)
            .map(|field| field.actual.clone())
    };
    assert_eq!(actual("spec.containers[agent].cpu"), Some(Some(json!("1"))));
    assert_eq!(actual("data.a: l[r].max"), Some(None));
}

#[test]
fn no_preview_is_never_no_drift() {
    let (desired, other) = (json!({ "a": "1" }), json!({ "a": "1", "b": "2" }));
    let resource = resource(body(&desired, false));
    let unknown = diff(
        &resource,
        (0, &object(&desired, MANAGER)),
        (NOT_SAID, &json!("the webhook does not support dry run")),
    );
    assert!(unknown.has_unknown() && !unknown.is_met() && unknown.actions.is_empty());
    let mut answers = answers(&resource, (0, &object(&other, MANAGER)), (0, &json!({})));
    let denied = ReadResult {
        status: AnswerStatus::Denied,
        out: "may not patch".to_owned(),
    };
    answers.insert(KubernetesObject.reads(&resource)[1].key(), denied);
    assert!(
        KubernetesObject.diff(&resource, &answers).is_met(),
        "the fields of the manifest are compared"
    );
    let changed = self::resource(body(&json!({ "a": "3" }), false));
    let mut answers = self::answers(&changed, (0, &object(&other, MANAGER)), (0, &json!({})));
    answers.insert(
        KubernetesObject.reads(&changed)[1].key(),
        ReadResult {
            status: AnswerStatus::Denied,
            out: String::new(),
        },
    );
    let seen = KubernetesObject.diff(&changed, &answers);
    assert!(
        seen.attributes["data.a"]
            .by
            .as_ref()
            .unwrap()
            .words()
            .ends_with("not previewed"),
        "{seen:?}"
    );
}

#[test]
fn only_what_we_made_is_removed() {
    let resource = resource(body(&json!({ "a": "1" }), false));
    let undo = |before: Value, live: (i32, &Value)| {
        KubernetesObject.undo(
            &resource,
            &before,
            &answers(&resource, live, (ABSENT, &json!(""))),
        )
    };
    let ours = object(&json!({ "a": "1" }), MANAGER);
    let removed = undo(json!({ "existed": false }), (0, &ours));
    assert!(
        matches!(&removed.actions[..], [Action::DeleteObject { precondition, anew: false, .. }, Action::Await { .. }] if is_of_u1(precondition)),
        "{removed:?}"
    );
    let mut going = ours.clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
    going["metadata"]["finalizers"] = json!(["example.org/never"]);
    let waited = undo(json!({ "existed": false }), (0, &going));
    assert!(
        waited.only_waits() && matches!(&waited.actions[..], [Action::Await { .. }]),
        "{waited:?}"
    );
    assert!(
        format!("{:?}", waited.attributes[OBJECT].actual)
            .contains("held by its finalizer example.org/never"),
        "{waited:?}"
    );
    assert!(matches!(
        &undo(json!({ "existed": true }), (0, &ours)).actions[..],
        [Action::UnmarkObject { .. }]
    ));
    assert!(
        undo(json!({ "existed": true }), (0, &ours)).residue[0].contains("it was there before us")
    );
    let again = object(&json!({ "a": "1" }), "kubectl-create");
    assert!(undo(json!({ "existed": false }), (0, &again)).residue[0].contains("or recreated"));
    assert!(undo(json!({ "existed": false }), (ABSENT, &json!(""))).is_met());
    let adopted = self::resource(body(&json!({ "a": "1" }), true));
    let kept = KubernetesObject.undo(
        &adopted,
        &json!({ "existed": false }),
        &answers(&adopted, (0, &ours), (ABSENT, &json!(""))),
    );
    assert!(
        kept.stays
            && matches!(&kept.actions[..], [Action::UnmarkObject { precondition, .. }] if is_of_u1(precondition)),
        "{kept:?}"
    );
    let theirs = object(&json!({ "a": "1" }), "kubectl-create");
    let unmarked = KubernetesObject.undo(
        &adopted,
        &json!({ "existed": true }),
        &answers(&adopted, (0, &theirs), (ABSENT, &json!(""))),
    );
    assert!(
        unmarked.is_met() && unmarked.actions.is_empty() && !unmarked.residue.is_empty(),
        "{unmarked:?}"
    );
    let unserved = undo(json!({ "existed": false }), (NO_KIND, &json!("")));
    assert!(
        unserved.has_unknown() && unserved.actions.is_empty(),
        "{unserved:?}"
    );
    let space = self::resource(
        json!({ "cluster": "lab", "manifest": { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "rdma" } } }),
    );
    let kept = KubernetesObject.undo(
        &space,
        &json!({ "existed": false }),
        &answers(&space, (0, &ours), (ABSENT, &json!(""))),
    );
    assert!(
        kept.actions.is_empty() && kept.residue[0].contains("would go along"),
        "{kept:?}"
    );
}

#[test]
fn no_change_hides_another() {
    let desired = json!({ "a": { "b": "evil" }, "a.b": "new" });
    let mut live = object(&json!({ "a": { "b": "good" } }), MANAGER);
    let mut previewed = object(&desired, MANAGER);
    (live[OBJECT], previewed[OBJECT]) = (json!("good"), json!("evil"));
    let changed = diff(
        &resource(body(&desired, false)),
        (0, &live),
        (0, &previewed),
    );
    let names = [r#"data."a.b""#, "data.a.b", OBJECT, "object (2)"];
    assert!(changed.attributes.keys().eq(names), "{changed:?}");
}

/// Forgetting `adopt: true` neither holds it nor makes it one that is deleted.
#[test]
fn what_was_taken_over_stays_so() {
    let (desired, other) = (json!({ "a": "1" }), json!({ "a": "2" }));
    let (resource, previewed) = (resource(body(&desired, false)), object(&desired, MANAGER));
    let met = diff(
        &resource,
        (0, &taken_over(previewed.clone())),
        (0, &previewed),
    );
    assert!(
        met.is_met() && met.actions.is_empty() && met.before == json!({ "existed": true }),
        "{met:?}"
    );
    for (code, preview) in [(0, &previewed), (NOT_SAID, &json!("no dry run"))] {
        let changed = diff(
            &resource,
            (0, &taken_over(object(&other, MANAGER))),
            (code, preview),
        );
        let [Action::ApplyObject { manifest, .. }] = &changed.actions[..] else {
            assert_eq!(code, NOT_SAID, "{changed:?}");
            continue;
        };
        assert!(
            changed.refusal.is_none() && changed.attributes.keys().eq(["data.a", OBJECT]),
            "{changed:?}"
        );
        assert!(
            ownership::is_adopted(manifest) && !manifest.to_string().contains(applyset::PART_OF),
            "{manifest}"
        );
    }
    assert!(!applyset::is_member(
        "kubernetes_object",
        &resource.body,
        &met.before
    ));
    assert!(applyset::is_member(
        "kubernetes_object",
        &resource.body,
        &json!({ "existed": false })
    ));
}

#[test]
fn an_object_on_its_way_out_is_waited_for() {
    let resource = resource(body(&json!({ "a": "1" }), false));
    let mut going = object(&json!({ "a": "1" }), MANAGER);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
    going["metadata"]["finalizers"] = json!(["example.org/never"]);
    let held = diff(&resource, (0, &going), (0, &going));
    assert!(
        !held.is_met()
            && held.actions.is_empty()
            && held.refusal.unwrap().contains("example.org/never")
    );
}

/// An operator that reboots nodes for its object says so nowhere: its module does.
#[test]
fn what_a_controller_does_to_nodes_is_told_where_something_changes() {
    let mut disturbing = body(&json!({ "a": "1" }), false);
    disturbing["disturbs"] = json!({ "as": "reboot", "says": "nodes are rebooted" });
    assert_eq!(KubernetesObject.check(&disturbing), []);
    let resource = resource(disturbing.clone());
    let made = object(&json!({ "a": "1" }), MANAGER);
    let new = diff(&resource, (ABSENT, &json!("")), (0, &made));
    assert_eq!(
        (new.disruption, new.interrupts),
        (Disruption::Reboot, vec!["nodes are rebooted".to_owned()])
    );
    assert_eq!(
        diff(
            &resource,
            (0, &object(&json!({ "a": "2" }), MANAGER)),
            (0, &made)
        )
        .disruption,
        Disruption::Reboot
    );
    assert_eq!(
        diff(&resource, (0, &made), (0, &made)).disruption,
        Disruption::None,
        "in sync"
    );
    assert_eq!(
        KubernetesObject
            .undo(
                &resource,
                &Value::Null,
                &answers(&resource, (0, &made), (0, &made))
            )
            .disruption,
        Disruption::None
    );
    for wrong in [
        json!("reboot"),
        json!({ "as": "reboot" }),
        json!({ "as": "power_cycle", "says": "x" }),
        json!({ "as": "none", "says": "x" }),
        json!({ "as": "drain", "says": " " }),
    ] {
        disturbing["disturbs"] = wrong;
        assert_eq!(
            KubernetesObject
                .check(&disturbing)
                .iter()
                .map(|error| error.pointer.as_str())
                .collect::<Vec<_>>(),
            ["/disturbs"]
        );
    }
}
