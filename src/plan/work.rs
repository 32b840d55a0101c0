//! What a run of a plan works on.

use super::model::Plan;
use railwright_base::Target;
use std::collections::BTreeSet;

impl Plan {
    /// The hosts, switches and clusters that a run of it works on.
    pub fn targets_of_work(&self) -> BTreeSet<&Target> {
        let mut targets: BTreeSet<&Target> = BTreeSet::new();
        for node in &self.nodes {
            if node.blocked.is_none() {
                targets.extend(&node.target);
                targets.extend(node.cluster());
            }
        }
        targets.extend(self.reinstalled.iter().map(|host| &host.host));
        targets
    }

    /// True when a run would have something to do or to write down.
    pub fn has_work(&self) -> bool {
        for node in &self.nodes {
            if node.blocked.is_none() && (!node.members().is_empty() || node.is_to_be_agreed()) {
                return true;
            }
        }
        !self.reinstalled.is_empty() || !self.verified_first().is_empty()
    }
}
