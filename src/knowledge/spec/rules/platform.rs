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
        of_acs(checker, spec, PLATFORM);
    } else if spec.fabric.kind == FabricKind::Acs {
        of_acs(checker, spec, FABRIC);
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
fn of_acs(checker: &mut SpecChecker<'_>, spec: &Spec, said: &str) {
    let kubernetes = spec.kubernetes.as_ref();
    let has =
        |section: bool, path: &'static str, what: &'static str| section.then_some((path, what));
    let wrong = [
        has(!spec.nodes.is_empty(), "nodes", "hosts"),
        has(
            kubernetes.is_some_and(|kubernetes| kubernetes.rdma.is_some()),
            "kubernetes.rdma",
            "a device plugin",
        ),
        has(
            kubernetes.is_some_and(|kubernetes| kubernetes.erdma.is_some()),
            "kubernetes.erdma",
            "the eRDMA controller",
        ),
        has(
            kubernetes.is_some_and(|kubernetes| kubernetes.terway.is_some()),
            "kubernetes.terway",
            "a network plugin",
        ),
    ];
    for (path, what) in wrong.into_iter().flatten() {
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
        checker.find_with(path, "needs nodes", (said, "this is ACS"), finding);
    }
}
