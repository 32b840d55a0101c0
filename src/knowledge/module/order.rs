//! What comes first. Between modules: a topological order at load, a cycle is an error that names
//! its edges. Between wishes of one host: direct edges to the last wishes of what must come first.

use super::compile::Module;
use super::manifest::ManifestText;
use crate::template::engine;
use railwright_base::{Address, Diagnostic, suggest};
use railwright_graph::{Cycle, Graph};
use railwright_resource::{DesiredResource, kubernetes_object};
use std::collections::{BTreeMap, BTreeSet};

/// The modules that a word of `after` means, by index: a module's name, or every provider of a
/// capability.
pub fn find_named_modules(modules: &[Module], word: &str) -> Vec<usize> {
    let is = |module: &Module| {
        module.name == word
            || module
                .manifest
                .provides
                .iter()
                .any(|capability| capability == word)
    };
    modules
        .iter()
        .enumerate()
        .filter(|(_, module)| is(module))
        .map(|(index, _)| index)
        .collect()
}

/// A module must come after another, because of this word of its manifest.
struct Edge<'a> {
    from: usize,
    to: usize,
    because: &'a ManifestText,
}

/// Puts each module after those that it names; notes unknown names and cycles.
pub fn sort_modules(modules: Vec<Module>, problems: &mut Vec<Diagnostic>) -> Vec<Module> {
    let edges = collect_module_edges(&modules, problems);
    within_modules(&modules, problems);
    match build_order_graph(modules.len(), &edges).order() {
        Ok(order) => {
            drop(edges);
            let mut slots: Vec<Option<Module>> = modules.into_iter().map(Some).collect();
            order
                .into_iter()
                .filter_map(|index| slots[index].take())
                .collect()
        }
        Err(Cycle(ring)) => {
            let edges = collect_cycle_edges(&ring, &edges);
            let names: Vec<&str> = edges
                .iter()
                .chain(edges.first())
                .map(|edge| modules[edge.from].name.as_str())
                .collect();
            let error = Diagnostic::error(
                "RW0210",
                format!("modules wait for each other: {}", names.join(" after ")),
            )
            .next(REMOVE_ONE);
            problems.push(edges.iter().fold(error, |error, edge| {
                let (from, to) = (&modules[edge.from], &modules[edge.to]);
                from.at(
                    error,
                    edge.because.node,
                    format!("`{}` comes after `{}`", from.name, to.name),
                )
            }));
            modules
        }
    }
}

const REMOVE_ONE: &str = "remove one of these lines";

fn build_order_graph(len: usize, edges: &[Edge<'_>]) -> Graph {
    Graph::new(len, edges.iter().map(|edge| (edge.to, edge.from)))
}

/// The edges of a ring in which each must come before the next, told from the last to the first.
fn collect_cycle_edges<'a, 'b>(ring: &[usize], edges: &'b [Edge<'a>]) -> Vec<&'b Edge<'a>> {
    let last_to_first: Vec<usize> = ring.iter().rev().copied().collect();
    let pairs = last_to_first
        .iter()
        .zip(last_to_first.iter().cycle().skip(1));
    pairs
        .filter_map(|(from, to)| {
            edges
                .iter()
                .find(|edge| (edge.from, edge.to) == (*from, *to))
        })
        .collect()
}

fn collect_module_edges<'a>(
    modules: &'a [Module],
    problems: &mut Vec<Diagnostic>,
) -> Vec<Edge<'a>> {
    let mut edges = Vec::new();
    for (from, module) in modules.iter().enumerate() {
        let own = |word: &str| {
            module
                .resources
                .iter()
                .any(|resource| resource.entry.id.text == word)
        };
        let of_resources = module
            .resources
            .iter()
            .flat_map(|resource| &resource.entry.after)
            .filter(|word| !own(&word.text));
        for because in module.manifest.after.iter().chain(of_resources) {
            let to = find_named_modules(modules, &because.text);
            if to.is_empty() {
                problems.push(new_unknown_name_error(modules, module, because));
            }
            edges.extend(to.into_iter().filter(|to| *to != from).map(|to| Edge {
                from,
                to,
                because,
            }));
        }
    }
    edges
}

