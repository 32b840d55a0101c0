//! The interface on which the ranks of a job meet: the pod's own, or that of the host's management
//! network.

use super::request::Pods;
use indexmap::IndexSet;
use railwright_knowledge::spec::{Host, LoadedSpec};

/// The only interface of a pod beside `lo`, as the network plugins name it (CNI: the runtime gives
/// `CNI_IFNAME`, containerd and CRI-O `eth0`).
const OF_POD: &str = "eth0";

/// Interfaces of a host that lead to no other host, or are those of pods and services alone:
/// containernetworking/plugins (`cni0`), flannel-io/flannel, projectcalico/calico (`tunl0`,
/// `vxlan.calico`), cilium/cilium, kubernetes/kubernetes (IPVS of kube-proxy), kubernetes/dns
/// (node-local cache), docker, libvirt.
const APART: [&str; 12] = [
    "lo",
    "docker0",
    "cni0",
    "flannel.1",
    "tunl0",
    "vxlan.calico",
    "cilium_host",
    "cilium_net",
    "cilium_vxlan",
    "kube-ipvs0",
    "nodelocaldns",
    "virbr0",
];

/// Where ranks meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meeting {
    /// On these interfaces.
    On { names: Vec<String>, because: String },
    /// On any but these.
    Beside { names: Vec<String>, because: String },
}

/// The interface of a host's management network, where the spec names it.
fn find_management_interface(loaded: &LoadedSpec, host: &Host) -> Option<String> {
    let management = loaded.group_of(host).management.as_ref()?.resolved();
    let vlan = management.vlan.and_then(|vlan| vlan.name);
    vlan.or(management.bond.map(|bond| bond.name))
}

impl Meeting {
    /// Of these pods on these hosts.
    pub(super) fn of(loaded: &LoadedSpec, hosts: &[&Host], pods: &Pods) -> Meeting {
        if !pods.host_network {
            return Meeting::On {
                names: vec![OF_POD.to_owned()],
                because: "it is the pod's own interface on the pod network".to_owned(),
            };
        }
        let named: Option<IndexSet<String>> = hosts
            .iter()
            .map(|host| find_management_interface(loaded, host))
            .collect();
        match named.filter(|names| !names.is_empty()) {
            Some(names) => Meeting::On {
                names: names.into_iter().collect(),
                because: "pods have the network of their host, and the spec names its management \
                          interface (`nodes.management`)"
                    .to_owned(),
            },
            None => {
                let rails: IndexSet<String> = hosts
                    .iter()
                    .flat_map(|host| &host.netdevs)
                    .map(|rail| rail.netdev.clone())
                    .collect();
                let apart = APART.into_iter().map(str::to_owned);
                Meeting::Beside {
                    names: apart.chain(rails).collect(),
                    because:
                        "pods have the network of their host, whose management interface the spec \
                         does not name, so the rails and what network plugins make are left out"
                            .to_owned(),
                }
            }
        }
    }

    /// As `NCCL_SOCKET_IFNAME` has it: whole names.
    pub(super) fn nccl(&self) -> String {
        match self {
            Meeting::On { names, .. } => format!("={}", names.join(",")),
            Meeting::Beside { names, .. } => format!("^={}", names.join(",")),
        }
    }

    /// As `UCX_NET_DEVICES` has it, which cannot leave out.
    pub(super) fn ucx(&self) -> Option<String> {
        match self {
            Meeting::On { names, .. } => Some(names.join(",")),
            Meeting::Beside { .. } => None,
        }
    }

    /// As the parameters of MPI have it: the ending of their names, and the value.
    pub(super) fn mpi(&self) -> (&'static str, String) {
        match self {
            Meeting::On { names, .. } => ("if_include", names.join(",")),
            Meeting::Beside { names, .. } => ("if_exclude", names.join(",")),
        }
    }

    /// How that is known.
    pub(super) fn because(&self) -> &str {
        match self {
            Meeting::On { because, .. } | Meeting::Beside { because, .. } => because,
        }
    }
}
