//! What the templates of a module can name, for one host. The type is the language: its JSON Schema
//! is what names are checked against, and its field docs are the user's reference.

mod repository_keys;

pub use self::repository_keys::{
    KEY_IS_ABSENT, KeysSize, collect_repositories, list_referenced_files,
};

use crate::catalog::entries::{GpuModelEntry, InstanceEntry, NicModelEntry, OperatingSystemEntry};
use crate::catalog::release::HostComponent;
use crate::catalog::{Catalog, SOFT_ROCE};
use crate::solve::{SolverAnswer, SolverAnswers};
use crate::spec::model::{
    Erdma, Fabric, GpuModules, GpuSpec, IommuMode, Management, NicFirmware, NodeGroup, RdmaNaming,
    RdmaStack, Tuning,
};
use crate::spec::{Host, LoadedSpec, Rail};
use crate::template::shape::{ContextShape, EACH};
use railwright_base::secret;
use railwright_resource::action::PackageManager;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Texts of the files that the spec refers to, by the path as the spec has it
/// (`../../.lab/repository.asc`).
pub type Texts = BTreeMap<String, String>;

/// All that a template can name, besides the module's own parameters.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostTemplateNames {
    /// The cluster's name.
    pub cluster: String,
    /// The fabric, as the spec has it; what the spec leaves out is not there.
    pub fabric: Fabric,
    /// This host.
    pub host: HostNames,
    /// Package repositories that every host gets.
    pub repositories: Vec<RepositoryNames>,
    /// Each secret of the spec, as a mark that is filled in on the way to the host.
    pub secrets: BTreeMap<String, String>,
}

/// One host.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostNames {
    /// Its name.
    pub name: String,
    /// Its place in the cluster, from 1.
    pub index: usize,
    /// Its name as a node of the Kubernetes cluster.
    pub node: String,
    /// The operating system, such as `debian-12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// `apt` or `dnf`, by the operating system; not there when the spec does not name one of a
    /// known family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_manager: Option<Manager>,
    /// The cloud's instance type or family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The kernel that must run, as `uname -r` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether Secure Boot is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
    /// Where the RDMA drivers and libraries come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_stack: Option<RdmaStack>,
    /// Alibaba Cloud's eRDMA driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erdma: Option<Erdma>,
    /// The management network; what a VLAN leaves to its default is filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub management: Option<Management>,
    /// Settings for steady speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// What the catalogue says of its parts.
    pub catalogue: CatalogueNames,
    /// The releases that go together: the spec's own, and those chosen for what it leaves open.
    pub chosen: ChosenNames,
    /// The GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuSpec>,
    /// IOMMU mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iommu: Option<IommuMode>,
    /// Failure domains and the like.
    pub labels: BTreeMap<String, String>,
    /// The RDMA NICs, one a rail.
    pub rails: Vec<RailNames>,
    /// The NICs that get names: the PCI address or MAC address of each rail.
    pub named_nics: Vec<String>,
    /// How RDMA devices are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_naming: Option<RdmaNaming>,
    /// True when the rails are VLANs.
    pub tagged: bool,
    /// True when the RDMA devices are made of plain Ethernet ones by software.
    pub soft_roce: bool,
    /// True when pods get the RDMA devices: the host is a node of the Kubernetes cluster, which has
    /// a device plugin for them.
    pub rdma_pods: bool,
    /// True when a pod gets the RDMA device of its NUMA node: the kubelet has to hold its CPUs
    /// there.
    pub numa_pods: bool,
}

/// The entries of the catalogue about a host; one that nobody knows is not there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CatalogueNames {
    /// The GPU model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuModelEntry>,
    /// The NIC model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicModelEntry>,
    /// The instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceEntry>,
    /// The operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<OperatingSystemEntry>,
}

impl CatalogueNames {
    fn find(group: &NodeGroup, catalog: &Catalog) -> Self {
        let (gpu, nics) = (group.gpu.as_ref(), group.nics.as_ref());
        let (instance, os) = (group.instance.as_deref(), group.os.as_deref());
        let gpu = gpu.and_then(|gpu| catalog.gpu.get(&gpu.model));
        let nic = nics.and_then(|nics| catalog.nic.get(&nics.model));
        let instance = instance.and_then(|name| catalog.instance_of(name));
        let os = os.and_then(|os| catalog.system(os));
        CatalogueNames {
            gpu: gpu.cloned(),
            nic: nic.cloned(),
            instance: instance.cloned(),
            os: os.cloned(),
        }
    }
}

