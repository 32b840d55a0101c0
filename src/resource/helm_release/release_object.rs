//! What an object of a release is to Helm, and whether something of it runs: by its kind and by its
//! annotations.

use crate::json_fields::read_text_field;
use crate::kubernetes_object::manifest;
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
    read_text_field(object, "kind") == Some("Secret")
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
    let Some(name) = manifest::parse_object_name(object) else {
        return false;
    };
    let group = name.group();
    (!group.contains('.') || group.ends_with(".k8s.io"))
        && !is_definition(object)
        && group != "apiextensions.k8s.io"
}

/// A manifest without what the server does not store or tell as it was said: nothing, in its kinds,
/// and the write-only `stringData` of Secrets
/// (kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1).
pub(super) fn strip_unstored_fields(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut stored = serde_json::Map::new();
            for (name, value) in map {
                let value = strip_unstored_fields(value);
                if !is_empty_value(&value) && name != "stringData" {
                    stored.insert(name.clone(), value);
                }
            }
            Value::Object(stored)
        }
        Value::Array(items) => items.iter().map(strip_unstored_fields).collect(),
        other => other.clone(),
    }
}

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
