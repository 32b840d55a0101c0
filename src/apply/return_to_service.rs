//! Somebody decides that hosts are in service, whatever a gate says: recorded with the reason before it counts.

use super::locks::journal;
use super::resume::state_of;
use super::trouble::{self, Next};
use railwright_base::Diagnostic;
use railwright_state::{ClusterLock, Entry, State, StateFolder, run_status};
use railwright_system::identity;

/// Takes these hosts as in service. Changes nothing on any of them.
///
/// # Errors
///
/// When one of them is not out of service, when a run goes on, or when the decision cannot be journalled.
pub async fn return_to_service(folder: &StateFolder, hosts: &[String], reason: &str) -> Result<(), Diagnostic> {
    let lock = ClusterLock::take(folder, "state return-to-service")?;
    let next = Next::beside(folder);
    let newest = folder.newest_run()?.map(|run| folder.read_journal(&run)).transpose()?;
    let run = newest.map(|journal| run_status::fold(&journal.records)).filter(|run| run.sequence > 0);
    let state = run.map_or_else(|| State::load(folder), |run| state_of(&run, folder, &next))?;
    // Only a look tells whether one that waits for a power cycle is out of service.
    if let Some(host) = hosts.iter().find(|host| !state.outages.contains_key(*host) && !state.awaits_power_cycle(host)) {
        return Err(trouble::not_out_of_service(host, &next));
    }
    let (who, machine) = (identity::user(), identity::machine());
    let entry = Entry::ReturnedToService { who, machine, reason: reason.to_owned(), hosts: hosts.to_vec() };
    if !journal(entry, &lock, folder, trouble::return_not_recorded).await? {
        return Err(trouble::return_without_journal(&next));
    }
    State::load(folder)?.store(folder)
}
