//! What was found of the pods of a cluster of Ray means.

use super::facts::{Crossing, DeviceTrafficResult, Pool, RayClusterFacts, format_pod_name};
use crate::nccl::JobVerdict;
use crate::perftest::TrafficFault;
use crate::result::CheckOutcome;
use railwright_base::nodeset;
use railwright_base::quote::quote_word_if_needed;
use railwright_base::text::{format_count, one_line};
use railwright_resource::kubernetes_job::{JobPod, Room};
use serde::Serialize;
use std::collections::BTreeSet;

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RayProofTopic {
    /// Head and workers run.
    Pods,
    /// Each pod asks for a pool, and its node gives it.
    Pool(String),
    /// The devices are in the pods.
    Devices,
    /// RDMA traffic between two nodes.
    Traffic,
}

impl RayProofTopic {
    /// The word on the screen.
    pub fn word(&self) -> String {
        match self {
            RayProofTopic::Pods => "pods".to_owned(),
            RayProofTopic::Pool(resource) => one_line(resource, 40),
            RayProofTopic::Devices => "devices".to_owned(),
            RayProofTopic::Traffic => "traffic".to_owned(),
        }
    }
}

/// The verdict on a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct RayProof {
    /// All together.
    pub verdict: JobVerdict,
    /// Topic by topic.
    pub topics: Vec<(RayProofTopic, CheckOutcome)>,
}

/// Checks it; `name` is what it is called, and `place` how commands that are suggested find it, `-i
/// inv -n ml`.
pub fn check_ray_cluster(found: &RayClusterFacts, name: &str, place: &str) -> RayProof {
    let mut topics = vec![(RayProofTopic::Pods, check_running_pods(found, name, place))];
    for pool in &found.pools {
        let topic = RayProofTopic::Pool(pool.resource.clone());
        topics.push((topic, check_pool(found, pool)));
    }
    let devices = match found.pools.is_empty() {
        true => report_no_pool(),
        false => check_pod_devices(found),
    };
    topics.push((RayProofTopic::Devices, devices));
    topics.push((
        RayProofTopic::Traffic,
        check_pod_traffic(&found.crossing, place),
    ));
    let verdict = JobVerdict::from_outcomes(topics.iter().map(|(_, outcome)| outcome));
    RayProof { verdict, topics }
}

/// Pods as a node-set.
fn fold_pod_names<'p>(pods: impl IntoIterator<Item = &'p JobPod>) -> String {
    let names: Vec<String> = pods.into_iter().map(format_pod_name).collect();
    nodeset::fold_node_set(&names)
}

fn check_running_pods(actual: &RayClusterFacts, name: &str, place: &str) -> CheckOutcome {
    let (mut running, mut workers) = (0, 0);
    let mut nodes: BTreeSet<&str> = BTreeSet::new();
    for looked in &actual.pods {
        if looked.pod.phase != "Running" {
            continue;
        }
        running += 1;
        if looked.pod.role.as_deref() == Some("worker") {
            workers += 1;
        }
        nodes.extend(looked.pod.node.as_deref());
    }
    let measured = format!(
        "{running} of {} running, {} on {}",
        format_count(actual.pods.len(), "pod"),
        format_count(workers, "worker"),
        format_count(nodes.len(), "node")
    );
    let has_workers = actual
        .desired
        .is_none_or(|desired| workers as u64 >= desired);
    if running == actual.pods.len() && running > 0 && has_workers {
        return CheckOutcome::passed(measured);
    }
    let desired = match actual.desired {
        Some(desired) => format!(
            "all of them running, {}",
            format_count(desired as usize, "worker")
        ),
        None => "all of them running".to_owned(),
    };
    CheckOutcome::unknown("RW1261", measured)
        .expected(desired)
        .effect("of pods that do not run nothing is proven")
        .next(format!(
            "railwright job watch {name} {place} says what keeps a pod"
        ))
}

/// What gives pods the devices that they do not ask for.
const RENDER_CLUSTER: &str = "railwright job render ray writes a cluster whose pods ask for them; \
                              it replaces this one, as KubeRay changes no pod that runs";

