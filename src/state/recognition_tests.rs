//! Whose targets are and which machines, by what they report of themselves and what is remembered
//! of them.

use super::identity_conflict::IdentityConflict;
use super::lineage::{Descent, RunPart};
use super::recognition::{ClusterIdentity, TargetIdentity};
use super::{ClusterState, TakeOver, TargetRecord};
use railwright_base::{Address, ClusterId, MachineId, Target};
use railwright_plan::{AppliedResource, LastApplied, Outage, OutageCause};
use railwright_resource::host::{MachineIdReading, RunningMachine};
use serde_json::json;
use std::collections::BTreeMap;
use std::str::FromStr;

fn machine(digit: char) -> MachineId {
    digit.to_string().repeat(32).parse().unwrap()
}

fn applied() -> AppliedResource {
    let applied = json!({ "kind": "file", "body": 1, "digest": "0", "module": "m", "places": [], "before": null, "adopted": false, "run": "r", "at": "t" });
    serde_json::from_value(applied).unwrap()
}

fn entry() -> TakeOver {
    TakeOver {
        from: None,
        who: "me".to_owned(),
        machine: String::new(),
        at: String::new(),
        reason: String::new(),
        resources: Vec::new(),
        set_aside: None,
    }
}

/// A state that remembers these files of the host `a`.
fn state_of(cluster: ClusterIdentity, files: &[&str]) -> ClusterState {
    let resources = files
        .iter()
        .map(|file| (format!("host/a/file/{file}").parse().unwrap(), applied()))
        .collect();
    ClusterState {
        cluster: Some(cluster),
        last_applied: LastApplied { resources },
        ..ClusterState::default()
    }
}

/// The state's host writes down what is remembered of it, and it is seen that it did.
fn recorded(state: &mut ClusterState, run: &str) -> TargetRecord {
    let cluster = state.cluster.clone().unwrap();
    let record = state.next_record(&cluster, "a", &RunPart::of(run), "p", String::new());
    state
        .lineages
        .get_mut("a")
        .unwrap()
        .note(&RunPart::of(run), record.serial);
    TargetRecord::Read {
        record: Box::new(record),
        former_name: None,
    }
}

fn seen(record: &TargetRecord, machine_id: Option<MachineId>) -> BTreeMap<Target, TargetIdentity> {
    let machine_id = machine_id.map_or(MachineIdReading::Absent, MachineIdReading::Known);
    [(
        Target::host("a"),
        TargetIdentity {
            machine_id,
            record: record.clone(),
            ..TargetIdentity::default()
        },
    )]
    .into()
}

