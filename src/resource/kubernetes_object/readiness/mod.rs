//! Whether an object has come to what it is for: pods that run, a condition that holds, a state
//! that an operator wrote.
//!
//! What misleads, and is not believed: a DaemonSet that wants no pod is "ready"; counts of before
//! the last change are (until the controller has seen its generation); a condition without a reason
//! may be true for nothing (`ReadinessCriteria` of the GPU operator's ClusterPolicy with the reason
//! `NoGPUNodes`, NVIDIA/gpu-operator api/nvidia/v1/clusterpolicy_types.go), and one may be inverted
//! (`ConfigUpdateInProgress`, Mellanox/nic-configuration-operator api/v1alpha1/nicdevice_types.go):
//! so a module names reasons, too.

use super::paths::is_same_quantity;
use crate::{BodyError, Hopeless};
use railwright_base::text::one_line;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How long an object may take to be ready, unless its wish says otherwise: an image of some GB is
/// pulled meanwhile.
pub const WITHIN_S: u32 = 600;
/// Kinds that are judged without being asked to.
const JUDGED: [&str; 4] = [
    "DaemonSet.apps",
    "Deployment.apps",
    "StatefulSet.apps",
    "CustomResourceDefinition.apiextensions.k8s.io",
];

/// Kinds whose controller tells of the generation that it has seen only where something else of the
/// status changes with it (ray-project/kuberay ray-operator/controllers/ray/utils/consistency.go,
/// InconsistentRayClusterStatus): an older one means nothing.
const TELLS_SELDOM: [&str; 1] = ["RayCluster.ray.io"];

const UNSEEN: &str = "its controller has not seen the last change yet";

/// `ready` of a body.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadinessCriteria {
    /// On at least so many nodes; for a DaemonSet.
    pub nodes: Option<u64>,
    /// Conditions that have to hold.
    pub conditions: Vec<Condition>,
    /// Fields by their paths (`status.state`) that have to have these values.
    pub fields: BTreeMap<String, Value>,
    /// Lists of which every item has to say this.
    pub each: Vec<ListItemCriterion>,
    /// Fields with these values mean that it will not come to it.
    pub failed: BTreeMap<String, Value>,
    /// How long to wait, in seconds.
    pub within_s: Option<u32>,
}

/// A condition that has to hold.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, unless it is one whose end is waited for.
    #[serde(default = "default_condition_status")]
    pub status: String,
    /// The only reason that counts.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A list of which every item has to say this.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListItemCriterion {
    /// The path of the list.
    pub list: String,
    /// The field of its items.
    pub field: String,
    /// Its value.
    pub equals: Value,
    /// So many items at least.
    #[serde(default = "default_item_count")]
    pub at_least: usize,
}

fn default_condition_status() -> String {
    "True".to_owned()
}

fn default_item_count() -> usize {
    1
}

/// How it stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Readiness {
    /// It has come to it.
    Ready,
    /// Not, or not yet.
    Not {
        /// How it stands, in words.
        words: String,
        /// Why it will not come by itself.
        hopeless: Option<Hopeless>,
    },
}

fn new_not_ready_state(words: String) -> Option<Readiness> {
    Some(Readiness::Not {
        words,
        hopeless: None,
    })
}

/// What a body wants of an object of this kind; nothing where it is not judged.
pub fn parse_readiness_criteria(body: &Value, kind: &str) -> Option<ReadinessCriteria> {
    match body.get("ready") {
        None | Some(Value::Null | Value::Bool(true)) => {
            JUDGED.contains(&kind).then(ReadinessCriteria::default)
        }
        Some(Value::Bool(false)) => None,
        Some(wish) => serde_json::from_value(wish.clone()).ok(),
    }
}

/// What is wrong with `ready` of a body.
pub fn check_ready_field(body: &Value) -> Vec<BodyError> {
    let error = |pointer: &str, message: String| BodyError {
        pointer: pointer.to_owned(),
        message,
        help: Some(HELP.to_owned()),
    };
    let wish = match body.get("ready") {
        None | Some(Value::Null | Value::Bool(_)) => return Vec::new(),
        Some(wish @ Value::Object(_)) => wish,
        Some(_) => {
            return vec![error(
                "/ready",
                "`ready` must be a mapping, or false".to_owned(),
            )];
        }
    };
    match serde_json::from_value::<ReadinessCriteria>(wish.clone()) {
        Err(wrong) => vec![error("/ready", one_line(&wrong.to_string(), 160))],
        Ok(ready)
            if ready
                .within_s
                .is_some_and(|seconds| !(1..=86_400).contains(&seconds)) =>
        {
            vec![error(
                "/ready/within_s",
                "`within_s` must be from 1 to 86400".to_owned(),
            )]
        }
        Ok(_) => Vec::new(),
    }
}

