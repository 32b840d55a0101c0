//! What was last applied, and what was there before our first change. Kept by `state`, read by the
//! plan.

use railwright_base::{Address, Digest, SourceLocation, Target};
use railwright_resource::{DesiredResource, Want};
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
    /// `Wish::digest` of it.
    pub digest: Digest,
    /// The module and resource id that wanted it.
    pub module: String,
    /// Where the spec said so then.
    pub places: Vec<SourceLocation>,
    /// What it came after, so that removal can go the other way round.
    #[serde(default)]
    pub after: Vec<Address>,
    /// What was there before our *first* change, as the kind's `assess` gave it; never overwritten
    /// by later runs.
    pub before: Value,
    /// True when the first apply found it already in sync and changed nothing: removal then
    /// changes nothing either.
    pub adopted: bool,
    /// True when the step that began it failed, or nobody knows how it ended: it is remembered to
    /// be taken back, and was never applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// The run that applied it last.
    pub run: String,
    /// When, RFC 3339.
    pub at: String,
}

impl AppliedResource {
    /// A wish as this run applied it; `before` is what was there before our first change.
    pub fn of(wish: &DesiredResource, before: Value, adopted: bool, run: &str, at: String) -> Self {
        AppliedResource {
            kind: wish.kind.clone(),
            body: wish.body.clone(),
            digest: wish.digest(),
            module: wish.module.clone(),
            places: wish.places.clone(),
            after: wish.after.clone(),
            before,
            adopted,
            unfinished: false,
            run: run.to_owned(),
            at,
        }
    }

    /// A wish whose step in this run did not come through.
    pub fn unfinished(wish: &DesiredResource, before: Value, run: &str, at: String) -> Self {
        AppliedResource {
            unfinished: true,
            ..AppliedResource::of(wish, before, false, run, at)
        }
    }

    /// The wish that was applied last.
    pub fn wish(&self, address: &Address) -> DesiredResource {
        DesiredResource {
            address: address.clone(),
            after: self.after.clone(),
            want: Arc::new(Want {
                kind: self.kind.clone(),
                body: self.body.clone(),
                module: self.module.clone(),
                places: self.places.clone(),
            }),
        }
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

    /// What is remembered and not among these wishes.
    pub fn not_wished<'a>(
        &'a self,
        wishes: &[DesiredResource],
    ) -> impl Iterator<Item = (&'a Address, &'a AppliedResource)> {
        let wished: BTreeSet<Address> = wishes.iter().map(|wish| wish.address.clone()).collect();
        self.resources
            .iter()
            .filter(move |(address, _)| !wished.contains(*address))
    }
}
