//! Law 3: a crash at any journal record, also between an action and its record, then resume, gives
//! the same targets and the same state as no crash. A disk that is full at a record is such a
//! crash, of a controller that lives.

use super::case::{Case, Freedom, benign, free_cases};
use super::settled::{calm, comes_to_what_it_would};
use super::third_party::Witness;
use super::{Held, ensure, law, switch_off_and_on};
use crate::nodes::{NodeState, Nodes};
use crate::room::{Room, runtime};
use railwright_apply::{ApplyOutcome, Decisions, RunExitClass, apply_plan, resume_run};
use railwright_base::Address;
use railwright_state::journal_writer::JournalStore;
use railwright_state::{ClusterState, StateFolder};
use railwright_transport::sim::{Fleet, SimulatedHost};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};

/// How a record is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The controller dies before it: nothing of it reaches the fleet any more.
    Before,
    /// The controller dies with half of the record on the disk.
    Torn,
    /// The disk is full, and the controller lives.
    Full,
}

impl Death {
    fn of(case: &Case) -> Self {
        match case.crash {
            (at, _) if at % 3 == 0 => Death::Full,
            (_, true) => Death::Torn,
            (_, false) => Death::Before,
        }
    }
}

/// What the journals of a room come to.
#[derive(Clone, Default)]
pub struct Fate {
    /// Records that are still written before the controller breaks.
    left: Arc<Mutex<Option<usize>>>,
    /// It broke.
    died: Arc<Mutex<bool>>,
    /// Records that were written.
    written: Arc<Mutex<usize>>,
}

impl Fate {
    /// Has the controller of a room break before the record that so many come before.
    pub fn decide(room: &mut Room, at: Option<usize>, death: Death) -> Self {
        let fate = Fate::default();
        fate.die_at(at);
        room.context.folder = fate.over(room.context.folder.clone(), &room.fleet, death);
        fate
    }

    /// The state folder whose journals it decides over.
    pub fn over(&self, folder: StateFolder, fleet: &Fleet, death: Death) -> StateFolder {
        let (fleet, fate) = (fleet.clone(), self.clone());
        let mortal = move |inner| {
            Box::new(Mortal {
                inner,
                fate: fate.clone(),
                death,
                fleet: fleet.clone(),
            }) as Box<dyn JournalStore>
        };
        folder.through(Arc::new(mortal))
    }

    /// So many records are still written from now on; all of them, where it is not said.
    pub fn die_at(&self, at: Option<usize>) {
        *self.left.lock().unwrap() = at;
    }

    /// Whether it broke since this was asked last.
    pub fn has_died(&self) -> bool {
        std::mem::take(&mut *self.died.lock().unwrap())
    }
}

/// Breaks before a record.
struct Mortal {
    inner: Box<dyn JournalStore>,
    fate: Fate,
    death: Death,
    fleet: Fleet,
}

