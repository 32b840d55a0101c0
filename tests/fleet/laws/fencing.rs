//! Law 11: of two controllers on one fleet, however they sleep, steal, copy or crash, at most one
//! writes to a target at a time, and none overwrites what the other recorded, there or in the
//! folder of both.

use super::case::{Case, benign, cases};
use super::{Held, ensure, law};
use crate::room::{Room, copy_folder};
use proptest::prelude::*;
use railwright_apply::{
    ApplyOutcome, Context, Decisions, RunExitClass, apply_plan, lock_steal, resume_run,
};
use railwright_resource::probe::Probe;
use railwright_resource::{Action, Read, ReadResults};
use railwright_state::{ClusterState, HostRecord, StateFolder};
use railwright_system::clock::Clock;
use railwright_system::identity::ProcessIdentity;
use railwright_transport::sim::Fleet;
use railwright_transport::{
    BoxFuture, Connector, ExecutionOutcome, Fence, FencedWrite, Grounds, HostLink, TargetAccess,
    TransportError, Upkeep,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Where the second controller keeps its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Folder {
    Own,
    /// A copy of the first one's, as it is when the second one begins.
    Copied,
    /// The first one's.
    Shared,
}

/// The first controller sleeps, whatever it was about to send or to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Nap {
    /// Before or after this call of its to the fleet.
    call: usize,
    after: bool,
    seconds: u64,
}

/// Two controllers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Duel {
    world: Case,
    folder: Folder,
    /// They run on the same machine.
    together: bool,
    naps: Vec<Nap>,
    /// The first one dies with this call.
    crash: Option<usize>,
    /// It died before, with this call, and resumes its run; so does the second one first.
    resumes: Option<usize>,
    /// When the second one begins, in seconds.
    begins_s: u64,
    /// It takes the locks away first: by force or not.
    steal: Option<bool>,
    /// Then the time of day jumps by so many seconds on the first one's machine.
    clock_s: i64,
}

fn duels() -> impl Strategy<Value = Duel> {
    let folder = prop_oneof![
        Just(Folder::Own),
        Just(Folder::Copied),
        Just(Folder::Shared)
    ];
    let nap = (0usize..60, any::<bool>(), 1u64..500).prop_map(|(call, after, seconds)| Nap {
        call,
        after,
        seconds,
    });
    let naps = proptest::collection::vec(nap, 0..4);
    let second = (
        1u64..400,
        proptest::option::weighted(0.6, any::<bool>()),
        -4000i64..4000,
    );
    let crash = proptest::option::weighted(0.2, 0usize..60);
    let resumes = proptest::option::weighted(0.4, 8usize..60);
    (
        cases(2, benign(), 2),
        folder,
        any::<bool>(),
        naps,
        (crash, resumes),
        second,
    )
        .prop_map(
            |(world, folder, together, naps, (crash, resumes), (begins_s, steal, clock_s))| Duel {
                world,
                folder,
                together,
                naps,
                crash,
                resumes,
                begins_s,
                steal,
                clock_s,
            },
        )
}

/// A record that was written: where, by whom, and what.
type Recorded = (String, Fence, String);

/// What nobody but the law knows.
#[derive(Default)]
struct Truth {
    recorded: Mutex<Vec<Recorded>>,
    /// The first controller lives, asleep or not.
    first_lives: AtomicBool,
    /// The lines by which it is known, and when each host last heard of it.
    heard: Mutex<BTreeMap<(String, String), Instant>>,
    /// Locks that were taken over from it without being forced, though it was neither dead nor
    /// silent.
    wrong: Mutex<Vec<String>>,
}

