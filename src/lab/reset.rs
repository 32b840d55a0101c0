//! `railwright lab reset`: every machine back to its bare state, in seconds; with Kubernetes, a new
//! cluster that they join.

use super::event::{LabStep, Listener, run_timed_step};
use super::folder::LabFolder;
use super::image;
use super::kubernetes::{self, Programs};
use super::machine::BARE;
use super::state::LabState;
use super::up::{LabRequest, list_lab_machines, wait_for_all};
use super::{Result, monitor};
use railwright_base::Diagnostic;
use railwright_system::background;

/// Restores the snapshot in every machine; one whose QEMU has ended is started from it.
pub fn reset_lab(folder: &LabFolder, listener: Listener<'_>) -> Result<()> {
    let _lock = folder.lock()?;
    let state = LabState::expect(folder)?;
    let Some(image) = image::find_image(folder, state.flavour)? else {
        return Err(does_not_fit(
            "the disk that it was made from is not in the cache",
        ));
    };
    let desired = LabRequest {
        machines: state.machines,
        flavour: state.flavour,
        memory_mib: state.memory_mib,
    };
    let machines = list_lab_machines(folder, desired, state.accelerator);
    if let Some(machine) = machines.iter().find(|machine| !machine.has_bare(&image)) {
        return Err(does_not_fit(&format!(
            "{} has no snapshot of its bare state that fits",
            machine.name()
        )));
    }
    let cluster = Programs::ensure(folder, state.flavour, listener)?;
    kubernetes::stop_control_plane(folder)?;
    run_timed_step(listener, LabStep::Restore, || {
        for machine in &machines {
            if background::find_background_process(&machine.record()).is_some() {
                monitor::run_silent_monitor_line(
                    &machine.folder(),
                    &machine.name(),
                    &format!("loadvm {BARE}"),
                )?;
            } else {
                machine.start(&image, Some(BARE))?;
            }
        }
        wait_for_all(&machines, LabStep::Restore, listener)
    })?;
    match cluster {
        Some(programs) => kubernetes::start_cluster(folder, &programs, &machines, listener),
        None => Ok(()),
    }
}

fn does_not_fit(why: &str) -> Box<Diagnostic> {
    Diagnostic::error("RW0909", why)
        .effect(
            "QEMU, the recipe or the cache has changed since `lab up`, so the bare state cannot be \
             restored in seconds",
        )
        .state("the machines run on as they are")
        .next("railwright lab down")
        .next("railwright lab up")
        .into()
}
