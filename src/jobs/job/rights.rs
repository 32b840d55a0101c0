//! What an identity has to be allowed for the commands about jobs of a namespace, right by right.

use super::kind::JobKind;
use railwright_resource::kubernetes_object::access::{ApiVerb, Right};
use railwright_resource::node_probe::EXEC;

impl JobKind {
    /// The group and what the server calls objects of the kind.
    fn resource(self) -> (&'static str, &'static str) {
        match self {
            JobKind::Mpi => ("kubeflow.org", "mpijobs"),
            JobKind::Pytorch => ("kubeflow.org", "pytorchjobs"),
            JobKind::Ray => ("ray.io", "rayclusters"),
            JobKind::Deployment => ("apps", "deployments"),
            JobKind::Batch => ("batch", "jobs"),
            JobKind::Pod => ("", "pods"),
        }
    }
}

/// Programs in pods, which are a strong right: whoever has it may run anything there, with all that
/// the pods may do on their nodes. Older API servers ask for `get`, since 1.35 a websocket asks for
/// `create` (kubernetes/kubernetes: pkg/registry/core/pod/rest/subresources.go).
const IN_PODS: &str = "devices of a RayCluster's pods and traffic between them, libraries in a \
                       pod's image; without it both are unknown, and the rest goes";

/// What `job submit`, `list`, `watch`, `prove` and `delete` do there, with the reasons. A create
/// has no name to hold it to, and a job's name is known to the one who submits it alone.
pub fn list_job_rights(namespace: &str) -> Vec<(Right, String)> {
    let mut rights = Vec::new();
    let of_jobs = JobKind::ALL.map(|kind| {
        let reason = "jobs that are submitted, looked at and taken away";
        (kind.resource(), reason)
    });
    let beside = ["services", "configmaps"].map(|resource| {
        let reason = "what is submitted beside a job, and goes with it";
        (("", resource), reason)
    });
    for (resource, reason) in of_jobs.into_iter().chain(beside) {
        for verb in [
            ApiVerb::Get,
            ApiVerb::List,
            ApiVerb::Create,
            ApiVerb::Delete,
        ] {
            rights.push((new_right(Some(namespace), resource, verb), reason));
        }
    }
    for (resource, verb, reason) in [
        (
            "pods/log",
            ApiVerb::Get,
            "logs of a job's pods, by which it is proven",
        ),
        ("events", ApiVerb::List, "why a job or a pod does not go on"),
        (EXEC, ApiVerb::Get, IN_PODS),
        (EXEC, ApiVerb::Create, IN_PODS),
    ] {
        rights.push((new_right(Some(namespace), ("", resource), verb), reason));
    }
    for (resource, reason) in [
        ("nodes", "what nodes have, where a pod waits for one"),
        (
            "pods",
            "what pods of all namespaces have taken of it, where a pod waits; without it that is \
             not told in numbers",
        ),
    ] {
        rights.push((new_right(None, ("", resource), ApiVerb::List), reason));
    }
    rights
        .into_iter()
        .map(|(right, reason)| (right, reason.to_owned()))
        .collect()
}

fn new_right(namespace: Option<&str>, (group, resource): (&str, &str), verb: ApiVerb) -> Right {
    Right {
        namespace: namespace.map(str::to_owned),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: None,
        verb,
    }
}
