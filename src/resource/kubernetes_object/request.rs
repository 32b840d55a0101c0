//! What may be asked of a Kubernetes API server, as values: the transport turns them into requests.

use super::access::Right;
use super::exec::{Exec, PodExec};
use crate::node_field::NodeField;
use railwright_base::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One object of a cluster.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct ObjectName {
    /// Group and version as a manifest has them: `apps/v1`, `v1`.
    pub api_version: String,
    /// `DaemonSet`.
    pub kind: String,
    /// Not there for objects of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's own name.
    pub name: String,
}

impl ObjectName {
    /// The group; empty for the core one.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// The version within the group.
    pub fn version(&self) -> &str {
        self.api_version.rsplit('/').next().unwrap_or_default()
    }

    /// Kind and group as an address has them: `DaemonSet.apps`, `ConfigMap.core`.
    pub fn kind_and_group(&self) -> String {
        format!(
            "{}.{}",
            self.kind,
            if self.group().is_empty() {
                "core"
            } else {
                self.group()
            }
        )
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            self.kind_and_group(),
            self.namespace
                .as_ref()
                .map_or(self.name.clone(), |namespace| format!(
                    "{namespace}/{}",
                    self.name
                ))
        )
    }
}

/// One read of an API server. None of them changes anything there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KubernetesRead {
    /// The object as it is, with `metadata.managedFields`, as JSON. Exit 0; `ABSENT`, `NO_KIND`,
    /// `NOT_SAID`.
    Object(ObjectName),
    /// What the object would be after it was applied with force: a server-side apply as a dry run.
    /// Exit 0 and the object; `REFUSED`, `NO_KIND`, `NOT_SAID`.
    Preview {
        /// The object.
        object: ObjectName,
        /// The whole manifest, as JSON.
        manifest: String,
    },
    /// What every node is good for, a `nodes::NodeNow` by name: `{"gpu-001": {"ready": true,
    /// "schedulable": true, "gives": {"rdma/a": "63"}}}`, of what it gives only extended resources.
    /// Exit 0, `NOT_SAID`.
    Nodes,
    /// What every node says of a label or a taint, a `node_field::field::FieldNow` by name. Exit 0,
    /// `NOT_SAID`.
    NodeField(NodeField),
    /// The pods of the node of this name, a list of `node_pods::PodNow`. Exit 0, `NOT_SAID`.
    PodsOn(String),
    /// Objects of a kind by name, each with `metadata.generation` and `status` alone; a definition
    /// also with `served`, the versions of its kind (`{"v1": true}`). Exit 0; `NO_KIND`,
    /// `NOT_SAID`.
    States {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// The namespace, of objects that are in one.
        namespace: Option<String>,
    },
    /// Why an object does not come to what it is for, in words, a line each: what the containers of
    /// its pods wait for, where it is a workload, and warnings of it. Exit 0, `NOT_SAID`.
    Troubles {
        /// The object.
        object: ObjectName,
        /// Labels of its pods, `a=b,c=d`, where it has any.
        selector: Option<String>,
    },
    /// What the server calls the objects of this one's kind. Exit 0 and a
    /// `known_kinds::ApiResourceName` as JSON; `NO_KIND`, `NOT_SAID`.
    Kind(ObjectName),
    /// What a program says, run in the pod that an agent has on a node: the one question that is no
    /// request for an object. Exit 0 and an `exec::PodExecResult` as JSON; `ABSENT` the agent has
    /// no pod there that runs, `NOT_SAID`.
    Exec(Box<Exec>),
    /// What a program says, run in one pod that is named. Exit 0 and an `exec::PodExecResult` as
    /// JSON; `ABSENT` it is not there or does not run, `NOT_SAID`.
    PodExec(Box<PodExec>),
    /// Whether we are allowed something. Exit 0 we are, `REFUSED` we are not; `NOT_SAID`.
    Access(Right),
    /// Objects of a kind whose pods do jobs, a list of `kubernetes_job::JobNow`. Exit 0; `NO_KIND`,
    /// `NOT_SAID`.
    Jobs {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// The pods of a job, a list of `kubernetes_job::JobPod`. Exit 0, `NOT_SAID`.
    JobPods {
        /// The namespace.
        namespace: String,
        /// Their labels, `a=b,c=d`.
        selector: String,
    },
    /// What nodes give of extended resources and what their pods ask for, a `kubernetes_job::Room`.
    /// Exit 0, `NOT_SAID`.
    Room,
    /// The last lines of a container's log, each with its time before it. Exit 0, `ABSENT` the pod
    /// is gone, `NOT_SAID` there is none yet.
    Log {
        /// The namespace.
        namespace: String,
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// How many lines at most.
        lines: u32,
        /// Only lines of that second or later, RFC 3339.
        since: Option<String>,
    },
}

