//! What a rule can look at: the spec with the entries of the catalogue joined in. The type is the
//! language: its JSON Schema is what the names of rules are checked against. Hosts that are
//! identical in all that a rule can see are one equivalence class, so that a spec of 10,000 hosts
//! is evaluated as fast as one of ten.

use crate::catalog::entries::{
    ComputeClassEntry, GpuModelEntry, InstanceEntry, NicModelEntry, OperatingSystemEntry,
};
use crate::catalog::{Catalog, SOFT_ROCE};
use crate::spec::model::{
    AcsPod, Erdma, Fabric, GpuDirect, GpuModules, GpuSpec, IommuMode, Jobs, Lossless, Management,
    Nics, NodeGroup, RdmaNaming, RdmaStack, Rollout, Spec, SwitchGroup, Tuning, VerifySection,
};
use crate::spec::{Host, LoadedSpec};
use ipnet::{IpNet, Ipv4Net};
use railwright_base::version::parse_version_numbers;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What every rule can look at.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClusterFacts {
    /// The cluster's name.
    pub cluster: String,
    /// The fabric.
    pub fabric: Fabric,
    /// How changes are rolled out.
    pub rollout: Rollout,
    /// What the fabric must deliver.
    pub verify: VerifySection,
    /// The switches.
    pub switches: Vec<SwitchGroup>,
    /// What jobs are run with.
    pub jobs: JobFacts,
    /// All hosts together.
    pub fleet: FleetFacts,
}

/// What jobs are run with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct JobFacts {
    /// The environment of their processes.
    pub environment: BTreeMap<String, String>,
    /// The release of NCCL that they bring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nccl: Option<String>,
    /// The MPI options of their launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_options: Option<String>,
    /// A pod on Alibaba Container Compute Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acs: Option<AcsFacts>,
    /// The traffic class that NCCL asks for (`NCCL_IB_TC`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u32>,
    /// The DSCP of that traffic class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u32>,
    /// The priority that the fabric's map gives to that DSCP; an eighth of the DSCP where the map
    /// does not name it, as NICs have it from the start (mlnx_qos shows `prio:3
    /// dscp:31,30,...,24`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
}

/// A pod on Alibaba Container Compute Service.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AcsFacts {
    /// The GPU model series.
    pub model: String,
    /// The compute class.
    pub compute_class: String,
    /// GPUs of a pod.
    pub gpus: u32,
    /// Whether the pods ask for RDMA.
    pub rdma: bool,
    /// What is offered of this model in this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<ComputeClassEntry>,
}

/// All hosts together.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetFacts {
    /// How many hosts.
    pub hosts: usize,
    /// The GPU models, each once.
    pub gpu_models: Vec<String>,
    /// The NIC models, each once.
    pub nic_models: Vec<String>,
    /// The operating systems, each once.
    pub systems: Vec<String>,
    /// The speeds that ports of their NICs can have in Gb/s; none where a model is not known, or
    /// its speeds are not.
    pub nic_speeds_gbps: Vec<u32>,
}

/// An equivalence class of hosts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostClassFacts {
    /// The hosts, folded.
    pub nodes: String,
    /// The operating system, as the spec names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<OperatingSystemEntry>,
    /// The kernel that must run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Its version, such as `5.15`; the operating system's first one unless the spec names a
    /// kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_version: Option<String>,
    /// True for a real-time kernel, by its name.
    pub realtime: bool,
    /// Whether Secure Boot is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
    /// IOMMU mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iommu: Option<IommuMode>,
    /// True where RDMA devices are made of plain Ethernet ones.
    pub soft_roce: bool,
    /// True for virtual machines, as far as the instance says so.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// The GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuFacts>,
    /// The NICs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nics: Option<NicFacts>,
    /// The instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceFacts>,
    /// Where the RDMA drivers come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_stack: Option<RdmaStack>,
    /// The eRDMA driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erdma: Option<Erdma>,
    /// The management network; what a VLAN leaves to its default is filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub management: Option<Management>,
    /// Settings for steady speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
}

/// The GPUs of a host.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GpuFacts {
    /// The model.
    pub model: String,
    /// How many.
    pub count: u32,
    /// The driver branch or version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its branch as a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_branch: Option<u64>,
    /// The kernel modules, where the spec names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<GpuModules>,
    /// The CUDA toolkit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// Its major version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_major: Option<u64>,
    /// How the NIC reaches GPU memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<GpuDirect>,
    /// The model's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<GpuModelEntry>,
}

/// The NICs of a host.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NicFacts {
    /// The model.
    pub model: String,
    /// How many rails.
    pub rails: u32,
    /// The netdev of each.
    pub netdev: String,
    /// Their VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// True where the spec gives them addresses.
    pub addressed: bool,
    /// True where several rails have their addresses in one IPv4 network.
    pub one_subnet: bool,
    /// The settings of their firmware that the spec has values for, as texts.
    pub firmware: BTreeMap<String, String>,
    /// How their RDMA devices are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_naming: Option<RdmaNaming>,
    /// The model's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<NicModelEntry>,
}

