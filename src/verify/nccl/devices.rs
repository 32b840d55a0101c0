//! The RDMA devices that ranks use, host by host.

use super::log::NcclLog;
use super::message::RdmaLinkLayer;
use super::transport::Transport;
use crate::result::CheckOutcome;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that use the same devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDeviceGroup {
    /// A node-set; empty for lines without a name.
    pub hosts: String,
    /// Processes on them.
    pub processes: usize,
    /// Their ranks, as far as the log says them: `0-7`, `0, 2`.
    pub ranks: String,
    /// `mlx5_0:1` and what it speaks.
    pub devices: Vec<(String, RdmaLinkLayer)>,
}

#[derive(Debug, Default)]
struct DeviceGroupMembers {
    hosts: BTreeSet<String>,
    ranks: BTreeSet<u32>,
    processes: usize,
}

/// Numbers in their order, neighbours as a range.
fn format_number_ranges(numbers: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let mut words = Vec::new();
    for (first, last) in runs {
        words.push(match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
    }
    words.join(", ")
}

/// Hosts by the devices that they use, the largest group first; who names no device is in none.
pub fn group_hosts_by_devices(log: &NcclLog) -> Vec<HostDeviceGroup> {
    let mut by_devices: BTreeMap<Vec<(String, RdmaLinkLayer)>, DeviceGroupMembers> =
        BTreeMap::new();
    for process in &log.processes {
        if process.devices.is_empty() {
            continue;
        }
        let members = by_devices
            .entry(process.devices.iter().cloned().collect())
            .or_default();
        members.hosts.extend(process.host.clone());
        members.ranks.extend(&process.ranks);
        members.processes += 1;
    }
    let mut groups = Vec::new();
    for (devices, members) in by_devices {
        groups.push(HostDeviceGroup {
            hosts: super::fold_log_names(members.hosts.iter().map(String::as_str)),
            processes: members.processes,
            ranks: format_number_ranges(&members.ranks),
            devices,
        });
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.processes));
    groups
}

/// `mlx5_[0-7]`: ports of devices, 1 left out as every device has it.
pub fn format_device_names(devices: &[(String, RdmaLinkLayer)]) -> String {
    super::fold_log_names(
        devices
            .iter()
            .map(|(port, _)| port.strip_suffix(":1").unwrap_or(port)),
    )
}

/// Checks them: as many on every host.
pub fn check_rdma_devices(log: &NcclLog, transport: Transport) -> CheckOutcome {
    let groups = group_hosts_by_devices(log);
    let Some(first) = groups.first() else {
        return CheckOutcome::not_applicable(match transport {
            Transport::Socket => "no RDMA device is used",
            _ => "the log names no RDMA device",
        });
    };
    if groups
        .iter()
        .all(|group| group.devices.len() == first.devices.len())
    {
        let words: Vec<String> = groups
            .iter()
            .take(3)
            .map(|group| format_device_names(&group.devices))
            .collect();
        return CheckOutcome::passed(words.join("; "));
    }
    let words: Vec<String> = groups
        .iter()
        .take(4)
        .map(|group| format!("{} on {}", format_device_names(&group.devices), group.hosts))
        .collect();
    CheckOutcome::warning("RW1204", words.join("; "))
        .expected("as many devices on every host")
        .effect("hosts with fewer devices slow down all others")
        .next("compare NCCL_IB_HCA and the ports of the hosts: railwright verify INVENTORY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_in_ranges() {
        assert_eq!(
            format_number_ranges(&BTreeSet::from([0, 1, 2, 5, 7, 8, u32::MAX])),
            "0-2, 5, 7-8, 4294967295"
        );
    }
}
