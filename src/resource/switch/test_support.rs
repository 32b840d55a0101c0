//! For the tests of the systems.

use super::edit::SwitchEdit;
use crate::{Action, Assessment, DesiredResource, ResourceKind};
use railwright_base::{Address, Target};
use serde_json::Value;

/// A checked wish of `leaf1`.
pub fn wish(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
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

/// What a switch is to be told; nothing where all is in sync.
pub fn edits(assessment: &Assessment) -> Vec<SwitchEdit> {
    match assessment.actions.as_slice() {
        [] => Vec::new(),
        [Action::EditSwitch { edits, .. }] => edits.clone(),
        other => panic!("{other:?}"),
    }
}
