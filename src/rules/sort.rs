//! Hosts as one rule sees them: those that are the same in all that it looks at are of one sort. Most rules look at few facts,
//! and a spec may have as many classes of hosts as hosts.

use super::facts::Class;
use super::load::Rule;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A class with its facts as a value, for looking at some of them.
pub(super) struct Known {
    class: Class,
    value: Value,
}

/// The classes, ready to be looked at.
pub(super) fn known(classes: Vec<Class>) -> Vec<Known> {
    classes.into_iter().map(|class| Known { value: serde_json::to_value(&class.facts).unwrap_or_default(), class }).collect()
}

/// Hosts that a rule cannot tell apart.
pub(super) struct Sort {
    /// The facts that it looks at, and the nodes.
    pub host: Value,
    /// The groups of the spec, by their index.
    pub groups: Vec<usize>,
}

/// Classes that are of one sort: the facts of the first.
struct Alike<'a> {
    facts: &'a Value,
    groups: Vec<usize>,
    nodes: Vec<&'a str>,
}

/// The sorts of hosts, in the order of the spec.
pub(super) fn sorts(rule: &Rule, classes: &[Known]) -> Vec<Sort> {
    let uses = [&rule.when, &rule.says, &rule.mend].into_iter().flat_map(|snippet| &snippet.uses);
    let of_hosts = uses.filter(|one| matches!(one.path.first().map(String::as_str), Some("host" | "other")));
    let paths: BTreeSet<&[String]> =
        of_hosts.map(|one| &one.path[1..]).filter(|path| path.first().is_none_or(|name| name != "nodes")).collect();
    let mut sorts: IndexMap<Vec<Option<&Value>>, Alike> = IndexMap::new();
    for Known { class, value } in classes {
        let seen = paths.iter().map(|path| path.iter().try_fold(value, |value, name| value.get(name.as_str()))).collect();
        let alike = sorts.entry(seen).or_insert_with(|| Alike { facts: value, groups: Vec::new(), nodes: Vec::new() });
        alike.groups.extend(&class.groups);
        alike.nodes.push(&class.facts.nodes);
    }
    let sort = |of: Alike| {
        let mut host = Map::new();
        // shorter paths first: what is below a whole is a part of it
        paths.iter().for_each(|path| put(&mut host, path, of.facts));
        host.insert("nodes".to_owned(), Value::String(of.nodes.join(",")));
        Sort { host: Value::Object(host), groups: of.groups }
    };
    sorts.into_values().map(sort).collect()
}

/// Puts what stands at a path of `from` at the same path, with the maps above it, as far as they are there.
fn put(into: &mut Map<String, Value>, path: &[String], from: &Value) {
    let Some((name, rest)) = path.split_first() else {
        into.extend(from.as_object().cloned().into_iter().flatten());
        return;
    };
    let Some(value) = from.get(name.as_str()) else { return };
    match (rest.is_empty(), value) {
        (false, Value::Object(_)) => {
            let below = into.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                put(below, rest, value);
            }
        }
        _ => drop(into.insert(name.clone(), value.clone())),
    }
}
