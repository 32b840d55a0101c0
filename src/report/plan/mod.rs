//! The plan's screen: worst disruption first, identical changes folded by node-set, a reason for each, what it
//! interrupts, unknowns visible, unchanged things one line, the next command last.

mod entry;
mod fold;

use super::unread;
use super::wrap::rule;
use crate::base::text::{self, clean, clean_line};
use crate::base::{Target, TargetKind, nodeset};
use crate::plan::{Node, NodeKind, Plan};
use crate::resource::Disruption;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// How the plan can be gone on with.
#[derive(Debug, Clone, Default)]
pub struct Next {
    /// The file that the plan was written to.
    pub file: Option<String>,
    /// The inventory as the user named it.
    pub inventory: String,
}

/// The whole screen. What stands in a plan comes from hosts, their records and files that others wrote.
pub fn screen(plan: &Plan, next: &Next) -> String {
    clean(&page(plan, next))
}

fn page(plan: &Plan, next: &Next) -> String {
    let mut out = header(plan);
    let no_work = |n: &Node| matches!(n.kind, NodeKind::Gate { .. } | NodeKind::Barrier | NodeKind::Adopt { .. });
    let work: Vec<&Node> = plan.nodes.iter().filter(|n| !no_work(n)).collect();
    if work.is_empty() {
        out.push_str(&nothing_to_do(plan));
        out.push_str(&not_recorded(plan, next));
        out.push_str(&unknown(plan));
        out.push_str(&dropped(plan));
        if !plan.unknown.is_empty() {
            let inventory = if next.inventory.is_empty() { clean_line(&plan.inventory.path) } else { next.inventory.clone() };
            out.push_str(&format!("\nnext: mend what could not be read, then railwright plan {inventory}{}\n", narrowed(plan)));
        }
        return out;
    }
    let (held, open): (Vec<&Node>, Vec<&Node>) = work.into_iter().partition(|n| n.held.is_some());
    let mut classes: BTreeMap<std::cmp::Reverse<Disruption>, Vec<&Node>> = BTreeMap::new();
    for node in &open {
        classes.entry(std::cmp::Reverse(node.disruption)).or_default().push(node);
    }
    for (class, nodes) in &classes {
        out.push_str(&rule(title(class.0)));
        out.push_str(&fold::entries(nodes));
    }
    if !held.is_empty() {
        out.push_str(&rule("HELD: not carried out in this run"));
        out.push_str(&fold::entries(&held));
    }
    out.push_str(&unknown(plan));
    out.push_str(&dropped(plan));
    out.push('\n');
    out.push_str(&waves(plan));
    out.push_str(&summary(plan, &open, &held));
    out.push_str(&go_on(plan, next));
    out
}

/// One resource or target in full: every difference, text changes line by line, the actions' own words.
pub fn details(plan: &Plan, subject: &str) -> Option<String> {
    let hit = |node: &&Node| {
        let within = |address: String| address == subject || address.starts_with(&format!("{subject}/"));
        within(node.id.clone()) || node.members().iter().any(|m| within(m.wish.address.to_string()))
    };
    let nodes: Vec<&Node> = plan.nodes.iter().filter(hit).collect();
    if nodes.is_empty() {
        return None;
    }
    Some(clean(&nodes.into_iter().map(entry::in_full).collect::<Vec<_>>().join("\n")))
}

fn header(plan: &Plan) -> String {
    let mut out = format!(
        "cluster {}   {}   read {}\nspec     {} ({})\n",
        clean_line(&plan.cluster),
        clean_line(&plan.inventory.path),
        clean_line(&plan.observed_at),
        clean_line(plan.spec_digest.short()),
        clean_line(&plan.inventory.words()),
    );
    if !plan.narrowed.is_empty() {
        out.push_str(&format!("narrowed to a part of the cluster: {}\n", clean_line(&plan.narrowed.join(" "))));
    }
    out
}

fn title(class: Disruption) -> &'static str {
    match class {
        Disruption::None => "LIVE: nobody notices",
        Disruption::Reload => "RELOAD: a setting or service is read again",
        Disruption::Restart => "RESTART: a service restarts",
        Disruption::LinkBlip => "LINK: a link goes down for a moment",
        Disruption::Drain => "DRAIN: the node is emptied first",
        Disruption::Reboot => "REBOOT",
        Disruption::PowerCycle => "POWER CYCLE: by hand",
        Disruption::Reinstall => "REINSTALL: by hand",
    }
}

