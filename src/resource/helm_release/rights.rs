//! What an API server has to allow for a release, as far as it is known without Helm: the Secrets
//! in which Helm keeps its revisions (helm/helm: pkg/storage/driver/secrets.go), and the objects of
//! which a plan says that they change.

use super::body::HelmReleaseBody;
use crate::DesiredResource;
use crate::body::read_body;
use crate::kubernetes_object::access::{AccessLevel, ApiVerb, Right};
use crate::kubernetes_object::request::ObjectName;

/// The records of the release. Their names have the number of the revision, and a list has no name,
/// so that no rule can hold them to one release.
pub fn of_records(resource: &DesiredResource, level: AccessLevel) -> Vec<(Right, String)> {
    let HelmReleaseBody {
        name, namespace, ..
    } = read_body(&resource.body);
    let reason = format!("the revisions that Helm keeps of the release {namespace}/{name}");
    let verbs: &[ApiVerb] = match level {
        AccessLevel::Observe | AccessLevel::Preview => &[ApiVerb::Get, ApiVerb::List],
        AccessLevel::Apply => &[
            ApiVerb::Get,
            ApiVerb::List,
            ApiVerb::Create,
            ApiVerb::Update,
            ApiVerb::Delete,
        ],
    };
    let mut rights = Vec::new();
    for verb in verbs {
        let right = Right {
            namespace: Some(namespace.clone()),
            group: String::new(),
            resource: "secrets".to_owned(),
            name: None,
            verb: *verb,
        };
        rights.push((right, reason.clone()));
    }
    rights
}

/// The object that a change of the release is about, and its field where it is not about all of it,
/// by the change's name: `DaemonSet.apps default/rails-agent: spec.x`. Its version is not part of
/// it.
pub fn parse_changed_object(change: &str) -> Option<(ObjectName, Option<&str>)> {
    let (object, field) = match change.split_once(": ") {
        Some((object, field)) => (object, Some(field)),
        None => (change, None),
    };
    let (kind, name) = object.split_once(' ')?;
    let (kind, group) = kind.split_once('.')?;
    let (namespace, name) = name
        .split_once('/')
        .map_or((None, name), |(namespace, name)| {
            (Some(namespace.to_owned()), name)
        });
    let is_name = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && !name.is_empty()
        && !name.contains(char::is_whitespace);
    let api_version = if group == "core" {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    let object = ObjectName {
        api_version,
        kind: kind.to_owned(),
        namespace,
        name: name.to_owned(),
    };
    is_name.then_some((object, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_its_object() {
        let shown = |change| {
            let (object, field) = parse_changed_object(change)?;
            Some((object.to_string(), field.unwrap_or_default()))
        };
        for (change, object, field) in [
            (
                "DaemonSet.apps default/agent: spec.template.spec.x",
                "DaemonSet.apps default/agent",
                "spec.template.spec.x",
            ),
            ("ConfigMap.core default/a", "ConfigMap.core default/a", ""),
            (
                "ClusterRole.rbac.authorization.k8s.io a",
                "ClusterRole.rbac.authorization.k8s.io a",
                "",
            ),
        ] {
            assert_eq!(shown(change), Some((object.to_owned(), field)));
        }
        for none in [
            "values.agent.driver",
            "version",
            "release",
            "values.a b.c",
            "x y",
        ] {
            assert_eq!(shown(none), None, "{none}");
        }
    }
}
