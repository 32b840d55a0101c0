//! What the controller of an object does to nodes once the object is made or changed, as the module
//! says: no API server tells it.

use crate::body::BodyErrors;
use crate::{Disruption, ResourceDiff};
use schemars::JsonSchema;
use serde::Deserialize;

/// How much, and in words.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredDisruption {
    #[serde(rename = "as")]
    disruption: Disruption,
    says: String,
}

impl DeclaredDisruption {
    /// Notes what no controller does, and what is not said.
    pub fn find_errors(&self, errors: &mut BodyErrors) {
        let is_known = (Disruption::Restart..=Disruption::Reboot).contains(&self.disruption);
        errors.require(
            is_known && !self.says.trim().is_empty(),
            "/disturbs",
            "what an apply disturbs is not said",
            "`{ as: reboot, says: what it does to which nodes }`; as: restart, link_blip, drain or \
             reboot",
        );
    }

    /// Adds it to what an apply does.
    pub fn add_to(self, diff: &mut ResourceDiff) {
        diff.disruption = diff.disruption.max(self.disruption);
        diff.interrupts.push(self.says);
    }
}
