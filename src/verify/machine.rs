//! A host's own hardware, before any traffic: drivers that run, GPUs, PCIe links.

use super::expected_bandwidth::rate_gbps;
use super::hardware::VerifyHardwareFacts;
use super::result::VerifyCheck;
use super::run::{VerifyFindings, VerifyRun};
use super::session::{HostSession, outcome_from_lost_host};
use super::{gpus, pcie, routes, running};
use railwright_base::Reason;
use railwright_resource::probe::Probe;
use railwright_resource::{Read, hardware};

/// The driver of Alibaba's elastic RDMA.
pub(super) const ERDMA: &str = "erdma";

/// Reads it and checks it; what was read stays in the session.
pub(super) async fn check_machine(
    run: &VerifyRun<'_>,
    session: &mut HostSession<'_>,
    findings: &mut VerifyFindings,
) {
    match read_machine_hardware(session).await {
        Ok(actual) => session.hardware = actual,
        Err(reason) => {
            run.evaluated(
                findings,
                outcome_from_lost_host(&reason),
                &[session.name()],
                None,
                VerifyCheck::RunningModules,
            );
            return;
        }
    }
    let name = [session.host.name()];
    if let Some(evaluation) = running::check_running_modules(&session.hardware) {
        run.evaluated(
            findings,
            evaluation,
            &name,
            None,
            VerifyCheck::RunningModules,
        );
    }
    if let Some(desired) = &session.host.gpus {
        run.evaluated(
            findings,
            gpus::check_host_gpus(desired, &session.hardware),
            &name,
            None,
            VerifyCheck::Gpus,
        );
    }
    let mut rails = session.host.rails.iter();
    if rails.any(|rail| rail.driver.as_deref() == Some(ERDMA)) {
        run.evaluated(
            findings,
            routes::check_default_routes(&session.host.rails, &session.hardware),
            &name,
            None,
            VerifyCheck::Routes,
        );
    }
    check_pcie_links(run, session, findings);
}

fn check_pcie_links(run: &VerifyRun<'_>, session: &HostSession<'_>, findings: &mut VerifyFindings) {
    let name = [session.host.name()];
    for rail in &session.host.rails {
        // A rail that is no PCI function is a bond, a VLAN or not there; its netdev is checked by
        // itself.
        let Some(nic) = session.hardware.nics.get(&rail.port) else {
            continue;
        };
        let port = session
            .facts
            .port_of(&rail.netdev)
            .filter(|port| !port.in_software);
        let evaluation = pcie::evaluate_nic(nic, port.and_then(rate_gbps));
        run.evaluated(
            findings,
            evaluation,
            &name,
            Some(rail.rail),
            VerifyCheck::PcieLink,
        );
    }
}

async fn read_machine_hardware(session: &HostSession<'_>) -> Result<VerifyHardwareFacts, Reason> {
    let probe = Probe::Machine {
        modules: running::MODULES
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
    };
    let said = session.ask(&probe).await?;
    let answers = session
        .prober
        .reader()
        .read(&[Read::Hardware])
        .await
        .map_err(|error| error.to_string())?;
    Ok(VerifyHardwareFacts::parse(&said.out).with_parts(&hardware::read_hardware_facts(&answers)?))
}
