//! Law 3: a crash at any journal record, also between an action and its record, then resume, gives the same targets and
//! the same state as no crash. A disk that is full at a record is such a crash, of a controller that lives.

use super::case::{Case, benign, cases};
use super::{Held, ensure, law, switch_off_and_on};
use crate::room::{Room, runtime};
use railwright::apply::{ApplyOutcome, Decisions, Ending, apply, resume};
use railwright::base::Address;
use railwright::state::State;
use railwright::state::journal_writer::JournalStore;
use railwright::transport::sim::{Fleet, Host};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

/// How a record is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The controller dies before it: nothing of it reaches the fleet any more.
    Before,
    /// The same, with half of the record on the disk.
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

/// Breaks before a record.
pub struct Mortal {
    pub inner: Box<dyn JournalStore>,
    /// Records that are still written.
    pub left: Arc<Mutex<Option<usize>>>,
    /// It broke.
    pub died: Arc<Mutex<bool>>,
    pub death: Death,
    pub fleet: Fleet,
}

impl JournalStore for Mortal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut left = self.left.lock().unwrap();
            match left.as_mut() {
                Some(0) => {
                    (*left, *self.died.lock().unwrap()) = (None, true);
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
    (state.serial, state.absorbed, state.cluster) = (0, None, None);
    state.host_serials.clear();
    state.last_applied.resources.values_mut().for_each(|applied| (applied.at, applied.run) = (String::new(), String::new()));
    (room.fleet.effects(), state)
}

fn has(outcome: &ApplyOutcome, code: &str) -> bool {
    outcome.problems.iter().any(|problem| problem.code == code)
}

/// The resources of which nobody can tell how they ended, by the commands that go on.
pub fn undecided(outcome: &ApplyOutcome) -> BTreeSet<Address> {
    let next = outcome.problems.iter().filter(|problem| problem.code == "RW0614").flat_map(|problem| &problem.next);
    next.filter_map(|command| command.split_once("--redo ")?.1.split_once(' ')?.0.parse().ok()).collect()
}

async fn begin(room: &Room) -> ApplyOutcome {
    let plan = room.plan().await;
    apply(&plan, &room.context, room.sink()).await
}

/// The spec, and then the spec without what is dropped. `left` counts down to each death.
async fn story(
    case: &Case,
    room: &mut Room,
    left: &Mutex<Option<usize>>,
    died: &Mutex<bool>,
    deaths: &mut Vec<usize>,
) -> Result<ApplyOutcome, String> {
    let mut last = None;
    let has_died = || std::mem::take(&mut *died.lock().unwrap());
    for without in [BTreeSet::new(), case.dropped.clone()] {
        room.wishes = case.wished(&without);
        let mut outcome = begin(room).await;
        // Whoever finds the run dead goes on with it, and dies again as often as there are deaths left. Where there is
        // nothing to go on with it died before its first record, or all of it was done: a plan tells which.
        loop {
            if has_died() {
                room.fleet.cut_off(false);
                *left.lock().unwrap() = deaths.pop();
                outcome = resume(&room.context, Decisions::default(), room.sink()).await;
            } else if has(&outcome, "RW0623") {
                outcome = begin(room).await;
            } else {
                // A connection lost twice in a step is for a person to look at, who says: do it again.
                let redo = undecided(&outcome);
                if redo.is_empty() && outcome.ending != Ending::Waiting {
                    break;
                }
                if redo.is_empty() {
                    switch_off_and_on(room, &outcome, case.crash.1, true).await;
                }
                outcome = resume(&room.context, Decisions { redo, ..Decisions::default() }, room.sink()).await;
            }
        }
        if outcome.ending != Ending::Done {
            return Ok(outcome);
        }
        last = Some(outcome);
    }
    last.ok_or_else(|| "there was no run".to_owned())
}

/// Runs it, dying at these records (counted from the one before); how the last run ended, and what it came to.
async fn run(case: &Case, mut deaths: Vec<usize>, death: Death) -> Result<(ApplyOutcome, End, usize), String> {
    let mut room = case.room();
    deaths.reverse();
    let counted = Arc::new(Mutex::new(0usize));
    let (left, died) = (Arc::new(Mutex::new(deaths.pop())), Arc::new(Mutex::new(false)));
    let (fleet, shared, told, count) = (room.fleet.clone(), left.clone(), died.clone(), counted.clone());
    room.context.folder = room.context.folder.clone().through(Arc::new(move |inner| {
        let inner: Box<dyn JournalStore> = Box::new(Counted { inner, count: count.clone() });
        Box::new(Mortal { inner, left: shared.clone(), died: told.clone(), death, fleet: fleet.clone() })
    }));
    case.strike(&room);
    let outcome = story(case, &mut room, &left, &died, &mut deaths).await?;
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
    ensure!(outcome.ending == Ending::Done, "after the crash it ended {:?}: {:?}", outcome.ending, outcome.problems);
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
        let calm = Case { faults: Vec::new(), ..case.clone() };
        let (outcome, whole, records) = run(&calm, Vec::new(), Death::Before).await?;
        if outcome.ending != Ending::Done || records == 0 {
            return Ok(Held::Beside);
        }
        // A second crash, in the resumed part, must not matter either.
        let deaths = vec![case.crash.0 % records, case.crash.0 % 7];
        compare(case, &run(case, deaths, Death::of(case)).await?, &whole)?;
        Ok(Held::Yes)
    });
}

#[test]
fn law_3_holds_at_every_record_of_a_whole_story() {
    let line = r#"{"hosts":[0,4095],"wishes":[{"what":0,"form":true,"after":[]},{"what":1,"form":true,"after":[]},{"what":2,"form":false,"after":[0]},
        {"what":5,"form":true,"after":[]},{"what":6,"form":true,"after":[0]},{"what":7,"form":true,"after":[]},{"what":9,"form":true,"after":[0]},
        {"what":12,"form":true,"after":[]},{"what":13,"form":true,"after":[]},{"what":16,"form":true,"after":[1]}],"dropped":[0,3,5,7,9],"max_unavailable":1,"canary":1,"faults":[],"crash":[0,false]}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let (outcome, whole, records) = runtime().block_on(run(&case, Vec::new(), Death::Before)).unwrap();
    assert_eq!(outcome.ending, Ending::Done, "{:?}", outcome.problems);
    assert!(records > 100, "{records}");
    for at in 0..records {
        let death = [Death::Before, Death::Torn, Death::Full][at % 3];
        let crashed = runtime().block_on(run(&case, vec![at], death)).unwrap();
        if let Err(why) = compare(&case, &crashed, &whole) {
            panic!("{death:?} at record {at} of {records}: {why}");
        }
    }
}
