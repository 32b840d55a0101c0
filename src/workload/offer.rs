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
    let mut offers = Vec::new();
    if loaded.spec.fabric.kind == FabricKind::Erdma {
        offers.push(Offer {
            resource: ERDMA.to_owned(),
            shared: true,
            rails: None,
        });
    }
    if let Some(rdma) = &kubernetes.rdma {
        let shared = rdma.plugin == RdmaPlugin::Shared;
        let prefix = if shared { "rdma" } else { "nvidia.com" };
        for (name, text) in &rdma.resources {
            offers.push(Offer {
                resource: format!("{prefix}/{name}"),
                shared,
                rails: pools::parse_rail_list(text),
            });
        }
    }
    offers
}

/// The resources by which the cluster of the spec gives RDMA devices, each with how many a unit
/// brings, as far as that is said.
pub fn list_rdma_pools(loaded: &LoadedSpec) -> Vec<(String, Option<usize>)> {
    let fewest = loaded.hosts.iter().map(|host| host.netdevs.len()).min();
    let mut pools = Vec::new();
    for offer in list_rdma_offers(loaded) {
        let count = match &offer.rails {
            // How many eRDMA devices a pod gets is a setting of the controller.
            _ if !offer.shared || offer.resource == ERDMA => None,
            Some(rails) => Some(rails.len()),
            None => fewest.filter(|count| *count > 0),
        };
        pools.push((offer.resource, count));
    }
    pools
}

/// The rails whose devices come with these resources; nothing where that is not said of one of
/// them, or none of them gives any: then it may be all.
pub fn rails_of<'r>(
    loaded: &LoadedSpec,
    resources: impl Iterator<Item = &'r str>,
) -> Option<BTreeSet<u32>> {
    let offers = list_rdma_offers(loaded);
    let asked =
        resources.filter_map(|resource| offers.iter().find(|offer| offer.resource == resource));
    join_rails(asked)
}

/// The rails of all these offers; nothing where one does not say its own, or there are none.
pub(super) fn join_rails<'o>(offers: impl Iterator<Item = &'o Offer>) -> Option<BTreeSet<u32>> {
    let mut joined: Option<BTreeSet<u32>> = None;
    for offer in offers {
        let rails = offer.rails.as_ref()?;
        joined.get_or_insert_with(BTreeSet::new).extend(rails);
    }
    joined
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
    match offers.iter().find(|offer| offer.resource == resource) {
        Some(offer) => offer.shared,
        None => is_rdma(resource, offers),
    }
}
