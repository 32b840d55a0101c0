//! What a platform of Kubernetes cannot have: hosts where there are none, an add-on that another
//! cloud does not know.

use super::{SpecChecker, new_spec_error};
use crate::spec::model::{FabricKind, KubernetesPlatform, Spec};

const CODE: &str = "RW0145";
/// The paths that may say that a cluster is ACS.
const PLATFORM: &str = "kubernetes.platform";
const FABRIC: &str = "fabric.kind";

/// The platform against the rest of the spec.
pub fn check_platform(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let platform = spec
        .kubernetes
        .as_ref()
        .map(|kubernetes| kubernetes.platform);
    if platform == Some(KubernetesPlatform::Acs) {
        check_acs_platform(checker, spec, PLATFORM);
    } else if spec.fabric.kind == FabricKind::Acs {
        check_acs_platform(checker, spec, FABRIC);
    } else if platform != Some(KubernetesPlatform::AckManaged)
        && spec
            .kubernetes
            .as_ref()
            .is_some_and(|kubernetes| kubernetes.erdma.is_some())
    {
        let finding = new_spec_error(
            CODE,
            "the eRDMA controller is for managed clusters of ACK only",
            "it makes eRDMA interfaces of ECS instances over the cloud's API: anywhere else it \
             finds none, and pods wait for a resource that no node has",
            "set `kubernetes.platform: ack-managed`, or leave `kubernetes.erdma` out",
        );
        checker.find_with(
            "kubernetes.erdma",
            "for ACK managed clusters",
            (PLATFORM, "another platform"),
            finding,
        );
    }
}

/// Pods without nodes: Alibaba Cloud gives them their devices.
fn check_acs_platform(checker: &mut SpecChecker<'_>, spec: &Spec, platform_path: &str) {
    let mut wrong = Vec::new();
    if !spec.nodes.is_empty() {
        wrong.push(("nodes", "hosts"));
    }
    if let Some(kubernetes) = &spec.kubernetes {
        if kubernetes.rdma.is_some() {
            wrong.push(("kubernetes.rdma", "a device plugin"));
        }
        if kubernetes.erdma.is_some() {
            wrong.push(("kubernetes.erdma", "the eRDMA controller"));
        }
        if kubernetes.terway.is_some() {
            wrong.push(("kubernetes.terway", "a network plugin"));
        }
    }
    for (path, what) in wrong {
        let finding = new_spec_error(
            CODE,
            format!("ACS has no place for {what}"),
            "its pods have no nodes: there is no SSH, no driver and no DaemonSet, and what is \
             planned for them could never be applied",
            format!(
                "leave `{path}` out and say what the pods ask for in `jobs.acs`, or name another \
                 platform"
            ),
        );
        let platform = (platform_path, "this is ACS");
        checker.find_with(path, "needs nodes", platform, finding);
    }
}
