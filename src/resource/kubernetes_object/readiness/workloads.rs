//! Whether a workload's pods run, as its controller counts them.

use super::{Readiness, extract_text_field, find_value_at_path, new_not_ready_state};
use crate::Hopeless;
use crate::kubernetes_object::conditions::find_condition;
use railwright_base::text::one_line;
use serde_json::Value;

const UNSEEN_EVER: &str = "its controller has not seen it yet";

/// Whether a DaemonSet runs on at least so many nodes, 1 unless said otherwise; nothing where it
/// does.
pub(super) fn check_daemon_set(object: &Value, nodes: Option<u64>) -> Option<Readiness> {
    if !is_seen(object) {
        return new_not_ready_state(UNSEEN_EVER.to_owned());
    }
    let desired = read_count_field(object, "status.desiredNumberScheduled");
    let least = nodes.unwrap_or(1);
    if desired < least {
        let nodes = if least == 1 {
            "1 node".to_owned()
        } else {
            format!("{least} nodes")
        };
        return new_not_ready_state(format!(
            "it is to run on {desired} of at least {nodes}: its selector and the nodes' labels and \
             taints decide"
        ));
    }
    let updated = read_count_field(object, "status.updatedNumberScheduled");
    if updated < desired && is_on_delete(object) {
        return Some(build_on_delete_readiness(desired - updated, desired));
    }
    let ready = read_count_field(object, "status.numberReady")
        .min(read_count_field(object, "status.numberAvailable"));
    check_pod_counts(desired, updated, ready)
}

/// Whether a Deployment runs as its template says; nothing where it does.
pub(super) fn check_deployment(object: &Value) -> Option<Readiness> {
    if !is_seen(object) {
        return new_not_ready_state(UNSEEN_EVER.to_owned());
    }
    let found = check_deployment_pods(object)?;
    let Readiness::Not { words, .. } = found else {
        return None;
    };
    if find_value_at_path(object, "spec.paused").and_then(Value::as_bool) == Some(true) {
        return Some(Readiness::Not {
            words: format!("{words}, and it is paused"),
            hopeless: Some(Hopeless::of("it is paused (spec.paused)")),
        });
    }
    let failure = find_condition(object, "ReplicaFailure", ("status", "True"));
    let said = failure
        .map(|condition| format!("; {}", extract_text_field(condition, "message")))
        .unwrap_or_default();
    let late = ("reason", "ProgressDeadlineExceeded");
    let hopeless = find_condition(object, "Progressing", late).map(|condition| Hopeless {
        why: one_line(extract_text_field(condition, "message"), 200),
        since: Some(extract_text_field(condition, "lastUpdateTime").to_owned()),
    });
    Some(Readiness::Not {
        words: one_line(&format!("{words}{said}"), 300),
        hopeless,
    })
}

fn check_deployment_pods(object: &Value) -> Option<Readiness> {
    let desired = read_desired_replicas(object);
    let updated = read_count_field(object, "status.updatedReplicas");
    let available = read_count_field(object, "status.availableReplicas");
    let open = check_pod_counts(desired, updated, available);
    if open.is_some() {
        return open;
    }
    let old = read_count_field(object, "status.replicas").saturating_sub(updated);
    if old == 0 {
        return None;
    }
    new_not_ready_state(format!(
        "{old} pods of the earlier template are still there"
    ))
}

/// Whether a StatefulSet runs as its template says; nothing where it does.
pub(super) fn check_stateful_set(object: &Value) -> Option<Readiness> {
    if !is_seen(object) {
        return new_not_ready_state(UNSEEN_EVER.to_owned());
    }
    let desired = read_desired_replicas(object);
    let kept = read_count_field(object, "spec.updateStrategy.rollingUpdate.partition").min(desired);
    let all_new = find_value_at_path(object, "status.currentRevision")
        == find_value_at_path(object, "status.updateRevision");
    let updated = if all_new {
        desired
    } else {
        read_count_field(object, "status.updatedReplicas") + kept
    };
    if updated < desired && is_on_delete(object) {
        return Some(build_on_delete_readiness(desired - updated, desired));
    }
    // A pod counts once it has been ready for `minReadySeconds`.
    let ready = read_count_field(object, "status.readyReplicas");
    let available = find_value_at_path(object, "status.availableReplicas")
        .and_then(Value::as_u64)
        .unwrap_or(ready);
    check_pod_counts(desired, updated, ready.min(available))
}

/// It converges only where somebody deletes the pods.
fn build_on_delete_readiness(old: u64, all: u64) -> Readiness {
    let why = "its pods are replaced only when somebody deletes them (updateStrategy OnDelete)";
    Readiness::Not {
        words: format!("{old} of {all} pods are of an earlier template: {why}"),
        hopeless: Some(Hopeless::of(why)),
    }
}

fn check_pod_counts(desired: u64, updated: u64, ready: u64) -> Option<Readiness> {
    if updated < desired {
        return new_not_ready_state(format!(
            "{updated} of {desired} pods are of the new template"
        ));
    }
    if ready < desired {
        new_not_ready_state(format!("{ready} of {desired} pods are ready"))
    } else {
        None
    }
}

/// A controller that has seen an object says so with the generation that it has seen.
fn is_seen(object: &Value) -> bool {
    find_value_at_path(object, "status.observedGeneration").is_some()
}

fn read_desired_replicas(object: &Value) -> u64 {
    find_value_at_path(object, "spec.replicas")
        .and_then(Value::as_u64)
        .unwrap_or(1)
}

fn is_on_delete(object: &Value) -> bool {
    find_value_at_path(object, "spec.updateStrategy.type").and_then(Value::as_str)
        == Some("OnDelete")
}

fn read_count_field(object: &Value, path: &str) -> u64 {
    find_value_at_path(object, path)
        .and_then(Value::as_u64)
        .unwrap_or(0)
}
