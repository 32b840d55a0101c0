//! What misleads, each by itself.

use super::*;
use crate::ResourceKind;
use crate::kubernetes_object::KubernetesObject;
use serde_json::json;

fn declared(ready: Value, kind: &str) -> Option<ReadinessCriteria> {
    DeclaredReadiness::criteria_for(serde_json::from_value(ready).unwrap(), kind)
}

fn said(resource: Value, kind: &str, object: Value) -> String {
    let desired = declared(resource, kind).expect("it is checked");
    match desired.evaluate(&object, kind) {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Not { words, hopeless } => hopeless.map_or(words.clone(), |hopeless| {
            format!("{words} | {}", hopeless.why)
        }),
    }
}

fn set(desired: u64, updated: u64, ready: u64) -> Value {
    json!({ "metadata": { "generation": 3 }, "status": { "observedGeneration": 3, "desiredNumberScheduled": desired,
        "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": ready } })
}

#[test]
fn a_daemon_set_is_ready_with_all_its_pods_on_as_many_nodes_as_are_expected() {
    let of = |resource: Value, object: Value| said(resource, "DaemonSet.apps", object);
    assert_eq!(of(json!({ "nodes": 4 }), set(4, 4, 4)), "ready");
    assert_eq!(of(json!({ "nodes": 4 }), set(5, 5, 5)), "ready");
    assert!(of(json!(true), set(0, 0, 0)).starts_with("it is to run on 0 of at least 1 node"));
    assert!(
        of(json!({ "nodes": 4 }), set(3, 3, 3))
            .starts_with("it is to run on 3 of at least 4 nodes")
    );
    assert_eq!(
        of(Value::Null, set(4, 1, 4)),
        "1 of 4 pods are of the new template"
    );
    assert_eq!(of(Value::Null, set(4, 4, 3)), "3 of 4 pods are ready");
    let mut early = set(4, 4, 4);
    early["metadata"]["generation"] = json!(4);
    assert_eq!(
        of(Value::Null, early),
        "its controller has not seen the last change yet"
    );
    assert_eq!(
        of(Value::Null, json!({})),
        "its controller has not seen it yet"
    );
    let mut kept = set(4, 1, 4);
    kept["spec"] = json!({ "updateStrategy": { "type": "OnDelete" } });
    assert!(
        of(Value::Null, kept).contains("| its pods are replaced only when somebody deletes them")
    );
}

#[test]
fn deployments_and_stateful_sets_say_why_not() {
    let deployment = |updated: u64, all: u64, available: u64, conditions: Value| {
        said(
            Value::Null,
            "Deployment.apps",
            json!({ "spec": { "replicas": 2 }, "status": { "observedGeneration": 1, "updatedReplicas": updated, "replicas": all,
                "availableReplicas": available, "conditions": conditions } }),
        )
    };
    assert_eq!(deployment(2, 2, 2, json!([])), "ready");
    assert_eq!(
        deployment(2, 3, 2, json!([])),
        "1 pods of the earlier template are still there"
    );
    assert_eq!(
        deployment(1, 3, 2, json!([])),
        "1 of 2 pods are of the new template"
    );
    let quota =
        json!([{ "type": "ReplicaFailure", "status": "True", "message": "exceeded quota" }]);
    assert_eq!(
        deployment(2, 2, 1, quota),
        "1 of 2 pods are ready; exceeded quota"
    );
    let late = json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out" }]);
    assert_eq!(
        deployment(2, 2, 1, late),
        "1 of 2 pods are ready | timed out"
    );
    let stateful = |updated: u64, ready: u64, same: bool, partition: u64| {
        said(
            Value::Null,
            "StatefulSet.apps",
            json!({ "spec": { "replicas": 3, "updateStrategy": { "rollingUpdate": { "partition": partition } } },
                "status": { "observedGeneration": 1, "updatedReplicas": updated, "readyReplicas": ready, "currentRevision": "a",
                    "updateRevision": if same { "a" } else { "b" } } }),
        )
    };
    assert_eq!(
        (stateful(0, 3, true, 0), stateful(1, 3, false, 2)),
        ("ready".to_owned(), "ready".to_owned())
    );
    assert_eq!(
        stateful(1, 3, false, 0),
        "1 of 3 pods are of the new template"
    );
    assert_eq!(stateful(3, 2, true, 0), "2 of 3 pods are ready");
}

