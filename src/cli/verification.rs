//! What is to be verified, from the spec.

use railwright_knowledge::spec::model::{FabricKind, GpuDirectPath};
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
            .map(|entry| entry.content.clone())
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
    let rails = host.netdevs.iter();
    Some(VerifyHost {
        access: session.inventory.access(host)?,
        rails: rails
            .map(|rail| build_expected_rail(session, rail))
            .collect(),
        gpus: build_expected_gpus(session, host),
        checks: collect_module_checks(session, &host.name),
    })
}

fn build_expected_rail(session: &Session, rail: &Rail) -> ExpectedRail {
    let entry = session.inventory.knowledge.catalog.nic.get(&rail.model);
    ExpectedRail {
        rail: rail.rail,
        netdev: rail.netdev.clone(),
        port: rail.port.clone(),
        address: rail.address.clone(),
        mtu: session.inventory.loaded.spec.fabric.mtu,
        mtu_max: entry.and_then(|entry| entry.mtu_max),
        driver: entry.map(|entry| entry.driver.clone()),
    }
}

fn collect_module_checks(session: &Session, host: &str) -> Vec<ModuleCheck> {
    let mut checks = Vec::new();
    for check in &session.desired.checks {
        if check.host == host {
            checks.push(ModuleCheck {
                id: check.name.clone(),
                run: check.run.clone(),
                expect: check.expect.clone(),
            });
        }
    }
    checks
}

/// NVIDIA's GPUs; what else a spec has is a fake, and nothing of it is on a PCI bus.
fn build_expected_gpus(session: &Session, host: &Host) -> Option<ExpectedGpus> {
    let group = session.inventory.loaded.spec.nodes.get(host.group)?;
    let gpu = group.gpu.as_ref()?;
    let entry = session.inventory.knowledge.catalog.gpu.get(&gpu.model)?;
    if entry.vendor != "nvidia" {
        return None;
    }
    let direct = gpu.direct.as_ref();
    Some(ExpectedGpus {
        model: entry.name.clone(),
        count: gpu.count as usize,
        driver: gpu.driver.clone(),
        dmabuf: direct.map(|direct| direct.path == GpuDirectPath::Dmabuf),
    })
}
