//! What an earlier wish left behind: its own fields, as the server wrote them, whether or not they
//! differ from what is there now.

use super::ownership::{MANAGER, find_field_managers};
use super::paths::{self, FieldDifference};
use super::{DesiredObject, set_presence_attribute};
use crate::{Assessment, Attribute, Plane, Reading};
use serde_json::Value;

/// Every field that the wish named, wanted as it was left. The server writes some values in its own
/// way (a quantity), so a field that nobody else has set since is as it was left.
pub(super) fn diff_leftover_fields(asked: &DesiredObject, object: &Value) -> Assessment {
    let mut assessment = Assessment::default();
    set_presence_attribute(
        &mut assessment,
        Reading::is("present"),
        Reading::is("present"),
    );
    asked.readiness(Some(object), &mut assessment);
    for FieldDifference {
        path,
        shown,
        wanted,
        found,
    } in paths::collect_all_fields(&asked.manifest, object)
    {
        let is_as_left = found.is_some()
            && find_field_managers(object, &path)
                .iter()
                .all(|holder| holder.manager == MANAGER);
        let left = if is_as_left { found.clone() } else { wanted };
        let [left, found] = [left, found].map(Reading::from);
        assessment.insert_beside(shown, Attribute::in_plane(Plane::Persisted, left, found));
    }
    assessment
}
