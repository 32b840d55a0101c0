//! `kubernetes_object`: any object of a Kubernetes cluster, applied as one whole manifest by
//! server-side apply.
//!
//! What a change would come to is reported by the server itself, which answers an apply with force
//! as a dry run; a plan compares that answer with the object as it is. Where the server does not
//! let us preview, the fields of the manifest are compared with the object, and the difference says
//! so.
//!
//! A field that somebody else set on an object of ours is drift, and reset (`ownership` says who
//! set it; where they change it again, `apply` ends the step: `precondition/seen`). On an object
//! that was never ours it is a conflict: the step is blocked and names the manager, until `adopt:
//! true` takes the object over.

pub mod access;
pub mod applyset;
pub(crate) mod claims;
pub mod conditions;
mod diff;
mod disturbs;
pub mod exec;
pub mod fields_of_others;
pub mod finalizers;
pub mod known_kinds;
pub mod labels;
mod left;
pub(super) mod looks;
pub mod manifest;
pub mod node_pods;
pub mod nodes;
pub mod ownership;
pub mod paths;
pub mod place;
mod pod_disruption;
pub mod precondition;
mod preview;
pub mod readiness;
pub mod refusal;
mod replace;
pub mod request;
pub mod rule;
mod undo;
mod yaml;

pub use self::ownership::{MANAGER, MEMBERSHIP, build_cluster_object_name, part_of};

use self::access::ApiVerb;
use self::looks::{LiveObject, looked_at};
use self::manifest::KubernetesObjectBody;
use self::ownership::{PriorObject, add_ownership_marks, taken_over};
use self::precondition::ObjectPrecondition;
use self::readiness::{DeclaredReadiness, Readiness, ReadinessCriteria};
use self::replace::DeclaredReplacement;
use self::request::{KubernetesRead, ObjectName};
use super::kind::NotReadyReason;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{BodyType, read_body};
use railwright_base::TargetKind;
use railwright_base::text::one_line;
use serde::Deserialize;
use serde_json::Value;

/// What a host would answer to a read of an API server, or do of an action for one: nothing reaches
/// it.
pub const NO_HOST: &str = "echo 'this is for an API server' >&2; exit 70\n";

/// The kind.
pub struct KubernetesObject;

/// The attribute that says whether the object is there at all.
const OBJECT: &str = "object";
/// The attribute that says whether it has come to what it is for.
const READY: &str = "ready";
/// Removing one of these takes everything below it along, ours or not: `kubectl apply --prune`
/// leaves them as well.
const NEVER_REMOVED: [&str; 2] = [
    "Namespace.core",
    "CustomResourceDefinition.apiextensions.k8s.io",
];
/// Kinds whose data goes with the object, where the volume's reclaim policy is `Delete`.
const HOLD_DATA: [&str; 2] = ["PersistentVolume.core", "PersistentVolumeClaim.core"];
/// Kinds of which no controller makes anything that the object then owns. The rest waits for the
/// garbage collector, which removes what an object owns before it (`propagationPolicy: Foreground`)
/// and takes seconds for each where there are thousands.
const OWN_NOTHING: [&str; 10] = [
    "ConfigMap.core",
    "Secret.core",
    "ServiceAccount.core",
    "ResourceQuota.core",
    "LimitRange.core",
    "Role.rbac.authorization.k8s.io",
    "RoleBinding.rbac.authorization.k8s.io",
    "ClusterRole.rbac.authorization.k8s.io",
    "ClusterRoleBinding.rbac.authorization.k8s.io",
    "PriorityClass.scheduling.k8s.io",
];
/// Kinds whose pods start anew when the template changes.
const WITH_PODS: [&str; 4] = [
    "DaemonSet.apps",
    "Deployment.apps",
    "StatefulSet.apps",
    "ReplicaSet.apps",
];

/// What the kubelet says of a container that it will never start as it is (kubernetes/kubernetes
/// pkg/kubelet/images/types.go).
const NEVER_STARTS: [&str; 2] = ["InvalidImageName", "ErrImageNeverPull"];
/// How many pods are named.
const TROUBLES: usize = 3;

