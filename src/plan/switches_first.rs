//! Switches and hosts: a host whose priority pauses on a port that drops it loses packets, so switches that are changed go before the
//! hosts. What is only taken back from a switch comes after them, for the same reason.

use super::model::Node;
use super::part::Part;
use crate::base::TargetKind;

/// Puts the switches on their side of the hosts, each side one at a time: what goes wrong with one stops before the next. The step that is
/// held of those before the hosts, if one is.
pub(super) fn put_in(parts: &mut [Part]) -> Option<String> {
    let is_switch = |part: &&mut Part| part.target.kind == TargetKind::Switch;
    let (mut early, mut late): (Vec<String>, Vec<String>) = Default::default();
    let mut held = None;
    let changes = |node: &Node| node.members().iter().any(|member| !member.removal);
    for part in parts.iter_mut().filter(is_switch) {
        part.before_hosts = part.nodes.iter().any(changes);
        let before = if part.before_hosts { &mut early } else { &mut late };
        part.first().for_each(|node| node.after.extend(before.iter().cloned()));
        let last: Vec<String> = part.last().map(|node| node.id.clone()).collect();
        if !last.is_empty() {
            *before = last;
        }
        let own = part.nodes.iter().find(|node| node.held.is_some() && changes(node));
        held = held.or_else(|| own.map(|node| node.id.clone()));
    }
    held
}
