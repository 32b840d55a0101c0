//! One label or one taint of a node: what a node says of it, whose it is, and the patch that
//! changes it and nothing else.
//!
//! A label is a field of its own in the API, but an apply is no way to set one: what one field
//! manager applied earlier and leaves out now is taken away, and each label here is a resource by
//! itself. Taints are one list (`x-kubernetes-list-type: atomic` in the API's schema). So both are
//! written by a merge patch that holds for the version of the node that was read.

use super::mark::{
    MarkKey, NodeOwnershipAnnotation, build_mark_place, build_ownership_annotation_name,
};
use crate::kubernetes_object::ownership::{FieldManager, MANAGER, find_field_managers};
use crate::kubernetes_object::paths::FieldPathStep;
use railwright_base::{Reason, SealKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a taint does to pods that do not tolerate it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Effect {
    /// No new ones are put on the node.
    #[default]
    NoSchedule,
    /// New ones are put there only where there is no other place.
    PreferNoSchedule,
    /// No new ones are put there, and those that run are evicted at once.
    NoExecute,
}

impl Effect {
    /// The word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Effect::NoSchedule => "NoSchedule",
            Effect::PreferNoSchedule => "PreferNoSchedule",
            Effect::NoExecute => "NoExecute",
        }
    }
}

/// A label, or a taint: of one key a node has at most one of each effect.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NodeField {
    /// The label of this key.
    Label {
        /// Its key.
        key: String,
    },
    /// The taint of this key and effect.
    Taint {
        /// Its key.
        key: String,
        /// Its effect.
        effect: Effect,
    },
}

/// What a node says of a label or a taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldNow {
    /// Its value, which may be empty; nothing where the node has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Our mark for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<NodeOwnershipAnnotation>,
    /// In the place of our mark stands an annotation without a code of ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven_mark: bool,
    /// Why nobody knows whose the annotation in the place of our mark is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_mark: Option<Reason>,
    /// Who else set it last, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<FieldManager>,
}

impl NodeField {
    /// What the node says of it.
    pub fn of(&self, node: &Value, key: &MarkKey) -> FieldNow {
        let (value, path) = match self {
            NodeField::Label { key } => {
                (find_label_value(node, key), vec!["metadata", "labels", key])
            }
            NodeField::Taint { key, effect } => {
                let taint = list_node_taints(node).find(|taint| is_taint(taint, key, *effect));
                (
                    taint.map(|taint| extract_text_field(taint, "value").to_owned()),
                    vec!["spec", "taints"],
                )
            }
        };
        let path: Vec<FieldPathStep> = path
            .into_iter()
            .map(|name| FieldPathStep::Field(name.to_owned()))
            .collect();
        // The one of two managers of the same value that came last: the other only agreed.
        let others = find_field_managers(node, &path)
            .into_iter()
            .filter(|holder| holder.manager != MANAGER);
        let last = others
            .max_by(|one, other| one.time.cmp(&other.time))
            .filter(|_| value.is_some());
        let mut now = FieldNow {
            value,
            by: last,
            ..FieldNow::default()
        };
        self.read_mark(node, key, &mut now);
        now
    }

    fn read_mark(&self, node: &Value, key: &MarkKey, now: &mut FieldNow) {
        let name = build_ownership_annotation_name(self);
        let annotations = node.pointer("/metadata/annotations");
        let Some(text) = annotations.and_then(|all| all.get(&name)?.as_str()) else {
            return;
        };
        match key {
            MarkKey::Is(key) => {
                let place = build_mark_place(node, &name);
                now.mark = NodeOwnershipAnnotation::read(text, &place, key);
                now.unproven_mark = now.mark.is_none();
            }
            MarkKey::Absent => now.unproven_mark = true,
            MarkKey::Unknown(reason) => now.unread_mark = Some(reason.clone()),
        }
    }

    /// The merge patch that gives a node this value of it, or none, and this mark with its code;
    /// nothing else of the node changes.
    pub fn patch(
        &self,
        node: &Value,
        value: Option<&str>,
        mark: Option<(&NodeOwnershipAnnotation, &SealKey)>,
    ) -> Value {
        let annotation = build_ownership_annotation_name(self);
        let place = build_mark_place(node, &annotation);
        let metadata = json!({
            "resourceVersion": node.pointer("/metadata/resourceVersion"),
            "annotations": { annotation: mark.map(|(mark, key)| mark.text(&place, key)) },
        });
        let mut patch = json!({ "metadata": metadata });
        match self {
            NodeField::Label { key } => patch["metadata"]["labels"] = json!({ key: value }),
            NodeField::Taint { key, effect } => {
                patch["spec"] = json!({ "taints": build_taint_list(node, key, *effect, value) })
            }
        }
        patch
    }

