//! The machines as nodes of a Kubernetes cluster: a control plane of real parts on this computer, a real kubelet and containerd in
//! each machine. A lab that comes up, or goes back to its bare state, gets a new and empty cluster.
//!
//! Not there: a service network (no kube-proxy, no DNS), and a way from pods to the API server. The nodes' addresses are those
//! of the fabric, so that pods reach each other across it.

mod authority;
mod control_plane;
mod node;
mod programs;

pub use control_plane::{end, records};
pub use programs::Programs;

use super::event::{Listener, Step, timed};
use super::folder::{Folder, trouble};
use super::machine::Machine;
use super::{Result, state::State};
use railwright_base::{Diagnostic, text};
use railwright_system::clock::{self, Stopwatch};
use railwright_system::files;
use railwright_system::process::Program;

/// Starts a new cluster, and waits until each machine is a node that is Ready.
pub fn start(folder: &Folder, programs: &Programs, machines: &[Machine<'_>], listener: Listener<'_>) -> Result<()> {
    timed(listener, Step::Join, || {
        end(folder)?;
        let work = folder.path("kubernetes");
        files::remove(&work).map_err(|error| trouble(&work, &error))?;
        files::make_private_folder(&work).map_err(|error| trouble(&work, &error))?;
        authority::prepare(folder, machines)?;
        control_plane::start(folder, programs, machines)?;
        machines.iter().try_for_each(|machine| node::join(machine, machines.len()))?;
        machines.iter().try_for_each(|machine| wait_until_ready(folder, programs, machine))
    })
}

/// kubectl as the cluster's administrator.
pub fn kubectl(folder: &Folder) -> Result<Program> {
    if !State::expect(folder)?.flavour.kubernetes {
        return Err(Diagnostic::error("RW0910", "the machines of this lab are no nodes of a Kubernetes cluster")
            .next("railwright lab down")
            .next("railwright lab up --kubernetes")
            .into());
    }
    Ok(Programs::of(folder).kubectl(folder))
}

fn wait_until_ready(folder: &Folder, programs: &Programs, machine: &Machine<'_>) -> Result<()> {
    let watch = Stopwatch::start();
    let ready = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}"#;
    let mut said = String::new();
    while watch.elapsed() < Step::Join.limit() {
        machine.expect_running()?;
        let asked = programs.kubectl(folder).arguments(["get", "node", &machine.name(), "-o", ready]).output();
        said = match asked {
            Ok(output) if output.stdout.starts_with(b"True ") => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
            Err(error) => error.to_string(),
        };
        clock::block_for(500);
    }
    Err(Diagnostic::error("RW0905", format!("no node that is Ready within {} s, ten times what is usual", Step::Join.limit().as_secs()))
        .on(format!("lab machine {}", machine.name()))
        .effect(format!("its node said last: {}", text::one_line(&said, 200)))
        .state("the machine and the control plane run")
        .next(format!("railwright lab ssh {} -- journalctl -u kubelet -u containerd", machine.name()))
        .next("railwright lab down")
        .next("railwright lab up --kubernetes")
        .into())
}
