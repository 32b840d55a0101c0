//! The RDMA devices that ranks use, host by host.

use super::log::Log;
use super::message::Link;
use super::transport::Transport;
use crate::base::nodeset;
use crate::verify::result::Judgement;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that use the same devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// A node-set; empty for lines without a name.
    pub hosts: String,
    /// Processes on them.
    pub processes: usize,
    /// `mlx5_0:1` and what it speaks.
    pub devices: Vec<(String, Link)>,
}

/// Hosts by the devices that they use, the largest group first; who names no device is in none.
pub fn groups(log: &Log) -> Vec<Group> {
    let mut by_devices: BTreeMap<Vec<(String, Link)>, (BTreeSet<String>, usize)> = BTreeMap::new();
    for process in log.processes.iter().filter(|process| !process.devices.is_empty()) {
        let (hosts, processes) = by_devices.entry(process.devices.iter().cloned().collect()).or_default();
        hosts.extend(process.host.clone());
        *processes += 1;
    }
    let group = |(devices, (hosts, processes)): (Vec<(String, Link)>, (BTreeSet<String>, usize))| {
        let hosts: Vec<String> = hosts.into_iter().collect();
        Group { hosts: nodeset::fold(&hosts), processes, devices }
    };
    let mut groups: Vec<Group> = by_devices.into_iter().map(group).collect();
    groups.sort_by(|one, other| other.processes.cmp(&one.processes));
    groups
}

/// `mlx5_[0-7]`: ports of devices, 1 left out as every device has it.
pub fn named(devices: &[(String, Link)]) -> String {
    let names: Vec<String> = devices.iter().map(|(port, _)| port.strip_suffix(":1").unwrap_or(port).to_owned()).collect();
    nodeset::fold(&names)
}

/// Judges them: as many on every host.
pub fn judge(log: &Log, transport: Transport) -> Judgement {
    let groups = groups(log);
    let Some(first) = groups.first() else {
        return Judgement::not_applicable(match transport {
            Transport::Socket => "no RDMA device is used",
            _ => "the log names no RDMA device",
        });
    };
    if groups.iter().all(|group| group.devices.len() == first.devices.len()) {
        let words: Vec<String> = groups.iter().take(3).map(|group| named(&group.devices)).collect();
        return Judgement::passed(words.join("; "));
    }
    let words: Vec<String> = groups.iter().take(4).map(|group| format!("{} on {}", named(&group.devices), group.hosts)).collect();
    Judgement::warning("RW1204", words.join("; "))
        .expected("as many devices on every host")
        .effect("hosts with fewer devices slow down all others")
        .next("compare NCCL_IB_HCA and the ports of the hosts: railwright verify INVENTORY")
}
