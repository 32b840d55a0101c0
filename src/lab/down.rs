//! `railwright lab down`: ends all that `lab up` has started, also what an aborted run has left.

use super::folder::{Folder, trouble};
use super::{Result, kubernetes};
use railwright_system::{background, files};

/// Ends the lab; how many machines were ended. Their changes are gone: the next start is from the bare state.
pub fn down(folder: &Folder) -> Result<usize> {
    let _lock = folder.lock()?;
    end_all(folder)
}

/// The same, for a command that already holds the lock.
pub fn end_all(folder: &Folder) -> Result<usize> {
    let machines = folder.path("machines");
    let mut ended = 0;
    for name in files::names_in(&machines).map_err(|error| trouble(&machines, &error))? {
        let record = machines.join(name).join("qemu.pid");
        if files::exists(&record) {
            ended += usize::from(background::end(&record).map_err(|error| trouble(&record, &error))?);
        }
    }
    kubernetes::end(folder)?;
    for name in ["server.pid", "switch.pid", "probe.pid"] {
        let record = folder.path(name);
        background::end(&record).map_err(|error| trouble(&record, &error))?;
    }
    let state = folder.path("lab.json");
    files::remove(&state).map_err(|error| trouble(&state, &error))?;
    Ok(ended)
}
