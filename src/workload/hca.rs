//! The RDMA devices of the hosts by name, as far as the spec says how they are named. Which names a
//! driver or rdma-core gives is known for some policies only: where it is not, nothing is guessed.

use indexmap::IndexSet;
use railwright_knowledge::catalog::{Catalog, SOFT_ROCE};
use railwright_knowledge::spec::model::{FabricKind, NodeGroup, RdmaFlavour, RdmaNaming};
use railwright_knowledge::spec::{Host, LoadedSpec};
use std::collections::BTreeSet;

/// What is known of the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hcas {
    /// All of them, and how that is known.
    Named { names: Vec<String>, because: String },
    /// They cannot be known, and why.
    Unknown { because: String },
    /// There are none.
    None,
}

/// The devices of these rails on these hosts; of all rails where nothing is said.
pub(super) fn resolve_hca_names(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    hosts: &[&Host],
    rails: Option<&BTreeSet<u32>>,
) -> Hcas {
    let mut names = IndexSet::new();
    let mut because = IndexSet::new();
    let mut groups = BTreeSet::new();
    for host in hosts.iter().filter(|host| groups.insert(host.group)) {
        let group = loaded.group_of(host);
        let how = match find_naming_policy(loaded, catalog, group) {
            Ok(how) => how,
            Err(because) => {
                return Hcas::Unknown {
                    because: format!("{}: {because}", group.name),
                };
            }
        };
        for rail in host
            .netdevs
            .iter()
            .filter(|rail| rails.is_none_or(|rails| rails.contains(&rail.rail)))
        {
            names.insert(match how {
                Policy::Counted(stem, _) => format!("{stem}_{}", rail.rail),
                // as the kind `rdma_link` names what it adds
                Policy::SoftRoce => format!("rxe_{}", rail.port.replace(['.', '@'], "_")),
            });
            because.insert(how.in_words());
        }
    }
    if names.is_empty() {
        return Hcas::None;
    }
    Hcas::Named {
        names: names.into_iter().collect(),
        because: because.into_iter().collect::<Vec<_>>().join("; "),
    }
}

/// How devices are named.
#[derive(Debug, Clone, Copy)]
enum Policy {
    /// A stem and the number of the rail.
    Counted(&'static str, &'static str),
    /// By us, by the netdev; udev keeps that name.
    SoftRoce,
}

impl Policy {
    fn in_words(self) -> String {
        match self {
            Policy::Counted(stem, why) => {
                format!(
                    "{why}, so rail k is {stem}_k, unless another NIC of this driver comes before \
                     the rails on the bus"
                )
            }
            Policy::SoftRoce => {
                "Soft-RoCE devices are named by their netdev (`nics.naming.rdma: kernel`)"
                    .to_owned()
            }
        }
    }
}

fn find_naming_policy(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    group: &NodeGroup,
) -> Result<Policy, &'static str> {
    let Some(nics) = &group.nics else {
        return Err("the spec names no NIC");
    };
    let naming = nics.naming.as_ref().and_then(|naming| naming.rdma);
    if nics.model == SOFT_ROCE {
        // rdma-core's rdma-persistent-naming.rules name it by the place of its NIC on the bus,
        // where that has one: `rocep193s0`.
        let kept = naming == Some(RdmaNaming::Kernel);
        return if kept {
            Ok(Policy::SoftRoce)
        } else {
            Err("rdma-core names a Soft-RoCE device by the place of its NIC on the bus")
        };
    }
    if loaded.spec.fabric.kind == FabricKind::Erdma {
        return Ok(Policy::Counted(
            "erdma",
            "the eRDMA driver counts its devices",
        ));
    }
    let is_mlx5 = catalog
        .nic
        .get(&nics.model)
        .is_some_and(|entry| entry.driver == "mlx5_core");
    let flavour = group.rdma_stack.as_ref().map(|stack| stack.flavour);
    match (naming, flavour) {
        _ if !is_mlx5 => Err("how this driver names its devices is not known"),
        (Some(RdmaNaming::Kernel), _) => Ok(Policy::Counted(
            "mlx5",
            "the spec keeps the driver's names (`nics.naming.rdma: kernel`)",
        )),
        (None, Some(RdmaFlavour::Doca | RdmaFlavour::MlnxOfed)) => Ok(Policy::Counted(
            "mlx5",
            "DOCA and MLNX_OFED keep the driver's names",
        )),
        _ => Err(
            "rdma-core names the devices by their place on the bus, which the spec does not tell \
             in full",
        ),
    }
}
