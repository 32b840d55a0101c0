//! One owner for each setting of a NIC, where one of them is an object of NVIDIA's operators: the
//! hosts that we set up, a template of the NIC configuration operator, a policy of the network
//! operator. None of the operators says so when it is too late: a device that two templates match
//! gets neither, and two who set the class of a port take it from each other.
//!
//! Which nodes an object selects is told by the labels that the spec gives them; a label that the
//! spec does not give a node may be there.

use crate::catalog::Catalog;
use crate::spec::model::{RdmaFlavour, RdmaStack};
use crate::spec::{Host, LoadedSpec};
use railwright_base::{Diagnostic, Target, TargetKind, nodeset};
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

/// All that have two.
pub(super) fn check_nic_owners(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    wishes: &[DesiredResource],
) -> Vec<Diagnostic> {
    let of = |kind: &str| {
        list_kubernetes_objects(wishes)
            .filter(|object| object.kind == kind)
            .collect::<Vec<_>>()
    };
    let (templates, policies) = (of(TEMPLATE), of(NODE_POLICY));
    let mut out: Vec<Diagnostic> = templates
        .iter()
        .filter_map(|template| with_hosts(loaded, catalog, wishes, template))
        .collect();
    out.extend(
        list_object_pairs(&templates)
            .filter(|(one, other)| is_same_nic(one, other))
            .filter_map(|(one, other)| twice_configured(loaded, one, other)),
    );
    out.extend(of(CLUSTER_POLICY).iter().flat_map(|cluster| {
        policies
            .iter()
            .filter_map(|node| twice_said(loaded, cluster, node))
    }));
    out.extend(
        policies
            .iter()
            .filter_map(|policy| with_drivers(loaded, policy)),
    );
    out.extend(
        list_object_pairs(&policies).filter_map(|(one, other)| twice_selected(loaded, one, other)),
    );
    out
}

/// An object that is wished for.
struct Object<'w> {
    wish: &'w DesiredResource,
    kind: String,
    name: String,
    spec: Value,
    /// The labels of the nodes that it is for.
    selector: BTreeMap<String, String>,
}

fn list_kubernetes_objects(wishes: &[DesiredResource]) -> impl Iterator<Item = Object<'_>> {
    wishes
        .iter()
        .filter(|wish| wish.kind == "kubernetes_object")
        .filter_map(|wish| {
            let manifest = manifest::parse_manifest(&wish.body).ok()?;
            let object = manifest::parse_object_name(&manifest)?;
            let spec = manifest.get("spec").cloned().unwrap_or_default();
            let selector = spec
                .get("nodeSelector")
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            let selector = selector
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect();
            Some(Object {
                wish,
                kind: object.kind_and_group(),
                name: object.name,
                spec,
                selector,
            })
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
        let all = self
            .spec
            .pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        all.filter_map(Value::as_str)
            .map(str::to_lowercase)
            .collect()
    }

    fn nic(&self) -> String {
        self.spec
            .pointer("/nicSelector/nicType")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_lowercase()
    }

    /// A label of a node says otherwise.
    fn leaves_out(&self, loaded: &LoadedSpec, host: &Host) -> bool {
        self.selector.iter().any(|(key, value)| {
            find_node_label(loaded, host, key).is_some_and(|other| other != value)
        })
    }

    /// Every label of it is one of the node.
    fn selects(&self, loaded: &LoadedSpec, host: &Host) -> bool {
        self.selector
            .iter()
            .all(|(key, value)| find_node_label(loaded, host, key) == Some(value))
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
    let is_part = |small: &Object, large: &Object| {
        small
            .selector
            .iter()
            .all(|(key, value)| large.selector.get(key) == Some(value))
    };
    is_part(one, other)
        || is_part(other, one)
        || loaded
            .hosts
            .iter()
            .any(|host| one.selects(loaded, host) && other.selects(loaded, host))
}

/// Both places, where the spec says them.
fn label_both_places(
    loaded: &LoadedSpec,
    finding: Diagnostic,
    all: [(String, &str); 2],
) -> Diagnostic {
    let labels = all
        .into_iter()
        .filter_map(|(path, text)| loaded.label_around(&path, text));
    labels.fold(finding, Diagnostic::labelled)
}

/// Where the spec says what a wish was made from.
fn find_spec_path(wish: &DesiredResource) -> String {
    wish.places
        .first()
        .map(|place| place.path.clone())
        .unwrap_or_default()
}

impl Object<'_> {
    /// Where the spec says it: the entry of this name in a parameter of the module that made it,
    /// where there is one.
    fn place(&self, loaded: &LoadedSpec) -> String {
        let module = self.wish.module.split('/').next().unwrap_or_default();
        let parameters = loaded
            .spec
            .modules
            .get(module)
            .map(|module| &module.parameters);
        let entry = |(parameter, value): (&String, &Value)| {
            let at = value
                .as_array()?
                .iter()
                .position(|entry| entry.get("name").and_then(Value::as_str) == Some(&self.name))?;
            Some(format!(
                "modules[\"{module}\"].parameters[\"{parameter}\"][{at}].name"
            ))
        };
        let of_module =
            |place: &&railwright_base::SourceLocation| place.path.starts_with("modules[");
        let any = || {
            self.wish
                .places
                .iter()
                .find(of_module)
                .map_or_else(|| find_spec_path(self.wish), |place| place.path.clone())
        };
        parameters
            .into_iter()
            .flatten()
            .find_map(entry)
            .unwrap_or_else(any)
    }
}

