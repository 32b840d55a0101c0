//! `railwright lab down`: ends all that `lab up` has started, also what an aborted run has left.

use super::folder::{LabFolder, new_folder_error};
use super::{Result, kubernetes};
use railwright_system::{background, files};

/// Ends the lab; how many machines were ended. Their changes are gone: the next start is from the
/// bare state.
pub fn stop_lab(folder: &LabFolder) -> Result<usize> {
    let _lock = folder.lock()?;
    end_all(folder)
}

/// Ends the lab for a command that already holds its lock; how many machines were ended.
pub fn end_all(folder: &LabFolder) -> Result<usize> {
    let machines = folder.path("machines");
    let mut ended = 0;
    for name in files::names_in(&machines).map_err(|error| new_folder_error(&machines, &error))? {
        let record = machines.join(name).join("qemu.pid");
        if files::is_present(&record) {
            ended += usize::from(
                background::end_background_process(&record)
                    .map_err(|error| new_folder_error(&record, &error))?,
            );
        }
    }
    kubernetes::stop_control_plane(folder)?;
    for name in ["server.pid", "switch.pid", "probe.pid"] {
        let record = folder.path(name);
        background::end_background_process(&record)
            .map_err(|error| new_folder_error(&record, &error))?;
    }
    let state = folder.path("lab.json");
    files::remove_path(&state).map_err(|error| new_folder_error(&state, &error))?;
    Ok(ended)
}
