//! The Kubernetes cluster: its name, how it is reached, and the RDMA devices that its pods get.

use super::{SpecChecker, is_plain_name, new_spec_error, truncate_user_text};
use crate::spec::hosts::Host;
use crate::spec::model::{KubernetesRdma, RdmaPlugin, Spec};
use crate::spec::pools;
use std::collections::BTreeMap;

const EFFECT: &str = "nothing of Kubernetes could be planned, or what is remembered of it would be \
                      taken for another target's";

/// What is wrong with it by itself.
pub fn check_kubernetes_section(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(kubernetes) = &spec.kubernetes else {
        return;
    };
    if let Some(name) = kubernetes
        .name
        .as_deref()
        .filter(|name| !is_plain_name(name, 63))
    {
        let fix = "use letters, digits and `-`, at most 63, starting with a letter or digit";
        let finding = new_spec_error(
            "RW0138",
            format!(
                "`{}` cannot be the name of a Kubernetes cluster",
                truncate_user_text(name)
            ),
            EFFECT,
            fix,
        );
        checker.find("kubernetes.name", "not a name", finding);
    }
    for (field, value) in [
        ("kubeconfig", &kubernetes.kubeconfig),
        ("context", &kubernetes.context),
    ] {
        if value
            .as_ref()
            .is_some_and(|text| text.trim().is_empty() || text.chars().any(char::is_control))
        {
            let finding = new_spec_error(
                "RW0138",
                format!("`kubernetes.{field}` is empty or holds control characters"),
                EFFECT,
                "name it, or leave it out",
            );
            checker.find(&format!("kubernetes.{field}"), "here", finding);
        }
    }
    if let Some(rdma) = &kubernetes.rdma {
        check_rdma_pools(checker, rdma);
    }
}

/// The plugin refuses other characters; the API server refuses names that are too long, and a `_`
/// at an end, in every pod that asks for such a resource (kubernetes/apimachinery:
/// `pkg/util/validation/validation.go`, IsQualifiedName).
fn is_resource_name(name: &str) -> bool {
    name.len() <= 58
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.is_empty()
        && !name.starts_with('_')
        && !name.ends_with('_')
}

/// Pools of RDMA devices, each by itself.
fn check_rdma_pools(checker: &mut SpecChecker<'_>, rdma: &KubernetesRdma) {
    if rdma.resources.is_empty() {
        let finding = new_spec_error(
            "RW0139",
            "`kubernetes.rdma` has no pool",
            NO_POOL,
            "name one: `resources: { rdma_shared_device_a: rail 0-3 }`",
        );
        checker.find("kubernetes.rdma", "without `resources`", finding);
    }
    for (name, rails) in &rdma.resources {
        check_rdma_pool(checker, name, rails);
    }
    if rdma.plugin == RdmaPlugin::Sriov && rdma.max.is_none() {
        let finding = new_spec_error(
            "RW0139",
            "how many virtual functions a pool has is not said",
            "a node whose virtual functions were not made gives none, and nobody would miss them",
            "say how many the NICs of a pool have on each node, all together: `max: 32` for 4 NICs \
             with 8 each",
        );
        checker.find("kubernetes.rdma", "without `max`", finding);
    }
    if rdma.max == Some(0) {
        let finding = new_spec_error(
            "RW0139",
            "`max` is 0: no pod would get a unit",
            NO_POOL,
            "1000 is what the plugin's own example has",
        );
        checker.find("kubernetes.rdma.max", "at least 1", finding);
    }
}

fn check_rdma_pool(checker: &mut SpecChecker<'_>, name: &str, rails: &str) {
    let path = format!("kubernetes.rdma.resources[\"{name}\"]");
    if !is_resource_name(name) {
        let shown = truncate_user_text(name);
        let message = format!("`{shown}` cannot be a resource of the device plugin");
        let fix = "letters, digits and, between them, `_`; at most 58: `rdma_shared_device_a`";
        let finding = new_spec_error("RW0139", message, NO_POOL, fix);
        checker.find(&path, "no such name is taken", finding);
    }
    if pools::parse_rail_list(rails).is_none() {
        let message = format!("`{}` names no rails", truncate_user_text(rails));
        let fix = "write `rail 0-3` or `rail 0,2`";
        let finding = new_spec_error("RW0139", message, NO_POOL, fix);
        checker.find(&path, "not rails", finding);
    }
}

const NO_POOL: &str = "pods that ask for the resource would wait for ever, or run over TCP";

/// Pools against the hosts: every rail is there, and no netdev is in two pools.
pub fn check_pools_of_hosts(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let Some(rdma) = spec
        .kubernetes
        .as_ref()
        .and_then(|kubernetes| kubernetes.rdma.as_ref())
    else {
        return;
    };
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (name, text) in &rdma.resources {
        let Some(rails) = pools::parse_rail_list(text) else {
            continue;
        };
        let path = format!("kubernetes.rdma.resources[\"{name}\"]");
        if let Some(rail) = rails.iter().find(|rail| !is_rail_of_any(hosts, **rail)) {
            let finding = new_spec_error(
                "RW0139",
                format!("no host has a rail {rail}"),
                NO_POOL,
                "rails are counted from 0, as `nics.rails` says how many",
            );
            checker.find(&path, "not on any host", finding);
        }
        for netdev in pools::list_rail_netdevs(hosts, &rails) {
            if let Some(other) = seen.insert(netdev.clone(), name) {
                let finding = new_spec_error(
                    "RW0139",
                    format!(
                        "`{netdev}` would be in two pools, `{}` and `{}`",
                        truncate_user_text(other),
                        truncate_user_text(name)
                    ),
                    "the plugin goes by the names of netdevs: both pools would hand out the same \
                     NIC, and two jobs share one rail",
                    "give each rail to one pool, and each rail the same netdev on all hosts \
                     (`nics.naming`)",
                );
                checker.find(&path, "the second of them", finding);
                break;
            }
        }
    }
}

fn is_rail_of_any(hosts: &[Host], rail: u32) -> bool {
    let mut netdevs = hosts.iter().flat_map(|host| &host.netdevs);
    netdevs.any(|netdev| netdev.rail == rail)
}

/// Locks, records and plans know a target by its name alone: `names` are those of all hosts, or of
/// all switches.
pub fn check_kubernetes_name<'n>(
    checker: &mut SpecChecker<'_>,
    spec: &Spec,
    what: &str,
    mut names: impl Iterator<Item = &'n str>,
) {
    let Some(kubernetes) = &spec.kubernetes else {
        return;
    };
    let name = kubernetes.name.as_deref().unwrap_or(&spec.cluster);
    if names.any(|other| other == name) {
        let finding = new_spec_error(
            "RW0138",
            format!(
                "the Kubernetes cluster and a {what} are both named `{}`",
                truncate_user_text(name)
            ),
            EFFECT,
            "give the cluster another: `kubernetes: { name: ... }`",
        );
        checker.find(
            "kubernetes.name",
            &format!("a {what} has this name"),
            finding,
        );
    }
}
