//! How the cluster of the spec gives RDMA devices to pods: by which resources, and what a unit of
//! each brings.

use railwright_knowledge::spec::LoadedSpec;
use railwright_knowledge::spec::model::{FabricKind, RdmaPlugin};
use railwright_knowledge::spec::pools;
use std::collections::BTreeSet;

/// The resource of Alibaba Cloud's eRDMA controller.
pub(super) const ERDMA: &str = "aliyun/erdma";

/// A resource that gives RDMA devices to pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// Its whole name.
    pub resource: String,
    /// True where a unit brings all devices that there are, and more units bring no more.
    pub shared: bool,
    /// The rails whose devices it brings; all where nothing is said.
    pub rails: Option<BTreeSet<u32>>,
}

/// What the cluster of the spec gives.
pub(super) fn list_rdma_offers(loaded: &LoadedSpec) -> Vec<Offer> {
    let Some(kubernetes) = &loaded.spec.kubernetes else {
        return Vec::new();
    };
    let erdma = (loaded.spec.fabric.kind == FabricKind::Erdma).then(|| Offer {
        resource: ERDMA.to_owned(),
        shared: true,
        rails: None,
    });
    let pools = kubernetes.rdma.iter().flat_map(|rdma| {
        let is_shared = rdma.plugin == RdmaPlugin::Shared;
        let prefix = if is_shared { "rdma" } else { "nvidia.com" };
        let offer = move |(name, text): (&String, &String)| Offer {
            resource: format!("{prefix}/{name}"),
            shared: is_shared,
            rails: pools::parse_rail_list(text),
        };
        rdma.resources.iter().map(offer).collect::<Vec<_>>()
    });
    erdma.into_iter().chain(pools).collect()
}

/// The resources by which the cluster of the spec gives RDMA devices, each with how many a unit
/// brings, as far as that is said.
pub fn list_rdma_pools(loaded: &LoadedSpec) -> Vec<(String, Option<usize>)> {
    let of_all = loaded
        .hosts
        .iter()
        .map(|host| host.netdevs.len())
        .min()
        .filter(|count| *count > 0);
    let of_rails = |offer: &Offer| offer.rails.as_ref().map(BTreeSet::len).or(of_all);
    // How many eRDMA devices a pod gets is a setting of the controller.
    let counted =
        |offer: &Offer| of_rails(offer).filter(|_| offer.shared && offer.resource != ERDMA);
    list_rdma_offers(loaded)
        .iter()
        .map(|offer| (offer.resource.clone(), counted(offer)))
        .collect()
}

/// The rails whose devices come with these resources; nothing where that is not said of one of
/// them, or none of them gives any: then it may be all.
pub fn rails_of<'r>(
    loaded: &LoadedSpec,
    resources: impl Iterator<Item = &'r str>,
) -> Option<BTreeSet<u32>> {
    let offers = list_rdma_offers(loaded);
    let asked: Vec<&Offer> = resources
        .filter_map(|resource| offers.iter().find(|offer| offer.resource == resource))
        .collect();
    let rails: Option<Vec<&BTreeSet<u32>>> =
        asked.iter().map(|offer| offer.rails.as_ref()).collect();
    rails
        .filter(|rails| !rails.is_empty())
        .map(|rails| rails.into_iter().flatten().copied().collect())
}

/// Whether a resource that pods ask for gives RDMA devices, by its name alone.
pub fn gives_rdma(resource: &str) -> bool {
    is_rdma(resource, &[])
}

/// Whether a resource gives RDMA devices, by the spec or by its name.
pub(super) fn is_rdma(resource: &str, offers: &[Offer]) -> bool {
    resource == ERDMA
        || resource.starts_with("rdma/")
        || offers.iter().any(|offer| offer.resource == resource)
}

/// Whether a unit of it brings all that there is: everything but virtual functions.
pub(super) fn is_shared(resource: &str, offers: &[Offer]) -> bool {
    offers
        .iter()
        .find(|offer| offer.resource == resource)
        .map_or_else(|| is_rdma(resource, offers), |offer| offer.shared)
}