impl Truth {
    /// A host did this.
    fn note(&self, host: &str, upkeep: &Upkeep, is_first: bool) {
        let of_first = |holder: &str| (host.to_owned(), holder.to_owned());
        match upkeep {
            Upkeep::Write {
                fence,
                write: FencedWrite::Record { json, .. },
            } => {
                self.recorded
                    .lock()
                    .unwrap()
                    .push((host.to_owned(), fence.clone(), json.clone()));
            }
            Upkeep::Lock { holder, .. }
            | Upkeep::Write {
                fence: Fence { holder, .. },
                write: FencedWrite::Beat { .. },
            } if is_first => {
                self.heard
                    .lock()
                    .unwrap()
                    .insert(of_first(holder), Instant::now());
            }
            Upkeep::Steal {
                holder, grounds, ..
            } => {
                let heard = self.heard.lock().unwrap().get(&of_first(holder)).copied();
                let is_fine = match (grounds, heard) {
                    (Grounds::Dead, Some(_)) => !self.first_lives.load(Ordering::SeqCst),
                    // A host counts whole seconds, of when it heard and of now.
                    (Grounds::Silent(seconds), Some(heard)) => {
                        heard.elapsed() + Duration::from_secs(1) > Duration::from_secs(*seconds)
                    }
                    (Grounds::Forced, _) | (_, None) => true,
                };
                if !is_fine {
                    self.wrong.lock().unwrap().push(format!(
                        "{host}: taken over on the grounds {grounds:?} after {:?} from {holder}",
                        heard.map(|heard| heard.elapsed())
                    ));
                }
            }
            _ => (),
        }
    }
}

/// One controller's way to the fleet.
#[derive(Clone)]
struct Way {
    fleet: Fleet,
    naps: Vec<Nap>,
    crash: Option<usize>,
    calls: Arc<Mutex<usize>>,
    asleep_until: Arc<Mutex<Option<Instant>>>,
    dead: Arc<AtomicBool>,
    is_first: bool,
    truth: Arc<Truth>,
}

impl Way {
    fn of(fleet: &Fleet, truth: &Arc<Truth>) -> Self {
        Way {
            fleet: fleet.clone(),
            naps: Vec::new(),
            crash: None,
            calls: Arc::default(),
            asleep_until: Arc::default(),
            dead: Arc::default(),
            is_first: false,
            truth: truth.clone(),
        }
    }

    /// Nothing of a process goes on while it sleeps, and nothing at all once it is dead.
    async fn awake(&self) {
        loop {
            let until = *self.asleep_until.lock().unwrap();
            if self.dead.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return,
            }
        }
    }

    fn doze(&self, call: usize, after: bool) {
        for nap in self
            .naps
            .iter()
            .filter(|nap| nap.call == call && nap.after == after)
        {
            *self.asleep_until.lock().unwrap() =
                Some(Instant::now() + Duration::from_secs(nap.seconds));
        }
    }

    async fn call<T>(&self, what: impl Future<Output = T>) -> T {
        let call = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls
        };
        if self.crash.is_some_and(|crash| call > crash) {
            self.dead.store(true, Ordering::SeqCst);
        }
        self.doze(call, false);
        self.awake().await;
        let told = what.await;
        self.doze(call, true);
        self.awake().await;
        told
    }

    async fn until_dead(&self) {
        while !self.dead.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Connector for Way {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(self.call(async {
            let link = self.fleet.connect(access).await?;
            Ok(Arc::new(Link {
                link,
                host: access.name.clone(),
                way: self.clone(),
            }) as Arc<dyn HostLink>)
        }))
    }
}

struct Link {
    link: Arc<dyn HostLink>,
    host: String,
    way: Way,
}

impl HostLink for Link {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(self.way.call(self.link.read(reads)))
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.way.call(self.link.perform(action, token, fence)))
    }

    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.way.call(self.link.probe(probe)))
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.way.call(async move {
            let kept = self.link.upkeep(upkeep).await;
            if let Ok(ExecutionOutcome::Ended { code: 0, .. }) = kept {
                self.way.truth.note(&self.host, upkeep, self.way.is_first);
            }
            kept
        }))
    }
}