impl ResourceKind for KubernetesObject {
    fn name(&self) -> &'static str {
        "kubernetes_object"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    /// It stands in the label by which ours are known.
    fn names_cluster(&self) -> bool {
        true
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(manifest::parse_object_name(&manifest::parse_manifest(body).ok()?)?.name)
    }

    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        let object = manifest::parse_object_name(&manifest::parse_manifest(body).ok()?)?;
        Some(vec![
            object.kind_and_group(),
            object.namespace.unwrap_or_else(|| "-".to_owned()),
            object.name,
        ])
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<KubernetesObjectBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        parse_desired_object(resource)
            .map_or_else(Vec::new, |asked| vec![asked.live(), asked.preview()])
    }

    fn changes(&self, resource: &DesiredResource, removal: bool) -> Vec<(ObjectName, ApiVerb)> {
        let Some(DesiredObject {
            object,
            adopts,
            replaces,
            ..
        }) = parse_desired_object(resource)
        else {
            return Vec::new();
        };
        let stays = adopts || explain_removal_prohibition(&object).is_some();
        let verbs: &[ApiVerb] = match (removal, stays) {
            (false, _) if replaces => &[ApiVerb::Patch, ApiVerb::Create, ApiVerb::Delete],
            (false, _) => &[ApiVerb::Patch, ApiVerb::Create],
            (true, false) => &[ApiVerb::Delete],
            (true, _) if adopts => &[ApiVerb::Patch],
            (true, _) => &[],
        };
        verbs.iter().map(|verb| (object.clone(), *verb)).collect()
    }

    fn may_bring(&self, resource: &DesiredResource, needed: &str) -> bool {
        place::may_bring(resource, needed)
    }

    fn knows_its_own(&self) -> bool {
        true
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let Some(asked) = parse_desired_object(resource) else {
            return diff;
        };
        match read_live_object(&asked, answers) {
            LiveObject::Is(object) => diff::diff_live_object(&asked, &object, answers, &mut diff),
            LiveObject::Absent => diff::diff_missing_object(&asked, answers, &mut diff),
            LiveObject::Unknown(reason) => {
                set_presence_attribute(&mut diff, Reading::is("present"), Reading::Unknown(reason))
            }
        }
        if diff
            .actions
            .iter()
            .any(|action| matches!(action, Action::ApplyObject { .. }))
        {
            let body = read_body::<KubernetesObjectBody>(&resource.body);
            if let Some(disturbs) = body.disturbs {
                disturbs.add_to(&mut diff);
            }
        }
        diff
    }

    fn left(&self, applied: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let compared = self.diff(applied, answers);
        let Some(asked) = parse_desired_object(applied) else {
            return compared;
        };
        let LiveObject::Is(object) = read_live_object(&asked, answers) else {
            return compared;
        };
        // A comparison names only what differs, and what the server was not asked for cannot be
        // compared.
        let mut all = left::diff_leftover_fields(&asked, &object);
        if answers.get(&asked.preview()).is_some() {
            all.attributes.extend(compared.attributes);
        }
        all
    }

    fn troubles(&self, resource: &DesiredResource) -> Vec<Read> {
        parse_desired_object(resource)
            .and_then(|asked| asked.troubles())
            .into_iter()
            .collect()
    }

    fn trouble(&self, resource: &DesiredResource, answers: &ReadResults) -> Option<NotReadyReason> {
        let (_, lines) = answers
            .output(&parse_desired_object(resource)?.troubles()?)
            .ok()
            .filter(|(code, lines)| *code == 0 && !lines.trim().is_empty())?;
        let hopeless = lines
            .lines()
            .any(|line| NEVER_STARTS.iter().any(|reason| line.contains(reason)));
        let more = lines.lines().count().saturating_sub(TROUBLES);
        let first: Vec<String> = lines
            .lines()
            .take(TROUBLES)
            .map(|line| one_line(line, 300))
            .collect();
        let rest = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        Some(NotReadyReason {
            words: first.join("; ") + &rest,
            hopeless,
        })
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        undo::plan_object_undo(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorObject::deserialize(before).is_ok()
    }
}

/// What a recreated object will say, but for what its address says: the smallest fields of its
/// manifest, by their paths.
pub fn list_manifest_fields(resource: &DesiredResource) -> Vec<(String, Value)> {
    let said = ["apiVersion", "kind", "metadata.name", "metadata.namespace"];
    let all = manifest::parse_manifest(&resource.body)
        .map(|manifest| paths::collect_leaf_fields(&manifest))
        .unwrap_or_default();
    all.into_iter()
        .filter(|(path, _)| !said.contains(&path.as_str()))
        .collect()
}

/// Why an object of this kind is never removed; nothing where it may be.
pub(crate) fn explain_removal_prohibition(object: &ObjectName) -> Option<&'static str> {
    let kind = object.kind_and_group();
    if NEVER_REMOVED.contains(&kind.as_str()) {
        Some("what lies below it would go along")
    } else {
        let holds_data = HOLD_DATA.contains(&kind.as_str());
        holds_data.then_some("its data would go along")
    }
}

/// True for an object that goes at once when it is deleted, with nothing of its own to go before.
pub fn owns_nothing(object: &ObjectName) -> bool {
    OWN_NOTHING.contains(&object.kind_and_group().as_str())
}

/// A declared object as reads.
#[derive(Clone)]
struct DesiredObject {
    object: ObjectName,
    manifest: Value,
    /// The spec's cluster, whose mark ours have.
    cluster: String,
    /// Taken over, whoever made it; then it is never deleted.
    adopts: bool,
    /// Deleted and recreated where an immutable field differs.
    replaces: bool,
    /// Fields whose change takes a new object too, though the server lets them change.
    made_once: Vec<String>,
    /// Where `adopt` and `replace` are said.
    beside: &'static str,
    /// What it has to come to; nothing where that is not checked.
    ready: Option<ReadinessCriteria>,
}

