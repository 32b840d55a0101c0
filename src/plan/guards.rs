//! Which changes can cut our own connection, so that the host itself has to watch over them; those
//! of files, settings and units of one host go out together, because one without the other proves
//! nothing (a packet filter's rules, and the unit that loads them).

use super::RolloutPolicy;
use super::judge::PlanItem;
use super::model::AutomaticRollback;
use railwright_base::{Address, Target, TargetKind};
use railwright_graph::Graph;
use railwright_resource::guard::find_rollback_reason;
use railwright_resource::{Observation, host};
use std::collections::{BTreeMap, BTreeSet};

/// The word of the transaction that guarded changes of one host make.
const TRANSACTION: &str = "guarded";

/// Why resources need a guard, by their address.
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
        for item in items.iter_mut().filter(|item| item.changes()) {
            let target = &item.wish.address.target;
            let none = BTreeSet::new();
            let netdevs = match matches!(&*item.wish.kind, "link" | "sysctl")
                || !item.assessment.interrupts_netdevs.is_empty()
            {
                true => ours
                    .entry(target.clone())
                    .or_insert_with(|| find_connection_netdevs(target, observation)),
                false => &none,
            };
            let Some(reason) = find_rollback_reason(&item.wish, &item.assessment, netdevs) else {
                continue;
            };
            found.insert(item.wish.address.clone(), reason);
            // A link waits for others by what it finds, so each goes by itself; and what is joined
            // already stays so.
            if item.wish.kind != "link" && item.assessment.transaction.is_none() {
                item.assessment.transaction = Some(TRANSACTION.to_owned());
            }
        }
        RollbackReasons {
            because: found,
            rollout,
        }
    }

    /// The guard of a node with these members.
    pub fn of(&self, items: &[&PlanItem]) -> Option<AutomaticRollback> {
        let reasons: BTreeSet<&str> = items
            .iter()
            .filter_map(|item| self.because.get(&item.wish.address))
            .map(String::as_str)
            .collect();
        let because = reasons.into_iter().collect::<Vec<_>>().join("; ");
        let sort = items
            .first()
            .map_or(TargetKind::Host, |item| item.wish.address.target.kind);
        (!because.is_empty()).then(|| AutomaticRollback {
            because,
            seconds: self.rollout.guard_s(sort),
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
        let guarded = |group: &&mut Vec<usize>| {
            group.len() > 1 && self.because.contains_key(&items[group[0]].wish.address)
        };
        let mut groups: Vec<&mut Vec<usize>> = groups.iter_mut().filter(guarded).collect();
        let place = |(g, group): (usize, &&mut Vec<usize>)| {
            group
                .iter()
                .enumerate()
                .map(|(at, n)| (*n, (g, at)))
                .collect::<Vec<_>>()
        };
        let of: BTreeMap<usize, (usize, usize)> =
            groups.iter().enumerate().flat_map(place).collect();
        let mut inner: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (before, after) in edges {
            if let (Some((g, before)), Some((other, after))) = (of.get(before), of.get(after))
                && g == other
            {
                inner.entry(*g).or_default().push((*before, *after));
            }
        }
        for (g, edges) in inner {
            let order = Graph::new(groups[g].len(), edges)
                .order()
                .unwrap_or_else(|_| (0..groups[g].len()).collect());
            *groups[g] = order.into_iter().map(|at| groups[g][at]).collect();
        }
    }
}

/// The netdevs that carry our own connection to a target.
fn find_connection_netdevs(target: &Target, observation: &Observation) -> BTreeSet<String> {
    let facts = observation
        .targets
        .get(target)
        .and_then(|observed| host::decode_host_facts(&observed.answers).ok());
    facts.map(|facts| facts.ssh_netdevs).unwrap_or_default()
}