impl JournalStore for Mortal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut left = self.fate.left.lock().unwrap();
            match left.as_mut() {
                Some(0) => {
                    (*left, *self.fate.died.lock().unwrap()) = (None, true);
                    if self.death == Death::Torn {
                        self.inner.append(&line[..line.len() / 2])?;
                    }
                    self.fleet.cut_off(self.death != Death::Full);
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
                Some(left) => *left -= 1,
                None => {}
            }
            self.inner.append(line)?;
            *self.fate.written.lock().unwrap() += 1;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// What everything comes to.
type End = (
    BTreeMap<String, SimulatedHost>,
    ClusterState,
    Option<BTreeMap<String, NodeState>>,
);

fn end_of(room: &Room) -> End {
    let mut state = room.state();
    (state.serial, state.absorbed, state.cluster) = (0, None, None);
    state.lineages.clear();
    state
        .last_applied
        .resources
        .values_mut()
        .for_each(|applied| (applied.at, applied.run) = (String::new(), String::new()));
    (
        room.fleet.effects(),
        state,
        room.server.as_ref().map(Nodes::states),
    )
}

fn has(outcome: &ApplyOutcome, code: &str) -> bool {
    outcome.problems.iter().any(|problem| problem.code == code)
}

/// The resources of which nobody can tell how they ended, by the commands that go on.
pub fn undecided(outcome: &ApplyOutcome) -> BTreeSet<Address> {
    let next = outcome
        .problems
        .iter()
        .filter(|problem| problem.code == "RW0614")
        .flat_map(|problem| &problem.next);
    next.filter_map(|command| {
        command
            .split_once("--redo ")?
            .1
            .split_once(' ')?
            .0
            .parse()
            .ok()
    })
    .collect()
}

async fn begin(case: &Case, room: &Room) -> ApplyOutcome {
    let plan = case.plan(room).await;
    apply_plan(&plan, &room.context, room.sink()).await
}

/// The spec, and then the spec without what is dropped, with all these deaths.
async fn story(
    case: &Case,
    room: &mut Room,
    fate: &Fate,
    deaths: &mut Vec<usize>,
) -> Result<ApplyOutcome, String> {
    let mut last = None;
    for without in [BTreeSet::new(), case.dropped.clone()] {
        room.resources = case.desired(&without);
        let mut outcome = begin(case, room).await;
        // Whoever finds the run dead goes on with it, and dies again as often as there are deaths
        // left. Where there is nothing to go on with it died before its first record, or all of it
        // was done: a plan tells which.
        loop {
            if fate.has_died() {
                room.fleet.cut_off(false);
                fate.die_at(deaths.pop());
                outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
            } else if has(&outcome, "RW0623") {
                outcome = begin(case, room).await;
            } else {
                // A connection lost twice in a step is for a person to look at, who says: do it
                // again.
                let redo = undecided(&outcome);
                if redo.is_empty() && outcome.ending != RunExitClass::Waiting {
                    break;
                }
                if redo.is_empty() {
                    switch_off_and_on(room, &outcome, case.crash.1, true).await;
                }
                outcome = resume_run(
                    &room.context,
                    Decisions {
                        redo,
                        ..Decisions::default()
                    },
                    room.sink(),
                )
                .await;
            }
        }
        if outcome.ending != RunExitClass::Done {
            return Ok(outcome);
        }
        last = Some(outcome);
    }
    last.ok_or_else(|| "there was no run".to_owned())
}

/// Runs it, dying at these records (counted from the one before); how the last run ended, and what
/// it came to.
async fn run(
    case: &Case,
    mut deaths: Vec<usize>,
    death: Death,
) -> Result<(ApplyOutcome, End, usize), String> {
    let mut room = case.room();
    deaths.reverse();
    let fate = Fate::decide(&mut room, deaths.pop(), death);
    case.strike(&room);
    let outcome = story(case, &mut room, &fate, &mut deaths).await?;
    let records = *fate.written.lock().unwrap();
    Ok((outcome, end_of(&room), records))
}

/// Fails the case with what differs, unless they are equal.
pub fn ensure_equal<T: Debug + PartialEq>(what: &str, now: &T, then: &T) -> Result<(), String> {
    ensure!(
        now == then,
        "{what} is another one: {}",
        difference(&format!("{now:#?}"), &format!("{then:#?}"))
    );
    Ok(())
}

/// The first lines that differ, with some before them.
fn difference(now: &str, then: &str) -> String {
    let (now, then): (Vec<&str>, Vec<&str>) = (now.lines().collect(), then.lines().collect());
    let at = now
        .iter()
        .zip(&then)
        .position(|(a, b)| a != b)
        .unwrap_or(now.len().min(then.len()));
    let part = |lines: &[&str]| {
        lines[at.saturating_sub(12).min(lines.len())..(at + 6).min(lines.len())].join("\n")
    };
    format!("\n{}\nand not\n{}", part(&now), part(&then))
}

fn compare(case: &Case, crashed: &(ApplyOutcome, End, usize), whole: &End) -> Result<(), String> {
    let (outcome, end, _) = crashed;
    ensure!(
        outcome.ending == RunExitClass::Done,
        "after the crash it ended {:?}: {:?}",
        outcome.ending,
        outcome.problems
    );
    for name in case.targets() {
        ensure_equal(&name, &end.0[&name], &whole.0[&name])?;
    }
    ensure_equal("the state", &end.1, &whole.1)?;
    ensure_equal("the cluster", &end.2, &whole.2)
}

#[test]
fn law_3_a_crash_and_resume_is_as_no_crash() {
    let freedom = Freedom {
        leaf: true,
        policy: true,
        ..Freedom::default()
    };
    law(
        "law_3_a_crash",
        free_cases(3, benign(), 2, freedom),
        async |case: &Case| two_crashes_are_as_none(case).await,
    );
}

/// Fails where a crash, and a second one in the resumed part, come to something else than none.
async fn two_crashes_are_as_none(case: &Case) -> Result<Held, String> {
    let calm = Case {
        faults: Vec::new(),
        ..case.clone()
    };
    let (outcome, whole, records) = run(&calm, Vec::new(), Death::Before).await?;
    if outcome.ending != RunExitClass::Done || records == 0 {
        return Ok(Held::Beside);
    }
    let deaths = vec![case.crash.0 % records, case.crash.0 % 7];
    compare(case, &run(case, deaths, Death::of(case)).await?, &whole)?;
    Ok(Held::Yes)
}

/// The last step of a host is done, and the controller dies before its gate: the gate was passed
/// earlier, without this host, which waited for a power cycle.
#[test]
fn a_gate_that_was_passed_without_a_host_is_passed_again() {
    let line = r#"{"hosts":[10240,11264,0],"resources":[{"what":16,"form":true,"after":[]},
        {"what":9,"form":false,"after":[]},{"what":7,"form":false,"after":[]}],"dropped":[],
        "max_unavailable":1,"canary":1,"faults":[],"crash":[97,false],
        "leaf":[{"mtu":null,"up":null,"lossless":true}]}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let held = runtime().block_on(two_crashes_are_as_none(&case));
    assert_eq!(held, Ok(Held::Yes));
}