/// Releases of a host: as the spec has them, else as they were chosen; one of which too little is
/// known is not there.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ChosenNames {
    /// The GPU driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The sort of its kernel modules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// The CUDA toolkit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// DOCA or MLNX_OFED.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_stack: Option<String>,
}

impl ChosenNames {
    fn of(group: &NodeGroup, answer: Option<&SolverAnswer>) -> Self {
        let mut names = ChosenNames::default();
        if let Some(gpu) = &group.gpu {
            names.driver = gpu.driver.clone();
            names.cuda = gpu.cuda.clone();
            names.modules = match gpu.modules {
                Some(GpuModules::Open) => Some("open".to_owned()),
                Some(GpuModules::Proprietary) => Some("proprietary".to_owned()),
                None => None,
            };
        }
        if let Some(stack) = &group.rdma_stack {
            names.rdma_stack = stack.version.clone();
        }
        if let Some(answer) = answer {
            names.fill_in(HostComponent::Driver, answer);
            names.fill_in(HostComponent::Modules, answer);
            names.fill_in(HostComponent::Cuda, answer);
            names.fill_in(HostComponent::Doca, answer);
            names.fill_in(HostComponent::MlnxOfed, answer);
        }
        names
    }

    /// Takes the release that was chosen for a part where the spec has none.
    fn fill_in(&mut self, part: HostComponent, answer: &SolverAnswer) {
        let name = match part {
            HostComponent::Driver => &mut self.driver,
            HostComponent::Modules => &mut self.modules,
            HostComponent::Cuda => &mut self.cuda,
            HostComponent::Doca | HostComponent::MlnxOfed => &mut self.rdma_stack,
            _ => return,
        };
        let mut choices = answer.choices.iter();
        if name.is_none()
            && let Some(choice) = choices.find(|choice| choice.part == part)
        {
            *name = Some(choice.known.release.clone());
        }
    }
}

/// The program that keeps packages, as templates name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Manager {
    /// Debian and its family.
    Apt,
    /// Red Hat's family.
    Dnf,
}

impl From<Manager> for PackageManager {
    fn from(manager: Manager) -> Self {
        match manager {
            Manager::Apt => PackageManager::Apt,
            Manager::Dnf => PackageManager::Dnf,
        }
    }
}

/// One RDMA NIC.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RailNames {
    /// The rail, from 0.
    pub rail: u32,
    /// The netdev that carries the address.
    pub netdev: String,
    /// The netdev of the NIC's port: the parent of the rail's VLAN, or the same.
    pub port: String,
    /// The rail's VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Its address in CIDR form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The model.
    pub model: String,
    /// Settings of its firmware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<Arc<NicFirmware>>,
    /// The PCI address or MAC address of the NIC that gets the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<String>,
}

impl From<&Rail> for RailNames {
    fn from(rail: &Rail) -> Self {
        RailNames {
            rail: rail.rail,
            netdev: rail.netdev.clone(),
            port: rail.port.clone(),
            vlan: rail.vlan,
            address: rail.address.clone(),
            model: rail.model.clone(),
            firmware: rail.firmware.clone(),
            nic: rail.device.clone(),
        }
    }
}

/// One package repository.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RepositoryNames {
    /// A name for its files on the host.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// apt: the suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// apt: the components.
    pub components: Vec<String>,
    /// The signing key, armoured.
    pub key_text: String,
    /// apt: pin priority for its packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// The shape of `HostTemplateNames`.
pub fn build_host_shape() -> ContextShape {
    ContextShape::of_schema(schemars::schema_for!(HostTemplateNames).as_value())
}

/// What templates can name for one host.
pub fn build_host_template_names(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    answers: &SolverAnswers,
    host: &Host,
    repositories: &[RepositoryNames],
) -> HostTemplateNames {
    HostTemplateNames {
        cluster: loaded.spec.cluster.clone(),
        fabric: loaded.spec.fabric.clone(),
        host: host_names(loaded, catalog, answers, host),
        repositories: repositories.to_vec(),
        secrets: secret_marks(loaded),
    }
}

/// Each secret of the spec by its name, as a mark.
pub fn secret_marks(loaded: &LoadedSpec) -> BTreeMap<String, String> {
    loaded
        .spec
        .secrets
        .keys()
        .map(|name| (name.clone(), secret::new_secret_mark(name)))
        .collect()
}

