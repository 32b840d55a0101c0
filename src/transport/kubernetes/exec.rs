//! A program in a pod that is there, named or the one that an agent has on a node, and what it says
//! over a WebSocket.
//!
//! The streams come as messages that begin with their number, and the last one is a Status with how
//! the program ended (kubernetes/kubernetes:
//! staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go). Nothing is ever sent, so
//! the fourth and the fifth version of that protocol are the same here: every API server since long
//! has the one or the other.

use super::answer::{self, new_exit_answer};
use super::fault::KubernetesRequestError;
use super::kinds::{self, ApiResource};
use super::lists::{ObjectSelection, find_json_text, list_all_pages};
use super::running_pod::RunningPod;
use super::server::{KubernetesServer, Upgrade};
use crate::ExecutionOutcome;
use futures_util::{Stream, StreamExt as _};
use railwright_base::text::one_line;
use railwright_resource::body::list_items_at;
use railwright_resource::kubernetes_object::exec::{Exec, PodExecResult};
use railwright_resource::kubernetes_object::request::{
    ABSENT, KubernetesRead, NOT_SAID, ObjectName,
};
use railwright_resource::node_probe::EXEC;
use railwright_resource::{AnswerStatus, Read, ReadResult};
use railwright_system::clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A program that has not ended by then is left; so is a kubelet that does not answer.
const LIMIT: Duration = Duration::from_secs(20);
/// What is taken of its output, and of its complaint.
const OUT_LIMIT_BYTES: usize = 256 << 10;
const ERR_LIMIT_BYTES: usize = 4 << 10;
/// A Status says how the program ended, and may quote its command. A longer one is not parsed.
const STATUS_LIMIT_BYTES: usize = 32 << 10;

/// The numbers of the streams.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

/// The pods of agents by namespace and labels, or the answer that says why they are not known.
pub type Agents = BTreeMap<(String, Option<String>), Result<Vec<Agent>, ReadResult>>;

/// One pod of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    node: String,
    daemon_set: String,
    pod: RunningPod,
}