/// The resumed part writes a host's record and dies before its journal says so: whoever goes on
/// then takes that record for one that follows from what it remembers.
#[test]
fn a_record_of_a_part_that_died_right_after_it_is_gone_on_from() {
    let line = r#"{"hosts":[0,0],"resources":[{"what":0,"form":false,"after":[]},
        {"what":10,"form":false,"after":[]},{"what":11,"form":false,"after":[]},
        {"what":13,"form":false,"after":[]}],"dropped":[],"max_unavailable":2,"canary":2,
        "faults":[],"crash":[62,false],"leaf":[{"mtu":9100,"up":null,"lossless":false}]}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let held = runtime().block_on(two_crashes_are_as_none(&case));
    assert_eq!(held, Ok(Held::Yes));
}

/// A host is disturbed with its pods on it, and the controller dies; another one was switched off
/// and on. That the first one's node has no cordon does not say that somebody gave it back.
#[test]
fn a_host_whose_node_nobody_emptied_stays_out_of_service_after_a_crash() {
    let line = r#"{"hosts":[11776,4736],"resources":[{"what":0,"form":false,"after":[]},
        {"what":5,"form":false,"after":[]},{"what":11,"form":false,"after":[]},
        {"what":16,"form":true,"after":[0]}],"dropped":[],"max_unavailable":1,"canary":1,
        "faults":[],"crash":[66,true],"policy":{"drains":"reboot"}}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let held = runtime().block_on(two_crashes_are_as_none(&case));
    assert_eq!(held, Ok(Held::Yes));
}

#[test]
fn law_3_holds_with_others_at_work() {
    let freedom = Freedom {
        edits: 3,
        policy: true,
        failing: 1,
        ..Freedom::default()
    };
    law(
        "law_3_holds_with_others",
        free_cases(3, benign(), 2, freedom),
        async |case: &Case| {
            let mut room = case.room();
            let fate = Fate::decide(&mut room, Some(case.crash.0 % 40), Death::of(case));
            let witness = Witness::of(&mut room);
            case.strike(&room);
            witness.let_in(case);
            let plan = case.plan(&room).await;
            apply_plan(&plan, &room.context, witness.sink()).await;
            if !fate.has_died() || witness.edits().is_empty() {
                return Ok(Held::Beside);
            }
            room.fleet.cut_off(false);
            resume_run(&room.context, Decisions::default(), witness.sink()).await;
            witness.nothing_was_written_over(&plan)?;
            witness.nothing_was_done_twice(&plan)?;
            witness.nobody_was_disturbed(&plan)?;
            witness.go_away();
            calm(&room).await;
            comes_to_what_it_would(case, &room).await?;
            Ok(Held::Yes)
        },
    );
}

#[test]
#[ignore = "long: make test-deep"]
fn law_3_holds_at_every_record_of_a_whole_story() {
    let line = r#"{"hosts":[0,4095],"resources":[{"what":0,"form":true,"after":[]},{"what":1,"form":true,"after":[]},{"what":2,"form":false,"after":[0]},
        {"what":5,"form":true,"after":[]},{"what":6,"form":true,"after":[0]},{"what":7,"form":true,"after":[]},{"what":9,"form":true,"after":[0]},
        {"what":12,"form":true,"after":[]},{"what":13,"form":true,"after":[]},{"what":16,"form":true,"after":[1]}],"dropped":[0,3,5,7,9],"max_unavailable":1,"canary":1,"faults":[],"crash":[0,false]}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let (outcome, whole, records) = runtime()
        .block_on(run(&case, Vec::new(), Death::Before))
        .unwrap();
    assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
    assert!(records > 100, "{records}");
    for at in 0..records {
        let death = [Death::Before, Death::Torn, Death::Full][at % 3];
        let crashed = runtime().block_on(run(&case, vec![at], death)).unwrap();
        if let Err(why) = compare(&case, &crashed, &whole) {
            panic!("{death:?} at record {at} of {records}: {why}");
        }
    }
}
