//! Nodes of a cluster and their cordons, as far as emptying a node goes by them; `node_pods` has the
//! pods.

use super::looks::read_object_list;
use super::ownership::{MANAGER, find_field_managers};
use super::paths::{FieldPathStep, parse_quantity};
use super::request::KubernetesRead;
use crate::json_fields::{read_text_at, read_text_field};
use crate::{Read, ReadResults};
use railwright_base::{MachineId, Reason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The annotation of a node that we cordoned, and so may uncordon. It stays where somebody gives
/// the node back by hand, and then says nothing of a cordon that somebody else sets later: that
/// `unschedulable` is ours, the server knows.
pub const CORDONED: &str = "railwright.io/cordoned";

/// One node, as `KubernetesRead::Nodes` tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeNow {
    /// Its kubelet says that it is well.
    pub ready: bool,
    /// Pods are put on it.
    pub schedulable: bool,
    /// The text of our mark, where it bears one and is not cordoned by somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<String>,
    /// Extended resources that pods can have of it.
    pub gives: BTreeMap<String, Value>,
    /// The machine-id(5) that its kubelet found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
}

impl NodeNow {
    /// Of the node as the API server has it.
    pub fn of(node: &Value) -> Self {
        let annotations = node.pointer("/metadata/annotations");
        let schedulable =
            node.pointer("/spec/unschedulable").and_then(Value::as_bool) != Some(true);
        NodeNow {
            ready: is_node_ready(node),
            schedulable,
            cordoned: annotations
                .and_then(|all| read_text_field(all, CORDONED))
                .filter(|_| schedulable || is_cordoned_by_us(node))
                .map(str::to_owned),
            gives: list_extended_resources(node)
                .map(|(name, amount)| (name.clone(), amount.clone()))
                .collect(),
            machine: read_text_at(node, "/status/nodeInfo/machineID")
                .and_then(|id| id.parse().ok()),
        }
    }

    /// Our mark for it, by this run of a spec. Of a node that still bears an earlier one it was
    /// never checked that it gives what it did then.
    pub fn cordon_of(&self, run: &str, spec: &str) -> Cordon {
        let mut gives = self.gives.clone();
        for (name, gave) in self
            .cordoned
            .as_deref()
            .map(Cordon::read)
            .unwrap_or_default()
            .gives
        {
            if gives.get(&name).map_or(0, parse_resource_amount) < parse_resource_amount(&gave) {
                gives.insert(name, gave);
            }
        }
        Cordon {
            run: run.to_owned(),
            spec: Some(spec.to_owned()),
            gives,
        }
    }

    /// What the mark of a spec's run says where the node is still out of service by it. One that
    /// somebody gave back by hand is not.
    pub fn left_cordoned(&self, spec: &str) -> Option<Cordon> {
        self.cordoned
            .as_deref()
            .filter(|_| !self.schedulable)
            .map(Cordon::read)
            .filter(|cordon| cordon.is_of(spec))
    }

    /// What it lacks of what it gave when we cordoned it, in words; nothing when all is back.
    pub fn lacks(&self, before: &Cordon) -> Option<String> {
        if !self.ready {
            return Some("it is not Ready".to_owned());
        }
        let mut short = Vec::new();
        for (name, gave) in &before.gives {
            let gives = self.gives.get(name).map_or(0, parse_resource_amount);
            let gave = parse_resource_amount(gave);
            if gives < gave {
                short.push(format!("{gives} {name} instead of {gave}"));
            }
        }
        (!short.is_empty()).then(|| short.join(", "))
    }
}

/// True where the kubelet of a node says that it is Ready.
pub(crate) fn is_node_ready(node: &Value) -> bool {
    let Some(Value::Array(conditions)) = node.pointer("/status/conditions") else {
        return false;
    };
    conditions
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The extended resources of a node, with how much of each it has to give.
pub(crate) fn list_extended_resources(node: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let allocatable = node
        .pointer("/status/allocatable")
        .and_then(Value::as_object);
    let resources = allocatable.into_iter().flatten();
    resources.filter(|(name, _)| name.contains('/'))
}

/// Whoever applies the same value holds it beside us, and wants it still. A server that names
/// nobody leaves only our mark.
fn is_cordoned_by_us(node: &Value) -> bool {
    let path = ["spec", "unschedulable"].map(|name| FieldPathStep::Field(name.to_owned()));
    find_field_managers(node, &path)
        .iter()
        .all(|holder| holder.manager == MANAGER)
}

/// The nodes of a cluster by name, or why they are unknown.
pub fn read_cluster_nodes(answers: &ReadResults) -> Result<BTreeMap<String, NodeNow>, Reason> {
    let all = read_object_list(&Read::Kubernetes(KubernetesRead::Nodes), answers)?;
    serde_json::from_value(Value::Object(all))
        .map_err(|_| "the server's answer is no list of nodes".into())
}

/// Extended resources are whole numbers (kubernetes/kubernetes: pkg/apis/core/validation,
/// `ValidateResourceQuantityValue`), which the API server tells in their shortest form: 1000 as
/// `1k`.
fn parse_resource_amount(value: &Value) -> u64 {
    value
        .as_str()
        .and_then(parse_quantity)
        .or_else(|| value.as_f64())
        .map_or(0, |number| number as u64)
}

/// What our mark on a node says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cordon {
    /// The run that cordoned it.
    pub run: String,
    /// The `cluster` of the run's spec: a node is given back by the spec that took it out of
    /// service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// What the node gave then: it is back when it gives that again.
    #[serde(default)]
    pub gives: BTreeMap<String, Value>,
}

