//! The mark by which a label or a taint of a node is known as ours: an annotation of the node,
//! written in the same request. That we set a field is nothing that the API keeps: once another has
//! changed it, the field is theirs alone. The mark says what we set and what was there before, so
//! that a node is set right whenever it joins or leaves the resource, and what somebody changed
//! since is left to them.
//!
//! A kubelet may write annotations of its own node, and neither its taints nor every label
//! (kubernetes.io/docs/reference/access-authn-authz/admission-controllers, "NodeRestriction"). So a
//! mark counts only with a code over the node's UID, the annotation's name and all that it says,
//! made with a key that no kubelet can read.

use super::field::NodeField;
use crate::json_fields::read_text_at;
use crate::kubernetes_object::access::NAMESPACE;
use crate::kubernetes_object::request::ObjectName;
use railwright_base::{Digest, Reason, SealKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What our mark says.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct NodeOwnershipAnnotation {
    /// The `cluster` of the spec that set it.
    pub spec: String,
    /// The value that it set.
    pub set: String,
    /// The value that was there before; nothing where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

/// A mark as the annotation has it.
#[derive(Serialize, Deserialize)]
struct CodedMark {
    #[serde(flatten)]
    mark: NodeOwnershipAnnotation,
    code: String,
}

impl NodeOwnershipAnnotation {
    /// Reads the mark of a node's annotation. What cannot be read, or bears no code that was made
    /// with this key for this place, is none of ours.
    pub(super) fn read(text: &str, place: &str, key: &SealKey) -> Option<Self> {
        let CodedMark { mark, code } = serde_json::from_str(text).ok()?;
        (code == mark.code(place, key)).then_some(mark)
    }

    /// The text of the annotation.
    pub(super) fn text(&self, place: &str, key: &SealKey) -> String {
        let coded = CodedMark {
            mark: self.clone(),
            code: self.code(place, key),
        };
        serde_json::to_string(&coded).unwrap_or_default()
    }

    fn code(&self, place: &str, key: &SealKey) -> String {
        key.seal(place, &serde_json::to_vec(self).unwrap_or_default())
    }
}

/// What the code of a mark holds for: one annotation of one node.
pub(super) fn build_mark_place(node: &Value, annotation: &str) -> String {
    let uid = read_text_at(node, "/metadata/uid").unwrap_or_default();
    format!("{uid}/{annotation}")
}

/// The key of the codes, as far as it can be read.
#[derive(Clone)]
pub enum MarkKey {
    /// It is this.
    Is(SealKey),
    /// None was made yet, so no mark is ours.
    Absent,
    /// Nobody knows whose the marks are.
    Unknown(Reason),
}

/// The Secret with the key: one for all specs of a cluster, so that each knows the marks of the
/// others. No Lease and no record of a spec has such a name: theirs begin with `railwright-`.
pub fn build_mark_key_object_name() -> ObjectName {
    ObjectName {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(NAMESPACE.to_owned()),
        name: "railwright.node-marks".to_owned(),
    }
}

/// The name of an annotation has at most so many characters after its prefix.
const NAME_LIMIT: usize = 63;

/// The annotation of a label or a taint. A prefix of a key has no `_` and an effect neither, so
/// that each field has its own.
pub fn build_ownership_annotation_name(field: &NodeField) -> String {
    let (word, key, effect) = match field {
        NodeField::Label { key } => ("label", key, String::new()),
        NodeField::Taint { key, effect } => ("taint", key, format!("_{}", effect.word())),
    };
    let whole = match key.split_once('/') {
        Some((prefix, name)) => format!(".{prefix}_{name}{effect}"),
        None => format!("-{key}{effect}"),
    };
    match word.len() + whole.len() <= NAME_LIMIT {
        true => format!("railwright.io/{word}{whole}"),
        false => format!(
            "railwright.io/{word}_{}",
            Digest::of_bytes(whole.as_bytes()).short()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_field::field::Effect;

    #[test]
    fn each_field_has_its_own_name() {
        let label = |key: &str| {
            build_ownership_annotation_name(&NodeField::Label {
                key: key.to_owned(),
            })
        };
        let taint = |key: &str, effect| {
            build_ownership_annotation_name(&NodeField::Taint {
                key: key.to_owned(),
                effect,
            })
        };
        assert_eq!(
            label("railwright.io/rdma"),
            "railwright.io/label.railwright.io_rdma"
        );
        assert_eq!(
            taint("nvidia.com/gpu", Effect::NoSchedule),
            "railwright.io/taint.nvidia.com_gpu_NoSchedule"
        );
        let (long, longer) = (
            format!("{}/a", "a".repeat(60)),
            format!("{}/b", "a".repeat(60)),
        );
        let names = [
            label("a/b"),
            label("a_b"),
            label("a.b"),
            label(&long),
            label(&longer),
            taint("a/b", Effect::NoSchedule),
            taint("a/b", Effect::NoExecute),
            taint("a_b", Effect::NoExecute),
            taint(&long, Effect::NoExecute),
            taint(&long, Effect::NoSchedule),
        ];
        for (n, name) in names.iter().enumerate() {
            let (_, local) = name.split_once('/').unwrap();
            assert!(
                local.len() <= 63
                    && local.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && !names[..n].contains(name),
                "{name}"
            );
        }
    }
}