fn new_unknown_name_error(
    modules: &[Module],
    module: &Module,
    because: &ManifestText,
) -> Diagnostic {
    let ids = module
        .resources
        .iter()
        .map(|resource| resource.entry.id.text.as_str());
    let known = modules
        .iter()
        .flat_map(|module| std::iter::once(&module.name).chain(&module.manifest.provides))
        .map(String::as_str)
        .chain(ids);
    let near = suggest::find_nearest_word(&because.text, known)
        .map_or("nobody has this name".to_owned(), |near| {
            format!("did you mean `{near}`?")
        });
    module.at(
        Diagnostic::error(
            "RW0209",
            format!(
                "no module, capability or resource is named `{}`",
                because.text
            ),
        ),
        because.node,
        near,
    )
}

/// Cycles between the resources of one module.
fn within_modules(modules: &[Module], problems: &mut Vec<Diagnostic>) {
    for module in modules {
        let index = |word: &str| {
            module
                .resources
                .iter()
                .position(|resource| resource.entry.id.text == word)
        };
        let mut edges = Vec::new();
        for (from, resource) in module.resources.iter().enumerate() {
            edges.extend(resource.entry.after.iter().filter_map(|because| {
                Some(Edge {
                    from,
                    to: index(&because.text)?,
                    because,
                })
            }));
        }
        if let Err(Cycle(ring)) = build_order_graph(module.resources.len(), &edges).order() {
            let error = Diagnostic::error(
                "RW0210",
                format!("resources of `{}` wait for each other", module.name),
            )
            .next(REMOVE_ONE);
            problems.push(
                collect_cycle_edges(&ring, &edges)
                    .iter()
                    .fold(error, |error, edge| {
                        let id = |index: usize| &module.resources[index].entry.id.text;
                        module.at(
                            error,
                            edge.because.node,
                            format!("`{}` comes after `{}`", id(edge.from), id(edge.to)),
                        )
                    }),
            );
        }
    }
}

/// What is about a netdev that gets its name by a wish comes after that wish: until then there may
/// be none of this name. A VLAN counts by what it sits on.
pub fn after_names<'w>(wishes: impl Iterator<Item = &'w mut DesiredResource>) {
    let wishes: Vec<&mut DesiredResource> = wishes.collect();
    let named = wishes.iter().filter(|wish| wish.kind == "netdev_name");
    let named: BTreeMap<String, Address> = named
        .map(|wish| (wish.address.name().to_owned(), wish.address.clone()))
        .collect();
    for wish in wishes
        .into_iter()
        .filter(|wish| wish.kind != "netdev_name" && !named.is_empty())
    {
        let key = wish
            .text("key")
            .filter(|_| wish.kind == "sysctl")
            .and_then(|key| key.split_once(".conf.")?.1.rsplit_once('.'));
        let netdev = key
            .map(|(netdev, _)| netdev)
            .or_else(|| wish.text("netdev"));
        let first = netdev.and_then(|netdev| {
            named
                .get(netdev)
                .or_else(|| named.get(netdev.split('.').next()?))
        });
        if let Some(first) = first.filter(|first| !wish.after.contains(first)) {
            wish.after.push(first.clone());
        }
    }
}

/// Objects of Kubernetes come after the namespace that they are in, and after the definition of
/// their kind.
pub fn after_what_they_are_in<'w>(wishes: impl Iterator<Item = &'w mut DesiredResource>) {
    let wishes: Vec<&mut DesiredResource> = wishes
        .filter(|wish| wish.kind == "kubernetes_object")
        .collect();
    let brings: BTreeMap<String, Address> = wishes
        .iter()
        .filter_map(|wish| {
            Some((
                kubernetes_object::place::find_provided_prerequisite(wish)?,
                wish.address.clone(),
            ))
        })
        .collect();
    for wish in wishes {
        for first in kubernetes_object::place::is_in(wish)
            .iter()
            .filter_map(|needed| brings.get(needed))
        {
            if *first != wish.address && !wish.after.contains(first) {
                wish.after.push(first.clone());
            }
        }
    }
}

/// A wish that a module has on one host.
#[derive(Debug, Clone)]
pub struct MadeWish {
    /// Its address.
    pub address: Address,
    /// The list that its `for` goes through, and the turn.
    pub turn: Option<(String, usize)>,
}