impl Cordon {
    /// Reads a mark. One that nobody can read still is ours, and says nothing of what the node
    /// gave.
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Whether a run of this spec made it.
    pub fn is_of(&self, spec: &str) -> bool {
        self.spec.as_deref().is_none_or(|of| of == spec)
    }

    /// The mark's text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(ready: bool, gives: &Value) -> NodeNow {
        serde_json::from_value(json!({ "ready": ready, "schedulable": false, "gives": gives }))
            .unwrap()
    }

    #[test]
    fn a_node_is_back_when_it_is_ready_and_gives_what_it_gave() {
        let before = Cordon {
            run: "r1".to_owned(),
            spec: None,
            gives: node(true, &json!({ "nvidia.com/gpu": "8", "rdma/a": "63" })).gives,
        };
        let before = Cordon::read(&before.text());
        assert_eq!(
            node(false, &json!({ "nvidia.com/gpu": "8", "rdma/a": "63" }))
                .lacks(&before)
                .as_deref(),
            Some("it is not Ready")
        );
        let short = node(true, &json!({ "nvidia.com/gpu": "7" })).lacks(&before);
        assert_eq!(
            short.as_deref(),
            Some("7 nvidia.com/gpu instead of 8, 0 rdma/a instead of 63")
        );
        assert_eq!(
            node(
                true,
                &json!({ "nvidia.com/gpu": "8", "rdma/a": "63", "rdma/b": "1" })
            )
            .lacks(&before),
            None
        );
        assert_eq!(
            node(true, &json!({})).lacks(&Cordon::read("not ours to read")),
            None
        );
    }

    #[test]
    fn a_cordon_that_somebody_else_set_is_not_ours_though_our_mark_is_there_still() {
        let left = |unschedulable: bool, manager: &str| {
            let by = json!({ "manager": manager, "operation": "Update", "fieldsV1": { "f:spec": { "f:unschedulable": {} } } });
            let kubelet = json!({ "manager": "kubelet", "operation": "Update", "fieldsV1": { "f:spec": { "f:podCIDR": {} } } });
            let metadata =
                json!({ "annotations": { CORDONED: "{}" }, "managedFields": [kubelet, by] });
            let node = NodeNow::of(
                &json!({ "metadata": metadata, "spec": { "unschedulable": unschedulable } }),
            );
            (
                node.left_cordoned("train").is_some(),
                node.cordoned.is_some(),
            )
        };
        assert_eq!(left(true, MANAGER), (true, true));
        assert_eq!(left(true, "kubectl-cordon"), (false, false));
        assert_eq!(
            left(false, "kubectl-uncordon"),
            (false, true),
            "our mark is still to be taken"
        );
    }

    #[test]
    fn a_mark_that_was_left_is_not_forgotten() {
        let mut now = node(true, &json!({ "nvidia.com/gpu": "0", "rdma/a": "1k" }));
        now.cordoned =
            Some(r#"{"run":"r1","gives":{"nvidia.com/gpu":"8","rdma/a":"63"}}"#.to_owned());
        let mark = now.cordon_of("r2", "train");
        assert!(mark.is_of("train") && !mark.is_of("other"));
        assert_eq!(
            (mark.run.as_str(), json!(mark.gives)),
            ("r2", json!({ "nvidia.com/gpu": "8", "rdma/a": "1k" }))
        );
        assert_eq!(
            node(true, &json!({ "nvidia.com/gpu": "8", "rdma/a": "999" }))
                .lacks(&mark)
                .as_deref(),
            Some("999 rdma/a instead of 1000")
        );
    }
}
