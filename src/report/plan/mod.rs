//! The plan's screen: worst disruption first, identical changes folded by node-set, a reason for each, what it
//! interrupts, unknowns visible, unchanged things one line, the next command last.

mod entry;
mod fold;
mod waves;

use super::unread;
use super::wrap::{self, rule};
use crate::base::text::{self, clean, clean_line, counted};
use crate::base::{Target, TargetKind, nodeset};
use crate::plan::{Node, NodeKind, Plan, Reason};
use crate::resource::Disruption;
use crate::spec::window::Window;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// How the plan can be gone on with.
#[derive(Debug, Clone, Default)]
pub struct Next {
    /// The file that the plan was written to.
    pub file: Option<String>,
    /// The inventory as the user named it.
    pub inventory: String,
    /// How long it will likely take, as a line; it is no part of the plan.
    pub time: String,
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
    out.push_str(&planes(&open, &held));
    out.push_str(&waves::waves(plan));
    out.push_str(&rollout_rules(plan));
    out.push_str(&next.time);
    out.push_str(&summary(plan, &open, &held));
    out.push_str(&go_on(plan, next));
    out
}

/// One resource or target in full: every difference, text changes line by line, the actions' own words.
pub fn details(plan: &Plan, subjects: &[String]) -> Option<String> {
    let hit = |node: &&Node| {
        let is_below = |address: &str, subject: &String| {
            address.strip_prefix(subject.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let within = |address: String| subjects.iter().any(|subject| is_below(&address, subject));
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
    let count: usize = plan.unchanged.values().sum();
    let (resources, (verb, them)) = (counted(count, "resource"), if count == 1 { ("is", "it") } else { ("are", "them") });
    let targets = targets(plan.unchanged.keys());
    if plan.unknown.is_empty() {
        format!("No changes. {resources} on {targets} {verb} as the spec wants {them}.\n")
    } else {
        format!("No changes to what could be read. {resources} on {targets} {verb} as the spec wants {them}.\n")
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
        (hosts, 0) => counted(hosts, "host"),
        (hosts, others) => format!("{} and {}", counted(hosts, "host"), counted(others, "other target")),
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

/// What the words in brackets mean, where some stand above.
fn planes(open: &[&Node], held: &[&Node]) -> String {
    let told =
        |member: &crate::plan::Member| !matches!(member.reason, Reason::New | Reason::KnownAfter { .. }) && !member.differences.is_empty();
    match open.iter().chain(held).flat_map(|node| node.members()).any(told) {
        true => "planes   persisted: written to disk; running: in effect now; next boot: waits for a boot\n".to_owned(),
        false => String::new(),
    }
}

/// When what disturbs much may begin, and how long a run may go on.
fn rollout_rules(plan: &Plan) -> String {
    let rollout = &plan.rollout;
    let mut out = String::new();
    if let Some(least) = rollout.windows_for.filter(|_| !rollout.windows.is_empty()) {
        let windows: Vec<String> = rollout.windows.iter().map(Window::words).collect();
        let what = match least {
            Disruption::None => "every step".to_owned(),
            least => format!("what disturbs as much as a {} or more", least.word().replace('_', " ")),
        };
        let text = format!("{}; for {what}", windows.join("; "));
        out.push_str(&wrap::labelled("windows  ", &text, 100));
    }
    if let Some(seconds) = rollout.deadline_s {
        out.push_str(&format!("deadline {} after the run begins\n", text::duration(seconds)));
    }
    out
}

fn summary(plan: &Plan, open: &[&Node], held: &[&Node]) -> String {
    let count =
        |class: Disruption| open.iter().filter(|n| n.disruption == class).filter_map(|n| n.target.as_ref()).collect::<BTreeSet<_>>().len();
    let mut parts = Vec::new();
    for (class, words) in [(Disruption::Reboot, "reboot"), (Disruption::Drain, "drain"), (Disruption::LinkBlip, "lose a link for a moment")]
    {
        if count(class) > 0 {
            parts.push(format!("{} will {words}", counted(count(class), "host")));
        }
    }
    let members = || open.iter().flat_map(|n| n.members());
    let looked = members().filter(|m| matches!(m.reason, Reason::Disturbed { .. })).count();
    let removed = members().filter(|m| m.removal).count();
    let changed = members().count() - looked - removed;
    if changed > 0 {
        parts.push(format!("{} change{}", counted(changed, "resource"), if changed == 1 { "s" } else { "" }));
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
            let example = plan.nodes.iter().flat_map(|node| node.members()).next().map_or("HOST KIND NAME".to_owned(), entry::named);
            format!(
                "digest   {digest}\nnext     railwright apply {file}\n         one resource in full: railwright show {file} {example}\n"
            )
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
    use crate::plan::{Difference, Member, Proof, RolloutPolicy};
    use crate::resource::{Plane, Reading, Wish};

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
            since: Vec::new(),
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
            rollout: RolloutPolicy { canary: 1, max_unavailable: 1, max_disruption: Disruption::Reboot, ..RolloutPolicy::default() },
            proof: Proof::Rdma,
            nodes: vec![node],
            unchanged: BTreeMap::new(),
            unknown: Vec::new(),
            dropped: Default::default(),
            digest: String::new(),
        }
    }

    /// The plan above for these hosts, its text replaced.
    fn of_hosts(names: &[&str], change: impl Fn(&str, &mut Node)) -> Plan {
        let mut plan = plan("x");
        let first = plan.nodes.remove(0);
        for name in names {
            let mut node = first.clone();
            node.target = Some(Target::host(*name));
            node.after.clear();
            change(name, &mut node);
            plan.nodes.push(node);
        }
        plan
    }

    #[test]
    fn what_is_held_for_a_step_of_its_own_host_is_one_entry_for_all_hosts() {
        let plan = of_hosts(&["n1", "n2", "n3"], |name, node| {
            node.held = Some(format!("it needs host/{name}/kernel_parameter/iommu, which is held"));
        });
        let text = screen(&plan, &Next::default());
        assert_eq!(text.matches("held     it needs kernel_parameter/iommu, which is held").count(), 1, "{text}");
        assert!(text.contains(" - n[1-3]         file x"), "{text}");
    }

    #[test]
    fn a_removal_says_what_it_drops_and_planes_are_explained_where_they_stand() {
        let since = |found: &str| Difference {
            attribute: "content".to_owned(),
            plane: Plane::Persisted,
            wanted: Reading::is("ours"),
            found: Reading::is(found),
        };
        let plan = of_hosts(&["n1", "n2"], |name, node| {
            let NodeKind::Change { members, .. } = &mut node.kind else { return };
            members[0].since = vec![since(&format!("theirs on {name}"))];
            members[0].differences = vec![Difference { wanted: Reading::Absent, ..since("x") }];
        });
        let text = screen(&plan, &Next::default());
        let (drops, more) =
            ("drops    what somebody changed since we applied it: content (persisted)", "ours -> theirs on n1; ours -> theirs on n2");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&drops.split_whitespace().collect::<Vec<_>>().join(" ")) && flat.contains(more), "{text}");
        assert!(text.contains("       content (persisted)    x -> absent\n") && text.contains("\nplanes   persisted: "), "{text}");
        assert!(!screen(&of_hosts(&["n1"], |_, _| ()), &Next::default()).contains("planes   "));
    }

    #[test]
    fn a_gate_says_what_it_proves_and_a_resource_how_it_is_named() {
        let mut plan = of_hosts(&["n1"], |_, _| ());
        let gate = NodeKind::Gate { hosts: vec!["n1".to_owned()] };
        plan.nodes.push(Node { id: "gate/0".to_owned(), kind: gate, target: None, disruption: Disruption::None, ..plan.nodes[0].clone() });
        let next = Next { file: Some("p.plan".to_owned()), ..Next::default() };
        for (proof, words) in [
            (Proof::Rdma, "then a gate of RDMA checks"),
            (Proof::ModuleChecks, "then a gate of the modules' checks"),
            (Proof::Nothing, "then a gate with nothing to check (no rails, no checks)"),
            (Proof::NotSaid, "then a gate"),
        ] {
            plan.proof = proof;
            let text = screen(&plan, &next);
            let line = text.lines().find(|line| line.starts_with("waves")).unwrap();
            assert!(line.ends_with(words), "{line}");
            assert!(text.contains("railwright show p.plan a file x\n"), "{text}");
        }
    }

    #[test]
    fn no_name_writes_to_the_terminal_or_begins_a_line_of_its_own() {
        let hostile = plan("x\n - all hosts  nothing\u{1b}[2J\u{7}\u{202e}");
        for text in [screen(&hostile, &Next::default()), details(&hostile, &["host/a".to_owned()]).unwrap()] {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
            assert!(!text.lines().any(|line| line.starts_with(" - all hosts")), "{text}");
            assert!(text.contains("x\u{fffd} - all hosts"), "{text}");
        }
    }
}
