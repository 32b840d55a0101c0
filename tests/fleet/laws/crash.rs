//! Law 3: a crash at any journal record, also between an action and its record, then resume, gives the same targets and
//! the same state as no crash.

use super::case::{Case, benign, cases};
use super::{Held, ensure, law};
use crate::room::{Room, runtime};
use railwright::apply::{ApplyOutcome, Decisions, Ending, apply, resume};
use railwright::state::State;
use railwright::state::journal_writer::JournalStore;
use railwright::transport::sim::{Fleet, Host};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

/// The controller dies before a record: nothing is written any more, and nothing of it reaches the fleet.
struct Mortal {
    inner: Box<dyn JournalStore>,
    left: Arc<Mutex<Option<usize>>>,
    torn: bool,
    fleet: Fleet,
}

impl JournalStore for Mortal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut left = self.left.lock().unwrap();
            match left.as_mut() {
                Some(0) => {
                    if self.torn {
                        self.inner.append(&line[..line.len() / 2])?;
                    }
                    *left = None;
                    self.fleet.cut_off(true);
                    return Err(io::Error::other("killed"));
                }
                Some(left) => *left -= 1,
                None => {}
            }
            self.inner.append(line)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// What everything comes to.
type End = (BTreeMap<String, Host>, State);

fn end_of(room: &Room) -> End {
    let mut state = room.state();
    (state.serial, state.absorbed) = (0, None);
    state.host_serials.clear();
    state.last_applied.resources.values_mut().for_each(|applied| (applied.at, applied.run) = (String::new(), String::new()));
    (room.fleet.effects(), state)
}

fn has(outcome: &ApplyOutcome, code: &str) -> bool {
    outcome.problems.iter().any(|problem| problem.code == code)
}

/// The spec, and then the spec without what is dropped. `left` counts down to each death.
async fn story(case: &Case, room: &mut Room, left: &Mutex<Option<usize>>, deaths: &mut Vec<usize>) -> Result<ApplyOutcome, String> {
    let mut last = None;
    for without in [BTreeSet::new(), case.dropped.clone()] {
        room.wishes = case.wished(&without);
        let plan = room.plan().await;
        let mut outcome = apply(&plan, &room.context, room.sink()).await;
        // Whoever finds the run dead goes on with it, and dies again as often as there are deaths left.
        while room.fleet.is_cut_off() {
            room.fleet.cut_off(false);
            *left.lock().unwrap() = deaths.pop();
            outcome = resume(&room.context, Decisions::default(), room.sink()).await;
        }
        if has(&outcome, "RW0623") {
            // It died before its first record, so nothing was done; or all of it was done.
            let plan = room.plan().await;
            outcome = apply(&plan, &room.context, room.sink()).await;
            while room.fleet.is_cut_off() {
                room.fleet.cut_off(false);
                *left.lock().unwrap() = None;
                outcome = resume(&room.context, Decisions::default(), room.sink()).await;
            }
        }
        if outcome.ending != Ending::Done && !has(&outcome, "RW0623") {
            return Ok(outcome);
        }
        last = Some(outcome);
    }
    last.ok_or_else(|| "there was no run".to_owned())
}

/// Runs it, dying at these records (counted from the one before); how the last run ended, and what it came to.
async fn run(case: &Case, mut deaths: Vec<usize>, torn: bool) -> Result<(ApplyOutcome, End, usize), String> {
    let mut room = case.room();
    deaths.reverse();
    let counted = Arc::new(Mutex::new(0usize));
    let left = Arc::new(Mutex::new(deaths.pop()));
    let (fleet, shared, count) = (room.fleet.clone(), left.clone(), counted.clone());
    room.context.folder = room.context.folder.clone().through(Arc::new(move |inner| {
        let inner: Box<dyn JournalStore> = Box::new(Counted { inner, count: count.clone() });
        Box::new(Mortal { inner, left: shared.clone(), torn, fleet: fleet.clone() })
    }));
    case.strike(&room);
    let outcome = story(case, &mut room, &left, &mut deaths).await?;
    let records = *counted.lock().unwrap();
    Ok((outcome, end_of(&room), records))
}

/// Counts the records of all journals.
struct Counted {
    inner: Box<dyn JournalStore>,
    count: Arc<Mutex<usize>>,
}

impl JournalStore for Counted {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        *self.count.lock().unwrap() += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.inner.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// The first lines that differ, with some before them.
fn difference(now: &str, then: &str) -> String {
    let (now, then): (Vec<&str>, Vec<&str>) = (now.lines().collect(), then.lines().collect());
    let at = now.iter().zip(&then).position(|(a, b)| a != b).unwrap_or(now.len().min(then.len()));
    let part = |lines: &[&str]| lines[at.saturating_sub(12).min(lines.len())..(at + 6).min(lines.len())].join("\n");
    format!("\n{}\nand not\n{}", part(&now), part(&then))
}

fn compare(case: &Case, crashed: &(ApplyOutcome, End, usize), whole: &End) -> Result<(), String> {
    let (outcome, end, _) = crashed;
    let fine = outcome.ending == Ending::Done || has(outcome, "RW0623");
    ensure!(fine, "after the crash it ended {:?}: {:?}", outcome.ending, outcome.problems);
    for name in case.names() {
        let (now, then) = (format!("{:#?}", end.0[&name]), format!("{:#?}", whole.0[&name]));
        ensure!(end.0[&name] == whole.0[&name], "{name} is another one: {}", difference(&now, &then));
    }
    let (now, then) = (format!("{:#?}", end.1), format!("{:#?}", whole.1));
    ensure!(end.1 == whole.1, "the state is another one: {}", difference(&now, &then));
    Ok(())
}

#[test]
fn law_3_a_crash_and_resume_is_as_no_crash() {
    law("law_3", cases(3, benign(), 2), async |case: &Case| {
        let (outcome, whole, records) = run(case, Vec::new(), false).await?;
        if outcome.ending != Ending::Done || records == 0 {
            return Ok(Held::Beside);
        }
        // A second crash, in the resumed part, must not matter either.
        let deaths = vec![case.crash.0 % records, case.crash.0 % 7];
        compare(case, &run(case, deaths, case.crash.1).await?, &whole)?;
        Ok(Held::Yes)
    });
}

#[test]
fn law_3_holds_at_every_record_of_a_whole_story() {
    let line = r#"{"hosts":[0,4095],"wishes":[{"what":0,"form":true,"after":[]},{"what":1,"form":true,"after":[]},{"what":2,"form":false,"after":[0]},
        {"what":4,"form":true,"after":[]},{"what":5,"form":true,"after":[]},{"what":6,"form":true,"after":[0]},{"what":7,"form":true,"after":[]},
        {"what":9,"form":true,"after":[0]},{"what":10,"form":true,"after":[]},{"what":11,"form":true,"after":[]},{"what":12,"form":true,"after":[]},
        {"what":13,"form":true,"after":[]}],"dropped":[0,3,5,6,9],"max_unavailable":1,"canary":1,"faults":[],"crash":[0,false]}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let (outcome, whole, records) = runtime().block_on(run(&case, Vec::new(), false)).unwrap();
    assert_eq!(outcome.ending, Ending::Done, "{:?}", outcome.problems);
    assert!(records > 100, "{records}");
    for at in 0..records {
        let crashed = runtime().block_on(run(&case, vec![at], at % 2 == 1)).unwrap();
        if let Err(why) = compare(&case, &crashed, &whole) {
            panic!("crash at record {at} of {records}: {why}");
        }
    }
}