/// A template that optimises RoCE on a NIC whose class the host sets.
fn with_hosts(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    wishes: &[DesiredResource],
    template: &Object,
) -> Option<Diagnostic> {
    template
        .spec
        .pointer("/template/roceOptimized/enabled")
        .filter(|enabled| **enabled == Value::Bool(true))?;
    let hosts: BTreeSet<&str> = loaded
        .hosts
        .iter()
        .filter(|host| may_configure_nics(template, loaded, catalog, host))
        .map(|host| host.name.as_str())
        .collect();
    let sets = |wish: &&DesiredResource| {
        let Target { kind, name } = &wish.address.target;
        *kind == TargetKind::Host
            && OF_HOSTS.contains(&wish.kind.as_str())
            && hosts.contains(&**name)
    };
    let set_by_us: Vec<&DesiredResource> = wishes.iter().filter(sets).collect();
    new_qos_owners_error(loaded, &set_by_us, template)
}

/// A model of which no PCI id is known may be the NIC of the template.
fn may_configure_nics(
    template: &Object,
    loaded: &LoadedSpec,
    catalog: &Catalog,
    host: &Host,
) -> bool {
    let nics = loaded.group_of(host).nics.as_ref();
    let model = nics.and_then(|nics| catalog.nic.get(&nics.model));
    let ids = model
        .map(|model| model.pci_ids.as_slice())
        .unwrap_or_default();
    let nic = template.nic();
    let is_nic = |id: &String| id.split(':').nth(1).is_some_and(|device| device == nic);
    (ids.is_empty() || ids.iter().any(is_nic)) && !template.leaves_out(loaded, host)
}

fn new_qos_owners_error(
    loaded: &LoadedSpec,
    set_by_us: &[&DesiredResource],
    template: &Object,
) -> Option<Diagnostic> {
    let first = set_by_us.first()?;
    let (mut hosts, mut modules) = (BTreeSet::new(), BTreeSet::new());
    for wish in set_by_us {
        hosts.insert(&*wish.address.target.name);
        modules.extend(wish.module.split('/').next());
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
    policy
        .spec
        .get("ofedDriver")
        .filter(|driver| !driver.is_null())?;
    let of_hosts =
        |stack: &RdmaStack| matches!(stack.flavour, RdmaFlavour::Doca | RdmaFlavour::MlnxOfed);
    let is_of = |host: &&Host| {
        loaded
            .group_of(host)
            .rdma_stack
            .as_ref()
            .is_some_and(of_hosts)
            && !policy.leaves_out(loaded, host)
    };
    let hosts: Vec<&Host> = loaded.hosts.iter().filter(is_of).collect();
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
    let share = |pointer: &str| {
        let (one, other) = (one.texts(pointer), other.texts(pointer));
        one.is_empty() || other.is_empty() || !one.is_disjoint(&other)
    };
    one.nic() == other.nic()
        && share("/nicSelector/pciAddresses")
        && share("/nicSelector/serialNumbers")
}

fn twice_configured(loaded: &LoadedSpec, one: &Object, other: &Object) -> Option<Diagnostic> {
    has_common_node(loaded, one, other).then_some(())?;
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
    let says = |object: &Object, section: &str| {
        object
            .spec
            .get(section)
            .is_some_and(|value| !value.is_null())
    };
    let section = SECTIONS
        .into_iter()
        .find(|section| says(cluster, section) && says(node, section))?;
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
    has_common_node(loaded, one, other).then_some(())?;
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
