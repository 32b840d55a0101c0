//! The pods that agents have on nodes, through which nodes without SSH are asked.

use super::answer::new_exit_answer;
use super::exec::in_container;
use super::fault::KubernetesRequestError;
use super::lists::{ObjectSelection, find_json_text, list_all_pages};
use super::nodes::new_pod_reference;
use super::running_pod::RunningPod;
use super::server::KubernetesServer;
use railwright_base::text::one_line;
use railwright_resource::json_fields::list_items_at;
use railwright_resource::kubernetes_object::exec::Exec;
use railwright_resource::kubernetes_object::request::{ABSENT, KubernetesRead, NOT_SAID};
use railwright_resource::{Read, ReadResult};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The pods of agents by namespace and labels, or the answer that says why they are not known.
pub type Agents = BTreeMap<(String, Option<String>), Result<Vec<Agent>, ReadResult>>;

/// One pod of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    node: String,
    daemon_set: String,
    pod: RunningPod,
}

/// The agents that some read is about, each list asked for once.
pub async fn list_agents(
    server: &KubernetesServer,
    reads: &[Read],
) -> Result<Agents, KubernetesRequestError> {
    let mut lists = BTreeSet::new();
    for read in reads {
        if let Read::Kubernetes(KubernetesRead::Exec(exec)) = read {
            lists.insert((exec.namespace.clone(), exec.selector.clone()));
        }
    }
    let mut found = Agents::new();
    for (namespace, selector) in lists {
        let selection = selector
            .as_deref()
            .map_or(ObjectSelection::All, ObjectSelection::Labels);
        let (name, kind) = new_pod_reference(Some(&namespace), "");
        let pods = list_all_pages(server, &name, &kind, selection, parse_agent_pod).await?;
        found.insert((namespace, selector), pods);
    }
    Ok(found)
}

/// A pod of some DaemonSet that has a node and does not end.
fn parse_agent_pod(pod: &Value) -> Option<Agent> {
    let owner = list_items_at(pod, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true && owner["kind"] == "DaemonSet")?;
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let node = find_json_text(pod, "/spec/nodeName").to_owned();
    Some(Agent {
        node,
        daemon_set: find_json_text(owner, "/name").to_owned(),
        pod: RunningPod::of(pod),
    })
}

