//! The machines as nodes of a Kubernetes cluster: a control plane of real parts on this computer, a
//! real kubelet and containerd in each machine. A lab that comes up, or goes back to its bare
//! state, gets a new and empty cluster.
//!
//! Not there: a service network (no kube-proxy, no DNS), and a way from pods to the API server. The
//! nodes' addresses are those of the fabric, so that pods reach each other across it.

mod authority;
mod control_plane;
mod node;
mod programs;

pub use control_plane::{list_pid_files, stop_control_plane};
pub use programs::Programs;

use super::event::{LabStep, Listener, run_timed_step};
use super::folder::{LabFolder, new_folder_error};
use super::machine::LabMachine;
use super::{Result, state::LabState};
use railwright_base::{Diagnostic, text};
use railwright_system::clock::{self, Stopwatch};
use railwright_system::files;
use railwright_system::process::Program;

/// Starts a new cluster, and waits until each machine is a node that is Ready.
pub fn start_cluster(
    folder: &LabFolder,
    programs: &Programs,
    machines: &[LabMachine<'_>],
    listener: Listener<'_>,
) -> Result<()> {
    run_timed_step(listener, LabStep::Join, || {
        stop_control_plane(folder)?;
        let work = folder.path("kubernetes");
        files::remove_path(&work).map_err(|error| new_folder_error(&work, &error))?;
        files::make_private_folder(&work).map_err(|error| new_folder_error(&work, &error))?;
        authority::create_cluster_credentials(folder, machines)?;
        control_plane::start_control_plane(folder, programs, machines)?;
        machines
            .iter()
            .try_for_each(|machine| node::join_node(machine, machines.len()))?;
        machines
            .iter()
            .try_for_each(|machine| wait_until_ready(folder, programs, machine))
    })
}

/// kubectl as the cluster's administrator.
pub fn build_kubectl_program(folder: &LabFolder) -> Result<Program> {
    if !LabState::expect(folder)?.flavour.kubernetes {
        return Err(Diagnostic::error(
            "RW0910",
            "the machines of this lab are no nodes of a Kubernetes cluster",
        )
        .next("railwright lab down")
        .next("railwright lab up --kubernetes")
        .into());
    }
    Ok(Programs::of(folder).kubectl(folder))
}

fn wait_until_ready(
    folder: &LabFolder,
    programs: &Programs,
    machine: &LabMachine<'_>,
) -> Result<()> {
    let watch = Stopwatch::start();
    let ready = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}"#;
    let mut said = String::new();
    while watch.elapsed() < LabStep::Join.limit() {
        machine.expect_running()?;
        let asked = programs
            .kubectl(folder)
            .arguments(["get", "node", &machine.name(), "-o", ready])
            .output();
        said = match asked {
            Ok(output) if output.stdout.starts_with(b"True ") => return Ok(()),
            Ok(output) => {
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
            }
            Err(error) => error.to_string(),
        };
        clock::block_for(500);
    }
    Err(Diagnostic::error(
        "RW0905",
        format!(
            "no node that is Ready within {} s, ten times what is usual",
            LabStep::Join.limit().as_secs()
        ),
    )
    .on(format!("lab machine {}", machine.name()))
    .effect(format!(
        "its node said last: {}",
        text::one_line(&said, 200)
    ))
    .state("the machine and the control plane run")
    .next(format!(
        "railwright lab ssh {} -- journalctl -u kubelet -u containerd",
        machine.name()
    ))
    .next("railwright lab down")
    .next("railwright lab up --kubernetes")
    .into())
}
