//! What rules look at of a job: what was asked for, and what stands in the objects that the
//! template made of it.

use super::asked::RequestPlaces;
use super::environment::Variable;
use super::offer::{Offer, is_rdma, is_shared};
use super::request::JobRequest;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::catalog::job::image_of;
use railwright_knowledge::rules::{JobSubject, SubjectFacts};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A container of the objects.
struct Container<'a> {
    name: &'a str,
    requests: Map<String, Value>,
    limits: Map<String, Value>,
}

/// What is looked at.
pub(super) struct JobSubjectInputs<'a> {
    pub request: &'a JobRequest,
    /// GPUs of a pod.
    pub gpus: u32,
    pub ray_version: Option<&'a str>,
    pub variables: &'a [Variable],
    pub objects: &'a [Map<String, Value>],
    pub offers: &'a [Offer],
}

/// The job, with the places of what was asked for.
pub(super) fn build_rule_subject(
    seen: &JobSubjectInputs<'_>,
    catalog: &Catalog,
    asked: &RequestPlaces,
) -> JobSubject {
    let (request, offers) = (seen.request, seen.offers);
    let mut containers = Vec::new();
    for value in seen.objects.iter().flat_map(Map::values) {
        collect_containers(value, &mut containers);
    }
    let pods = request.pods();
    let entry = image_of(&catalog.image, &pods.image);
    let (mut rdma, mut shared_units, mut rdma_unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (resource, count) in count_rdma_devices(&containers, offers) {
        rdma.push(format!("{resource}={count}"));
        if is_shared(resource, offers) {
            shared_units.push(count);
        }
        if !offers.is_empty() && !offers.iter().any(|offer| offer.resource == resource) {
            rdma_unknown.push(resource.to_owned());
        }
    }
    let nproc = match request {
        JobRequest::Pytorch(job) => job
            .nproc_per_node
            .as_deref()
            .and_then(|text| text.parse().ok()),
        _ => None,
    };
    let facts = SubjectFacts {
        kind: request.kind().word().to_owned(),
        trial: pods.trial,
        image: pods.image.clone(),
        demo: entry
            .filter(|entry| entry.demo)
            .map(|entry| entry.note.clone().unwrap_or_default()),
        gpus: seen.gpus,
        nproc,
        rdma,
        shared_units,
        rdma_offered: offers.iter().map(|offer| offer.resource.clone()).collect(),
        rdma_unknown,
        ray_version: seen.ray_version.map(str::to_owned),
        image_ray_version: entry.and_then(|entry| entry.ray_of(&pods.image)),
        unequal: containers.iter().flat_map(find_unequal_limits).collect(),
        reaches_rails: pods.host_network || pods.network.is_some(),
        pod_interface: find_socket_interface(seen.variables).filter(|_| !pods.host_network),
    };
    JobSubject {
        facts,
        places: asked.labels(),
    }
}

/// The network interface at which ranks meet, where it is set.
fn find_socket_interface(variables: &[Variable]) -> Option<String> {
    let variable = variables
        .iter()
        .find(|variable| variable.name == "NCCL_SOCKET_IFNAME")?;
    Some(variable.value.trim_start_matches('=').to_owned())
}

/// How many RDMA devices of each resource a container has at most.
fn count_rdma_devices<'c>(
    containers: &'c [Container<'_>],
    offers: &[Offer],
) -> BTreeMap<&'c str, u32> {
    let mut devices: BTreeMap<&str, u32> = BTreeMap::new();
    for (resource, amount) in containers.iter().flat_map(|container| &container.limits) {
        if is_rdma(resource, offers) {
            let count: u32 = format_amount(amount).parse().unwrap_or_default();
            let known = devices.entry(resource).or_default();
            *known = count.max(*known);
        }
    }
    devices
}

/// All containers below a value.
fn collect_containers<'a>(value: &'a Value, found: &mut Vec<Container<'a>>) {
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                match below {
                    Value::Array(items) if key == "containers" => {
                        found.extend(items.iter().map(parse_container));
                    }
                    _ if key == "containers" => {}
                    _ => collect_containers(below, found),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_containers(item, found);
            }
        }
        _ => {}
    }
}

fn parse_container(value: &Value) -> Container<'_> {
    Container {
        name: value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default(),
        requests: find_amounts(value, "/resources/requests"),
        limits: find_amounts(value, "/resources/limits"),
    }
}

/// The amounts of resources that a container has there.
fn find_amounts(container: &Value, pointer: &str) -> Map<String, Value> {
    match container.pointer(pointer) {
        Some(Value::Object(amounts)) => amounts.clone(),
        _ => Map::new(),
    }
}

/// What differs between requests and limits; a container that requests nothing gets its limits.
fn find_unequal_limits(container: &Container<'_>) -> Vec<String> {
    if container.requests.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&String> = container
        .requests
        .keys()
        .chain(container.limits.keys())
        .collect();
    let mut unequal = Vec::new();
    for name in names {
        let request = format_amount_of(name, &container.requests);
        let limit = format_amount_of(name, &container.limits);
        if request != limit {
            unequal.push(format!(
                "{} requests {request} of {name}, and its limit is {limit}",
                container.name
            ));
        }
    }
    unequal
}

fn format_amount_of(name: &str, amounts: &Map<String, Value>) -> String {
    match amounts.get(name) {
        Some(amount) => format_amount(amount),
        None => "nothing".to_owned(),
    }
}

pub(super) fn format_amount(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
