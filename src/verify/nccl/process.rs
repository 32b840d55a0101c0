//! One process of a job, as far as it logged: its ranks, what it found, what it chose, and
//! how its channels go.

use super::message::{ChannelPath, Ends, NcclEvent, RdmaLinkLayer};
use std::collections::BTreeSet;

/// Different values of a set that are kept.
pub(super) const VALUES_MAX: usize = 64;

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

/// One process of the job, as far as it logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NcclProcess {
    /// The host or pod; nothing for lines without a name.
    pub host: Option<String>,
    /// Ranks of it.
    pub ranks: BTreeSet<u32>,
    /// Ranks that have set up a communicator.
    pub complete: BTreeSet<u32>,
    /// `mlx5_0:1` and what it speaks.
    pub devices: BTreeSet<(String, RdmaLinkLayer)>,
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

/// Is it verbs by this name? NVIDIA's plugin for verbs is `IBext`, with the version of its
/// interface behind it.
fn is_verbs(network: &str) -> bool {
    network == "IB" || network.starts_with("IBext") || network.starts_with("NCCL RDMA Plugin")
}

impl NcclProcess {
    /// Takes an event of it.
    pub(super) fn take(&mut self, event: NcclEvent<'_>, line: u64) {
        match event {
            NcclEvent::Devices(devices) => {
                self.devices_line.get_or_insert(line);
                for device in devices.into_iter().take(VALUES_MAX) {
                    insert_bounded(
                        &mut self.devices,
                        (super::truncate_log_text(device.port), device.link),
                    );
                }
            }
            NcclEvent::NoDevice => self.has_no_device = true,
            NcclEvent::Interfaces(interfaces) => {
                for interface in interfaces {
                    insert_bounded(&mut self.interfaces, super::truncate_log_text(interface));
                }
            }
            NcclEvent::Network(name) => {
                insert_bounded(&mut self.networks, super::truncate_log_text(name))
            }
            NcclEvent::Channel(way, ends) => {
                self.channel(way);
                if let Some(Ends { own, other }) = ends {
                    insert_bounded(&mut self.ends.0, own);
                    insert_bounded(&mut self.ends.1, other);
                }
            }
            NcclEvent::Connected => self.is_connected |= self.channels.all() > 0,
            NcclEvent::DirectNic(is_on) => count_flag(&mut self.direct_nics, is_on),
            NcclEvent::DirectPath(is_on, distance) => {
                count_flag(&mut self.direct_paths, is_on);
                if !is_on && distance.is_some() {
                    self.too_far = distance;
                }
            }
            NcclEvent::Rank {
                rank,
                is_complete,
                is_new,
                ..
            } => {
                insert_bounded(&mut self.ranks, rank);
                if is_complete {
                    insert_bounded(&mut self.complete, rank);
                    self.is_connected |= is_new && self.channels.all() > 0;
                }
            }
            NcclEvent::Version(_) | NcclEvent::Environment(..) | NcclEvent::Nodes { .. } => {}
        }
    }

    fn channel(&mut self, way: ChannelPath<'_>) {
        let channels = &mut self.channels;
        match way {
            ChannelPath::Peer => channels.peer += 1,
            ChannelPath::Shared => channels.shared += 1,
            ChannelPath::Net(name, true) if is_verbs(name) => channels.rdma_direct += 1,
            ChannelPath::Net(name, false) if is_verbs(name) => channels.rdma += 1,
            ChannelPath::Net("Socket", _) => channels.socket += 1,
            ChannelPath::Net(name, _) => {
                channels.plugin += 1;
                if !self.networks.contains(name) {
                    insert_bounded(&mut self.networks, super::truncate_log_text(name));
                }
            }
        }
    }

    /// It uses verbs between hosts, by its channels or else by what it chose.
    pub fn uses_verbs(&self) -> bool {
        match self.channels.between_hosts() {
            0 => {
                self.networks.iter().any(|name| is_verbs(name))
                    || (self.networks.is_empty() && !self.devices.is_empty())
            }
            _ => self.channels.verbs() > 0,
        }
    }

    /// It uses TCP between hosts. One that found no RDMA device, and of which nothing else is
    /// known, has nothing else.
    pub fn uses_sockets(&self) -> bool {
        match self.channels.between_hosts() {
            0 => {
                self.networks.contains("Socket")
                    || (self.networks.is_empty() && self.devices.is_empty() && self.has_sockets())
            }
            _ => self.channels.socket > 0,
        }
    }

    fn has_sockets(&self) -> bool {
        !self.interfaces.is_empty() || self.has_no_device
    }

    /// What it uses follows from nothing but the interfaces that it has: releases before 2.5 tell
    /// them whatever network they choose (NVIDIA/nccl-tests#29, NVIDIA/nccl#229).
    pub fn has_interfaces_alone(&self) -> bool {
        self.channels.between_hosts() == 0
            && self.networks.is_empty()
            && self.devices.is_empty()
            && !self.has_no_device
    }

    /// The plugin that it uses between hosts, which is neither.
    pub fn plugin(&self) -> Option<&str> {
        let is_used = self.channels.between_hosts() == 0 || self.channels.plugin > 0;
        self.networks
            .iter()
            .map(String::as_str)
            .find(|name| is_used && !is_verbs(name) && *name != "Socket")
    }
}

/// Puts a value into a set that does not grow without an end.
pub(super) fn insert_bounded<T: Ord>(set: &mut BTreeSet<T>, value: T) {
    if set.len() < VALUES_MAX {
        set.insert(value);
    }
}

fn count_flag((yes, no): &mut (u64, u64), is_so: bool) {
    *if is_so { yes } else { no } += 1;
}
