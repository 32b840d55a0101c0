//! The roles with which railwright can plan, preview and apply an inventory: their rules, and the
//! notes for whoever gives them out.

use super::rbac::UnresolvedKind;
use railwright_base::text::one_line;
use railwright_report::rbac::{RbacRole, RbacSubject};
use railwright_resource::helm_release::rights::of_records;
use railwright_resource::kubernetes_object::access::{
    AccessLevel, ObjectUse, Right, of_drain, of_keeper, of_nodes, of_uncordon,
};
use railwright_resource::kubernetes_object::build_cluster_object_name;
use railwright_resource::kubernetes_object::known_kinds::KnownKinds;
use railwright_resource::kubernetes_object::rule::{RbacRule, build_rbac_rules};
use railwright_resource::node_probe::EXEC;
use railwright_resource::{DesiredResource, kind_named};
use railwright_session::Session;
use std::collections::BTreeSet;

/// What the roles of an inventory are made of, at every level.
pub(super) struct RoleInputs<'a> {
    pub(super) session: &'a Session,
    pub(super) uses: &'a [ObjectUse],
    pub(super) kinds: &'a KnownKinds,
    pub(super) unnamed: &'a [UnresolvedKind],
    /// The releases of Helm.
    pub(super) releases: &'a [DesiredResource],
}

impl RoleInputs<'_> {
    pub(super) fn build_role(&self, level: AccessLevel, subject: Option<RbacSubject>) -> RbacRole {
        let inventory = &self.session.inventory;
        let cluster = &inventory.loaded.spec.cluster;
        let mut rights: Vec<(Right, String)> = Vec::new();
        for one in self.uses {
            if let Some(called) = self.kinds.called(&one.object) {
                rights.extend(one.rights(level, called));
            }
        }
        rights.extend(of_keeper(cluster, level));
        rights.extend(collect_drain_rights(self.session, level));
        rights.extend(list_probe_rights(self.session));
        for release in self.releases {
            rights.extend(of_records(release, level));
        }
        let rules = build_rbac_rules(rights);
        let left_out = self.unnamed.iter().map(|one| one.note(&inventory.word));
        let notes = left_out
            .chain(self.collect_role_notes(level, &rules))
            .collect();
        let name = format!("{}-{}", build_cluster_object_name(cluster), level.word());
        RbacRole::new(&name, level.into(), subject, rules, notes)
    }

    /// What the one who applies the documents has to know besides.
    fn collect_role_notes(&self, level: AccessLevel, rules: &[RbacRule]) -> Vec<String> {
        let mut notes = self.note_namespaces(rules);
        if level == AccessLevel::Preview {
            notes.extend(self.note_unpoliced_objects());
        }
        notes.extend(note_helm_releases(self.session));
        notes.extend(note_exec_rights(rules));
        notes
    }

    /// Namespaces that have to be there before the roles in them can be applied.
    fn note_namespaces(&self, rules: &[RbacRule]) -> Vec<String> {
        let places: BTreeSet<&String> = rules
            .iter()
            .filter_map(|rule| rule.namespace.as_ref())
            .collect();
        let mut notes = Vec::new();
        for object_use in self.uses {
            let object = &object_use.object;
            if object.kind_and_group() == "Namespace.core" && places.contains(&object.name) {
                notes.push(self.note_namespace(object_use));
            }
        }
        notes
    }

    fn note_namespace(&self, namespace: &ObjectUse) -> String {
        let inventory = &self.session.inventory;
        let name = &namespace.object.name;
        if !namespace.is_ours() {
            return format!(
                "the roles in namespace {name} can be applied once it is there: it comes with a \
                 step that is done by hand"
            );
        }
        format!(
            "the roles in namespace {name} need it, and the inventory makes it: an administrator \
             begins with railwright apply {} --target kube/{}/Namespace.core/-/{name}",
            inventory.word,
            inventory.loaded.kubernetes_name().unwrap_or_default()
        )
    }

    fn note_unpoliced_objects(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for object_use in self.uses {
            let called = self.kinds.called(&object_use.object);
            if called.is_some_and(|called| object_use.is_unpoliced(called)) {
                notes.push(format!(
                    "{} is compared field by field: no policy could hold its preview to a dry run",
                    object_use.object
                ));
            }
        }
        notes
    }
}

/// What a chart renders to is known to Helm alone.
fn note_helm_releases(session: &Session) -> Vec<String> {
    let mut notes = Vec::new();
    for resource in &session.desired.resources {
        if resource.kind != "helm_release" {
            continue;
        }
        notes.push(format!(
            "the release {} of Helm needs more: all that its chart makes, which only Helm knows; a \
             run asks for what its plan names of it, and prints the rules that are missing. Its \
             revisions are Secrets whose names no rule can hold: the role reads every Secret of \
             namespace {}",
            one_line(resource.text("name").unwrap_or_default(), 60),
            one_line(resource.text("namespace").unwrap_or_default(), 60)
        ));
    }
    notes
}

fn note_exec_rights(rules: &[RbacRule]) -> Vec<String> {
    let rules = rules.iter().filter(|rule| rule.resource == EXEC);
    let namespaces: BTreeSet<&String> = rules.filter_map(|rule| rule.namespace.as_ref()).collect();
    let mut notes = Vec::new();
    for namespace in namespaces {
        notes.push(format!(
            "{EXEC} is a strong right: whoever has it may run anything in the pods of namespace \
             {}, with all that those may do on their nodes. It is for the probes of nodes without \
             SSH, and in that namespace alone; without it they are unknown",
            one_line(namespace, 60)
        ));
    }
    notes
}

/// What the nodes of the spec's hosts take, where a rollout empties them and where it only gives
/// back what an earlier one left.
fn collect_drain_rights(session: &Session, level: AccessLevel) -> Vec<(Right, String)> {
    let mut rights = vec![of_nodes()];
    if level != AccessLevel::Apply {
        return rights;
    }
    let drains = session.rollout().drain.is_some();
    for host in session.inventory.loaded.reached() {
        rights.extend(match drains {
            true => of_drain(&host.node),
            false => of_uncordon(&host.node),
        });
    }
    rights
}

/// What is asked besides objects, at every level: a plan asks it, and drift.
fn list_probe_rights(session: &Session) -> impl Iterator<Item = (Right, String)> {
    session
        .desired
        .resources
        .iter()
        .filter_map(|resource| Some(kind_named(&resource.kind)?.rights(resource)))
        .flatten()
}
