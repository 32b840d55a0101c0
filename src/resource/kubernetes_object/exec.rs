//! A program that is run in a pod which is there already, to read what its node is like: what is
//! asked, and what comes back. No pod is started for it, and no shell is between.

use serde::{Deserialize, Serialize};

/// Which program, in which pod of which node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Exec {
    /// The node.
    pub node: String,
    /// Where the agent's pods are.
    pub namespace: String,
    /// The DaemonSet that has a pod on each node.
    pub daemon_set: String,
    /// Labels of its pods, `a=b,c=d`, so that a large namespace need not be listed whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The container; its only one unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl Exec {
    /// The key under which the answer is kept.
    pub fn key(&self) -> String {
        let Exec {
            node,
            namespace,
            daemon_set,
            container,
            argv,
            ..
        } = self;
        let container = container.as_deref().unwrap_or("-");
        format!(
            "kubernetes_exec:{namespace}/{daemon_set}/{container}/{node}:{}",
            railwright_base::Digest::of(argv).short()
        )
    }
}

/// A program in one pod that somebody named, whatever it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodExec {
    /// Where the pod is.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container; its only one unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl PodExec {
    /// The key under which the answer is kept.
    pub fn key(&self) -> String {
        let PodExec {
            namespace,
            pod,
            container,
            argv,
        } = self;
        let container = container.as_deref().unwrap_or("-");
        format!(
            "kubernetes_pod_exec:{namespace}/{pod}/{container}:{}",
            railwright_base::Digest::of(argv).short()
        )
    }
}

/// What a program came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodExecResult {
    /// Its exit status.
    pub code: i32,
    /// What it printed. Hostile: never print it unclean.
    pub out: String,
    /// What it complained of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub err: String,
}
