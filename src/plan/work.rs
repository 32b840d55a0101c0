//! What a run of a plan works on.

use super::model::{Plan, PlanNode};
use railwright_base::Target;
use std::collections::BTreeSet;

impl Plan {
    /// The hosts, switches and clusters that a run of it works on.
    pub fn targets_of_work(&self) -> BTreeSet<&Target> {
        let work = self.nodes.iter().filter(|node| node.held.is_none());
        let own = work.clone().filter_map(|node| node.target.as_ref());
        own.chain(work.filter_map(PlanNode::cluster))
            .chain(self.reinstalled.iter().map(|one| &one.host))
            .collect()
    }

    /// True when a run would have something to do or to write down.
    pub fn has_work(&self) -> bool {
        let works = |node: &PlanNode| {
            node.held.is_none() && (!node.members().is_empty() || node.is_to_be_agreed())
        };
        !self.reinstalled.is_empty()
            || self.nodes.iter().any(works)
            || !self.verified_first().is_empty()
    }
}
