//! What comes first. Between modules: a topological order at load, a cycle is an error that names its edges. Between
//! wishes of one host: direct edges to the last wishes of what must come first.

use super::compile::Module;
use super::manifest::Noted;
use crate::base::{Address, Diagnostic, suggest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The modules that a word of `after` means, by index: a module's name, or every provider of a capability.
pub fn meant(modules: &[Module], word: &str) -> Vec<usize> {
    let is = |module: &Module| module.name == word || module.manifest.provides.iter().any(|capability| capability == word);
    modules.iter().enumerate().filter(|(_, module)| is(module)).map(|(index, _)| index).collect()
}

/// A module must come after another, because of this word of its manifest.
struct Edge<'a> {
    from: usize,
    to: usize,
    because: &'a Noted,
}

/// Puts each module after those that it names; notes unknown names and cycles.
pub fn modules(modules: Vec<Module>, problems: &mut Vec<Diagnostic>) -> Vec<Module> {
    let edges = edges(&modules, problems);
    within_modules(&modules, problems);
    if let Some(cycle) = shortest_cycle(modules.len(), &edges) {
        problems.push(cycle_error(&modules, &cycle));
        return modules;
    }
    let mut order = Vec::new();
    let mut waiting: BTreeSet<usize> = (0..modules.len()).collect();
    // Always the first by name of those that wait for nobody, so that the order depends on the names alone.
    while let Some(next) = waiting.iter().copied().find(|index| !edges.iter().any(|edge| edge.from == *index && waiting.contains(&edge.to)))
    {
        waiting.remove(&next);
        order.push(next);
    }
    let mut slots: Vec<Option<Module>> = modules.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| slots[index].take()).collect()
}

fn edges<'a>(modules: &'a [Module], problems: &mut Vec<Diagnostic>) -> Vec<Edge<'a>> {
    let mut edges = Vec::new();
    for (from, module) in modules.iter().enumerate() {
        let own = |word: &str| module.resources.iter().any(|resource| resource.entry.id.text == word);
        let of_resources = module.resources.iter().flat_map(|resource| &resource.entry.after).filter(|word| !own(&word.text));
        for because in module.manifest.after.iter().chain(of_resources) {
            let to = meant(modules, &because.text);
            if to.is_empty() {
                problems.push(unknown(modules, module, because));
            }
            edges.extend(to.into_iter().filter(|to| *to != from).map(|to| Edge { from, to, because }));
        }
    }
    edges
}

fn unknown(modules: &[Module], module: &Module, because: &Noted) -> Diagnostic {
    let ids = module.resources.iter().map(|resource| resource.entry.id.text.as_str());
    let known =
        modules.iter().flat_map(|module| std::iter::once(&module.name).chain(&module.manifest.provides)).map(String::as_str).chain(ids);
    let near = suggest::nearest(&because.text, known).map_or("nobody has this name".to_owned(), |near| format!("did you mean `{near}`?"));
    module.at(Diagnostic::error("RW0209", format!("no module, capability or resource is named `{}`", because.text)), because.node, near)
}

/// The shortest way from a module back to itself.
fn shortest_cycle<'a, 'b>(count: usize, edges: &'b [Edge<'a>]) -> Option<Vec<&'b Edge<'a>>> {
    (0..count).filter_map(|start| way_back(start, edges)).min_by_key(Vec::len)
}

fn way_back<'a, 'b>(start: usize, edges: &'b [Edge<'a>]) -> Option<Vec<&'b Edge<'a>>> {
    let mut reached_by: BTreeMap<usize, &Edge<'a>> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for edge in edges.iter().filter(|edge| edge.from == at) {
            if edge.to == start {
                let mut way = vec![edge];
                while let Some(before) = way.last().and_then(|edge| reached_by.get(&edge.from)) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if let std::collections::btree_map::Entry::Vacant(free) = reached_by.entry(edge.to) {
                free.insert(edge);
                queue.push_back(edge.to);
            }
        }
    }
    None
}

fn cycle_error(modules: &[Module], cycle: &[&Edge<'_>]) -> Diagnostic {
    let names: Vec<&str> = cycle.iter().chain(cycle.first()).map(|edge| modules[edge.from].name.as_str()).collect();
    let error =
        Diagnostic::error("RW0210", format!("modules wait for each other: {}", names.join(" after "))).next("remove one of these lines");
    cycle.iter().fold(error, |error, edge| {
        let (from, to) = (&modules[edge.from], &modules[edge.to]);
        from.at(error, edge.because.node, format!("`{}` comes after `{}`", from.name, to.name))
    })
}

/// Cycles between the resources of one module.
fn within_modules(modules: &[Module], problems: &mut Vec<Diagnostic>) {
    for module in modules {
        let index = |word: &str| module.resources.iter().position(|resource| resource.entry.id.text == word);
        let mut edges = Vec::new();
        for (from, resource) in module.resources.iter().enumerate() {
            edges.extend(resource.entry.after.iter().filter_map(|because| Some(Edge { from, to: index(&because.text)?, because })));
        }
        if let Some(cycle) = shortest_cycle(module.resources.len(), &edges) {
            let error = Diagnostic::error("RW0210", format!("resources of `{}` wait for each other", module.name))
                .next("remove one of these lines");
            problems.push(cycle.iter().fold(error, |error, edge| {
                let id = |index: usize| &module.resources[index].entry.id.text;
                module.at(error, edge.because.node, format!("`{}` comes after `{}`", id(edge.from), id(edge.to)))
            }));
        }
    }
}

/// The wishes that one module has on one host, by resource id.
#[derive(Debug, Default)]
pub struct Made {
    /// Addresses by resource id.
    pub by_id: BTreeMap<String, Vec<Address>>,
}

impl Made {
    /// The wishes that no other one of the module comes after.
    pub fn last(&self, module: &Module) -> Vec<Address> {
        let waited_for: BTreeSet<&str> = module
            .resources
            .iter()
            .filter(|one| self.by_id.contains_key(&one.entry.id.text))
            .flat_map(|one| &one.entry.after)
            .map(|word| word.text.as_str())
            .collect();
        self.by_id.iter().filter(|(id, _)| !waited_for.contains(id.as_str())).flat_map(|(_, addresses)| addresses.iter().cloned()).collect()
    }

    /// What a resource of the module comes after on this host. `made` is by module, in the order of `modules`.
    pub fn after(made: &[Made], modules: &[Module], at: usize, resource: usize) -> Vec<Address> {
        let module = &modules[at];
        let mut out = Vec::new();
        let of_module = |out: &mut Vec<Address>, word: &str| {
            for other in meant(modules, word).into_iter().filter(|other| *other != at) {
                out.extend(made[other].last(&modules[other]));
            }
        };
        let mut words: Vec<&str> = module.resources[resource].entry.after.iter().map(|word| word.text.as_str()).collect();
        let mut first = true;
        while let Some(word) = words.pop() {
            let own = module.resources.iter().find(|one| one.entry.id.text == word);
            match (made[at].by_id.get(word), own) {
                (Some(addresses), _) => {
                    first = false;
                    out.extend(addresses.iter().cloned());
                }
                // Not wished for on this host: what it would have waited for counts. Cycles were refused at load.
                (None, Some(own)) => words.extend(own.entry.after.iter().map(|word| word.text.as_str())),
                (None, None) => of_module(&mut out, word),
            }
        }
        // Later resources of the module follow through the first ones.
        if first {
            module.manifest.after.iter().for_each(|word| of_module(&mut out, &word.text));
        }
        out
    }
}
