//! What a log shows, in a memory that does not grow with its length: the first of each, and how
//! many.

use super::failure::{self, NcclLogFailure};
use super::interface::Interface;
use super::message::NcclEvent;
use super::nccl_tests_table::CollectiveRun;
use super::process::{Channels, NcclProcess, VALUES_MAX, insert_bounded};
use super::speaker::LogProcessTag;
use super::steps::Steps;
use super::training::TrainingProgress;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Processes that are told apart; more than any job has.
const PROCESSES_MAX: usize = 65_536;
/// Failures that are kept with their text.
const FAILURES_MAX: usize = 32;

/// A whole log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NcclLog {
    /// Lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Lines that were too long to be looked at whole.
    pub cut: u64,
    /// Versions of NCCL.
    pub versions: BTreeSet<String>,
    /// Every process, in the order in which they spoke first.
    pub processes: Vec<NcclProcess>,
    /// Texts of processes beyond those that are told apart.
    pub untold: u64,
    /// The greatest number of ranks that a communicator was to have.
    pub world: Option<u32>,
    /// The greatest number of nodes that a communicator spans, where the release says it.
    pub nodes: Option<u32>,
    /// Variables that NCCL obeyed, with their values.
    pub environment: BTreeMap<String, BTreeSet<String>>,
    /// Runs of nccl-tests.
    pub runs: Vec<CollectiveRun>,
    /// Progress of a training job.
    pub training: TrainingProgress,
    /// How long its steps took.
    pub steps: Steps,
    /// `ib_write_bw` in Gb/s: how often, the least and the most.
    pub perftest: Option<(u64, f64, f64)>,
    /// `hpn0`.
    pub hpn: Option<Interface>,
    /// The first lines that say that the job broke.
    pub failures: Vec<NcclLogFailure>,
    /// How many there are.
    pub failed: u64,
    /// Warnings of NCCL that break nothing: how many, and the first.
    pub warnings: (u64, Option<(u64, String)>),
    /// NCCL said something.
    pub nccl_spoke: bool,
    /// A ring of MPI's ranks said something.
    pub ring_spoke: bool,
}

impl NcclLog {
    /// Hosts that are named, by NCCL or by nccl-tests.
    pub fn hosts(&self) -> BTreeSet<&str> {
        let mut hosts: BTreeSet<&str> = BTreeSet::new();
        for process in &self.processes {
            hosts.extend(process.host.as_deref());
        }
        for run in &self.runs {
            hosts.extend(run.hosts.iter().map(String::as_str));
        }
        hosts
    }

    /// Ranks that spoke.
    fn ranks(&self) -> BTreeSet<u32> {
        let mut ranks = BTreeSet::new();
        for process in &self.processes {
            ranks.extend(&process.ranks);
        }
        ranks
    }

    /// All channels.
    pub fn channels(&self) -> Channels {
        let mut sum = Channels::default();
        for process in &self.processes {
            sum = sum.plus(process.channels);
        }
        sum
    }

    /// There are ranks on other hosts than one: NCCL says so, two hosts are named, or more ranks
    /// were to be than spoke.
    pub fn names_others(&self) -> bool {
        if let Some(nodes) = self.nodes {
            return nodes > 1;
        }
        if self.hosts().len() > 1 {
            return true;
        }
        match self.world {
            Some(world) => u64::from(world) > self.ranks().len() as u64,
            None => false,
        }
    }

    /// It is of a ring of MPI's ranks, with neither NCCL nor GPUs: what it proves, it proves of
    /// fabric, pods and MPI.
    pub fn is_of_ring(&self) -> bool {
        self.ring_spoke && !self.nccl_spoke
    }

    /// Ranks exchanged something: sizes were measured, or a training went on. What perftest
    /// measured was not theirs.
    pub fn has_worked(&self) -> bool {
        self.training.lines > 0
            || self.steps.are_there()
            || self.runs.iter().any(|run| run.sizes > 0)
    }

