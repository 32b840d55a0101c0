//! What a module is asked about: one host, one switch, or the Kubernetes cluster.

use super::{cluster_context, context, switch_context};
use crate::spec::{Host, LoadedSpec, SwitchNode};
use railwright_base::{Address, Target, TargetKind};
use railwright_resource::{ResourceKind, kind_named};
use serde_json::Value;

/// One host, one switch, or the Kubernetes cluster by its name.
#[derive(Debug, Clone, Copy)]
pub enum ModuleSubject<'a> {
    /// A host.
    Host(&'a Host),
    /// A switch.
    Switch(&'a SwitchNode),
    /// The cluster.
    Cluster(&'a str),
}

impl ModuleSubject<'_> {
    /// Its name in addresses.
    pub fn name(&self) -> &str {
        match self {
            ModuleSubject::Host(host) => &host.name,
            ModuleSubject::Switch(switch) => &switch.name,
            ModuleSubject::Cluster(name) => name,
        }
    }

    /// What sort of target it is.
    pub fn kind(&self) -> TargetKind {
        match self {
            ModuleSubject::Host(_) => TargetKind::Host,
            ModuleSubject::Switch(_) => TargetKind::Switch,
            ModuleSubject::Cluster(_) => TargetKind::Kube,
        }
    }

    /// The group of hosts or of switches that it is of.
    pub fn group(&self) -> Option<usize> {
        match self {
            ModuleSubject::Host(host) => Some(host.group),
            ModuleSubject::Switch(switch) => Some(switch.group),
            ModuleSubject::Cluster(_) => None,
        }
    }

    /// The part of the spec that is about it.
    pub fn section(&self) -> String {
        match self {
            ModuleSubject::Host(host) => format!("nodes[{}]", host.group),
            ModuleSubject::Switch(switch) => format!("switches[{}]", switch.group),
            ModuleSubject::Cluster(_) => "kubernetes".to_owned(),
        }
    }

    /// The path in the spec of a path of names; `item` is the turn of the loop whose elements are
    /// meant.
    pub fn spec_path(&self, loaded: &LoadedSpec, path: &[String], item: Option<usize>) -> String {
        match self {
            ModuleSubject::Host(host) => context::spec_path(host, path, item),
            ModuleSubject::Switch(switch) => switch_context::spec_path(switch, path),
            ModuleSubject::Cluster(_) => cluster_context::spec_path(loaded, path, item),
        }
    }

    /// The address of a body of this kind on it.
    pub fn address(&self, kind: &dyn ResourceKind, body: &Value) -> Option<Address> {
        let target = Target {
            kind: self.kind(),
            name: self.name().into(),
        };
        Some(Address {
            target,
            path: kind.address_path(body)?.into(),
            attribute: None,
        })
    }
}

/// What sort of target a resource kind is of; a kind that nobody knows is reported elsewhere.
pub fn target_of(kind: &str) -> TargetKind {
    kind_named(kind).map_or(TargetKind::Host, ResourceKind::target_kind)
}
