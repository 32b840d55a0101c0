//! What an API server calls the objects of a kind, as rules of RBAC have it: for the kinds of
//! Kubernetes itself, for those that the same spec defines, and for all others as the server says.
//! A definition comes from the author of an inventory, and its plural becomes a right: it counts
//! only where it cannot name a resource of Kubernetes itself.

use super::manifest;
use super::request::{KubernetesRead, ObjectName};
use crate::json_fields::read_text_at;
use crate::{DesiredResource, Read, ReadResults};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What objects of a kind are called, and whether they are in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiResourceName {
    /// `daemonsets`.
    pub plural: String,
    /// They are in a namespace.
    pub namespaced: bool,
}

/// Kinds of Kubernetes itself: group, kind, plural, namespaced
/// (kubernetes.io/docs/reference/kubernetes-api; a test compares them with what a real API server
/// lists).
pub const WELL_KNOWN: [(&str, &str, &str, bool); 32] = [
    ("", "ConfigMap", "configmaps", true),
    ("", "Endpoints", "endpoints", true),
    ("", "Event", "events", true),
    ("", "LimitRange", "limitranges", true),
    ("", "Namespace", "namespaces", false),
    ("", "Node", "nodes", false),
    ("", "PersistentVolume", "persistentvolumes", false),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("", "Pod", "pods", true),
    ("", "ResourceQuota", "resourcequotas", true),
    ("", "Secret", "secrets", true),
    ("", "Service", "services", true),
    ("", "ServiceAccount", "serviceaccounts", true),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        false,
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
    ),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
    ),
    ("apps", "DaemonSet", "daemonsets", true),
    ("apps", "Deployment", "deployments", true),
    ("apps", "StatefulSet", "statefulsets", true),
    ("batch", "CronJob", "cronjobs", true),
    ("batch", "Job", "jobs", true),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        "networkpolicies",
        true,
    ),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses", false),
    (
        "policy",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        true,
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        "clusterroles",
        false,
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        "clusterrolebindings",
        false,
    ),
    ("rbac.authorization.k8s.io", "Role", "roles", true),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        "rolebindings",
        true,
    ),
    (
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        false,
    ),
    ("storage.k8s.io", "StorageClass", "storageclasses", false),
];

/// Groups of Kubernetes itself that have a dot, and the domains above them. A group without a dot
/// is always its own (kubernetes/kubernetes: hack/lib/init.sh, `KUBE_AVAILABLE_GROUP_VERSIONS`;
/// kube-aggregator and apiextensions-apiserver have one each).
const OWN_GROUPS: [&str; 22] = [
    "admission.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "k8s.io",
    "kubernetes.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// True for an object of a kind of Kubernetes itself that is in a namespace.
pub fn is_namespaced(object: &ObjectName) -> bool {
    WELL_KNOWN.iter().any(|(group, kind, _, namespaced)| {
        *namespaced && *kind == object.kind && *group == object.group()
    })
}

/// What is known by now.
#[derive(Debug, Clone, Default)]
pub struct KnownKinds {
    /// By kind and group, as an address has them.
    known: BTreeMap<String, ApiResourceName>,
}

impl KnownKinds {
    /// The kinds of Kubernetes itself, and those that these resources define; a definition never
    /// renames a kind of Kubernetes itself.
    pub fn of<'a>(resources: impl IntoIterator<Item = &'a DesiredResource>) -> Self {
        let well_known = WELL_KNOWN.iter().map(|(group, kind, plural, namespaced)| {
            let group = if group.is_empty() { "core" } else { group };
            (
                format!("{kind}.{group}"),
                ApiResourceName {
                    plural: (*plural).to_owned(),
                    namespaced: *namespaced,
                },
            )
        });
        let defined = resources.into_iter().filter_map(|resource| {
            kind_from_definition(&manifest::parse_manifest(&resource.body).ok()?)
        });
        KnownKinds {
            known: defined.chain(well_known).collect(),
        }
    }

    /// What objects of its kind are called.
    pub fn called(&self, object: &ObjectName) -> Option<&ApiResourceName> {
        self.known.get(&object.kind_and_group())
    }

    /// What the server has to be asked about the kinds of these objects, one read for each kind.
    pub fn questions<'a>(&self, objects: impl IntoIterator<Item = &'a ObjectName>) -> Vec<Read> {
        let mut asked = BTreeSet::new();
        let mut questions = Vec::new();
        for object in objects {
            if self.called(object).is_none() && asked.insert(object.kind_and_group()) {
                questions.push(Read::Kubernetes(KubernetesRead::Kind(object.clone())));
            }
        }
        questions
    }

    /// Takes what the server said of a kind; why it did not say otherwise.
    pub fn learn(&mut self, read: &Read, answers: &ReadResults) -> Result<(), Reason> {
        let Read::Kubernetes(KubernetesRead::Kind(object)) = read else {
            return Ok(());
        };
        let (code, out) = answers.output(read)?;
        if code != 0 {
            return Err(one_line(out, 200).into());
        }
        let called = serde_json::from_str(out)
            .ok()
            .filter(|called: &ApiResourceName| manifest::is_label(&called.plural));
        let called = called.ok_or_else(|| "what came names no kind".to_owned())?;
        self.known.insert(object.kind_and_group(), called);
        Ok(())
    }
}