fn nothing_to_do(plan: &Plan) -> String {
    let resources: usize = plan.unchanged.values().sum();
    let targets = targets(plan.unchanged.keys());
    if plan.unknown.is_empty() {
        format!("No changes. {resources} resources on {targets} are as the spec wants them.\n")
    } else {
        format!("No changes to what could be read. {resources} resources on {targets} are as the spec wants them.\n")
    }
}

/// How many resources are as wished and not remembered so.
fn adopted(plan: &Plan) -> usize {
    plan.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Adopt { .. })).map(|node| node.members().len()).sum()
}

fn not_recorded(plan: &Plan, next: &Next) -> String {
    let command = match (&next.file, next.inventory.as_str()) {
        (Some(file), _) => format!("railwright apply {file}"),
        (None, "") => "this run".to_owned(),
        (None, inventory) => format!("railwright apply {inventory}"),
    };
    match adopted(plan) {
        0 => String::new(),
        count => format!("{count} of them are not recorded yet: {command} writes down that they are so, and changes nothing.\n"),
    }
}

fn targets<'a>(targets: impl Iterator<Item = &'a Target>) -> String {
    let mut hosts = BTreeSet::new();
    let mut others = 0;
    for target in targets {
        if target.kind == TargetKind::Host {
            hosts.insert(target.name.clone());
        } else {
            others += 1;
        }
    }
    let hosts = hosts.len();
    match (hosts, others) {
        (1, 0) => "1 host".to_owned(),
        (hosts, 0) => format!("{hosts} hosts"),
        (hosts, others) => format!("{hosts} hosts and {others} other targets"),
    }
}

fn unknown(plan: &Plan) -> String {
    if plan.unknown.is_empty() {
        return String::new();
    }
    format!("{}{}", rule("UNKNOWN: could not be found out"), unread::entries(&plan.unknown))
}

/// What stays as it was applied although the spec no longer says it, folded by node-set.
fn dropped(plan: &Plan) -> String {
    let mut folded: IndexMap<(String, &str), Vec<&str>> = IndexMap::new();
    for dropped in &plan.dropped {
        let what = format!("{}: {}", dropped.field.path.join(" "), dropped.field.attribute.as_deref().unwrap_or_default());
        folded.entry((what, &dropped.value)).or_default().push(&dropped.field.target.name);
    }
    let entry = |((what, value), names): ((String, &str), Vec<&str>)| {
        let names = nodeset::fold(&names);
        format!(" . {names:<14} {}   {}\n", text::clean(&what), text::one_line(value, 40))
    };
    let entries: String = folded.into_iter().map(entry).collect();
    if entries.is_empty() {
        return entries;
    }
    format!("{}{entries}", rule("LEFT AS APPLIED: no longer in the spec; write the value that you want instead"))
}

fn waves(plan: &Plan) -> String {
    let waves: Vec<String> = plan
        .nodes
        .iter()
        .filter_map(|node| match &node.kind {
            NodeKind::Gate { hosts } => Some(fold::hosts(hosts)),
            _ => None,
        })
        .collect();
    if waves.is_empty() {
        return String::new();
    }
    let shown =
        if waves.len() > 6 { format!("{} > ... {} more waves", waves[..5].join(" > "), waves.len() - 5) } else { waves.join(" > ") };
    let gate = if waves.len() > 1 { "   a gate of RDMA checks after each" } else { "   then a gate of RDMA checks" };
    format!("waves    {shown}   at most {} out of service{gate}\n", plan.rollout.max_unavailable)
}

fn summary(plan: &Plan, open: &[&Node], held: &[&Node]) -> String {
    let count =
        |class: Disruption| open.iter().filter(|n| n.disruption == class).filter_map(|n| n.target.as_ref()).collect::<BTreeSet<_>>().len();
    let mut parts = Vec::new();
    for (class, words) in [(Disruption::Reboot, "reboot"), (Disruption::Drain, "drain"), (Disruption::LinkBlip, "lose a link for a moment")]
    {
        if count(class) > 0 {
            let hosts = count(class);
            parts.push(if hosts == 1 { format!("1 host will {words}") } else { format!("{hosts} hosts will {words}") });
        }
    }
    let members = || open.iter().flat_map(|n| n.members());
    let looked = members().filter(|m| matches!(m.reason, crate::plan::Reason::Disturbed { .. })).count();
    let removed = members().filter(|m| m.removal).count();
    let changed = members().count() - looked - removed;
    if changed > 0 {
        parts.push(plural(changed, "resource changes", "resources change"));
    }
    for (number, words) in [(removed, "removed"), (looked, "looked at again"), (held.len(), "held"), (plan.unknown.len(), "unknown")] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    let unchanged: usize = plan.unchanged.values().sum();
    let noted = adopted(plan);
    let noted = if noted > 0 { format!(" ({noted} recorded so for the first time)") } else { String::new() };
    parts.push(format!("{unchanged} as they should be{noted}"));
    format!("summary  {}\n", lines(&parts))
}

