//! What others set on the objects of a release, beside what a new revision would change: it is
//! overwritten or deleted by that revision, and so belongs to what a plan was made against. A field
//! that others added stays with its object and goes with it.

use super::compare::HelmReleaseChange;
use crate::kubernetes_object::manifest;
use serde_json::Value;
use std::collections::BTreeSet;

/// All that a revision changes: what differs, what others set, and, where there is any of it or a
/// revision `is_due`, what varies. Objects that are in none of these are left alone.
pub fn settled(
    changes: Vec<HelmReleaseChange>,
    varying: Vec<HelmReleaseChange>,
    edits: &[HelmReleaseChange],
    desired: &[Value],
    is_due: bool,
) -> Vec<HelmReleaseChange> {
    let stay: BTreeSet<String> = desired
        .iter()
        .filter_map(manifest::parse_object_name)
        .map(|object| object.to_string())
        .collect();
    let is_due = is_due || !changes.is_empty() || edits.iter().any(|edit| is_set_back(edit, &stay));
    let mut all = changes;
    if is_due {
        all.extend(varying);
    }
    let go: BTreeSet<String> = all
        .iter()
        .filter(|change| change.desired.is_none())
        .map(|change| change.name.clone())
        .collect();
    for edit in edits {
        if let Some(change) = all.iter_mut().find(|change| change.name == edit.name) {
            let (actual, by, since) = (edit.actual.clone(), edit.by.clone(), edit.since.clone());
            *change = HelmReleaseChange {
                actual,
                by,
                since,
                rendered: false,
                ..std::mem::take(change)
            };
        } else if is_set_back(edit, &stay) {
            all.push(edit.clone());
        } else if go.contains(object_of(edit)) {
            all.push(HelmReleaseChange {
                desired: None,
                stays: false,
                interrupts: None,
                ..edit.clone()
            });
        }
    }
    all
}

/// `stay`: the objects that the revision has.
fn is_set_back(edit: &HelmReleaseChange, stay: &BTreeSet<String>) -> bool {
    !edit.added && stay.contains(object_of(edit))
}

/// The object that a change is about.
pub fn object_of(change: &HelmReleaseChange) -> &str {
    change.name.split(": ").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::compare::diff_rendered_objects;
    use super::*;
    use crate::Provenance;
    use serde_json::json;

    fn config(name: &str, word: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": word } })
    }

    #[test]
    fn what_others_set_is_what_a_revision_overwrites_and_deletes() {
        let (desired, installed) = (
            [config("a", "new")],
            [config("a", "old"), config("gone", "old")],
        );
        let by = Some(Provenance::set_by(
            "kubectl-patch",
            "2026-01-02T03:04:05Z",
            false,
        ));
        let edit = |name: &str| HelmReleaseChange {
            name: format!("ConfigMap.core {name}: data.k"),
            desired: Some(json!("old")),
            actual: Some(json!("theirs")),
            by: by.clone(),
            ..HelmReleaseChange::default()
        };
        let edits = ["a", "gone", "nobodys"].map(edit);
        let all = settled(
            diff_rendered_objects(&desired, &installed),
            Vec::new(),
            &edits,
            &desired,
            false,
        );
        let shown: Vec<_> = all
            .iter()
            .map(|c| {
                (
                    c.name.as_str(),
                    c.desired.as_ref(),
                    c.actual.as_ref(),
                    c.by.is_some(),
                    c.rendered,
                )
            })
            .collect();
        let (new, theirs, present) = (json!("new"), json!("theirs"), json!("present"));
        assert_eq!(
            shown,
            [
                (
                    "ConfigMap.core a: data.k",
                    Some(&new),
                    Some(&theirs),
                    true,
                    false
                ),
                ("ConfigMap.core gone", None, Some(&present), false, true),
                (
                    "ConfigMap.core gone: data.k",
                    None,
                    Some(&theirs),
                    true,
                    false
                ),
            ]
        );
    }

    #[test]
    fn what_varies_is_told_where_a_revision_is_due() {
        let desired = [config("a", "x1")];
        let varying = || {
            vec![HelmReleaseChange {
                name: "ConfigMap.core a: data.k".to_owned(),
                ..HelmReleaseChange::default()
            }]
        };
        let count = |edits: &[HelmReleaseChange], is_due: bool| {
            settled(Vec::new(), varying(), edits, &desired, is_due).len()
        };
        let edit = HelmReleaseChange {
            name: "ConfigMap.core a: data.other".to_owned(),
            ..HelmReleaseChange::default()
        };
        assert_eq!(
            (count(&[], false), count(&[], true), count(&[edit], false)),
            (0, 1, 2)
        );
    }
}
