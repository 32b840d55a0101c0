//! What a group says about its management network, and about VLANs beside it.

use super::hardware::{NETDEV_LENGTH_MAX, is_netdev};
use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::rail_netdevs;
use crate::spec::model::{BondMode, ManagementBond, NodeGroup};
use railwright_base::Diagnostic;

const EFFECT: &str = "the kernel refuses such a netdev, or makes it without what was meant";

fn new_management_error(message: impl Into<String>, fix: impl Into<String>) -> Diagnostic {
    new_spec_error("RW0137", message, EFFECT, fix)
}

fn new_netdev_error(name: &str) -> Diagnostic {
    new_management_error(
        format!("`{}` cannot be a netdev", truncate_user_text(name)),
        format!("use letters, digits, `.`, `_` and `-`, at most {NETDEV_LENGTH_MAX}"),
    )
}

/// `management` of a group.
pub fn check_management(checker: &mut SpecChecker<'_>, at: &str, group: &NodeGroup) {
    let Some(management) = &group.management else {
        return;
    };
    // a part that did not decode is not missing
    if checker.complete && management.bond.is_none() && management.vlan.is_none() {
        return checker.find(
            at,
            "empty",
            new_management_error(
                "nothing is said of the management network",
                "write `bond` or `vlan`, or remove `management`",
            ),
        );
    }
    if let Some(bond) = &management.bond {
        check_bond(checker, &format!("{at}.bond"), bond, group);
    }
    let (Some(stated), Some(vlan)) = (&management.vlan, management.resolved().vlan) else {
        return;
    };
    let path = format!("{at}.vlan");
    check_id(checker, &format!("{path}.id"), stated.id);
    if !checker.complete && management.bond.is_none() {
        return;
    }
    let (Some(parent), Some(name)) = (vlan.parent, vlan.name) else {
        return checker.find(
            &path,
            "on nothing",
            new_management_error(
                "the VLAN has no netdev to sit on",
                "write `parent: eno1`, or a `bond` beside it",
            ),
        );
    };
    for (field, text) in [("parent", &parent), ("name", &name)] {
        if !is_netdev(text) {
            let path = format!("{path}.{field}");
            checker.find(&path, "not a netdev", new_netdev_error(text));
        }
    }
    let vlan = VlanNetdev {
        id: stated.id,
        parent: &parent,
        name: &name,
    };
    check_vlan_netdev(checker, &path, &vlan, group);
}

/// The netdev of a VLAN, with what the spec leaves out filled in.
struct VlanNetdev<'a> {
    id: u16,
    parent: &'a str,
    name: &'a str,
}

/// The VLAN sits on what carries something, and is there once.
fn check_vlan_netdev(
    checker: &mut SpecChecker<'_>,
    path: &str,
    vlan: &VlanNetdev<'_>,
    group: &NodeGroup,
) {
    let VlanNetdev { id, parent, name } = *vlan;
    let bond = group.management.as_ref().and_then(|all| all.bond.as_ref());
    let members = bond.map_or(&[][..], |bond| &bond.members);
    if members.iter().any(|member| member == parent) {
        let message = format!("{parent} belongs to the bond and carries nothing by itself");
        let fix = "put the VLAN on the bond: leave `parent` out";
        checker.find(
            &format!("{path}.parent"),
            "a member",
            new_management_error(message, fix),
        );
    }
    let rail_vlan = group.nics.as_ref().and_then(|nics| nics.vlan);
    let is_of_rail = rail_netdevs(group)
        .iter()
        .any(|(netdev, port)| netdev == name || (port == parent && rail_vlan == Some(id)));
    let is_member = members.iter().any(|member| member == name);
    if is_of_rail || name == parent || is_member {
        let message = format!(
            "VLAN {id} on {} is there twice, or its name {} is another netdev's",
            truncate_user_text(parent),
            truncate_user_text(name)
        );
        let fix = "give it a number and a name of its own";
        checker.find(path, "taken already", new_management_error(message, fix));
    }
}

/// 0 is a tag with a priority alone, 4095 is reserved (IEEE 802.1Q).
pub fn check_id(checker: &mut SpecChecker<'_>, path: &str, id: u16) {
    if !(1..=4094).contains(&id) {
        checker.find(
            path,
            "out of range",
            new_management_error(format!("{id} is no VLAN"), "write a number from 1 to 4094"),
        );
    }
}