fn report_no_pool() -> CheckOutcome {
    CheckOutcome::failed(
        "RW1260",
        "no pod asks for a resource of RDMA, and the spec names none",
    )
    .expected("each pod with the devices of every pool")
    .effect("Ray runs all the same, and what it runs goes over TCP")
    .next(RENDER_CLUSTER)
}

/// Each pod asks for it, and its node gives it.
fn check_pool(actual: &RayClusterFacts, pool: &Pool) -> CheckOutcome {
    let resource = one_line(&pool.resource, 60);
    let desired = format!("each pod asks for {resource}, and its node gives it");
    let mut lacking = Vec::new();
    let mut nodes: BTreeSet<&str> = BTreeSet::new();
    for looked in &actual.pods {
        nodes.extend(looked.pod.node.as_deref());
        if !looked.pod.asks.contains_key(&pool.resource) {
            lacking.push(&looked.pod);
        }
    }
    if !lacking.is_empty() {
        return report_pods_without_request(lacking, actual.pods.len()).expected(desired);
    }
    let room = match &actual.room {
        Ok(room) => room,
        Err(why) => {
            return CheckOutcome::unknown(
                "RW1261",
                format!("each pod asks for it; what nodes give could not be read: {why}"),
            )
            .expected(desired);
        }
    };
    let mut without = Vec::new();
    for node in &nodes {
        if !gives_resource(room, node, &pool.resource) {
            without.push(*node);
        }
    }
    if !without.is_empty() {
        return report_nodes_without_pool(&without).expected(desired);
    }
    CheckOutcome::passed(format!(
        "{} ask for it, {} give it",
        format_count(actual.pods.len(), "pod"),
        format_count(nodes.len(), "node")
    ))
}

fn gives_resource(room: &Room, node: &str, resource: &str) -> bool {
    let Some(node) = room.nodes.get(node) else {
        return false;
    };
    node.gives.get(resource).is_some_and(|amount| *amount > 0)
}

fn report_pods_without_request(lacking: Vec<&JobPod>, pods: usize) -> CheckOutcome {
    CheckOutcome::failed(
        "RW1260",
        format!(
            "{} of {} ask for none: {}",
            lacking.len(),
            format_count(pods, "pod"),
            fold_pod_names(lacking)
        ),
    )
    .effect("what runs there goes over TCP, without an error")
    .next(RENDER_CLUSTER)
}

fn report_nodes_without_pool(nodes: &[&str]) -> CheckOutcome {
    CheckOutcome::failed(
        "RW1260",
        format!(
            "nodes that give none any more: {}",
            nodeset::fold_node_set(nodes)
        ),
    )
    .effect(
        "the device plugin there is gone or lost its devices; a pod that is started again finds \
         no place",
    )
    .next("railwright verify INVENTORY")
}

/// The devices are in the pods.
fn check_pod_devices(actual: &RayClusterFacts) -> CheckOutcome {
    // Of virtual functions and of pools of which nothing is said one device a pool is the least.
    let least: usize = actual
        .pools
        .iter()
        .map(|pool| pool.devices.unwrap_or(1))
        .sum();
    let desired = format!(
        "{} or more below /dev/infiniband in each pod",
        format_count(least, "device")
    );
    let (mut few, mut silent) = (Vec::new(), Vec::new());
    let mut devices: BTreeSet<&str> = BTreeSet::new();
    for looked in &actual.pods {
        match &looked.inside {
            Ok(inside) if inside.devices.len() < least => {
                few.push((&looked.pod, inside.devices.len()));
            }
            Ok(inside) => devices.extend(inside.devices.iter().map(String::as_str)),
            Err(why) => silent.push((&looked.pod, why.as_words())),
        }
    }
    if let Some(outcome) = report_missing_devices(&few, actual.pods.len()) {
        return outcome.expected(desired);
    }
    if let Some(outcome) = report_silent_pods(&silent) {
        return outcome.expected(desired);
    }
    let names: Vec<&str> = devices.into_iter().collect();
    CheckOutcome::passed(format!(
        "{} in each of {}",
        nodeset::fold_node_set(&names),
        format_count(actual.pods.len(), "pod")
    ))
    .expected(desired)
}

