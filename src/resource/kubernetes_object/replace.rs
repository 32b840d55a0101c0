//! Fields that the server never lets change: the object can only be deleted and made anew, which is done where the wish allows it.

use super::{Asked, NEVER_REMOVED, WITH_PODS};
use crate::resource::{Action, Assessment, Disruption};
use serde_json::Value;

/// Whether a wish allows it.
pub fn is_allowed(body: &Value) -> bool {
    body.get("replace").and_then(Value::as_bool) == Some(true)
}

/// Why an object of this kind is never deleted to be made anew.
pub fn never(kind: &str) -> Option<&'static str> {
    NEVER_REMOVED.contains(&kind).then_some("all that lies below it would be deleted with it")
}

/// What is said of a refusal that a replacement would mend.
pub fn advice(asked: &Asked, message: &str, ours: bool) -> String {
    let refused = super::refused(&asked.object, message);
    match ours && !asked.adopts && never(&asked.object.kind_and_group()).is_none() {
        true => format!("{refused}; `replace: true` beside the manifest has it deleted and made anew"),
        false => format!("{refused}; it can only be deleted and made anew, which is done by hand"),
    }
}

/// Deletes the object that is there and makes it anew.
pub fn replace(asked: &Asked, uid: &str, assessment: &mut Assessment) {
    let object = asked.object.clone();
    let pods = if WITH_PODS.contains(&object.kind_and_group().as_str()) { ", and its pods with it" } else { "" };
    assessment.interrupts = vec![format!("{object} is deleted{pods}, and made anew: a field changes that never changes")];
    assessment.disruption = Disruption::Restart;
    assessment.actions =
        std::iter::once(Action::DeleteObject { object, uid: uid.to_owned(), anew: true }).chain(asked.apply_and_wait()).collect();
}