fn process(machine: &str) -> ProcessIdentity {
    let name = || machine.to_owned();
    ProcessIdentity {
        machine: name(),
        boot_id: name(),
        ..ProcessIdentity::own()
    }
}

/// What the second controller left in its folder.
struct Left {
    outcome: ApplyOutcome,
    serial: u64,
    /// The journal of its run.
    journal: Option<(String, Vec<u8>)>,
}

/// The second controller: takes the locks away where it is to, and applies until it was let do so.
async fn second(duel: &Duel, room: &mut Room, first: &StateFolder) -> Left {
    if duel.folder == Folder::Copied && first.path().exists() {
        copy_folder(first.path(), room.context.folder.path());
    }
    let hosts = duel.world.names();
    if let Some(force) = duel.steal {
        let _ = lock_steal::steal_locks(&hosts, "law 11", force, &room.context).await;
    }
    let mut outcome = None;
    for attempt in 0..12 {
        let ended = match duel.resumes {
            Some(_) if attempt == 0 => {
                resume_run(&room.context, Decisions::default(), room.sink()).await
            }
            _ => {
                let plan = room.plan().await;
                apply_plan(&plan, &room.context, room.sink()).await
            }
        };
        let is_refused = ended.ending == RunExitClass::Refused;
        outcome = Some(ended);
        if !is_refused {
            break;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let (outcome, folder) = (outcome.unwrap(), &room.context.folder);
    let journal = outcome.run.clone().map(|run| {
        let bytes = folder.journal_bytes(&run, u64::MAX - 1).unwrap();
        (run, bytes)
    });
    Left {
        outcome,
        serial: room.state().serial,
        journal,
    }
}

/// What the second controller left in its folder is there, whatever the first one does when it
/// wakes up, and what is no run has no folder.
fn nothing_is_lost(left: &Left, folder: &StateFolder) -> Result<(), String> {
    if let Some((run, journal)) = &left.journal {
        let now = folder.journal_bytes(run, u64::MAX - 1).unwrap();
        ensure!(now.starts_with(journal), "the journal of {run} was cut");
    }
    let state = ClusterState::load(folder).map_err(|problem| problem.message.clone())?;
    ensure!(
        state.serial >= left.serial,
        "an older state was written over a newer one: {} over {}",
        state.serial,
        left.serial
    );
    let begun = folder.runs().unwrap().len();
    let folders = std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
    ensure!(begun == folders, "{begun} runs have {folders} folders");
    Ok(())
}

/// Who wrote to each host, in order; and whether somebody began before another had ended.
fn one_at_a_time(fleet: &Fleet) -> Result<usize, String> {
    let mut writers: BTreeMap<String, Vec<(Fence, Duration, String)>> = BTreeMap::new();
    for logged in fleet.log() {
        let of_host = writers.entry(logged.host.clone()).or_default();
        let is_other = of_host
            .last()
            .is_none_or(|(fence, ..)| *fence != logged.fence);
        if is_other {
            if let Some((_, until, word)) = of_host.last() {
                ensure!(
                    logged.at >= *until,
                    "{}: {} began at {:?} under another lock than {word}, which ran until \
                     {until:?}",
                    logged.host,
                    logged.word,
                    logged.at
                );
            }
            ensure!(
                of_host.iter().all(|(fence, ..)| *fence != logged.fence),
                "{}: {} was written by {:?} after another one had the lock",
                logged.host,
                logged.word,
                logged.fence
            );
        }
        of_host.push((logged.fence, logged.until, logged.word));
    }
    let of_host = |all: &Vec<(Fence, Duration, String)>| {
        all.iter()
            .map(|(fence, ..)| &fence.holder)
            .collect::<BTreeSet<_>>()
            .len()
    };
    Ok(writers.values().map(of_host).max().unwrap_or_default())
}

/// Nothing leaves a record that somebody put there: neither spec takes anything back.
fn nothing_is_forgotten(recorded: &[Recorded]) -> Result<(), String> {
    let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (host, fence, json) in recorded {
        let record: HostRecord = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let now: BTreeSet<String> = record.resources.keys().map(ToString::to_string).collect();
        let before = known.entry(host).or_default();
        let gone: Vec<&String> = before.difference(&now).collect();
        ensure!(
            gone.is_empty(),
            "{host}: {fence:?} overwrote what another recorded: {gone:?} is gone"
        );
        *before = now;
    }
    Ok(())
}

/// The first controller begins its run, and dies.
async fn die(duel: &Duel, room: &Room, truth: &Arc<Truth>) {
    let way = Way {
        crash: duel.resumes,
        ..Way::of(&room.fleet, truth)
    };
    let context = Context {
        connector: room.context.secrets.carried_by(Arc::new(way.clone())),
        ..room.context.clone()
    };
    let plan = room.plan().await;
    tokio::select! {
        _ = apply_plan(&plan, &context, room.sink()) => (),
        () = way.until_dead() => (),
    }
}

async fn fought(duel: &Duel) -> Result<Held, String> {
    let (mut one, mut two) = (duel.world.room(), duel.world.room());
    let truth = Arc::new(Truth::default());
    truth.first_lives.store(true, Ordering::SeqCst);
    two.fleet = one.fleet.clone();
    let way = Way {
        naps: duel.naps.clone(),
        crash: duel.crash,
        is_first: true,
        ..Way::of(&one.fleet, &truth)
    };
    let clock = Arc::new(AtomicI64::new(1_767_225_600));
    one.context.connector = one.context.secrets.carried_by(Arc::new(way.clone()));
    two.context.connector = two
        .context
        .secrets
        .carried_by(Arc::new(Way::of(&one.fleet, &truth)));
    (one.context.clock, two.context.clock) = (
        Clock::Set(clock.clone()),
        Clock::Set(Arc::new(AtomicI64::new(1_767_225_600))),
    );
    one.context.folder = one.context.folder.clone().used_by(process("ops1"));
    let folder = if duel.folder == Folder::Shared {
        &one
    } else {
        &two
    }
    .context
    .folder
    .clone();
    two.context.folder = folder.used_by(process(if duel.together { "ops1" } else { "ops2" }));
    duel.world.strike(&one);
    let folder = one.context.folder.clone();
    let first = async {
        if duel.resumes.is_some() {
            die(duel, &one, &truth).await;
        }
        let run = async {
            match duel.resumes {
                Some(_) => resume_run(&one.context, Decisions::default(), one.sink()).await,
                None => apply_plan(&one.plan().await, &one.context, one.sink()).await,
            }
        };
        let outcome = tokio::select! {
            outcome = run => Some(outcome),
            () = way.until_dead() => None,
        };
        truth.first_lives.store(false, Ordering::SeqCst);
        outcome
    };
    let other = async {
        tokio::time::sleep(Duration::from_secs(duel.begins_s)).await;
        clock.fetch_add(duel.clock_s, Ordering::SeqCst);
        second(duel, &mut two, &folder).await
    };
    let (first, second) = tokio::join!(first, other);
    let writers = one_at_a_time(&one.fleet)?;
    nothing_is_forgotten(&truth.recorded.lock().unwrap())?;
    nothing_is_lost(&second, &two.context.folder)?;
    let wrong = truth.wrong.lock().unwrap().join("; ");
    ensure!(wrong.is_empty(), "{wrong}");
    if let Some(first) = first.filter(|first| first.ending == RunExitClass::Done) {
        let lost = first
            .problems
            .iter()
            .any(|problem| problem.code == "RW0631");
        ensure!(!lost, "the first one lost its lock and ended well");
    }
    Ok(
        if writers > 1 || second.outcome.ending == RunExitClass::Refused {
            Held::Yes
        } else {
            Held::Beside
        },
    )
}

#[test]
fn law_11_one_writes_at_a_time_and_none_overwrites_what_another_recorded() {
    law("law_11", duels(), fought);
}
