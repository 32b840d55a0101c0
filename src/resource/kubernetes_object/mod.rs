//! `kubernetes_object`: any object of a Kubernetes cluster, applied as one whole wish by
//! server-side apply.
//!
//! What a change would come to is told by the server itself, which answers an apply with force as a
//! dry run; a plan compares that answer with the object as it is. Where the server does not let us
//! preview, the fields of the wish are compared with the object, and the difference says so.
//!
//! A field that somebody else set on an object of ours is drift, and set back. On an object that
//! was never ours it is a conflict: the step is held and names the manager, until `adopt: true`
//! takes the object over.

pub mod access;
pub mod applyset;
mod disturbs;
pub mod exec;
pub mod finalizers;
pub mod known_kinds;
pub mod labels;
mod left;
pub(super) mod looks;
pub mod manifest;
pub mod nodes;
pub mod ownership;
pub mod paths;
pub mod place;
mod pods;
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
use self::ownership::{
    FieldManager, add_ownership_marks, find_field_managers, is_adopted, is_mark, is_ours,
    taken_over,
};
use self::paths::FieldDifference;
use self::precondition::ObjectPrecondition;
use self::preview::ObjectPreview;
use self::readiness::{Readiness, ReadinessCriteria};
use self::replace::ReplacementReason;
use self::request::{KubernetesRead, NO_KIND, ObjectName};
use super::kind::NotReadyReason;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Lacking, Plane, Read, ReadResults,
    Reading, ResourceKind,
};
use railwright_base::TargetKind;
use railwright_base::text::one_line;
use serde_json::{Value, json};

/// What a host would answer to a question for an API server, or do of an action for one: nothing
/// reaches it.
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
/// Pods that are told.
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

    fn check(&self, body: &Value) -> Vec<BodyError> {
        manifest::check_object_body(body)
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        parse_desired_object(wish)
            .map_or_else(Vec::new, |asked| vec![asked.live(), asked.preview()])
    }

    fn changes(&self, wish: &DesiredResource, removal: bool) -> Vec<(ObjectName, ApiVerb)> {
        let Some(DesiredObject {
            object,
            adopts,
            replaces,
            ..
        }) = parse_desired_object(wish)
        else {
            return Vec::new();
        };
        let stays = adopts || NEVER_REMOVED.contains(&object.kind_and_group().as_str());
        let verbs: &[ApiVerb] = match (removal, stays) {
            (false, _) if replaces => &[ApiVerb::Patch, ApiVerb::Create, ApiVerb::Delete],
            (false, _) => &[ApiVerb::Patch, ApiVerb::Create],
            (true, false) => &[ApiVerb::Delete],
            (true, _) if adopts => &[ApiVerb::Patch],
            (true, _) => &[],
        };
        verbs.iter().map(|verb| (object.clone(), *verb)).collect()
    }

    fn may_bring(&self, wish: &DesiredResource, needed: &str) -> bool {
        place::may_bring(wish, needed)
    }

    fn knows_its_own(&self) -> bool {
        true
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let Some(asked) = parse_desired_object(wish) else {
            return assessment;
        };
        match read_live_object(&asked, answers) {
            LiveObject::Is(object) => diff_live_object(&asked, &object, answers, &mut assessment),
            LiveObject::Absent => diff_missing_object(&asked, answers, &mut assessment),
            LiveObject::Unknown(reason) => set_presence_attribute(
                &mut assessment,
                Reading::is("present"),
                Reading::Unknown(reason),
            ),
        }
        if assessment
            .actions
            .iter()
            .any(|action| matches!(action, Action::ApplyObject { .. }))
        {
            disturbs::add_declared_disruption(&wish.body, &mut assessment);
        }
        assessment
    }

    fn left(&self, applied: &DesiredResource, answers: &ReadResults) -> Assessment {
        let judged = self.assess(applied, answers);
        let Some(asked) = parse_desired_object(applied) else {
            return judged;
        };
        let LiveObject::Is(object) = read_live_object(&asked, answers) else {
            return judged;
        };
        // Judged, only what differs is named; and what the server was not asked for cannot be
        // judged.
        let mut all = left::diff_leftover_fields(&asked, &object);
        if answers.get(&asked.preview()).is_some() {
            all.attributes.extend(judged.attributes);
        }
        all
    }

    fn troubles(&self, wish: &DesiredResource) -> Vec<Read> {
        parse_desired_object(wish)
            .and_then(|asked| asked.troubles())
            .into_iter()
            .collect()
    }

    fn trouble(&self, wish: &DesiredResource, answers: &ReadResults) -> Option<NotReadyReason> {
        let (_, lines) = answers
            .output(&parse_desired_object(wish)?.troubles()?)
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
    ) -> Assessment {
        undo::plan_object_undo(last_applied, before, answers)
    }
}

/// What an object that is made anew will say, but for what its address says: the smallest fields of
/// its wish, by their paths.
pub fn list_manifest_fields(wish: &DesiredResource) -> Vec<(String, Value)> {
    let said = ["apiVersion", "kind", "metadata.name", "metadata.namespace"];
    let all = manifest::parse_manifest(&wish.body)
        .map(|manifest| paths::collect_leaf_fields(&manifest))
        .unwrap_or_default();
    all.into_iter()
        .filter(|(path, _)| !said.contains(&path.as_str()))
        .collect()
}

