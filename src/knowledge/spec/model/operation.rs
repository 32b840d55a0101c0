//! How changes are rolled out, what must pass, what is accepted for a while. Field docs become
//! the JSON Schema's descriptions.

use crate::spec::window::Window;
use railwright_resource::{Disruption, Plane};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How changes are rolled out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Hosts of each hardware class (GPU model, NIC model, operating system) in the first wave; 1
    /// unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<u32>,
    /// Hosts that may be out of service at the same time: a number, or text like `10%`; 1 unless
    /// said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::spec::schema::count_or_percent")]
    pub max_unavailable: Option<Value>,
    /// How many hosts each wave after the first has, the last repeated: numbers, or shares of all
    /// hosts like `10%`. As many as `max_unavailable` unless said otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::spec::schema::counts_or_percents")]
    pub batches: Vec<Value>,
    /// The label of the nodes that names their failure domain, such as `rack` or `leaf`: a wave
    /// after the first has hosts of one domain only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// How many hosts may be lost (failed, unknown, unreachable) before nothing new is begun: a
    /// number, or a share of all hosts like `5%`; `max_unavailable` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::spec::schema::count_or_percent")]
    pub failure_budget: Option<Value>,
    /// Changes that disturb more are blocked; `reboot` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_disruption: Option<Disruption>,
    /// Maintenance windows: what disturbs much begins only inside one of them. At any time unless
    /// said otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// What disturbs at least so much waits for a window; `link_blip` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_for: Option<Disruption>,
    /// How long a run may go on, such as `4h`; then nothing new is begun, and the rest is left to
    /// `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// After how long a host rolls back a change that can cut our own connection and was not
    /// confirmed over a new one: from `20s` to `1h`; `3m` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_timer: Option<String>,
    /// After how long a switch rolls back such a change; the change has to be over by then, too:
    /// from `20s` to `2h`; `15m` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_rollback_timer: Option<String>,
    /// How nodes of a Kubernetes cluster are emptied before their hosts are disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// What has to pass before the next wave begins, besides what `verify` proves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<RolloutGate>,
}

/// What has to pass before the next wave begins, besides what `verify` proves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutGate {
    /// NCCL's tests between the hosts of the wave that have GPUs: their output has to prove that
    /// RDMA was used. `verify --nccl` runs the same between all hosts with GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nccl: Option<NcclTests>,
}

/// NCCL's tests (NVIDIA/nccl-tests) on hosts over SSH, as `job run nccl-test` runs them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NcclTests {
    /// The test, with its path where it is not on the hosts' PATH; `all_reduce_perf` unless said
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The smallest message, such as `8` or `256M`; `8` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The largest message; `8G` unless said otherwise. The bandwidth is checked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Iterations of each size; 20 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The least share of what the NICs of a host carry together that proves the bandwidth, in
    /// percent; 80 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_percent: Option<u32>,
    /// A run that has not ended after this is ended and has failed, such as `15m`, which it is
    /// unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// How nodes of a Kubernetes cluster are emptied before their hosts are disturbed: cordoned,
/// emptied of pods, and uncordoned once the host has passed a gate and the node gives again what it
/// gave before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// What becomes of the pods; `evict` unless said otherwise.
    #[serde(default)]
    pub pods: DrainPods,
    /// A change that disturbs at least so much needs an empty node; `link_blip` unless said
    /// otherwise. Nodes are never emptied where `max_disruption` is below `drain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Disruption>,
    /// How long it may take until a node is empty, such as `15m`, which it is unless said
    /// otherwise. After it the node is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Whether pods are evicted that no controller would make anew; else they keep the node from
    /// being emptied.
    #[serde(default)]
    pub evict_unmanaged: bool,
    /// Whether pods are evicted that have data on the node's disk (`emptyDir`, other than in
    /// memory), which is deleted with them; else they keep the node from being emptied.
    #[serde(default)]
    pub delete_local_data: bool,
}

/// What becomes of the pods of a node before its host is disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DrainPods {
    /// They are evicted, as their disruption budgets allow.
    #[default]
    Evict,
    /// They are left to end by themselves; no new ones are put on the node.
    Wait,
    /// They go on: nodes are neither cordoned nor emptied.
    Leave,
}

/// What the fabric must deliver; checks without an expectation only report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifySection {
    /// The least `ib_write_bw` average of a pair, in Gb/s. Unless said, what the catalogue knows of
    /// ports of this rate (`railwright catalog bandwidth`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bandwidth_gbps: Option<f64>,
    /// The least `ib_write_bw` average of a pair from GPU memory to GPU memory, in Gb/s, for hosts
    /// with a path of GPUDirect. Unless said, what the catalogue knows, else 95 % of what host
    /// memory delivers where GPU and NIC share a PCIe switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_bandwidth_gbps: Option<f64>,
    /// The greatest typical `ib_read_lat` of a pair, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_us: Option<f64>,
    /// Seconds of each bandwidth run; 2 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<u32>,
}

/// How drift is evaluated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriftSection {
    /// Drift that is known and accepted for a while: it is listed apart, and is no reason for exit
    /// code 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<Acceptance>,
}

/// Drift that is accepted, of an `address` or of `nodes`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The resources: `host/gpu[001-004]/link/ens4`; node-set, kind and name may each be `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// All resources of these nodes: a node-set, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// The attribute, such as `mtu`.
    pub attribute: String,
    /// In this plane alone; in all of them unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<Plane>,
    /// Why it is accepted.
    pub reason: String,
    /// Who accepted it.
    pub owner: String,
    /// The last day on which it is accepted, in UTC: `2026-12-31`. After it the drift counts again.
    pub until: String,
}

/// Rules that are waived for a while.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RulesSection {
    /// Findings that are known and accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waive: Vec<Waiver>,
}

/// A finding of a rule that is known and accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The rule's code, such as `RW2101`.
    pub code: String,
    /// For these nodes alone; for all of them unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// Why it is accepted.
    pub reason: String,
    /// Who accepted it.
    pub owner: String,
    /// The last day on which it is accepted, in UTC: `2026-12-31`. After it the rule counts again.
    pub until: String,
}
