//! Jobs of a cluster as a list and as documents.

use railwright_base::text::{format_count, format_duration, one_line};
use railwright_jobs::job::{ClusterJob, JobKind, JobListing, JobView, Phase, PodWaitReason};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

const FORMAT_VERSION: &str = "1.0";

/// `job list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobsDocument<'a> {
    format_version: &'static str,
    /// The namespace.
    namespace: &'a str,
    /// The jobs, by kind and name.
    jobs: Vec<ListedJob<'a>>,
    /// Kinds that could not be read.
    unread: Vec<UnreadKind<'a>>,
    /// Kinds that the cluster does not have.
    not_served: &'a [JobKind],
}

/// A kind that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
struct UnreadKind<'a> {
    kind: JobKind,
    why: &'a str,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedJob<'a> {
    kind: JobKind,
    name: &'a str,
    phase: Phase,
    /// Why, where its controller says so.
    why: Option<String>,
    /// When it was made, RFC 3339.
    created: &'a str,
    /// It was submitted by railwright.
    submitted: bool,
}

/// `job watch --json`: the job as it stood at the end.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WatchedJobDocument<'a> {
    format_version: &'static str,
    kind: JobKind,
    namespace: &'a str,
    name: &'a str,
    phase: Phase,
    /// Why, where its controller says so.
    why: Option<&'a str>,
    /// What keeps it or its pods.
    kept: &'a [PodWaitReason],
    pods: Vec<JobPodDocument<'a>>,
    /// It was called stuck: it ran and wrote nothing for too long.
    stuck: bool,
    /// How long it was watched, in seconds.
    watched_s: u64,
}

/// A pod of it.
#[derive(Debug, Serialize, JsonSchema)]
struct JobPodDocument<'a> {
    name: &'a str,
    phase: &'a str,
    node: Option<&'a str>,
    role: Option<&'a str>,
    restarts: u64,
    /// What it asks of extended resources.
    asks: &'a BTreeMap<String, u64>,
    /// How its container ended.
    exit_code: Option<i64>,
}

impl<'a> JobsDocument<'a> {
    /// Of what was found.
    pub fn of(namespace: &'a str, looked: &'a JobListing) -> Self {
        let unread = looked
            .unread
            .iter()
            .map(|(kind, why)| UnreadKind { kind: *kind, why })
            .collect();
        let jobs = looked.jobs.iter().map(build_listed_job).collect();
        JobsDocument {
            format_version: FORMAT_VERSION,
            namespace,
            jobs,
            unread,
            not_served: &looked.unknown,
        }
    }
}

fn build_listed_job(found: &ClusterJob) -> ListedJob<'_> {
    let (phase, why) = found.kind.phase(&found.job);
    let (name, created) = (found.job.name.as_str(), found.job.created.as_str());
    ListedJob {
        kind: found.kind,
        name,
        phase,
        why,
        created,
        submitted: found.job.job.is_some(),
    }
}

impl<'a> WatchedJobDocument<'a> {
    /// Of the last look.
    pub fn of(view: &'a JobView, stuck: bool, watched_s: u64) -> Self {
        WatchedJobDocument {
            format_version: FORMAT_VERSION,
            kind: view.kind,
            namespace: &view.namespace,
            name: &view.name,
            phase: view.phase,
            why: view.why.as_deref(),
            kept: &view.kept,
            pods: view
                .pods
                .iter()
                .map(|pod| JobPodDocument {
                    name: &pod.name,
                    phase: &pod.phase,
                    node: pod.node.as_deref(),
                    role: pod.role.as_deref(),
                    restarts: pod.restarts,
                    asks: &pod.asks,
                    exit_code: pod.ended.as_ref().and_then(|ended| ended.code),
                })
                .collect(),
            stuck,
            watched_s,
        }
    }
}

/// A line for each job; `now` is in seconds since 1970.
pub fn render_job_list(namespace: &str, looked: &JobListing, now: i64) -> String {
    let place = one_line(namespace, 63);
    let mut text = match looked.jobs.len() {
        0 => format!("No job is in namespace {place}.\n"),
        all => format!("{} in namespace {place}\n\n", format_count(all, "job")),
    };
    let (mut rows, mut width) = (Vec::new(), 0);
    for found in &looked.jobs {
        let (phase, why) = found.kind.phase(&found.job);
        let name = one_line(&found.job.name, 40);
        width = name.chars().count().max(width);
        rows.push((
            name,
            found.kind.word(),
            phase.word(),
            format_job_age(&found.job.created, now),
            one_line(&why.unwrap_or_default(), 60),
        ));
    }
    for (name, kind, phase, age, why) in &rows {
        let line = format!("  {name:width$}  {kind:<10}  {phase:<9}  {age:>12}  {why}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !looked.unknown.is_empty() {
        let kinds: Vec<&str> = looked.unknown.iter().map(|kind| kind.word()).collect();
        text.push_str(&format!(
            "\nThe cluster does not have the kinds {}: their operators are not installed.\n",
            kinds.join(", ")
        ));
    }
    for (kind, why) in &looked.unread {
        text.push_str(&format!(
            "\n{} could not be read: {}\n",
            kind.word(),
            one_line(why, 300)
        ));
    }
    text
}

fn format_job_age(created: &str, now: i64) -> String {
    let Ok(at) = created.parse::<jiff::Timestamp>() else {
        return "-".to_owned();
    };
    match u64::try_from(now - at.as_second()) {
        Ok(seconds) => format_duration(seconds),
        Err(_) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::kubernetes_job::JobNow;
    use serde_json::json;

    #[test]
    fn a_list_says_how_far_each_is_and_what_is_not_there() {
        let found = |kind: JobKind, name: &str, status: serde_json::Value| {
            let (name, created) = (name.to_owned(), "2026-01-01T00:00:00Z".to_owned());
            ClusterJob {
                kind,
                api_version: String::new(),
                job: JobNow {
                    name,
                    created,
                    status,
                    ..JobNow::default()
                },
            }
        };
        let failed = json!({ "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "x\u{1b}[2J" }] });
        let looked = JobListing {
            jobs: vec![
                found(JobKind::Mpi, "nccl", failed),
                found(JobKind::Ray, "a-longer-name", json!({ "state": "ready" })),
            ],
            unread: vec![(JobKind::Deployment, "verb list is missing".to_owned())],
            unknown: vec![JobKind::Pytorch],
        };
        insta::assert_snapshot!(render_job_list("ml", &looked, 1_767_225_600 + 3_900), @r"
        2 jobs in namespace ml

          nccl           MPIJob      failed        1 h 5 min  BackoffLimitExceeded: x�[2J
          a-longer-name  RayCluster  running       1 h 5 min

        The cluster does not have the kinds PyTorchJob: their operators are not installed.

        Deployment could not be read: verb list is missing
        ");
        assert_eq!(
            render_job_list("ml", &JobListing::default(), 0),
            "No job is in namespace ml.\n"
        );
    }
}
