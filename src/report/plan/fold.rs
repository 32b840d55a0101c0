//! Folds what is the same on many hosts into one entry with a node-set, resources of the same hosts
//! whose names count on (the rails' netdevs) into one with all names, and what is similar on the
//! same hosts into a list.

use super::{entry, list, shape};
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::clean_line;
use railwright_plan::PlanNode;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::HashSet;

/// Nodes that are one entry, or one line of a list.
#[derive(Default)]
struct PlanEntryNodes<'a> {
    /// One of each kind that is kept apart: nodes with the same parts have the same to say.
    unlike: Vec<&'a PlanNode>,
    names: Vec<Cow<'a, str>>,
}

/// First seen, first shown.
fn group_nodes_by_shape<'a>(nodes: &[&'a PlanNode]) -> Vec<PlanEntryNodes<'a>> {
    let mut shapes: IndexMap<String, PlanEntryNodes> = IndexMap::new();
    let mut known: FxHashMap<shape::Parts<'a>, usize> = FxHashMap::default();
    for node in nodes {
        let parts = shape::build_shape_parts(node);
        let place = match parts.as_ref().and_then(|parts| known.get(parts)) {
            Some(place) => *place,
            None => {
                let entry = shapes.entry(shape::build_node_shape(node));
                let place = entry.index();
                entry.or_default().unlike.push(node);
                if let Some(parts) = parts {
                    known.insert(parts, place);
                }
                place
            }
        };
        shapes[place].names.push(entry::format_node_target(node));
    }
    shapes.into_values().collect()
}

/// The node-sets of a screen, each folded once: most entries of a fleet are about the same hosts.
#[derive(Default)]
struct NodeSets<'a>(IndexMap<Vec<Cow<'a, str>>, String>);

impl<'a> NodeSets<'a> {
    /// The number of the node-set with these names.
    fn number(&mut self, mut names: Vec<Cow<'a, str>>) -> usize {
        names.sort();
        names.dedup();
        let entry = self.0.entry(names);
        let number = entry.index();
        entry.or_insert_with_key(|names| nodeset::fold_node_set(names));
        number
    }

    /// The hosts of all these sets, folded.
    fn text(&mut self, numbers: &[usize]) -> String {
        let number = match numbers {
            [only] => *only,
            all => self.number(
                all.iter()
                    .flat_map(|number| self.0.get_index(*number))
                    .flat_map(|(names, _)| names.clone())
                    .collect(),
            ),
        };
        format!("{:<14}", clean_line(&self.0[number]))
    }
}

/// Resources of the same hosts with the same to say, whose names count on.
#[derive(Default)]
struct ByName<'a> {
    nodes: Vec<&'a PlanNode>,
    names: Vec<&'a str>,
}

type PlanLists<'a> = IndexMap<list::Heading, Vec<list::PlanListLine<'a>>>;

/// Nodes with the same text, apart from their host, are one entry; first seen, first shown.
pub fn render_plan_entries(nodes: &[&PlanNode]) -> String {
    let mut sets = NodeSets::default();
    let mut lists = PlanLists::new();
    let mut identical = Vec::new();
    for PlanEntryNodes { unlike, names } in group_nodes_by_shape(nodes) {
        let set = sets.number(names);
        let heading = list::build_list_line(&unlike, set).map(|(heading, line)| {
            lists.entry(heading.clone()).or_default().push(line);
            heading
        });
        identical.push((unlike, set, heading));
    }
    lists.retain(|_, lines| list::is_list(lines));
    let mut by_name: IndexMap<(String, usize), ByName> = IndexMap::new();
    let mut place_of = Vec::with_capacity(identical.len());
    for (unlike, set, heading) in &identical {
        let nameless = match find_list(&lists, heading) {
            Some(_) => None,
            None => shape::build_nameless_shape(unlike),
        };
        let Some((shape, name)) = nameless else {
            place_of.push(None);
            continue;
        };
        let entry = by_name.entry((shape, *set));
        place_of.push(Some((entry.index(), name)));
        let group = entry.or_default();
        group.nodes.extend(unlike);
        group.names.push(name);
    }
    let mut folded: IndexMap<String, Vec<usize>> = IndexMap::new();
    let mut listed = HashSet::new();
    for ((unlike, set, heading), place) in identical.iter().zip(place_of) {
        let body = match find_list(&lists, heading) {
            None => match place.map(|(place, name)| (&by_name[place], name)) {
                Some((all, name)) if all.names.len() > 1 && all.names[0] != name => continue,
                Some((all, _)) if all.names.len() > 1 => {
                    entry::render_entry_body(&all.nodes, Some(&nodeset::fold_node_set(&all.names)))
                }
                _ => entry::render_entry_body(unlike, None),
            },
            Some((heading, lines)) if listed.insert(heading) => {
                list::render_list_body(heading, lines)
            }
            Some(_) => continue,
        };
        folded.entry(body).or_default().push(*set);
    }
    folded
        .into_iter()
        .map(|(body, numbers)| body.replace(entry::WHO, &sets.text(&numbers)))
        .collect()
}

/// The list that entries with this heading stand in.
fn find_list<'l, 'a>(
    lists: &'l PlanLists<'a>,
    heading: &Option<list::Heading>,
) -> Option<(&'l list::Heading, &'l Vec<list::PlanListLine<'a>>)> {
    lists.get_key_value(heading.as_ref()?)
}