fn parse_desired_object(resource: &DesiredResource) -> Option<DesiredObject> {
    let mut body = read_body::<KubernetesObjectBody>(&resource.body);
    let manifest = body.take_manifest().ok()?;
    let (replaces, adopts) = (body.is_replaced(), body.adopt);
    let cluster = body.cluster.unwrap_or_default();
    let manifest = add_ownership_marks(manifest, &cluster, adopts);
    let object = manifest::parse_object_name(&manifest)?;
    let ready = DeclaredReadiness::criteria_for(body.ready, &object.kind_and_group());
    let replace = body.replace.map(DeclaredReplacement::into_fields);
    let beside = if resource.is_of_workload() {
        "in the workload"
    } else {
        "beside the manifest"
    };
    Some(DesiredObject {
        object,
        manifest,
        cluster,
        adopts,
        replaces,
        made_once: replace.unwrap_or_default(),
        beside,
        ready,
    })
}

impl DesiredObject {
    fn live(&self) -> Read {
        Read::Kubernetes(KubernetesRead::Object(self.object.clone()))
    }

    fn preview(&self) -> Read {
        Read::Kubernetes(KubernetesRead::Preview {
            object: self.object.clone(),
            manifest: self.manifest.to_string(),
        })
    }

    /// The declaration of an object that we took over earlier, where it no longer says so itself.
    /// The server is asked for a preview of it as it is; see
    /// [`preview::ObjectPreview::of_one_taken_over`].
    fn taken_over(&self) -> Self {
        DesiredObject {
            manifest: taken_over(self.manifest.clone()),
            adopts: true,
            ..self.clone()
        }
    }

    fn apply(&self, precondition: ObjectPrecondition) -> Action {
        Action::ApplyObject {
            object: self.object.clone(),
            manifest: self.manifest.clone(),
            precondition,
        }
    }

    /// Why its pods do not run, where it has pods, and what is warned of it. An operator may refuse
    /// what its definition takes, and say so in an event alone: the status of such an MPIJob or
    /// RayCluster stays empty (kubeflow/mpi-operator pkg/controller/ mpi_job_controller.go,
    /// ValidationError; ray-project/kuberay ray-operator/controllers/ray/raycluster_controller.go,
    /// InvalidRayClusterSpec). Events of what has no namespace are in one that is not ours to read.
    fn troubles(&self) -> Option<Read> {
        let labels = self
            .manifest
            .pointer("/spec/selector/matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let labels: Vec<String> = labels
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
            .collect();
        let has_pods =
            WITH_PODS.contains(&self.object.kind_and_group().as_str()) && !labels.is_empty();
        let is_asked = has_pods || (self.ready.is_some() && self.object.namespace.is_some());
        let selector = has_pods.then(|| labels.join(","));
        is_asked.then(|| {
            Read::Kubernetes(KubernetesRead::Troubles {
                object: self.object.clone(),
                selector,
            })
        })
    }

    /// Applies it to the object that was read, and waits until it is ready.
    fn apply_and_wait(&self, precondition: ObjectPrecondition) -> Vec<Action> {
        std::iter::once(self.apply(precondition))
            .chain(self.wait())
            .collect()
    }

    fn wait(&self) -> Option<Action> {
        let ready = self.ready.as_ref()?;
        let nodes = ready
            .nodes
            .map(|nodes| format!(" on {nodes} nodes"))
            .unwrap_or_default();
        Some(Action::Await {
            until: format!("{} is ready{nodes}", self.object),
            within_s: ready.within_s(),
        })
    }

    /// Whether it has come to what it is for, as an attribute.
    fn readiness(&self, object: Option<&Value>, diff: &mut ResourceDiff) {
        let Some(ready) = &self.ready else { return };
        let (found, hopeless) =
            match object.map(|object| ready.evaluate(object, &self.object.kind_and_group())) {
                None => (Reading::Absent, None),
                Some(Readiness::Ready) => (Reading::is(READY), None),
                Some(Readiness::Not { words, hopeless }) => (Reading::is(words), hopeless),
            };
        diff.hopeless = hopeless;
        diff.may_be_stale = object.is_some_and(|object| ready.may_be_stale(object));
        diff.attributes.insert(
            READY.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(READY), found).that_settles(),
        );
    }
}

fn read_live_object(asked: &DesiredObject, answers: &ReadResults) -> LiveObject {
    looked_at(&asked.live(), answers)
}

fn set_presence_attribute(diff: &mut ResourceDiff, desired: Reading, actual: Reading) {
    diff.attributes.insert(
        OBJECT.to_owned(),
        Attribute::in_plane(Plane::Persisted, desired, actual),
    );
}

#[cfg(test)]
mod nonsense_tests;
#[cfg(test)]
mod recreation_tests;
#[cfg(test)]
mod tests;
