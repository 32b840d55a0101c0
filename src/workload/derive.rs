//! The environment that follows from the inventory: each variable with its reason, and what cannot
//! be told.

use super::asked::RequestPlaces;
use super::hca::{Hcas, resolve_hca_names};
use super::meeting::Meeting;
use super::offer::{Offer, is_rdma, join_rails};
use super::request::JobRequestKind;
use ipnet::IpNet;
use railwright_base::Diagnostic;
use railwright_base::version::parse_version_numbers;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::spec::model::{FabricKind, RdmaFlavour, Trust};
use railwright_knowledge::spec::{Host, LoadedSpec};
use std::collections::BTreeSet;

/// A variable that follows from something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DerivedVariable {
    pub name: &'static str,
    pub value: String,
    pub because: String,
}

/// What the inventory gives a job.
#[derive(Debug, Clone, Default)]
pub(super) struct DerivedEnvironment {
    pub variables: Vec<DerivedVariable>,
    pub warnings: Vec<Diagnostic>,
    /// The devices by name, as far as they are known.
    pub devices: Vec<String>,
}

impl DerivedEnvironment {
    fn put(&mut self, name: &'static str, value: impl Into<String>, because: impl Into<String>) {
        self.variables.push(DerivedVariable {
            name,
            value: value.into(),
            because: because.into(),
        });
    }
}

/// Where a job runs, and with what.
#[derive(Debug, Clone, Copy)]
pub(super) struct DerivationInputs<'a> {
    pub loaded: &'a LoadedSpec,
    pub catalog: &'a Catalog,
    pub hosts: &'a [&'a Host],
    pub offers: &'a [Offer],
    /// The RDMA resources that its pods ask for.
    pub asked: &'a [String],
    pub meeting: &'a Meeting,
    /// Whoever asked for the job, for the words of what to write.
    pub by: &'a RequestPlaces,
}

/// The environment of a job of this kind; `said` are the variables that somebody sets.
pub(super) fn derive_environment(
    ground: DerivationInputs<'_>,
    kind: JobRequestKind,
    said: &BTreeSet<String>,
) -> DerivedEnvironment {
    let mut made = DerivedEnvironment::default();
    let fabric = &ground.loaded.spec.fabric;
    derive_meeting_variables(&mut made, ground.meeting, kind);
    let has_rdma = ground
        .asked
        .iter()
        .any(|resource| is_rdma(resource, ground.offers));
    if !has_rdma
        || matches!(
            fabric.kind,
            FabricKind::None | FabricKind::Acs | FabricKind::Iwarp
        )
    {
        return made;
    }
    derive_devices(&mut made, ground, said);
    if matches!(fabric.kind, FabricKind::Rocev2 | FabricKind::Erdma) {
        derive_gid_variables(&mut made, ground, said);
    }
    derive_traffic_class(&mut made, ground.loaded);
    let rails = ground
        .hosts
        .iter()
        .map(|host| host.netdevs.len())
        .max()
        .unwrap_or_default();
    if fabric.routed == Some(false) && rails > 1 {
        let because = format!(
            "{} is false: each rail is a network of its own, and nothing leads from one to another",
            describe_spec_path(ground.loaded, "fabric.routed")
        );
        made.put("NCCL_CROSS_NIC", "0", because);
    }
    made
}

/// How ranks find each other, which jobs without RDMA need too.
fn derive_meeting_variables(
    made: &mut DerivedEnvironment,
    meeting: &Meeting,
    kind: JobRequestKind,
) {
    // `job prove` and people read in the log which network was taken.
    made.put(
        "NCCL_DEBUG",
        "INFO",
        "the log has to say which network and which devices were used",
    );
    made.put(
        "NCCL_SOCKET_IFNAME",
        meeting.nccl(),
        format!("ranks meet here: {}", meeting.because()),
    );
    if kind == JobRequestKind::NcclTest
        && let Some(value) = meeting.ucx()
    {
        made.put(
            "UCX_NET_DEVICES",
            value,
            "MPI keeps off the RDMA devices, and meets where NCCL does",
        );
    }
}

/// Nothing where switches go by the PCP of a frame, which NCCL does not set.
fn derive_traffic_class(made: &mut DerivedEnvironment, loaded: &LoadedSpec) {
    let Some(lossless) = &loaded.spec.fabric.lossless else {
        return;
    };
    if lossless.trust == Some(Trust::Pcp) {
        return;
    }
    let because = format!(
        "{} is {}, and a traffic class is four times its DSCP",
        describe_spec_path(loaded, "fabric.lossless.dscp"),
        lossless.dscp
    );
    let class = u32::from(lossless.dscp) * 4;
    made.put("NCCL_IB_TC", class.to_string(), because);
}

/// A path of the spec with its place, where the files have it.
pub(super) fn describe_spec_path(loaded: &LoadedSpec, path: &str) -> String {
    match loaded.place(path) {
        Some(place) => format!("`{path}` ({place})"),
        None => format!("`{path}`"),
    }
}

/// The rails whose devices the pods get: those of the pools that they ask for.
fn select_rails(ground: DerivationInputs<'_>) -> Option<BTreeSet<u32>> {
    let asked = ground
        .offers
        .iter()
        .filter(|offer| ground.asked.contains(&offer.resource));
    join_rails(asked)
}

