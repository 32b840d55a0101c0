//! What an object is in and of: a namespace, a kind. Both have to be there before it, and another
//! object may bring them.

use super::known_kinds::WELL_KNOWN;
use super::request::ObjectName;
use super::{WITH_PODS, manifest};
use crate::DesiredResource;
use crate::json_fields::read_text_at;

/// What others can only be in once this object is there: a namespace, a kind.
pub fn find_provided_prerequisite(resource: &DesiredResource) -> Option<String> {
    let manifest = manifest::parse_manifest(&resource.body).ok()?;
    let object = manifest::parse_object_name(&manifest)?;
    match object.kind_and_group().as_str() {
        "Namespace.core" => Some(format!("namespace {}", object.name)),
        "CustomResourceDefinition.apiextensions.k8s.io" => Some(format!(
            "kind {}.{}",
            read_text_at(&manifest, "/spec/names/kind")?,
            read_text_at(&manifest, "/spec/group")?
        )),
        _ => None,
    }
}

/// What has to be there before this object, in the same words.
pub fn is_in(resource: &DesiredResource) -> Vec<String> {
    let object = manifest::parse_manifest(&resource.body)
        .ok()
        .and_then(|manifest| manifest::parse_object_name(&manifest));
    let Some(object) = object else {
        return Vec::new();
    };
    let namespace = object
        .namespace
        .is_some()
        .then(|| describe_prerequisite(&object, false));
    namespace
        .into_iter()
        .chain([describe_prerequisite(&object, true)])
        .collect()
}

/// Whether a step for this resource brings what others are in, or may well do so: a definition its
/// kind, a namespace itself. What a workload or an object of an operator makes nobody knows; the
/// other kinds of Kubernetes itself make nothing.
pub fn may_bring(resource: &DesiredResource, needed: &str) -> bool {
    let object = manifest::parse_manifest(&resource.body)
        .ok()
        .and_then(|manifest| manifest::parse_object_name(&manifest));
    match (find_provided_prerequisite(resource), object) {
        (Some(brought), _) => brought == needed,
        (None, Some(object)) => {
            let is_known = WELL_KNOWN
                .iter()
                .any(|(group, kind, ..)| *group == object.group() && *kind == object.kind);
            !is_known
                || WITH_PODS.contains(&object.kind_and_group().as_str())
                || object.group() == "batch"
        }
        (None, None) => false,
    }
}

/// The kind of an object, or the namespace that it is in, in the words of `brings`.
pub fn describe_prerequisite(object: &ObjectName, kind: bool) -> String {
    match (&object.namespace, kind) {
        (Some(namespace), false) => format!("namespace {namespace}"),
        _ => format!("kind {}", object.kind_and_group()),
    }
}
