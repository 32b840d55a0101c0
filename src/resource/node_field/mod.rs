//! `node_label` and `node_taint`: one label or one taint on nodes of a Kubernetes cluster. A node
//! is made by its kubelet, so it is never ours to apply as a whole or to delete: one field of it is
//! set, and what is beside it stays with whoever has it.
//!
//! - What was never ours and has another value is a conflict, until `adopt: true` takes it over;
//!   what is ours and was changed is drift.
//! - What is ours is known by a mark with a code; without one it is somebody else's.
//! - Nodes that leave the resource, and all of them when it goes, are as they were before us, save
//!   where somebody else changed it since.
//! - Whatever the number of labels and taints, the nodes are listed once.

mod body;
mod diff;
pub mod edit;
pub mod field;
pub mod mark;

use self::body::{NodeFieldKind, NodeFieldRequest, NodeLabelBody, NodeTaintBody};
use self::mark::build_mark_key_object_name;
use super::kubernetes_object::access::ApiVerb;
use super::kubernetes_object::request::{KubernetesRead, ObjectName};
use super::{DesiredResource, Read, ReadResults, ResourceDiff, ResourceKind};
use crate::body::BodyType;
use railwright_base::TargetKind;
use serde_json::Value;

pub use self::field::{Effect, NodeField};

/// One of the two kinds.
pub struct OfNodes(NodeFieldKind);

/// `node_label`.
pub const LABEL: OfNodes = OfNodes(NodeFieldKind::Label);

/// `node_taint`.
pub const TAINT: OfNodes = OfNodes(NodeFieldKind::Taint);

/// A node as an object of the API.
pub fn build_node_object_name(name: &str) -> ObjectName {
    ObjectName {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

/// What a mark takes besides its node: the key of its code is made with the first one, by an apply.
pub fn list_mark_key_uses() -> [(ObjectName, ApiVerb); 2] {
    [ApiVerb::Patch, ApiVerb::Create].map(|verb| (build_mark_key_object_name(), verb))
}

impl ResourceKind for OfNodes {
    fn name(&self) -> &'static str {
        match self.0 {
            NodeFieldKind::Label => "node_label",
            NodeFieldKind::Taint => "node_taint",
        }
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    /// It stands in the mark by which ours are known.
    fn names_cluster(&self) -> bool {
        true
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(match NodeFieldRequest::of(self.0, body).field {
            NodeField::Label { key } => key,
            NodeField::Taint { key, effect } => format!("{key}:{}", effect.word()),
        })
    }

    fn body_type(&self) -> BodyType {
        match self.0 {
            NodeFieldKind::Label => BodyType::of::<NodeLabelBody>(),
            NodeFieldKind::Taint => BodyType::of::<NodeTaintBody>(),
        }
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let field = NodeFieldRequest::of(self.0, &resource.body).field;
        vec![Read::Kubernetes(KubernetesRead::NodeField(field))]
    }

    /// Each node is patched, now and when it leaves the spec. The first mark comes with the key of
    /// its code.
    fn changes(&self, resource: &DesiredResource, removal: bool) -> Vec<(ObjectName, ApiVerb)> {
        let nodes = NodeFieldRequest::of(self.0, &resource.body).values;
        let mut changes: Vec<(ObjectName, ApiVerb)> = nodes
            .keys()
            .map(|name| (build_node_object_name(name), ApiVerb::Patch))
            .collect();
        if !removal {
            changes.extend(list_mark_key_uses());
        }
        changes
    }

    /// By the mark that each of our labels and taints has.
    fn knows_its_own(&self) -> bool {
        true
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        diff::diff_node_field(&NodeFieldRequest::of(self.0, &resource.body), answers)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let asked = NodeFieldRequest::of(self.0, &last_applied.body);
        ResourceDiff {
            before: before.clone(),
            ..diff::plan_node_field_undo(&asked, answers)
        }
    }

    fn undo_keeps_changes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod mark_tests;
#[cfg(test)]
mod tests;
