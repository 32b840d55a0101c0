//! What a log told, in a memory that does not grow with its length: the first of each, and how many.

use super::collective::Run;
use super::failure::{self, Failure};
use super::interface::Interface;
use super::message::{Ends, Event, Link, Way};
use super::speaker::Process as Name;
use super::steps::Steps;
use super::training::Training;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Processes that are told apart; more than any job has.
const PROCESSES_MAX: usize = 65_536;
/// Different values of a set that are kept.
const VALUES_MAX: usize = 64;

/// Failures that are kept with their text.
const FAILURES_MAX: usize = 32;

/// How many channels went which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Channels {
    /// From GPU to GPU in one host.
    pub peer: u64,
    /// Over memory of the host.
    pub shared: u64,
    /// Over verbs, with GPUDirect.
    pub rdma_direct: u64,
    /// Over verbs, through memory of the host.
    pub rdma: u64,
    /// Over TCP.
    pub socket: u64,
    /// Over a plugin that is none of these.
    pub plugin: u64,
}

impl Channels {
    /// The sum of two.
    pub fn plus(self, other: Channels) -> Channels {
        Channels {
            peer: self.peer + other.peer,
            shared: self.shared + other.shared,
            rdma_direct: self.rdma_direct + other.rdma_direct,
            rdma: self.rdma + other.rdma,
            socket: self.socket + other.socket,
            plugin: self.plugin + other.plugin,
        }
    }

    /// Over verbs.
    pub fn verbs(&self) -> u64 {
        self.rdma + self.rdma_direct
    }

    /// From host to host.
    pub fn between_hosts(&self) -> u64 {
        self.verbs() + self.socket + self.plugin
    }

    /// Every one.
    pub fn all(&self) -> u64 {
        self.between_hosts() + self.peer + self.shared
    }
}

/// One process of the job, as far as it told of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// The host or pod; nothing for lines without a name.
    pub host: Option<String>,
    /// Ranks of it.
    pub ranks: BTreeSet<u32>,
    /// Ranks that have set up a communicator.
    pub complete: BTreeSet<u32>,
    /// `mlx5_0:1` and what it speaks.
    pub devices: BTreeSet<(String, Link)>,
    /// The line that said so.
    pub devices_line: Option<u64>,
    /// It found no RDMA device.
    pub has_no_device: bool,
    /// Interfaces of sockets.
    pub interfaces: BTreeSet<String>,
    /// `IB`, `Socket`, the name of a plugin.
    pub networks: BTreeSet<String>,
    /// How its channels go.
    pub channels: Channels,
    /// Ranks of it at an end of a channel over a network, and those at the other ends.
    pub ends: (BTreeSet<u32>, BTreeSet<u32>),
    /// Its channels were connected: it said so, or was complete after them.
    pub is_connected: bool,
    /// NICs that can read GPU memory, and those that cannot.
    pub direct_nics: (u64, u64),
    /// Pairs of GPU and NIC that are near enough, and those that are not.
    pub direct_paths: (u64, u64),
    /// A distance that was too great, and the greatest that is allowed.
    pub too_far: Option<(u32, u32)>,
}

/// Is it verbs by this name? NVIDIA's plugin for verbs is `IBext`, with the version of its interface behind it.
fn is_verbs(network: &str) -> bool {
    network == "IB" || network.starts_with("IBext") || network.starts_with("NCCL RDMA Plugin")
}

impl Process {
    fn take(&mut self, event: Event<'_>, line: u64) {
        match event {
            Event::Devices(devices) => {
                self.devices_line.get_or_insert(line);
                for device in devices.into_iter().take(VALUES_MAX) {
                    put(&mut self.devices, (super::kept(device.port), device.link));
                }
            }
            Event::NoDevice => self.has_no_device = true,
            Event::Interfaces(interfaces) => interfaces.into_iter().for_each(|one| put(&mut self.interfaces, super::kept(one))),
            Event::Network(name) => put(&mut self.networks, super::kept(name)),
            Event::Channel(way, ends) => {
                self.channel(way);
                if let Some(Ends { own, other }) = ends {
                    put(&mut self.ends.0, own);
                    put(&mut self.ends.1, other);
                }
            }
            Event::Connected => self.is_connected |= self.channels.all() > 0,
            Event::DirectNic(is_on) => count(&mut self.direct_nics, is_on),
            Event::DirectPath(is_on, distance) => {
                count(&mut self.direct_paths, is_on);
                self.too_far = distance.filter(|_| !is_on).or(self.too_far);
            }
            Event::Rank { rank, is_complete, is_new, .. } => {
                put(&mut self.ranks, rank);
                if is_complete {
                    put(&mut self.complete, rank);
                    self.is_connected |= is_new && self.channels.all() > 0;
                }
            }
            Event::Version(_) | Event::Environment(..) | Event::Nodes { .. } => {}
        }
    }

