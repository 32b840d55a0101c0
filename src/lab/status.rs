//! `railwright lab status`: what runs, as a value.

use super::Result;
use super::folder::{LabFolder, fabric_address, machine_name};
use super::kubernetes;
use super::state::LabState;
use railwright_system::background;
use serde::Serialize;

/// A lab as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabStatus {
    /// Its folder.
    pub folder: String,
    /// KVM or emulation; `None` when no lab was brought up.
    pub accelerator: Option<&'static str>,
    /// Who owns the machines' interfaces.
    pub network: Option<&'static str>,
    /// The machines in order.
    pub machines: Vec<MachineStatus>,
    /// Where the machines find the package repository, while it is served.
    pub repository: Option<String>,
    /// The Kubernetes cluster whose nodes they are, while it runs.
    pub kubernetes: Option<KubernetesStatus>,
}

/// The cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KubernetesStatus {
    /// Its API server, as this computer sees it.
    pub server: String,
    /// Its administrator's kubeconfig.
    pub kubeconfig: String,
    /// Memory that its processes really hold, MiB.
    pub resident_mib: u64,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineStatus {
    /// `node1`.
    pub name: String,
    /// Its QEMU's process, while it runs.
    pub process: Option<u32>,
    /// Memory that QEMU really holds, MiB.
    pub resident_mib: Option<u64>,
    /// The SSH port on 127.0.0.1.
    pub ssh_port: u16,
    /// Its address on the fabric, which is the netdev of the fake ConnectX-6.
    pub fabric: String,
}

/// Looks, and changes nothing.
pub fn read_lab_status(folder: &LabFolder) -> Result<LabStatus> {
    let state = LabState::read(folder);
    let machine = |number| {
        let process = background::find_background_process(&folder.machine(number).join("qemu.pid"));
        MachineStatus {
            name: machine_name(number),
            process,
            resident_mib: process
                .and_then(background::resident_kib)
                .map(|kib| kib / 1024),
            ssh_port: folder.ssh_port(number),
            fabric: fabric_address(number),
        }
    };
    let serves = background::find_background_process(&folder.path("server.pid")).is_some();
    Ok(LabStatus {
        folder: folder.root().display().to_string(),
        accelerator: state.as_ref().map(|state| state.accelerator.word()),
        network: state.as_ref().map(|state| state.flavour.network.word()),
        machines: (1..=state.as_ref().map_or(0, |state| state.machines))
            .map(machine)
            .collect(),
        kubernetes: cluster_of(folder, state.as_ref()),
        repository: serves.then(|| {
            format!(
                "http://{}:{}/",
                super::HOST_AS_SEEN_FROM_MACHINES,
                folder.repository_port()
            )
        }),
    })
}

fn cluster_of(folder: &LabFolder, state: Option<&LabState>) -> Option<KubernetesStatus> {
    let processes: Option<Vec<u32>> = kubernetes::list_pid_files(folder)
        .iter()
        .map(|record| background::find_background_process(record))
        .collect();
    let processes = processes.filter(|_| state.is_some_and(|state| state.flavour.kubernetes))?;
    Some(KubernetesStatus {
        server: format!("https://127.0.0.1:{}", folder.api_port()),
        kubeconfig: folder.kubeconfig().display().to_string(),
        resident_mib: processes
            .into_iter()
            .filter_map(background::resident_kib)
            .sum::<u64>()
            / 1024,
    })
}
