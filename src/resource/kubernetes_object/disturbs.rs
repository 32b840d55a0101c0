//! What the controller of an object does to nodes once the object is made or changed, as the module
//! says: no API server tells it.

use crate::{Assessment, Disruption};
use serde_json::Value;

/// How much, and in words.
pub fn parse_declared_disruption(body: &Value) -> Option<(Disruption, String)> {
    let (disturbs, says) = (
        body.get("disturbs")?,
        body.pointer("/disturbs/says")?.as_str()?,
    );
    let disruption: Disruption = serde_json::from_value(disturbs.get("as")?.clone()).ok()?;
    let is_known = (Disruption::Restart..=Disruption::Reboot).contains(&disruption)
        && disturbs.as_object()?.len() == 2;
    (is_known && !says.trim().is_empty()).then(|| (disruption, says.to_owned()))
}

/// Adds it to what an apply does.
pub fn add_declared_disruption(body: &Value, assessment: &mut Assessment) {
    let Some((disruption, says)) = parse_declared_disruption(body) else {
        return;
    };
    assessment.disruption = assessment.disruption.max(disruption);
    assessment.interrupts.push(says);
}
