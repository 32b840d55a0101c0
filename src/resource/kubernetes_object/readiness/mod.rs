//! Whether an object has come to what it is for: pods that run, a condition that holds, a state
//! that an operator wrote.
//!
//! What misleads, and is not believed: a DaemonSet that desires no pod is "ready"; counts of before
//! the last change are (until the controller has seen its generation); a condition without a reason
//! may be true for nothing (`ReadinessCriteria` of the GPU operator's ClusterPolicy with the reason
//! `NoGPUNodes`, NVIDIA/gpu-operator api/nvidia/v1/clusterpolicy_types.go), and one may be inverted
//! (`ConfigUpdateInProgress`, Mellanox/nic-configuration-operator api/v1alpha1/nicdevice_types.go):
//! so a module names reasons, too. A status that says of no generation that it is of this one (the
//! ClusterPolicy's) may date from before the last change: it is believed once it is rewritten, or
//! after a while.

mod workloads;

use super::ownership::{MANAGER, list_manager_entries, list_whole_object_entries};
use super::paths::is_same_quantity;
use crate::Hopeless;
use crate::body::BodyErrors;
use railwright_base::text::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// How long an object may take to be ready, unless it declares otherwise: an image of some GB is
/// pulled meanwhile.
pub const WITHIN_S: u32 = 600;
/// Kinds that are checked without being asked to.
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

/// `ready` of a body: what makes an object ready, or whether its kind is checked at all.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum DeclaredReadiness {
    /// By what this says.
    Criteria(ReadinessCriteria),
    /// Not at all, or as its kind is checked anyway.
    IsAwaited(bool),
}

impl<'de> Deserialize<'de> for DeclaredReadiness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value.as_bool() {
            Some(is_awaited) => Ok(DeclaredReadiness::IsAwaited(is_awaited)),
            None => ReadinessCriteria::deserialize(value)
                .map(DeclaredReadiness::Criteria)
                .map_err(serde::de::Error::custom),
        }
    }
}

impl DeclaredReadiness {
    /// What is declared of an object of this kind; nothing where it is not checked.
    pub fn criteria_for(declared: Option<Self>, kind: &str) -> Option<ReadinessCriteria> {
        match declared {
            Some(DeclaredReadiness::Criteria(criteria)) => Some(criteria),
            Some(DeclaredReadiness::IsAwaited(false)) => None,
            None | Some(DeclaredReadiness::IsAwaited(true)) => {
                JUDGED.contains(&kind).then(ReadinessCriteria::default)
            }
        }
    }
}

/// What an object has to come to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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

const HELP: &str = "{ nodes, conditions: [{ type, status, reason }], fields: { path: value }, \
                    each: [{ list, field, equals, at_least }], failed: { path: value }, within_s }";

impl ReadinessCriteria {
    /// Notes what is wrong with `ready` of a body.
    pub fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            self.within_s
                .is_none_or(|within_s| (1..=86_400).contains(&within_s)),
            "/ready/within_s",
            "`within_s` must be from 1 to 86400",
            HELP,
        );
    }

    /// How long it is waited for, in seconds.
    pub fn within_s(&self) -> u32 {
        self.within_s.unwrap_or(WITHIN_S)
    }

    /// Whether it asks for anything but what its kind is checked for anyway.
    pub fn is_said(&self) -> bool {
        !(self.conditions.is_empty() && self.fields.is_empty() && self.each.is_empty())
    }

    /// Whether what makes an object ready may date from before our last change: it is not the
    /// object's first generation, nothing there says that it is of this one, and nobody wrote to
    /// its status since.
    pub fn may_be_stale(&self, object: &Value) -> bool {
        let generation = find_value_at_path(object, "metadata.generation").and_then(Value::as_u64);
        generation.is_some_and(|generation| generation > 1)
            && self.is_said()
            && !self.is_of_this_generation(object)
            && !is_status_written_since(object)
    }

    fn is_of_this_generation(&self, object: &Value) -> bool {
        let is_seen = |part: Option<&Value>| read_seen_generation(part).is_some();
        if is_seen(object.get("status")) {
            return !is_unseen(object, object.get("status"));
        }
        let of_conditions_alone = self.fields.is_empty() && self.each.is_empty();
        of_conditions_alone
            && self
                .conditions
                .iter()
                .all(|condition| is_seen(condition.find_in(object)))
    }

    /// How an object of this kind stands.
    pub fn evaluate(&self, object: &Value, kind: &str) -> Readiness {
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
        self.find_unmet_criterion(object, kind)
            .unwrap_or(Readiness::Ready)
    }

    /// What is not ready yet.
    fn find_unmet_criterion(&self, object: &Value, kind: &str) -> Option<Readiness> {
        if let Some(readiness) = self.by_kind(object, kind) {
            return Some(readiness);
        }
        if !TELLS_SELDOM.contains(&kind) && is_unseen(object, object.get("status")) {
            return new_not_ready_state(UNSEEN.to_owned());
        }
        for condition in &self.conditions {
            if let Some(readiness) = condition.evaluate(object) {
                return Some(readiness);
            }
        }
        for (path, value) in &self.fields {
            if let Some(readiness) = check_field_value(object, path, value) {
                return Some(readiness);
            }
        }
        self.each.iter().find_map(|each| each.evaluate(object))
    }

    fn by_kind(&self, object: &Value, kind: &str) -> Option<Readiness> {
        if JUDGED.contains(&kind) && is_unseen(object, object.get("status")) {
            return new_not_ready_state(UNSEEN.to_owned());
        }
        match kind {
            "DaemonSet.apps" => workloads::check_daemon_set(object, self.nodes),
            "Deployment.apps" => workloads::check_deployment(object),
            "StatefulSet.apps" => workloads::check_stateful_set(object),
            "CustomResourceDefinition.apiextensions.k8s.io" => Condition {
                kind: "Established".to_owned(),
                status: default_condition_status(),
                reason: None,
            }
            .evaluate(object),
            _ => None,
        }
    }
}

