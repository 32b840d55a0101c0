//! What becomes of a step once everything before it is over: whether something is in its way, and
//! who passes a barrier.

use super::super::steps::{OnNode, StepRole};
use super::{Scheduler, StepProgress};
use railwright_base::Target;
use railwright_state::{NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

impl Scheduler {
    pub(super) fn obstacle(&self, n: usize) -> Option<NodeOutcome> {
        let target = self.steps[n].target.as_ref();
        if let Some(cause) = target.and_then(|target| self.isolated.get(target)) {
            return Some(NodeOutcome::Skipped {
                because: Skip::Target {
                    node: self.steps[*cause].id.clone(),
                },
            });
        }
        if let Some(wait) = self.steps[n].host().and_then(|host| self.leaves_out(host)) {
            return Some(self.consequence(wait));
        }
        let missing = self.steps[n]
            .after
            .iter()
            .find_map(|before| match &self.progress[*before] {
                StepProgress::Over(outcome) if !outcome.is_done() && !self.passes(n, *before) => {
                    Some(*before)
                }
                _ => target.and_then(|target| self.gaps.get(before)?.get(target).copied()),
            });
        missing
            .map(|missing| self.consequence(missing))
            .or_else(|| self.unproven(n))
    }

    /// A wait that came about for others and not for this host.
    fn leaves_out(&self, host: &Target) -> Option<usize> {
        self.spared
            .iter()
            .find(|(_, spared)| !spared.contains(host))
            .map(|(wait, _)| *wait)
    }

    /// Whether a step goes on after a wait that came about for some hosts alone: on those, and
    /// where it only waits, too.
    fn passes(&self, n: usize, wait: usize) -> bool {
        let step = &self.steps[n];
        self.spared.contains_key(&wait)
            && (step.host().is_some() || (step.waits && step.target == self.steps[wait].target))
    }

    /// A gate that was passed without a node's host, because that waits for somebody, has not
    /// proven it: the node is not given back.
    fn unproven(&self, n: usize) -> Option<NodeOutcome> {
        self.steps[n]
            .on_node
            .filter(|on_node| *on_node == OnNode::GivesBack)?;
        let is_gate = |gate: &&usize| {
            matches!(self.steps[**gate].role, StepRole::Gate(_))
                && !self.passed_before.contains(gate)
        };
        let gate = *self.steps[n]
            .after
            .iter()
            .filter(is_gate)
            .find(|gate| !self.let_go.contains(&(**gate, n)))?;
        let waits = self
            .waits(gate)
            .find(|m| self.steps[*m].host() == self.steps[n].host());
        Some(waits.map_or_else(
            || NodeOutcome::Skipped {
                because: Skip::Gate {
                    node: self.steps[gate].id.clone(),
                },
            },
            |m| self.consequence(m),
        ))
    }

    /// What the fate of one step means for those that need it.
    fn consequence(&self, missing: usize) -> NodeOutcome {
        let node = self.steps[missing].id.clone();
        match &self.progress[missing] {
            StepProgress::Over(NodeOutcome::Held { .. }) => NodeOutcome::Held {
                reason: format!("it needs {node}, which is blocked"),
            },
            _ if matches!(self.steps[missing].role, StepRole::Gate(_)) => NodeOutcome::Skipped {
                because: Skip::Gate { node },
            },
            _ => NodeOutcome::Skipped {
                because: Skip::Dependency { node },
            },
        }
    }

    /// A barrier lets the others pass when some hosts are left behind, as long as the budget has
    /// room for them.
    pub(super) fn pass_barrier(&mut self, n: usize) -> NodeOutcome {
        let mut gaps: BTreeMap<Target, usize> = BTreeMap::new();
        for before in self.steps[n].after.clone() {
            gaps.extend(self.gaps.get(&before).cloned().unwrap_or_default());
            if matches!(&self.progress[before], StepProgress::Over(outcome) if !outcome.is_done()) {
                match self.steps[before]
                    .host()
                    .filter(|_| !self.failure_budget_is_used_up())
                {
                    Some(host) => drop(gaps.insert(host.clone(), before)),
                    None => return self.consequence(before),
                }
            }
        }
        self.gaps.insert(n, gaps);
        NodeOutcome::Done { changed: false }
    }

    pub(super) fn failure_budget_is_used_up(&self) -> bool {
        self.lost_in_run.len() >= self.limits.failure_budget.max(1)
    }

    /// A gate proves the hosts that are left; without any there is no proof, unless all that is
    /// missing waits for somebody: then there is nothing to prove yet. A canary must come through
    /// whole.
    pub(super) fn gate_obstacle(&self, n: usize, hosts: &BTreeSet<Target>) -> Option<NodeOutcome> {
        let lost = hosts
            .iter()
            .find_map(|host| self.isolated.get(host))
            .copied();
        let waits = self.waits(n).next().is_some();
        // What an earlier gate kept from being begun proves nothing to those who come after it.
        if let Some(gate) = self
            .kept_back_by(n, hosts)
            .filter(|_| !hosts.iter().any(|host| self.disturbed.contains_key(host)))
        {
            return Some(self.consequence(gate));
        }
        // Whoever was proven already is not asked again for as long as others wait.
        let is_due = |host: &Target| !waits || self.disturbed.contains_key(host);
        if !(self.steps[n].canary && lost.is_some())
            && self.to_be_proven(n, hosts).iter().any(is_due)
        {
            return None;
        }
        if waits && lost.is_none() {
            return Some(self.passed(n));
        }
        // Where nothing was begun, because its node lacks what others have, there is nothing to
        // prove.
        if lost.is_none()
            && !self.steps[n].canary
            && hosts.iter().all(|host| self.leaves_out(host).is_some())
        {
            return Some(NodeOutcome::Done { changed: false });
        }
        let is_missing = |before: &&usize| match &self.progress[**before] {
            StepProgress::Over(outcome) => !outcome.is_done(),
            _ => false,
        };
        let cause = lost.or_else(|| self.steps[n].after.iter().find(is_missing).copied())?;
        Some(NodeOutcome::Skipped {
            because: Skip::Dependency {
                node: self.steps[cause].id.clone(),
            },
        })
    }

    /// What becomes of a gate whose hosts were proven as far as they have come. Canaries that wait
    /// for somebody keep all others waiting, any other host only itself.
    pub(super) fn passed(&self, n: usize) -> NodeOutcome {
        if let StepRole::Gate(hosts) = &self.steps[n].role
            && let Some(gate) = self.kept_back_by(n, hosts)
        {
            return self.consequence(gate);
        }
        let waits = self.waits(n).next().filter(|_| self.steps[n].canary);
        waits.map_or(NodeOutcome::Done { changed: false }, |waits| {
            self.consequence(waits)
        })
    }

    /// The gate of an earlier wave that was not passed, and so kept steps of these hosts in this
    /// gate's wave from being begun.
    fn kept_back_by(&self, n: usize, hosts: &BTreeSet<Target>) -> Option<usize> {
        let steps = hosts
            .iter()
            .filter_map(|host| self.of_target.get(host))
            .flatten();
        let mut before = steps
            .filter(|m| self.steps[**m].wave == self.steps[n].wave)
            .flat_map(|m| &self.steps[*m].after);
        let is_kept_shut = |progress: &StepProgress| match progress {
            StepProgress::Over(outcome) => !outcome.is_done(),
            _ => false,
        };
        before
            .find(|gate| {
                **gate != n
                    && matches!(self.steps[**gate].role, StepRole::Gate(_))
                    && is_kept_shut(&self.progress[**gate])
            })
            .copied()
    }

    /// The steps before a gate that wait for somebody, on hosts that are well.
    fn waits(&self, n: usize) -> impl Iterator<Item = usize> {
        let is_well = |m: &usize| {
            self.steps[*m]
                .host()
                .is_some_and(|host| !self.isolated.contains_key(host))
        };
        let waits = |m: &usize| {
            matches!(
                self.progress[*m],
                StepProgress::Over(NodeOutcome::Held { .. })
            )
        };
        self.steps[n]
            .after
            .iter()
            .copied()
            .filter(move |m| waits(m) && is_well(m))
    }

    /// The hosts of a gate on which something was done, which an earlier run left out of service,
    /// or whose node is given back, where nothing went wrong and nothing waits for somebody.
    pub(super) fn to_be_proven(&self, n: usize, hosts: &BTreeSet<Target>) -> BTreeSet<Target> {
        let waiting: BTreeSet<&Target> =
            self.waits(n).filter_map(|m| self.steps[m].host()).collect();
        let is_done = |n: &usize| match &self.progress[*n] {
            StepProgress::Over(outcome) => outcome.is_done(),
            _ => false,
        };
        // Of a host whose node an earlier run left, everything may come after the gate.
        let is_due = |m: &usize| is_done(m) || self.steps[*m].on_node == Some(OnNode::GivesBack);
        // Whoever an earlier run left out of service may have no steps at all.
        let touched = |host: &&Target| {
            self.of_target
                .get(*host)
                .is_some_and(|all| all.iter().any(is_due))
                || self.disturbed.get(*host) == Some(&None)
        };
        hosts
            .iter()
            .filter(|host| !self.isolated.contains_key(*host) && !waiting.contains(host))
            .filter(touched)
            .cloned()
            .collect()
    }
}
