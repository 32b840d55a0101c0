//! One owner for each setting of a NIC, where one of them is an object of NVIDIA's operators: the
//! hosts that we set up, a template of the NIC configuration operator, a policy of the network
//! operator. None of the operators says so when it is too late: a device that two templates match
//! gets neither, and two who set the class of a port take it from each other.
//!
//! Which nodes an object selects goes by the labels that the spec gives them; a label that the
//! spec does not give a node may be there.

use crate::catalog::Catalog;
use crate::spec::model::RdmaFlavour;
use crate::spec::{Host, LoadedSpec};
use railwright_base::{Diagnostic, TargetKind, nodeset};
use railwright_resource::DesiredResource;
use railwright_resource::kubernetes_object::manifest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CODE: &str = "RW0146";
const TEMPLATE: &str = "NicConfigurationTemplate.configuration.net.nvidia.com";
const NODE_POLICY: &str = "NicNodePolicy.mellanox.com";
const CLUSTER_POLICY: &str = "NicClusterPolicy.mellanox.com";
/// Sections that the policy of the cluster and those of nodes know (Mellanox/network-operator:
/// `api/v1alpha1/nicnodepolicy_types.go`).
const SECTIONS: [&str; 3] = ["ofedDriver", "rdmaSharedDevicePlugin", "sriovDevicePlugin"];
/// Kinds that set on a host what `roceOptimized` sets: trust, PFC, and who reacts to ECN.
const OF_HOSTS: [&str; 2] = ["link_qos", "link_ecn"];

/// All settings of NICs that have two owners.
pub(super) fn check_nic_owners(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    resources: &[DesiredResource],
) -> Vec<Diagnostic> {
    let (mut templates, mut policies, mut of_cluster) = (Vec::new(), Vec::new(), Vec::new());
    for object in resources.iter().filter_map(parse_object) {
        match object.kind.as_str() {
            TEMPLATE => templates.push(object),
            NODE_POLICY => policies.push(object),
            CLUSTER_POLICY => of_cluster.push(object),
            _ => {}
        }
    }
    let mut findings: Vec<Diagnostic> = Vec::new();
    for template in &templates {
        findings.extend(with_hosts(loaded, catalog, resources, template));
    }
    for (one, other) in list_object_pairs(&templates) {
        if is_same_nic(one, other) {
            findings.extend(twice_configured(loaded, one, other));
        }
    }
    for cluster in &of_cluster {
        for node in &policies {
            findings.extend(twice_said(loaded, cluster, node));
        }
    }
    for policy in &policies {
        findings.extend(with_drivers(loaded, policy));
    }
    for (one, other) in list_object_pairs(&policies) {
        findings.extend(twice_selected(loaded, one, other));
    }
    findings
}

/// A declared object.
struct Object<'w> {
    resource: &'w DesiredResource,
    kind: String,
    name: String,
    spec: Value,
    /// The labels of the nodes that it is for.
    selector: BTreeMap<String, String>,
}

/// The object that a resource declares; nothing where it is no object of Kubernetes.
fn parse_object(resource: &DesiredResource) -> Option<Object<'_>> {
    if resource.kind != "kubernetes_object" {
        return None;
    }
    let manifest = manifest::parse_manifest(&resource.body).ok()?;
    let object = manifest::parse_object_name(&manifest)?;
    let spec = manifest.get("spec").cloned().unwrap_or_default();
    let mut selector = BTreeMap::new();
    if let Some(labels) = spec.get("nodeSelector").and_then(Value::as_object) {
        for (key, value) in labels {
            if let Some(value) = value.as_str() {
                selector.insert(key.clone(), value.to_owned());
            }
        }
    }
    Some(Object {
        resource,
        kind: object.kind_and_group(),
        name: object.name,
        spec,
        selector,
    })
}

fn list_object_pairs<'o, 'w>(
    all: &'o [Object<'w>],
) -> impl Iterator<Item = (&'o Object<'w>, &'o Object<'w>)> {
    all.iter()
        .enumerate()
        .flat_map(|(n, one)| all[n + 1..].iter().map(move |other| (one, other)))
}

impl Object<'_> {
    fn texts(&self, pointer: &str) -> BTreeSet<String> {
        let mut texts = BTreeSet::new();
        if let Some(items) = self.spec.pointer(pointer).and_then(Value::as_array) {
            texts.extend(
                items
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_lowercase),
            );
        }
        texts
    }

    fn nic(&self) -> String {
        match self.spec.pointer("/nicSelector/nicType") {
            Some(Value::String(nic)) => nic.to_lowercase(),
            _ => String::new(),
        }
    }

    fn has_section(&self, section: &str) -> bool {
        match self.spec.get(section) {
            Some(value) => !value.is_null(),
            None => false,
        }
    }

    /// A label of a node says otherwise.
    fn leaves_out(&self, loaded: &LoadedSpec, host: &Host) -> bool {
        for (key, value) in &self.selector {
            if let Some(label) = find_node_label(loaded, host, key)
                && label != value
            {
                return true;
            }
        }
        false
    }

    /// Every label of it is one of the node.
    fn selects(&self, loaded: &LoadedSpec, host: &Host) -> bool {
        let mut labels = self.selector.iter();
        labels.all(|(key, value)| find_node_label(loaded, host, key) == Some(value))
    }

    /// Every label of it is one of the other's.
    fn is_selector_within(&self, other: &Object) -> bool {
        let mut labels = self.selector.iter();
        labels.all(|(key, value)| other.selector.get(key) == Some(value))
    }
}

