//! Asks a cluster for jobs, their pods and what keeps them. Reads only.

use super::kind::{JobKind, Phase};
use super::view::JobView;
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_job::{JobNow, JobPod, Room};
use railwright_resource::kubernetes_object::request::{KubernetesRead, NO_KIND, ObjectName};
use railwright_resource::{AnswerStatus, Read, ReadResults};
use railwright_transport::{Reader, TransportError};
use serde::de::DeserializeOwned;

/// A job of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterJob {
    /// Its kind.
    pub kind: JobKind,
    /// Group and version that it was read as.
    pub api_version: String,
    /// It.
    pub job: JobNow,
}

/// What was found in a namespace.
#[derive(Debug, Default)]
pub struct JobListing {
    /// By kind and name.
    pub jobs: Vec<ClusterJob>,
    /// Kinds that could not be read, each with the reason.
    pub unread: Vec<(JobKind, String)>,
    /// Kinds that the cluster does not have.
    pub unknown: Vec<JobKind>,
}

/// Looks at jobs.
pub struct JobReader<'a> {
    reader: &'a Reader,
    namespace: &'a str,
}

impl ClusterJob {
    /// It as an object.
    pub fn object(&self) -> ObjectName {
        ObjectName {
            api_version: self.api_version.clone(),
            kind: self.kind.word().to_owned(),
            namespace: Some(self.job.namespace.clone()),
            name: self.job.name.clone(),
        }
    }
}

impl<'a> JobReader<'a> {
    /// At those of a namespace.
    pub fn at(reader: &'a Reader, namespace: &'a str) -> Self {
        JobReader { reader, namespace }
    }

    /// All jobs of these kinds.
    pub async fn all(&self, kinds: &[JobKind]) -> Result<JobListing, TransportError> {
        let mut reads = Vec::new();
        for kind in kinds {
            for read in kind.reads(self.namespace) {
                reads.push(Read::Kubernetes(read));
            }
        }
        let answers = self.reader.read(&reads).await?;
        let mut listing = JobListing::default();
        for kind in kinds {
            let mut versions = Vec::new();
            for read in kind.reads(self.namespace) {
                let outcome = parse_kubernetes_result::<Vec<JobNow>>(&answers, &read);
                versions.push((find_api_version(&read), outcome));
            }
            listing.take(*kind, versions);
        }
        listing
            .jobs
            .sort_by(|a, b| (a.kind, &a.job.name).cmp(&(b.kind, &b.job.name)));
        Ok(listing)
    }

    /// A job as it stands now; nothing where it is gone, or another one has its name.
    pub async fn view(&self, found: &ClusterJob) -> Result<Option<JobView>, TransportError> {
        let read = KubernetesRead::Jobs {
            api_version: found.api_version.clone(),
            kind: found.kind.word().to_owned(),
            namespace: self.namespace.to_owned(),
        };
        let pods = found
            .kind
            .selector(&found.job)
            .map(|selector| KubernetesRead::JobPods {
                namespace: self.namespace.to_owned(),
                selector,
            });
        let asked = [Some(&read), pods.as_ref()].into_iter().flatten();
        let asked: Vec<Read> = asked.cloned().map(Read::Kubernetes).collect();
        let answers = self.reader.read(&asked).await?;
        let jobs = match parse_kubernetes_result::<Vec<JobNow>>(&answers, &read) {
            KubernetesReadOutcome::Is(jobs) => jobs,
            KubernetesReadOutcome::NoKind => return Ok(None),
            KubernetesReadOutcome::Denied(reason) | KubernetesReadOutcome::Unread(reason) => {
                return Ok(Some(JobView::unread(found, reason)));
            }
        };
        let Some(job) = jobs.into_iter().find(|job| job.uid == found.job.uid) else {
            return Ok(None);
        };
        let mut pods: Result<Vec<JobPod>, Reason> = match &pods {
            Some(pods) => parse_kubernetes_result(&answers, pods).result(),
            None => Err("its selector does not tell its pods from others".into()),
        };
        if let Ok(pods) = &mut pods {
            pods.retain(|pod| found.kind.is_pod_of(&job, pod));
        }
        let mut view = JobView::of(
            &ClusterJob {
                job,
                ..found.clone()
            },
            pods,
        );
        self.explain(&mut view, found).await?;
        Ok(Some(view))
    }

