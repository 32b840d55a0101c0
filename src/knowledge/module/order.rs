//! What comes first. Between modules: a topological order at load, a cycle is an error that names
//! its edges. Between resources of one host: direct edges to the last resources of what must come
//! first.

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
    let mut named = Vec::new();
    for (index, module) in modules.iter().enumerate() {
        let mut provides = module.manifest.provides.iter();
        if module.name == word || provides.any(|capability| capability == word) {
            named.push(index);
        }
    }
    named
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
    for module in &modules {
        problems.extend(find_resource_cycle(module));
    }
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
            problems.push(new_module_cycle_error(&modules, &ring, &edges));
            modules
        }
    }
}

fn new_module_cycle_error(modules: &[Module], ring: &[usize], edges: &[Edge<'_>]) -> Diagnostic {
    let edges = collect_cycle_edges(ring, edges);
    let mut names: Vec<&str> = Vec::new();
    for edge in edges.iter().chain(edges.first()) {
        names.push(&modules[edge.from].name);
    }
    let mut error = Diagnostic::error(
        "RW0210",
        format!("modules wait for each other: {}", names.join(" after ")),
    )
    .next(REMOVE_ONE);
    for edge in edges {
        let (from, to) = (&modules[edge.from], &modules[edge.to]);
        let text = format!("`{}` comes after `{}`", from.name, to.name);
        error = from.at(error, edge.because.node, text);
    }
    error
}

const REMOVE_ONE: &str = "remove one of these lines";

fn build_order_graph(len: usize, edges: &[Edge<'_>]) -> Graph {
    Graph::new(len, edges.iter().map(|edge| (edge.to, edge.from)))
}

/// The edges of a ring in which each must come before the next, from the last to the first.
fn collect_cycle_edges<'a, 'b>(ring: &[usize], edges: &'b [Edge<'a>]) -> Vec<&'b Edge<'a>> {
    let mut of_ring = Vec::new();
    for (at, from) in ring.iter().enumerate().rev() {
        let to = if at == 0 {
            ring.last()
        } else {
            ring.get(at - 1)
        };
        let mut edges = edges.iter();
        of_ring.extend(edges.find(|edge| edge.from == *from && Some(&edge.to) == to));
    }
    of_ring
}

fn collect_module_edges<'a>(
    modules: &'a [Module],
    problems: &mut Vec<Diagnostic>,
) -> Vec<Edge<'a>> {
    let mut edges = Vec::new();
    for (from, module) in modules.iter().enumerate() {
        let mut words: Vec<&ManifestText> = module.manifest.after.iter().collect();
        for resource in &module.resources {
            for word in &resource.entry.after {
                if find_resource(module, &word.text).is_none() {
                    words.push(word);
                }
            }
        }
        for because in words {
            let named = find_named_modules(modules, &because.text);
            if named.is_empty() {
                problems.push(new_unknown_name_error(modules, module, because));
            }
            for to in named {
                if to != from {
                    edges.push(Edge { from, to, because });
                }
            }
        }
    }
    edges
}

/// The index of a module's resource of this id.
fn find_resource(module: &Module, id: &str) -> Option<usize> {
    let mut resources = module.resources.iter();
    resources.position(|resource| resource.entry.id.text == id)
}

fn new_unknown_name_error(
    modules: &[Module],
    module: &Module,
    because: &ManifestText,
) -> Diagnostic {
    let mut known: Vec<&str> = Vec::new();
    for module in modules {
        known.push(&module.name);
        known.extend(module.manifest.provides.iter().map(String::as_str));
    }
    for resource in &module.resources {
        known.push(&resource.entry.id.text);
    }
    let near = match suggest::find_nearest_word(&because.text, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "nobody has this name".to_owned(),
    };
    let message = format!(
        "no module, capability or resource is named `{}`",
        because.text
    );
    module.at(Diagnostic::error("RW0209", message), because.node, near)
}

/// A cycle between the resources of one module.
fn find_resource_cycle(module: &Module) -> Option<Diagnostic> {
    let mut edges = Vec::new();
    for (from, resource) in module.resources.iter().enumerate() {
        for because in &resource.entry.after {
            if let Some(to) = find_resource(module, &because.text) {
                edges.push(Edge { from, to, because });
            }
        }
    }
    let Cycle(ring) = build_order_graph(module.resources.len(), &edges)
        .order()
        .err()?;
    let mut error = Diagnostic::error(
        "RW0210",
        format!("resources of `{}` wait for each other", module.name),
    )
    .next(REMOVE_ONE);
    for edge in collect_cycle_edges(&ring, &edges) {
        let from = &module.resources[edge.from].entry.id.text;
        let to = &module.resources[edge.to].entry.id.text;
        let text = format!("`{from}` comes after `{to}`");
        error = module.at(error, edge.because.node, text);
    }
    Some(error)
}

