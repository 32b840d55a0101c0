//! Marks that are verified, forged and unknown, and who may read the key that verifies them.

use super::tests::{by, diff, edit, edits, label, mark, undo};
use crate::kubernetes_object::access::{AccessLevel, list_object_uses};
use crate::kubernetes_object::known_kinds::ApiResourceName;
use serde_json::json;

/// A kubelet may write an annotation in the place of our mark on its own node.
#[test]
fn by_a_mark_without_our_code_nothing_is_taken_back_or_overwritten() {
    let unproven = |value: Option<&str>| json!({ "value": value, "unproven_mark": true, "by": by("kubectl-label") });
    // A node that the resource does not name, and one whose value is in sync.
    let (beside, met) = (unproven(Some("batch")), unproven(Some("true")));
    let nodes = json!({ "gpu1": met, "gpu2": { "value": "true" }, "other": beside });
    let stands = diff(&label(json!({})), nodes.clone());
    assert!(stands.is_met() && stands.actions.is_empty(), "{stands:?}");
    let undone = undo(&label(json!({})), nodes);
    assert!(undone.is_met() && undone.actions.is_empty(), "{undone:?}");
    let why = "stays: the annotation in the place of our mark bears no code of ours";
    for (residue, desired) in undone.residue.iter().zip(["other: batch", "gpu1: true"]) {
        assert!(
            residue.starts_with(&format!("{desired} {why}")),
            "{residue}"
        );
    }
    assert_eq!(undone.residue.len(), 2);
    for value in [Some("batch"), None] {
        let nodes = json!({ "gpu1": unproven(value), "gpu2": { "value": "true" } });
        let blocked = diff(&label(json!({})), nodes.clone());
        let refusal = blocked.refusal.as_deref().unwrap_or_default();
        assert!(
            blocked.actions.is_empty() && refusal.contains("bears no code of ours"),
            "{blocked:?}"
        );
        let adopted = edits(&diff(&label(json!({ "adopt": true })), nodes));
        let ours = Some(mark("train", "true", value));
        assert_eq!(adopted, [edit(&["gpu1"], value, Some("true"), ours)]);
    }
}

#[test]
fn where_the_key_of_the_marks_cannot_be_read_what_they_would_do_is_unknown() {
    let unread = json!({ "value": "batch", "unread_mark": "no rule" });
    let nodes = json!({ "gpu1": { "value": "true" }, "gpu2": { "value": "true" }, "gpu3": unread });
    for of in [
        diff(&label(json!({})), nodes.clone()),
        undo(&label(json!({})), nodes),
    ] {
        assert!(
            of.only_unknown() && of.actions.is_empty() && format!("{of:?}").contains("no rule"),
            "{of:?}"
        );
    }
}

#[test]
fn the_roles_give_the_key_of_the_marks_and_no_other_secret() {
    let secrets = ApiResourceName {
        plural: "secrets".to_owned(),
        namespaced: true,
    };
    let verbs = |level: AccessLevel, desired: bool| {
        let mut out = Vec::new();
        for one in list_object_uses(&label(json!({})), desired) {
            if one.object.kind == "Secret" {
                for (right, _) in one.rights(level, &secrets) {
                    let place = (right.namespace.as_deref(), right.name.as_deref());
                    assert_eq!(place, (Some("kube-system"), Some("railwright.node-marks")));
                    out.push(right.verb.word());
                }
            }
        }
        out
    };
    let reads = ["get", "list", "watch"];
    assert_eq!(verbs(AccessLevel::Observe, true), reads);
    assert_eq!(verbs(AccessLevel::Preview, true), reads);
    assert_eq!(
        verbs(AccessLevel::Apply, true),
        [&reads[..], &["create", "patch"]].concat()
    );
    assert_eq!(verbs(AccessLevel::Apply, false), reads);
}
