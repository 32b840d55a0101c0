//! What is remembered of a target beside what its own record says: put back, lent to another cluster, given another machine-id.

use super::lineage::RunPart;
use super::recognition::{ClusterIdentity, TargetIdentity};
use super::{State, TakeOver, TargetRecord};
use crate::base::{MachineId, Target};
use crate::plan::{Applied, LastApplied};
use crate::resource::host::MachineIdReading;
use serde_json::json;
use std::collections::BTreeMap;

fn cluster(digit: char) -> ClusterIdentity {
    ClusterIdentity { id: digit.to_string().repeat(32).parse().unwrap(), name: "att".to_owned() }
}

fn machine(digit: char) -> MachineId {
    digit.to_string().repeat(32).parse().unwrap()
}

fn by(run: &str) -> RunPart {
    RunPart { run: run.to_owned(), part: String::new() }
}

fn applied() -> Applied {
    let applied = json!({ "kind": "file", "body": 1, "digest": "0", "module": "m", "places": [], "before": null, "adopted": false, "run": "r", "at": "t" });
    serde_json::from_value(applied).unwrap()
}

/// A state that remembers these files of the host `a`.
fn state_of(cluster: ClusterIdentity, files: &[&str]) -> State {
    let resources = files.iter().map(|file| (format!("host/a/file/{file}").parse().unwrap(), applied())).collect();
    State { cluster: Some(cluster), last_applied: LastApplied { resources }, ..State::default() }
}

/// The state's host writes down what is remembered of it, and it is seen that it did.
fn recorded(state: &mut State, run: &str) -> TargetRecord {
    let cluster = state.cluster.clone().unwrap();
    let record = state.next_record(&cluster, "a", &by(run), "p", String::new());
    state.lineages.get_mut("a").unwrap().note(&by(run), record.serial);
    TargetRecord::Read { record: Box::new(record), former_name: None }
}

fn seen(record: &TargetRecord, machine_id: Option<MachineId>) -> BTreeMap<Target, TargetIdentity> {
    let machine_id = machine_id.map_or(MachineIdReading::Absent, MachineIdReading::Known);
    [(Target::host("a"), TargetIdentity { machine_id, record: record.clone(), ..TargetIdentity::default() })].into()
}

fn files(state: &State) -> String {
    state.last_applied.resources.keys().map(|address| address.within_target()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_host_that_was_put_back_says_what_is_there_again() {
    let mut state = state_of(cluster('1'), &["x", "y"]);
    let earlier = recorded(&mut state, "r1");
    state.last_applied.resources.retain(|address, _| address.within_target() != "file/x");
    let latest = recorded(&mut state, "r2");
    for (record, remembered, warnings) in [(&latest, "file/y", 0), (&earlier, "file/x file/y", 1)] {
        let mut state = state.clone();
        let found = state.recognize("att", &seen(record, None));
        assert_eq!((files(&state).as_str(), found.warnings.len(), found.conflicts.len()), (remembered, warnings, 0));
    }
    // What may never have been written down proves nothing.
    state.lineages.get_mut("a").unwrap().note_behind(&by("r3"));
    assert_eq!((state.recognize("att", &seen(&earlier, None)).warnings.len(), files(&state).as_str()), (0, "file/y"));
}

#[test]
fn what_another_cluster_brought_is_not_managed_although_it_was_ours_once() {
    let mut theirs = state_of(cluster('2'), &["x"]);
    let record = recorded(&mut theirs, "t1");
    for (keep, remembered) in [(false, "file/y"), (true, "file/x file/y")] {
        let mut ours = state_of(cluster('1'), &["x", "y"]);
        let entry = TakeOver {
            from: None,
            who: String::new(),
            machine: String::new(),
            at: String::new(),
            reason: String::new(),
            resources: Vec::new(),
            set_aside: None,
        };
        ours.take_over(&Target::host("a"), record.read(), None, keep, entry);
        assert_eq!(files(&ours), remembered, "{keep}");
    }
}

#[test]
fn one_of_several_with_one_machine_id_keeps_its_memory_when_it_gets_its_own() {
    for (is_cloned, has_record, set_aside) in [(true, true, 0), (false, true, 1), (true, false, 1)] {
        let mut state = state_of(cluster('1'), &["x"]);
        state.machines.insert("a".to_owned(), machine('1'));
        state.cloned.extend(is_cloned.then(|| machine('1')));
        let record = recorded(&mut state, "r1");
        let record = if has_record { record } else { TargetRecord::Absent };
        let found = state.recognize("att", &seen(&record, Some(machine('2'))));
        assert_eq!(found.reinstalled.values().sum::<usize>(), set_aside, "{is_cloned} {has_record}");
        assert_eq!((files(&state).is_empty(), &state.machines["a"]), (set_aside == 1, &machine('2')));
    }
}
