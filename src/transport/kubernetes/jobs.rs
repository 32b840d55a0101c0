//! What is asked of a cluster about jobs: the objects that operators turn into pods, those pods and
//! their logs, and what nodes have left.

use super::answer::{self, new_exit_answer};
use super::fault::KubernetesRequestError;
use super::kinds::{self, ApiResource};
use super::lists::{ObjectSelection, list_all_pages};
use super::nodes::{self, new_pod_reference};
use super::server::{KubernetesRequest, KubernetesServer};
use railwright_resource::kubernetes_job::{JobNow, JobPod, Room};
use railwright_resource::kubernetes_object::request::{ABSENT, NOT_SAID, ObjectName};
use railwright_resource::{AnswerStatus, ReadResult};
use serde_json::json;
use std::collections::BTreeMap;

/// What is taken of one look at a log: a launcher prints a few MiB in a run, and looks follow each
/// other.
const LOG_LIMIT_BYTES: usize = 16 << 20;

/// The log that is asked for.
pub struct PodLogRequest<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub container: &'a str,
    pub lines: u32,
    pub since: Option<&'a str>,
}

/// The objects of a kind.
pub async fn list_jobs(
    server: &KubernetesServer,
    object: &ObjectName,
    resource: &ApiResource,
) -> Result<ReadResult, KubernetesRequestError> {
    Ok(
        match list_all_pages(server, object, resource, ObjectSelection::All, |object| {
            Some(JobNow::of(object))
        })
        .await?
        {
            Err(answer) => answer,
            Ok(jobs) => new_exit_answer(0, json!(jobs).to_string()),
        },
    )
}

/// The pods with these labels.
pub async fn list_job_pods(
    server: &KubernetesServer,
    namespace: &str,
    selector: &str,
) -> Result<ReadResult, KubernetesRequestError> {
    let (object, resource) = new_pod_reference(Some(namespace), "");
    Ok(
        match list_all_pages(
            server,
            &object,
            &resource,
            ObjectSelection::Labels(selector),
            |pod| Some(JobPod::of(pod)),
        )
        .await?
        {
            Err(answer) => answer,
            Ok(pods) => new_exit_answer(0, json!(pods).to_string()),
        },
    )
}

/// What nodes give, and what the pods on them ask for.
pub async fn read_node_capacity(
    server: &KubernetesServer,
) -> Result<ReadResult, KubernetesRequestError> {
    let (object, resource) = nodes::new_node_reference("");
    let nodes = match list_all_pages(server, &object, &resource, ObjectSelection::All, |node| {
        Some(node.clone())
    })
    .await?
    {
        Err(answer) => return Ok(answer),
        Ok(nodes) => nodes,
    };
    let mut room = Room::default();
    nodes.iter().for_each(|node| room.add_node(node));
    let (object, resource) = new_pod_reference(None, "");
    let used: Vec<(String, BTreeMap<String, u64>)> = match list_all_pages(
        server,
        &object,
        &resource,
        ObjectSelection::All,
        Room::used_by,
    )
    .await?
    {
        Err(answer) => return Ok(answer),
        Ok(used) => used,
    };
    used.into_iter()
        .for_each(|(node, asks)| room.uses(&node, asks));
    Ok(new_exit_answer(0, json!(room).to_string()))
}