/// A pod as an object, and what the server calls its kind.
pub fn new_namespaced_pod_reference(namespace: &str, name: &str) -> (ObjectName, ApiResource) {
    let object = ObjectName {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    (
        object,
        ApiResource {
            plural: "pods".to_owned(),
            namespaced: true,
        },
    )
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
        let (name, kind) = new_namespaced_pod_reference(&namespace, "");
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

/// A program in this container of this pod, to its end.
pub async fn in_container(
    server: &KubernetesServer,
    namespace: &str,
    name: &str,
    container: Option<&str>,
    argv: &[String],
) -> ReadResult {
    let (object, _) = new_namespaced_pod_reference(namespace, name);
    run_pod_command(server, &object, &build_exec_query(argv, container), LIMIT).await
}

/// A script in a pod.
pub struct InPod<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub container: &'a str,
    pub script: &'a str,
    pub lease_s: u32,
}

/// How long after the lease an answer may come: it has a way through the API server and the
/// kubelet.
const ANSWER_SLACK_S: u64 = 10;

/// Runs it to its end. A kubelet ends nothing when the connection does, so `timeout` of the
/// container holds the lease.
pub async fn in_pod(server: &KubernetesServer, asked: &InPod<'_>) -> ExecutionOutcome {
    let lease = asked.lease_s.to_string();
    let argv = ["timeout", &lease, "sh", "-c", asked.script].map(str::to_owned);
    let (object, _) = new_namespaced_pod_reference(asked.namespace, asked.pod);
    let limit = Duration::from_secs(u64::from(asked.lease_s) + ANSWER_SLACK_S);
    let answer = run_pod_command(
        server,
        &object,
        &build_exec_query(&argv, Some(asked.container)),
        limit,
    )
    .await;
    let reason = match (
        answer.status,
        serde_json::from_str::<PodExecResult>(&answer.out),
    ) {
        (AnswerStatus::Exit(0), Ok(PodExecResult { code, out, err })) => {
            return ExecutionOutcome::Ended {
                code,
                stdout: out,
                stderr: err,
            };
        }
        (AnswerStatus::Denied, _) => format!("not allowed: {}", answer.out),
        (AnswerStatus::TooLong, _) => "it says more than is taken".to_owned(),
        _ => answer.out,
    };
    ExecutionOutcome::Unknown {
        reason: one_line(&reason, 300),
    }
}

/// The program of a query, in a pod.
async fn run_pod_command(
    server: &KubernetesServer,
    object: &ObjectName,
    query: &str,
    limit: Duration,
) -> ReadResult {
    let (_, resource) = new_namespaced_pod_reference("", "");
    let path = match kinds::build_object_path(object, &resource) {
        Ok(path) => format!("{path}/exec?{query}"),
        Err(reason) => return new_exit_answer(NOT_SAID, reason),
    };
    let ran = async {
        match server.upgrade(path).await {
            Ok(Upgrade::Done(stream)) => read_exec_streams(stream).await,
            Ok(Upgrade::Refused(reply)) => match answer::find_denied_verb(&reply) {
                Some(verb) => answer::new_denied_answer(object, &verb, EXEC),
                // Since 1.35 `create` is asked for besides the `get` of a WebSocket, and refused
                // without a word of why (kubernetes/kubernetes#134577; so with 1.37.2).
                None if reply.status == 403 && reply.message().ends_with("is forbidden:") => {
                    answer::new_denied_answer(object, "create", EXEC)
                }
                None => new_exit_answer(NOT_SAID, not_run(&reply.message())),
            },
            Err(trouble) => new_exit_answer(NOT_SAID, not_run(&trouble.reason())),
        }
    };
    let answer = match clock::await_with_timeout(limit, ran).await {
        Some(answer) => answer,
        None => {
            let why = format!("no end within {} s", limit.as_secs());
            new_exit_answer(NOT_SAID, not_run(&why))
        }
    };
    match answer.status {
        AnswerStatus::Exit(0) => answer,
        // The server's words, which may quote what we are known by.
        status => ReadResult {
            out: server.words.credentials.redaction().apply(&answer.out),
            status,
        },
    }
}

/// What containerd says before the reason why a program could not be started; a name of chance
/// stands in it (so with that of Debian 12: `failed to start exec "b0f3ca00...": OCI runtime exec
/// failed: exec failed: ...`).
const RUNTIME: &str = "OCI runtime exec failed: ";

/// Why the program did not run, in the server's words. Without the pod's name, which is of chance:
/// alike nodes are told once. From 1.30 on the server puts the whole request to the kubelet into
/// its complaint.
fn not_run(message: &str) -> String {
    let message = message.rsplit_once(RUNTIME).map_or(message, |(_, why)| why);
    let request = message
        .split_once("Post \"")
        .and_then(|(before, rest)| Some((before, rest.split_once("\": ")?.1)));
    let message = request.map_or_else(
        || message.to_owned(),
        |(before, after)| format!("{before}{after}"),
    );
    let away = [
        "error dialing backend",
        "error sending request",
        "proxy error",
        "no preferred addresses found",
    ];
    let what = match away.iter().any(|words| message.contains(words)) {
        true => "the API server does not reach the node's kubelet (port 10250, or a tunnel to it)",
        false => "the pod cannot be asked",
    };
    one_line(&format!("{what}: {message}"), 400)
}

fn build_exec_query(argv: &[String], container: Option<&str>) -> String {
    let words = argv
        .iter()
        .map(|word| format!("command={}", kinds::query_value(word)));
    let container = container
        .iter()
        .map(|name| format!("container={}", kinds::query_value(name)));
    let streams = ["stdout=true".to_owned(), "stderr=true".to_owned()];
    words
        .chain(container)
        .chain(streams)
        .collect::<Vec<_>>()
        .join("&")
}

/// Reads both streams to their end.
async fn read_exec_streams(
    mut stream: impl Stream<Item = Result<Vec<u8>, String>> + Unpin,
) -> ReadResult {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(message) = stream.next().await {
        let message = match message {
            Ok(message) => message,
            Err(reason) => {
                return new_exit_answer(
                    NOT_SAID,
                    not_run(&format!("the connection ended: {reason}")),
                );
            }
        };
        let Some((number, data)) = message.split_first() else {
            continue;
        };
        match *number {
            STDOUT if out.len() + data.len() > OUT_LIMIT_BYTES => {
                return ReadResult {
                    status: AnswerStatus::TooLong,
                    out: String::new(),
                };
            }
            STDOUT => out.extend_from_slice(data),
            STDERR => err.extend_from_slice(&data[..data.len().min(ERR_LIMIT_BYTES - err.len())]),
            STATUS if data.len() > STATUS_LIMIT_BYTES => {
                return new_exit_answer(
                    NOT_SAID,
                    not_run("it says more of how the program ended than is taken"),
                );
            }
            STATUS => return answer_from_exec_status(data, &out, &err),
            _ => {}
        }
    }
    new_exit_answer(
        NOT_SAID,
        not_run("the connection ended before the program did"),
    )
}

/// How it ended: a Status that is a success, or names the exit status as a cause
/// (kubernetes/kubernetes: staging/src/k8s.io/kubelet/pkg/cri/streaming/remotecommand/exec.go).
fn answer_from_exec_status(status: &[u8], out: &[u8], err: &[u8]) -> ReadResult {
    let status: Value = serde_json::from_slice(status).unwrap_or_default();
    let cause = list_items_at(&status, "/details/causes")
        .iter()
        .find(|cause| cause["reason"] == "ExitCode")
        .and_then(|cause| cause["message"].as_str()?.parse().ok());
    let code: i32 = match (status["status"].as_str(), cause) {
        (Some("Success"), _) => 0,
        (_, Some(code)) => code,
        _ => {
            let why = Some(find_json_text(&status, "/message")).filter(|why| !why.is_empty());
            return new_exit_answer(
                NOT_SAID,
                not_run(why.unwrap_or("it does not say how the program ended")),
            );
        }
    };
    let result = PodExecResult {
        code,
        out: String::from_utf8_lossy(out).into_owned(),
        err: String::from_utf8_lossy(err).into_owned(),
    };
    new_exit_answer(0, json!(result).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{link, says};
    use futures_util::stream;
    use railwright_resource::probe::Probe;

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
                "the pod's name is of chance, and alike nodes are told once"
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

    #[tokio::test(start_paused = true)]
    async fn a_refusal_without_end_is_not_taken() {
        let (link, _) = link(|_, _, _| (403, Vec::new(), "x".repeat(3 << 20)));
        let asked = Probe::InPod {
            namespace: "ml".to_owned(),
            pod: "ray-1".to_owned(),
            container: "ray".to_owned(),
            script: "ls".to_owned(),
            lease_s: 15,
        };
        let Ok(ExecutionOutcome::Unknown { reason }) = link.probe(&asked).await else {
            panic!("nobody knows what it says")
        };
        assert!(
            reason.contains("length limit exceeded"),
            "{}",
            &reason[..200.min(reason.len())]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_script_in_a_named_pod_is_held_by_its_container_and_what_did_not_run_is_not_known() {
        let (link, seen) = link(|_, _, _| {
            says(
                403,
                r#"pods "ray-1" is forbidden: User "u" cannot create resource "pods/exec" in API group "" in the namespace "ml""#,
            )
        });
        let of = |pod: &str| {
            let (namespace, container, script) =
                ("ml".to_owned(), "ray".to_owned(), "ls; id".to_owned());
            Probe::InPod {
                namespace,
                pod: pod.to_owned(),
                container,
                script,
                lease_s: 15,
            }
        };
        let Ok(ExecutionOutcome::Unknown { reason }) = link.probe(&of("ray-1")).await else {
            panic!("it cannot have run")
        };
        assert_eq!(
            reason,
            "not allowed: verb create, resource pods/exec, API group \"\", namespace ml"
        );
        let words = "command=timeout&command=15&command=sh&command=-c&command=ls%3B%20id&container=ray&stdout=true&stderr=true";
        assert_eq!(
            seen.lines(),
            [format!("GET /api/v1/namespaces/ml/pods/ray-1/exec?{words}")]
        );
        assert!(matches!(
            link.probe(&of("../../secrets/x")).await,
            Ok(ExecutionOutcome::Unknown { .. })
        ));
        assert_eq!(seen.lines().len(), 1, "no name leads elsewhere");
    }

    async fn of(messages: &[&[u8]]) -> ReadResult {
        read_exec_streams(stream::iter(
            messages
                .iter()
                .map(|bytes| Ok(bytes.to_vec()))
                .collect::<Vec<_>>(),
        ))
        .await
    }

    #[tokio::test]
    async fn streams_are_put_together_and_the_status_says_how_it_ended() {
        let ran = |code: i32, out: &str, err: &str| {
            new_exit_answer(
                0,
                json!(PodExecResult {
                    code,
                    out: out.to_owned(),
                    err: err.to_owned()
                })
                .to_string(),
            )
        };
        let unknown =
            |why: &str| new_exit_answer(NOT_SAID, format!("the pod cannot be asked: {why}"));
        let success = br#"3{"metadata":{},"status":"Success"}"#.map(|byte| byte);
        let mut success = success.to_vec();
        success[0] = STATUS;
        let mut failure = br#"3{"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"127"}]}}"#.to_vec();
        failure[0] = STATUS;
        let mut broken =
            br#"3{"status":"Failure","message":"Internal error occurred: exec: \"rdma\": executable file not found in $PATH"}"#.to_vec();
        broken[0] = STATUS;
        assert_eq!(
            of(&[b"\x01a", b"", b"\x02x", b"\x01b", b"\x07?", &success]).await,
            ran(0, "ab", "x")
        );
        assert_eq!(of(&[b"\x02no", &failure]).await, ran(127, "", "no"));
        assert_eq!(
            of(&[&broken]).await,
            unknown("Internal error occurred: exec: \"rdma\": executable file not found in $PATH")
        );
        let mut runtime = br#"3{"status":"Failure","message":"Internal error occurred: failed to start exec \"b0f3\": OCI runtime exec failed: exec failed: no \"rdma\""}"#.to_vec();
        runtime[0] = STATUS;
        assert_eq!(of(&[&runtime]).await, unknown("exec failed: no \"rdma\""));
        assert_eq!(
            of(&[b"\x01a"]).await,
            unknown("the connection ended before the program did")
        );
        assert_eq!(
            of(&[b"\x03<html>"]).await,
            unknown("it does not say how the program ended")
        );
        let mut endless = success.clone();
        endless.resize(STATUS_LIMIT_BYTES + 1, b' ');
        assert_eq!(of(&[&endless]).await, ran(0, "", ""));
        endless.push(b' ');
        assert_eq!(
            of(&[&endless]).await,
            unknown("it says more of how the program ended than is taken")
        );
        let large = [b"\x01".to_vec(), vec![b'x'; OUT_LIMIT_BYTES]].concat();
        assert_eq!(of(&[b"\x01a", &large]).await.status, AnswerStatus::TooLong);
        let loud = [b"\x02".to_vec(), vec![b'x'; OUT_LIMIT_BYTES]].concat();
        assert!(of(&[&loud, &loud, &success]).await.out.len() < 2 * ERR_LIMIT_BYTES);
    }
}
