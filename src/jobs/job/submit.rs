//! Makes the objects of a job, all or none: one whose name is taken is left alone, and what was
//! made before a refusal is undone.

use super::delete::{BESIDE, Deletable, ObjectDeletionOutcome, delete_job_object};
use super::kind::{JOB_LABEL, JobKind};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::Action;
use railwright_resource::kubernetes_object::manifest;
use railwright_resource::kubernetes_object::request::{
    NO_KIND, ObjectName, SUBMISSION, TAKEN, UNMARKED,
};
use railwright_transport::{ExecutionOutcome, JobWriter, TransportError};
use serde_json::Value;

/// A job that is to be submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// What does the job.
    pub kind: JobKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// All its objects, in the order in which they are made.
    pub objects: Vec<(ObjectName, Value)>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSubmissionOutcome {
    /// All objects were made; what the server warns of.
    Made(Vec<String>),
    /// An object of this name is there already, made by somebody else. What was made before it and
    /// could not be rolled back is `left`.
    Taken {
        object: ObjectName,
        why: String,
        left: Vec<ObjectName>,
    },
    /// The server does not take an object. What was made before it and could not be rolled back is
    /// `left`.
    Refused {
        object: ObjectName,
        why: String,
        left: Vec<ObjectName>,
    },
    /// The server does not know an object's kind. What was made before it and could not be rolled
    /// back is `left`.
    UnknownKind {
        object: ObjectName,
        why: String,
        left: Vec<ObjectName>,
    },
    /// Whether the object was made is not known.
    Unknown {
        object: ObjectName,
        why: String,
        left: Vec<ObjectName>,
    },
}

/// The job in a text of YAML documents, as `job render` writes it; the error says what is wrong
/// with the text. `namespace` counts where the text names none, and no other is taken.
pub fn parse_submission(text: &str, namespace: Option<&str>) -> Result<Submission, Reason> {
    let documents = parse_documents(text)?;
    let (kind, job) = find_main_job(&documents)?;
    let namespace = match (find_stated_namespace(&documents)?, namespace) {
        (Some(stated), Some(asked)) if stated != asked => {
            return Err(format!(
                "it is of the namespace {}, and not of {asked}",
                one_line(&stated, 63)
            )
            .into());
        }
        (Some(stated), _) => stated,
        (None, asked) => asked.unwrap_or("default").to_owned(),
    };
    let mut objects: Vec<(ObjectName, Value)> = Vec::new();
    for mut document in documents {
        let object = find_job_part(&document, kind, &namespace)?;
        set_namespace_and_job(&mut document, &namespace, &job.name)?;
        // The second would be taken for a first that was made, and whose answer got lost.
        if objects.iter().any(|(other, _)| *other == object) {
            return Err(format!("{object} is in it twice").into());
        }
        objects.push((object, document));
    }
    // What cannot be undone is made last.
    objects.sort_by_key(
        |(object, manifest)| match takes_only_its_own_along(manifest) {
            true => 0,
            false if object.kind == "Service" => 1,
            false => 2,
        },
    );
    Ok(Submission {
        kind,
        namespace,
        name: job.name,
        objects,
    })
}

