//! Resources of one host that several modules declare: identical ones are one, different ones are a
//! conflict. Then the order.

use super::compile::Module;
use super::desired::{ResourceDraft, ResourceProvenance};
use super::findings::ModuleFindings;
use super::order::ModuleHostResources;
use crate::template::engine;
use railwright_base::{Address, Diagnostic};
use railwright_resource::DesiredResource;
use railwright_resource::json_in_configmap::is_declared_whole;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The resources of one host with what they come after; conflicts are noted. Nothing comes back
/// when the shared allowance is used up.
pub(super) fn merge_host_resources(
    drafts: Vec<ResourceDraft>,
    made: &[ModuleHostResources],
    modules: &[Module],
    found: &mut ModuleFindings,
    host: &str,
) -> Vec<(DesiredResource, Vec<ResourceProvenance>)> {
    let mut merged = MergedResources::new();
    let mut later = Vec::new();
    for draft in drafts {
        if engine::is_allowance_used_up() {
            return Vec::new();
        }
        let (module, index) = (draft.module, draft.index);
        let turn = draft.turn.as_ref();
        let Some(after) = ModuleHostResources::after(made, modules, module, index, turn) else {
            found.add(too_much_order(&modules[module], index), host);
            return Vec::new();
        };
        let address = draft.resource.address.clone();
        match merged.get_mut(&address) {
            None => {
                merged.insert(address, MergedResource::new(draft, after));
            }
            Some(first) if first.resource.body == draft.resource.body => {
                first.add_source(draft);
                later.push((module, index, address, after));
            }
            Some(first) => {
                let first = (&modules[first.module], first.index);
                let second = (&modules[module], index);
                found.add(new_conflict_error(&address, first, second), host);
            }
        }
    }
    for (module, index, address, after) in later {
        if !join_order(&mut merged, &address, after) {
            found.add(too_much_order(&modules[module], index), host);
            return Vec::new();
        }
    }
    merged.into_values().map(MergedResource::finish).collect()
}

/// A resource of one host, and the module that wants it first.
struct MergedResource {
    module: usize,
    index: usize,
    resource: DesiredResource,
    why: Vec<ResourceProvenance>,
}

type MergedResources = BTreeMap<Address, MergedResource>;

impl MergedResource {
    fn new(draft: ResourceDraft, after: Vec<Address>) -> Self {
        let mut resource = draft.resource;
        resource.after = after;
        MergedResource {
            module: draft.module,
            index: draft.index,
            resource,
            why: vec![draft.why],
        }
    }

    /// Adds where and why another module wants the identical resource.
    fn add_source(&mut self, draft: ResourceDraft) {
        let declaration = Arc::make_mut(&mut self.resource.declaration);
        declaration.places.extend_from_slice(&draft.resource.places);
        declaration.places.sort();
        declaration.places.dedup();
        self.why.push(draft.why);
    }

    fn finish(self) -> (DesiredResource, Vec<ResourceProvenance>) {
        let mut resource = self.resource;
        resource.after.retain(|other| *other != resource.address);
        resource.after.sort();
        resource.after.dedup();
        (resource, self.why)
    }
}

/// A text that one resource edits and another one writes as a whole.
pub(super) fn edited_and_whole(
    resources: &[(DesiredResource, Vec<ResourceProvenance>)],
    found: &mut ModuleFindings,
    on: &str,
) {
    for (edited, _) in resources {
        if edited.kind != "json_in_configmap" {
            continue;
        }
        for (whole, _) in resources {
            if whole.kind == "kubernetes_object" && is_declared_whole(edited, whole) {
                found.add(new_edited_whole_error(edited, whole), on);
            }
        }
    }
}

fn new_edited_whole_error(edited: &DesiredResource, whole: &DesiredResource) -> Diagnostic {
    let (theirs, ours) = (&whole.module, &edited.module);
    Diagnostic::error(
        "RW0211",
        format!("`{ours}` edits a text that `{theirs}` writes as a whole"),
    )
    .effect("each apply would undo the other, so neither is planned")
    .next(format!(
        "put what is desired of {} into {}, or leave one of the two out",
        edited.address.name(),
        whole.address.words()
    ))
}

/// A resource that an earlier module declares too is done with that module. What the later one
/// waits for is added where it does not turn the order around. False when the shared allowance is
/// used up on the way.
fn join_order(merged: &mut MergedResources, address: &Address, after: Vec<Address>) -> bool {
    for before in after {
        if !is_ordered_after(merged, &before, address)
            && let Some(first) = merged.get_mut(address)
        {
            first.resource.after.push(before);
        }
        if engine::is_allowance_used_up() {
            return false;
        }
    }
    true
}

/// True when `from` comes, over any number of steps, after `to`, or when the shared allowance is
/// used up.
fn is_ordered_after(merged: &MergedResources, from: &Address, to: &Address) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to || !engine::take_shared(REACH_UNITS) {
            return true;
        }
        if seen.insert(at)
            && let Some(next) = merged.get(at)
        {
            open.extend(&next.resource.after);
        }
    }
    false
}

/// Units of the shared allowance for each step of a search through the order.
const REACH_UNITS: u64 = 4;

fn too_much_order(module: &Module, resource: usize) -> Diagnostic {
    let error = Diagnostic::error("RW0217", "modules make too much")
        .effect("railwright would work on the order for minutes, or run out of memory")
        .next(
            "let resources that come after each other go through the same list, or come after one \
             of them alone",
        );
    let node = module.resources[resource].entry.id.node;
    module.at(
        error,
        node,
        "with this, more comes after each other than in all modules may together",
    )
}

fn new_conflict_error(
    address: &Address,
    first: (&Module, usize),
    second: (&Module, usize),
) -> Diagnostic {
    let mut error = Diagnostic::error(
        "RW0211",
        format!("{} is declared twice, differently", address.within_target()),
    )
    .effect("each apply would undo the other half, so neither is planned")
    .next(format!(
        "leave one out: `modules: {{ {}: {{ enabled: false }} }}`",
        second.0.name
    ))
    .next("or give both the same values by their parameters");
    for (module, resource) in [second, first] {
        let id = &module.resources[resource].entry.id;
        error = module.at(error, id.node, format!("by {}/{}", module.name, id.text));
    }
    error
}
