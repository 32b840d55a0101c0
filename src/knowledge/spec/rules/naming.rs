//! What a group says about the names of its NICs.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::model::{Naming, Nics, NodeGroup};
use railwright_base::nodeset::expand_node_set;
use railwright_resource::ResourceKind as _;
use railwright_resource::netdev_name::NetdevName;
use std::collections::BTreeSet;

const EFFECT: &str =
    "a rail would have another name after the next boot than the rest of the spec calls it by";

/// `nics.naming`.
pub fn check_nic_naming(
    checker: &mut SpecChecker<'_>,
    at: &str,
    nics: &Nics,
    naming: &Naming,
    group: &NodeGroup,
) {
    if naming.pci.is_empty() && naming.mac.is_empty() && naming.rdma.is_none() {
        let finding = new_spec_error(
            "RW0123",
            "nothing is to be named",
            EFFECT,
            "write `pci`, `mac` or `rdma`, or remove `naming`",
        );
        return checker.find(at, "empty", finding);
    }
    if !naming.pci.is_empty() && !naming.mac.is_empty() {
        let finding = new_spec_error(
            "RW0123",
            "rails are named both by PCI address and by MAC address",
            EFFECT,
            "keep one of `pci` and `mac`",
        );
        return checker.find(&format!("{at}.mac"), "beside `pci`", finding);
    }
    if !naming.pci.is_empty() {
        check_list(
            checker,
            &format!("{at}.pci"),
            nics,
            &naming.pci,
            "the PCI address",
            |device| device.contains('.'),
        );
    }
    if !naming.mac.is_empty() {
        check_mac_addresses(checker, at, nics, naming, group);
    }
}

/// MAC addresses are of one host each, so every host of the group has its own list.
fn check_mac_addresses(
    checker: &mut SpecChecker<'_>,
    at: &str,
    nics: &Nics,
    naming: &Naming,
    group: &NodeGroup,
) {
    let hosts = expand_node_set(&group.name).unwrap_or_default();
    for (host, macs) in &naming.mac {
        let path = format!("{at}.mac.{host}");
        if !hosts.contains(host) {
            let finding = new_spec_error(
                "RW0123",
                format!("`{}` is no host of this group", truncate_user_text(host)),
                EFFECT,
                "write the name of one of them",
            );
            checker.find(&path, "not in `name`", finding);
        }
        check_list(checker, &path, nics, macs, "the MAC address", |device| {
            !device.contains('.')
        });
    }
    if let Some(host) = hosts.iter().find(|host| !naming.mac.contains_key(*host)) {
        let fix = "write the MAC addresses of every host of the group, or PCI addresses, which \
                   identical hosts share";
        let finding = new_spec_error(
            "RW0123",
            format!(
                "nothing says which NICs of `{}` get the names",
                truncate_user_text(host)
            ),
            EFFECT,
            fix,
        );
        checker.find(&format!("{at}.mac"), "a host is missing", finding);
    }
}

/// One device a rail, each of this sort and of its own, and a name that may be given to each.
fn check_list(
    checker: &mut SpecChecker<'_>,
    path: &str,
    nics: &Nics,
    devices: &[String],
    sort: &str,
    is_of_sort: fn(&str) -> bool,
) {
    let rails = nics.rails.unwrap_or(1) as usize;
    if devices.len() != rails {
        let finding = new_spec_error(
            "RW0123",
            format!("{} for {rails} rails", devices.len()),
            EFFECT,
            format!("write {sort} of each rail, in order"),
        );
        return checker.find(path, "one for each rail", finding);
    }
    let mut seen = BTreeSet::new();
    for (rail, device) in devices.iter().enumerate() {
        let device = device.to_ascii_lowercase();
        let name = nics.netdev.replace("{rail}", &rail.to_string());
        let name = name.split('.').next().unwrap_or_default();
        let problems = NetdevName.check(&serde_json::json!({ "name": name, "device": device }));
        let (message, fix) = if let Some(problem) = problems.into_iter().next() {
            (problem.message, problem.help.unwrap_or_default())
        } else if !is_of_sort(&device) {
            let message = format!("`{}` is not {sort} of a NIC", truncate_user_text(&device));
            (message, "one a rail".to_owned())
        } else if seen.contains(&device) {
            let message = format!("`{}` stands here twice", truncate_user_text(&device));
            (message, "a rail is one NIC".to_owned())
        } else {
            seen.insert(device);
            continue;
        };
        let finding = new_spec_error("RW0123", message, EFFECT, fix);
        return checker.find(path, "in these", finding);
    }
}