/// The documents that are not empty.
fn parse_documents(text: &str) -> Result<Vec<Value>, Reason> {
    let mut documents: Vec<Value> = serde_yaml::from_multiple(text)
        .map_err(|error| format!("it is no YAML: {}", one_line(&error.to_string(), 200)))?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

fn parse_job_kind(document: &Value) -> Option<JobKind> {
    JobKind::of(document.get("kind")?.as_str()?)
}

/// The kind and name of the one job among the documents.
fn find_main_job(documents: &[Value]) -> Result<(JobKind, ObjectName), Reason> {
    let jobs = documents.iter().filter_map(|document| {
        Some((
            parse_job_kind(document)?,
            manifest::parse_object_name(document)?,
        ))
    });
    // A TensorBoard is a Deployment beside the job.
    let main = jobs.min_by_key(|(kind, _)| *kind);
    let (kind, job) = main.ok_or(
        "there is no job in it: an MPIJob, PyTorchJob, RayCluster, Deployment, Job or Pod with a \
         name",
    )?;
    if !kind.versions().contains(&job.api_version.as_str()) {
        return Err(format!(
            "a {} of {} is nothing that railwright knows",
            kind.word(),
            one_line(&job.api_version, 60)
        )
        .into());
    }
    // A pair that is compared shares its network, and a job is deleted by its own name.
    let kinds = documents.iter().filter_map(parse_job_kind);
    let count = kinds.filter(|other| *other == kind).count();
    if count > 1 && matches!(kind, JobKind::Mpi | JobKind::Pytorch | JobKind::Ray) {
        return Err(format!(
            "there are {count} jobs in it ({}): submit one after the other",
            kind.word()
        )
        .into());
    }
    Ok((kind, job))
}

/// The first namespace that a document names.
fn find_stated_namespace(documents: &[Value]) -> Result<Option<String>, Reason> {
    let mut first = None;
    for document in documents {
        let Some(stated) = document.pointer("/metadata/namespace") else {
            continue;
        };
        // `y` and `off` without quotes are no texts in YAML.
        let Some(text) = stated.as_str() else {
            return Err(format!(
                "a namespace is no text, but {}",
                one_line(&stated.to_string(), 40)
            )
            .into());
        };
        first.get_or_insert_with(|| text.to_owned());
    }
    Ok(first)
}

/// The name of an object that belongs to a job of this kind in this namespace.
fn find_job_part(document: &Value, kind: JobKind, namespace: &str) -> Result<ObjectName, Reason> {
    let object = manifest::parse_object_name(document)
        .ok_or("an object in it has no `apiVersion`, `kind` or `metadata.name`")?;
    let named = (object.api_version.as_str(), object.kind.as_str());
    if object.kind != kind.word() && !BESIDE.contains(&named) {
        let what = one_line(&format!("{} of {}", object.kind, object.api_version), 90);
        return Err(format!(
            "an object in it is a {what}, which is no part of a job: `job delete` would leave it, \
             so apply it apart"
        )
        .into());
    }
    if let Some(own) = object.namespace.as_deref()
        && own != namespace
    {
        return Err(format!(
            "its objects are in several namespaces: {namespace} and {}",
            one_line(own, 63)
        )
        .into());
    }
    Ok(ObjectName {
        namespace: Some(namespace.to_owned()),
        ..object
    })
}

/// The label is how the objects of a job are found again.
fn set_namespace_and_job(document: &mut Value, namespace: &str, job: &str) -> Result<(), Reason> {
    let metadata = document
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .ok_or("`metadata` is no map")?;
    metadata.insert("namespace".to_owned(), namespace.into());
    metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Default::default()))
        .as_object_mut()
        .ok_or("`metadata.labels` is no map")?
        .insert(JOB_LABEL.to_owned(), job.into());
    Ok(())
}

/// Makes all objects. Each bears a word that no other submission has: what is there when an answer
/// got lost is known by it, and so is what may be undone.
pub async fn submit_job(
    writer: &JobWriter,
    submission: &Submission,
    word: &str,
) -> Result<JobSubmissionOutcome, TransportError> {
    let mut made: Vec<&(ObjectName, Value)> = Vec::new();
    let names = |made: &[&(ObjectName, Value)]| made.iter().map(|part| part.0.clone()).collect();
    let mut warnings = Vec::new();
    for part in &submission.objects {
        let (object, manifest) = part;
        let action = Action::CreateObject {
            object: object.clone(),
            manifest: add_submission_annotation(manifest, word),
        };
        let object = object.clone();
        let (code, stdout, stderr) = match writer.perform(&action, "job").await {
            Ok(ExecutionOutcome::Ended {
                code,
                stdout,
                stderr,
                ..
            }) => (code, stdout, stderr),
            Ok(ExecutionOutcome::Unknown { reason }) => {
                return Ok(JobSubmissionOutcome::Unknown {
                    object,
                    why: one_line(reason.as_words(), 300),
                    left: names(&made),
                });
            }
            Err(error) if made.is_empty() => return Err(error),
            Err(error) => {
                return Ok(JobSubmissionOutcome::Unknown {
                    object,
                    why: error.one_line(),
                    left: names(&made),
                });
            }
        };
        if code == 0 {
            warnings.extend(stdout.lines().map(|line| one_line(line, 300)));
            made.push(part);
            continue;
        }
        let why = format_error_output(&stderr);
        let mut left = take_back(writer, &made, word).await;
        if code == UNMARKED {
            left.push(object.clone());
        }
        return Ok(match code {
            TAKEN => JobSubmissionOutcome::Taken { object, why, left },
            NO_KIND => JobSubmissionOutcome::UnknownKind { object, why, left },
            _ => JobSubmissionOutcome::Refused { object, why, left },
        });
    }
    Ok(JobSubmissionOutcome::Made(warnings))
}

fn format_error_output(stderr: &str) -> String {
    one_line(stderr.trim_start_matches("railwright: "), 600)
}

/// The manifest with the word of its submission.
fn add_submission_annotation(manifest: &Value, word: &str) -> Value {
    let mut manifest = manifest.clone();
    let metadata = manifest.get_mut("metadata");
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        let annotations = metadata.entry("annotations").or_insert(Value::Null);
        if annotations.is_null() {
            *annotations = Value::Object(Default::default());
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(SUBMISSION.to_owned(), word.into());
        }
    }
    manifest
}

/// Takes away what this submission made, the last first; what could not be, or what may have taken
/// something of others along by now.
async fn take_back(
    writer: &JobWriter,
    made: &[&(ObjectName, Value)],
    word: &str,
) -> Vec<ObjectName> {
    let mut left = Vec::new();
    for (name, manifest) in made.iter().rev() {
        let is_gone = takes_only_its_own_along(manifest)
            && matches!(
                delete_job_object(writer, Deletable::Submitted { name, word }).await,
                Ok(Ok((
                    ObjectDeletionOutcome::Gone | ObjectDeletionOutcome::WasGone,
                    _
                )))
            );
        if !is_gone {
            left.push(name.clone());
        }
    }
    left
}