/// The object is not there.
pub const ABSENT: i32 = 1;
/// The server does not know the kind, or the namespace is not there.
pub const NO_KIND: i32 = 2;
/// The server does not take the object; the answer to a preview is a `refusal::Refusal` as JSON.
pub const REFUSED: i32 = 3;
/// The server did not say; the answer is why (a webhook that refuses dry runs, an error of its
/// own).
pub const NOT_SAID: i32 = 4;
/// Of an action: what it goes by is no longer there, and nothing was changed.
pub const MOVED: i32 = 5;
/// Of an object that is to be made: one of this name is there, and was left alone.
pub const TAKEN: i32 = 7;
/// Of an object that was made: it was stored without our marks, and stands.
pub const UNMARKED: i32 = 8;
/// Of an eviction: a disruption budget does not allow it now, and nothing was changed.
pub const NOT_NOW: i32 = 6;

/// The annotation of what a submission made, with a word that no other submission has: what a lost
/// answer left is known again by it.
pub const SUBMISSION: &str = "railwright.io/submission";

impl KubernetesRead {
    /// The object that it is about, where it is one.
    pub fn object(&self) -> Option<&ObjectName> {
        match self {
            KubernetesRead::Object(object) | KubernetesRead::Preview { object, .. } => Some(object),
            KubernetesRead::Troubles { object, .. } | KubernetesRead::Kind(object) => Some(object),
            KubernetesRead::Nodes | KubernetesRead::NodeField(_) | KubernetesRead::PodsOn(_) => {
                None
            }
            KubernetesRead::States { .. }
            | KubernetesRead::Exec(_)
            | KubernetesRead::PodExec(_)
            | KubernetesRead::Access(_) => None,
            KubernetesRead::Jobs { .. }
            | KubernetesRead::JobPods { .. }
            | KubernetesRead::Room
            | KubernetesRead::Log { .. } => None,
        }
    }

    /// The key under which the answer is kept.
    pub fn key(&self) -> String {
        match self {
            KubernetesRead::Object(object) => {
                format!("kubernetes_object:{}", format_object_path(object))
            }
            KubernetesRead::Preview { object, manifest } => {
                let digest = Digest::of_bytes(manifest.as_bytes());
                let path = format_object_path(object);
                format!("kubernetes_preview:{path}:{}", digest.short())
            }
            KubernetesRead::Kind(object) => {
                format!("kubernetes_kind:{}/{}", object.api_version, object.kind)
            }
            KubernetesRead::Access(right) => format_access_key(right),
            KubernetesRead::Nodes => "kubernetes_nodes".to_owned(),
            KubernetesRead::NodeField(NodeField::Label { key }) => {
                format!("kubernetes_node_label:{key}")
            }
            KubernetesRead::NodeField(NodeField::Taint { key, effect }) => {
                format!("kubernetes_node_taint:{key}:{}", effect.word())
            }
            KubernetesRead::PodsOn(node) => format!("kubernetes_pods_on:{node}"),
            KubernetesRead::Exec(exec) => exec.key(),
            KubernetesRead::PodExec(exec) => exec.key(),
            KubernetesRead::States {
                api_version,
                kind,
                namespace,
            } => {
                let place = format_namespace(namespace);
                format!("kubernetes_states:{api_version}/{kind}/{place}")
            }
            KubernetesRead::Troubles { object, .. } => {
                format!("kubernetes_troubles:{}", format_object_path(object))
            }
            KubernetesRead::Jobs {
                api_version,
                kind,
                namespace,
            } => format!("kubernetes_jobs:{api_version}/{kind}/{namespace}"),
            KubernetesRead::JobPods {
                namespace,
                selector,
            } => format!("kubernetes_job_pods:{namespace}/{selector}"),
            KubernetesRead::Room => "kubernetes_room".to_owned(),
            KubernetesRead::Log {
                namespace,
                pod,
                container,
                ..
            } => format!("kubernetes_log:{namespace}/{pod}/{container}"),
        }
    }
}

fn format_namespace(namespace: &Option<String>) -> &str {
    namespace.as_deref().unwrap_or("-")
}

fn format_object_path(object: &ObjectName) -> String {
    let place = format_namespace(&object.namespace);
    format!(
        "{}/{}/{place}/{}",
        object.api_version, object.kind, object.name
    )
}

fn format_access_key(right: &Right) -> String {
    format!(
        "kubernetes_access:{} {}/{}/{}/{}",
        right.verb.word(),
        right.group,
        right.resource,
        format_namespace(&right.namespace),
        right.name.as_deref().unwrap_or("*")
    )
}
