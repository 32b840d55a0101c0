//! Takes a job away: its object, whose pods go with it, and all that was submitted with it.

use super::kind::JOB_LABEL;
use super::look::{ClusterJob, KubernetesReadOutcome, parse_kubernetes_result};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_job::JobNow;
use railwright_resource::kubernetes_object::ownership::describe_object_owner;
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::{
    ABSENT, KubernetesRead, ObjectName, SUBMISSION,
};
use railwright_resource::{Action, Read};
use railwright_system::clock::{self, Deadline};
use railwright_transport::{ExecutionOutcome, JobWriter, Reader, TransportError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an object may take to go: pods have 30 s to end by themselves
/// (kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle).
const GOES_WITHIN: Duration = Duration::from_secs(90);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Kinds of objects that are submitted beside a job (a TensorBoard, the Service of a master).
pub(super) const BESIDE: [(&str, &str); 5] = [
    ("batch/v1", "Job"),
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
];

/// What came of taking an object away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectDeletionOutcome {
    /// It is gone, and so is what it had.
    Gone,
    /// It was not there any more.
    WasGone,
    /// What has its name now is no longer the object that was listed, and was left alone: who made
    /// it.
    LeftAlone(String),
    /// It was asked to end, and is still there after so many seconds.
    StillEnds(u64),
}

/// An object of a job, as the list has it that is shown before anything is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name.
    pub name: ObjectName,
    /// The server's own name for this very object.
    uid: String,
    /// The job that it was submitted for.
    job: Option<String>,
}

impl ListedObject {
    fn new(name: ObjectName, now: &JobNow) -> Self {
        ListedObject {
            name,
            uid: now.uid.clone(),
            job: now.job.clone(),
        }
    }
}

/// All objects of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobObjects {
    /// Those that bear its name as their label, and it.
    pub listed: Vec<ListedObject>,
    /// Kinds that could not be read, each with the reason: some of its objects may be of these.
    pub unread: Vec<(String, String)>,
}

/// Which object of a name is deleted.
#[derive(Debug, Clone, Copy)]
pub enum Deletable<'a> {
    /// The very one that was listed.
    Listed(&'a ListedObject),
    /// The one that the submission with this word made.
    Submitted { name: &'a ObjectName, word: &'a str },
}

impl Deletable<'_> {
    fn name(&self) -> &ObjectName {
        match self {
            Deletable::Listed(listed) => &listed.name,
            Deletable::Submitted { name, .. } => name,
        }
    }

    /// What it means that something else has its name by now, or that it seems so: an object with
    /// the label of a job and without a submission's word may be what was made, with the word taken
    /// from it on the way.
    fn report_replacement(&self, live: &Value) -> ObjectDeletionOutcome {
        let is_stripped = find_job_label(live).is_some() && find_submission_word(live).is_none();
        match self {
            Deletable::Submitted { .. } if !is_stripped => ObjectDeletionOutcome::WasGone,
            _ => ObjectDeletionOutcome::LeftAlone(describe_object_owner(live)),
        }
    }

    /// Whether what is there now is it.
    fn is(&self, live: &Value) -> bool {
        match self {
            Deletable::Listed(listed) => {
                find_object_uid(live) == Some(&listed.uid)
                    && find_job_label(live) == listed.job.as_deref()
            }
            Deletable::Submitted { word, .. } => find_submission_word(live) == Some(word),
        }
    }
}

