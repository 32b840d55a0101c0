//! Somebody decides that hosts are in service, whatever a gate says: recorded with the reason
//! before it counts.

use super::lock_steal::append_to_newest_journal;
use super::resume::state_of;
use super::trouble::{self, NextCommands};
use railwright_base::Diagnostic;
use railwright_state::{
    ClusterLock, ClusterState, JournalEntry, RunStatus, StateFolder, run_status,
};
use railwright_system::identity;

/// Takes these hosts as in service. Changes nothing on any of them.
///
/// # Errors
///
/// When one of them is not out of service, when a run goes on, or when the decision cannot be
/// journalled.
pub async fn return_to_service(
    folder: &StateFolder,
    hosts: &[String],
    reason: &str,
) -> Result<(), Diagnostic> {
    let lock = ClusterLock::take(folder, "state return-to-service")?;
    let next = NextCommands::beside(folder);
    let state = match read_newest_run(folder)? {
        Some(run) => state_of(&run, folder, &next)?,
        None => ClusterState::load(folder)?,
    };
    // Only a look tells whether one that waits for a power cycle is out of service.
    if let Some(host) = hosts
        .iter()
        .find(|host| !state.outages.contains_key(*host) && !state.awaits_power_cycle(host))
    {
        return Err(trouble::not_out_of_service(host, &next));
    }
    let (who, machine) = (identity::find_user_name(), identity::read_machine_name());
    let entry = JournalEntry::ReturnedToService {
        who,
        machine,
        reason: reason.to_owned(),
        hosts: hosts.to_vec(),
    };
    if !append_to_newest_journal(entry, &lock, folder, trouble::return_not_recorded).await? {
        return Err(trouble::return_without_journal(&next));
    }
    ClusterState::load(folder)?.store(lock.folder())
}

fn read_newest_run(folder: &StateFolder) -> Result<Option<RunStatus>, Diagnostic> {
    let Some(run) = folder.newest_run()? else {
        return Ok(None);
    };
    let journal = folder.read_journal(&run)?;
    Ok(Some(run_status::fold_journal_records(&journal.records)))
}
