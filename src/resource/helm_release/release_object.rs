//! What an object of a release is to Helm, and whether something of it runs: by its kind and by its
//! annotations.

use crate::kubernetes_object::manifest;
use crate::kubernetes_object::request::ObjectName;
use serde_json::Value;

/// Kinds with pods.
const WITH_PODS: [&str; 4] = [
    "DaemonSet.apps",
    "Deployment.apps",
    "StatefulSet.apps",
    "ReplicaSet.apps",
];
/// An object with this annotation stays when the release is uninstalled, and with the value `keep`
/// when it leaves a release (helm.sh/docs/howto/charts_tips_and_tricks).
const POLICY: &str = "helm.sh/resource-policy";

pub(super) fn is_secret(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Secret")
}

pub(super) fn has_pods(object: &Value) -> bool {
    manifest::parse_object_name(object)
        .is_some_and(|object| WITH_PODS.contains(&object.kind_and_group().as_str()))
}

pub(super) fn is_definition(object: &Value) -> bool {
    manifest::parse_object_name(object)
        .is_some_and(|object| object.kind == "CustomResourceDefinition")
}

pub(super) fn has_policy(document: &Value) -> bool {
    let annotations = document.pointer("/metadata/annotations");
    annotations.is_some_and(|annotations| annotations.get(POLICY).is_some())
}

/// A new revision leaves an object that it does not have only where the object as it is on the
/// cluster says so, and by this very word (helm/helm: pkg/kube/client.go, `update`).
pub(super) fn is_kept_by_upgrade(live: &Value) -> bool {
    find_annotation(live, POLICY) == Some("keep")
}

/// The text of an annotation, where the object has it.
pub(super) fn find_annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Helm 3 patches its built-in kinds by what is on the cluster; all others by what changed between
/// two revisions alone (helm/helm: pkg/kube/client.go, createPatch), so that what somebody set on
/// those stays.
pub(super) fn is_built_in(object: &Value) -> bool {
    let group = |object: ObjectName| object.group().to_owned();
    manifest::parse_object_name(object)
        .map(group)
        .is_some_and(|group| {
            (!group.contains('.') || group.ends_with(".k8s.io"))
                && !is_definition(object)
                && group != "apiextensions.k8s.io"
        })
}

/// A manifest without what the server does not store or tell as it was said: nothing, in its kinds,
/// and the write-only `stringData` of Secrets
/// (kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1).
pub(super) fn strip_unstored_fields(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(serde_json::Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_str().is_some_and(str::is_empty)
    };
    let is_said = |(name, value): &(String, Value)| !is_empty(value) && name != "stringData";
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), strip_unstored_fields(value)))
            .filter(is_said)
            .collect(),
        Value::Array(items) => items.iter().map(strip_unstored_fields).collect(),
        other => other.clone(),
    }
}
