//! What is to be proven, from the spec.

use super::pipeline::PreparedInventory;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::spec::model::{FabricKind, GpuDirectPath, GpuSpec};
use railwright_verify::{
    Expectations, ExpectedGpus, ExpectedMarks, ExpectedRail, FabricFacts, GidKind, ModuleCheck,
    VerifyHost, VerifyRequest,
};

/// Seconds of a bandwidth run where the spec says nothing.
const DURATION_S: u32 = 2;

/// The request for all hosts of the inventory.
pub fn build_verify_request(prepared: &PreparedInventory) -> VerifyRequest {
    let loaded = &prepared.inventory.loaded;
    let spec = &loaded.spec;
    let catalog = &*prepared.inventory.knowledge.catalog;
    let checks = |host: &str| {
        let of_host = prepared
            .desired
            .checks
            .iter()
            .filter(|check| check.host == host);
        of_host
            .map(|c| ModuleCheck {
                id: c.name.clone(),
                run: c.run.clone(),
                expect: c.expect.clone(),
            })
            .collect()
    };
    let reached = loaded
        .hosts
        .iter()
        .filter_map(|host| Some((host, prepared.inventory.access(host)?)));
    let hosts = reached.map(|(host, access)| VerifyHost {
        access,
        rails: host
            .netdevs
            .iter()
            .map(|rail| ExpectedRail {
                rail: rail.rail,
                netdev: rail.netdev.clone(),
                port: rail.port.clone(),
                address: rail.address.clone(),
                mtu: spec.fabric.mtu,
                mtu_max: catalog.nic.get(&rail.model).and_then(|row| row.mtu_max),
                driver: catalog.nic.get(&rail.model).map(|row| row.driver.clone()),
            })
            .collect(),
        gpus: spec
            .nodes
            .get(host.group)
            .and_then(|group| expected_gpus(catalog, group.gpu.as_ref()?)),
        checks: checks(&host.name),
    });
    VerifyRequest {
        inventory: prepared.inventory.word.clone(),
        fabric: FabricFacts {
            gid: if spec.fabric.kind == FabricKind::Infiniband {
                GidKind::Infiniband
            } else {
                GidKind::RoceV2
            },
            marks: spec.fabric.lossless.as_ref().map(|lossless| ExpectedMarks {
                dscp: lossless.dscp,
                priority: lossless.priority,
            }),
        },
        expectations: Expectations {
            write_bandwidth_gbps: spec.verify.write_bandwidth_gbps,
            gpu_bandwidth_gbps: spec.verify.gpu_bandwidth_gbps,
            read_latency_us: spec.verify.read_latency_us,
            duration_s: spec.verify.duration_s.unwrap_or(DURATION_S),
        },
        bandwidths: catalog
            .bandwidth
            .entries()
            .map(|entry| entry.row.clone())
            .collect(),
        hosts: hosts.collect(),
        rounds_per_rail: None,
    }
}

/// NVIDIA's GPUs; what else a spec has is a stand-in, and nothing of it is on a PCI bus.
fn expected_gpus(catalog: &Catalog, gpu: &GpuSpec) -> Option<ExpectedGpus> {
    let row = catalog
        .gpu
        .get(&gpu.model)
        .filter(|row| row.vendor == "nvidia")?;
    Some(ExpectedGpus {
        model: row.name.clone(),
        count: gpu.count as usize,
        driver: gpu.driver.clone(),
        dmabuf: gpu
            .direct
            .as_ref()
            .map(|direct| direct.path == GpuDirectPath::Dmabuf),
    })
}
