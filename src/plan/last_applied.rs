//! What was last applied, and what was there before our first change. Kept by `state`, read by the
//! plan.

use railwright_base::{Address, Digest, SourceLocation, Target};
use railwright_resource::readability::list_reads_to_undo;
use railwright_resource::{DesiredResource, Read, ResourceDeclaration, ResourceKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One resource as it was last applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AppliedResource {
    /// The resource kind.
    pub kind: String,
    /// The body that was applied.
    pub body: Value,
    /// `DesiredResource::digest` of it.
    pub digest: Digest,
    /// The module and resource id that declared it.
    pub module: String,
    /// Where the spec said so then.
    pub places: Vec<SourceLocation>,
    /// What it came after, so that removal can go the other way round.
    #[serde(default)]
    pub after: Vec<Address>,
    /// What was there before our *first* change, as the kind's `diff` gave it; never overwritten by
    /// later runs.
    pub before: Value,
    /// True when the first apply found it already in sync and changed nothing: removal then
    /// changes nothing either.
    pub adopted: bool,
    /// True when the step that began it failed, or nobody knows how it ended: it is remembered to
    /// be undone, and was never applied. True also of one that was undone as far as that goes
    /// before the next boot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Bodies of later declarations of it whose steps did not come through: some of what they
    /// desire may be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<Value>,
    /// The run that applied it last.
    pub run: String,
    /// When, RFC 3339.
    pub at: String,
}

impl AppliedResource {
    /// A resource as this run applied it; `before` is what was there before our first change.
    pub fn of(
        resource: &DesiredResource,
        before: Value,
        adopted: bool,
        run: &str,
        at: String,
    ) -> Self {
        AppliedResource {
            kind: resource.kind.clone(),
            body: resource.body.clone(),
            digest: resource.digest(),
            module: resource.module.clone(),
            places: resource.places.clone(),
            after: resource.after.clone(),
            before,
            adopted,
            unfinished: false,
            begun: Vec::new(),
            run: run.to_owned(),
            at,
        }
    }

    /// A resource whose step in this run did not come through.
    pub fn unfinished(resource: &DesiredResource, before: Value, run: &str, at: String) -> Self {
        AppliedResource {
            unfinished: true,
            ..AppliedResource::of(resource, before, false, run, at)
        }
    }

    /// A later declaration of it was begun and did not come through; `before` is what was there
    /// before our first change, as far as either declaration needs it.
    pub fn note_begun(&mut self, body: &Value, before: Value) {
        self.before = before;
        self.adopted = false;
        if self.body != *body && !self.begun.contains(body) {
            self.begun.push(body.clone());
        }
    }

    /// The resource that was applied last.
    pub fn resource(&self, address: &Address) -> DesiredResource {
        self.resource_for(address, self.body.clone())
    }

    /// The resource that stands for all that was applied and begun, as far as one can.
    pub fn whole_resource(&self, address: &Address, kind: &dyn ResourceKind) -> DesiredResource {
        let mut body = self.body.clone();
        for begun in &self.begun {
            let joined = kind.join_bodies(&body, begun);
            let joined = joined.filter(|joined| kind.check(joined).is_empty());
            body = joined.unwrap_or(body);
        }
        self.resource_for(address, body)
    }

    /// What has to be read to undo all of it.
    pub fn list_reads_to_undo(&self, address: &Address, kind: &dyn ResourceKind) -> Vec<Read> {
        let mut reads = list_reads_to_undo(kind, &self.resource(address));
        if !self.begun.is_empty() {
            let whole = self.whole_resource(address, kind);
            for resource in self.begun_resources(address).iter().chain([&whole]) {
                reads.extend(list_reads_to_undo(kind, resource));
            }
        }
        reads
    }

    fn resource_for(&self, address: &Address, body: Value) -> DesiredResource {
        DesiredResource {
            address: address.clone(),
            after: self.after.clone(),
            declaration: Arc::new(ResourceDeclaration {
                kind: self.kind.clone(),
                body,
                module: self.module.clone(),
                places: self.places.clone(),
            }),
        }
    }

    /// The declarations that were begun after it and did not come through.
    pub fn begun_resources(&self, address: &Address) -> Vec<DesiredResource> {
        let begun = self.begun.iter();
        begun
            .map(|body| self.resource_for(address, body.clone()))
            .collect()
    }
}

/// All resources as they were last applied, by address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct LastApplied {
    /// By address.
    pub resources: BTreeMap<Address, AppliedResource>,
}

impl LastApplied {
    /// What was applied to one target.
    pub fn of_target<'a>(
        &'a self,
        target: &'a Target,
    ) -> impl Iterator<Item = (&'a Address, &'a AppliedResource)> {
        let first = Address {
            target: target.clone(),
            path: Arc::default(),
            attribute: None,
        };
        self.resources
            .range(first..)
            .take_while(move |(address, _)| address.target == *target)
    }

    /// The digest of what was applied to these targets.
    pub fn digest_of(&self, targets: &BTreeSet<&Target>) -> Digest {
        let mut of_targets: BTreeMap<&Address, &AppliedResource> = BTreeMap::new();
        for (address, applied) in &self.resources {
            if targets.contains(&address.target) {
                of_targets.insert(address, applied);
            }
        }
        Digest::of(&of_targets)
    }

    /// What was applied, unless its step did not come through.
    pub fn applied(&self, address: &Address) -> Option<&AppliedResource> {
        self.resources
            .get(address)
            .filter(|applied| !applied.unfinished)
    }

    /// What is remembered and not among these resources.
    pub fn not_in_spec<'a>(
        &'a self,
        resources: &[DesiredResource],
    ) -> impl Iterator<Item = (&'a Address, &'a AppliedResource)> {
        let desired: BTreeSet<Address> = resources
            .iter()
            .map(|resource| resource.address.clone())
            .collect();
        self.resources
            .iter()
            .filter(move |(address, _)| !desired.contains(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Whatever a change made before it was cut off is looked at before it is undone.
    #[test]
    fn what_was_begun_is_asked_about_too() {
        let address = Address::host("n1", "systemd_unit", "q.service");
        let kind = railwright_resource::kind_named("systemd_unit").unwrap();
        let body = |dropins: Value| json!({ "name": "q.service", "dropins": dropins });
        let resource =
            DesiredResource::of(address.clone(), "systemd_unit", body(json!({ "a": "x" })));
        let mut applied = AppliedResource::of(&resource, Value::Null, false, "r1", String::new());
        let is_asked = |applied: &AppliedResource| {
            let reads = format!("{:?}", applied.list_reads_to_undo(&address, kind));
            ["a.conf", "b.conf"].map(|name| reads.contains(name))
        };
        assert_eq!(is_asked(&applied), [true, false]);
        applied.note_begun(&body(json!({ "b": "x" })), Value::Null);
        assert_eq!(is_asked(&applied), [true, true]);
        let whole = applied.whole_resource(&address, kind);
        assert_eq!(whole.body, body(json!({ "a": "x", "b": "x" })));
    }
}