fn find_node_label<'l>(loaded: &'l LoadedSpec, host: &'l Host, key: &str) -> Option<&'l String> {
    if key == "kubernetes.io/hostname" {
        Some(&host.node)
    } else {
        loaded.group_of(host).kubernetes_labels.get(key)
    }
}

/// Some node is surely selected by both.
fn has_common_node(loaded: &LoadedSpec, one: &Object, other: &Object) -> bool {
    let mut hosts = loaded.hosts.iter();
    one.is_selector_within(other)
        || other.is_selector_within(one)
        || hosts.any(|host| one.selects(loaded, host) && other.selects(loaded, host))
}

/// Both places, where the spec says them.
fn label_both_places(
    loaded: &LoadedSpec,
    mut finding: Diagnostic,
    places: [(String, &str); 2],
) -> Diagnostic {
    for (path, text) in places {
        if let Some(label) = loaded.label_around(&path, text) {
            finding = finding.labelled(label);
        }
    }
    finding
}

/// Where the spec says what a resource was made from.
fn find_spec_path(resource: &DesiredResource) -> String {
    match resource.places.first() {
        Some(place) => place.path.clone(),
        None => String::new(),
    }
}

impl Object<'_> {
    /// Where the spec says it: the entry of this name in a parameter of the module that made it,
    /// where there is one.
    fn place(&self, loaded: &LoadedSpec) -> String {
        if let Some(entry) = self.find_parameter_entry(loaded) {
            return entry;
        }
        for place in &self.resource.places {
            if place.path.starts_with("modules[") {
                return place.path.clone();
            }
        }
        find_spec_path(self.resource)
    }

    fn find_parameter_entry(&self, loaded: &LoadedSpec) -> Option<String> {
        let module = self.resource.module.split('/').next().unwrap_or_default();
        for (parameter, value) in &loaded.spec.modules.get(module)?.parameters {
            let Some(entries) = value.as_array() else {
                continue;
            };
            for (at, entry) in entries.iter().enumerate() {
                if entry.get("name").and_then(Value::as_str) == Some(self.name.as_str()) {
                    return Some(format!(
                        "modules[\"{module}\"].parameters[\"{parameter}\"][{at}].name"
                    ));
                }
            }
        }
        None
    }
}

/// A template that optimises RoCE on a NIC whose class the host sets.
fn with_hosts(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    resources: &[DesiredResource],
    template: &Object,
) -> Option<Diagnostic> {
    let enabled = template.spec.pointer("/template/roceOptimized/enabled")?;
    if *enabled != Value::Bool(true) {
        return None;
    }
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    for host in &loaded.hosts {
        if may_configure_nics(template, loaded, catalog, host) {
            hosts.insert(&host.name);
        }
    }
    let mut set_by_us: Vec<&DesiredResource> = Vec::new();
    for resource in resources {
        let target = &resource.address.target;
        if target.kind == TargetKind::Host
            && OF_HOSTS.contains(&resource.kind.as_str())
            && hosts.contains(&*target.name)
        {
            set_by_us.push(resource);
        }
    }
    new_qos_owners_error(loaded, &set_by_us, template)
}

/// A model of which no PCI id is known may be the NIC of the template.
fn may_configure_nics(
    template: &Object,
    loaded: &LoadedSpec,
    catalog: &Catalog,
    host: &Host,
) -> bool {
    if template.leaves_out(loaded, host) {
        return false;
    }
    let nics = loaded.group_of(host).nics.as_ref();
    let Some(model) = nics.and_then(|nics| catalog.nic.get(&nics.model)) else {
        return true;
    };
    let nic = template.nic();
    let mut ids = model.pci_ids.iter();
    model.pci_ids.is_empty() || ids.any(|id| id.split(':').nth(1) == Some(nic.as_str()))
}

fn new_qos_owners_error(
    loaded: &LoadedSpec,
    set_by_us: &[&DesiredResource],
    template: &Object,
) -> Option<Diagnostic> {
    let first = set_by_us.first()?;
    let (mut hosts, mut modules) = (BTreeSet::new(), BTreeSet::new());
    for resource in set_by_us {
        hosts.insert(&*resource.address.target.name);
        modules.extend(resource.module.split('/').next());
    }
    let hosts: Vec<&str> = hosts.into_iter().collect();
    let off: Vec<String> = modules
        .iter()
        .map(|module| format!("{module}: {{ enabled: false }}"))
        .collect();
    let finding = Diagnostic::error(CODE, "the QoS of the NICs of these hosts has two owners")
        .effect(
            "the operator's daemon sets trust, PFC and the points of ECN of these ports again and \
             again, and we set them over SSH: with two classes the lossless one drops packets, or \
             pauses what it should not",
        )
        .next(format!(
            "leave it to the operator: `modules: {{ {} }}`",
            off.join(", ")
        ))
        .next(format!(
            "or leave `roceOptimized` out of the template {}, or have it select other nodes",
            template.name
        ))
        .on(nodeset::fold_node_set(&hosts));
    Some(label_both_places(
        loaded,
        finding,
        [
            (find_spec_path(first), "set by us on the hosts"),
            (
                template.place(loaded),
                "set by the NIC configuration operator",
            ),
        ],
    ))
}

