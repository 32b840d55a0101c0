//! A program in a container of a pod, and what it says over a WebSocket.
//!
//! The streams come as messages that begin with their number, and the last one is a Status with how
//! the program ended (kubernetes/kubernetes:
//! staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go). Nothing is ever sent, so
//! the fourth and the fifth version of that protocol are the same here: every API server since long
//! has the one or the other.

use super::answer::{self, new_exit_answer};
use super::kinds;
use super::lists::find_json_text;
use super::nodes::new_pod_reference;
use super::server::{KubernetesServer, Upgrade};
use crate::ExecutionOutcome;
use futures_util::{Stream, StreamExt as _};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::json_fields::list_items_at;
use railwright_resource::kubernetes_object::exec::PodExecResult;
use railwright_resource::kubernetes_object::request::{NOT_SAID, ObjectName};
use railwright_resource::node_probe::EXEC;
use railwright_resource::{AnswerStatus, ReadResult};
use railwright_system::clock;
use serde_json::{Value, json};
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

/// A program in this container of this pod, to its end.
pub async fn in_container(
    server: &KubernetesServer,
    namespace: &str,
    name: &str,
    container: Option<&str>,
    argv: &[String],
) -> ReadResult {
    let (object, _) = new_pod_reference(Some(namespace), name);
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
    let (object, _) = new_pod_reference(Some(asked.namespace), asked.pod);
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
        reason: one_line(&reason, 300).into(),
    }
}

/// The program of a query, in a pod.
async fn run_pod_command(
    server: &KubernetesServer,
    object: &ObjectName,
    query: &str,
    limit: Duration,
) -> ReadResult {
    let (_, resource) = new_pod_reference(Some(""), "");
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
            Err(trouble) => new_exit_answer(NOT_SAID, not_run(trouble.reason().as_words())),
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
/// nodes with identical errors are reported once. From 1.30 on the server puts the whole request to
/// the kubelet into its complaint.
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
    mut stream: impl Stream<Item = Result<Vec<u8>, Reason>> + Unpin,
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
            reason.as_words().contains("length limit exceeded"),
            "{}",
            &reason.as_words()[..200.min(reason.as_words().len())]
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
            "not allowed: verb create, resource pods/exec, API group \"\", namespace ml".into()
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
