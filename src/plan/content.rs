//! The digest of a plan: of everything in it but the digest. What many targets share goes in by its
//! own digest, so that it is written out once and not ten thousand times.

use super::model::{Member, NodeKind, Plan, PlanNode};
use railwright_base::shared::place_of;
use railwright_base::{Address, Digest, Target};
use railwright_resource::DesiredResource;
use rustc_hash::FxHashMap;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The digest over everything but the digest.
pub fn compute_plan_digest(plan: &Plan) -> Digest {
    let Plan {
        format_version,
        made_by,
        cluster,
        cluster_id,
        inventory,
        spec_digest,
        modules,
        state_digest,
        observed_at,
        narrowed,
        rollout,
        proof,
        nodes,
        unchanged,
        unknown,
        refused,
        reinstalled,
        renamed,
        dropped,
        not_emptied,
        unavailable,
        no_ssh,
        waived,
        digest: _,
    } = plan;
    let mut content = PlanHasher::default();
    content.json(&(
        format_version,
        made_by,
        cluster,
        inventory,
        spec_digest,
        modules,
    ));
    content.json(&(state_digest, observed_at, narrowed, rollout, proof));
    content.json(&(unchanged, unknown, dropped, waived));
    content.number(nodes.len());
    nodes.iter().for_each(|node| content.node(node));
    // A plan that was written before plans said so keeps its digest.
    if !not_emptied.is_empty() {
        content.json(not_emptied);
    }
    if !unavailable.is_empty() {
        content.json(&("unavailable", unavailable));
    }
    if !no_ssh.is_empty() {
        content.json(&("no_ssh", no_ssh));
    }
    if cluster_id.is_some() || !refused.is_empty() || !reinstalled.is_empty() {
        content.json(&("identity", cluster_id, refused, reinstalled));
    }
    if !renamed.is_empty() {
        content.json(&("renamed", renamed));
    }
    content.end()
}

/// Every piece goes in with its length, so that no two plans give the same bytes.
#[derive(Default)]
struct PlanHasher {
    hash: Sha256,
    open: Vec<u8>,
    /// Room for one value as JSON.
    scratch: Vec<u8>,
    /// Numbers of what is shared, by address in memory: the plan is borrowed as long as this lives.
    places: FxHashMap<usize, usize>,
    /// The numbers by content: what is equal has one number wherever it lies.
    contents: FxHashMap<Digest, usize>,
}

impl PlanHasher {
    fn end(mut self) -> Digest {
        self.flush();
        Digest::of_hash(self.hash)
    }

    fn flush(&mut self) {
        self.hash.update(&self.open);
        self.open.clear();
    }

    /// Seven bits a byte, the last one without the eighth: most numbers are small, and every byte
    /// is hashed.
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.open.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.open.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.open.extend_from_slice(bytes);
        if self.open.len() > 1 << 16 {
            self.flush();
        }
    }

    fn json(&mut self, value: &impl Serialize) {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        serde_json::to_writer(&mut text, value)
            .expect("our own types have string keys and serialise without fail");
        self.bytes(&text);
        self.scratch = text;
    }

    fn texts(&mut self, texts: &[String]) {
        self.number(texts.len());
        texts.iter().for_each(|text| self.text(text));
    }

    /// Written out where it is met first; then its number stands for it.
    fn shared<T: Serialize + ?Sized>(&mut self, value: &Arc<T>) {
        let place = place_of(value);
        if let Some(number) = self.places.get(&place) {
            return self.number(*number);
        }
        let digest = Digest::of(&value);
        let next = self.contents.len();
        let number = *self.contents.entry(digest.clone()).or_insert(next);
        self.places.insert(place, number);
        self.number(number);
        if number == next {
            self.text(digest.as_str());
        }
    }

    fn address(&mut self, address: &Address) {
        let Address {
            target,
            path,
            attribute,
        } = address;
        self.target(target);
        self.shared(path);
        self.texts(attribute.as_slice());
    }

    fn target(&mut self, target: &Target) {
        self.text(target.kind.word());
        self.shared(&target.name);
    }

    fn node(&mut self, node: &PlanNode) {
        let PlanNode {
            id,
            kind,
            target,
            disruption,
            interrupts,
            after,
            wave,
            blocked,
        } = node;
        self.text(id);
        self.number(target.iter().len());
        target.iter().for_each(|target| self.target(target));
        self.text(disruption.word());
        self.shared(interrupts);
        self.texts(after);
        self.number(*wave);
        self.number(blocked.iter().len());
        blocked.iter().for_each(|why| self.json(why));
        match kind {
            NodeKind::Change {
                members,
                actions,
                announced,
                disturbs,
                interrupts_netdevs,
                automatic_rollback,
            } => {
                self.text("change");
                self.members(members);
                self.shared(actions);
                self.shared(announced);
                self.shared(disturbs);
                self.shared(interrupts_netdevs);
                self.number(automatic_rollback.iter().len());
                automatic_rollback
                    .iter()
                    .for_each(|rollback| self.json(rollback));
            }
            NodeKind::Adopt { members } => {
                self.text("adopt");
                self.members(members);
            }
            NodeKind::Reboot | NodeKind::Barrier => self.json(kind),
            NodeKind::Drain { .. } | NodeKind::Uncordon { .. } | NodeKind::Gate { .. } => {
                self.json(kind)
            }
        }
    }

    fn members(&mut self, members: &[Member]) {
        self.number(members.len());
        for Member {
            resource,
            reason,
            diff,
        } in members
        {
            let DesiredResource {
                address,
                after,
                declaration,
            } = resource;
            self.address(address);
            self.number(after.len());
            after.iter().for_each(|address| self.address(address));
            self.shared(declaration);
            self.json(reason);
            self.shared(diff);
        }
    }
}
