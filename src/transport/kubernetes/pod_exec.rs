//! A program in one pod that somebody named: the pod is looked at first, so that what keeps it from
//! running is said in words.

use super::answer::{self, new_exit_answer};
use super::exec::in_container;
use super::fault::KubernetesRequestError;
use super::kinds;
use super::nodes::new_pod_reference;
use super::running_pod::RunningPod;
use super::server::{KubernetesRequest, KubernetesServer};
use railwright_base::text::one_line;
use railwright_resource::ReadResult;
use railwright_resource::kubernetes_object::exec::PodExec;
use railwright_resource::kubernetes_object::request::{ABSENT, NOT_SAID};

/// What the program says.
pub async fn exec_in_named_pod(
    server: &KubernetesServer,
    asked: &PodExec,
) -> Result<ReadResult, KubernetesRequestError> {
    let PodExec {
        namespace,
        pod: name,
        container,
        argv,
    } = asked;
    let (object, resource) = new_pod_reference(Some(namespace), name);
    let path = match kinds::build_object_path(&object, &resource) {
        Ok(path) => path,
        Err(reason) => return Ok(new_exit_answer(NOT_SAID, reason)),
    };
    let reply = server.ask(&KubernetesRequest::get(path)).await?;
    if let Some(verb) = answer::find_denied_verb(&reply) {
        return Ok(answer::new_denied_answer(&object, &verb, "pods"));
    }
    let found = match (reply.status, reply.json()) {
        _ if reply.is_not_found() => {
            return Ok(new_exit_answer(
                ABSENT,
                format!("no pod {name} is in namespace {namespace}"),
            ));
        }
        (200, Some(pod)) => RunningPod::of(&pod),
        (200, None) => return Ok(new_exit_answer(NOT_SAID, "what came is no pod")),
        _ => return Ok(new_exit_answer(NOT_SAID, reply.message())),
    };
    let container = match found.container(container.as_deref()) {
        Ok(container) => container,
        Err(names) => {
            let names = one_line(&names.join(", "), 200);
            return Ok(new_exit_answer(
                NOT_SAID,
                format!("the pod has several containers ({names}): name one, --container"),
            ));
        }
    };
    if let Some(why) = found.hindrance(container) {
        return Ok(new_exit_answer(
            ABSENT,
            one_line(&format!("the pod does not run ({why})"), 300),
        ));
    }
    Ok(in_container(server, namespace, name, container, argv).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{link, says};
    use railwright_resource::kubernetes_object::request::KubernetesRead;
    use railwright_resource::{AnswerStatus, Read};
    use serde_json::{Value, json};

    async fn answer(
        pod: (u16, Value),
        of_exec: (u16, &'static str),
        container: Option<&str>,
    ) -> (ReadResult, Vec<String>) {
        let (link, seen) = link(move |_, path, _| match path.contains("/exec?") {
            true => says(of_exec.0, of_exec.1),
            false => (pod.0, Vec::new(), pod.1.to_string()),
        });
        let (namespace, pod, container) = (
            "ml".to_owned(),
            "train-0".to_owned(),
            container.map(str::to_owned),
        );
        let argv = vec!["sh".to_owned(), "-c".to_owned(), "a & b\n".to_owned()];
        let read = Read::Kubernetes(KubernetesRead::PodExec(Box::new(PodExec {
            namespace,
            pod,
            container,
            argv,
        })));
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        (answers.get(&read).unwrap().clone(), seen.lines())
    }

    fn a_pod(phase: &str, containers: &[&str]) -> Value {
        let named: Vec<Value> = containers
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        json!({ "metadata": { "name": "train-0" }, "spec": { "containers": named }, "status": { "phase": phase } })
    }

    #[tokio::test(start_paused = true)]
    async fn the_pod_that_was_named_is_asked_in_one_container() {
        let (_, lines) = answer((200, a_pod("Running", &["main"])), (403, ""), None).await;
        assert_eq!(lines[0], "GET /api/v1/namespaces/ml/pods/train-0");
        assert_eq!(
            lines[1],
            "GET \
             /api/v1/namespaces/ml/pods/train-0/exec?command=sh&command=-c&command=a%20%26%20b%0A&stdout=true&stderr=true"
        );
        let (unsaid, lines) =
            answer((200, a_pod("Running", &["main", "proxy"])), (403, ""), None).await;
        assert_eq!(
            (unsaid.out.as_str(), lines.len()),
            (
                "the pod has several containers (main, proxy): name one, --container",
                1
            )
        );
        let (_, lines) = answer(
            (200, a_pod("Running", &["main", "proxy"])),
            (403, ""),
            Some("proxy"),
        )
        .await;
        assert!(lines[1].contains("&container=proxy&"), "{lines:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn why_it_cannot_be_asked_is_said() {
        let status = |message: &str| json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "message": message });
        let (gone, _) = answer((404, status("pods \"train-0\" not found")), (403, ""), None).await;
        assert_eq!(
            gone,
            new_exit_answer(ABSENT, "no pod train-0 is in namespace ml")
        );
        let (waits, lines) = answer((200, a_pod("Pending", &["main"])), (403, ""), None).await;
        assert_eq!(
            (waits, lines.len()),
            (new_exit_answer(ABSENT, "the pod does not run (Pending)"), 1)
        );
        let refusal = "pods \"train-0\" is forbidden: User \"ann\" cannot get resource \"pods\" in \
                       API group \"\" in the namespace \"ml\"";
        let (denied, _) = answer((403, status(refusal)), (403, ""), None).await;
        assert_eq!(denied.status, AnswerStatus::Denied);
        assert_eq!(
            denied.out,
            "verb get, resource pods, API group \"\", namespace ml\n"
        );
    }
}
