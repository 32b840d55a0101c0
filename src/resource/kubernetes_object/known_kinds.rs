//! What an API server calls the objects of a kind, as rules of RBAC have it: for the kinds of Kubernetes itself, for those that the
//! same spec defines, and for all others as the server says.

use super::manifest;
use super::request::{KubernetesRead, ObjectName};
use crate::base::text::one_line;
use crate::resource::{Answers, Read, Wish};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What objects of a kind are called, and whether they are in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// `daemonsets`.
    pub plural: String,
    /// They are in a namespace.
    pub namespaced: bool,
}

/// Kinds of Kubernetes itself: group, kind, plural, namespaced (kubernetes.io/docs/reference/kubernetes-api; a test compares
/// them with what a real API server lists).
pub const WELL_KNOWN: [(&str, &str, &str, bool); 31] = [
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
    ("", "Service", "services", true),
    ("", "ServiceAccount", "serviceaccounts", true),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false),
    ("apps", "DaemonSet", "daemonsets", true),
    ("apps", "Deployment", "deployments", true),
    ("apps", "StatefulSet", "statefulsets", true),
    ("batch", "CronJob", "cronjobs", true),
    ("batch", "Job", "jobs", true),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies", true),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses", false),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets", true),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", false),
    ("rbac.authorization.k8s.io", "Role", "roles", true),
    ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", true),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses", false),
    ("storage.k8s.io", "StorageClass", "storageclasses", false),
];

/// True for an object of a kind of Kubernetes itself that is in a namespace.
pub fn is_namespaced(object: &ObjectName) -> bool {
    WELL_KNOWN.iter().any(|(group, kind, _, namespaced)| *namespaced && *kind == object.kind && *group == object.group())
}

/// What is known by now.
#[derive(Debug, Clone, Default)]
pub struct KnownKinds {
    /// By kind and group, as an address has them.
    known: BTreeMap<String, Called>,
}

impl KnownKinds {
    /// The kinds of Kubernetes itself, and those that these wishes define.
    pub fn of<'a>(wishes: impl IntoIterator<Item = &'a Wish>) -> Self {
        let well_known = WELL_KNOWN.iter().map(|(group, kind, plural, namespaced)| {
            let group = if group.is_empty() { "core" } else { group };
            (format!("{kind}.{group}"), Called { plural: (*plural).to_owned(), namespaced: *namespaced })
        });
        let defined = wishes.into_iter().filter_map(|wish| defined(&manifest::manifest(&wish.body).ok()?));
        KnownKinds { known: well_known.chain(defined).collect() }
    }

    /// What objects of its kind are called.
    pub fn called(&self, object: &ObjectName) -> Option<&Called> {
        self.known.get(&object.kind_and_group())
    }

    /// What the server has to be asked about the kinds of these objects, a question for each kind.
    pub fn questions<'a>(&self, objects: impl IntoIterator<Item = &'a ObjectName>) -> Vec<Read> {
        let open = |object: &&ObjectName| self.called(object).is_none();
        let mut asked = BTreeSet::new();
        let first = |object: &&ObjectName| asked.insert(object.kind_and_group());
        objects.into_iter().filter(open).filter(first).map(|object| Read::Kubernetes(KubernetesRead::Kind(object.clone()))).collect()
    }

    /// Takes what the server said of a kind; why it did not say otherwise.
    pub fn learn(&mut self, read: &Read, answers: &Answers) -> Result<(), String> {
        let Read::Kubernetes(KubernetesRead::Kind(object)) = read else { return Ok(()) };
        let (code, out) = answers.output(read)?;
        if code != 0 {
            return Err(one_line(out, 200));
        }
        let called: Called = serde_json::from_str(out).map_err(|_| "what came names no kind".to_owned())?;
        self.known.insert(object.kind_and_group(), called);
        Ok(())
    }
}

/// The kind that a definition brings.
fn defined(manifest: &Value) -> Option<(String, Called)> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    (manifest::object(manifest)?.kind_and_group() == "CustomResourceDefinition.apiextensions.k8s.io").then_some(())?;
    let called = Called { plural: text("/spec/names/plural")?.to_owned(), namespaced: text("/spec/scope")? == "Namespaced" };
    Some((format!("{}.{}", text("/spec/names/kind")?, text("/spec/group")?), called))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{Answer, AnswerStatus};
    use serde_json::json;

    fn object(api_version: &str, kind: &str) -> ObjectName {
        ObjectName { api_version: api_version.to_owned(), kind: kind.to_owned(), namespace: None, name: "a".to_owned() }
    }

    #[test]
    fn a_kind_is_known_defined_or_asked_for_once() {
        let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "rails.x.org" },
                                 "spec": { "group": "x.org", "scope": "Cluster", "names": { "plural": "rails", "kind": "Rail" } } });
        let wish = Wish::of("kube/p/X.core/-/a".parse().unwrap(), "kubernetes_object", json!({ "manifest": definition }));
        let mut kinds = KnownKinds::of([&wish]);
        assert_eq!(kinds.called(&object("x.org/v1", "Rail")), Some(&Called { plural: "rails".to_owned(), namespaced: false }));
        assert!(kinds.called(&object("apps/v1", "DaemonSet")).unwrap().namespaced);
        let strange = object("y.org/v1", "Strange");
        let reads = kinds.questions([&strange, &object("apps/v1", "Deployment"), &strange]);
        assert_eq!(reads, [Read::Kubernetes(KubernetesRead::Kind(strange.clone()))]);
        let answer = |status, out: &str| {
            let mut answers = Answers::default();
            answers.insert(reads[0].key(), Answer { status, out: out.to_owned() });
            answers
        };
        assert!(kinds.learn(&reads[0], &answer(AnswerStatus::Exit(2), "no such kind")).unwrap_err().contains("no such kind"));
        assert!(kinds.learn(&reads[0], &answer(AnswerStatus::Denied, "get")).unwrap_err().contains("no role"));
        assert!(kinds.learn(&reads[0], &answer(AnswerStatus::Exit(0), "{}")).is_err());
        kinds.learn(&reads[0], &answer(AnswerStatus::Exit(0), r#"{"plural":"strange","namespaced":true}"#)).unwrap();
        assert_eq!(kinds.called(&strange).unwrap().plural, "strange");
    }
}
