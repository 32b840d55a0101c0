//! `node_allocatable`: what nodes of a Kubernetes cluster give to pods of one extended resource
//! (`rdma/rdma_shared_device_a`, `aliyun/erdma`, `nvidia.com/gpu`). It is waited for and checked,
//! never written: a device plugin tells it to the kubelet, once the driver on the host is right.
//! Which nodes are meant is the spec's to say: a node that is not there gives nothing.

use super::fields::Fields;
use super::kubernetes_object::looks::{format_names_by_problem, read_object_list};
use super::kubernetes_object::manifest;
use super::kubernetes_object::paths::is_same_quantity;
use super::kubernetes_object::readiness::WITHIN_S;
use super::kubernetes_object::request::KubernetesRead;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Plane, Read, ReadResults, Reading,
    ResourceKind,
};
use crate::body::{read_flag_field, read_text_field};
use railwright_base::TargetKind;
use railwright_base::json_pointer::escape_step;
use railwright_base::text::{format_count, one_line};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kind.
pub struct NodeAllocatable;

/// Amounts are compared as numbers with a fraction are: whole up to here.
const MOST: u64 = 1 << 53;

/// The attribute.
const GIVES: &str = "allocatable";

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

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(
            body,
            &[
                "resource",
                "nodes",
                "amount",
                "amounts",
                "times",
                "within_s",
                "before_hosts",
            ],
        );
        if let Some(resource) = fields
            .text("resource", true)
            .filter(|resource| !is_resource(resource))
        {
            let message = format!("`{}` is no extended resource", one_line(resource, 80));
            let help = "a domain in small letters other than kubernetes.io, `/`, and a name of at \
                        most 63: rdma/rdma_shared_device_a";
            fields.error("/resource", message, Some(help.to_owned()));
        }
        check_amounts(body, &mut fields);
        fields.number("times", 1..=1_000_000);
        fields.number("within_s", 1..=86_400);
        fields.flag("before_hosts");
        fields.finish()
    }

    fn reads(&self, _wish: &DesiredResource) -> Vec<Read> {
        vec![Read::Kubernetes(KubernetesRead::Nodes)]
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let (Some(resource), Some(wanted)) =
            (wish.text("resource"), compute_desired_amounts(&wish.body))
        else {
            return assessment;
        };
        let goal = describe_desired_amounts(&wanted);
        let found = match read_object_list(&Read::Kubernetes(KubernetesRead::Nodes), answers) {
            Err(reason) => Reading::Unknown(reason),
            Ok(nodes) => {
                let lacking = wanted.iter().filter(|(name, amount)| {
                    find_node_shortfall(resource, amount, nodes.get(*name)).is_some()
                });
                assessment.lacking = lacking.map(|(name, _)| name.clone()).collect();
                build_allocatable_reading(resource, &wanted, &nodes, &goal)
            }
        };
        if !found.is_unknown() && found != Reading::is(goal.clone()) {
            let within_s = wish
                .body
                .get("within_s")
                .and_then(Value::as_u64)
                .and_then(|seconds| u32::try_from(seconds).ok());
            assessment.actions = vec![Action::Await {
                until: format!("{goal} of {resource}"),
                within_s: within_s.unwrap_or(WITHIN_S),
            }];
        }
        assessment.attributes.insert(
            GIVES.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(goal), found).that_settles(),
        );
        assessment
    }

    /// Where the driver of the hosts' devices comes from the cluster, no host can be proven before
    /// it is there.
    fn comes_before_hosts(&self, wish: &DesiredResource) -> bool {
        wish.body.get("before_hosts") == Some(&Value::Bool(true))
    }

    /// Nothing was written, and nothing comes back.
    fn undo(
        &self,
        _last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> Assessment {
        Assessment::default()
    }
}