/// All objects of a job: `main`, and those beside it that bear its name as their label and were
/// made by the same submission. `others` are jobs of the same name that are not meant.
pub async fn objects_of(
    reader: &Reader,
    (namespace, name): (&str, &str),
    main: &[ClusterJob],
    others: &[ClusterJob],
) -> Result<JobObjects, TransportError> {
    let reads = BESIDE.map(|(api_version, kind)| KubernetesRead::Jobs {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
    });
    let answers = reader.read(&reads.clone().map(Read::Kubernetes)).await?;
    let mut objects = JobObjects::default();
    let mut seen: BTreeSet<ObjectName> = BTreeSet::new();
    let is_named = |found: &&ClusterJob| found.job.name == name;
    let own: Vec<ClusterJob> = main.iter().filter(is_named).cloned().collect();
    for found in main {
        // One of another name came along with a job that bears this one.
        if found.job.name != name && !is_part_of_job(&found.job, &own, others) {
            continue;
        }
        let object = ListedObject::new(found.object(), &found.job);
        seen.insert(object.name.clone());
        objects.listed.push(object);
    }
    for (read, (api_version, kind)) in reads.iter().zip(BESIDE) {
        let found = match parse_kubernetes_result::<Vec<JobNow>>(&answers, read) {
            KubernetesReadOutcome::Is(found) => found,
            // Somebody who may not list Services has made none of them through us.
            KubernetesReadOutcome::NoKind | KubernetesReadOutcome::Denied(_) => continue,
            KubernetesReadOutcome::Unread(reason) => {
                objects.unread.push((kind.to_owned(), reason));
                continue;
            }
        };
        for one in &found {
            if one.job.as_deref() != Some(name) || !is_part_of_job(one, &own, others) {
                continue;
            }
            let object = ObjectName {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: Some(namespace.to_owned()),
                name: one.name.clone(),
            };
            if seen.insert(object.clone()) {
                objects.listed.push(ListedObject::new(object, one));
            }
        }
    }
    Ok(objects)
}

/// Whether an object that bears a job's name as its label is of these jobs, and of none of the
/// others. Of a job that is gone all are that are left. What bears no submission's word may have
/// lost it on the way.
fn is_part_of_job(one: &JobNow, main: &[ClusterJob], others: &[ClusterJob]) -> bool {
    let is_of_others = others
        .iter()
        .any(|other| other.job.uid == one.uid || other.job.submission == one.submission);
    let mut submissions = main.iter().map(|main| &main.job.submission);
    let is_of_main = submissions
        .any(|word| *word == one.submission || word.is_none() || one.submission.is_none());
    !is_of_others && (main.is_empty() || is_of_main)
}

/// Takes an object away and waits until it is gone; the volumes in which it left something are
/// named. Another one of its name is left alone.
pub async fn delete_job_object(
    writer: &JobWriter,
    which: Deletable<'_>,
) -> Result<Result<(ObjectDeletionOutcome, BTreeSet<String>), Reason>, TransportError> {
    let object = which.name();
    let live = match read_live_object(writer, object).await? {
        Ok(Some(live)) => live,
        Ok(None) => return Ok(Ok((ObjectDeletionOutcome::WasGone, BTreeSet::new()))),
        Err(reason) => return Ok(Err(reason)),
    };
    if !which.is(&live) {
        return Ok(Ok((which.report_replacement(&live), BTreeSet::new())));
    }
    let stays = list_volumes_outliving_pods(&live);
    let action = Action::DeleteObject {
        object: object.clone(),
        precondition: ObjectPrecondition::for_deletion(&live),
        anew: false,
    };
    let unsure = match writer.perform(&action, "job").await? {
        ExecutionOutcome::Ended { code: 0, .. } => None,
        ExecutionOutcome::Ended { stderr, .. } => {
            return Ok(Err(one_line(
                stderr.trim_start_matches("railwright: "),
                300,
            )
            .into()));
        }
        ExecutionOutcome::Unknown { reason } => Some(one_line(reason.as_words(), 300)),
    };
    if is_gone_in_time(writer, object, &live).await? {
        return Ok(Ok((ObjectDeletionOutcome::Gone, stays)));
    }
    let still_ends = ObjectDeletionOutcome::StillEnds(GOES_WITHIN.as_secs());
    Ok(match unsure {
        Some(reason) => Err(reason.into()),
        None => Ok((still_ends, stays)),
    })
}

/// Waits until an object is gone, or another one has its name; false where it still is there after
/// `GOES_WITHIN`.
async fn is_gone_in_time(
    writer: &JobWriter,
    object: &ObjectName,
    live: &Value,
) -> Result<bool, TransportError> {
    let deadline = Deadline::after(GOES_WITHIN);
    loop {
        let is_gone = match read_live_object(writer, object).await? {
            Ok(Some(now)) => find_object_uid(&now) != find_object_uid(live),
            Ok(None) => true,
            Err(_) => false,
        };
        if is_gone || deadline.left().is_zero() {
            return Ok(is_gone);
        }
        clock::sleep_for(LOOK).await;
    }
}

