//! What makes nodes of a plan one entry of its screen: the same resources, reasons and attributes,
//! the same to interrupt and to watch over.

use super::entry::{
    describe_automatic_rollback, describe_member_change, describe_member_reason,
    format_blocked_reason, is_new_package, is_rechecked, list_reboot_causes, name_node_kind,
};
use railwright_base::nodeset;
use railwright_base::shared::place_of;
use railwright_plan::{AutomaticRollback, ChangeReason, Member, NodeKind, PlanNode};
use railwright_resource::{DesiredResource, Disruption};
use std::mem::Discriminant;

/// What changes share with each other, by its place in memory: those with the same parts have the
/// same shape and the same to say, save their host.
#[derive(PartialEq, Eq, Hash)]
pub struct Parts<'a> {
    disruption: Disruption,
    interrupts: usize,
    automatic_rollback: Option<&'a AutomaticRollback>,
    members: Vec<([usize; 3], Discriminant<ChangeReason>)>,
}

/// The parts of a change; nothing where something of it may be its own besides.
pub fn build_shape_parts(node: &PlanNode) -> Option<Parts<'_>> {
    let NodeKind::Change {
        members,
        automatic_rollback,
        ..
    } = &node.kind
    else {
        return None;
    };
    let members = members
        .iter()
        .map(build_member_parts)
        .collect::<Option<Vec<_>>>()?;
    let interrupts = place_of(&node.interrupts);
    node.blocked.is_none().then_some(Parts {
        disruption: node.disruption,
        interrupts,
        automatic_rollback: automatic_rollback.as_ref(),
        members,
    })
}

fn build_member_parts(member: &Member) -> Option<([usize; 3], Discriminant<ChangeReason>)> {
    let DesiredResource {
        address,
        declaration,
        ..
    } = &member.resource;
    let places = [
        place_of(&address.path),
        place_of(declaration),
        place_of(&member.diff),
    ];
    is_plain(&member.reason).then(|| (places, std::mem::discriminant(&member.reason)))
}

/// A reason without anything of the host that it is about, so that it is identical on all of them.
pub fn is_plain(reason: &ChangeReason) -> bool {
    use ChangeReason::{
        Drifted, LetGo, New, NotReady, PendingRestart, RemovedFromSpec, Takeover,
        WillBeLostAtReboot,
    };
    matches!(
        reason,
        New | Takeover
            | Drifted
            | PendingRestart
            | NotReady
            | WillBeLostAtReboot
            | RemovedFromSpec
            | LetGo
    )
}

fn build_member_shape(member: &Member) -> String {
    let mut attributes = Vec::new();
    for difference in &member.differences {
        attributes.push(format!(
            "{}{}",
            difference.attribute,
            difference.plane.word()
        ));
    }
    let since: Vec<&str> = member.since.iter().map(|d| d.attribute.as_str()).collect();
    format!(
        "{}|{}|{}|{}|{}",
        member.resource.address.within_target(),
        describe_member_reason(member, None),
        attributes.join(","),
        since.join(","),
        member.residue.join(",")
    )
}

/// Nodes of the same shape are folded: same resources, reasons and attributes, the same to
/// interrupt and to watch over; values may differ and are then listed.
pub fn build_node_shape(node: &PlanNode) -> String {
    let members: Vec<String> = node.members().iter().map(build_member_shape).collect();
    let looked_again = members.is_empty() || node.members().iter().all(is_rechecked);
    let waits = match &node.kind {
        NodeKind::Reboot => list_reboot_causes(node),
        NodeKind::Drain { cluster, .. } | NodeKind::Uncordon { cluster, .. } => cluster.to_string(),
        _ => String::new(),
    };
    let body = if looked_again && !members.is_empty() {
        format!("again {}", describe_member_reason(&node.members()[0], None))
    } else {
        members.join(";")
    };
    format!(
        "{}|{waits}|{body}|{:?}|{:?}|{:?}|{:?}",
        name_node_kind(node),
        format_blocked_reason(node),
        node.disruption,
        node.interrupts,
        describe_automatic_rollback(node)
    )
}

/// Stands for a resource's own name where shapes are compared.
const NAME: &str = "\u{2}";

/// What a resource is called by: the netdev that it is about, or its name.
pub(super) fn own_name(member: &Member) -> &str {
    let name = member.resource.address.name();
    member
        .resource
        .text("netdev")
        .filter(|netdev| !netdev.is_empty() && name.contains(netdev))
        .unwrap_or(name)
}

/// The shape of a change of one resource without the numbers in its own name, and that name:
/// resources of a host whose names count on (the rails' netdevs) can be one entry. Values count
/// too, so that one that is unlike the others stands apart, all but addresses, which differ by
/// nature. Nothing for what has a form of its own on the screen.
pub fn build_nameless_shape<'a>(nodes: &[&'a PlanNode]) -> Option<(String, &'a str)> {
    let node = nodes[0];
    let NodeKind::Change { members, .. } = &node.kind else {
        return None;
    };
    let [member] = &members[..] else { return None };
    let name = own_name(member);
    let counts_on = name.contains(|c: char| c.is_ascii_digit()) && nodeset::is_plain(name);
    let has_own_form = is_new_package(member) || is_rechecked(member);
    let identical: Vec<&Member> = nodes.iter().map(|node| &node.members()[0]).collect();
    if !counts_on || has_own_form {
        return None;
    }
    let mut values = Vec::new();
    for (place, difference) in member.differences.iter().enumerate() {
        if difference.attribute == "addresses" {
            values.push(String::new());
        } else {
            values.push(describe_member_change(&identical, place).to_string());
        }
    }
    let shape = format!(
        "{}|{}|{}",
        nodeset::mask_digits(name),
        build_node_shape(node).replace(name, NAME),
        values.join("|")
    );
    Some((shape, name))
}