    fn channel(&mut self, way: Way<'_>) {
        let channels = &mut self.channels;
        match way {
            Way::Peer => channels.peer += 1,
            Way::Shared => channels.shared += 1,
            Way::Net(name, true) if is_verbs(name) => channels.rdma_direct += 1,
            Way::Net(name, false) if is_verbs(name) => channels.rdma += 1,
            Way::Net("Socket", _) => channels.socket += 1,
            Way::Net(name, _) => {
                channels.plugin += 1;
                if !self.networks.contains(name) {
                    put(&mut self.networks, super::kept(name));
                }
            }
        }
    }

    /// It uses verbs between hosts, by its channels or else by what it chose.
    pub fn uses_verbs(&self) -> bool {
        match self.channels.between_hosts() {
            0 => self.networks.iter().any(|name| is_verbs(name)) || (self.networks.is_empty() && !self.devices.is_empty()),
            _ => self.channels.verbs() > 0,
        }
    }

    /// It uses TCP between hosts. One that found no RDMA device, and of which nothing else is known, has nothing else.
    pub fn uses_sockets(&self) -> bool {
        match self.channels.between_hosts() {
            0 => self.networks.contains("Socket") || (self.networks.is_empty() && self.devices.is_empty() && self.has_sockets()),
            _ => self.channels.socket > 0,
        }
    }

    fn has_sockets(&self) -> bool {
        !self.interfaces.is_empty() || self.has_no_device
    }

    /// What it uses follows from nothing but the interfaces that it has: releases before 2.5 tell them whatever network they choose
    /// (NVIDIA/nccl-tests#29, NVIDIA/nccl#229).
    pub fn has_interfaces_alone(&self) -> bool {
        self.channels.between_hosts() == 0 && self.networks.is_empty() && self.devices.is_empty() && !self.has_no_device
    }

    /// The plugin that it uses between hosts, which is neither.
    pub fn plugin(&self) -> Option<&str> {
        let is_used = self.channels.between_hosts() == 0 || self.channels.plugin > 0;
        self.networks.iter().map(String::as_str).find(|name| is_used && !is_verbs(name) && *name != "Socket")
    }
}

fn put<T: Ord>(set: &mut BTreeSet<T>, value: T) {
    if set.len() < VALUES_MAX {
        set.insert(value);
    }
}

fn count((yes, no): &mut (u64, u64), is_so: bool) {
    *if is_so { yes } else { no } += 1;
}

/// A whole log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// Lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Lines that were too long to be looked at whole.
    pub cut: u64,
    /// Versions of NCCL.
    pub versions: BTreeSet<String>,
    /// Every process, in the order in which they spoke first.
    pub processes: Vec<Process>,
    /// Texts of processes beyond those that are told apart.
    pub untold: u64,
    /// The greatest number of ranks that a communicator was to have.
    pub world: Option<u32>,
    /// The greatest number of nodes that a communicator spans, where the release says it.
    pub nodes: Option<u32>,
    /// Variables that NCCL obeyed, with their values.
    pub environment: BTreeMap<String, BTreeSet<String>>,
    /// Runs of nccl-tests.
    pub runs: Vec<Run>,
    /// Progress of a training job.
    pub training: Training,
    /// How long its steps took.
    pub steps: Steps,
    /// `ib_write_bw` in Gb/s: how often, the least and the most.
    pub perftest: Option<(u64, f64, f64)>,
    /// `hpn0`.
    pub hpn: Option<Interface>,
    /// The first lines that say that the job broke.
    pub failures: Vec<Failure>,
    /// How many there are.
    pub failed: u64,
    /// Warnings of NCCL that break nothing: how many, and the first.
    pub warnings: (u64, Option<(u64, String)>),
    /// NCCL said something.
    pub nccl_spoke: bool,
    /// A ring of MPI's ranks said something.
    pub ring_spoke: bool,
}

impl Log {
    /// Hosts that are named, by NCCL or by nccl-tests.
    pub fn hosts(&self) -> BTreeSet<&str> {
        let of_runs = self.runs.iter().flat_map(|run| &run.hosts).map(String::as_str);
        self.processes.iter().filter_map(|process| process.host.as_deref()).chain(of_runs).collect()
    }

    /// All channels.
    pub fn channels(&self) -> Channels {
        self.processes.iter().fold(Channels::default(), |sum, process| sum.plus(process.channels))
    }

    /// There are ranks on other hosts than one: NCCL says so, two hosts are named, or more ranks were to be than spoke.
    pub fn names_others(&self) -> bool {
        if let Some(nodes) = self.nodes {
            return nodes > 1;
        }
        let ranks: BTreeSet<u32> = self.processes.iter().flat_map(|process| &process.ranks).copied().collect();
        self.hosts().len() > 1 || self.world.is_some_and(|world| u64::from(world) > ranks.len() as u64)
    }