/// True for an object that goes at once when it is deleted, with nothing of its own to go before.
pub fn owns_nothing(object: &ObjectName) -> bool {
    OWN_NOTHING.contains(&object.kind_and_group().as_str())
}

/// A wish as questions.
#[derive(Clone)]
struct DesiredObject {
    object: ObjectName,
    manifest: Value,
    /// The spec's cluster, whose mark ours have.
    cluster: String,
    /// Taken over, whoever made it; then it is never deleted.
    adopts: bool,
    /// Deleted and made anew where a field changes that never changes.
    replaces: bool,
    /// The same where one of these fields changes, though the server takes the change.
    made_once: Vec<String>,
    /// Where `adopt` and `replace` are said.
    beside: &'static str,
    /// What it has to come to; nothing where that is not judged.
    ready: Option<ReadinessCriteria>,
}

fn parse_desired_object(wish: &DesiredResource) -> Option<DesiredObject> {
    let cluster = wish.text("cluster").unwrap_or_default().to_owned();
    let adopts = wish.body.get("adopt").and_then(Value::as_bool) == Some(true);
    let manifest =
        add_ownership_marks(manifest::parse_manifest(&wish.body).ok()?, &cluster, adopts);
    let object = manifest::parse_object_name(&manifest)?;
    let ready = readiness::parse_readiness_criteria(&wish.body, &object.kind_and_group());
    let (replaces, made_once) = (
        replace::is_allowed(&wish.body),
        replace::list_replace_fields(&wish.body),
    );
    let beside = if wish.is_of_workload() {
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
        made_once,
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

    /// The same of an object that we took over earlier. It is asked as its wish says; see
    /// [`ObjectPreview::of_one_taken_over`].
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

    /// Applies it to the object that was looked at, and waits until it has come to what it is for.
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
    fn readiness(&self, object: Option<&Value>, assessment: &mut Assessment) {
        let Some(ready) = &self.ready else { return };
        let (found, hopeless) =
            match object.map(|object| ready.judge(object, &self.object.kind_and_group())) {
                None => (Reading::Absent, None),
                Some(Readiness::Ready) => (Reading::is(READY), None),
                Some(Readiness::Not { words, hopeless }) => (Reading::is(words), hopeless),
            };
        assessment.hopeless = hopeless;
        assessment.attributes.insert(
            READY.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(READY), found).that_settles(),
        );
    }
}

fn read_live_object(asked: &DesiredObject, answers: &ReadResults) -> LiveObject {
    looked_at(&asked.live(), answers)
}

fn set_presence_attribute(assessment: &mut Assessment, wanted: Reading, found: Reading) {
    assessment.attributes.insert(
        OBJECT.to_owned(),
        Attribute::in_plane(Plane::Persisted, wanted, found),
    );
}

fn diff_missing_object(asked: &DesiredObject, answers: &ReadResults, assessment: &mut Assessment) {
    set_presence_attribute(assessment, Reading::is("present"), Reading::Absent);
    asked.readiness(None, assessment);
    assessment.before = json!({ "existed": asked.adopts });
    assessment.actions = asked.apply_and_wait(ObjectPrecondition::Absent);
    let not_previewed = match preview::read_object_preview(asked, answers) {
        ObjectPreview::Is(_) => return,
        ObjectPreview::Refused(refusal) => {
            Err(format_server_refusal(&asked.object, &refusal.told()))
        }
        ObjectPreview::Unknown(reason)
            if answers.get(&asked.preview()).is_none() || reason.contains(preview::NO_DRY_RUN) =>
        {
            Ok(reason)
        }
        ObjectPreview::Unknown(reason) => Err(format!(
            "whether the API server takes {} is not known: {reason}; mend what keeps it from \
             answering a dry run, then plan again",
            asked.object
        )),
        ObjectPreview::NotAllowed(reason) => Ok(reason),
        ObjectPreview::NotYet(said) => {
            let no_kind = matches!(answers.output(&asked.live()), Ok((NO_KIND, _)));
            assessment.lacks = Some(Lacking {
                what: place::describe_prerequisite(&asked.object, no_kind),
                said,
            });
            return;
        }
    };
    match not_previewed {
        Ok(why) => assessment
            .attributes
            .values_mut()
            .for_each(|attribute| attribute.by = Some(format!("not previewed: {why}"))),
        Err(refusal) => {
            assessment.refusal = Some(refusal);
            assessment.actions.clear();
        }
    }
}

fn format_server_refusal(object: &ObjectName, message: &str) -> String {
    format!("the API server does not take {object}: {message}")
}

/// A wish and its preview, where the object was taken over earlier: that stays so.
fn keep_adoption(
    asked: &DesiredObject,
    previewed: ObjectPreview,
    is_adopted: bool,
) -> (DesiredObject, ObjectPreview) {
    let keeps = is_adopted && !asked.adopts;
    (
        if keeps {
            asked.taken_over()
        } else {
            asked.clone()
        },
        previewed.of_one_taken_over(keeps),
    )
}