const HELP: &str = "{ nodes, conditions: [{ type, status, reason }], fields: { path: value }, \
                    each: [{ list, field, equals, at_least }], failed: { path: value }, within_s }";

impl ReadinessCriteria {
    /// How long it is waited for, in seconds.
    pub fn within_s(&self) -> u32 {
        self.within_s.unwrap_or(WITHIN_S)
    }

    /// Whether it asks for anything but what its kind is judged by anyway.
    pub fn is_said(&self) -> bool {
        !(self.conditions.is_empty() && self.fields.is_empty() && self.each.is_empty())
    }

    /// How an object of this kind stands.
    pub fn judge(&self, object: &Value, kind: &str) -> Readiness {
        if let Some((path, value)) = self.failed.iter().find(|(path, value)| {
            find_value_at_path(object, path).is_some_and(|found| is_same(value, found))
        }) {
            let said = ["status.reason", "status.message"]
                .iter()
                .find_map(|path| find_value_at_path(object, path)?.as_str())
                .unwrap_or_default();
            let words = one_line(&format!("{path} is {} {said}", format_value(value)), 300);
            return Readiness::Not {
                hopeless: Some(Hopeless::of(words.trim_end())),
                words,
            };
        }
        if find_value_at_path(object, "metadata.deletionTimestamp").is_some_and(|at| !at.is_null())
        {
            return Readiness::Not {
                words: "it is being deleted".to_owned(),
                hopeless: None,
            };
        }
        let tells = !TELLS_SELDOM.contains(&kind);
        let stale = || {
            if tells && is_unseen(object, object.get("status")) {
                new_not_ready_state(UNSEEN.to_owned())
            } else {
                None
            }
        };
        self.by_kind(object, kind)
            .or_else(stale)
            .or_else(|| {
                self.conditions
                    .iter()
                    .find_map(|condition| condition.judge(object))
            })
            .or_else(|| {
                self.fields
                    .iter()
                    .find_map(|(path, value)| check_field_value(object, path, value))
            })
            .or_else(|| self.each.iter().find_map(|each| each.judge(object)))
            .unwrap_or(Readiness::Ready)
    }

    fn by_kind(&self, object: &Value, kind: &str) -> Option<Readiness> {
        if JUDGED.contains(&kind) && is_unseen(object, object.get("status")) {
            return new_not_ready_state(UNSEEN.to_owned());
        }
        match kind {
            "DaemonSet.apps" => daemon_set(object, self.nodes),
            "Deployment.apps" => check_deployment(object),
            "StatefulSet.apps" => stateful_set(object),
            "CustomResourceDefinition.apiextensions.k8s.io" => Condition {
                kind: "Established".to_owned(),
                status: default_condition_status(),
                reason: None,
            }
            .judge(object),
            _ => None,
        }
    }
}

