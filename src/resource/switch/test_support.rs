//! For the tests of the systems.

use super::edit::SwitchEdit;
use crate::{Action, DesiredResource, ResourceDiff, ResourceKind};
use railwright_base::{Address, Target};
use serde_json::Value;

/// A checked resource of `leaf1`.
pub fn resource(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
    assert_eq!(kind.check(&body), []);
    let path = kind.address_path(&body).unwrap();
    DesiredResource::of(
        Address {
            target: Target::switch("leaf1"),
            path: path.into(),
            attribute: None,
        },
        kind.name(),
        body,
    )
}

/// The edits of a switch; none where all is in sync.
pub fn edits(diff: &ResourceDiff) -> Vec<SwitchEdit> {
    match diff.actions.as_slice() {
        [] => Vec::new(),
        [Action::EditSwitch { edits, .. }] => edits.clone(),
        other => panic!("{other:?}"),
    }
}
