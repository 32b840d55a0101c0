//! One owner for each driver and each NIC of a node: a host that we set up, or a controller of the cluster.

use super::{Checker, error};
use crate::spec::model::{FabricKind, Spec};

const CODE: &str = "RW0146";
/// The module that loads the eRDMA driver on hosts.
const OF_HOSTS: &str = "erdma-driver";

/// The eRDMA controller against the hosts, and against the other device plugin.
pub fn check(checker: &mut Checker<'_>, spec: &Spec) {
    let Some(kubernetes) = spec.kubernetes.as_ref().filter(|kubernetes| kubernetes.erdma.is_some()) else { return };
    let is_left_out = spec.modules.get(OF_HOSTS).is_some_and(|module| module.enabled == Some(false));
    let owned = spec.nodes.iter().enumerate().filter(|(_, group)| group.erdma.is_some() && !is_left_out);
    for (index, _) in owned {
        let finding = error(
            CODE,
            "the eRDMA driver of these hosts has two owners",
            "the controller's agent installs the driver and loads it in the mode of `prefer_driver`, and we load it in that of `erdma`: \
             each takes away what the other set, and hosts in different modes cannot connect",
            "leave `erdma` of the hosts out, or `kubernetes.erdma`",
        );
        let finding = finding.next(format!("to keep its `route_metric` checked: `modules: {{ {OF_HOSTS}: {{ enabled: false }} }}`"));
        checker.find_with(&format!("nodes[{index}].erdma"), "loaded by us", ("kubernetes.erdma", "installed by the agent"), finding);
    }
    if kubernetes.rdma.is_some() && spec.fabric.kind == FabricKind::Erdma {
        let finding = error(
            CODE,
            "two device plugins would hand out the same eRDMA devices",
            "each counts for itself: two jobs get one NIC, and each takes it for its own",
            "leave `kubernetes.rdma` out: the eRDMA controller has a device plugin of its own (`aliyun/erdma`)",
        );
        checker.find_with("kubernetes.rdma", "hands out NICs of all rails", ("kubernetes.erdma", "hands out eRDMA devices"), finding);
    }
}
