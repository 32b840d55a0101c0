//! What becomes of a step once everything before it is over: whether something is in its way, and
//! who passes a barrier.

use super::super::steps::{OnNode, StepRole};
use super::{Scheduler, StepProgress};
use railwright_base::Target;
use railwright_state::{NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

impl Scheduler {
    pub(super) fn obstacle(&self, n: usize) -> Option<NodeOutcome> {
        let step = &self.steps[n];
        let target = step.target.as_ref();
        if let Some(cause) = target.and_then(|target| self.isolated.get(target)) {
            return Some(NodeOutcome::Skipped {
                because: Skip::Target {
                    node: self.steps[*cause].id.clone(),
                },
            });
        }
        if let Some(wait) = step.host().and_then(|host| self.leaves_out(host)) {
            return Some(self.consequence(wait));
        }
        for before in &step.after {
            if self.is_not_done(*before) && !self.passes(n, *before) {
                return Some(self.consequence(*before));
            }
            if let (Some(target), Some(gaps)) = (target, self.gaps.get(before))
                && let Some(missing) = gaps.get(target)
            {
                return Some(self.consequence(*missing));
            }
        }
        self.unproven(n)
    }

    /// Whether a step is over and was not done.
    fn is_not_done(&self, n: usize) -> bool {
        matches!(&self.progress[n], StepProgress::Over(outcome) if !outcome.is_done())
    }

    fn is_gate(&self, n: usize) -> bool {
        matches!(self.steps[n].role, StepRole::Gate(_))
    }

    /// What is waited for became ready for others, and not for this host.
    fn leaves_out(&self, host: &Target) -> Option<usize> {
        self.spared
            .iter()
            .find(|(_, spared)| !spared.contains(host))
            .map(|(wait, _)| *wait)
    }

    /// Whether a step goes on after a wait that ended well for some hosts alone: on those, and
    /// where it only waits, too.
    fn passes(&self, n: usize, wait: usize) -> bool {
        let step = &self.steps[n];
        self.spared.contains_key(&wait)
            && (step.host().is_some() || (step.waits && step.target == self.steps[wait].target))
    }

    /// A gate that was passed without a node's host, because that waits for somebody, says nothing
    /// of it: the node is not given back.
    fn unproven(&self, n: usize) -> Option<NodeOutcome> {
        let step = &self.steps[n];
        if step.on_node != Some(OnNode::GivesBack) {
            return None;
        }
        let gate = *step.after.iter().find(|gate| {
            self.is_gate(**gate)
                && !self.passed_before.contains(gate)
                && !self.let_go.contains(&(**gate, n))
        })?;
        let mut waits = self.waits(gate);
        Some(match waits.find(|m| self.steps[*m].host() == step.host()) {
            Some(waits) => self.consequence(waits),
            None => NodeOutcome::Skipped {
                because: Skip::Gate {
                    node: self.steps[gate].id.clone(),
                },
            },
        })
    }

    /// What the fate of one step means for those that need it.
    fn consequence(&self, missing: usize) -> NodeOutcome {
        let node = self.steps[missing].id.clone();
        match &self.progress[missing] {
            StepProgress::Over(NodeOutcome::Blocked { .. }) => NodeOutcome::Blocked {
                reason: format!("it needs {node}, which is blocked"),
            },
            _ if self.is_gate(missing) => NodeOutcome::Skipped {
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
        for before in &self.steps[n].after {
            if let Some(gaps_before) = self.gaps.get(before) {
                gaps.extend(gaps_before.clone());
            }
            if !self.is_not_done(*before) {
                continue;
            }
            match self.steps[*before].host() {
                Some(host) if !self.failure_budget_is_used_up() => {
                    gaps.insert(host.clone(), *before);
                }
                _ => return self.consequence(*before),
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
        let step = &self.steps[n];
        let lost = hosts.iter().find_map(|host| self.isolated.get(host));
        let waits = self.waits(n).next().is_some();
        // What an earlier gate kept from being begun proves nothing to those who come after it.
        if !hosts.iter().any(|host| self.disturbed.contains_key(host))
            && let Some(gate) = self.kept_back_by(n, hosts)
        {
            return Some(self.consequence(gate));
        }
        let to_be_proven = self.to_be_proven(n, hosts);
        // Hosts that passed already are not checked again for as long as others wait.
        let mut due = to_be_proven
            .iter()
            .filter(|host| !waits || self.disturbed.contains_key(*host));
        if !(step.canary && lost.is_some()) && due.next().is_some() {
            return None;
        }
        if waits && lost.is_none() {
            return Some(self.passed(n));
        }
        // Where nothing was begun, because its node lacks what others have, there is nothing to
        // prove.
        if lost.is_none()
            && !step.canary
            && hosts.iter().all(|host| self.leaves_out(host).is_some())
        {
            return Some(NodeOutcome::Done { changed: false });
        }
        let cause = match lost {
            Some(lost) => lost,
            None => step
                .after
                .iter()
                .find(|before| self.is_not_done(**before))?,
        };
        Some(NodeOutcome::Skipped {
            because: Skip::Dependency {
                node: self.steps[*cause].id.clone(),
            },
        })
    }

    /// What becomes of a gate that the hosts which came so far have passed. Canaries that wait for
    /// somebody keep all others waiting, any other host only itself.
    pub(super) fn passed(&self, n: usize) -> NodeOutcome {
        if let StepRole::Gate(hosts) = &self.steps[n].role
            && let Some(gate) = self.kept_back_by(n, hosts)
        {
            return self.consequence(gate);
        }
        match self.waits(n).next() {
            Some(waits) if self.steps[n].canary => self.consequence(waits),
            _ => NodeOutcome::Done { changed: false },
        }
    }

    /// The gate of an earlier wave that was not passed, and so kept steps of these hosts in this
    /// gate's wave from being begun.
    fn kept_back_by(&self, n: usize, hosts: &BTreeSet<Target>) -> Option<usize> {
        let steps = hosts.iter().filter_map(|host| self.of_target.get(host));
        for m in steps.flatten() {
            if self.steps[*m].wave != self.steps[n].wave {
                continue;
            }
            for gate in &self.steps[*m].after {
                if *gate != n && self.is_gate(*gate) && self.is_not_done(*gate) {
                    return Some(*gate);
                }
            }
        }
        None
    }

    /// The steps before a gate that wait for somebody, on hosts that are well.
    fn waits(&self, n: usize) -> impl Iterator<Item = usize> {
        self.steps[n].after.iter().copied().filter(|m| {
            let is_held = matches!(
                self.progress[*m],
                StepProgress::Over(NodeOutcome::Blocked { .. })
            );
            let host = self.steps[*m].host();
            is_held && host.is_some_and(|host| !self.isolated.contains_key(host))
        })
    }

    /// The hosts of a gate on which something was done, which an earlier run left out of service,
    /// or whose node is given back, where nothing went wrong and nothing waits for somebody.
    pub(super) fn to_be_proven(&self, n: usize, hosts: &BTreeSet<Target>) -> BTreeSet<Target> {
        let waiting: BTreeSet<&Target> =
            self.waits(n).filter_map(|m| self.steps[m].host()).collect();
        let mut due = BTreeSet::new();
        for host in hosts {
            if self.isolated.contains_key(host) || waiting.contains(host) {
                continue;
            }
            // Whoever an earlier run left out of service may have no steps at all.
            let was_left = self.disturbed.get(host) == Some(&None);
            let mut steps = self.of_target.get(host).into_iter().flatten();
            if was_left || steps.any(|m| self.is_done_or_gives_back(*m)) {
                due.insert(host.clone());
            }
        }
        due
    }

    /// Of a host whose node an earlier run left, everything may come after the gate.
    fn is_done_or_gives_back(&self, n: usize) -> bool {
        self.steps[n].on_node == Some(OnNode::GivesBack)
            || matches!(&self.progress[n], StepProgress::Over(outcome) if outcome.is_done())
    }
}