    /// Channels that verbs carry were connected, by what a process says after them: they are logged
    /// before that.
    pub fn is_connected(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.is_connected && process.channels.verbs() > 0)
    }

    /// Channels over a network are there, and ranks of the one host that speaks are at both ends of
    /// each (NVIDIA/nccl#707).
    fn is_loopback(&self) -> bool {
        let mut own: BTreeSet<u32> = BTreeSet::new();
        let mut others: BTreeSet<u32> = BTreeSet::new();
        for process in &self.processes {
            own.extend(&process.ends.0);
            others.extend(&process.ends.1);
        }
        !others.is_empty() && others.is_subset(&own)
    }

    /// Whether NCCL knows of one node alone, or all ranks spoke, and all of them from one host:
    /// nothing crosses a network then.
    pub fn is_of_one_host(&self) -> bool {
        if let Some(nodes) = self.nodes {
            return nodes < 2;
        }
        if self.hosts().len() != 1 {
            return false;
        }
        if self.is_loopback() {
            return true;
        }
        if self.runs.iter().any(|run| run.hosts.len() > 1) {
            return false;
        }
        let mut runs = self.runs.iter();
        if runs.any(|run| run.ranks > 0 && run.hosts.len() == 1) {
            return true;
        }
        match self.world {
            Some(world) => self.ranks().len() as u64 >= u64::from(world),
            None => false,
        }
    }

    /// Takes what NCCL warned of.
    pub fn take_warning(&mut self, host: Option<&str>, text: &str, line: u64) {
        match failure::of_warning(text) {
            Some(trouble) => self.fail(NcclLogFailure {
                trouble,
                line,
                host: host.map(super::truncate_log_text),
                text: super::truncate_log_text(text),
            }),
            None => {
                self.warnings.0 += 1;
                self.warnings
                    .1
                    .get_or_insert_with(|| (line, super::truncate_log_text(text)));
            }
        }
    }

    /// Takes a line that says that the job broke.
    pub fn fail(&mut self, failure: NcclLogFailure) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(failure);
        }
    }

    /// Takes a version of NCCL. PyTorch tells it once more in its errors, without the CUDA that it
    /// was built with.
    pub fn take_version(&mut self, version: &str) {
        let mut known = self.versions.iter();
        if known.any(|known| has_cuda_suffix(known, version)) {
            return;
        }
        self.versions
            .retain(|known| !has_cuda_suffix(version, known));
        insert_bounded(&mut self.versions, super::truncate_log_text(version));
    }

    /// None of the networks that NCCL may use could be used.
    pub fn has_no_network(&self) -> bool {
        self.failures
            .iter()
            .any(|failure| failure.text.contains(failure::NO_NETWORK))
    }

    /// A variable has this value everywhere.
    pub fn is_set(&self, name: &str, value: &str) -> bool {
        self.environment
            .get(name)
            .is_some_and(|values| values.len() == 1 && values.contains(value))
    }
}

/// Whether a version is another one with the CUDA that it was built with: `2.21.5+cuda12.4`.
fn has_cuda_suffix(version: &str, bare: &str) -> bool {
    match version.strip_prefix(bare) {
        Some(rest) => rest.starts_with('+'),
        None => false,
    }
}

/// The processes of a log by their names.
#[derive(Debug, Default)]
pub struct Processes {
    places: FxHashMap<Box<str>, usize>,
    /// Who spoke last: most lines come in runs.
    last: (String, usize),
    nameless: Option<usize>,
}

impl Processes {
    /// Takes an event of a process.
    pub fn take(
        &mut self,
        log: &mut NcclLog,
        name: Option<LogProcessTag<'_>>,
        event: NcclEvent<'_>,
        line: u64,
    ) {
        match event {
            NcclEvent::Environment(name, value) => record_environment(log, name, value),
            NcclEvent::Version(version) => log.take_version(version),
            NcclEvent::Nodes { ranks, nodes } => {
                log.world = log.world.max(Some(ranks));
                log.nodes = log.nodes.max(Some(nodes));
            }
            _ => {
                if let NcclEvent::Rank { of, .. } = event {
                    log.world = log.world.max(Some(of));
                }
                if let Some(place) = self.place(log, name)
                    && let Some(process) = log.processes.get_mut(place)
                {
                    process.take(event, line);
                } else {
                    log.untold += 1;
                }
            }
        }
    }

    fn place(&mut self, log: &mut NcclLog, name: Option<LogProcessTag<'_>>) -> Option<usize> {
        let Some(name) = name else {
            return Some(*self.nameless.get_or_insert_with(|| {
                log.processes.push(NcclProcess::default());
                log.processes.len() - 1
            }));
        };
        if self.last.0 == name.name {
            return Some(self.last.1);
        }
        let place = match self.places.get(name.name) {
            Some(place) => *place,
            None if self.places.len() >= PROCESSES_MAX => return None,
            None => {
                log.processes.push(NcclProcess {
                    host: Some(super::truncate_log_text(name.host)),
                    ..NcclProcess::default()
                });
                self.places
                    .insert(name.name.into(), log.processes.len() - 1);
                log.processes.len() - 1
            }
        };
        self.last.0.clear();
        self.last.0.push_str(name.name);
        self.last.1 = place;
        Some(place)
    }
}

fn record_environment(log: &mut NcclLog, name: &str, value: &str) {
    if let Some(values) = log.environment.get_mut(name) {
        if !values.contains(value) {
            insert_bounded(values, super::truncate_log_text(value));
        }
    } else if log.environment.len() < 4 * VALUES_MAX {
        log.environment.insert(
            super::truncate_log_text(name),
            BTreeSet::from([super::truncate_log_text(value)]),
        );
    }
}
