//! The spec as plain values, after decoding: no spans here (`spec::LoadedSpec` finds the span of a
//! path). Field docs become the JSON Schema's descriptions, so they are written for the user.

mod api;
mod fabric;
mod jobs;
mod kubernetes;
mod management;
mod node;
mod operation;
mod reach;
mod switch;
mod workload;

pub use api::{Api, ApiKind};
pub use fabric::{Cnp, Fabric, FabricKind, Lossless, Trust};
pub use jobs::{AcsPod, Jobs};
pub use kubernetes::{
    ErdmaCredentials, ErdmaDriver, ErdmaInstall, Kubernetes, KubernetesErdma, KubernetesPlatform,
    KubernetesRdma, RdmaPlugin,
};
pub use kubernetes::{KubernetesTerway, TerwayWhitelist};
pub use management::{
    BondMode, LacpRate, Management, ManagementBond, ManagementVlan, XmitHashPolicy,
};
pub use node::{
    Erdma, ErdmaMode, GpuDirect, GpuDirectPath, GpuModules, GpuSpec, IommuMode, KubernetesTaint,
    Naming, NicFirmware, Nics, NodeGroup, PcieAcs, RdmaFlavour, RdmaNaming, RdmaStack, TakesEffect,
    Tuning,
};
pub use operation::{
    Acceptance, Drain, DrainPods, DriftSection, NcclTests, Rollout, RolloutGate, RulesSection,
    VerifySection, Waiver,
};
pub use reach::{NoSshKeyword, Reach, Ssh};
pub use switch::{
    Dscp, Ecn, EcnThresholds, MTU_BYTES, PfcWatchdogSpec, SwitchGroup, SwitchRole, WatchdogAction,
    WatchdogTimes,
};
pub use workload::{Workload, WorkloadKind};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The desired state of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The cluster's name: letters, digits, `-`.
    pub cluster: String,
    /// What the RDMA fabric is.
    #[serde(default)]
    pub fabric: Fabric,
    /// How hosts are reached, unless a node says otherwise; `none` where nobody may log in to them.
    #[serde(default)]
    pub ssh: Reach,
    /// The hosts.
    #[serde(default)]
    pub nodes: Vec<NodeGroup>,
    /// Package repositories that every host gets.
    #[serde(default)]
    pub repositories: Vec<RepositorySpec>,
    /// The Kubernetes cluster that the hosts are nodes of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Kubernetes>,
    /// The switches of the fabric: what rules compare the hosts with.
    #[serde(default)]
    pub switches: Vec<SwitchGroup>,
    /// A table of the cables, relative to the inventory: a CSV file with the header
    /// `host,nic,switch,port`. A line is a cable, or as many as its node-sets stand for. `verify
    /// cabling` compares it with what the hosts hear (LLDP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cabling: Option<String>,
    /// What jobs are run with: what rules compare the fabric with.
    #[serde(default)]
    pub jobs: Jobs,
    /// Workloads that stay: planned, applied, compared and undone like everything else of the
    /// cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
    /// Rules that are waived for a while.
    #[serde(default)]
    pub rules: RulesSection,
    /// How changes are rolled out.
    #[serde(default)]
    pub rollout: Rollout,
    /// What the fabric must deliver.
    #[serde(default)]
    pub verify: VerifySection,
    /// How drift is evaluated.
    #[serde(default)]
    pub drift: DriftSection,
    /// Secrets by name: only references, never the secret itself.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretReference>,
    /// Overrides of modules, by module name. Normally modules are chosen from the facts above.
    #[serde(default)]
    pub modules: BTreeMap<String, ModuleOverride>,
}

/// A package repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositorySpec {
    /// A name for its files on the host: letters, digits, `-`.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// apt: the suite. A suite that ends in `/` needs no components. dnf: leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// apt: the components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// The signing key's file, armoured, relative to the inventory. Unsigned repositories are
    /// refused.
    pub key: String,
    /// apt: pin priority for its packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// Where a secret is found; exactly one of the three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretReference {
    /// The name of an environment variable of railwright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// A file, relative to the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A command of this machine and its arguments; what it prints is the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

impl Spec {
    /// Every secret by its name: those of `secrets`, and the passwords of switches, which are
    /// called by their place in the spec.
    pub fn secret_references(&self) -> impl Iterator<Item = (String, &SecretReference)> {
        let named = self
            .secrets
            .iter()
            .map(|(name, secret)| (name.clone(), secret));
        let apis = self
            .switches
            .iter()
            .enumerate()
            .flat_map(|(index, switch)| switch.apis().map(move |(kind, api)| (index, kind, api)));
        named.chain(
            apis.map(|(index, kind, api)| (SwitchGroup::password_name(index, kind), &api.password)),
        )
    }
}

/// An override of one module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleOverride {
    /// `false` leaves the module out, `true` takes it although its condition does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Values for its parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
}