fn diff_live_object(
    asked: &DesiredObject,
    object: &Value,
    answers: &ReadResults,
    assessment: &mut Assessment,
) {
    set_presence_attribute(assessment, Reading::is("present"), Reading::is("present"));
    let ours = is_ours(object, &asked.cluster);
    let (asked, previewed) = &keep_adoption(
        asked,
        preview::read_object_preview(asked, answers),
        ours && is_adopted(object),
    );
    let adopts = asked.adopts;
    assessment.before = json!({ "existed": !ours || adopts });
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        let how = finalizers::describe_deletion(object);
        assessment.refusal = Some(format!(
            "{} is {how}; a plan makes it anew once it is gone",
            asked.object
        ));
        set_presence_attribute(
            assessment,
            Reading::is("present"),
            Reading::is("being deleted"),
        );
        return;
    }
    let found = manifest::without_servers_part(object);
    let mut anew = None;
    let (fields, note) = match previewed {
        ObjectPreview::Is(preview) => (
            paths::diff_fields(&manifest::without_servers_part(preview), &found, false),
            None,
        ),
        ObjectPreview::NotAllowed(_) | ObjectPreview::NotYet(_) => (
            paths::diff_fields(&asked.manifest, &found, true),
            Some("not previewed"),
        ),
        ObjectPreview::Refused(refusal) => {
            let fields = paths::diff_fields(&asked.manifest, &found, true);
            match refusal.is_only_of_fields_that_never_change() {
                true if ours && asked.replaces && !adopts => {
                    anew = Some(ReplacementReason::NeverChanges)
                }
                true => {
                    assessment.refusal =
                        Some(replace::format_replace_advice(asked, &refusal.told(), ours))
                }
                false => {
                    assessment.refusal = Some(format_server_refusal(&asked.object, &refusal.told()))
                }
            }
            (fields, Some("not previewed"))
        }
        ObjectPreview::Unknown(reason) => {
            return set_presence_attribute(
                assessment,
                Reading::is("present"),
                Reading::Unknown(reason.clone()),
            );
        }
    };
    // What is as wished needs nobody's leave, and no mark of ours.
    let fields: Vec<FieldDifference> = fields
        .into_iter()
        .filter(|field| ours || adopts || !is_mark(field))
        .collect();
    asked.readiness(Some(object), assessment);
    if fields.is_empty() && assessment.refusal.is_none() {
        assessment.actions = asked
            .wait()
            .filter(|_| !assessment.is_met())
            .into_iter()
            .collect();
        return;
    }
    let mut theirs: Vec<String> = Vec::new();
    for field in &fields {
        let others: Vec<FieldManager> = find_field_managers(object, &field.path)
            .into_iter()
            .filter(|holder| holder.manager != MANAGER)
            .collect();
        theirs.extend(
            others
                .first()
                .map(|holder| format!("{} ({})", field.shown, holder.manager)),
        );
        assessment.attributes.insert(
            field.shown.clone(),
            build_field_attribute(field, others.first(), note),
        );
    }
    if !ours && !adopts && assessment.refusal.is_none() {
        assessment.refusal = Some(never_ours(asked, object, &theirs));
    }
    anew = anew.or_else(|| replace::of_changes(asked, &fields, assessment));
    match anew {
        Some(because) => replace::plan_replacement(
            asked,
            ObjectPrecondition::for_deletion(object),
            because,
            assessment,
        ),
        None => {
            pods::record_pod_disruption(asked, &fields, assessment);
            assessment.actions = asked.apply_and_wait(ObjectPrecondition::of(object));
        }
    }
}

/// What is said of an object that others made, who set these fields.
fn never_ours(asked: &DesiredObject, object: &Value, theirs: &[String]) -> String {
    let who = if theirs.is_empty() {
        String::new()
    } else {
        format!(", and others set {}", theirs.join(", "))
    };
    match release_of(object) {
        Some(release) => {
            format!(
                "it belongs to the release {} of Helm{who}: own the release (`helm_release`), not \
                 its objects",
                one_line(release, 60)
            )
        }
        None => format!(
            "it was never ours{who}; `adopt: true` {} takes it over",
            asked.beside
        ),
    }
}

/// The release of Helm that made it (helm/helm: pkg/action/validate.go).
fn release_of(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/annotations")?
        .get("meta.helm.sh/release-name")?
        .as_str()
}

fn build_field_attribute(
    field: &FieldDifference,
    holder: Option<&FieldManager>,
    note: Option<&str>,
) -> Attribute {
    let reading = |value: &Option<Value>| value.clone().map_or(Reading::Absent, Reading::Is);
    let by = holder.map(FieldManager::told);
    let by = match (by, note) {
        (Some(by), Some(note)) => Some(format!("{by}, {note}")),
        (by, note) => by.or_else(|| note.map(str::to_owned)),
    };
    Attribute {
        by,
        ..Attribute::in_plane(
            Plane::Persisted,
            reading(&field.wanted),
            reading(&field.found),
        )
    }
}

#[cfg(test)]
mod tests;