fn files(state: &ClusterState) -> String {
    state
        .last_applied
        .resources
        .keys()
        .map(|address| address.within_target())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_host_that_was_put_back_says_what_is_there_again() {
    let mut state = state_of(cluster('1', "att"), &["x", "y"]);
    let earlier = recorded(&mut state, "r1");
    state
        .last_applied
        .resources
        .retain(|address, _| address.within_target() != "file/x");
    let latest = recorded(&mut state, "r2");
    for (record, remembered, warnings) in [(&latest, "file/y", 0), (&earlier, "file/x file/y", 1)] {
        let mut state = state.clone();
        let found = state.recognize("att", &seen(record, None));
        assert_eq!(
            (
                files(&state).as_str(),
                found.warnings.len(),
                found.conflicts.len()
            ),
            (remembered, warnings, 0)
        );
    }
    // Whatever is remembered besides, the later record stood there; what may never have been
    // written down proves nothing.
    for (stood, told) in [(true, (1, "file/x file/y")), (false, (0, "file/y"))] {
        let mut state = state.clone();
        let lineage = state.lineages.get_mut("a").unwrap();
        if !stood {
            *lineage = earlier.read().unwrap().lineage();
        }
        lineage.note_behind(&RunPart::of("r3"), 1);
        assert_eq!(
            (
                state.recognize("att", &seen(&earlier, None)).warnings.len(),
                files(&state).as_str()
            ),
            told
        );
    }
}

/// The last of what is remembered stands in no record.
#[test]
fn what_is_remembered_goes_with_a_machine_that_gets_another_name() {
    let state = {
        let mut state = state_of(cluster('1', "att"), &["x"]);
        let of_b = [(
            "host/b/file/y".parse().unwrap(),
            state
                .last_applied
                .resources
                .values()
                .next()
                .unwrap()
                .clone(),
        )];
        state.last_applied.resources.extend(of_b);
        for (name, digit) in [("a", '1'), ("b", '2')] {
            state.machines.insert(name.to_owned(), machine(digit));
            state.next_record(
                &cluster('1', "att"),
                name,
                &RunPart::of(name),
                "p",
                String::new(),
            );
        }
        state
    };
    for (hosts, files, told) in [
        (
            &[("a", '1'), ("b", '2')][..],
            "host/a/file/x host/b/file/y",
            (0, 0),
        ),
        (
            &[("a", '2'), ("b", '1')],
            "host/a/file/y host/b/file/x",
            (2, 0),
        ),
        (
            &[("c", '1'), ("b", '2')],
            "host/b/file/y host/c/file/x",
            (1, 0),
        ),
        (&[("b", '1')], "host/a/file/y host/b/file/x", (1, 0)),
        (&[("c", '1')], "host/b/file/y host/c/file/x", (1, 0)),
        (&[("a", '3'), ("b", '1')], "host/b/file/x", (1, 1)),
        (&[("a", '3'), ("b", '2')], "host/b/file/y", (0, 1)),
    ] {
        let mut state = state.clone();
        let identity = |digit| TargetIdentity {
            machine_id: MachineIdReading::Known(machine(digit)),
            ..TargetIdentity::default()
        };
        let found = state.recognize(
            "att",
            &hosts
                .iter()
                .map(|(name, digit)| (Target::host(name), identity(*digit)))
                .collect(),
        );
        let remembered: Vec<String> = state
            .last_applied
            .resources
            .keys()
            .map(ToString::to_string)
            .collect();
        let set_aside = found.reinstalled.values().sum::<usize>();
        assert_eq!(
            (
                remembered.join(" ").as_str(),
                (found.warnings.len(), set_aside)
            ),
            (files, told),
            "{hosts:?}"
        );
        assert!(
            hosts
                .iter()
                .all(|(name, digit)| *digit == '3' || state.lineages.contains_key(*name)),
            "{hosts:?}"
        );
    }
}

#[test]
fn what_another_cluster_brought_is_not_managed_although_it_was_ours_once() {
    let mut theirs = state_of(cluster('2', "att"), &["x"]);
    let record = recorded(&mut theirs, "t1");
    for (keep, remembered) in [(false, "file/y"), (true, "file/x file/y")] {
        let mut ours = state_of(cluster('1', "att"), &["x", "y"]);
        ours.take_over(&Target::host("a"), record.read(), None, keep, entry());
        assert_eq!(files(&ours), remembered, "{keep}");
    }
}

#[test]
fn one_of_several_with_one_machine_id_keeps_its_memory_when_it_gets_its_own() {
    for (is_cloned, has_record, set_aside) in [(true, true, 0), (false, true, 1), (true, false, 1)]
    {
        let mut state = state_of(cluster('1', "att"), &["x"]);
        state.machines.insert("a".to_owned(), machine('1'));
        state.cloned.extend(is_cloned.then(|| machine('1')));
        let record = recorded(&mut state, "r1");
        let record = if has_record {
            record
        } else {
            TargetRecord::Absent
        };
        let found = state.recognize("att", &seen(&record, Some(machine('2'))));
        assert_eq!(
            found.reinstalled.values().sum::<usize>(),
            set_aside,
            "{is_cloned} {has_record}"
        );
        assert_eq!(
            (files(&state).is_empty(), &state.machines["a"]),
            (set_aside == 1, &machine('2'))
        );
    }
}

fn cluster(digit: char, name: &str) -> ClusterIdentity {
    ClusterIdentity {
        id: digit.to_string().repeat(32).parse().unwrap(),
        name: name.to_owned(),
    }
}

/// A target with this record of one file.
fn with_record(
    host: &str,
    cluster: ClusterIdentity,
    of: Option<MachineId>,
) -> (Target, TargetIdentity) {
    let mut state = ClusterState {
        machines: of.into_iter().map(|of| (host.to_owned(), of)).collect(),
        ..ClusterState::default()
    };
    state
        .last_applied
        .resources
        .insert(format!("host/{host}/file/x").parse().unwrap(), applied());
    let record = state.next_record(&cluster, host, &RunPart::of("r"), "p", String::new());
    let record = TargetRecord::Read {
        record: Box::new(record),
        former_name: None,
    };
    (
        Target::host(host),
        TargetIdentity {
            record,
            ..TargetIdentity::default()
        },
    )
}

fn running(
    target: (Target, TargetIdentity),
    id: MachineId,
    boot: &str,
    namespace: &str,
) -> (Target, TargetIdentity) {
    let machine = RunningMachine {
        machine_id: id.clone(),
        boot_id: boot.to_owned(),
        pid_namespace: namespace.to_owned(),
    };
    (
        target.0,
        TargetIdentity {
            machine_id: MachineIdReading::Known(id),
            running: Some(machine),
            ..target.1
        },
    )
}

fn plain(host: &str) -> (Target, TargetIdentity) {
    (Target::host(host), TargetIdentity::default())
}

/// Which targets are refused, by code, and the id that is ours then.
fn recognized(
    ours: Option<ClusterIdentity>,
    seen: Vec<(Target, TargetIdentity)>,
) -> (Vec<String>, Option<String>) {
    let mut state = ClusterState {
        cluster: ours,
        ..ClusterState::default()
    };
    let found = state
        .recognize("att", &seen.into_iter().collect())
        .findings(None, "inv");
    let refused = found
        .refused
        .iter()
        .map(|(target, trouble)| format!("{} {}", target.name, trouble.code))
        .collect();
    (
        refused,
        state
            .cluster
            .map(|cluster| cluster.id.to_string()[..1].to_owned()),
    )
}

#[test]
fn an_id_is_taken_over_only_where_the_records_of_this_name_agree() {
    let one = |host: &str, digit: char, name: &str| with_record(host, cluster(digit, name), None);
    let none: [&str; 0] = [];
    for (ours, seen, refused, id) in [
        (None, vec![plain("h1")], &none[..], None),
        (
            None,
            vec![one("h1", '1', "att"), one("h2", '1', "att"), plain("h3")],
            &none,
            Some("1"),
        ),
        (
            None,
            vec![one("h1", '1', "att"), one("h2", '2', "zzz")],
            &["h2 RW0720"],
            Some("1"),
        ),
        (
            None,
            vec![one("h1", '1', "zzz"), one("h2", '1', "zzz")],
            &["h1 RW0720", "h2 RW0720"],
            None,
        ),
        (
            None,
            vec![one("h1", '1', "att"), one("h2", '2', "att")],
            &["h1 RW0722", "h2 RW0722"],
            None,
        ),
        (
            Some('1'),
            vec![one("h1", '1', "old"), one("h2", '2', "att")],
            &["h2 RW0720"],
            Some("1"),
        ),
    ] {
        let found = recognized(ours.map(|digit| cluster(digit, "att")), seen.clone());
        assert_eq!(
            (
                found
                    .0
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .as_slice(),
                found.1.as_deref()
            ),
            (refused, id),
            "{seen:?}"
        );
    }
}

fn outage() -> Outage {
    Outage {
        cause: OutageCause::Unproven {
            node: "n".to_owned(),
        },
        since: "t".to_owned(),
        run: "r".to_owned(),
    }
}

#[test]
fn a_record_that_does_not_follow_from_what_is_remembered_is_refused_until_both_are_put_together() {
    let (target, theirs) = with_record("a", cluster('1', "att"), None);
    let mut theirs = theirs.record.read().unwrap().clone();
    (theirs.run, theirs.outage) = ("theirs".to_owned(), Some(outage()));
    let mut state = ClusterState {
        cluster: Some(cluster('1', "att")),
        ..ClusterState::default()
    };
    state.next_record(
        &cluster('1', "att"),
        "a",
        &RunPart::of("ours"),
        "p",
        String::new(),
    );
    state.next_record(
        &cluster('1', "att"),
        "a",
        &RunPart::of("ours"),
        "p",
        String::new(),
    );
    let record = TargetRecord::Read {
        record: Box::new(theirs.clone()),
        former_name: None,
    };
    let seen: BTreeMap<_, _> = [(
        target.clone(),
        TargetIdentity {
            record,
            ..TargetIdentity::default()
        },
    )]
    .into();
    let found = state.recognize("att", &seen);
    assert_eq!(found.findings(None, "inv").refused[&target].code, "RW0738");
    assert!(
        found.conflicts[&target].may_be_taken_over()
            && found.conflicts[&target].is_about(&seen[&target].record)
    );
    for (keep, resources) in [(false, 0), (true, 1)] {
        let mut state = state.clone();
        state.take_over(&target, Some(&theirs), None, keep, entry());
        assert_eq!(
            (
                state.last_applied.resources.len(),
                state.outages.contains_key("a")
            ),
            (resources, true),
            "a failed gate counts either way"
        );
        let together = state.next_record(
            &cluster('1', "att"),
            "a",
            &RunPart::of("taken over"),
            "p",
            String::new(),
        );
        assert!(together.serial > theirs.serial, "{}", together.serial);
        let mut remembered = theirs.lineage();
        assert_eq!(
            together.lineage().descent_from(&remembered),
            Descent::Later,
            "the other folder goes on from there"
        );
        remembered.note_behind(&theirs.by(), 1);
        assert_eq!(
            together.lineage().descent_from(&remembered),
            Descent::Forked,
            "it remembers more than its record says"
        );
    }
}

#[test]
fn one_machine_is_one_machine_id_in_one_boot_and_namespace() {
    let host = |name: &str, digit: char, boot: &str, namespace: &str| {
        running(plain(name), machine(digit), boot, namespace)
    };
    for (seen, refused, warned) in [
        (
            vec![
                host("a", '1', "b", "n"),
                host("b", '1', "b", "n"),
                host("c", '2', "b", "n"),
            ],
            2,
            0,
        ),
        (
            vec![host("a", '1', "b", "n"), host("b", '1', "c", "n")],
            0,
            1,
        ),
        (
            vec![host("a", '1', "b", "n"), host("b", '1', "b", "m")],
            0,
            1,
        ),
        (
            vec![
                host("a", '1', "b", "n"),
                host("b", '2', "b", "n"),
                plain("c"),
                plain("d"),
            ],
            0,
            0,
        ),
    ] {
        let found = ClusterState::default().recognize("att", &seen.into_iter().collect());
        assert_eq!(
            (found.conflicts.len(), found.warnings.len()),
            (refused, warned),
            "{found:?}"
        );
    }
}

#[test]
fn what_is_of_another_machine_is_set_aside_and_the_rest_stays() {
    let remembered = |of: Option<char>| {
        let mut state = ClusterState {
            cluster: Some(cluster('1', "att")),
            ..ClusterState::default()
        };
        let (_, identity) = with_record("a", cluster('1', "att"), of.map(machine));
        state.merge(identity.record.read().unwrap());
        state
    };
    let now = |digit: Option<char>, record: Option<char>| {
        let (target, mut identity) = with_record("a", cluster('1', "att"), record.map(machine));
        identity.machine_id = digit.map_or(MachineIdReading::Absent, |digit| {
            MachineIdReading::Known(machine(digit))
        });
        identity.record = record.map_or(TargetRecord::Absent, |_| identity.record);
        BTreeMap::from([(target, identity)])
    };
    for (before, is, record, left, set_aside) in [
        (Some('1'), Some('1'), None, 1, 0),
        (Some('1'), Some('2'), None, 0, 1),
        (Some('1'), Some('2'), Some('1'), 0, 1),
        (Some('1'), Some('2'), Some('2'), 1, 1),
        (Some('1'), None, None, 1, 0),
        (None, Some('2'), None, 1, 0),
    ] {
        let mut state = remembered(before);
        let found = state.recognize("att", &now(is, record));
        let counts = (
            state.last_applied.resources.len(),
            found.reinstalled.values().sum::<usize>(),
        );
        assert_eq!(counts, (left, set_aside), "{before:?} {is:?} {record:?}");
    }
}

/// What is ours on Kubernetes bears the name of the spec's cluster.
#[test]
fn a_cluster_with_kubernetes_keeps_its_name() {
    let cluster = ClusterIdentity {
        id: ClusterId::from_str(&"c".repeat(32)).unwrap(),
        name: "night".to_owned(),
    };
    let seen = |target: Target| BTreeMap::from([(target, TargetIdentity::default())]);
    let mut state = state_of(cluster, &["x"]);
    let object: Address = "kube/prod/ConfigMap.core/n/c".parse().unwrap();
    (state.last_applied.resources).insert(object.clone(), applied());
    for _ in 0..2 {
        let found = state.recognize("day", &seen(Target::kube("prod")));
        let codes: Vec<_> = IdentityConflict::refusals(&found.conflicts, "inv");
        assert_eq!(
            codes
                .iter()
                .map(|one| one.code.as_ref())
                .collect::<Vec<_>>(),
            ["RW0730"]
        );
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    }
    assert!(
        state
            .recognize("night", &seen(Target::kube("prod")))
            .conflicts
            .is_empty()
    );
    // Its hosts go by its id.
    assert!(
        state
            .recognize("day", &seen(Target::host("a")))
            .conflicts
            .is_empty()
    );
    state.last_applied.resources.remove(&object);
    let found = state.recognize("day", &seen(Target::kube("prod")));
    assert!(found.conflicts.is_empty() && found.warnings.len() == 1);
    assert_eq!(state.cluster.unwrap().name, "day");
}