#[test]
fn conditions_count_with_their_reason_and_generation_and_may_be_inverted() {
    let of = |resource: Value, status: Value| {
        said(
            resource,
            "X.example.org",
            json!({ "metadata": { "generation": 2 }, "status": status }),
        )
    };
    let ready = |status: &str, reason: &str| json!({ "conditions": [{ "type": "Ready", "status": status, "reason": reason, "message": "m" }] });
    let resource = json!({ "conditions": [{ "type": "Ready", "reason": "Reconciled" }] });
    assert_eq!(of(resource.clone(), ready("True", "Reconciled")), "ready");
    assert_eq!(
        of(resource.clone(), ready("True", "NoGPUNodes")),
        "condition Ready is True (NoGPUNodes): m"
    );
    assert_eq!(
        of(resource.clone(), json!({})),
        "condition Ready is not there yet, and is to be True (Reconciled)"
    );
    let mut old = ready("True", "Reconciled");
    old["conditions"][0]["observedGeneration"] = json!(1);
    assert_eq!(
        of(resource.clone(), old),
        "condition Ready is of before the last change"
    );
    let mut unseen = ready("True", "Reconciled");
    unseen["observedGeneration"] = json!(1);
    assert_eq!(
        of(resource.clone(), unseen),
        "its controller has not seen the last change yet"
    );
    let inverted = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "UpdateSuccessful" }] });
    assert_eq!(of(inverted, ready("False", "UpdateSuccessful")), "ready");
}

#[test]
fn states_that_operators_write_are_fields_and_lists() {
    let of = |resource: Value, status: Value| {
        said(resource, "X.example.org", json!({ "status": status }))
    };
    let state =
        json!({ "fields": { "status.state": "ready" }, "failed": { "status.state": "error" } });
    assert_eq!(of(state.clone(), json!({ "state": "ready" })), "ready");
    assert_eq!(
        of(state.clone(), json!({ "state": "notReady" })),
        "status.state is notReady, and is to be ready"
    );
    let failed = of(
        state,
        json!({ "state": "error", "reason": "two policies select one node" }),
    );
    assert!(
        failed.ends_with("| status.state is error two policies select one node"),
        "{failed}"
    );
    let each = json!({ "each": [{ "list": "status.devices", "field": "status", "equals": "Ready", "at_least": 2 }] });
    let device = |status: &str| json!({ "id": "x", "status": status, "message": "no such type" });
    assert_eq!(
        of(
            each.clone(),
            json!({ "devices": [device("Ready"), device("Ready")] })
        ),
        "ready"
    );
    assert_eq!(
        of(each.clone(), json!({ "devices": [device("Ready")] })),
        "1 of 2 in status.devices are Ready"
    );
    let failed = of(
        each,
        json!({ "devices": [device("Ready"), device("Failed")] }),
    );
    assert_eq!(
        failed,
        "1 of 2 in status.devices are Ready, one is Failed no such type"
    );
    let pointer = json!({ "fields": { "/status/allocatable/aliyun~1erdma": 200 } });
    assert_eq!(
        of(pointer, json!({ "allocatable": { "aliyun/erdma": "200" } })),
        "ready",
        "quantities are texts"
    );
}