/// The instance of a cloud.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InstanceFacts {
    /// As the spec names it.
    pub name: String,
    /// Its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<InstanceEntry>,
}

/// A class of hosts and where the spec speaks of it.
#[derive(Debug, Clone)]
pub struct HostClass {
    /// What it is.
    pub facts: HostClassFacts,
    /// The groups of the spec, by their index.
    pub groups: Vec<usize>,
}

/// What all rules can look at.
pub fn cluster_facts(loaded: &LoadedSpec, catalog: &Catalog) -> ClusterFacts {
    let spec = &loaded.spec;
    ClusterFacts {
        cluster: spec.cluster.clone(),
        fabric: spec.fabric.clone(),
        rollout: spec.rollout.clone(),
        verify: spec.verify.clone(),
        switches: spec.switches.clone(),
        jobs: job_facts(&spec.jobs, spec.fabric.lossless.as_ref(), catalog),
        fleet: fleet_facts(loaded, catalog),
    }
}

fn fleet_facts(loaded: &LoadedSpec, catalog: &Catalog) -> FleetFacts {
    let (mut gpu_models, mut nic_models) = (BTreeSet::new(), BTreeSet::new());
    let mut systems = BTreeSet::new();
    for group in &loaded.spec.nodes {
        gpu_models.extend(group.gpu.as_ref().map(|gpu| gpu.model.clone()));
        nic_models.extend(group.nics.as_ref().map(|nics| nics.model.clone()));
        systems.extend(group.os.clone());
    }
    FleetFacts {
        hosts: loaded.hosts.len(),
        gpu_models: gpu_models.into_iter().collect(),
        nic_models: nic_models.into_iter().collect(),
        systems: systems.into_iter().collect(),
        nic_speeds_gbps: nic_speeds(&loaded.spec, catalog),
    }
}

/// All speeds of all models, or none: what is not known of one of them cannot be said of all.
fn nic_speeds(spec: &Spec, catalog: &Catalog) -> Vec<u32> {
    let mut speeds: BTreeSet<u32> = BTreeSet::new();
    for group in &spec.nodes {
        let Some(nics) = &group.nics else { continue };
        match catalog.nic.get(&nics.model) {
            Some(entry) if !entry.speeds_gbps.is_empty() => speeds.extend(&entry.speeds_gbps),
            _ => return Vec::new(),
        }
    }
    speeds.into_iter().collect()
}

fn job_facts(jobs: &Jobs, lossless: Option<&Lossless>, catalog: &Catalog) -> JobFacts {
    let traffic_class = match jobs.environment.get("NCCL_IB_TC") {
        Some(text) => text.trim().parse::<u8>().ok().map(u32::from),
        None => None,
    };
    // the two lowest bits of the traffic class are ECN (RFC 3168), the six above them the DSCP (RFC
    // 2474)
    let dscp = traffic_class.map(|class| class >> 2);
    JobFacts {
        environment: jobs.environment.clone(),
        nccl: jobs.nccl.clone(),
        mpi_options: jobs.mpi_options.clone(),
        acs: jobs.acs.as_ref().map(|pod| acs_facts(pod, catalog)),
        traffic_class,
        dscp,
        priority: dscp.map(|dscp| find_priority(dscp, lossless)),
    }
}

fn acs_facts(pod: &AcsPod, catalog: &Catalog) -> AcsFacts {
    let compute_class = match &pod.compute_class {
        Some(class) => class.clone(),
        None => "gpu".to_owned(),
    };
    AcsFacts {
        entry: catalog.acs_of(&pod.model, &compute_class).cloned(),
        model: pod.model.clone(),
        compute_class,
        gpus: pod.gpus,
        rdma: pod.rdma,
    }
}

/// The priority of a DSCP: by the fabric's map, else as NICs have it from the start.
fn find_priority(dscp: u32, lossless: Option<&Lossless>) -> u32 {
    if let Some(lossless) = lossless {
        if u32::from(lossless.dscp) == dscp {
            return u32::from(lossless.priority);
        }
        if let Some(cnp) = &lossless.cnp
            && u32::from(cnp.dscp) == dscp
        {
            return u32::from(cnp.priority);
        }
    }
    dscp >> 3
}

