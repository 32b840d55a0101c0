//! One job that is about to be run, as rules see it: what was asked for, and what of it stands in
//! the objects that were made.

use crate::spec::LoadedSpec;
use railwright_base::{Label, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A job, as `each: job` has it in `job`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubjectFacts {
    /// Its sort: `nccl-test`, `pytorch`, `ray`, `acs` or `perftest-pods`.
    pub kind: String,
    /// True where it is said to be a trial.
    pub trial: bool,
    /// The image of its pods.
    pub image: String,
    /// What the catalogue says of an image that its maker gives for a trial only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demo: Option<String>,
    /// GPUs of a pod.
    pub gpus: u32,
    /// Processes of a pod, where they are given as a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nproc: Option<u32>,
    /// The RDMA devices that a pod asks for, such as `aliyun/erdma=1`.
    pub rdma: Vec<String>,
    /// How many of each, where one unit gives a pod all that there is: eRDMA and shared pools, not
    /// virtual functions.
    pub shared_units: Vec<u32>,
    /// The resources by which the cluster of the spec gives RDMA devices to pods.
    pub rdma_offered: Vec<String>,
    /// RDMA devices that it asks for and the cluster of the spec does not give.
    pub rdma_unknown: Vec<String>,
    /// The release of Ray that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ray_version: Option<String>,
    /// The release of Ray in its image, as far as the catalogue or the tag says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_ray_version: Option<String>,
    /// Where a container's requests and limits differ, in words.
    pub unequal: Vec<String>,
    /// True where its pods have the network of their host, or a further one.
    pub reaches_rails: bool,
    /// `NCCL_SOCKET_IFNAME` without `=`, where its pods have interfaces of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_interface: Option<String>,
}

/// A job with the places of what was asked for.
#[derive(Debug, Clone, Default)]
pub struct JobSubject {
    /// What rules look at.
    pub facts: SubjectFacts,
    /// Carets by path: `job.image`, `jobs.environment.NCCL_IB_TC`.
    pub places: BTreeMap<String, Label>,
}

/// A small spec of a rule's case with its `job`, where it has one.
pub(super) fn parse_rule_case(case: &Value) -> Result<(LoadedSpec, Option<JobSubject>), Reason> {
    let mut fields = case.as_object().cloned().ok_or("it is no spec")?;
    let job = fields
        .remove("job")
        .map(serde_json::from_value::<SubjectFacts>)
        .transpose()
        .map_err(|error| error.to_string())?;
    let loaded = crate::spec::load_case_spec(&Value::Object(fields))?;
    Ok((
        loaded,
        job.map(|facts| JobSubject {
            facts,
            places: BTreeMap::new(),
        }),
    ))
}