fn check_bond(checker: &mut SpecChecker<'_>, at: &str, bond: &ManagementBond, group: &NodeGroup) {
    if !is_netdev(&bond.name) {
        let path = format!("{at}.name");
        checker.find(&path, "not a netdev", new_netdev_error(&bond.name));
    }
    let members = format!("{at}.members");
    if bond.members.is_empty() {
        let finding = new_management_error(
            "the bond has no members",
            "write its ports, such as `[eno1, eno2]`",
        );
        checker.find(&members, "empty", finding);
    }
    let rails = rail_netdevs(group);
    for index in 0..bond.members.len() {
        if let Some((label, finding)) = find_member_fault(bond, index, &rails) {
            checker.find(&format!("{members}[{index}]"), label, finding);
        }
    }
    check_settings(checker, at, bond);
}

/// What is wrong with one member of a bond, and the label at it; `rails` are netdevs and ports.
fn find_member_fault(
    bond: &ManagementBond,
    index: usize,
    rails: &[(String, String)],
) -> Option<(&'static str, Diagnostic)> {
    let member = &bond.members[index];
    let is_rail = rails
        .iter()
        .any(|(netdev, port)| member == netdev || member == port);
    if !is_netdev(member) {
        return Some(("not a netdev", new_netdev_error(member)));
    }
    let (label, message, fix) = if *member == bond.name {
        let message = format!("{member} cannot be a member of itself");
        ("itself", message, "write its ports")
    } else if bond.members[..index].contains(member) {
        let message = format!("{member} stands here twice");
        ("again", message, "a port is a member once")
    } else if is_rail {
        let message = format!("{member} is an RDMA rail and a member of the management bond");
        let fix = "write the ports of the board; a member has no address, so no RoCE GID either";
        ("a rail", message, fix)
    } else {
        return None;
    };
    Some((label, new_management_error(message, fix)))
}

/// Fields that the mode of a bond does not know, each with the modes that do (the Linux kernel:
/// Documentation/networking/bonding.rst).
fn list_unused_bond_fields(bond: &ManagementBond) -> Vec<(&'static str, &'static str)> {
    let mode = bond.mode;
    let spreads = matches!(
        mode,
        BondMode::BalanceXor | BondMode::Lacp | BondMode::BalanceTlb
    );
    let chooses = matches!(
        mode,
        BondMode::ActiveBackup | BondMode::BalanceTlb | BondMode::BalanceAlb
    );
    let mut unused = Vec::new();
    if bond.lacp_rate.is_some() && mode != BondMode::Lacp {
        unused.push(("lacp_rate", "mode `802.3ad`"));
    }
    if bond.xmit_hash_policy.is_some() && !spreads {
        let modes = "modes `balance-xor`, `802.3ad` and `balance-tlb`";
        unused.push(("xmit_hash_policy", modes));
    }
    if bond.primary.is_some() && !chooses {
        let modes = "modes `active-backup`, `balance-tlb` and `balance-alb`";
        unused.push(("primary", modes));
    }
    unused
}

fn check_settings(checker: &mut SpecChecker<'_>, at: &str, bond: &ManagementBond) {
    for (field, modes) in list_unused_bond_fields(bond) {
        let finding = new_management_error(
            format!("`{field}` belongs to {modes}"),
            format!("remove `{field}`, or choose another mode"),
        );
        checker.find(&format!("{at}.{field}"), "not used", finding);
    }
    if let Some(primary) = bond
        .primary
        .as_ref()
        .filter(|primary| !bond.members.contains(primary))
    {
        let finding = new_management_error(
            format!("`{}` is no member of the bond", truncate_user_text(primary)),
            "write one of `members`",
        );
        checker.find(&format!("{at}.primary"), "not among `members`", finding);
    }
    if bond
        .miimon
        .is_some_and(|miimon| !(1..=60_000).contains(&miimon.0))
    {
        let fix = "write milliseconds from 1 to 60000; 100 is common";
        let finding = new_management_error(
            "the links of the ports would never be looked at, or far too seldom",
            fix,
        );
        checker.find(&format!("{at}.miimon"), "out of range", finding);
    }
}