impl Condition {
    fn find_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let conditions = find_value_at_path(object, "status.conditions")?.as_array()?;
        conditions
            .iter()
            .find(|condition| extract_text_field(condition, "type") == self.kind)
    }

    fn evaluate(&self, object: &Value) -> Option<Readiness> {
        let desired = self.reason.as_ref().map_or_else(
            || self.status.clone(),
            |reason| format!("{} ({reason})", self.status),
        );
        let Some(actual) = self.find_in(object) else {
            return new_not_ready_state(format!(
                "condition {} is not there yet, and is to be {desired}",
                self.kind
            ));
        };
        if is_unseen(object, Some(actual)) {
            return new_not_ready_state(format!(
                "condition {} is of before the last change",
                self.kind
            ));
        }
        let status = extract_text_field(actual, "status");
        let reason = extract_text_field(actual, "reason");
        if status == self.status
            && self
                .reason
                .as_ref()
                .is_none_or(|desired| *desired == reason)
        {
            return None;
        }
        let said = format!(
            "condition {} is {status} ({reason}): {}",
            self.kind,
            extract_text_field(actual, "message")
        );
        new_not_ready_state(one_line(&said, 300))
    }
}

impl ListItemCriterion {
    fn evaluate(&self, object: &Value) -> Option<Readiness> {
        let items = find_value_at_path(object, &self.list)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let (mut good, mut bad) = (0, None);
        for item in items {
            match find_value_at_path(item, &self.field) {
                Some(found) if is_same(&self.equals, found) => good += 1,
                found => bad = bad.or(Some((item, found))),
            }
        }
        if good == items.len() && good >= self.at_least {
            return None;
        }
        let bad = bad.map(|(item, found)| {
            let found = found.map_or_else(|| "without".to_owned(), format_value);
            format!(", one is {found} {}", extract_text_field(item, "message"))
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
    generation
        .zip(read_seen_generation(part))
        .is_some_and(|(generation, seen)| seen < generation)
}

/// Of which generation of the object this is.
fn read_seen_generation(part: Option<&Value>) -> Option<u64> {
    part?.get("observedGeneration")?.as_u64()
}

/// Whether somebody wrote to the status in the second of our last apply or later, by the server's
/// own word (kubernetes.io/docs/reference/using-api/server-side-apply, "managedFields"). One that
/// has no status subresource is written as part of the object.
fn is_status_written_since(object: &Value) -> bool {
    let own = list_whole_object_entries(object).filter(|entry| {
        extract_text_field(entry, "manager") == MANAGER
            && extract_text_field(entry, "operation") == "Apply"
    });
    let of_status = list_manager_entries(object).filter(|entry| {
        extract_text_field(entry, "subresource") == "status"
            || entry.pointer("/fieldsV1/f:status").is_some()
    });
    let time = |entry| extract_text_field(entry, "time");
    match own.map(time).max() {
        Some(applied) => of_status.map(time).max() >= Some(applied),
        None => true,
    }
}

fn extract_text_field<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a path with dots; one with slashes is a JSON pointer, for names that hold dots.
fn find_value_at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.starts_with('/') {
        return value.pointer(path);
    }
    path.split('.')
        .try_fold(value, |value, name| value.get(name))
}

fn is_same(desired: &Value, actual: &Value) -> bool {
    desired == actual || is_same_quantity(desired, actual)
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