/// What the program says. Whatever happens is an answer about this node alone.
pub async fn exec_in_agent_pod(
    server: &KubernetesServer,
    asked: &Exec,
    agents: &Agents,
) -> ReadResult {
    let all = match agents.get(&(asked.namespace.clone(), asked.selector.clone())) {
        Some(Ok(all)) => all,
        Some(Err(answer)) => return answer.clone(),
        None => return new_exit_answer(NOT_SAID, "its pods were not asked for"),
    };
    let Exec {
        namespace,
        daemon_set,
        node,
        ..
    } = asked;
    let here: Vec<&Agent> = all
        .iter()
        .filter(|agent| agent.node == *node && agent.daemon_set == *daemon_set)
        .collect();
    let (of, look) = (
        format!("DaemonSet {namespace}/{daemon_set}"),
        format!("kubectl -n {namespace} get pods -o wide"),
    );
    let Some(first) = here.first() else {
        return new_exit_answer(ABSENT, format!("no pod of {of} is there: {look}"));
    };
    let container = asked.container.as_deref();
    let Some(agent) = here
        .iter()
        .find(|agent| agent.pod.hindrance(container).is_none())
    else {
        let why = first.pod.hindrance(container).unwrap_or_default();
        return new_exit_answer(
            ABSENT,
            one_line(
                &format!("the pod of {of} does not run there ({why}): {look}"),
                300,
            ),
        );
    };
    let container = match agent.pod.container(container) {
        Ok(container) => container,
        Err(names) => {
            let names = one_line(&names.join(", "), 200);
            return new_exit_answer(
                NOT_SAID,
                format!(
                    "the pods of {of} have several containers ({names}): name one, `container` in \
                     `pod` of the probe"
                ),
            );
        }
    };
    in_container(server, namespace, &agent.pod.name, container, &asked.argv).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{link, says};
    use railwright_resource::AnswerStatus;
    use serde_json::json;

    fn asked() -> Exec {
        Exec {
            node: "gpu1".to_owned(),
            namespace: "n".to_owned(),
            daemon_set: "agent".to_owned(),
            selector: Some("app=a,tier=b".to_owned()),
            container: None,
            argv: vec!["rdma".to_owned(), "-j".to_owned(), "link & show".to_owned()],
        }
    }

    fn a_pod(node: &str, owner: &str, phase: &str, state: &Value) -> Value {
        json!({
            "metadata": { "name": format!("{owner}-{node}"), "labels": { "app": "a", "tier": "b" },
                "ownerReferences": [{ "kind": "DaemonSet", "name": owner, "controller": true }] },
            "spec": { "nodeName": node, "containers": [{ "name": "c" }] },
            "status": { "phase": phase, "containerStatuses": [{ "name": "c", "state": state }] },
        })
    }

    async fn answer(pods: Vec<Value>, of_exec: (u16, &'static str)) -> (ReadResult, Vec<String>) {
        let list = json!({ "kind": "PodList", "metadata": {}, "items": pods }).to_string();
        let (link, seen) = link(move |_, path, _| match path.contains("/exec?") {
            true => says(of_exec.0, of_exec.1),
            false => (200, Vec::new(), list.clone()),
        });
        let read = Read::Kubernetes(KubernetesRead::Exec(Box::new(asked())));
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        (answers.get(&read).unwrap().clone(), seen.lines())
    }

    #[tokio::test(start_paused = true)]
    async fn the_pod_that_the_agent_has_on_the_node_is_asked_and_no_other() {
        let running = || json!({ "running": {} });
        let others = || {
            vec![
                a_pod("gpu2", "agent", "Running", &running()),
                a_pod("gpu1", "other", "Running", &running()),
            ]
        };
        let look = "kubectl -n n get pods -o wide";
        let absent = new_exit_answer(
            ABSENT,
            format!("no pod of DaemonSet n/agent is there: {look}"),
        );
        assert_eq!(
            answer(others(), (200, "")).await,
            (
                absent,
                vec![
                    "GET /api/v1/namespaces/n/pods?limit=500&labelSelector=app%3Da%2Ctier%3Db"
                        .to_owned()
                ]
            )
        );
        let waits = a_pod(
            "gpu1",
            "agent",
            "Running",
            &json!({ "waiting": { "reason": "CrashLoopBackOff" } }),
        );
        let words =
            format!("the pod of DaemonSet n/agent does not run there (CrashLoopBackOff): {look}");
        assert_eq!(
            answer(vec![waits], (200, "")).await.0,
            new_exit_answer(ABSENT, words)
        );
        let pending = a_pod(
            "gpu1",
            "agent",
            "Pending",
            &json!({ "waiting": { "reason": "ErrImagePull" } }),
        );
        assert!(
            answer(vec![pending], (200, ""))
                .await
                .0
                .out
                .contains("(Pending ErrImagePull)")
        );
        let mut all = others();
        all.push(a_pod("gpu1", "agent", "Running", &running()));
        let (_, lines) = answer(all, (403, "")).await;
        assert_eq!(
            lines[1],
            "GET \
             /api/v1/namespaces/n/pods/agent-gpu1/exec?command=rdma&command=-j&command=link%20%26%20show&stdout=true&stderr=true"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_containers_the_one_that_the_pod_names_is_asked() {
        let pod = |annotation: Option<&str>| {
            let mut pod = a_pod("gpu1", "agent", "Running", &json!({ "running": {} }));
            pod["spec"]["containers"] = json!([{ "name": "c" }, { "name": "helper" }]);
            pod["status"]["containerStatuses"]
                .as_array_mut()
                .unwrap()
                .push(json!({ "name": "helper", "state": { "waiting": { "reason": "X" } } }));
            pod["metadata"]["annotations"] = annotation.map_or(
                json!({}),
                |named| json!({ "kubectl.kubernetes.io/default-container": named }),
            );
            vec![pod]
        };
        let (_, lines) = answer(pod(Some("c")), (403, "")).await;
        assert!(lines[1].contains("&container=c&"), "{lines:?}");
        for nobody in [None, Some("gone")] {
            let (unsaid, lines) = answer(pod(nobody), (403, "")).await;
            assert_eq!(
                (unsaid.status, lines.len()),
                (AnswerStatus::Exit(NOT_SAID), 1)
            );
            let words = "the pods of DaemonSet n/agent have several containers (c, helper): name \
                         one, `container` in `pod` of the probe";
            assert_eq!(
                unsaid.out, words,
                "the pod's name is of chance, and identical errors are reported once"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_says_why_and_what_to_do() {
        let pods = || vec![a_pod("gpu1", "agent", "Running", &json!({ "running": {} }))];
        let refusal = r#"pods "agent-gpu1" is forbidden: User "u" cannot create resource "pods/exec" in API group "" in the namespace "n""#;
        for refusal in [refusal, "pods \"agent-gpu1\" is forbidden: "] {
            let (denied, _) = answer(pods(), (403, refusal)).await;
            let rule = "verb create, resource pods/exec, API group \"\", namespace n\n";
            assert_eq!(
                (denied.status, denied.out.as_str()),
                (AnswerStatus::Denied, rule)
            );
        }
        let (away, _) = answer(
            pods(),
            (
                500,
                "error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused",
            ),
        )
        .await;
        assert_eq!(away.status, AnswerStatus::Exit(NOT_SAID));
        let unreached =
            "the API server does not reach the node's kubelet (port 10250, or a tunnel to it): ";
        assert_eq!(
            away.out,
            format!(
                "{unreached}error dialing backend: dial tcp 10.0.0.1:10250: connect: connection \
                 refused"
            )
        );
        let later = r#"Internal error occurred: error sending request: Post "https://10.0.0.1:10250/exec/n/agent-gpu1/c?command=rdma": dial tcp: i/o timeout"#;
        let (away, _) = answer(pods(), (500, later)).await;
        assert_eq!(
            away.out,
            format!(
                "{unreached}Internal error occurred: error sending request: dial tcp: i/o timeout"
            )
        );
        // No list of pods, and nothing else is asked.
        let read = Read::Kubernetes(KubernetesRead::Exec(Box::new(asked())));
        let (link, seen) = link(|_, _, _| {
            says(
                403,
                r#"pods is forbidden: User "u" cannot list resource "pods" in API group """#,
            )
        });
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        assert_eq!(
            (
                answers.get(&read).unwrap().status.clone(),
                seen.lines().len()
            ),
            (AnswerStatus::Denied, 1)
        );
    }
}