    /// A value of it by itself.
    pub fn value(&self, value: &str) -> String {
        match self {
            NodeField::Taint { .. } if value.is_empty() => "without a value".to_owned(),
            _ => value.to_owned(),
        }
    }

    /// The field with this value, for a sentence: a taint as kubectl writes one.
    pub fn shown(&self, value: &str) -> String {
        match self {
            NodeField::Label { .. } => value.to_owned(),
            NodeField::Taint { key, effect } if value.is_empty() => {
                format!("{key}:{}", effect.word())
            }
            NodeField::Taint { key, effect } => format!("{key}={value}:{}", effect.word()),
        }
    }

    /// Whether it evicts pods that run.
    pub fn evicts(&self) -> bool {
        matches!(
            self,
            NodeField::Taint {
                effect: Effect::NoExecute,
                ..
            }
        )
    }
}

fn find_label_value(node: &Value, key: &str) -> Option<String> {
    node.pointer("/metadata/labels")?
        .get(key)?
        .as_str()
        .map(str::to_owned)
}

fn list_node_taints(node: &Value) -> impl Iterator<Item = &Value> {
    node.pointer("/spec/taints")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn extract_text_field<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_taint(taint: &Value, key: &str, effect: Effect) -> bool {
    extract_text_field(taint, "key") == key && extract_text_field(taint, "effect") == effect.word()
}

/// The node's taints with this one: in its old place, or at the end; those of others as they are.
fn build_taint_list(node: &Value, key: &str, effect: Effect, value: Option<&str>) -> Value {
    let ours = value.map(|value| match value {
        "" => json!({ "key": key, "effect": effect.word() }),
        value => json!({ "key": key, "value": value, "effect": effect.word() }),
    });
    let mut all: Vec<Value> = list_node_taints(node).cloned().collect();
    match (
        all.iter().position(|taint| is_taint(taint, key, effect)),
        ours,
    ) {
        (Some(at), Some(ours)) => all[at] = ours,
        (Some(at), None) => drop(all.remove(at)),
        (None, ours) => all.extend(ours),
    }
    if all.is_empty() {
        Value::Null
    } else {
        Value::from(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_BYTES: &[u8] = b"k";

    fn key() -> MarkKey {
        MarkKey::Is(SealKey::new(KEY_BYTES))
    }

    /// Label `rails` with our mark.
    fn node() -> Value {
        let held = json!({ "f:metadata": { "f:labels": { "f:rails": {} } }, "f:spec": { "f:taints": {} } });
        let mut node = json!({
            "metadata": {
                "uid": "u1", "resourceVersion": "7", "labels": { "rails": "8" },
                "managedFields": [{ "manager": "kubectl-label", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsV1": held }],
            },
            "spec": { "taints": [
                { "key": "gpu", "value": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" },
                { "key": "gpu", "effect": "NoExecute" } ] },
        });
        let patch = label("rails").patch(&node, None, Some((&mark("4"), &SealKey::new(KEY_BYTES))));
        node["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
        node
    }

    fn mark(set: &str) -> NodeOwnershipAnnotation {
        NodeOwnershipAnnotation {
            spec: "train".to_owned(),
            set: set.to_owned(),
            was: None,
        }
    }

    fn label(key: &str) -> NodeField {
        NodeField::Label {
            key: key.to_owned(),
        }
    }

    fn taint(key: &str, effect: Effect) -> NodeField {
        NodeField::Taint {
            key: key.to_owned(),
            effect,
        }
    }

    #[test]
    fn a_node_says_what_it_has_and_who_set_it() {
        let by = Some(FieldManager {
            manager: "kubectl-label".to_owned(),
            time: "2026-01-02T03:04:05Z".to_owned(),
            with_ours: false,
        });
        let now = |value: &str, mark: Option<NodeOwnershipAnnotation>| FieldNow {
            value: Some(value.to_owned()),
            mark,
            by: by.clone(),
            ..FieldNow::default()
        };
        for (field, desired) in [
            (label("rails"), now("8", Some(mark("4")))),
            (label("other"), FieldNow::default()),
            (taint("gpu", Effect::NoSchedule), now("a", None)),
            (taint("gpu", Effect::NoExecute), now("", None)),
            (taint("gpu", Effect::PreferNoSchedule), FieldNow::default()),
        ] {
            assert_eq!(field.of(&node(), &key()), desired);
        }
    }

    /// A kubelet may write annotations of its own node, and copy those of others.
    #[test]
    fn a_mark_without_a_code_that_we_made_for_it_is_none_of_ours() {
        const MARK: &str = "railwright.io/label-rails";
        let of = |node: &Value| {
            let now = label("rails").of(node, &key());
            (now.mark.is_some(), now.unproven_mark)
        };
        let with = |pointer: &str, value: Value| {
            let mut node = node();
            *node.pointer_mut(pointer).unwrap() = value;
            node
        };
        assert_eq!(of(&node()), (true, false));
        let text = node()["metadata"]["annotations"][MARK]
            .as_str()
            .unwrap()
            .to_owned();
        let place = "/metadata/annotations/railwright.io~1label-rails";
        for forged in [
            with(place, json!("by hand")),
            with(place, json!(r#"{"spec":"train","set":"4"}"#)),
            with(place, json!(text.replace("\"4\"", "\"8\""))),
            with(place, json!(text.replace("\"4\"", "\"4\",\"was\":\"2\""))),
            with("/metadata/uid", json!("u2")),
        ] {
            assert_eq!(of(&forged), (false, true), "{forged}");
        }
        let mut copied = node();
        copied["metadata"]["annotations"]["railwright.io/label-other"] = json!(text);
        assert!(label("other").of(&copied, &key()).unproven_mark);
        assert!(label("rails").of(&node(), &MarkKey::Absent).unproven_mark);
        let other = MarkKey::Is(SealKey::new(b"other"));
        assert!(label("rails").of(&node(), &other).unproven_mark);
        let unknown = MarkKey::Unknown("no rule".into());
        let now = label("rails").of(&node(), &unknown);
        assert_eq!(
            (now.mark, now.unproven_mark, now.unread_mark),
            (None, false, Some("no rule".into()))
        );
        assert_eq!(label("other").of(&node(), &unknown), FieldNow::default());
    }

    #[test]
    fn a_patch_names_nothing_but_what_it_changes() {
        let (key, label) = (SealKey::new(KEY_BYTES), label("example.org/rails"));
        let own = "railwright.io/label.example.org_rails";
        let text = mark("8").text(&format!("u1/{own}"), &key);
        assert!(
            text.starts_with(r#"{"spec":"train","set":"8","code":"#),
            "{text}"
        );
        let desired = json!({ "metadata": { "resourceVersion": "7", "annotations": { own: text }, "labels": { "example.org/rails": "8" } } });
        let patch = label.patch(&node(), Some("8"), Some((&mark("8"), &key)));
        assert_eq!(patch, desired);
        let gone = json!({ "metadata": { "resourceVersion": "7", "annotations": { own: null }, "labels": { "example.org/rails": null } } });
        assert_eq!(label.patch(&node(), None, None), gone);
        let taints = |field: NodeField, value: Option<&str>| {
            field.patch(&node(), value, None)["spec"]["taints"].clone()
        };
        let theirs = node()["spec"]["taints"].clone();
        assert_eq!(
            taints(taint("gpu", Effect::NoExecute), None),
            json!([theirs[0]]),
            "others keep every field"
        );
        assert_eq!(
            taints(taint("gpu", Effect::NoSchedule), Some("b")),
            json!([{ "key": "gpu", "value": "b", "effect": "NoSchedule" }, theirs[1]])
        );
        let added = taints(taint("rdma", Effect::NoSchedule), Some(""));
        assert_eq!(
            added,
            json!([theirs[0], theirs[1], { "key": "rdma", "effect": "NoSchedule" }])
        );
        let bare = json!({ "metadata": {}, "spec": { "taints": [{ "key": "gpu", "effect": "NoExecute" }] } });
        assert_eq!(
            taint("gpu", Effect::NoExecute).patch(&bare, None, None)["spec"],
            json!({ "taints": null })
        );
    }
}
