//! `node_allocatable`: what nodes of a Kubernetes cluster give to pods of one extended resource
//! (`rdma/rdma_shared_device_a`, `aliyun/erdma`, `nvidia.com/gpu`). It is waited for and checked,
//! never written: a device plugin tells it to the kubelet, once the driver on the host is right.
//! Which nodes are meant is the spec's to say: a node that is not there gives nothing.

use super::kubernetes_object::looks::{format_names_by_problem, read_object_list};
use super::kubernetes_object::manifest;
use super::kubernetes_object::paths::is_same_quantity;
use super::kubernetes_object::readiness::WITHIN_S;
use super::kubernetes_object::request::KubernetesRead;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::{read_flag_field, read_text_field};
use railwright_base::TargetKind;
use railwright_base::json_pointer::escape_step;
use railwright_base::text::{format_count, one_line};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kind.
pub struct NodeAllocatable;

/// Amounts are compared as numbers with a fraction are: whole up to here.
const MOST: u64 = 1 << 53;

/// The attribute.
const GIVES: &str = "allocatable";

/// What nodes are to give: `nodes` one `amount`, or `amounts` by node, each so many `times`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodeAllocatableBody {
    /// An extended resource, such as rdma/rdma_shared_device_a.
    resource: String,
    /// Names of nodes, such as [gpu-001, gpu-002].
    nodes: Option<Vec<String>>,
    /// Of at least 1, without quotes and units: 1000.
    amount: Option<u64>,
    /// The amount of each node, such as { gpu-001: 200, gpu-002: 400 }.
    amounts: Option<BTreeMap<String, u64>>,
    times: Option<u64>,
    within_s: Option<u32>,
    #[serde(default)]
    before_hosts: bool,
}

impl Body for NodeAllocatableBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        if !is_resource(&self.resource) {
            let message = format!("`{}` is no extended resource", one_line(&self.resource, 80));
            let help = "a domain in small letters other than kubernetes.io, `/`, and a name of at \
                        most 63: rdma/rdma_shared_device_a";
            errors.add("/resource", message, help);
        }
        let times = self.times.unwrap_or(1);
        match (&self.amounts, &self.nodes, self.amount) {
            (Some(amounts), None, None) if !amounts.is_empty() => {
                for (name, amount) in amounts {
                    let pointer = format!("/amounts/{}", escape_step(name));
                    check_node_name(&pointer, name, errors);
                    check_amount(&pointer, *amount, times, errors);
                }
            }
            (None, Some(nodes), Some(amount)) if !nodes.is_empty() => {
                for (index, name) in nodes.iter().enumerate() {
                    check_node_name(&format!("/nodes/{index}"), name, errors);
                }
                check_amount("/amount", amount, times, errors);
            }
            _ => errors.add(
                "",
                "which nodes give how much is not said",
                "{ nodes: [gpu-001], amount: 1000 }, or { amounts: { gpu-001: 200, gpu-002: 400 } \
                 }",
            ),
        }
        errors.check_range("times", self.times, 1..=1_000_000);
        errors.check_range("within_s", self.within_s, 1..=86_400);
    }
}

impl NodeAllocatableBody {
    /// How much each node has to give.
    fn compute_desired_amounts(&self) -> BTreeMap<String, u64> {
        let amount = self.amount.unwrap_or_default();
        let nodes = self.nodes.iter().flatten().map(|node| (node, amount));
        let amounts = self
            .amounts
            .iter()
            .flatten()
            .map(|(node, amount)| (node, *amount));
        let times = self.times.unwrap_or(1);
        let mut desired = BTreeMap::new();
        for (node, amount) in nodes.chain(amounts) {
            desired.insert(node.clone(), amount.saturating_mul(times));
        }
        desired
    }
}