/// The classes of hosts, in the order of the spec.
pub fn collect_host_classes(loaded: &LoadedSpec, catalog: &Catalog) -> Vec<HostClass> {
    let mut first_hosts: Vec<Option<&Host>> = vec![None; loaded.spec.nodes.len()];
    for host in &loaded.hosts {
        first_hosts[host.group].get_or_insert(host);
    }
    let mut classes: Vec<HostClass> = Vec::new();
    let mut by_facts: BTreeMap<String, usize> = BTreeMap::new();
    for (index, group) in loaded.spec.nodes.iter().enumerate() {
        let facts = host_facts(group, first_hosts[index], catalog);
        let known = serde_json::to_string(&facts).unwrap_or_default();
        let at = *by_facts.entry(known).or_insert(classes.len());
        if at == classes.len() {
            classes.push(HostClass {
                facts,
                groups: Vec::new(),
            });
        }
        classes[at].groups.push(index);
    }
    for class in &mut classes {
        let groups = class.groups.iter();
        let names = groups.map(|group| loaded.spec.nodes[*group].name.as_str());
        class.facts.nodes = names.collect::<Vec<_>>().join(",");
    }
    classes
}

fn host_facts(group: &NodeGroup, first: Option<&Host>, catalog: &Catalog) -> HostClassFacts {
    let system = match &group.os {
        Some(os) => catalog.system(os),
        None => None,
    };
    let kernel = group.kernel.as_deref();
    let kernel_version = match kernel.and_then(find_kernel_version) {
        Some(version) => Some(version),
        None => system.map(|entry| entry.kernel.clone()),
    };
    let instance = group.instance.clone().map(|name| InstanceFacts {
        entry: catalog.instance_of(&name).cloned(),
        name,
    });
    let instance_entry = instance
        .as_ref()
        .and_then(|instance| instance.entry.as_ref());
    let nics = group.nics.as_ref();
    HostClassFacts {
        nodes: String::new(),
        os: group.os.clone(),
        kernel_version,
        system: system.cloned(),
        realtime: kernel.is_some_and(is_realtime),
        kernel: group.kernel.clone(),
        secure_boot: group.secure_boot,
        iommu: group.iommu,
        soft_roce: nics.is_some_and(|nics| nics.model == SOFT_ROCE),
        is_virtual: instance_entry.is_some_and(|entry| entry.is_virtual),
        gpu: group.gpu.as_ref().map(|gpu| gpu_facts(gpu, catalog)),
        nics: nics.map(|nics| nic_facts(nics, first, catalog)),
        instance,
        rdma_stack: group.rdma_stack.clone(),
        erdma: group.erdma.clone(),
        management: group.management.as_ref().map(Management::resolved),
        tuning: group.tuning.clone(),
    }
}

/// `6.8.1-1015-realtime`, `6.1.0-18-rt-amd64`, `4.18.0-372.9.1.rt7.166.el8`, `6.6.30+rt30`.
fn is_realtime(kernel: &str) -> bool {
    let mut parts = kernel.split(['-', '.', '+', '_', '~']);
    parts.any(|part| match part.strip_prefix("rt") {
        Some(number) => number.bytes().all(|b| b.is_ascii_digit()),
        None => part == "realtime",
    })
}

/// The first two numbers of a kernel's name.
fn find_kernel_version(kernel: &str) -> Option<String> {
    match parse_version_numbers(kernel).as_slice() {
        [major, minor, ..] => Some(format!("{major}.{minor}")),
        _ => None,
    }
}

fn find_leading_number(version: &Option<String>) -> Option<u64> {
    parse_version_numbers(version.as_deref()?).first().copied()
}

fn gpu_facts(gpu: &GpuSpec, catalog: &Catalog) -> GpuFacts {
    GpuFacts {
        model: gpu.model.clone(),
        count: gpu.count,
        driver: gpu.driver.clone(),
        driver_branch: find_leading_number(&gpu.driver),
        modules: gpu.modules,
        cuda: gpu.cuda.clone(),
        cuda_major: find_leading_number(&gpu.cuda),
        direct: gpu.direct.clone(),
        entry: catalog.gpu.get(&gpu.model).cloned(),
    }
}

/// A text as it is, anything else as YAML writes it.
fn text_of(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

fn nic_facts(nics: &Nics, first: Option<&Host>, catalog: &Catalog) -> NicFacts {
    let mut networks: Vec<Ipv4Net> = Vec::new();
    for rail in first.iter().flat_map(|host| &host.netdevs) {
        let address = rail.address.as_deref().unwrap_or_default();
        if let Ok(IpNet::V4(network)) = address.parse::<IpNet>() {
            networks.push(network.trunc());
        }
    }
    let distinct: BTreeSet<&Ipv4Net> = networks.iter().collect();
    let mut firmware = BTreeMap::new();
    if let Some(settings) = &nics.firmware {
        for (name, value) in &settings.settings {
            firmware.insert(name.clone(), text_of(value));
        }
    }
    NicFacts {
        model: nics.model.clone(),
        rails: nics.rails.unwrap_or(1),
        netdev: nics.netdev.clone(),
        vlan: nics.vlan,
        addressed: nics.address.is_some(),
        firmware,
        rdma_naming: nics.naming.as_ref().and_then(|naming| naming.rdma),
        one_subnet: distinct.len() < networks.len(),
        entry: catalog.nic.get(&nics.model).cloned(),
    }
}
