//! Pools of RDMA devices in Kubernetes: which rails they hand out, and which netdevs that are.

use super::hosts::Host;
use indexmap::IndexSet;
use std::collections::BTreeSet;

/// The rails of `rail 0-3` or `rail 0,2,4-5`.
pub fn parse_rail_list(text: &str) -> Option<BTreeSet<u32>> {
    let list = text
        .trim()
        .strip_prefix("rails")
        .or_else(|| text.trim().strip_prefix("rail"))?;
    let mut rails = BTreeSet::new();
    for part in list.trim().split(',') {
        let (first, last) = part
            .trim()
            .split_once('-')
            .unwrap_or((part.trim(), part.trim()));
        let (first, last) = (parse_rail_number(first)?, parse_rail_number(last)?);
        // Far beyond what a machine has; a range is not unfolded further.
        if first > last || last > 255 {
            return None;
        }
        rails.extend(first..=last);
    }
    Some(rails)
}

fn parse_rail_number(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

/// The netdevs of these rails on all hosts, each once, in the order in which they are found. A rail
/// on a VLAN is known by its port: a device plugin goes by PCI functions.
pub fn list_rail_netdevs(hosts: &[Host], rails: &BTreeSet<u32>) -> Vec<String> {
    let of_rails = hosts
        .iter()
        .flat_map(|host| &host.netdevs)
        .filter(|rail| rails.contains(&rail.rail));
    of_rails
        .map(|rail| rail.port.clone())
        .collect::<IndexSet<_>>()
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_are_read_as_people_write_them() {
        let list =
            |text: &str| parse_rail_list(text).map(|rails| rails.into_iter().collect::<Vec<_>>());
        assert_eq!(list("rail 0-3"), Some(vec![0, 1, 2, 3]));
        assert_eq!(list(" rails 4, 0-1 "), Some(vec![0, 1, 4]));
        for text in [
            "",
            "rail",
            "0-3",
            "rail 3-0",
            "rail x",
            "rail 0-",
            "rail 0-4000000000",
            "rail -1",
        ] {
            assert_eq!(list(text), None, "{text}");
        }
    }
}