impl ResourceKind for NodeAllocatable {
    fn name(&self) -> &'static str {
        "node_allocatable"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "resource").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<NodeAllocatableBody>()
    }

    fn reads(&self, _resource: &DesiredResource) -> Vec<Read> {
        vec![Read::Kubernetes(KubernetesRead::Nodes)]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let body = read_body::<NodeAllocatableBody>(&resource.body);
        let (device, desired) = (body.resource.as_str(), body.compute_desired_amounts());
        let goal = describe_desired_amounts(&desired);
        let actual = match read_object_list(&Read::Kubernetes(KubernetesRead::Nodes), answers) {
            Err(reason) => Reading::Unknown(reason),
            Ok(nodes) => {
                let lacking = desired.iter().filter(|(name, amount)| {
                    find_node_shortfall(device, **amount, nodes.get(*name)).is_some()
                });
                diff.lacking = lacking.map(|(name, _)| name.clone()).collect();
                build_allocatable_reading(device, &desired, &nodes, &goal)
            }
        };
        if !actual.is_unknown() && actual != Reading::is(goal.clone()) {
            diff.actions = vec![Action::Await {
                until: format!("{goal} of {device}"),
                within_s: body.within_s.unwrap_or(WITHIN_S),
            }];
        }
        diff.attributes.insert(
            GIVES.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(goal), actual).that_settles(),
        );
        diff
    }

    /// Where the driver of the hosts' devices comes from the cluster, no host can be checked before
    /// it is there.
    fn comes_before_hosts(&self, resource: &DesiredResource) -> bool {
        read_body::<NodeAllocatableBody>(&resource.body).before_hosts
    }

    /// Nothing was written, and nothing comes back.
    fn undo(
        &self,
        _last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> ResourceDiff {
        ResourceDiff::default()
    }
}

fn check_amount(pointer: &str, amount: u64, times: u64, errors: &mut BodyErrors) {
    if amount == 0 {
        let help = "a whole number of at least 1, without quotes and units: 1000";
        errors.add(pointer, "0 is no amount of devices", help);
    } else if amount.saturating_mul(times) > MOST {
        let message = format!("{amount} is more than any node gives");
        errors.add(
            pointer,
            message,
            &format!("at most {MOST}, `times` included"),
        );
    }
}

fn check_node_name(pointer: &str, name: &str, errors: &mut BodyErrors) {
    if !manifest::is_subdomain(name) {
        let name = one_line(name, 80);
        let message = format!("the API server knows no node named `{name}`");
        let help = "small letters, digits, `-` and `.`: as kubectl get nodes prints it";
        errors.add(pointer, message, help);
    }
}

/// As the API server takes one (kubernetes/kubernetes pkg/apis/core/v1/helper/helpers.go,
/// IsExtendedResourceName): a qualified name, none of Kubernetes' own, and one of which a quota can
/// be made.
fn is_resource(name: &str) -> bool {
    let Some((domain, name)) = name.split_once('/') else {
        return false;
    };
    let is_foreign = !domain.ends_with("kubernetes.io") && !domain.starts_with("requests.");
    let is_domain = manifest::is_subdomain(domain) && domain.len() + "requests.".len() <= 253;
    is_domain
        && is_foreign
        && (1..=63).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// `4 nodes give 1000`, `2 nodes give 200, 2 nodes give 400`.
fn describe_desired_amounts(desired: &BTreeMap<String, u64>) -> String {
    let mut amounts: BTreeMap<u64, usize> = BTreeMap::new();
    for amount in desired.values() {
        *amounts.entry(*amount).or_default() += 1;
    }
    let mut words = Vec::new();
    for (amount, nodes) in amounts {
        let verb = if nodes == 1 { "gives" } else { "give" };
        words.push(format!("{} {verb} {amount}", format_count(nodes, "node")));
    }
    words.join(", ")
}

fn build_allocatable_reading(
    resource: &str,
    desired: &BTreeMap<String, u64>,
    nodes: &Map<String, Value>,
    goal: &str,
) -> Reading {
    let mut short: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, amount) in desired {
        if let Some(why) = find_node_shortfall(resource, *amount, nodes.get(name)) {
            short.entry(why).or_default().push(name);
        }
    }
    if short.is_empty() {
        return Reading::is(goal);
    }
    if short.keys().all(|why| why == NOTHING) && short[NOTHING].len() == desired.len() {
        return Reading::is(format!(
            "0 of {} give it",
            format_count(desired.len(), "node")
        ));
    }
    let missing: usize = short.values().map(Vec::len).sum();
    let words = format!(
        "{} of {} give it; {}",
        desired.len() - missing,
        format_count(desired.len(), "node"),
        format_names_by_problem(&short)
    );
    Reading::is(one_line(&words, 600))
}

