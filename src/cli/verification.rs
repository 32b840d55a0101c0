//! What is to be proven, from the spec.

use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::spec::model::{FabricKind, GpuDirectPath, GpuSpec};
use railwright_knowledge::spec::{Host, Rail};
use railwright_session::Session;
use railwright_verify::{
    Expectations, ExpectedGpus, ExpectedMarks, ExpectedRail, FabricFacts, GidKind, ModuleCheck,
    VerifyHost, VerifyRequest,
};

/// Seconds of a bandwidth run where the spec says nothing.
const DURATION_S: u32 = 2;

/// The request for all hosts of the inventory.
pub fn build_verify_request(session: &Session) -> VerifyRequest {
    let loaded = &session.inventory.loaded;
    let spec = &loaded.spec;
    let catalog = &*session.inventory.knowledge.catalog;
    VerifyRequest {
        inventory: session.inventory.word.clone(),
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
        hosts: loaded
            .hosts
            .iter()
            .filter_map(|host| build_verify_host(session, host))
            .collect(),
        rounds_per_rail: None,
    }
}

/// Nothing for a host that is not reached.
fn build_verify_host(session: &Session, host: &Host) -> Option<VerifyHost> {
    let spec = &session.inventory.loaded.spec;
    let catalog = &*session.inventory.knowledge.catalog;
    let access = session.inventory.access(host)?;
    let rail = |rail: &Rail| {
        let row = catalog.nic.get(&rail.model);
        ExpectedRail {
            rail: rail.rail,
            netdev: rail.netdev.clone(),
            port: rail.port.clone(),
            address: rail.address.clone(),
            mtu: spec.fabric.mtu,
            mtu_max: row.and_then(|row| row.mtu_max),
            driver: row.map(|row| row.driver.clone()),
        }
    };
    let gpu = spec
        .nodes
        .get(host.group)
        .and_then(|group| group.gpu.as_ref());
    Some(VerifyHost {
        access,
        rails: host.netdevs.iter().map(rail).collect(),
        gpus: gpu.and_then(|gpu| expected_gpus(catalog, gpu)),
        checks: collect_module_checks(session, &host.name),
    })
}

fn collect_module_checks(session: &Session, host: &str) -> Vec<ModuleCheck> {
    let checks = session.desired.checks.iter();
    checks
        .filter(|check| check.host == host)
        .map(|check| ModuleCheck {
            id: check.name.clone(),
            run: check.run.clone(),
            expect: check.expect.clone(),
        })
        .collect()
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
