//! `state list`, `state show`, `state forget`: what is remembered, for people.

use super::folder::StateFolder;
use super::last_applied_file::ClusterState;
use super::lock::ClusterLock;
use crate::TakeOver;
use railwright_base::{Address, Diagnostic};
use railwright_plan::{AppliedResource, Outages};
use std::collections::BTreeMap;

/// All remembered resources whose address begins with one of these texts (`host/gpu-001`,
/// `kube/prod/DaemonSet.apps`); all of them when there is none.
pub fn list_remembered_resources<'a>(
    state: &'a ClusterState,
    under: &[String],
) -> Vec<(&'a Address, &'a AppliedResource)> {
    let resources = state.last_applied.resources.iter();
    resources
        .filter(|(address, _)| is_under_any(&address.to_string(), under))
        .collect()
}

/// The hosts that runs left out of service, of those whose addresses begin with one of these texts.
pub fn list_outages(state: &ClusterState, under: &[String]) -> Outages {
    let mut outages = state.outages.clone();
    outages.retain(|host, _| is_under_any(&format!("host/{host}"), under));
    outages
}

/// Targets that were taken over from another cluster, as far as these beginnings of addresses are
/// about them.
pub fn taken_over<'a>(
    state: &'a ClusterState,
    under: &[String],
) -> BTreeMap<&'a str, &'a TakeOver> {
    let mut selected = BTreeMap::new();
    for (name, take_over) in &state.taken_over {
        let is_named = under
            .iter()
            .any(|prefix| prefix.split('/').nth(1).is_none_or(|named| named == name));
        let mut resources = take_over.resources.iter();
        if under.is_empty()
            || is_named
            || resources.any(|address| under.contains(&address.to_string()))
        {
            selected.insert(name.as_str(), take_over);
        }
    }
    selected
}

/// Whether an address begins with one of these texts; so does every one where there is none.
fn is_under_any(address: &str, prefixes: &[String]) -> bool {
    prefixes.is_empty() || prefixes.iter().any(|prefix| is_under(address, prefix))
}

fn is_under(address: &str, prefix: &str) -> bool {
    address
        .strip_prefix(prefix.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// One remembered resource.
pub fn find_remembered_resource<'a>(
    state: &'a ClusterState,
    address: &Address,
) -> Result<&'a AppliedResource, Diagnostic> {
    state
        .last_applied
        .resources
        .get(address)
        .ok_or_else(|| report_not_remembered(address))
}

/// Forgets resources without touching any target: they stay as they are and are no longer ours. Its
/// caller has the cluster's lock. Either all of them are forgotten or none. A host's own record
/// keeps them until the next apply writes it; so that it does not bring them back before, our slice
/// of the host is made the newer one.
pub fn forget_resources(
    folder: &StateFolder,
    lock: &ClusterLock,
    addresses: &[Address],
) -> Result<ClusterState, Diagnostic> {
    let mut state = ClusterState::load(folder)?;
    for address in addresses {
        find_remembered_resource(&state, address)?;
    }
    // Nobody else knows of it: what is written without it does not follow from here.
    let by = lock.holder.part();
    for address in addresses {
        state.last_applied.resources.remove(address);
        if let Some(lineage) = state.lineages.get_mut(&*address.target.name) {
            lineage.note_behind(&by, 1);
        }
    }
    state.store(lock.folder())?;
    Ok(state)
}

fn report_not_remembered(address: &Address) -> Diagnostic {
    Diagnostic::error("RW0708", format!("nothing is remembered of {address}"))
        .effect("it was never applied from here, or it was removed")
        .state("nothing was changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_base::Digest;
    use serde_json::Value;

    fn folder_with(addresses: &[&str]) -> (tempfile::TempDir, StateFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let mut state = ClusterState::default();
        for address in addresses {
            let applied = AppliedResource {
                kind: String::new(),
                body: Value::Null,
                digest: Digest::of(&0),
                module: String::new(),
                places: Vec::new(),
                after: Vec::new(),
                before: Value::Null,
                adopted: false,
                unfinished: false,
                begun: vec![],
                run: String::new(),
                at: String::new(),
            };
            state
                .last_applied
                .resources
                .insert(address.parse().unwrap(), applied);
        }
        let lock = ClusterLock::take(&folder, "apply").unwrap();
        state.store(lock.folder()).unwrap();
        (temporary, folder)
    }

    #[test]
    fn a_prefix_ends_at_a_slash() {
        let (_temporary, folder) = folder_with(&[
            "host/a/file/x",
            "host/ab/file/x",
            "kube/prod/Job.batch/ns/j",
        ]);
        let state = ClusterState::load(&folder).unwrap();
        let found = |under: &str| list_remembered_resources(&state, &[under.to_owned()]).len();
        assert_eq!(
            (
                found("host/a"),
                found("host/a/"),
                found("host"),
                found("kube/prod/Job.batch"),
                found("host/c")
            ),
            (1, 1, 2, 1, 0)
        );
    }

    fn forget(folder: &StateFolder, addresses: &[Address]) -> Result<ClusterState, Diagnostic> {
        let lock = ClusterLock::take(folder, "state forget")?;
        forget_resources(folder, &lock, addresses)
    }

    #[test]
    fn nothing_is_forgotten_while_a_run_works_on_the_cluster() {
        let (_temporary, folder) = folder_with(&["host/a/file/x"]);
        let x: Address = "host/a/file/x".parse().unwrap();
        let run = ClusterLock::take(&folder, "apply").unwrap();
        let refused = forget(&folder, std::slice::from_ref(&x)).unwrap_err();
        assert_eq!(refused.code, "RW0704");
        assert!(find_remembered_resource(&ClusterState::load(&folder).unwrap(), &x).is_ok());
        drop(run);
        forget(&folder, std::slice::from_ref(&x)).unwrap();
    }

    #[test]
    fn forgetting_is_all_or_nothing() {
        let (_temporary, folder) = folder_with(&["host/a/file/x", "host/a/file/y"]);
        let [x, unknown]: [Address; 2] =
            ["host/a/file/x", "host/a/file/z"].map(|text| text.parse().unwrap());
        assert_eq!(
            forget(&folder, &[x.clone(), unknown]).unwrap_err().code,
            "RW0708"
        );
        assert_eq!(
            ClusterState::load(&folder)
                .unwrap()
                .last_applied
                .resources
                .len(),
            2
        );
        forget(&folder, std::slice::from_ref(&x)).unwrap();
        assert!(find_remembered_resource(&ClusterState::load(&folder).unwrap(), &x).is_err());
    }
}