    /// It is of a ring of MPI's ranks, with neither NCCL nor GPUs: what it proves, it proves of fabric, pods and MPI.
    pub fn is_of_ring(&self) -> bool {
        self.ring_spoke && !self.nccl_spoke
    }

    /// Ranks exchanged something: sizes were measured, or a training went on. What perftest measured was not theirs.
    pub fn has_worked(&self) -> bool {
        self.training.lines > 0 || self.steps.are_there() || self.runs.iter().any(|run| run.sizes > 0)
    }

    /// Channels that verbs carry were connected, by what a process says after them: they are told before that.
    pub fn is_connected(&self) -> bool {
        self.processes.iter().any(|process| process.is_connected && process.channels.verbs() > 0)
    }

    /// Channels over a network are there, and ranks of the one host that speaks are at both ends of each (NVIDIA/nccl#707).
    fn is_loopback(&self) -> bool {
        let own: BTreeSet<u32> = self.processes.iter().flat_map(|process| &process.ends.0).copied().collect();
        let mut others = self.processes.iter().flat_map(|process| &process.ends.1).peekable();
        others.peek().is_some() && others.all(|rank| own.contains(rank))
    }

    /// Whether NCCL knows of one node alone, or all ranks spoke, and all of them from one host: nothing crosses a network then.
    pub fn is_of_one_host(&self) -> bool {
        if let Some(nodes) = self.nodes {
            return nodes < 2;
        }
        if self.hosts().len() == 1 && self.is_loopback() {
            return true;
        }
        let ranks: BTreeSet<u32> = self.processes.iter().flat_map(|process| &process.ranks).copied().collect();
        let run = self.runs.iter().any(|run| run.hosts.len() > 1);
        let said = self.runs.iter().any(|run| run.ranks > 0 && run.hosts.len() == 1);
        !run && self.hosts().len() == 1 && (said || self.world.is_some_and(|world| ranks.len() as u64 >= u64::from(world)))
    }

    /// Takes what NCCL warned of.
    pub fn take_warning(&mut self, host: Option<&str>, text: &str, line: u64) {
        match failure::of_warning(text) {
            Some(trouble) => self.fail(Failure { trouble, line, host: host.map(super::kept), text: super::kept(text) }),
            None => {
                self.warnings.0 += 1;
                self.warnings.1.get_or_insert_with(|| (line, super::kept(text)));
            }
        }
    }

    /// Takes a line that says that the job broke.
    pub fn fail(&mut self, failure: Failure) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(failure);
        }
    }

    /// Takes a version of NCCL. PyTorch tells it once more in its errors, without the CUDA that it was built with.
    pub fn take_version(&mut self, version: &str) {
        let is_of = |whole: &str, part: &str| whole.strip_prefix(part).is_some_and(|rest| rest.starts_with('+'));
        if !self.versions.iter().any(|known| is_of(known, version)) {
            self.versions.retain(|known| !is_of(version, known));
            put(&mut self.versions, super::kept(version));
        }
    }

    /// None of the networks that NCCL may use could be used.
    pub fn has_no_network(&self) -> bool {
        self.failures.iter().any(|failure| failure.text.contains(failure::NO_NETWORK))
    }

    /// A variable has this value everywhere.
    pub fn is_set(&self, name: &str, value: &str) -> bool {
        self.environment.get(name).is_some_and(|values| values.len() == 1 && values.contains(value))
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
    pub fn take(&mut self, log: &mut Log, name: Option<Name<'_>>, event: Event<'_>, line: u64) {
        match event {
            Event::Environment(name, value) => environment(log, name, value),
            Event::Version(version) => log.take_version(version),
            Event::Nodes { ranks, nodes } => {
                log.world = log.world.max(Some(ranks));
                log.nodes = log.nodes.max(Some(nodes));
            }
            _ => {
                if let Event::Rank { of, .. } = event {
                    log.world = log.world.max(Some(of));
                }
                match self.place(log, name).and_then(|place| log.processes.get_mut(place)) {
                    Some(process) => process.take(event, line),
                    None => log.untold += 1,
                }
            }
        }
    }

    fn place(&mut self, log: &mut Log, name: Option<Name<'_>>) -> Option<usize> {
        let Some(name) = name else {
            return Some(*self.nameless.get_or_insert_with(|| {
                log.processes.push(Process::default());
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
                log.processes.push(Process { host: Some(super::kept(name.host)), ..Process::default() });
                self.places.insert(name.name.into(), log.processes.len() - 1);
                log.processes.len() - 1
            }
        };
        self.last.0.clear();
        self.last.0.push_str(name.name);
        self.last.1 = place;
        Some(place)
    }
}

fn environment(log: &mut Log, name: &str, value: &str) {
    if let Some(values) = log.environment.get_mut(name) {
        if !values.contains(value) {
            put(values, super::kept(value));
        }
    } else if log.environment.len() < 4 * VALUES_MAX {
        log.environment.insert(super::kept(name), BTreeSet::from([super::kept(value)]));
    }
}
