//! What the spec asks of every link.

use railwright_knowledge::spec::LoadedSpec;
use railwright_knowledge::spec::model::FabricKind;
use std::collections::{BTreeMap, BTreeSet};

/// What the spec declares.
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
        let mut dscp = BTreeMap::new();
        if let Some(class) = lossless {
            dscp.insert(class.dscp, class.priority);
            if let Some(cnp) = &class.cnp {
                dscp.insert(cnp.dscp, cnp.priority);
            }
        }
        let mut marking = BTreeSet::new();
        for switch in &loaded.switches {
            let group = loaded.spec.switches.get(switch.group);
            if group.is_some_and(|group| group.ecn.is_some()) {
                marking.insert(switch.name.clone());
            }
        }
        DesiredFabricSettings {
            lossless: lossless.map(|class| class.priority),
            dscp,
            marking,
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
    let of_fabric = match spec.fabric.kind {
        FabricKind::None => None,
        _ => spec.fabric.mtu,
    };
    let mut by_device = BTreeMap::new();
    for host in &loaded.hosts {
        let mut ports = BTreeMap::new();
        for rail in &host.netdevs {
            // Below a VLAN it is another module's.
            let module = if rail.port == rail.netdev {
                "jumbo-mtu"
            } else {
                "vlan"
            };
            if let Some(mtu) = find_module_mtu(loaded, module, of_fabric) {
                ports.insert(rail.port.clone(), mtu);
            }
        }
        by_device.insert(host.name.clone(), ports);
    }
    for switch in &loaded.switches {
        let group = spec.switches.get(switch.group);
        let of_group = group.and_then(|group| group.mtu);
        let mut ports = BTreeMap::new();
        if let Some(mtu) = find_module_mtu(loaded, "switch-port", of_group) {
            for port in switch.ports.iter() {
                ports.insert(port.clone(), mtu);
            }
        }
        by_device.insert(switch.name.clone(), ports);
    }
    by_device
}

/// The MTU that a module sets: its own parameter, else that of the spec; nothing where the module
/// is switched off.
fn find_module_mtu(loaded: &LoadedSpec, module: &str, of_spec: Option<u32>) -> Option<u64> {
    let Some(own) = loaded.spec.modules.get(module) else {
        return of_spec.map(u64::from);
    };
    if own.enabled == Some(false) {
        return None;
    }
    match own.parameters.get("mtu") {
        Some(mtu) => mtu.as_u64(),
        None => of_spec.map(u64::from),
    }
}