/// Which nodes give how much, each wrong one at its place.
fn check_amounts(body: &Value, fields: &mut Fields) {
    let times = body.get("times").and_then(Value::as_u64).unwrap_or(1);
    match (
        fields.get("amounts"),
        fields.get("nodes"),
        fields.get("amount"),
    ) {
        (Some(Value::Object(amounts)), None, None) if !amounts.is_empty() => {
            for (name, amount) in amounts {
                let pointer = format!("/amounts/{}", escape_step(name));
                check_node_name(&pointer, Some(name), fields);
                check_amount(&pointer, amount, times, fields);
            }
        }
        (None, Some(Value::Array(nodes)), Some(amount)) if !nodes.is_empty() => {
            for (index, name) in nodes.iter().enumerate() {
                check_node_name(&format!("/nodes/{index}"), name.as_str(), fields);
            }
            check_amount("/amount", amount, times, fields);
        }
        _ => {
            let help = "{ nodes: [gpu-001], amount: 1000 }, or { amounts: \
                        { gpu-001: 200, gpu-002: 400 } }";
            fields.error(
                "",
                "which nodes give how much is not said",
                Some(help.to_owned()),
            );
        }
    }
}

fn check_amount(pointer: &str, amount: &Value, times: u64, fields: &mut Fields) {
    let number = amount.as_u64().unwrap_or(0);
    if number == 0 {
        let message = format!(
            "{} is no amount of devices",
            one_line(&amount.to_string(), 40)
        );
        let help = "a whole number of at least 1, without quotes and units: 1000";
        fields.error(pointer, message, Some(help.to_owned()));
    } else if number.saturating_mul(times) > MOST {
        fields.error(
            pointer,
            format!("{amount} is more than any node gives"),
            Some(format!("at most {MOST}, `times` included")),
        );
    }
}

fn check_node_name(pointer: &str, name: Option<&str>, fields: &mut Fields) {
    if name.is_some_and(manifest::is_subdomain) {
        return;
    }
    let message = format!(
        "the API server knows no node named `{}`",
        one_line(name.unwrap_or("(no text)"), 80)
    );
    let help = "small letters, digits, `-` and `.`: as kubectl get nodes prints it";
    fields.error(pointer, message, Some(help.to_owned()));
}

/// How much each node has to give: `nodes` with one `amount`, or `amounts` by node, each so many
/// `times`.
fn compute_desired_amounts(body: &Value) -> Option<Map<String, Value>> {
    let times = body.get("times").and_then(Value::as_u64).unwrap_or(1);
    let mut amounts = parse_declared_amounts(body)?;
    for amount in amounts.values_mut() {
        *amount = Value::from(amount.as_u64()?.saturating_mul(times));
    }
    Some(amounts)
}

