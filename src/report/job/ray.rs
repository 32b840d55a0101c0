//! The screen of `job prove` of a cluster of Ray, and its JSON.

use super::render_result_row;
use crate::document as documents;
use crate::wrap::render_heading;
use railwright_base::text::{clean_line, one_line};
use railwright_verify::CheckVerdict;
use railwright_verify::nccl::JobVerdict;
use railwright_verify::ray::{Crossing, RayClusterFacts, RayProof, RayProofTopic};
use railwright_verify::result::CheckOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the document.
const FORMAT_VERSION: &str = "2.0";

/// The whole screen.
pub fn render_ray_proof_screen(namespace: &str, name: &str, proof: &RayProof) -> String {
    let title = match proof.verdict {
        JobVerdict::Passed => "PASSED: its pods have RDMA, and it passes between nodes",
        JobVerdict::Failed => "FAILED: not as it must be",
        JobVerdict::Inconclusive => "INCONCLUSIVE: not all could be found out",
    };
    let rows: String = proof
        .topics
        .iter()
        .map(|(topic, evaluation)| render_result_row(&topic.word(), evaluation))
        .collect();
    format!(
        "job prove RayCluster {namespace}/{name}\n{}{rows}",
        render_heading(title)
    )
}

/// Renders the Ray job as a JSON document.
pub fn render_ray_proof_json(
    namespace: &str,
    name: &str,
    found: &RayClusterFacts,
    proof: &RayProof,
) -> String {
    documents::render_json_document(&RayProofDocument::of(namespace, name, found, proof))
}

/// `job prove --json` of a RayCluster.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RayProofDocument<'a> {
    format_version: &'static str,
    namespace: &'a str,
    name: &'a str,
    /// Whether its pods have RDMA and it passes between nodes (exit code 0, 1 or 3).
    verdict: JobVerdict,
    /// Topic by topic.
    topics: Vec<RayTopicDocument<'a>>,
    /// Its pods.
    pods: Vec<RayPodDocument<'a>>,
    /// Traffic between two of them, device by device; none where it was not tried.
    traffic: Vec<RayTrafficDocument>,
}

/// One topic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RayTopicDocument<'a> {
    topic: &'a RayProofTopic,
    verdict: CheckVerdict,
    /// What was found, in words.
    measured: String,
    /// What must be, in words; empty where nothing is stated.
    expected: &'a str,
    /// A code of `railwright explain`.
    code: Option<&'a str>,
    /// What it means.
    effect: &'a str,
    /// What to do.
    next: &'a str,
}

/// A pod.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RayPodDocument<'a> {
    name: String,
    node: Option<String>,
    /// `head`, `worker`.
    role: Option<String>,
    /// What it asks of extended resources.
    asks: &'a BTreeMap<String, u64>,
    /// The RDMA devices in it; nothing where it could not be looked into.
    devices: Option<&'a [String]>,
}

/// Traffic of one device to one of another pod.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RayTrafficDocument {
    /// The pod that sends, and its device.
    from: [String; 2],
    /// The pod that receives, and its device.
    to: [String; 2],
    /// Nothing where none passed.
    gbps: Option<f64>,
}

impl<'a> RayProofDocument<'a> {
    /// Of a cluster.
    pub fn of(
        namespace: &'a str,
        name: &'a str,
        found: &'a RayClusterFacts,
        proof: &'a RayProof,
    ) -> Self {
        RayProofDocument {
            format_version: FORMAT_VERSION,
            namespace,
            name,
            verdict: proof.verdict,
            topics: proof.topics.iter().map(build_ray_topic_document).collect(),
            pods: found
                .pods
                .iter()
                .map(|looked| RayPodDocument {
                    name: one_line(&looked.pod.name, 253),
                    node: looked.pod.node.as_ref().map(|node| one_line(node, 253)),
                    role: looked.pod.role.as_ref().map(|role| one_line(role, 40)),
                    asks: &looked.pod.asks,
                    devices: looked
                        .inside
                        .as_ref()
                        .ok()
                        .map(|inside| inside.devices.as_slice()),
                })
                .collect(),
            traffic: build_ray_traffic_documents(&found.crossing),
        }
    }
}

fn build_ray_topic_document(
    (topic, evaluation): &(RayProofTopic, CheckOutcome),
) -> RayTopicDocument<'_> {
    RayTopicDocument {
        topic,
        verdict: evaluation.verdict,
        measured: clean_line(&evaluation.measured),
        expected: &evaluation.expected,
        code: evaluation.code,
        effect: &evaluation.effect,
        next: &evaluation.next,
    }
}

fn build_ray_traffic_documents(crossing: &Crossing) -> Vec<RayTrafficDocument> {
    let Crossing::Tried { pods, passed, .. } = crossing else {
        return Vec::new();
    };
    passed
        .iter()
        .map(|passed| {
            let [from, to] = [0, 1].map(|end| [pods[end].clone(), passed.devices[end].clone()]);
            RayTrafficDocument {
                from,
                to,
                gbps: passed.gbps.as_ref().ok().copied(),
            }
        })
        .collect()
}
