//! Labels and annotations as the API server takes them
//! (kubernetes.io/docs/concepts/overview/working-with-objects/labels): a key is a name, with a DNS
//! subdomain and `/` before it where it belongs to somebody; the value of a label is short and
//! plain.

use super::manifest::{Problem, is_subdomain};
use serde_json::Value;

/// Labels of every object, and of workloads those of their pods, those by which they are found, and
/// those of their nodes.
const LABELS: [&str; 4] = [
    "/metadata/labels",
    "/spec/selector/matchLabels",
    "/spec/template/metadata/labels",
    "/spec/template/spec/nodeSelector",
];
const ANNOTATIONS: [&str; 2] = [
    "/metadata/annotations",
    "/spec/template/metadata/annotations",
];
const NAME_LIMIT: usize = 63;
/// Labels that each kubelet gives its own node, and gives back when it starts
/// (kubernetes/kubernetes: pkg/kubelet/kubelet_node_status.go, `initialNode` and
/// `updateDefaultLabels`).
pub const OF_THE_KUBELET: [&str; 3] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
];
/// What a key is.
pub const KEY_HELP: &str = "letters, digits, `-`, `_` and `.`, a letter or digit at both ends, at \
                            most 63; before it a DNS name and `/`, or nothing";
/// What the value of a label is.
pub const VALUE_HELP: &str = "letters, digits, `-`, `_` and `.`, a letter or digit at both ends, \
                              at most 63, or nothing; numbers and `true` in quotes";

/// All that the server would refuse.
pub fn check_labels_and_annotations(manifest: &Value) -> Vec<Problem> {
    let labels = LABELS.into_iter().flat_map(|at| {
        check_metadata_map(manifest, at, "label", |value| {
            value.as_str().is_some_and(is_value)
        })
    });
    let annotations = ANNOTATIONS
        .into_iter()
        .flat_map(|at| check_metadata_map(manifest, at, "annotation", Value::is_string));
    labels.chain(annotations).collect()
}

fn check_metadata_map(
    manifest: &Value,
    at: &'static str,
    what: &str,
    is_right: fn(&Value) -> bool,
) -> Vec<Problem> {
    // Kinds of its own may mean anything by these names.
    let is_known = at.starts_with("/metadata")
        || manifest
            .get("apiVersion")
            .is_some_and(|version| version == "apps/v1" || version == "batch/v1");
    let mut out = Vec::new();
    for (key, value) in manifest
        .pointer(at)
        .and_then(Value::as_object)
        .filter(|_| is_known)
        .into_iter()
        .flatten()
    {
        if !is_key(key) {
            out.push((
                at,
                format!(
                    "the API server takes no {what} with the key {}",
                    Value::from(key.as_str())
                ),
                Some(KEY_HELP.to_owned()),
            ));
        }
        if !is_right(value) {
            out.push((
                at,
                format!("the API server takes no {what} {key} with the value {value}"),
                Some(VALUE_HELP.to_owned()),
            ));
        }
    }
    out
}

/// True for the key of a label, an annotation or a taint.
pub fn is_key(key: &str) -> bool {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && is_plain(name)
}

/// True for the value of a label or a taint.
pub fn is_value(text: &str) -> bool {
    text.is_empty() || is_plain(text)
}

fn is_plain(text: &str) -> bool {
    text.len() <= NAME_LIMIT
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_the_server_takes_is_right() {
        let label = |key: &str, value: Value| {
            check_labels_and_annotations(
                &json!({ "apiVersion": "v1", "metadata": { "labels": { key: value } } }),
            )
            .len()
        };
        let long = "a".repeat(64);
        for (key, value, wrong) in [
            ("app", json!("x"), 0),
            ("example.org/a_b.c", json!(""), 0),
            ("app", json!("-x"), 1),
            ("app", json!("a b"), 1),
            ("app", json!(true), 1),
            ("app", json!(long), 1),
            ("", json!("x"), 1),
            ("/a", json!("x"), 1),
            ("Example.org/a", json!("x"), 1),
            ("a/b/c", json!("x"), 1),
            (&long, json!("."), 2),
        ] {
            assert_eq!(label(key, value.clone()), wrong, "{key} {value}");
        }
        let spec = json!({ "selector": { "matchLabels": { "a ": "x" } },
            "template": { "metadata": { "labels": { "a": "é" }, "annotations": { "a": "any text", "b": 5 } }, "spec": { "nodeSelector": { "gpu": true } } } });
        let of_kind = |version: &str| {
            check_labels_and_annotations(
                &json!({ "apiVersion": version, "metadata": { "annotations": { "?": "" } }, "spec": spec }),
            )
        };
        let found: Vec<&str> = of_kind("apps/v1").iter().map(|(at, ..)| *at).collect();
        assert_eq!(
            found,
            [
                LABELS[1],
                LABELS[2],
                LABELS[3],
                ANNOTATIONS[0],
                ANNOTATIONS[1]
            ]
        );
        assert_eq!(of_kind("example.org/v1").len(), 1);
    }
}