/// A policy that brings the driver to nodes whose hosts have one of ours.
fn with_drivers(loaded: &LoadedSpec, policy: &Object) -> Option<Diagnostic> {
    if policy.spec.get("ofedDriver")?.is_null() {
        return None;
    }
    let mut hosts: Vec<&Host> = Vec::new();
    for host in &loaded.hosts {
        if let Some(stack) = &loaded.group_of(host).rdma_stack
            && matches!(stack.flavour, RdmaFlavour::Doca | RdmaFlavour::MlnxOfed)
            && !policy.leaves_out(loaded, host)
        {
            hosts.push(host);
        }
    }
    let first = format!("nodes[{}].rdma_stack", hosts.first()?.group);
    let finding = Diagnostic::error(CODE, "the RDMA drivers of these hosts have two owners")
        .effect(
            "the network operator unloads the drivers of the host and loads its own from a \
             container: which driver runs depends on who was last",
        )
        .next(format!(
            "leave `ofed_driver` out of the policy {}, or have it select other nodes",
            policy.name
        ))
        .next("or say `rdma_stack: { flavour: inbox }` of the hosts")
        .on(nodeset::fold_node_set(
            &hosts.iter().map(|host| &host.name).collect::<Vec<_>>(),
        ));
    Some(label_both_places(
        loaded,
        finding,
        [
            (first, "installed by us"),
            (policy.place(loaded), "brought by the network operator"),
        ],
    ))
}

/// The operator tells NICs by their model, and by PCI addresses and serial numbers where those are
/// given.
fn is_same_nic(one: &Object, other: &Object) -> bool {
    one.nic() == other.nic()
        && may_share(one, other, "/nicSelector/pciAddresses")
        && may_share(one, other, "/nicSelector/serialNumbers")
}

/// Whether two selectors have an entry of a list in common; an empty list stands for all.
fn may_share(one: &Object, other: &Object, pointer: &str) -> bool {
    let (one, other) = (one.texts(pointer), other.texts(pointer));
    one.is_empty() || other.is_empty() || !one.is_disjoint(&other)
}

fn twice_configured(loaded: &LoadedSpec, one: &Object, other: &Object) -> Option<Diagnostic> {
    if !has_common_node(loaded, one, other) {
        return None;
    }
    let finding = Diagnostic::error(
        CODE,
        format!(
            "the templates {} and {} would configure the same NICs",
            one.name, other.name
        ),
    )
    .effect(
        "the operator applies neither of two templates that match one device: the NICs stay as \
         they are",
    )
    .next("let each select nodes, PCI addresses or serial numbers of its own");
    Some(label_both_places(
        loaded,
        finding,
        [
            (one.place(loaded), "one template"),
            (other.place(loaded), "the other one"),
        ],
    ))
}

fn twice_said(loaded: &LoadedSpec, cluster: &Object, node: &Object) -> Option<Diagnostic> {
    let mut sections = SECTIONS.into_iter();
    let section =
        sections.find(|section| cluster.has_section(section) && node.has_section(section))?;
    let finding = Diagnostic::error(
        CODE,
        format!(
            "`{section}` is in the policy of the cluster and in the policy {} of nodes",
            node.name
        ),
    )
    .effect(
        "the operator takes a section in one of the two only: with its webhook it refuses the \
         second, without it each has its own DaemonSet on the same nodes",
    )
    .next("leave it out of the cluster's policy, and have a policy for each group of nodes");
    Some(label_both_places(
        loaded,
        finding,
        [
            (cluster.place(loaded), "of the whole cluster"),
            (node.place(loaded), "of some nodes"),
        ],
    ))
}

fn twice_selected(loaded: &LoadedSpec, one: &Object, other: &Object) -> Option<Diagnostic> {
    if !has_common_node(loaded, one, other) {
        return None;
    }
    let finding = Diagnostic::error(
        CODE,
        format!(
            "the policies {} and {} select the same nodes",
            one.name, other.name
        ),
    )
    .effect("the operator's state of both is `error`, and it changes nothing on any of their nodes")
    .next(
        "let each select nodes of its own: `kubernetes_labels` of the groups, with another value \
         for each",
    );
    Some(label_both_places(
        loaded,
        finding,
        [
            (one.place(loaded), "one policy"),
            (other.place(loaded), "the other one"),
        ],
    ))
}
