//! Which changes can cut our own connection, so that the host itself has to watch over them; those
//! of files, settings and units of one host go out together, because one without the other proves
//! nothing (a packet filter's rules, and the unit that loads them).

use super::RolloutPolicy;
use super::diff::PlanItem;
use super::model::AutomaticRollback;
use railwright_base::{Address, Target};
use railwright_graph::Graph;
use railwright_resource::rollback_scope::find_rollback_reason;
use railwright_resource::{Observation, host};
use std::collections::{BTreeMap, BTreeSet};

/// The word of the transaction of one host's changes with automatic rollback.
const TRANSACTION: &str = "automatic-rollback";

/// Why resources need an automatic rollback, by their address.
pub(super) struct RollbackReasons<'a> {
    because: BTreeMap<Address, String>,
    /// Says of their seconds.
    rollout: &'a RolloutPolicy,
}

impl<'a> RollbackReasons<'a> {
    /// Finds them among what changes.
    pub fn mark(
        items: &mut [PlanItem],
        observation: &Observation,
        rollout: &'a RolloutPolicy,
    ) -> Self {
        let mut ours: BTreeMap<Target, BTreeSet<String>> = BTreeMap::new();
        let mut found = BTreeMap::new();
        let none = BTreeSet::new();
        for item in items {
            if !item.changes() {
                continue;
            }
            let target = &item.resource.address.target;
            let may_cut = matches!(&*item.resource.kind, "link" | "sysctl")
                || !item.diff.interrupts_netdevs.is_empty();
            let netdevs: &BTreeSet<String> = if may_cut {
                ours.entry(target.clone())
                    .or_insert_with(|| find_connection_netdevs(target, observation))
            } else {
                &none
            };
            let Some(reason) = find_rollback_reason(&item.resource, &item.diff, netdevs) else {
                continue;
            };
            found.insert(item.resource.address.clone(), reason);
            // A link waits for others by what it finds, so each goes by itself; and what is joined
            // already stays so.
            if item.resource.kind != "link" && item.diff.transaction.is_none() {
                item.diff.transaction = Some(TRANSACTION.to_owned());
            }
        }
        RollbackReasons {
            because: found,
            rollout,
        }
    }

    /// The automatic rollback of a node with these members.
    pub fn of(&self, items: &[&PlanItem]) -> Option<AutomaticRollback> {
        let mut reasons: BTreeSet<&str> = BTreeSet::new();
        for item in items {
            if let Some(reason) = self.because.get(&item.resource.address) {
                reasons.insert(reason);
            }
        }
        let because = reasons.into_iter().collect::<Vec<_>>().join("; ");
        if because.is_empty() {
            return None;
        }
        let kind = items.first()?.resource.address.target.kind;
        Some(AutomaticRollback {
            because,
            seconds: self.rollout.rollback_timer_s(kind),
        })
    }

    /// What goes out together keeps the order in which its parts need each other: the unit after
    /// its file.
    pub fn put_in_order(
        &self,
        groups: &mut [Vec<usize>],
        items: &[PlanItem],
        edges: &[(usize, usize)],
    ) {
        let mut place_of: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (g, group) in groups.iter().enumerate() {
            if group.len() > 1 && self.because.contains_key(&items[group[0]].resource.address) {
                place_of.extend(group.iter().enumerate().map(|(at, n)| (*n, (g, at))));
            }
        }
        let mut inner: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (before, after) in edges {
            if let Some((g, before)) = place_of.get(before)
                && let Some((other, after)) = place_of.get(after)
                && g == other
            {
                inner.entry(*g).or_default().push((*before, *after));
            }
        }
        for (g, edges) in inner {
            let order = Graph::new(groups[g].len(), edges)
                .order()
                .unwrap_or_else(|_| (0..groups[g].len()).collect());
            groups[g] = order.into_iter().map(|at| groups[g][at]).collect();
        }
    }
}

/// The netdevs that carry our own connection to a target.
fn find_connection_netdevs(target: &Target, observation: &Observation) -> BTreeSet<String> {
    let Some(observed) = observation.targets.get(target) else {
        return BTreeSet::new();
    };
    match host::decode_host_facts(&observed.answers) {
        Ok(facts) => facts.ssh_netdevs,
        Err(_) => BTreeSet::new(),
    }
}
