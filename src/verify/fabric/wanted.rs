//! What the spec wants of every link.

use railwright_knowledge::spec::LoadedSpec;
use railwright_knowledge::spec::model::FabricKind;
use std::collections::{BTreeMap, BTreeSet};

/// What the spec wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredFabricSettings {
    /// The priority with PFC.
    pub lossless: Option<u8>,
    /// The priorities of DSCPs: of the lossless class and of congestion notifications.
    pub dscp: BTreeMap<u8, u8>,
    /// The switches that are to mark packets.
    pub marking: BTreeSet<String>,
    /// Bytes of an IP packet, by device and port; what the spec leaves alone is not in it.
    pub mtu: BTreeMap<String, BTreeMap<String, u64>>,
    /// Counters are looked at.
    pub counts: bool,
}

impl DesiredFabricSettings {
    /// Of a spec.
    pub fn of(loaded: &LoadedSpec, counts: bool) -> Self {
        let lossless = loaded.spec.fabric.lossless.as_ref();
        let cnp = lossless.and_then(|lossless| lossless.cnp.as_ref());
        let own = lossless
            .map(|class| (class.dscp, class.priority))
            .into_iter();
        let marks = |switch: &&railwright_knowledge::spec::SwitchNode| {
            loaded
                .spec
                .switches
                .get(switch.group)
                .is_some_and(|group| group.ecn.is_some())
        };
        DesiredFabricSettings {
            lossless: lossless.map(|class| class.priority),
            dscp: own.chain(cnp.map(|cnp| (cnp.dscp, cnp.priority))).collect(),
            marking: loaded
                .switches
                .iter()
                .filter(marks)
                .map(|switch| switch.name.clone())
                .collect(),
            mtu: collect_desired_mtus(loaded),
            counts,
        }
    }

    /// The MTU of a port.
    pub fn mtu_of(&self, device: &str, port: &str) -> Option<u64> {
        self.mtu.get(device)?.get(port).copied()
    }
}

/// Of rails and of ports of switches, as the modules that set them have it.
fn collect_desired_mtus(loaded: &LoadedSpec) -> BTreeMap<String, BTreeMap<String, u64>> {
    let spec = &loaded.spec;
    let set_by = |module: &str, of_spec: Option<u32>| match spec.modules.get(module) {
        Some(own) if own.enabled == Some(false) => None,
        Some(own) => own
            .parameters
            .get("mtu")
            .map_or_else(|| of_spec.map(u64::from), serde_json::Value::as_u64),
        None => of_spec.map(u64::from),
    };
    let of_fabric = spec
        .fabric
        .mtu
        .filter(|_| spec.fabric.kind != FabricKind::None);
    let of_hosts = loaded.hosts.iter().map(|host| {
        // Below a VLAN it is another module's.
        let mtu = |rail: &railwright_knowledge::spec::Rail| {
            set_by(
                if rail.port == rail.netdev {
                    "jumbo-mtu"
                } else {
                    "vlan"
                },
                of_fabric,
            )
        };
        (
            &host.name,
            host.netdevs
                .iter()
                .filter_map(|rail| Some((rail.port.clone(), mtu(rail)?)))
                .collect(),
        )
    });
    let of_switches = loaded.switches.iter().map(|switch| {
        let mtu = set_by(
            "switch-port",
            spec.switches.get(switch.group).and_then(|group| group.mtu),
        );
        (
            &switch.name,
            switch
                .ports
                .iter()
                .filter_map(|port| Some((port.clone(), mtu?)))
                .collect(),
        )
    });
    of_hosts
        .chain(of_switches)
        .map(|(name, ports)| (name.clone(), ports))
        .collect()
}