    /// What keeps it, asked only where something does.
    async fn explain(&self, view: &mut JobView, found: &ClusterJob) -> Result<(), TransportError> {
        let is_short = view
            .pods
            .iter()
            .any(|pod| pod.unscheduled.is_some() && !pod.asks.is_empty());
        let is_kept = matches!(view.phase, Phase::Waiting | Phase::Failed);
        let troubles = KubernetesRead::Troubles {
            object: found.object(),
            selector: None,
        };
        let mut reads = Vec::new();
        if is_short {
            reads.push(Read::Kubernetes(KubernetesRead::Room));
        }
        if is_kept {
            reads.push(Read::Kubernetes(troubles.clone()));
        }
        if reads.is_empty() {
            return Ok(());
        }
        let answers = self.reader.read(&reads).await?;
        let mut room: Option<Room> = None;
        if is_short {
            let outcome = parse_kubernetes_result(&answers, &KubernetesRead::Room);
            room = outcome.result().ok();
        }
        let mut warnings = Vec::new();
        if let Ok((_, out)) = answers.output(&Read::Kubernetes(troubles)) {
            for line in out.lines() {
                warnings.push(line.trim_start_matches("warning: ").to_owned());
            }
        }
        view.explain(room.as_ref(), warnings);
        Ok(())
    }

    /// What a pod's log says since a time, and whether there was more than is taken of one look;
    /// the error says why it cannot be had.
    pub async fn log(
        &self,
        pod: &JobPod,
        lines: u32,
        since: Option<&str>,
    ) -> Result<Result<(String, bool), Reason>, TransportError> {
        let (namespace, container) = (self.namespace.to_owned(), pod.container.clone());
        let read = KubernetesRead::Log {
            namespace,
            pod: pod.name.clone(),
            container,
            lines,
            since: since.map(str::to_owned),
        };
        let read = Read::Kubernetes(read);
        let answers = self.reader.read(std::slice::from_ref(&read)).await?;
        Ok(match answers.get(&read) {
            Some(answer) if answer.status == AnswerStatus::TooLong => {
                Ok((answer.out.clone(), true))
            }
            _ => match answers.output(&read) {
                Ok((0, out)) => Ok((out.to_owned(), false)),
                Ok((_, why)) => Err(one_line(why, 200).into()),
                Err(reason) => Err(reason),
            },
        })
    }
}

impl JobListing {
    /// The answers to all versions that a kind may be served as.
    fn take(&mut self, kind: JobKind, versions: Vec<(String, KubernetesReadOutcome<Vec<JobNow>>)>) {
        let mut is_known = false;
        for (api_version, said) in versions {
            match said {
                KubernetesReadOutcome::NoKind => continue,
                KubernetesReadOutcome::Unread(reason) | KubernetesReadOutcome::Denied(reason) => {
                    self.unread.push((kind, reason))
                }
                // What is served in two versions is the same objects.
                KubernetesReadOutcome::Is(_) if is_known => continue,
                KubernetesReadOutcome::Is(jobs) => {
                    for job in jobs {
                        if kind.is_of_all_sorts() && job.job.is_none() {
                            continue;
                        }
                        self.jobs.push(ClusterJob {
                            kind,
                            api_version: api_version.clone(),
                            job,
                        });
                    }
                }
            }
            is_known = true;
        }
        match is_known {
            true => {}
            // Every API server has them: what answers there says nothing that makes sense.
            false if kind.is_of_all_sorts() => self.unread.push((
                kind,
                "the server does not know it, as no API server of Kubernetes".to_owned(),
            )),
            false => self.unknown.push(kind),
        }
    }
}

/// What an answer came to.
pub(super) enum KubernetesReadOutcome<T> {
    Is(T),
    NoKind,
    /// No role allows it.
    Denied(String),
    Unread(String),
}

impl<T> KubernetesReadOutcome<T> {
    fn result(self) -> Result<T, Reason> {
        match self {
            KubernetesReadOutcome::Is(is) => Ok(is),
            KubernetesReadOutcome::NoKind => Err("the cluster does not have the kind".into()),
            KubernetesReadOutcome::Denied(reason) | KubernetesReadOutcome::Unread(reason) => {
                Err(reason.into())
            }
        }
    }
}

pub(super) fn parse_kubernetes_result<T: DeserializeOwned>(
    answers: &ReadResults,
    read: &KubernetesRead,
) -> KubernetesReadOutcome<T> {
    let read = Read::Kubernetes(read.clone());
    match answers.output(&read) {
        Ok((0, out)) => match serde_json::from_str(&answers.shown(out)) {
            Ok(value) => KubernetesReadOutcome::Is(value),
            Err(_) => KubernetesReadOutcome::Unread("the answer makes no sense".to_owned()),
        },
        Ok((NO_KIND, _)) => KubernetesReadOutcome::NoKind,
        Ok((_, why)) => KubernetesReadOutcome::Unread(one_line(&answers.shown(why), 300)),
        Err(reason)
            if answers
                .get(&read)
                .is_some_and(|answer| answer.status == AnswerStatus::Denied) =>
        {
            KubernetesReadOutcome::Denied(reason.to_string())
        }
        Err(reason) => KubernetesReadOutcome::Unread(reason.to_string()),
    }
}

fn find_api_version(read: &KubernetesRead) -> String {
    if let KubernetesRead::Jobs { api_version, .. } = read {
        api_version.clone()
    } else {
        String::new()
    }
}