#[test]
fn what_is_compared_and_what_is_wrong_with_a_resource() {
    assert!(declared(Value::Null, "ConfigMap.core").is_none());
    assert!(declared(json!(false), "DaemonSet.apps").is_none());
    assert!(
        declared(json!({ "fields": { "a": 1 } }), "ConfigMap.core")
            .is_some_and(|ready| ready.is_said())
    );
    let check = |ready: Value| {
        let manifest = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "a", "namespace": "b" } });
        KubernetesObject.check(&json!({ "manifest": manifest, "ready": ready }))
    };
    for wrong in [
        json!(3),
        json!({ "node": 3 }),
        json!({ "within_s": 0 }),
        json!({ "within_s": 90_000 }),
        json!({ "conditions": [{}] }),
    ] {
        assert_eq!(check(wrong.clone()).len(), 1, "{wrong}");
    }
    assert_eq!(check(json!({ "nodes": 3, "within_s": 60 })), []);
}

/// KubeRay writes the generation that it has seen only together with something else of the status.
#[test]
fn an_older_generation_of_a_ray_cluster_means_nothing() {
    let object = json!({ "metadata": { "generation": 3 }, "status": { "observedGeneration": 1, "readyWorkerReplicas": 2 } });
    let resource = json!({ "fields": { "status.readyWorkerReplicas": 2 } });
    assert_eq!(
        said(resource.clone(), "RayCluster.ray.io", object.clone()),
        "ready"
    );
    assert_eq!(
        said(resource, "NicClusterPolicy.mellanox.com", object),
        "its controller has not seen the last change yet"
    );
}

/// Such a status has the ClusterPolicy of the GPU operator: a state and conditions, and no
/// generation.
#[test]
fn a_status_that_nobody_wrote_since_our_change_may_be_of_before_it() {
    let desired =
        json!({ "conditions": [{ "type": "Ready" }], "fields": { "status.state": "ready" } });
    let applied =
        |time: &str| json!({ "manager": "railwright", "operation": "Apply", "time": time });
    let written = |time: &str| json!({ "manager": "operator", "operation": "Update", "subresource": "status", "time": time });
    let beside = |time: &str| json!({ "manager": "operator", "operation": "Update", "time": time, "fieldsV1": { "f:status": {} } });
    let (early, late) = ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z");
    let of = |desired: &Value, seen: Value, condition: Value, managed: Value| {
        let mut status = json!({ "state": "ready", "conditions": [condition] });
        if !seen.is_null() {
            status["observedGeneration"] = seen;
        }
        let metadata = json!({ "generation": 2, "managedFields": managed });
        let object = json!({ "metadata": metadata, "status": status });
        let criteria = declared(desired.clone(), "ClusterPolicy.nvidia.com").unwrap();
        criteria.may_be_stale(&object)
    };
    let condition = || json!({ "type": "Ready", "status": "True" });
    for (managed, may_be_stale) in [
        (json!([applied(late), written(early)]), true),
        (json!([applied(late)]), true),
        (json!([applied(early), written(late)]), false),
        (json!([applied(early), beside(late)]), false),
        (json!([applied(early), written(early)]), false),
        (json!([written(early)]), false),
        (json!([]), false),
    ] {
        let actual = of(&desired, Value::Null, condition(), managed.clone());
        assert_eq!(actual, may_be_stale, "{managed}");
    }
    let managed = || json!([applied(late), written(early)]);
    assert!(
        !of(&desired, json!(2), condition(), managed()),
        "it says so itself"
    );
    assert!(of(&desired, json!(1), condition(), managed()));
    let seen = json!({ "type": "Ready", "status": "True", "observedGeneration": 2 });
    let alone = json!({ "conditions": [{ "type": "Ready" }] });
    assert!(!of(&alone, Value::Null, seen.clone(), managed()));
    assert!(
        of(&desired, Value::Null, seen, managed()),
        "its state does not"
    );
    // What was made just now has no status of before; a Namespace has no generation.
    for generation in [json!(1), Value::Null] {
        let metadata = json!({ "generation": generation, "managedFields": [applied(late)] });
        let object = json!({ "metadata": metadata, "status": { "state": "ready" } });
        let criteria = declared(desired.clone(), "ClusterPolicy.nvidia.com").unwrap();
        assert!(!criteria.may_be_stale(&object), "{object}");
    }
}
