//! What an earlier declaration left behind: its own fields, as the server wrote them, whether or
//! not they differ from what is there now.

use super::ownership::{MANAGER, find_field_managers};
use super::paths::{self, FieldDifference};
use super::{DesiredObject, set_presence_attribute};
use crate::{Attribute, Plane, Reading, ResourceDiff};
use serde_json::Value;

/// Every field that the manifest named, desired as it was left. The server writes some values in
/// its own way (a quantity), so a field that nobody else has set since is as it was left.
pub(super) fn diff_leftover_fields(asked: &DesiredObject, object: &Value) -> ResourceDiff {
    let mut diff = ResourceDiff::default();
    set_presence_attribute(&mut diff, Reading::is("present"), Reading::is("present"));
    asked.readiness(Some(object), &mut diff);
    for FieldDifference {
        path,
        shown,
        desired,
        actual,
    } in paths::collect_all_fields(&asked.manifest, object)
    {
        let is_as_left = actual.is_some()
            && find_field_managers(object, &path)
                .iter()
                .all(|holder| holder.manager == MANAGER);
        let left = if is_as_left { actual.clone() } else { desired };
        let [left, actual] = [left, actual].map(Reading::from);
        diff.insert_beside(shown, Attribute::in_plane(Plane::Persisted, left, actual));
    }
    diff
}
