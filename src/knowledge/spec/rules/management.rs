//! What a group says about its management network, and about VLANs beside it.

use super::hardware::{NETDEV_LENGTH_MAX, is_netdev};
use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::rail_netdevs;
use crate::spec::model::{BondMode, ManagementBond, NodeGroup};
use railwright_base::Diagnostic;
use std::collections::BTreeSet;

const EFFECT: &str = "the kernel refuses such a netdev, or makes it without what was meant";

fn new_management_error(message: impl Into<String>, fix: impl Into<String>) -> Diagnostic {
    new_spec_error("RW0137", message, EFFECT, fix)
}

fn name_fix() -> String {
    format!("use letters, digits, `.`, `_` and `-`, at most {NETDEV_LENGTH_MAX}")
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
    let (Some(said), Some(vlan)) = (&management.vlan, management.resolved().vlan) else {
        return;
    };
    let path = format!("{at}.vlan");
    check_id(checker, &format!("{path}.id"), said.id);
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
            checker.find(
                &format!("{path}.{field}"),
                "not a netdev",
                new_management_error(
                    format!("`{}` cannot be a netdev", truncate_user_text(text)),
                    name_fix(),
                ),
            );
        }
    }
    let members = management.bond.iter().flat_map(|bond| &bond.members);
    if members.clone().any(|member| *member == parent) {
        let fix = "put the VLAN on the bond: leave `parent` out";
        checker.find(
            &format!("{path}.parent"),
            "a member",
            new_management_error(
                format!("{parent} belongs to the bond and carries nothing by itself"),
                fix,
            ),
        );
    }
    let rails = rail_netdevs(group);
    let taken = rails.iter().any(|(netdev, port)| {
        *netdev == name
            || (*port == parent && group.nics.as_ref().and_then(|nics| nics.vlan) == Some(said.id))
    });
    if taken || name == parent || members.clone().any(|member| *member == name) {
        let message = format!(
            "VLAN {} on {} is there twice, or its name {} is another netdev's",
            said.id,
            truncate_user_text(&parent),
            truncate_user_text(&name)
        );
        checker.find(
            &path,
            "taken already",
            new_management_error(message, "give it a number and a name of its own"),
        );
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
        checker.find(
            &format!("{at}.name"),
            "not a netdev",
            new_management_error(
                format!("`{}` cannot be a netdev", truncate_user_text(&bond.name)),
                name_fix(),
            ),
        );
    }
    let members = format!("{at}.members");
    let mut seen = BTreeSet::new();
    if bond.members.is_empty() {
        checker.find(
            &members,
            "empty",
            new_management_error(
                "the bond has no members",
                "write its ports, such as `[eno1, eno2]`",
            ),
        );
    }
    let rails = rail_netdevs(group);
    for (index, member) in bond.members.iter().enumerate() {
        let path = format!("{members}[{index}]");
        let rail = rails
            .iter()
            .any(|(netdev, port)| member == netdev || member == port);
        let (label, message, fix) = match () {
            () if !is_netdev(member) => (
                "not a netdev",
                format!("`{}` cannot be a netdev", truncate_user_text(member)),
                name_fix(),
            ),
            () if *member == bond.name => (
                "itself",
                format!("{member} cannot be a member of itself"),
                "write its ports".to_owned(),
            ),
            () if !seen.insert(member) => (
                "again",
                format!("{member} stands here twice"),
                "a port is a member once".to_owned(),
            ),
            () if rail => {
                let message =
                    format!("{member} is an RDMA rail and a member of the management bond");
                (
                    "a rail",
                    message,
                    "write the ports of the board; a member has no address, so no RoCE GID either"
                        .to_owned(),
                )
            }
            () => continue,
        };
        checker.find(&path, label, new_management_error(message, fix));
    }
    check_settings(checker, at, bond);
}

/// What each mode knows (the Linux kernel: Documentation/networking/bonding.rst).
fn check_settings(checker: &mut SpecChecker<'_>, at: &str, bond: &ManagementBond) {
    let mode = bond.mode;
    let spreads = matches!(
        mode,
        BondMode::BalanceXor | BondMode::Lacp | BondMode::BalanceTlb
    );
    let chooses = matches!(
        mode,
        BondMode::ActiveBackup | BondMode::BalanceTlb | BondMode::BalanceAlb
    );
    let unused = [
        (
            "lacp_rate",
            bond.lacp_rate.is_some() && mode != BondMode::Lacp,
            "mode `802.3ad`",
        ),
        (
            "xmit_hash_policy",
            bond.xmit_hash_policy.is_some() && !spreads,
            "modes `balance-xor`, `802.3ad` and `balance-tlb`",
        ),
        (
            "primary",
            bond.primary.is_some() && !chooses,
            "modes `active-backup`, `balance-tlb` and `balance-alb`",
        ),
    ];
    for (field, _, modes) in unused.into_iter().filter(|(_, is, _)| *is) {
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