/// Whether nothing that others made goes with an object when it is deleted. Controllers take what
/// others made and fits their selector for their own: ReplicaSets and pods
/// (kubernetes.io/docs/concepts/workloads/controllers/replicaset, "Non-Template Pod acquisitions"),
/// and a Service without a selector has endpoints that somebody wrote by hand.
fn takes_only_its_own_along(manifest: &Value) -> bool {
    let spec = manifest.get("spec").unwrap_or(&Value::Null);
    match manifest.get("kind").and_then(Value::as_str) {
        Some("ConfigMap" | "Pod") => true,
        Some("Service") => spec["selector"]
            .as_object()
            .is_some_and(|selector| !selector.is_empty()),
        Some("Job") => matches!(spec["manualSelector"], Value::Null | Value::Bool(false)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whoever_has_no_selector_of_its_own_may_have_taken_something() {
        for (kind, spec, is_alone) in [
            ("Service", json!({ "selector": { "app": "a" } }), true),
            ("Service", json!({ "selector": {} }), false),
            ("Service", json!({ "selector": null }), false),
            ("Service", json!(null), false),
            ("Job", json!({}), true),
            ("Job", json!({ "manualSelector": false }), true),
            ("Job", json!({ "manualSelector": true }), false),
            (
                "Deployment",
                json!({ "selector": { "matchLabels": { "app": "a" } } }),
                false,
            ),
        ] {
            let manifest = json!({ "kind": kind, "spec": spec });
            assert_eq!(takes_only_its_own_along(&manifest), is_alone, "{manifest}");
        }
    }

    #[test]
    fn what_may_have_adopted_is_made_last() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: jp }\n\
                    ---\napiVersion: v1\nkind: Service\nmetadata: { name: by-hand }\n\
                    ---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: jp }\n\
                    ---\napiVersion: v1\nkind: Service\nmetadata: { name: jp }\n\
                    spec: { selector: { app: jp } }\n";
        let job = parse_submission(text, None).unwrap();
        let order = job.objects.iter().map(|(object, _)| object.to_string());
        assert_eq!(
            order.collect::<Vec<_>>(),
            [
                "ConfigMap.core default/jp",
                "Service.core default/jp",
                "Service.core default/by-hand",
                "Deployment.apps default/jp"
            ]
        );
    }

    #[test]
    fn a_job_is_read_with_its_namespace_and_bears_its_name() {
        let text = "---\n\
                    apiVersion: v1\n\
                    kind: Service\n\
                    metadata: { name: board }\n\
                    ---\n\
                    apiVersion: kubeflow.org/v1\n\
                    kind: PyTorchJob\n\
                    metadata:\n  name: mnist\n  labels: { app: x }\n\
                    ---\n";
        let job = parse_submission(text, Some("ml")).unwrap();
        assert_eq!(
            (
                job.kind,
                job.namespace.as_str(),
                job.name.as_str(),
                job.objects.len()
            ),
            (JobKind::Pytorch, "ml", "mnist", 2)
        );
        assert_eq!(
            job.objects[0].1["metadata"],
            json!({ "name": "board", "namespace": "ml", "labels": { JOB_LABEL: "mnist" } })
        );
        assert_eq!(
            job.objects[1].1["metadata"]["labels"],
            json!({ "app": "x", JOB_LABEL: "mnist" })
        );
        // What the text says of its namespace wins.
        let said = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: own}}";
        assert_eq!(parse_submission(said, None).unwrap().namespace, "own");
        let other = parse_submission(said, Some("ml")).unwrap_err();
        assert_eq!(other, "it is of the namespace own, and not of ml".into());
        for (text, why) in [
            ("", "there is no job in it"),
            (
                "{apiVersion: v1, kind: Service, metadata: {name: a}}",
                "there is no job in it",
            ),
            (
                "{apiVersion: other/v1, kind: MPIJob, metadata: {name: a}}",
                "is nothing that railwright knows",
            ),
            ("a: [", "it is no YAML"),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: 7}}",
                "`metadata.labels` is no map",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{kind: Service}",
                "has no `apiVersion`",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: one}}\n\
                 ---\n\
                 {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: two}}",
                "several namespaces",
            ),
            (
                "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a-rdma}}\n\
                 ---\n\
                 {apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a-tcp}}",
                "2 jobs in it (PyTorchJob): submit one after the other",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n\
                 ---\n\
                 {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n\
                 ---\n\
                 {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}",
                "is in it twice",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: y}}",
                "a namespace is no text, but true",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n\
                 ---\n\
                 {apiVersion: v1, kind: Secret, metadata: {name: a}}",
                "a Secret of v1, which is no part of a job",
            ),
        ] {
            let said = parse_submission(text, None).unwrap_err();
            assert!(said.as_words().contains(why), "{text}: {said}");
        }
    }
}
