//! What the nodes of a cluster have left of extended resources, as `KubernetesRead::Room` tells it:
//! what each gives, and what pods on it ask for. Nobody but the scheduler says so otherwise, and it
//! says only that it is not enough.

use super::pod::{compute_extended_requests, parse_extended_quantity};
use crate::json_fields::read_text_at;
use crate::kubernetes_object::nodes::{is_node_ready, list_extended_resources};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// By node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The nodes.
    pub nodes: BTreeMap<String, NodeRoom>,
}

/// Of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRoom {
    /// Its kubelet says that it is well.
    pub ready: bool,
    /// Pods are put on it.
    pub schedulable: bool,
    /// What it gives, by resource.
    pub gives: BTreeMap<String, u64>,
    /// What its pods ask for, by resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, u64>,
}

impl Room {
    /// Of all nodes and all pods, as the API server has them.
    pub fn add_node(&mut self, node: &Value) {
        let name = read_text_at(node, "/metadata/name").unwrap_or_default();
        let entry = self.nodes.entry(name.to_owned()).or_default();
        entry.ready = is_node_ready(node);
        entry.schedulable =
            node.pointer("/spec/unschedulable").and_then(Value::as_bool) != Some(true);
        entry.gives = list_extended_resources(node)
            .map(|(name, value)| (name.clone(), parse_extended_quantity(value)))
            .collect();
    }

    /// Counts what a pod asks of its node; nothing where it is on none, or through.
    pub fn used_by(pod: &Value) -> Option<(String, BTreeMap<String, u64>)> {
        let node = read_text_at(pod, "/spec/nodeName").filter(|node| !node.is_empty())?;
        if let Some("Succeeded" | "Failed") = read_text_at(pod, "/status/phase") {
            return None;
        }
        let asks = compute_extended_requests(pod);
        (!asks.is_empty()).then(|| (node.to_owned(), asks))
    }

    /// Adds what a pod asks to what is used of its node; nothing for an unknown node.
    pub fn uses(&mut self, node: &str, asks: BTreeMap<String, u64>) {
        let Some(entry) = self.nodes.get_mut(node) else {
            return;
        };
        for (name, value) in asks {
            let used = entry.used.entry(name).or_default();
            *used = used.saturating_add(value);
        }
    }
}

impl NodeRoom {
    /// What is left of a resource; nothing where it gives none of it.
    pub fn free(&self, resource: &str) -> Option<u64> {
        let gives = *self.gives.get(resource)?;
        Some(gives.saturating_sub(self.used.get(resource).copied().unwrap_or_default()))
    }
}