fn parse_declared_amounts(body: &Value) -> Option<Map<String, Value>> {
    match (body.get("amounts"), body.get("nodes"), body.get("amount")) {
        (Some(Value::Object(amounts)), None, None) if amounts.values().all(Value::is_u64) => {
            Some(amounts.clone())
        }
        (None, Some(Value::Array(nodes)), Some(amount)) if amount.is_u64() => nodes
            .iter()
            .map(|node| Some((node.as_str()?.to_owned(), amount.clone())))
            .collect(),
        _ => None,
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
fn describe_desired_amounts(wanted: &Map<String, Value>) -> String {
    let mut amounts: BTreeMap<u64, usize> = BTreeMap::new();
    for amount in wanted.values().filter_map(Value::as_u64) {
        *amounts.entry(amount).or_default() += 1;
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
    wanted: &Map<String, Value>,
    nodes: &Map<String, Value>,
    goal: &str,
) -> Reading {
    let mut short: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, amount) in wanted {
        if let Some(why) = find_node_shortfall(resource, amount, nodes.get(name)) {
            short.entry(why).or_default().push(name);
        }
    }
    if short.is_empty() {
        return Reading::is(goal);
    }
    if short.keys().all(|why| why == NOTHING) && short[NOTHING].len() == wanted.len() {
        return Reading::is(format!(
            "0 of {} give it",
            format_count(wanted.len(), "node")
        ));
    }
    let missing: usize = short.values().map(Vec::len).sum();
    let words = format!(
        "{} of {} give it; {}",
        wanted.len() - missing,
        format_count(wanted.len(), "node"),
        format_names_by_problem(&short)
    );
    Reading::is(one_line(&words, 600))
}

const NOTHING: &str = "nothing of it";

fn find_node_shortfall(resource: &str, amount: &Value, node: Option<&Value>) -> Option<String> {
    let Some(node) = node else {
        return Some("no node of this name".to_owned());
    };
    match node.get("gives").and_then(|gives| gives.get(resource)) {
        None => Some(NOTHING.to_owned()),
        Some(gives) if !is_same_quantity(amount, gives) => Some(format!(
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
    use crate::{AnswerStatus, ReadResult, Want};
    use railwright_base::{Address, Target};
    use serde_json::json;
    use std::sync::Arc;

    fn wish(nodes: Value) -> DesiredResource {
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
        let want = Want {
            kind: "node_allocatable".to_owned(),
            body,
            module: "m/x".to_owned(),
            places: Vec::new(),
        };
        DesiredResource {
            address,
            after: Vec::new(),
            want: want.into(),
        }
    }

    fn node(ready: bool, gives: Value) -> Value {
        json!({ "ready": ready, "gives": gives })
    }

    fn assessed(wanted: Value, nodes: &Value) -> Assessment {
        let mut answers = ReadResults::default();
        let answer = ReadResult {
            status: AnswerStatus::Exit(0),
            out: nodes.to_string(),
        };
        answers.insert(Read::Kubernetes(KubernetesRead::Nodes).key(), answer);
        NodeAllocatable.assess(&wish(wanted), &answers)
    }

    fn told(wanted: Value, nodes: &Value) -> String {
        let assessment = assessed(wanted, nodes);
        match assessment.attributes[GIVES]
            .found
            .get(Plane::Running)
            .unwrap()
        {
            Reading::Is(Value::String(text)) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_node_of_the_spec_has_to_give_what_is_wanted() {
        let wanted = json!({ "gpu1": 63, "gpu2": 63, "gpu3": 63, "gpu4": 63 });
        let all = |amount: &str| node(true, json!({ "rdma/a": amount, "rdma/b": "1" }));
        let good = json!({ "gpu1": all("63"), "gpu2": all("63"), "gpu3": all("63"), "gpu4": all("63"), "other": node(true, json!({})) });
        assert_eq!(told(wanted.clone(), &good), "4 nodes give 63");
        assert!(assessed(wanted.clone(), &good).is_met());
        let some = json!({ "gpu1": all("63"), "gpu2": all("0"), "gpu3": node(false, json!({ "rdma/a": "63" })) });
        assert_eq!(
            told(wanted.clone(), &some),
            "1 of 4 nodes give it; gpu2: 0 instead of 63; gpu4: no node of this name; gpu3: the \
             node is not Ready"
        );
        let assessment = assessed(wanted.clone(), &some);
        assert_eq!(
            assessment.actions,
            [Action::Await {
                until: "4 nodes give 63 of rdma/a".to_owned(),
                within_s: WITHIN_S
            }]
        );
        assert!(assessment.only_waits());
        assert_eq!(
            assessment
                .lacking
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            ["gpu2", "gpu3", "gpu4"]
        );
        let none = json!({ "gpu1": node(true, json!({})), "gpu2": node(true, json!({})), "gpu3": node(true, json!({})), "gpu4": node(true, json!({})) });
        assert_eq!(told(wanted, &none), "0 of 4 nodes give it");
        let body =
            json!({ "resource": "aliyun/erdma", "amounts": { "a": 1, "b": 2 }, "times": 200 });
        assert_eq!(
            compute_desired_amounts(&body),
            json!({ "a": 200, "b": 400 }).as_object().cloned()
        );
        assert_eq!(
            describe_desired_amounts(json!({ "a": 200, "b": 400, "c": 200 }).as_object().unwrap()),
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
            let assessment = NodeAllocatable.assess(&wish(json!({ "gpu1": 1 })), &answers);
            assert!(assessment.only_unknown() && assessment.actions.is_empty());
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
            found(
                json!({ "amounts": { "a": -1, "b": 2, "c": "1k", "d": 0, "e": 1.5 }, "within_s": 0 })
            ),
            [
                "/amounts/a",
                "/amounts/c",
                "/amounts/d",
                "/amounts/e",
                "/within_s"
            ]
        );
        assert_eq!(
            found(json!({ "nodes": ["gpu_1", "gpu-2", "GPU-3", 4], "amount": "8" })),
            ["/nodes/0", "/nodes/2", "/nodes/3", "/amount"]
        );
        assert_eq!(found(json!({ "amounts": { "a/b": 1 } })), ["/amounts/a~1b"]);
        assert_eq!(
            found(json!({ "nodes": ["a"], "amount": 1u64 << 40, "times": 1_000_000 })),
            ["/amount"]
        );
    }
}
