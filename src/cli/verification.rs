//! What is to be proven, from the spec.

use super::pipeline::Prepared;
use crate::spec::model::FabricKind;
use crate::verify::{Expectations, ExpectedRail, FabricFacts, GidKind, Marks, ModuleCheck, VerifyHost, VerifyRequest};

/// Seconds of a bandwidth run where the spec says nothing.
const DURATION_S: u32 = 2;

/// The request for all hosts of the inventory.
pub fn request(prepared: &Prepared) -> VerifyRequest {
    let loaded = &prepared.inventory.loaded;
    let spec = &loaded.spec;
    let checks = |host: &str| {
        let of_host = prepared.desired.checks.iter().filter(|check| check.host == host);
        of_host.map(|c| ModuleCheck { id: c.name.clone(), run: c.run.clone(), expect: c.expect.clone().unwrap_or_default() }).collect()
    };
    let hosts = loaded.hosts.iter().map(|host| VerifyHost {
        access: prepared.inventory.access(host),
        rails: host
            .netdevs
            .iter()
            .map(|rail| ExpectedRail { rail: rail.rail, netdev: rail.netdev.clone(), address: rail.address.clone(), mtu: spec.fabric.mtu })
            .collect(),
        checks: checks(&host.name),
    });
    VerifyRequest {
        inventory: prepared.inventory.path.clone(),
        fabric: FabricFacts {
            gid: if spec.fabric.kind == FabricKind::Infiniband { GidKind::Infiniband } else { GidKind::RoceV2 },
            marks: spec.fabric.lossless.as_ref().map(|lossless| Marks { dscp: lossless.dscp, priority: lossless.priority }),
            memlock: None,
        },
        expectations: Expectations {
            write_bandwidth_gbps: spec.verify.write_bandwidth_gbps,
            read_latency_us: spec.verify.read_latency_us,
            duration_s: spec.verify.duration_s.unwrap_or(DURATION_S),
        },
        hosts: hosts.collect(),
        rounds_per_rail: None,
    }
}