/// The last lines of a log. A container that has not begun has none yet, which the kubelet says in
/// words.
pub async fn read_pod_log(
    server: &KubernetesServer,
    asked: &PodLogRequest<'_>,
) -> Result<ReadResult, KubernetesRequestError> {
    let (object, resource) = new_pod_reference(Some(asked.namespace), asked.pod);
    let path = match kinds::build_object_path(&object, &resource) {
        Ok(path) => path,
        Err(reason) => return Ok(new_exit_answer(NOT_SAID, reason)),
    };
    let since = asked
        .since
        .map(|since| format!("&sinceTime={}", kinds::query_value(since)))
        .unwrap_or_default();
    let query = format!(
        "container={}&tailLines={}&timestamps=true{since}",
        kinds::query_value(asked.container),
        asked.lines
    );
    let call = KubernetesRequest {
        limit: LOG_LIMIT_BYTES,
        ..KubernetesRequest::get(format!("{path}/log?{query}"))
    };
    let reply = server.ask(&call).await?;
    if let Some(verb) = answer::find_denied_verb(&reply) {
        return Ok(answer::new_denied_answer(&object, &verb, "pods/log"));
    }
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    Ok(match reply.status {
        200 if reply.cut => ReadResult {
            status: AnswerStatus::TooLong,
            out: text,
        },
        200 => new_exit_answer(0, text),
        _ if reply.is_not_found() => new_exit_answer(ABSENT, ""),
        _ => new_exit_answer(NOT_SAID, reply.message()),
    })
}

#[cfg(test)]
mod tests {
    use crate::kubernetes::tests::{kinds_of, link, says};
    use crate::{ExecutionOutcome, HostLink as _};
    use http::Method;
    use railwright_resource::kubernetes_object::request::{
        KubernetesRead, ObjectName, SUBMISSION, TAKEN,
    };
    use railwright_resource::{Action, AnswerStatus, Read};
    use serde_json::json;