/// Parts joined by commas, on lines of at most 100 columns that begin under the first.
fn lines(parts: &[String]) -> String {
    let mut out = String::new();
    let mut column = 9;
    for (n, part) in parts.iter().enumerate() {
        let text = if n + 1 < parts.len() { format!("{part}, ") } else { part.clone() };
        if n > 0 && column + text.trim_end().chars().count() > 100 {
            out = format!("{}\n         ", out.trim_end());
            column = 9;
        }
        column += text.chars().count();
        out.push_str(&text);
    }
    out
}

fn plural(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// The narrowing of this plan for a command line, so that what is copied from the screen is not wider than what was seen.
fn narrowed(plan: &Plan) -> String {
    match plan.narrowed.len() {
        0 => String::new(),
        1..=3 => format!(" {}", clean_line(&plan.narrowed.join(" "))),
        _ => " (with the same --target and --exclude)".to_owned(),
    }
}

fn go_on(plan: &Plan, next: &Next) -> String {
    let digest = plan.digest.chars().take(12).collect::<String>();
    match &next.file {
        Some(file) => {
            format!("digest   {digest}\nnext     railwright apply {file}\n         one resource in full: railwright show {file} ADDRESS\n")
        }
        None if next.inventory.is_empty() => format!("digest   {digest}\n"),
        None => format!(
            "digest   {digest}\nnext     railwright plan {0} -o FILE, then railwright apply FILE\n         or in one go: railwright apply {0}\n",
            format!("{}{}", next.inventory, narrowed(plan))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Address, Digest};
    use crate::plan::{Member, Reason, RolloutPolicy};
    use crate::resource::Wish;

    /// A removal, every text of it as a host's own record may have it.
    fn plan(text: &str) -> Plan {
        let address = Address::host("a", "file", text);
        let wish = Wish {
            address: address.clone(),
            kind: "file".to_owned(),
            body: serde_json::Value::Null,
            after: Vec::new(),
            module: text.to_owned(),
            places: Vec::new(),
        };
        let member = Member {
            wish,
            reason: Reason::Takeover,
            removal: true,
            differences: Vec::new(),
            fingerprint: Digest::of(&0),
            before: serde_json::Value::Null,
            residue: vec![text.to_owned()],
        };
        let node = Node {
            id: address.to_string(),
            kind: NodeKind::Change {
                members: vec![member],
                actions: Vec::new(),
                announced: vec![text.to_owned()],
                disturbs: Vec::new(),
                interrupts_netdev: None,
            },
            target: Some(address.target),
            disruption: Disruption::Reload,
            interrupts: vec![text.to_owned()],
            after: vec![text.to_owned()],
            wave: 0,
            held: None,
        };
        Plan {
            format_version: "1.0".to_owned(),
            made_by: String::new(),
            cluster: text.to_owned(),
            inventory: Default::default(),
            spec_digest: Digest::of(&0),
            modules: BTreeMap::new(),
            state_digest: Digest::of(&0),
            observed_at: text.to_owned(),
            narrowed: vec![text.to_owned()],
            rollout: RolloutPolicy { canary: 1, max_unavailable: 1, max_disruption: Disruption::Reboot },
            nodes: vec![node],
            unchanged: BTreeMap::new(),
            unknown: Vec::new(),
            dropped: Default::default(),
            digest: String::new(),
        }
    }

    #[test]
    fn no_name_writes_to_the_terminal_or_begins_a_line_of_its_own() {
        let hostile = plan("x\n - all hosts  nothing\u{1b}[2J\u{7}\u{202e}");
        for text in [screen(&hostile, &Next::default()), details(&hostile, "host/a").unwrap()] {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
            assert!(!text.lines().any(|line| line.starts_with(" - all hosts")), "{text}");
            assert!(text.contains("x\u{fffd} - all hosts"), "{text}");
        }
    }
}