impl Condition {
    fn judge(&self, object: &Value) -> Option<Readiness> {
        let conditions = find_value_at_path(object, "status.conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let text = |condition: &Value, field: &str| {
            condition
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let wanted = self.reason.as_ref().map_or_else(
            || self.status.clone(),
            |reason| format!("{} ({reason})", self.status),
        );
        let Some(found) = conditions
            .into_iter()
            .find(|condition| text(condition, "type") == self.kind)
        else {
            return new_not_ready_state(format!(
                "condition {} is not there yet, and is to be {wanted}",
                self.kind
            ));
        };
        if is_unseen(object, Some(found)) {
            return new_not_ready_state(format!(
                "condition {} is of before the last change",
                self.kind
            ));
        }
        let (status, reason) = (text(found, "status"), text(found, "reason"));
        if status == self.status && self.reason.as_ref().is_none_or(|wanted| *wanted == reason) {
            return None;
        }
        let said = format!(
            "condition {} is {status} ({reason}): {}",
            self.kind,
            text(found, "message")
        );
        new_not_ready_state(one_line(&said, 300))
    }
}

impl ListItemCriterion {
    fn judge(&self, object: &Value) -> Option<Readiness> {
        let items = find_value_at_path(object, &self.list)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let says = |item: &&Value| {
            find_value_at_path(item, &self.field).is_some_and(|found| is_same(&self.equals, found))
        };
        let good = items.iter().filter(says).count();
        if good == items.len() && good >= self.at_least {
            return None;
        }
        let bad = items.iter().find(|item| !says(item)).map(|item| {
            let message = item
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            format!(
                ", one is {} {message}",
                find_value_at_path(item, &self.field)
                    .map_or_else(|| "without".to_owned(), format_value)
            )
        });
        let all = items.len().max(self.at_least);
        new_not_ready_state(one_line(
            &format!(
                "{good} of {all} in {} are {}{}",
                self.list,
                format_value(&self.equals),
                bad.unwrap_or_default()
            ),
            300,
        ))
    }
}

fn check_field_value(object: &Value, path: &str, value: &Value) -> Option<Readiness> {
    match find_value_at_path(object, path) {
        Some(found) if is_same(value, found) => None,
        Some(found) => new_not_ready_state(one_line(
            &format!(
                "{path} is {}, and is to be {}",
                format_value(found),
                format_value(value)
            ),
            300,
        )),
        None => new_not_ready_state(format!(
            "{path} is not there yet, and is to be {}",
            format_value(value)
        )),
    }
}

/// What stands there says of which generation of the object it is, and that is an earlier one.
fn is_unseen(object: &Value, part: Option<&Value>) -> bool {
    let generation = find_value_at_path(object, "metadata.generation").and_then(Value::as_u64);
    let seen = part
        .and_then(|part| part.get("observedGeneration"))
        .and_then(Value::as_u64);
    generation
        .zip(seen)
        .is_some_and(|(generation, seen)| seen < generation)
}

fn read_count_field(object: &Value, path: &str) -> u64 {
    find_value_at_path(object, path)
        .and_then(Value::as_u64)
        .unwrap_or(0)
}

fn is_on_delete(object: &Value) -> bool {
    find_value_at_path(object, "spec.updateStrategy.type").and_then(Value::as_str)
        == Some("OnDelete")
}

fn daemon_set(object: &Value, nodes: Option<u64>) -> Option<Readiness> {
    if find_value_at_path(object, "status.observedGeneration").is_none() {
        return new_not_ready_state("its controller has not seen it yet".to_owned());
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

/// Nobody brings it about but whoever deletes the pods.
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

fn check_deployment(object: &Value) -> Option<Readiness> {
    if find_value_at_path(object, "status.observedGeneration").is_none() {
        return new_not_ready_state("its controller has not seen it yet".to_owned());
    }
    let desired = find_value_at_path(object, "spec.replicas")
        .and_then(Value::as_u64)
        .unwrap_or(1);
    let updated = read_count_field(object, "status.updatedReplicas");
    let old = read_count_field(object, "status.replicas").saturating_sub(updated);
    let found = check_pod_counts(
        desired,
        updated,
        read_count_field(object, "status.availableReplicas"),
    )
    .or_else(|| {
        if old > 0 {
            new_not_ready_state(format!(
                "{old} pods of the earlier template are still there"
            ))
        } else {
            None
        }
    })?;
    let Readiness::Not { words, .. } = found else {
        return None;
    };
    let conditions = find_value_at_path(object, "status.conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let text = |condition: &Value, field: &str| {
        condition
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let failed = |condition: &&Value| {
        text(condition, "type") == "ReplicaFailure" && text(condition, "status") == "True"
    };
    let late = |condition: &&Value| {
        text(condition, "type") == "Progressing"
            && text(condition, "reason") == "ProgressDeadlineExceeded"
    };
    let said = conditions
        .clone()
        .find(failed)
        .map(|condition| format!("; {}", text(condition, "message")))
        .unwrap_or_default();
    if find_value_at_path(object, "spec.paused").and_then(Value::as_bool) == Some(true) {
        return Some(Readiness::Not {
            words: format!("{words}, and it is paused"),
            hopeless: Some(Hopeless::of("it is paused (spec.paused)")),
        });
    }
    let hopeless = conditions.clone().find(late).map(|condition| Hopeless {
        why: one_line(&text(condition, "message"), 200),
        since: Some(text(condition, "lastUpdateTime")),
    });
    Some(Readiness::Not {
        words: one_line(&format!("{words}{said}"), 300),
        hopeless,
    })
}

fn stateful_set(object: &Value) -> Option<Readiness> {
    if find_value_at_path(object, "status.observedGeneration").is_none() {
        return new_not_ready_state("its controller has not seen it yet".to_owned());
    }
    let desired = find_value_at_path(object, "spec.replicas")
        .and_then(Value::as_u64)
        .unwrap_or(1);
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

/// The value at a path with dots; one with slashes is a JSON pointer, for names that hold dots.
fn find_value_at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.starts_with('/') {
        return value.pointer(path);
    }
    path.split('.')
        .try_fold(value, |value, name| value.get(name))
}

fn is_same(wanted: &Value, found: &Value) -> bool {
    wanted == found || is_same_quantity(wanted, found)
}

fn format_value(value: &Value) -> String {
    one_line(
        &value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
        80,
    )
}

#[cfg(test)]
mod tests;
