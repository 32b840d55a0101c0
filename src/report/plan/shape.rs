//! What makes nodes of a plan one entry of its screen: the same resources, reasons and attributes,
//! the same to interrupt and to watch over.

use super::entry::{
    change_of, describe_automatic_rollback, format_blocked_reason, is_looked_again, is_new_package,
    kind_word, reason_of, rebooted_for,
};
use railwright_base::nodeset;
use railwright_base::shared::place_of;
use railwright_plan::{AttributeDifference, AutomaticRollback, Member, NodeKind, PlanNode, Reason};
use railwright_resource::{DesiredResource, Disruption};
use std::mem::Discriminant;

/// What changes share with each other, by its place in memory: those with the same parts have the
/// same shape and the same to say, save their host.
#[derive(PartialEq, Eq, Hash)]
pub struct Parts<'a> {
    disruption: Disruption,
    interrupts: usize,
    guard: Option<&'a AutomaticRollback>,
    members: Vec<([usize; 3], Discriminant<Reason>)>,
}

/// The parts of a change; nothing where something of it may be its own besides.
pub fn build_shape_parts(node: &PlanNode) -> Option<Parts<'_>> {
    let NodeKind::Change { members, guard, .. } = &node.kind else {
        return None;
    };
    let one = |member: &Member| {
        let DesiredResource { address, want, .. } = &member.wish;
        let places = [
            place_of(&address.path),
            place_of(want),
            place_of(&member.found),
        ];
        is_plain(&member.reason).then(|| (places, std::mem::discriminant(&member.reason)))
    };
    let members = members.iter().map(one).collect::<Option<Vec<_>>>()?;
    let interrupts = place_of(&node.interrupts);
    node.held.is_none().then_some(Parts {
        disruption: node.disruption,
        interrupts,
        guard: guard.as_ref(),
        members,
    })
}

/// A reason that holds nothing of the host that it is about, so that it is alike on all of them.
pub fn is_plain(reason: &Reason) -> bool {
    use Reason::{
        Drifted, LetGo, New, NotReady, OwedRestart, RemovedFromSpec, Takeover, WillBeLostAtReboot,
    };
    matches!(
        reason,
        New | Takeover
            | Drifted
            | OwedRestart
            | NotReady
            | WillBeLostAtReboot
            | RemovedFromSpec
            | LetGo
    )
}

/// Nodes of the same shape are folded: same resources, reasons and attributes, the same to
/// interrupt and to watch over; values may differ and are then listed.
pub fn build_node_shape(node: &PlanNode) -> String {
    let members: Vec<String> = node
        .members()
        .iter()
        .map(|m| {
            let attributes: Vec<String> = m
                .differences
                .iter()
                .map(|d| format!("{}{}", d.attribute, d.plane.word()))
                .collect();
            let since: Vec<&str> = m.since.iter().map(|d| d.attribute.as_str()).collect();
            let words = [attributes.join(","), since.join(","), m.residue.join(",")];
            format!(
                "{}|{}|{}",
                m.wish.address.within_target(),
                reason_of(m, None),
                words.join("|")
            )
        })
        .collect();
    let looked_again = members.is_empty() || node.members().iter().all(is_looked_again);
    let waits = match &node.kind {
        NodeKind::Reboot => rebooted_for(node),
        NodeKind::Drain { cluster, .. } | NodeKind::Uncordon { cluster, .. } => cluster.to_string(),
        _ => String::new(),
    };
    let body = if looked_again && !members.is_empty() {
        format!("again {}", reason_of(&node.members()[0], None))
    } else {
        members.join(";")
    };
    format!(
        "{}|{waits}|{body}|{:?}|{:?}|{:?}|{:?}",
        kind_word(node),
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
    let name = member.wish.address.name();
    member
        .wish
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
    let has_own_form = is_new_package(member) || is_looked_again(member);
    let alike: Vec<&Member> = nodes.iter().map(|node| &node.members()[0]).collect();
    let value = |(place, difference): (usize, &AttributeDifference)| {
        if difference.attribute == "addresses" {
            String::new()
        } else {
            change_of(&alike, place).to_string()
        }
    };
    let values = || {
        member
            .differences
            .iter()
            .enumerate()
            .map(value)
            .collect::<Vec<_>>()
            .join("|")
    };
    (counts_on && !has_own_form).then(|| {
        (
            format!(
                "{}|{}|{}",
                nodeset::mask_digits(name),
                build_node_shape(node).replace(name, NAME),
                values()
            ),
            name,
        )
    })
}
