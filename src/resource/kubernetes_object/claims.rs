//! Claims of a StatefulSet's pods that Kubernetes itself deletes, and their data with them
//! (kubernetes/kubernetes pkg/controller/statefulset/stateful_set_utils.go: they are named
//! TEMPLATE-NAME-ORDINAL, and are owned by the set or by the pod where
//! `persistentVolumeClaimRetentionPolicy` says `Delete`).

use super::paths::FieldDifference;
use super::request::ObjectName;
use crate::json_fields::{list_items_at, read_text_at};
use railwright_base::text::one_line;
use serde_json::Value;

const POLICY: &str = "persistentVolumeClaimRetentionPolicy";

fn is_deleting(policy: Option<&Value>) -> bool {
    policy.and_then(Value::as_str) == Some("Delete")
}

/// The names of the claims with these ordinals, of every template.
fn name_claims(name: &ObjectName, set: &Value, ordinals: &str) -> Option<String> {
    let templates = list_items_at(set, "/spec/volumeClaimTemplates");
    let claims: Vec<String> = templates
        .iter()
        .filter_map(|template| read_text_at(template, "/metadata/name"))
        .map(|template| format!("{template}-{}-{ordinals}", name.name))
        .collect();
    (!claims.is_empty()).then(|| one_line(&claims.join(", "), 200))
}

fn is_stateful_set(name: &ObjectName) -> bool {
    name.kind_and_group() == "StatefulSet.apps"
}

/// Which claims go when this object is deleted, in words.
pub(crate) fn explain_claim_deletion(name: &ObjectName, object: &Value) -> Option<String> {
    let policy = object.pointer(&format!("/spec/{POLICY}/whenDeleted"));
    if !is_stateful_set(name) || !is_deleting(policy) {
        return None;
    }
    let claims = name_claims(name, object, "N")?;
    Some(format!(
        "the claims of its pods ({claims}) would go along with their data ({POLICY}.whenDeleted is \
         Delete)"
    ))
}

/// Which claims go with a change of this field, in words. Of several versions of the object the
/// first that says something counts.
pub(crate) fn describe_scaled_claims(
    name: &ObjectName,
    versions: &[&Value],
    field: &FieldDifference,
) -> Option<String> {
    let find = |pointer: &str| versions.iter().find_map(|object| object.pointer(pointer));
    let policy = find(&format!("/spec/{POLICY}/whenScaled"));
    if !is_stateful_set(name) || field.shown != "spec.replicas" || !is_deleting(policy) {
        return None;
    }
    let desired = field.desired.as_ref()?.as_u64()?;
    let actual = field.actual.as_ref()?.as_u64()?;
    let start = find("/spec/ordinals/start").and_then(Value::as_u64);
    let [first, end] = [desired, actual].map(|pods| pods.saturating_add(start.unwrap_or(0)));
    let ordinals = match end.saturating_sub(first) {
        0 => return None,
        1 => first.to_string(),
        _ => format!("[{first}-{}]", end - 1),
    };
    let claims = versions
        .iter()
        .find_map(|object| name_claims(name, object, &ordinals))?;
    Some(format!(
        "Kubernetes deletes the claims {claims} with their data ({POLICY}.whenScaled is Delete)"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::ownership::add_ownership_marks;
    use super::super::tests::{diff, resource};
    use super::super::{KubernetesObject, MANAGER};
    use crate::ResourceKind as _;
    use serde_json::{Value, json};

    fn set(replicas: u32, policy: &Value) -> Value {
        let templates =
            json!([{ "metadata": { "name": "data" } }, { "metadata": { "name": "log" } }]);
        let mut spec = json!({ "replicas": replicas, "volumeClaimTemplates": templates });
        if !policy.is_null() {
            spec["persistentVolumeClaimRetentionPolicy"] = policy.clone();
        }
        json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db", "namespace": "x" }, "spec": spec })
    }

    #[test]
    fn claims_that_go_with_pods_which_are_scaled_away_are_named() {
        let deletes = json!({ "whenScaled": "Delete" });
        for (from, to, declared, live, claims) in [
            (
                3,
                1,
                &deletes,
                &deletes,
                Some("data-db-[1-2], log-db-[1-2]"),
            ),
            (3, 2, &deletes, &deletes, Some("data-db-2, log-db-2")),
            (3, 2, &Value::Null, &deletes, Some("data-db-2, log-db-2")),
            (1, 3, &deletes, &deletes, None),
            (3, 1, &json!({ "whenScaled": "Retain" }), &deletes, None),
            (
                3,
                1,
                &json!({ "whenDeleted": "Delete" }),
                &Value::Null,
                None,
            ),
        ] {
            let body = json!({ "cluster": "lab", "ready": false, "manifest": set(to, declared) });
            assert_eq!(KubernetesObject.check(&body), []);
            let mark = |object: Value| {
                let mut object = add_ownership_marks(object, "lab", false);
                object["metadata"]["uid"] = json!("u1");
                object["metadata"]["managedFields"] = json!([{ "manager": MANAGER, "operation": "Apply", "fieldsV1": { "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } } }]);
                object
            };
            let (now, then) = (mark(set(from, live)), mark(set(to, live)));
            let scaled = diff(&resource(body), (0, &now), (0, &then));
            let said = scaled.interrupts.join("; ");
            let desired =
                claims.map(|claims| format!("deletes the claims {claims} with their data"));
            assert!(
                desired
                    .as_ref()
                    .map_or(!said.contains("claims"), |desired| said.contains(desired)),
                "{from} {to} {declared}: {said}"
            );
        }
    }
}