/// The names of one host, below `host`.
pub fn host_names(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    answers: &SolverAnswers,
    host: &Host,
) -> HostNames {
    let group = loaded.group_of(host);
    let nics = group.nics.as_ref();
    let rails = &host.netdevs;
    let kubernetes = loaded.spec.kubernetes.as_ref();
    let erdma = kubernetes.and_then(|kubernetes| kubernetes.erdma.as_ref());
    HostNames {
        name: host.name.clone(),
        index: host.index,
        node: host.node.clone(),
        os: group.os.clone(),
        package_manager: group.os.as_deref().and_then(find_package_manager),
        instance: group.instance.clone(),
        kernel: group.kernel.clone(),
        secure_boot: group.secure_boot,
        rdma_stack: group.rdma_stack.clone(),
        erdma: group.erdma.clone(),
        management: group.management.as_ref().map(Management::resolved),
        tuning: group.tuning.clone(),
        catalogue: CatalogueNames::find(group, catalog),
        chosen: ChosenNames::of(group, answers.group(host.group)),
        gpu: group.gpu.clone(),
        iommu: group.iommu,
        labels: group.labels.clone(),
        rails: rails.iter().map(RailNames::from).collect(),
        named_nics: rails
            .iter()
            .filter_map(|rail| rail.device.clone())
            .collect(),
        rdma_naming: nics.and_then(|nics| nics.naming.as_ref()?.rdma),
        tagged: rails.iter().any(|rail| rail.vlan.is_some()),
        soft_roce: rails.iter().any(|rail| rail.model == SOFT_ROCE),
        numa_pods: erdma.is_some_and(|erdma| !erdma.allocate_all_devices),
        rdma_pods: kubernetes
            .is_some_and(|kubernetes| kubernetes.rdma.is_some() || kubernetes.erdma.is_some()),
    }
}

fn find_package_manager(os: &str) -> Option<Manager> {
    let family = os.split('-').next().unwrap_or_default();
    match family {
        "debian" | "ubuntu" => Some(Manager::Apt),
        "rhel" | "rocky" | "almalinux" | "centos" | "fedora" | "anolis" | "alinux"
        | "openEuler" => Some(Manager::Dnf),
        _ => None,
    }
}

/// The value at a path of names; nothing where it is not there or the path goes through every
/// element.
pub fn value_at<'a>(values: &'a BTreeMap<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(values.get(first)?, |value, name| value.get(name))
}

/// The path in the spec of a path of names; `item` is the turn of the loop whose elements are
/// meant.
pub fn spec_path(host: &Host, path: &[String], item: Option<usize>) -> String {
    let group = format!("nodes[{}]", host.group);
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["host", "os" | "package_manager", ..] => format!("{group}.os"),
        ["host", "catalogue", "gpu", ..] => format!("{group}.gpu.model"),
        ["host", "catalogue", "nic", ..] => format!("{group}.nics.model"),
        ["host", "catalogue", sort, ..] => format!("{group}.{sort}"),
        ["host", "chosen", "rdma_stack", ..] => format!("{group}.rdma_stack.version"),
        ["host", "chosen", part, ..] => format!("{group}.gpu.{part}"),
        ["host", "tagged", ..] => format!("{group}.nics.vlan"),
        ["host", "rails", EACH, "port", ..] => format!("{group}.nics.netdev"),
        ["host", "rdma_pods", ..] => "kubernetes".to_owned(),
        ["host", "numa_pods", ..] => "kubernetes.erdma.allocate_all_devices".to_owned(),
        ["host", "soft_roce", ..] => format!("{group}.nics.model"),
        ["host", "rdma_naming", ..] => format!("{group}.nics.naming.rdma"),
        ["host", "named_nics", ..] | ["host", "rails", EACH, "nic", ..] => {
            format!("{group}.nics.naming")
        }
        ["host", "rails", EACH, "rail", ..] => format!("{group}.nics.rails"),
        ["host", "rails", EACH, rest @ ..] => extend_path(format!("{group}.nics"), rest),
        ["host", "rails", ..] => format!("{group}.nics"),
        ["host", "node", ..] => format!("{group}.kubernetes_node"),
        ["host", "name" | "index", ..] => format!("{group}.name"),
        ["host", rest @ ..] => extend_path(group, rest),
        ["repositories", EACH, rest @ ..] => match (item, rest) {
            (Some(item), ["key_text", ..]) => format!("repositories[{item}].key"),
            (Some(item), rest) => extend_path(format!("repositories[{item}]"), rest),
            (None, _) => "repositories".to_owned(),
        },
        words => words.join("."),
    }
}

fn extend_path(mut path: String, words: &[&str]) -> String {
    for word in words {
        path.push('.');
        path.push_str(word);
    }
    path
}

/// A text of the spec that holds a code point kept for the marks of secrets.
pub fn reserved_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => secret::find_mark_character(text).map(|_| text.as_str()),
        Value::Array(items) => items.iter().find_map(reserved_text),
        Value::Object(map) => map.values().find_map(reserved_text),
        _ => None,
    }
}