fn find_object_uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid")?.as_str()
}

/// The job that an object was submitted for.
fn find_job_label(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/labels")?
        .get(JOB_LABEL)?
        .as_str()
        .filter(|job| !job.is_empty())
}

/// The word of the submission that made an object.
fn find_submission_word(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/annotations")?
        .get(SUBMISSION)?
        .as_str()
}

/// The object as it is; nothing where it is not there.
async fn read_live_object(
    writer: &JobWriter,
    object: &ObjectName,
) -> Result<Result<Option<Value>, Reason>, TransportError> {
    let read = Read::Kubernetes(KubernetesRead::Object(object.clone()));
    let answers = writer.reader().read(std::slice::from_ref(&read)).await?;
    Ok(match answers.output(&read) {
        Ok((0, out)) => serde_json::from_str(out)
            .map(Some)
            .map_err(|_| "the answer makes no sense".into()),
        Ok((ABSENT, _)) => Ok(None),
        Ok((_, why)) => Err(one_line(why, 300).into()),
        Err(reason) => Err(reason),
    })
}

/// Volumes that outlive the pods of an object: claims, and folders of nodes.
fn list_volumes_outliving_pods(object: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect_volumes(object, &mut found, 0);
    found
}

fn collect_volumes(value: &Value, found: &mut BTreeSet<String>, depth: usize) {
    // A manifest is not deeper; a hostile one is not followed.
    if depth > 32 {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let Some(claim) = value["persistentVolumeClaim"]["claimName"].as_str() {
                found.insert(format!("PersistentVolumeClaim {}", one_line(claim, 120)));
            }
            if let Some(path) = value["hostPath"]["path"].as_str() {
                found.insert(format!("{} on the nodes", one_line(path, 120)));
            }
            for field in fields.values() {
                collect_volumes(field, found, depth + 1);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_volumes(item, found, depth + 1);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobKind;
    use serde_json::json;

    #[test]
    fn what_another_jobs_submission_made_is_not_of_this_one() {
        let made = |uid: &str, submission: Option<&str>| ClusterJob {
            kind: JobKind::Pod,
            api_version: String::new(),
            job: JobNow {
                uid: uid.to_owned(),
                submission: submission.map(str::to_owned),
                ..JobNow::default()
            },
        };
        let main = [made("1", Some("s1"))];
        let others = [made("2", Some("s2")), made("3", None)];
        let is_part = |main: &[ClusterJob], uid: &str, submission: Option<&str>| {
            is_part_of_job(&made(uid, submission).job, main, &others)
        };
        assert!(is_part(&main, "4", Some("s1")), "its Service");
        assert!(!is_part(&main, "2", Some("s2")), "another job of its name");
        assert!(!is_part(&main, "5", Some("s2")), "what came with that");
        assert!(!is_part(&main, "3", None), "one that nobody submitted");
        assert!(!is_part(&main, "6", None), "nobody knows whose it is");
        assert!(!is_part(&[], "6", None));
        let alone = |submission| is_part_of_job(&made("6", submission).job, &main, &[]);
        assert!(alone(None) && alone(Some("s1")) && !alone(Some("s9")));
        let left = made("6", Some("s1")).job;
        assert!(is_part_of_job(&left, &[], &[]), "of one that is gone");
        assert!(!is_part(&[], "5", Some("s2")));
    }

    #[test]
    fn volumes_that_stay_are_named() {
        let volumes_of = |volumes: Value| {
            volumes_in(
                &json!({ "spec": { "replicas": { "Master": { "template": { "spec": { "volumes": volumes } } } } } }),
            )
        };
        let all = volumes_of(
            json!([{ "persistentVolumeClaim": { "claimName": "logs" } }, { "hostPath": { "path": "/data" } }, { "emptyDir": {} }]),
        );
        assert_eq!(all, ["/data on the nodes", "PersistentVolumeClaim logs"]);
    }

    fn volumes_in(object: &Value) -> Vec<String> {
        list_volumes_outliving_pods(object).into_iter().collect()
    }
}
