//! What jobs are run with. Field docs become the JSON Schema's descriptions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What jobs are run with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// The environment of their processes, such as `NCCL_IB_TC: "106"`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The release of NCCL that they bring, such as `2.21.5`: checked, never installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nccl: Option<String>,
    /// GPUs of a pod on Alibaba Container Compute Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acs: Option<AcsPod>,
    /// The MPI options of their launcher, such as `--mca coll_hcoll_enable 0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_options: Option<String>,
}

/// A pod on Alibaba Container Compute Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcsPod {
    /// The GPU model series, such as `GU8TF`.
    pub model: String,
    /// The compute class; `gpu` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_class: Option<String>,
    /// GPUs of a pod.
    pub gpus: u32,
    /// Whether the pods ask for RDMA (`alibabacloud.com/hpn-type: "rdma"`).
    #[serde(default)]
    pub rdma: bool,
}
