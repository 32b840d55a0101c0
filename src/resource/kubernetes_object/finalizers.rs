//! What holds an object that is being deleted: its finalizers, each of which somebody has to take
//! away.

use railwright_base::text::one_line;
use serde_json::Value;

/// Finalizers of Kubernetes itself, and what they wait for (kubernetes/kubernetes:
/// staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go;
/// kubernetes.io/docs/concepts/storage/persistent-volumes).
const KNOWN: [(&str, &str); 4] = [
    ("foregroundDeletion", "its dependants go first"),
    ("orphan", "its dependants are let go first"),
    ("kubernetes.io/pvc-protection", "a pod uses the claim"),
    ("kubernetes.io/pv-protection", "a claim uses the volume"),
];

/// The finalizers of an object.
pub fn list_finalizers(object: &Value) -> Vec<&str> {
    object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// How it stands with an object that goes: `being deleted, held by its finalizer example.org/never,
/// which whoever owns example.org takes away`.
pub fn describe_deletion(object: &Value) -> String {
    let all = list_finalizers(object);
    if all.is_empty() {
        return "being deleted".to_owned();
    }
    let word = if all.len() == 1 {
        "finalizer"
    } else {
        "finalizers"
    };
    format!(
        "being deleted, held by its {word} {}",
        all.into_iter()
            .map(describe_finalizer)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn describe_finalizer(name: &str) -> String {
    let shown = one_line(name, 100);
    match (
        KNOWN.iter().find(|(known, _)| *known == name),
        name.split_once('/'),
    ) {
        (Some((_, why)), _) => format!("{shown} ({why})"),
        (None, Some((domain, _))) => format!(
            "{shown} (the controller of {} takes it away)",
            one_line(domain, 80)
        ),
        (None, None) => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_finalizer_is_told_with_who_takes_it_away() {
        let object = |finalizers: &[&str]| json!({ "metadata": { "finalizers": finalizers } });
        for (finalizers, desired) in [
            (&[][..], "being deleted"),
            (
                &["foregroundDeletion"],
                "being deleted, held by its finalizer foregroundDeletion (its dependants go first)",
            ),
            (
                &["x.example.org/a", "b"],
                "being deleted, held by its finalizers x.example.org/a (the controller of \
                 x.example.org takes it away), b",
            ),
        ] {
            assert_eq!(describe_deletion(&object(finalizers)), desired);
        }
        assert_eq!(
            describe_deletion(&json!({ "metadata": { "finalizers": "x" } })),
            "being deleted"
        );
    }
}
