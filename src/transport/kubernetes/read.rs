//! Reads: objects, previews and the cluster's record, many at a time. Nothing here changes anything
//! on the server.

use super::access_review;
use super::agents::{self, Agents};
use super::answer::{self, new_exit_answer};
use super::fault::KubernetesRequestError;
use super::jobs::{self, PodLogRequest};
use super::kinds::{self, Group, NotKnown};
use super::lists;
use super::nodes;
use super::pod_exec;
use super::server::{AT_ONCE, KubernetesRequest};
use super::{KubernetesLink, NAMESPACE};
use crate::{TransportError, fenced_script};
use futures_util::future::join;
use futures_util::{StreamExt as _, stream};
use http::Method;
use railwright_base::MachineId;
use railwright_resource::kubernetes_object::MANAGER;
use railwright_resource::kubernetes_object::refusal::Refusal;
use railwright_resource::kubernetes_object::request::{
    KubernetesRead, NO_KIND, NOT_SAID, ObjectName,
};
use railwright_resource::{AnswerStatus, Read, ReadResult, ReadResults};
use std::collections::BTreeMap;

/// The document of a server-side apply: JSON is YAML.
pub const APPLY: &str = "application/apply-patch+yaml";

/// The kinds of each group and version that some read is about.
pub type Groups = BTreeMap<String, Result<Group, NotKnown>>;

impl KubernetesLink {
    /// Every read with its answer; an error when the server answered none of them.
    pub(super) async fn read_all(&self, reads: &[Read]) -> Result<ReadResults, TransportError> {
        let objects: Vec<ObjectName> = reads.iter().filter_map(of_a_kind).collect();
        let groups = self.server.kinds.of(&self.server, objects.iter()).await;
        let agents = &agents::list_agents(&self.server, reads).await;
        // Made first: a stream over borrowed items is none that the compiler takes for `Send`.
        let (of_nodes, others): (Vec<&Read>, Vec<&Read>) =
            reads.iter().partition(|read| nodes::is_of_all(read));
        let asked: Vec<_> = others
            .iter()
            .map(|read| self.answer(read, &groups, agents))
            .collect();
        let (nodes, answered): (_, Vec<_>) = join(
            nodes::of_all(&self.server, &of_nodes),
            stream::iter(asked).buffered(AT_ONCE).collect(),
        )
        .await;
        let nodes: Vec<Result<ReadResult, KubernetesRequestError>> = match nodes {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(trouble) => vec![Err(trouble); of_nodes.len()],
        };
        let mut answers = ReadResults::default();
        let (mut first, mut told, mut has_record) = (None, false, true);
        for (read, answer) in others
            .into_iter()
            .zip(answered)
            .chain(of_nodes.into_iter().zip(nodes))
        {
            told |= answer.is_ok() && asks_server(read);
            let is_of_record = matches!(read, Read::File { path } if is_record(path));
            has_record &= answer.is_ok() || !is_of_record;
            let answer = answer.unwrap_or_else(|trouble| {
                let status = if matches!(trouble, KubernetesRequestError::TimedOut { .. }) {
                    AnswerStatus::TimedOut
                } else {
                    AnswerStatus::CutOff
                };
                if first.is_none() || is_of_record {
                    first = Some(trouble);
                }
                ReadResult {
                    status,
                    out: String::new(),
                }
            });
            answers.insert(read.key(), answer);
        }
        match first {
            // Without the record nobody can tell what is to be rolled back.
            Some(trouble) if !told || !has_record => Err(trouble.error(&self.server)),
            _ => Ok(answers),
        }
    }

    async fn answer(
        &self,
        read: &Read,
        groups: &Groups,
        agents: &Result<Agents, KubernetesRequestError>,
    ) -> Result<ReadResult, KubernetesRequestError> {
        match read {
            Read::Kubernetes(KubernetesRead::Exec(asked)) => match agents {
                Ok(agents) => Ok(agents::exec_in_agent_pod(&self.server, asked, agents).await),
                Err(trouble) => Err(trouble.clone()),
            },
            Read::Kubernetes(KubernetesRead::PodExec(asked)) => {
                pod_exec::exec_in_named_pod(&self.server, asked).await
            }
            Read::Host => self.installation().await,
            Read::File { path } if is_record(path) => self.record_as_file().await,
            Read::Kubernetes(KubernetesRead::PodsOn(node)) => {
                nodes::pods_on(&self.server, &self.silence, node).await
            }
            Read::Kubernetes(KubernetesRead::Troubles { object, selector }) => {
                lists::list_object_problems(&self.server, object, selector.as_deref()).await
            }
            Read::Kubernetes(KubernetesRead::Access(right)) => self.access(right).await,
            Read::Kubernetes(KubernetesRead::JobPods {
                namespace,
                selector,
            }) => jobs::list_job_pods(&self.server, namespace, selector).await,
            Read::Kubernetes(KubernetesRead::Room) => jobs::read_node_capacity(&self.server).await,
            Read::Kubernetes(KubernetesRead::Log {
                namespace,
                pod,
                container,
                lines,
                since,
            }) => {
                jobs::read_pod_log(
                    &self.server,
                    &PodLogRequest {
                        namespace,
                        pod,
                        container,
                        lines: *lines,
                        since: since.as_deref(),
                    },
                )
                .await
            }
            Read::Kubernetes(asked) => match of_a_kind(read) {
                Some(object) => self.object(asked, &object, groups).await,
                None => Ok(new_exit_answer(NOT_SAID, "it is about no kind")),
            },
            Read::HelmRelease(release) => Ok(self.release(release).await),
            _ => Ok(new_exit_answer(127, "")),
        }
    }