fn derive_devices(
    made: &mut DerivedEnvironment,
    ground: DerivationInputs<'_>,
    said: &BTreeSet<String>,
) {
    let rails = select_rails(ground);
    let functions = ground
        .offers
        .iter()
        .find(|offer| !offer.shared && ground.asked.contains(&offer.resource));
    let found = match functions {
        Some(offer) => Hcas::Unknown {
            because: format!(
                "{}: virtual functions are named when they are made",
                offer.resource
            ),
        },
        None => resolve_hca_names(ground.loaded, ground.catalog, ground.hosts, rails.as_ref()),
    };
    match found {
        Hcas::Named { names, because } => {
            let mut pools = String::new();
            if let Some(rails) = rails {
                let rails: Vec<String> = rails.iter().map(u32::to_string).collect();
                let rails = rails.join(", ");
                pools = format!("the pools that the pods ask for hand out rails {rails}; ");
            }
            let because = format!(
                "{pools}{because}; `=` stands for whole names, as mlx5_1 is also the beginning of \
                 mlx5_10"
            );
            made.put("NCCL_IB_HCA", format!("={}", names.join(",")), because);
            made.devices = names;
        }
        Hcas::Unknown { because } if !said.contains("NCCL_IB_HCA") => {
            made.warnings.push(warn_unknown_devices(because, ground.by));
        }
        Hcas::Unknown { .. } | Hcas::None => {}
    }
}

fn warn_unknown_devices(because: String, by: &RequestPlaces) -> Diagnostic {
    let message = "the names of the RDMA devices do not follow from the spec";
    Diagnostic::warning("RW1224", message)
        .on(because)
        .effect(
            "`NCCL_IB_HCA` is left out, so NCCL takes every RDMA device that a pod sees, storage \
             and management among them",
        )
        .next(by.words(
            "give them: --env NCCL_IB_HCA==NAME,NAME, as `ibv_devices` prints them on a host; or \
             keep the driver's names with `nics: { naming: { rdma: kernel } }`",
            "give them: `environment: { NCCL_IB_HCA: \"=NAME,NAME\" }`, as `ibv_devices` prints \
             them on a host; or keep the driver's names with `nics: { naming: { rdma: kernel } }`",
        ))
}

/// By what NCCL finds the address of RoCE: since 2.21 by its family and version, before by an
/// index.
fn derive_gid_variables(
    made: &mut DerivedEnvironment,
    ground: DerivationInputs<'_>,
    said: &BTreeSet<String>,
) {
    if said.contains("NCCL_IB_GID_INDEX") {
        return;
    }
    let release = ground.loaded.spec.jobs.nccl.as_deref();
    if let Some(release) = release
        && parse_version_numbers(release) < parse_version_numbers("2.21")
    {
        derive_gid_index(made, ground, release);
        return;
    }
    let addresses = ground
        .hosts
        .iter()
        .flat_map(|host| &host.netdevs)
        .filter_map(|rail| rail.address.as_deref()?.parse::<IpNet>().ok());
    let families: BTreeSet<bool> = addresses
        .map(|address| matches!(address, IpNet::V6(_)))
        .collect();
    let (family, because) = match (families.contains(&false), families.contains(&true)) {
        (false, true) => ("AF_INET6", "the rails have IPv6 addresses"),
        (true, _) => ("AF_INET", "the rails have IPv4 addresses"),
        (false, false) => (
            "AF_INET",
            "the spec gives the rails no addresses, and IPv4 is the rule",
        ),
    };
    made.put(
        "NCCL_IB_ADDR_FAMILY",
        family,
        format!(
            "{because}; the address is found by its family, as its index differs from host to host"
        ),
    );
    made.put(
        "NCCL_IB_ROCE_VERSION_NUM",
        "2",
        format!(
            "{} has RoCE version 2",
            describe_spec_path(ground.loaded, "fabric.kind")
        ),
    );
}

/// The index of the address for a release of NCCL before 2.21; a warning where it is not known.
fn derive_gid_index(made: &mut DerivedEnvironment, ground: DerivationInputs<'_>, release: &str) {
    let is_roce = ground.loaded.spec.fabric.kind == FabricKind::Rocev2;
    if !is_roce
        || !ground
            .hosts
            .iter()
            .all(|host| has_ofed(ground.loaded, host))
    {
        made.warnings
            .push(warn_unknown_gid_index(release, ground.by));
        return;
    }
    let because = format!(
        "{} is {release}, and NCCL looks for the address by itself since 2.21 only; with one IPv4 \
         address of a port, its entry for RoCE version 2 is the fourth",
        describe_spec_path(ground.loaded, "jobs.nccl")
    );
    made.put("NCCL_IB_GID_INDEX", "3", because);
}

fn has_ofed(loaded: &LoadedSpec, host: &Host) -> bool {
    let stack = loaded.group_of(host).rdma_stack.as_ref();
    stack.is_some_and(|stack| matches!(stack.flavour, RdmaFlavour::Doca | RdmaFlavour::MlnxOfed))
}

fn warn_unknown_gid_index(release: &str, by: &RequestPlaces) -> Diagnostic {
    let message = format!("NCCL {release} needs the index of a GID, and the spec does not tell it");
    Diagnostic::warning("RW1225", message)
        .effect(
            "NCCL takes index 0, which is an address of the link alone, and connections between \
             hosts fail",
        )
        .next(by.words(
            "look it up with `show_gids` on a host, and give it: --env NCCL_IB_GID_INDEX=N; or \
             bring NCCL 2.21 or newer",
            "look it up with `show_gids` on a host, and give it: `environment: { \
             NCCL_IB_GID_INDEX: \"N\" }`; or bring NCCL 2.21 or newer",
        ))
}