/// The failure of pods that have too few devices, each with how many it has; nothing where there is
/// no such pod.
fn report_missing_devices(few: &[(&JobPod, usize)], pods: usize) -> Option<CheckOutcome> {
    let (first, count) = few.first()?;
    let measured = format!(
        "{} of {}: {} on {}",
        few.len(),
        format_count(pods, "pod"),
        format_count(*count, "device"),
        fold_pod_names(few.iter().map(|(pod, _)| *pod))
    );
    let outcome = CheckOutcome::failed("RW1262", measured)
        .effect(
            "the pod was given a resource whose devices are not there: NCCL finds fewer NICs, or \
             none",
        )
        .next(format!(
            "kubectl exec {} -- ls -l /dev/infiniband; and the log of the device plugin on its \
             node",
            quote_word_if_needed(&format_pod_name(first))
        ));
    Some(outcome)
}

/// The outcome for pods that could not be looked into, each with why; nothing where there is no
/// such pod.
fn report_silent_pods(silent: &[(&JobPod, &str)]) -> Option<CheckOutcome> {
    let (_, why) = silent.first()?;
    let pods = fold_pod_names(silent.iter().map(|(pod, _)| *pod));
    let outcome = CheckOutcome::unknown(
        "RW1261",
        format!("{pods} could not be looked into: {}", one_line(why, 100)),
    )
    .effect("whether the devices are there is not known")
    .next("kubectl auth can-i create pods/exec; kubectl exec POD -- ls /dev/infiniband");
    Some(outcome)
}

/// RDMA traffic between two nodes.
fn check_pod_traffic(crossing: &Crossing, place: &str) -> CheckOutcome {
    let desired = "RDMA traffic between two pods on two nodes, device by device";
    let (pods, nodes, passed) = match crossing {
        Crossing::Not(why) => {
            return CheckOutcome::unknown("RW1263", why.clone())
                .expected(desired)
                .effect("whether RDMA passes between nodes is not known")
                .next(format!(
                    "railwright job render perftest-pods {place} --image IMAGE | railwright job \
                     submit {place} --watch -"
                ));
        }
        Crossing::Tried {
            pods,
            nodes,
            passed,
        } => (pods, nodes, passed),
    };
    let between = format!("{} ({}) to {} ({})", pods[0], nodes[0], pods[1], nodes[1]);
    let (mut rates, mut faults) = (Vec::new(), Vec::new());
    for DeviceTrafficResult { devices, gbps } in passed {
        match gbps {
            Ok(gbps) => rates.push(format!("{} {gbps:.1}", devices[0])),
            Err(fault) => faults.push((devices, fault)),
        }
    }
    let evaluation = match report_broken_traffic(&faults, passed.len(), &between) {
        Some(outcome) => outcome,
        None => CheckOutcome::passed(format!("{between}, in Gb/s: {}", rates.join(", "))),
    };
    evaluation.expected(desired)
}

/// The outcome for devices between which nothing passed, each with why; nothing where there are
/// none.
fn report_broken_traffic(
    faults: &[(&[String; 2], &TrafficFault)],
    devices: usize,
    between: &str,
) -> Option<CheckOutcome> {
    let (first, fault) = faults.first()?;
    let measured = format!(
        "{} of {} carry nothing from {between}; {}: {}",
        faults.len(),
        format_count(devices, "device"),
        first.join(" to "),
        describe_traffic_fault(fault)
    );
    let is_disproof = faults
        .iter()
        .any(|(_, fault)| matches!(fault, TrafficFault::Broken(_) | TrafficFault::NothingMoved));
    let evaluation = if is_disproof {
        CheckOutcome::failed("RW1264", measured)
    } else {
        CheckOutcome::unknown("RW1263", measured)
    };
    let outcome = evaluation
        .effect("what runs over several nodes hangs, breaks or goes over TCP there")
        .next(
            "railwright verify INVENTORY sends the same between the hosts, where it is to be seen \
             whether the pods or the fabric are at fault",
        );
    Some(outcome)
}