/// The wishes that one module has on one host.
#[derive(Debug, Default)]
pub struct ModuleHostResources {
    /// Wishes by resource id.
    pub by_id: BTreeMap<String, Vec<MadeWish>>,
}

impl ModuleHostResources {
    /// The wishes that no other one of the module comes after.
    fn last(&self, module: &Module) -> impl Iterator<Item = &MadeWish> {
        let there = |id: &str| self.by_id.contains_key(id);
        let waiting = module
            .resources
            .iter()
            .filter(|one| there(&one.entry.id.text));
        let waited_for: BTreeSet<String> = waiting
            .flat_map(|one| &one.entry.after)
            .map(|word| word.text.clone())
            .collect();
        self.by_id
            .iter()
            .filter(move |(id, _)| !waited_for.contains(*id))
            .flat_map(|(_, made)| made)
    }

    /// What a wish of a resource of the module comes after on this host. `made` is by module, in
    /// the order of `modules`. Two resources that go through the same list wait for each other turn
    /// by turn: one rail does not wait for the rest. Each is taken from the shared allowance,
    /// because any two other lists are squared; nothing comes back when it is used up.
    pub fn after(
        made: &[ModuleHostResources],
        modules: &[Module],
        at: usize,
        resource: usize,
        turn: Option<&(String, usize)>,
    ) -> Option<Vec<Address>> {
        let module = &modules[at];
        let mut search = OrderSearch {
            made,
            modules,
            at,
            turn,
            found: Vec::new(),
        };
        let after = &module.resources[resource].entry.after;
        let mut words: Vec<&str> = after.iter().map(|word| word.text.as_str()).collect();
        let (mut first, mut seen) = (true, BTreeSet::new());
        while let Some(word) = words.pop() {
            if !seen.insert(word) {
                continue;
            }
            let mut resources = module.resources.iter();
            let own = resources.find(|one| one.entry.id.text == word);
            let is_within = match (made[at].by_id.get(word), own) {
                (Some(wishes), _) => {
                    first = false;
                    charge_look(wishes.len()) && search.add(wishes.iter())
                }
                // Not wished for on this host: what it would have waited for counts. Cycles were
                // refused at load.
                (None, Some(own)) => {
                    words.extend(own.entry.after.iter().map(|word| word.text.as_str()));
                    charge_look(own.entry.after.len())
                }
                (None, None) => search.add_modules(word),
            };
            if !is_within {
                return None;
            }
        }
        // Later resources of the module follow through the first ones.
        let mut before = module.manifest.after.iter();
        if first && !before.all(|word| search.add_modules(&word.text)) {
            return None;
        }
        Some(search.found)
    }
}

/// What one wish comes after, as far as it was looked for.
struct OrderSearch<'a> {
    made: &'a [ModuleHostResources],
    modules: &'a [Module],
    /// The module that the wish is of.
    at: usize,
    turn: Option<&'a (String, usize)>,
    found: Vec<Address>,
}

impl<'a> OrderSearch<'a> {
    /// Adds the last wishes of the other modules that a word means; false when the shared allowance
    /// is used up.
    fn add_modules(&mut self, word: &str) -> bool {
        for other in find_named_modules(self.modules, word) {
            if other == self.at {
                continue;
            }
            let (made, module) = (&self.made[other], &self.modules[other]);
            let made_len: usize = made.by_id.values().map(Vec::len).sum();
            if !charge_look(module.resources.len() + made_len) || !self.add(made.last(module)) {
                return false;
            }
        }
        true
    }

    /// Adds the addresses of these wishes, except those of another turn of the same list; false
    /// when the shared allowance is used up.
    fn add(&mut self, wishes: impl Iterator<Item = &'a MadeWish>) -> bool {
        for wish in wishes {
            if self.is_other_turn(wish) {
                continue;
            }
            if !engine::take_kept_bytes(size_of::<Address>()) {
                return false;
            }
            self.found.push(wish.address.clone());
        }
        true
    }

    fn is_other_turn(&self, wish: &MadeWish) -> bool {
        let (Some((list, turn)), Some((other, theirs))) = (self.turn, &wish.turn) else {
            return false;
        };
        list == other && turn != theirs
    }
}

/// So many wishes or words are looked through; false when the shared allowance is used up.
fn charge_look(through: usize) -> bool {
    engine::take_shared(1 + through as u64 / 16)
}
