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
    seen.objects
        .iter()
        .flat_map(Map::values)
        .for_each(|value| collect_containers(value, &mut containers));
    let pods = request.pods();
    let row = image_of(&catalog.image, &pods.image);
    let devices = count_rdma_devices(&containers, offers);
    let rdma = devices
        .iter()
        .map(|(resource, count)| format!("{resource}={count}"))
        .collect();
    let shared = devices
        .iter()
        .filter(|(resource, _)| is_shared(resource, offers))
        .map(|(_, count)| *count);
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
        demo: row
            .filter(|row| row.demo)
            .map(|row| row.note.clone().unwrap_or_default()),
        gpus: seen.gpus,
        nproc,
        rdma,
        shared_units: shared.collect(),
        rdma_offered: offers.iter().map(|offer| offer.resource.clone()).collect(),
        rdma_unknown: devices
            .keys()
            .filter(|one| !offers.is_empty() && !offers.iter().any(|offer| offer.resource == **one))
            .map(|one| (*one).to_owned())
            .collect(),
        ray_version: seen.ray_version.map(str::to_owned),
        image_ray_version: row.and_then(|row| row.ray_of(&pods.image)),
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
                if key == "containers" {
                    found.extend(below.as_array().into_iter().flatten().map(parse_container));
                } else {
                    collect_containers(below, found);
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_containers(item, found)),
        _ => {}
    }
}

fn parse_container(value: &Value) -> Container<'_> {
    let of = |key: &str| {
        value
            .pointer(&format!("/resources/{key}"))
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    Container {
        name: value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default(),
        requests: of("requests"),
        limits: of("limits"),
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
    let amount = |of: &Map<String, Value>, name: &String| {
        of.get(name)
            .map_or_else(|| "nothing".to_owned(), format_amount)
    };
    let differs =
        |name: &&String| amount(&container.requests, name) != amount(&container.limits, name);
    let said = |name: &String| {
        let (request, limit) = (
            amount(&container.requests, name),
            amount(&container.limits, name),
        );
        format!(
            "{} requests {request} of {name}, and its limit is {limit}",
            container.name
        )
    };
    names.into_iter().filter(differs).map(said).collect()
}

fn format_amount(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