    /// Which cluster it is, as a host tells its machine-id: another one behind the same address has
    /// another UID of its own namespace.
    async fn installation(&self) -> Result<ReadResult, KubernetesRequestError> {
        let reply = self
            .server
            .ask(&KubernetesRequest::get(format!(
                "/api/v1/namespaces/{NAMESPACE}"
            )))
            .await?;
        let namespace = reply
            .json()
            .filter(|_| reply.status == 200)
            .unwrap_or_default();
        let machine = namespace["metadata"]["uid"]
            .as_str()
            .and_then(|uid| uid.replace('-', "").parse::<MachineId>().ok());
        Ok(new_exit_answer(
            0,
            machine.map_or_else(String::new, |machine| {
                format!("machine_id {machine}\nend\n")
            }),
        ))
    }

    pub(super) async fn object(
        &self,
        read: &KubernetesRead,
        object: &ObjectName,
        groups: &Groups,
    ) -> Result<ReadResult, KubernetesRequestError> {
        let group = match groups.get(&object.api_version) {
            Some(Ok(group)) => group,
            Some(Err(NotKnown::Trouble(trouble))) => return Err(trouble.clone()),
            Some(Err(NotKnown::Said(answer))) => return Ok(answer.clone()),
            None => return Ok(new_exit_answer(NOT_SAID, "its kind was not asked for")),
        };
        let Some(resource) = group.get(&object.kind) else {
            return Ok(new_exit_answer(NO_KIND, no_kind(object)));
        };
        match read {
            KubernetesRead::States { .. } => {
                return lists::list_object_states(&self.server, object, resource).await;
            }
            KubernetesRead::Kind(_) => {
                return Ok(access_review::new_resource_kind_answer(resource));
            }
            KubernetesRead::Jobs { .. } => {
                return jobs::list_jobs(&self.server, object, resource).await;
            }
            _ => {}
        }
        let path = match kinds::build_object_path(object, resource) {
            Ok(path) => path,
            Err(reason) if matches!(read, KubernetesRead::Preview { .. }) => {
                return Ok(answer::new_refused_answer(&Refusal::of_words(
                    reason.into(),
                )));
            }
            Err(reason) => return Ok(new_exit_answer(NOT_SAID, reason)),
        };
        let call = match read {
            KubernetesRead::Preview { manifest, .. } => KubernetesRequest::with(
                Method::PATCH,
                format!("{}&dryRun=All", apply_path(&path)),
                APPLY,
                manifest.clone(),
            ),
            _ => KubernetesRequest::get(path),
        };
        let reply = self.server.ask(&call).await?;
        if reply.status == 404
            && !reply.is_not_found()
            && matches!(
                self.server.kinds.is_served(&self.server, object).await,
                Ok(false)
            )
        {
            return Ok(new_exit_answer(NO_KIND, no_kind(object)));
        }
        Ok(answer::answer_from_reply(
            read,
            object,
            &resource.plural,
            &reply,
        ))
    }
}

/// The object that a read is about, or a nameless one of the kind.
fn of_a_kind(read: &Read) -> Option<ObjectName> {
    match read {
        Read::Kubernetes(KubernetesRead::States {
            api_version,
            kind,
            namespace,
        }) => Some(ObjectName {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: String::new(),
        }),
        Read::Kubernetes(KubernetesRead::Jobs {
            api_version,
            kind,
            namespace,
        }) => {
            let namespace = Some(namespace.clone());
            Some(ObjectName {
                api_version: api_version.clone(),
                kind: kind.clone(),
                namespace,
                name: String::new(),
            })
        }
        Read::Kubernetes(KubernetesRead::Troubles { .. } | KubernetesRead::PodsOn(_)) => None,
        Read::Kubernetes(read) => read.object().cloned(),
        _ => None,
    }
}

/// Where an object is applied: with force, because the whole manifest is ours, and with every
/// unknown field refused.
pub fn apply_path(path: &str) -> String {
    format!("{path}?fieldManager={MANAGER}&force=true&fieldValidation=Strict")
}

/// Where an object is made.
pub fn create_path(collection: &str) -> String {
    format!("{collection}?fieldManager={MANAGER}&fieldValidation=Strict")
}

/// The server has no such kind.
pub fn no_kind(object: &ObjectName) -> String {
    format!(
        "the server does not know the kind {} of {}",
        object.kind, object.api_version
    )
}

fn asks_server(read: &Read) -> bool {
    match read {
        Read::Kubernetes(_) | Read::HelmRelease(_) => true,
        Read::File { path } => is_record(path),
        _ => false,
    }
}

fn is_record(path: &str) -> bool {
    path.strip_prefix(fenced_script::FOLDER) == Some("/record.json")
}
