//! One owner for each driver and each NIC of a node: a host that we set up, or a controller of the
//! cluster.

use super::{SpecChecker, new_spec_error};
use crate::spec::model::{FabricKind, RdmaFlavour, Spec};
use serde_json::Value;

const CODE: &str = "RW0146";
/// The module that loads the eRDMA driver on hosts.
const OF_HOSTS: &str = "erdma-driver";

/// Controllers of the cluster against the hosts, and device plugins against each other.
pub fn check_driver_owners(checker: &mut SpecChecker<'_>, spec: &Spec) {
    check_network_operator(checker, spec);
    check_gpu_operator(checker, spec);
    check_erdma_controller(checker, spec);
}

/// The place of a parameter that switches something on, of a module that the spec takes.
fn find_enabled_parameter(spec: &Spec, module: &str, parameter: &str) -> Option<String> {
    let taken = spec
        .modules
        .get(module)
        .filter(|module| module.enabled == Some(true))?;
    taken
        .parameters
        .get(parameter)
        .filter(|value| !matches!(value, Value::Null | Value::Bool(false)))?;
    Some(format!("modules[\"{module}\"].parameters[\"{parameter}\"]"))
}

/// NVIDIA's network operator brings MLNX_OFED or DOCA-OFED in a container, which takes away the
/// driver of the host.
fn check_network_operator(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(place) = find_enabled_parameter(spec, "nvidia-network-operator", "ofed_driver") else {
        return;
    };
    for (index, group) in spec.nodes.iter().enumerate() {
        let flavour = group.rdma_stack.as_ref().map(|stack| stack.flavour);
        if !matches!(flavour, Some(RdmaFlavour::Doca | RdmaFlavour::MlnxOfed)) {
            continue;
        }
        let finding = new_spec_error(
            CODE,
            "the RDMA drivers of these hosts have two owners",
            "the network operator unloads the drivers of the host and loads its own from a \
             container, at each boot after the host has loaded what is installed: netdevs and \
             their settings go and come back under us, and which driver runs depends on who was \
             last",
            "leave `ofed_driver` of the module out, or say `rdma_stack: { flavour: inbox }` of the \
             hosts",
        );
        checker.find_with(
            &format!("nodes[{index}].rdma_stack"),
            "installed by us",
            (&place, "brought by the network operator"),
            finding,
        );
    }
}

/// NVIDIA's GPU operator brings the GPU driver in a container, and refuses a host that has one.
fn check_gpu_operator(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(place) = find_enabled_parameter(spec, "nvidia-gpu-operator", "driver") else {
        return;
    };
    for (index, group) in spec.nodes.iter().enumerate() {
        if group.gpu.as_ref().is_none_or(|gpu| gpu.driver.is_none()) {
            continue;
        }
        let finding = new_spec_error(
            CODE,
            "the GPU driver of these hosts has two owners",
            "the GPU operator loads a driver from a container, and we install one on the host: the \
             modules of the one do not go with the libraries of the other, so programs on the host \
             or in pods fail by whichever was loaded last",
            "leave `driver` of the module out, or `gpu.driver` of the hosts",
        );
        checker.find_with(
            &format!("nodes[{index}].gpu.driver"),
            "installed by us",
            (&place, "brought by the GPU operator"),
            finding,
        );
    }
}

/// The eRDMA controller against the hosts, and against the other device plugin.
fn check_erdma_controller(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(kubernetes) = &spec.kubernetes else {
        return;
    };
    let Some(erdma) = &kubernetes.erdma else {
        return;
    };
    report_two_erdma_drivers(checker, spec);
    if let (Some(of_agent), Some(of_fabric)) = (erdma.jumbo_mtu, spec.fabric.mtu)
        && of_agent != of_fabric
        && spec.nodes.iter().any(|group| group.nics.is_some())
    {
        let finding = new_spec_error(
            CODE,
            "the MTU of the eRDMA NICs has two owners",
            "the agent sets its own on each NIC that has jumbo frames on, and we set the fabric's \
             on all: each takes away what the other set",
            "give both the same value, or leave one of them out",
        );
        checker.find_with(
            "kubernetes.erdma.jumbo_mtu",
            "set by the agent",
            ("fabric.mtu", "set by us"),
            finding,
        );
    }
    if kubernetes.rdma.is_some() && spec.fabric.kind == FabricKind::Erdma {
        let finding = new_spec_error(
            CODE,
            "two device plugins would hand out the same eRDMA devices",
            "each counts for itself: two jobs get one NIC, and each takes it for its own",
            "leave `kubernetes.rdma` out: the eRDMA controller has a device plugin of its own \
             (`aliyun/erdma`)",
        );
        checker.find_with(
            "kubernetes.rdma",
            "hands out NICs of all rails",
            ("kubernetes.erdma", "hands out eRDMA devices"),
            finding,
        );
    }
}

/// Groups whose driver we load as well, unless our module is switched off.
fn report_two_erdma_drivers(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let module = spec.modules.get(OF_HOSTS);
    if module.is_some_and(|module| module.enabled == Some(false)) {
        return;
    }
    for (index, group) in spec.nodes.iter().enumerate() {
        if group.erdma.is_none() {
            continue;
        }
        let finding = new_spec_error(
            CODE,
            "the eRDMA driver of these hosts has two owners",
            "the controller's agent installs the driver and loads it in the mode of \
             `prefer_driver`, and we load it in that of `erdma`: each takes away what the other \
             set, and hosts in different modes cannot connect",
            "leave `erdma` of the hosts out, or `kubernetes.erdma`",
        );
        let finding = finding.next(format!(
            "to keep its `route_metric` checked: `modules: {{ {OF_HOSTS}: {{ enabled: false }} }}`"
        ));
        checker.find_with(
            &format!("nodes[{index}].erdma"),
            "loaded by us",
            ("kubernetes.erdma", "installed by the agent"),
            finding,
        );
    }
}