    #[tokio::test]
    async fn room_is_what_nodes_give_and_pods_that_are_not_through_ask_for() {
        let node = json!({ "metadata": { "name": "gpu-1" }, "status": { "conditions": [{ "type": "Ready", "status": "True" }],
            "allocatable": { "aliyun/erdma": "200", "cpu": "64" } } });
        let pod = |phase: &str, node: &str, asks: u64| {
            let resources = json!({ "limits": { "aliyun/erdma": asks.to_string() } });
            json!({ "metadata": { "name": format!("a{asks}") }, "spec": { "nodeName": node, "containers": [{ "name": "c", "resources": resources }] }, "status": { "phase": phase } })
        };
        let pods = [
            pod("Running", "gpu-1", 150),
            pod("Pending", "gpu-1", 40),
            pod("Succeeded", "gpu-1", 9),
            pod("Pending", "", 7),
        ];
        let (link, asked) = link(move |_, path, _| {
            let (kind, items) = if path.starts_with("/api/v1/nodes") {
                ("NodeList", json!([node]))
            } else {
                ("PodList", json!(pods))
            };
            (
                200,
                Vec::new(),
                json!({ "kind": kind, "items": items }).to_string(),
            )
        });
        let read = Read::Kubernetes(KubernetesRead::Room);
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        insta::assert_snapshot!(answers.output(&read).unwrap().1, @r#"{"nodes":{"gpu-1":{"gives":{"aliyun/erdma":200},"ready":true,"schedulable":true,"used":{"aliyun/erdma":190}}}}"#);
        assert_eq!(
            asked.lines(),
            ["GET /api/v1/nodes?limit=500", "GET /api/v1/pods?limit=500"]
        );
    }

    #[tokio::test]
    async fn a_log_is_asked_with_its_times_and_a_role_that_lacks_it_is_told() {
        let read = |pod: &str, since: Option<&str>| {
            let (namespace, container) = ("ml".to_owned(), "launcher".to_owned());
            Read::Kubernetes(KubernetesRead::Log {
                namespace,
                pod: pod.to_owned(),
                container,
                lines: 20,
                since: since.map(str::to_owned),
            })
        };
        let (well, asked) =
            link(|_, _, _| (200, Vec::new(), "2026-01-01T00:00:00Z hello\n".to_owned()));
        let one = read("nccl-launcher-x", Some("2026-01-01T00:00:00Z"));
        let answers = well.read(std::slice::from_ref(&one)).await.unwrap();
        assert_eq!(
            answers.output(&one),
            Ok((0, "2026-01-01T00:00:00Z hello\n"))
        );
        let path = "GET \
                    /api/v1/namespaces/ml/pods/nccl-launcher-x/log?container=launcher&tailLines=20&timestamps=true&sinceTime=2026-01-01T00%3A00%3A00Z";
        assert_eq!(asked.lines(), [path]);
        let (refusing, _) = link(|_, _, _| {
            says(
                403,
                r#"pods "x" is forbidden: User "u" cannot get resource "pods/log" in API group """#,
            )
        });
        let answers = refusing.read(std::slice::from_ref(&one)).await.unwrap();
        let answer = answers.get(&one).unwrap();
        assert_eq!(
            (answer.status.clone(), answer.out.contains("pods/log")),
            (AnswerStatus::Denied, true)
        );
        let (escaping, asked) = link(|_, _, _| says(200, ""));
        escaping
            .read(&[read("../../secrets/x", None)])
            .await
            .unwrap();
        assert!(asked.lines().is_empty(), "no name leads elsewhere");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_made_once_and_one_that_is_there_is_left_alone() {
        let object = ObjectName {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("ml".to_owned()),
            name: "a".to_owned(),
        };
        let kinds = kinds_of(
            "apps/v1",
            &json!([{ "name": "deployments", "kind": "Deployment", "namespaced": true }]),
        );
        let bearing = |word: &str| json!({ "kind": "Deployment", "metadata": { "name": "a", "annotations": { SUBMISSION: word } } });
        // The object that is there was made by this submission.
        let done = |status: u16, word: &'static str| {
            let kinds = kinds.clone();
            link(move |method, path, _| match *method {
                Method::GET if path == "/apis/apps/v1" => (200, Vec::new(), kinds.clone()),
                Method::GET if word.is_empty() => says(404, "not found"),
                Method::GET => (200, Vec::new(), bearing(word).to_string()),
                _ => says(status, "it says"),
            })
        };
        let page = |status: u16, word: &'static str| {
            let kinds = kinds.clone();
            let (link, _) = link(move |method, path, _| match *method {
                Method::GET if path == "/apis/apps/v1" => (200, Vec::new(), kinds.clone()),
                Method::GET => (200, Vec::new(), bearing(word).to_string()),
                _ => (status, Vec::new(), "<html>default backend".to_owned()),
            });
            link
        };
        let action = Action::CreateObject {
            object,
            manifest: bearing("w1"),
        };
        let (made, asked) = done(201, "");
        assert!(matches!(
            made.perform(&action, "t", None).await,
            Ok(ExecutionOutcome::Ended { code: 0, .. })
        ));
        assert_eq!(
            asked.lines()[1],
            "POST \
             /apis/apps/v1/namespaces/ml/deployments?fieldManager=railwright&fieldValidation=Strict"
        );
        for (status, word, desired) in [
            (409, "w2", TAKEN),
            (409, "w1", 0),
            (500, "w1", 0),
            (504, "w1", 0),
            (500, "w2", TAKEN),
            (422, "w2", 1),
        ] {
            let performed = done(status, word)
                .0
                .perform(&action, "t", None)
                .await
                .unwrap();
            assert!(
                matches!(&performed, ExecutionOutcome::Ended { code, .. } if *code == desired),
                "{status} {word}: {performed:?}"
            );
        }
        // A gateway answers for the server, and passed the request on.
        for (status, word, desired) in [(404, "w1", 0), (301, "w1", 0), (404, "w2", TAKEN)] {
            let performed = page(status, word).perform(&action, "t", None).await;
            assert!(
                matches!(&performed, Ok(ExecutionOutcome::Ended { code, .. }) if *code == desired),
                "{status} {word}: {performed:?}"
            );
        }
        // One that failed every time is not there; one that timed out may come yet.
        assert!(matches!(
            done(500, "").0.perform(&action, "t", None).await,
            Ok(ExecutionOutcome::Ended { code: 1, .. })
        ));
        assert!(matches!(
            done(504, "").0.perform(&action, "t", None).await,
            Ok(ExecutionOutcome::Unknown { .. })
        ));
    }
}
