//! A host's own hardware, before any traffic: drivers that run, GPUs, PCIe links.

use super::hardware::Hardware;
use super::least::rate_gbps;
use super::request::ExpectedRail;
use super::result::Check;
use super::run::{Findings, Run};
use super::session::{Session, lost};
use super::{gpus, pcie, routes, running};
use railwright_resource::probe::Probe;
use railwright_resource::{Read, hardware};

/// The driver of Alibaba's elastic RDMA.
pub(super) const ERDMA: &str = "erdma";

/// Asks for it and judges it; what it said stays in the session.
pub(super) async fn examine(run: &Run<'_>, session: &mut Session<'_>, findings: &mut Findings) {
    match asked(session).await {
        Ok(found) => session.hardware = found,
        Err(reason) => {
            run.judged(findings, lost(&reason), &[session.name()], None, Check::RunningModules);
            return;
        }
    }
    let name = [session.host.name()];
    if let Some(judgement) = running::judge(&session.hardware) {
        run.judged(findings, judgement, &name, None, Check::RunningModules);
    }
    if let Some(wanted) = &session.host.gpus {
        run.judged(findings, gpus::judge(wanted, &session.hardware), &name, None, Check::Gpus);
    }
    let is_erdma = |rail: &ExpectedRail| rail.driver.as_deref() == Some(ERDMA);
    if session.host.rails.iter().any(is_erdma) {
        run.judged(findings, routes::judge(&session.host.rails, &session.hardware), &name, None, Check::Routes);
    }
    for rail in &session.host.rails {
        // A rail that is no PCI function is a bond, a VLAN or not there; its netdev is judged by itself.
        let Some(nic) = session.hardware.nics.get(&rail.port) else { continue };
        let port = session.facts.port_of(&rail.netdev).filter(|port| !port.in_software);
        let judgement = pcie::judge_nic(nic, port.and_then(rate_gbps));
        run.judged(findings, judgement, &name, Some(rail.rail), Check::PcieLink);
    }
}

async fn asked(session: &Session<'_>) -> Result<Hardware, String> {
    let probe = Probe::Machine { modules: running::MODULES.iter().map(|name| (*name).to_owned()).collect() };
    let said = session.ask(&probe).await?;
    let answers = session.prober.reader().read(&[Read::Hardware]).await.map_err(|error| error.to_string())?;
    Ok(Hardware::parse(&said.out).with_parts(&hardware::hardware(&answers)?))
}
