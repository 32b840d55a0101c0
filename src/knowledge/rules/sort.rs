//! Hosts as one rule sees them: those that are the same in all that it looks at are of one sort.
//! Most rules look at few facts, and a spec may have as many classes of hosts as hosts.

use super::facts::HostClass;
use super::rule::Rule;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// The classes of hosts, ready to be looked at: of each path that some rule looks at, which classes
/// have the same there.
pub(super) struct HostClassIndex {
    classes: Vec<(HostClass, Value)>,
    columns: HashMap<Vec<String>, Vec<usize>>,
}

impl HostClassIndex {
    /// Of all classes.
    pub(super) fn of(classes: Vec<HostClass>) -> HostClassIndex {
        let mut known = Vec::with_capacity(classes.len());
        for class in classes {
            let facts = serde_json::to_value(&class.facts).unwrap_or_default();
            known.push((class, facts));
        }
        HostClassIndex {
            classes: known,
            columns: HashMap::new(),
        }
    }

    /// A number for each class, the same for those that have the same at this path.
    fn column(&mut self, path: &[String]) {
        if self.columns.contains_key(path) {
            return;
        }
        let mut numbers: HashMap<Option<&Value>, usize> = HashMap::new();
        let mut column = Vec::with_capacity(self.classes.len());
        for (_, facts) in &self.classes {
            let (seen, next) = (find_value_at_path(facts, path), numbers.len());
            column.push(*numbers.entry(seen).or_insert(next));
        }
        self.columns.insert(path.to_vec(), column);
    }
}

/// Hosts that a rule cannot tell apart.
pub(super) struct RuleHostClass {
    /// The facts that it looks at, and the nodes.
    pub host: Value,
    /// The groups of the spec, by their index.
    pub groups: Vec<usize>,
}

/// The sorts of hosts, in the order of the spec.
pub(super) fn group_hosts_by_rule_facts(
    rule: &Rule,
    known: &mut HostClassIndex,
) -> Vec<RuleHostClass> {
    let paths = collect_host_paths(rule);
    for path in &paths {
        known.column(path);
    }
    let columns: Vec<&Vec<usize>> = paths
        .iter()
        .filter_map(|path| known.columns.get(*path))
        .collect();
    let mut sorts: IndexMap<Vec<usize>, MergedHostClasses> = IndexMap::new();
    for (at, (class, facts)) in known.classes.iter().enumerate() {
        let seen = columns.iter().map(|column| column[at]).collect();
        let identical = sorts.entry(seen).or_insert_with(|| MergedHostClasses {
            facts,
            groups: Vec::new(),
            nodes: Vec::new(),
        });
        identical.groups.extend(&class.groups);
        identical.nodes.push(&class.facts.nodes);
    }
    let mut classes = Vec::with_capacity(sorts.len());
    for merged in sorts.into_values() {
        let mut host = Map::new();
        // shorter paths first: what is below a whole is a part of it
        for path in &paths {
            copy_value_at_path(&mut host, path, merged.facts);
        }
        host.insert("nodes".to_owned(), Value::String(merged.nodes.join(",")));
        classes.push(RuleHostClass {
            host: Value::Object(host),
            groups: merged.groups,
        });
    }
    classes
}

/// The paths below a host that a rule looks at, but for the names of its nodes.
fn collect_host_paths(rule: &Rule) -> BTreeSet<&[String]> {
    let mut paths = BTreeSet::new();
    for snippet in [&rule.when, &rule.says, &rule.fix] {
        for path_use in &snippet.uses {
            let Some((first, rest)) = path_use.path.split_first() else {
                continue;
            };
            let is_nodes = rest.first().is_some_and(|name| name == "nodes");
            if matches!(first.as_str(), "host" | "other") && !is_nodes {
                paths.insert(rest);
            }
        }
    }
    paths
}

/// What stands at a path.
fn find_value_at_path<'a>(facts: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter()
        .try_fold(facts, |value, name| value.get(name.as_str()))
}

/// Puts what stands at a path of `from` at the same path, with the maps above it, as far as they
/// are there.
fn copy_value_at_path(into: &mut Map<String, Value>, path: &[String], from: &Value) {
    let Some((name, rest)) = path.split_first() else {
        if let Value::Object(fields) = from {
            into.extend(fields.clone());
        }
        return;
    };
    let Some(value) = from.get(name.as_str()) else {
        return;
    };
    if rest.is_empty() || !value.is_object() {
        into.insert(name.clone(), value.clone());
        return;
    }
    let below = into
        .entry(name.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(below) = below {
        copy_value_at_path(below, rest, value);
    }
}

/// Classes that are of one sort: the facts of the first.
struct MergedHostClasses<'a> {
    facts: &'a Value,
    groups: Vec<usize>,
    nodes: Vec<&'a str>,
}
