//! `railwright lab reset`: every machine back to its bare state, in seconds.

use super::event::{Listener, Step, timed};
use super::folder::Folder;
use super::image;
use super::machine::BARE;
use super::state::State;
use super::up::{Wanted, machines, wait_for_all};
use super::{Result, monitor};
use crate::base::Diagnostic;
use crate::system::background;

/// Restores the snapshot in every machine; one whose QEMU has ended is started from it.
pub fn reset(folder: &Folder, listener: Listener<'_>) -> Result<()> {
    let _lock = folder.lock()?;
    let state = State::expect(folder)?;
    let image = image::ensure(folder, state.network, listener)?;
    let wanted = Wanted { machines: state.machines, network: state.network, memory_mib: state.memory_mib };
    let machines = machines(folder, wanted, state.accelerator);
    if let Some(machine) = machines.iter().find(|machine| !machine.has_bare(&image)) {
        return Err(Diagnostic::error("RW0909", "it has no snapshot of its bare state that fits")
            .on(format!("lab machine {}", machine.name()))
            .effect("QEMU or the recipe has changed since `lab up`")
            .next("railwright lab down")
            .next("railwright lab up")
            .into());
    }
    timed(listener, Step::Restore, || {
        for machine in &machines {
            if background::running(&machine.record()).is_some() {
                monitor::silently(&machine.folder(), &machine.name(), &format!("loadvm {BARE}"))?;
            } else {
                machine.start(&image, Some(BARE))?;
            }
        }
        wait_for_all(&machines, Step::Restore, listener)
    })
}