/// For people.
fn describe_traffic_fault(fault: &TrafficFault) -> String {
    match fault {
        TrafficFault::Missing(program) => format!("{program} is not in the image"),
        TrafficFault::NobodyListens => "the other pod was not reached".to_owned(),
        TrafficFault::Hung => "it hung, and was ended".to_owned(),
        TrafficFault::WithoutCuda => "its perftest has no CUDA".to_owned(),
        TrafficFault::NothingMoved => "no byte moved".to_owned(),
        TrafficFault::Broken(why) | TrafficFault::NotUnderstood(why) => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::{InspectedRayPod, RayPodFacts};
    use super::*;
    use crate::result::CheckVerdict;
    use railwright_base::Reason;

    fn found(pools: &[&str], inside: Result<RayPodFacts, Reason>) -> RayClusterFacts {
        let pod = JobPod {
            name: "ray-worker-1".to_owned(),
            phase: "Running".to_owned(),
            role: Some("worker".to_owned()),
            node: Some("gpu1".to_owned()),
            asks: pools.iter().map(|pool| ((*pool).to_owned(), 1)).collect(),
            ..JobPod::default()
        };
        RayClusterFacts {
            pools: pools
                .iter()
                .map(|pool| Pool {
                    resource: (*pool).to_owned(),
                    devices: Some(2),
                })
                .collect(),
            pods: vec![InspectedRayPod { pod, inside }],
            room: Ok(Room::default()),
            desired: Some(1),
            crossing: Crossing::Not("`ib_write_bw` is not in the image".to_owned()),
        }
    }

    fn codes(found: &RayClusterFacts) -> (JobVerdict, Vec<(String, Option<&'static str>)>) {
        let proof = check_ray_cluster(found, "ray", "-i inv -n ml");
        (
            proof.verdict,
            proof
                .topics
                .iter()
                .map(|(topic, evaluation)| (topic.word(), evaluation.code))
                .collect(),
        )
    }

    #[test]
    fn what_is_not_there_disproves_and_what_is_not_known_does_not() {
        let topic = |word: &str, code| (word.to_owned(), code);
        let two = || {
            Ok(RayPodFacts {
                devices: vec!["mlx5_0".to_owned(), "mlx5_1".to_owned()],
                has_perftest: false,
            })
        };
        // No node is known to give it.
        let lost = found(&["rdma/a"], two());
        let all = vec![
            topic("pods", None),
            topic("rdma/a", Some("RW1260")),
            topic("devices", None),
            topic("traffic", Some("RW1263")),
        ];
        assert_eq!(codes(&lost), (JobVerdict::Failed, all));
        let unread = RayClusterFacts {
            room: Err("not allowed".into()),
            ..found(&["rdma/a"], Err("not allowed".into()))
        };
        let all = vec![
            topic("pods", None),
            topic("rdma/a", Some("RW1261")),
            topic("devices", Some("RW1261")),
            topic("traffic", Some("RW1263")),
        ];
        assert_eq!(codes(&unread), (JobVerdict::Inconclusive, all));
        let nobody = found(&[], two());
        assert_eq!(codes(&nobody).1[1], topic("devices", Some("RW1260")));
        // An image without perftest, or a clock that perftest does not trust, says nothing of the
        // path.
        let passed = |gbps| Crossing::Tried {
            pods: ["a".to_owned(), "b".to_owned()],
            nodes: ["gpu1".to_owned(), "gpu2".to_owned()],
            passed: vec![DeviceTrafficResult {
                devices: ["mlx5_0".to_owned(), "mlx5_0".to_owned()],
                gbps,
            }],
        };
        let cases = [
            (Ok(96.9), CheckVerdict::Passed),
            (Err(TrafficFault::NothingMoved), CheckVerdict::Failed),
            (
                Err(TrafficFault::Broken("lost".to_owned())),
                CheckVerdict::Failed,
            ),
            (
                Err(TrafficFault::NotUnderstood("?".to_owned())),
                CheckVerdict::Unknown,
            ),
            (Err(TrafficFault::NobodyListens), CheckVerdict::Unknown),
        ];
        for (gbps, verdict) in cases {
            assert_eq!(
                check_pod_traffic(&passed(gbps.clone()), "").verdict,
                verdict,
                "{gbps:?}"
            );
        }
    }
}