const NOTHING: &str = "nothing of it";

fn find_node_shortfall(resource: &str, amount: u64, node: Option<&Value>) -> Option<String> {
    let Some(node) = node else {
        return Some("no node of this name".to_owned());
    };
    match node.get("gives").and_then(|gives| gives.get(resource)) {
        None => Some(NOTHING.to_owned()),
        Some(gives) if !is_same_quantity(&amount.into(), gives) => Some(format!(
            "{} instead of {amount}",
            one_line(
                &gives
                    .as_str()
                    .map_or_else(|| gives.to_string(), str::to_owned),
                40
            )
        )),
        // What a kubelet said last stands there long after it fell silent.
        Some(_) if read_flag_field(node, "ready") != Some(true) => {
            Some("the node is not Ready".to_owned())
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerStatus, ReadResult, ResourceDeclaration};
    use railwright_base::{Address, Target};
    use serde_json::json;
    use std::sync::Arc;

    fn resource(nodes: Value) -> DesiredResource {
        let body = json!({ "resource": "rdma/a", "amounts": nodes });
        let target = Target {
            kind: TargetKind::Kube,
            name: "prod".into(),
        };
        let address = Address {
            target,
            path: Arc::new(["node_allocatable".to_owned(), "rdma/a".to_owned()]),
            attribute: None,
        };
        let declaration = ResourceDeclaration {
            kind: "node_allocatable".to_owned(),
            body,
            module: "m/x".to_owned(),
            places: Vec::new(),
        };
        DesiredResource {
            address,
            after: Vec::new(),
            declaration: declaration.into(),
        }
    }

    fn amounts(of_nodes: &[(&str, u64)]) -> BTreeMap<String, u64> {
        let of_nodes = of_nodes.iter();
        of_nodes
            .map(|(node, amount)| ((*node).to_owned(), *amount))
            .collect()
    }

    fn node(ready: bool, gives: Value) -> Value {
        json!({ "ready": ready, "gives": gives })
    }

    fn build_diff(desired: Value, nodes: &Value) -> ResourceDiff {
        let mut answers = ReadResults::default();
        let answer = ReadResult {
            status: AnswerStatus::Exit(0),
            out: nodes.to_string(),
        };
        answers.insert(Read::Kubernetes(KubernetesRead::Nodes).key(), answer);
        NodeAllocatable.diff(&resource(desired), &answers)
    }

    fn told(desired: Value, nodes: &Value) -> String {
        let diff = build_diff(desired, nodes);
        match diff.attributes[GIVES].actual.get(Plane::Running).unwrap() {
            Reading::Is(Value::String(text)) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_node_of_the_spec_has_to_give_what_is_desired() {
        let desired = json!({ "gpu1": 63, "gpu2": 63, "gpu3": 63, "gpu4": 63 });
        let all = |amount: &str| node(true, json!({ "rdma/a": amount, "rdma/b": "1" }));
        let good = json!({ "gpu1": all("63"), "gpu2": all("63"), "gpu3": all("63"), "gpu4": all("63"), "other": node(true, json!({})) });
        assert_eq!(told(desired.clone(), &good), "4 nodes give 63");
        assert!(build_diff(desired.clone(), &good).is_met());
        let some = json!({ "gpu1": all("63"), "gpu2": all("0"), "gpu3": node(false, json!({ "rdma/a": "63" })) });
        assert_eq!(
            told(desired.clone(), &some),
            "1 of 4 nodes give it; gpu2: 0 instead of 63; gpu4: no node of this name; gpu3: the \
             node is not Ready"
        );
        let diff = build_diff(desired.clone(), &some);
        assert_eq!(
            diff.actions,
            [Action::Await {
                until: "4 nodes give 63 of rdma/a".to_owned(),
                within_s: WITHIN_S
            }]
        );
        assert!(diff.only_waits());
        assert_eq!(
            diff.lacking.iter().map(String::as_str).collect::<Vec<_>>(),
            ["gpu2", "gpu3", "gpu4"]
        );
        let none = json!({ "gpu1": node(true, json!({})), "gpu2": node(true, json!({})), "gpu3": node(true, json!({})), "gpu4": node(true, json!({})) });
        assert_eq!(told(desired, &none), "0 of 4 nodes give it");
        let body =
            json!({ "resource": "aliyun/erdma", "amounts": { "a": 1, "b": 2 }, "times": 200 });
        assert_eq!(
            read_body::<NodeAllocatableBody>(&body).compute_desired_amounts(),
            amounts(&[("a", 200), ("b", 400)])
        );
        assert_eq!(
            describe_desired_amounts(&amounts(&[("a", 200), ("b", 400), ("c", 200)])),
            "2 nodes give 200, 1 node gives 400"
        );
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_nothing_is_waited_for() {
        let mut answers = ReadResults::default();
        let denied = ReadResult {
            status: AnswerStatus::Denied,
            out: "verb list, resource nodes\n".to_owned(),
        };
        answers.insert(Read::Kubernetes(KubernetesRead::Nodes).key(), denied);
        for answers in [answers, ReadResults::default()] {
            let diff = NodeAllocatable.diff(&resource(json!({ "gpu1": 1 })), &answers);
            assert!(diff.only_unknown() && diff.actions.is_empty());
        }
    }

    #[test]
    fn names_that_are_no_extended_resource_are_refused() {
        let errors = |resource: &str| {
            NodeAllocatable
                .check(&json!({ "resource": resource, "nodes": ["a"], "amount": 1 }))
                .len()
        };
        assert_eq!(
            [
                errors("rdma/rdma_a"),
                errors("aliyun/erdma"),
                errors("nvidia.com/gpu-h800")
            ],
            [0, 0, 0]
        );
        assert_eq!(
            [
                errors("cpu"),
                errors("a/b/c"),
                errors("a/-b"),
                errors("rdma/")
            ],
            [1, 1, 1, 1]
        );
        assert_eq!(
            [
                errors("RDMA/a"),
                errors("a_b/c"),
                errors("node.kubernetes.io/a"),
                errors("requests.nvidia.com/gpu")
            ],
            [1, 1, 1, 1]
        );
    }

    #[test]
    fn amounts_and_nodes_that_are_none_are_found_at_their_places() {
        let found = |body: Value| -> Vec<String> {
            let mut body = body;
            body["resource"] = json!("a/b");
            NodeAllocatable
                .check(&body)
                .into_iter()
                .map(|error| error.pointer)
                .collect()
        };
        assert_eq!(found(json!({ "nodes": ["a.b-1"], "amount": 1 })), [""; 0]);
        assert_eq!(found(json!({ "nodes": [], "amount": 1 })), [""]);
        assert_eq!(found(json!({ "amounts": {} })), [""]);
        assert_eq!(found(json!({ "amounts": { "a": 1 }, "amount": 1 })), [""]);
        assert_eq!(
            found(json!({ "amounts": { "b": 2, "d": 0 }, "within_s": 0 })),
            ["/amounts/d", "/within_s"]
        );
        for amount in [json!(-1), json!("1k"), json!(1.5)] {
            assert_eq!(found(json!({ "amounts": { "a": amount } })), ["/amounts/a"]);
        }
        assert_eq!(
            found(json!({ "nodes": ["gpu_1", "gpu-2", "GPU-3"], "amount": 0 })),
            ["/nodes/0", "/nodes/2", "/amount"]
        );
        assert_eq!(found(json!({ "nodes": ["a"], "amount": "8" })), ["/amount"]);
        assert_eq!(found(json!({ "nodes": [4], "amount": 8 })), ["/nodes/0"]);
        assert_eq!(found(json!({ "amounts": { "a/b": 1 } })), ["/amounts/a~1b"]);
        assert_eq!(
            found(json!({ "nodes": ["a"], "amount": 1u64 << 40, "times": 1_000_000 })),
            ["/amount"]
        );
    }
}