/// What is about a netdev that gets its name by a resource comes after it: until then there may
/// be none of this name. A VLAN counts by what it sits on.
pub fn after_names<'w>(resources: impl Iterator<Item = &'w mut DesiredResource>) {
    let resources: Vec<&mut DesiredResource> = resources.collect();
    let mut named: BTreeMap<String, Address> = BTreeMap::new();
    for resource in &resources {
        if resource.kind == "netdev_name" {
            named.insert(resource.address.name().to_owned(), resource.address.clone());
        }
    }
    if named.is_empty() {
        return;
    }
    for resource in resources {
        let Some(netdev) = find_netdev(resource) else {
            continue;
        };
        let parent = netdev.split('.').next().unwrap_or_default();
        let first = named.get(netdev).or_else(|| named.get(parent));
        if let Some(first) = first
            && resource.kind != "netdev_name"
            && !resource.after.contains(first)
        {
            resource.after.push(first.clone());
        }
    }
}

/// The netdev that a resource is about, by its field or by the key of its sysctl.
fn find_netdev(resource: &DesiredResource) -> Option<&str> {
    if resource.kind == "sysctl"
        && let Some(key) = resource.text("key")
        && let Some((_, setting)) = key.split_once(".conf.")
        && let Some((netdev, _)) = setting.rsplit_once('.')
    {
        return Some(netdev);
    }
    resource.text("netdev")
}

/// Objects of Kubernetes come after the namespace that they are in, and after the definition of
/// their kind.
pub fn after_what_they_are_in<'w>(resources: impl Iterator<Item = &'w mut DesiredResource>) {
    let mut objects: Vec<&mut DesiredResource> = resources.collect();
    objects.retain(|resource| resource.kind == "kubernetes_object");
    let mut providers: BTreeMap<String, Address> = BTreeMap::new();
    for object in &objects {
        if let Some(provided) = kubernetes_object::place::find_provided_prerequisite(object) {
            providers.insert(provided, object.address.clone());
        }
    }
    for object in objects {
        for needed in kubernetes_object::place::is_in(object) {
            if let Some(first) = providers.get(&needed)
                && *first != object.address
                && !object.after.contains(first)
            {
                object.after.push(first.clone());
            }
        }
    }
}

/// A resource that a module has on one host.
#[derive(Debug, Clone)]
pub struct MadeResource {
    /// Its address.
    pub address: Address,
    /// The list that its `for` goes through, and the turn.
    pub turn: Option<(String, usize)>,
}

/// The resources that one module has on one host.
#[derive(Debug, Default)]
pub struct ModuleHostResources {
    /// Resources by id.
    pub by_id: BTreeMap<String, Vec<MadeResource>>,
}

impl ModuleHostResources {
    /// The resources that no other one of the module comes after.
    fn last(&self, module: &Module) -> Vec<&MadeResource> {
        let mut awaited: BTreeSet<&str> = BTreeSet::new();
        for resource in &module.resources {
            if self.by_id.contains_key(&resource.entry.id.text) {
                awaited.extend(resource.entry.after.iter().map(|word| word.text.as_str()));
            }
        }
        let mut last = Vec::new();
        for (id, made) in &self.by_id {
            if !awaited.contains(id.as_str()) {
                last.extend(made);
            }
        }
        last
    }

    /// What an instance of a resource of the module comes after on this host. `made` is by module,
    /// in the order of `modules`. Two resources that go through the same list wait for each other
    /// turn by turn: one rail does not wait for the rest. Each is taken from the shared allowance,
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
            let own = find_resource(module, word).map(|own| &module.resources[own]);
            let is_within = match (made[at].by_id.get(word), own) {
                (Some(resources), _) => {
                    first = false;
                    charge_look(resources.len()) && search.add(resources.iter())
                }
                // Not declared on this host: what it would have waited for counts. Cycles were
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

/// What one resource comes after, as far as it was looked for.
struct OrderSearch<'a> {
    made: &'a [ModuleHostResources],
    modules: &'a [Module],
    /// The module that the resource is of.
    at: usize,
    turn: Option<&'a (String, usize)>,
    found: Vec<Address>,
}

impl<'a> OrderSearch<'a> {
    /// Adds the last resources of the other modules that a word means; false when the shared
    /// allowance is used up.
    fn add_modules(&mut self, word: &str) -> bool {
        for other in find_named_modules(self.modules, word) {
            if other == self.at {
                continue;
            }
            let (made, module) = (&self.made[other], &self.modules[other]);
            let made_len: usize = made.by_id.values().map(Vec::len).sum();
            if !charge_look(module.resources.len() + made_len)
                || !self.add(made.last(module).into_iter())
            {
                return false;
            }
        }
        true
    }

    /// Adds the addresses of these resources, except those of another turn of the same list;
    /// false when the shared allowance is used up.
    fn add(&mut self, resources: impl Iterator<Item = &'a MadeResource>) -> bool {
        for resource in resources {
            if self.is_other_turn(resource) {
                continue;
            }
            if !engine::take_kept_bytes(size_of::<Address>()) {
                return false;
            }
            self.found.push(resource.address.clone());
        }
        true
    }

    fn is_other_turn(&self, resource: &MadeResource) -> bool {
        let (Some((list, turn)), Some((other, theirs))) = (self.turn, &resource.turn) else {
            return false;
        };
        list == other && turn != theirs
    }
}

/// So many resources or words are looked through; false when the shared allowance is used up.
fn charge_look(through: usize) -> bool {
    engine::take_shared(1 + through as u64 / 16)
}