/// The kind that a definition brings. A definition that the API server would refuse, or that names
/// what is Kubernetes' own, brings none (kubernetes/kubernetes:
/// staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go).
fn kind_from_definition(manifest: &Value) -> Option<(String, ApiResourceName)> {
    let definition = manifest::parse_object_name(manifest)?;
    let group = read_text_at(manifest, "/spec/group")?;
    let kind = read_text_at(manifest, "/spec/names/kind")?;
    let plural = read_text_at(manifest, "/spec/names/plural")?;
    let is_definition =
        definition.kind_and_group() == "CustomResourceDefinition.apiextensions.k8s.io";
    let is_named_right =
        manifest::is_subdomain(&definition.name) && definition.name == format!("{plural}.{group}");
    // A dot in the kind could make it look like a kind of a shorter group.
    let are_labels = manifest::is_label(plural) && manifest::is_label(&kind.to_ascii_lowercase());
    if !is_definition || !is_named_right || !are_labels || is_of_kubernetes(group, kind, plural) {
        return None;
    }
    let called = ApiResourceName {
        plural: plural.to_owned(),
        namespaced: read_text_at(manifest, "/spec/scope")? == "Namespaced",
    };
    Some((format!("{kind}.{group}"), called))
}

/// Whether this is Kubernetes' own: everything in a group of its own, and in a group of its
/// projects (`gateway.networking.k8s.io`) a kind or resource with a name of its own. `secrets` is
/// never taken from a definition, whatever the group.
fn is_of_kubernetes(group: &str, kind: &str, plural: &str) -> bool {
    let is_own_group = !group.contains('.') || OWN_GROUPS.contains(&group);
    let is_of_a_project = group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    let is_own_name = WELL_KNOWN
        .iter()
        .any(|(_, own_kind, own_plural, _)| *own_kind == kind || *own_plural == plural);
    is_own_group || plural == "secrets" || (is_of_a_project && is_own_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerStatus, ReadResult};
    use serde_json::json;

    fn object(api_version: &str, kind: &str) -> ObjectName {
        ObjectName {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "a".to_owned(),
        }
    }

    /// What is known where an inventory has this definition.
    fn defines(name: &str, group: &str, kind: &str, plural: &str) -> KnownKinds {
        let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name },
                                 "spec": { "group": group, "scope": "Cluster", "names": { "plural": plural, "kind": kind } } });
        KnownKinds::of([&DesiredResource::of(
            "kube/p/X.core/-/a".parse().unwrap(),
            "kubernetes_object",
            json!({ "manifest": definition }),
        )])
    }

    #[test]
    fn a_definition_renames_no_kind_of_kubernetes_itself() {
        for (group, kind, plural, _) in WELL_KNOWN {
            let (group, api_version) = if group.is_empty() {
                ("core", "v1".to_owned())
            } else {
                (group, format!("{group}/v1"))
            };
            let kinds = defines(&format!("rails.{group}"), group, kind, "rails");
            assert_eq!(
                kinds
                    .called(&object(&api_version, kind))
                    .map(|called| called.plural.as_str()),
                Some(plural),
                "{kind}.{group}"
            );
        }
    }

    #[test]
    fn a_definition_speaks_for_no_group_of_kubernetes_itself() {
        let own = WELL_KNOWN.map(|(group, ..)| group);
        for group in own
            .into_iter()
            .chain(OWN_GROUPS)
            .chain(["core", "autoscaling", "extensions"])
        {
            let kinds = defines(&format!("rails.{group}"), group, "Rail", "rails");
            assert_eq!(
                kinds.called(&object(&format!("{group}/v1"), "Rail")),
                None,
                "{group}"
            );
        }
        // Kind and group together would read as a kind of another group.
        let kinds = defines(
            "mutatingadmissionpolicies.x.org",
            "x.org",
            "Rail.admissionregistration",
            "mutatingadmissionpolicies",
        );
        assert_eq!(
            kinds.called(&object("admissionregistration.x.org/v1", "Rail")),
            None
        );
    }

    #[test]
    fn a_definition_in_a_group_of_a_project_of_kubernetes_counts() {
        for (group, kind, plural) in [
            ("gateway.networking.k8s.io", "Gateway", "gateways"),
            (
                "snapshot.storage.k8s.io",
                "VolumeSnapshot",
                "volumesnapshots",
            ),
            ("kueue.x-k8s.io", "ClusterQueue", "clusterqueues"),
            ("nfd.k8s-sigs.io", "NodeFeature", "nodefeatures"),
            ("crd.projectcalico.org", "NetworkPolicy", "networkpolicies"),
        ] {
            let kinds = defines(&format!("{plural}.{group}"), group, kind, plural);
            assert_eq!(
                kinds
                    .called(&object(&format!("{group}/v1"), kind))
                    .map(|called| called.plural.as_str()),
                Some(plural),
                "{group}"
            );
        }
        for (kind, plural) in [("Pod", "rails"), ("Rail", "pods")] {
            let kinds = defines(&format!("{plural}.new.k8s.io"), "new.k8s.io", kind, plural);
            assert_eq!(
                kinds.called(&object("new.k8s.io/v1", kind)),
                None,
                "{kind} {plural}"
            );
        }
    }

    #[test]
    fn a_definition_that_the_server_would_refuse_brings_no_kind() {
        for (name, plural) in [
            ("*.x.org", "*"),
            ("pods/exec.x.org", "pods/exec"),
            ("rails.old.x.org", "rails.old"),
            ("rails.x.org", "others"),
            ("rails.y.org", "rails"),
            ("secrets.x.org", "secrets"),
        ] {
            let kinds = defines(name, "x.org", "Rail", plural);
            let rail = object("x.org/v1", "Rail");
            assert_eq!(
                (kinds.called(&rail), kinds.questions([&rail]).len()),
                (None, 1),
                "the server is asked: {name} {plural}"
            );
        }
    }

    #[test]
    fn a_kind_is_known_defined_or_asked_for_once() {
        let mut kinds = defines("rails.x.org", "x.org", "Rail", "rails");
        assert_eq!(
            kinds.called(&object("x.org/v1", "Rail")),
            Some(&ApiResourceName {
                plural: "rails".to_owned(),
                namespaced: false
            })
        );
        assert!(
            kinds
                .called(&object("apps/v1", "DaemonSet"))
                .unwrap()
                .namespaced
        );
        let strange = object("y.org/v1", "Strange");
        let reads = kinds.questions([&strange, &object("apps/v1", "Deployment"), &strange]);
        assert_eq!(
            reads,
            [Read::Kubernetes(KubernetesRead::Kind(strange.clone()))]
        );
        let answer = |status, out: &str| {
            let mut answers = ReadResults::default();
            answers.insert(
                reads[0].key(),
                ReadResult {
                    status,
                    out: out.to_owned(),
                },
            );
            answers
        };
        assert!(
            kinds
                .learn(&reads[0], &answer(AnswerStatus::Exit(2), "no such kind"))
                .unwrap_err()
                .as_words()
                .contains("no such kind")
        );
        assert!(
            kinds
                .learn(&reads[0], &answer(AnswerStatus::Denied, "get"))
                .unwrap_err()
                .as_words()
                .contains("no role")
        );
        assert!(
            kinds
                .learn(&reads[0], &answer(AnswerStatus::Exit(0), "{}"))
                .is_err()
        );
        assert!(
            kinds
                .learn(
                    &reads[0],
                    &answer(
                        AnswerStatus::Exit(0),
                        r#"{"plural":"pods/exec","namespaced":true}"#
                    )
                )
                .is_err()
        );
        assert!(
            kinds
                .learn(
                    &reads[0],
                    &answer(AnswerStatus::Exit(0), r#"{"plural":"*","namespaced":true}"#)
                )
                .is_err()
        );
        kinds
            .learn(
                &reads[0],
                &answer(
                    AnswerStatus::Exit(0),
                    r#"{"plural":"strange","namespaced":true}"#,
                ),
            )
            .unwrap();
        assert_eq!(kinds.called(&strange).unwrap().plural, "strange");
    }
}
