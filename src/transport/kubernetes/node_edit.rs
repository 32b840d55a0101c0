//! A label or a taint of many nodes: each is read, and written as long as nobody changed it
//! meanwhile; many nodes at a time.

use super::act::{Doubt, KubernetesActionStop, TRIES, format_error_line, stop_with_failure};
use super::nodes::new_node_reference;
use super::server::AT_ONCE;
use super::unmarked::{UnmarkedFate, UnmarkedObject};
use super::write_target::WriteTarget;
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use futures_util::{StreamExt as _, stream};
use railwright_base::SealKey;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_object::request::{MOVED, ObjectName};
use railwright_resource::node_field::NodeField;
use railwright_resource::node_field::edit::{NodeEdit, NodeEditDecision, NodeFieldChange};
use railwright_resource::node_field::field::FieldNow;
use railwright_resource::node_field::mark::MarkKey;

/// What became of one node.
enum NodeEditOutcome {
    /// It is as it is to be.
    Well,
    /// It is not as it was planned; nothing of it was changed.
    Moved(String),
}

impl KubernetesLink {
    /// Executes every edit; one that cannot be done keeps no other.
    pub(super) async fn edit_nodes(
        &self,
        field: &NodeField,
        edits: &[NodeEdit],
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let all: Vec<(&str, &NodeFieldChange)> = edits
            .iter()
            .flat_map(|edit| edit.nodes.iter().map(|name| (name.as_str(), &edit.change)))
            .collect();
        let writes_marks = all.iter().any(|(_, change)| change.mark.is_some());
        let key = self.take_mark_key(writes_marks).await?;
        // Made first: a stream over borrowed items is none that the compiler takes for `Send`.
        let asked: Vec<_> = all
            .iter()
            .map(|(name, change)| self.edit_node(field, name, change, key.as_ref()))
            .collect();
        let done: Vec<Result<NodeEditOutcome, KubernetesActionStop>> =
            stream::iter(asked).buffered(AT_ONCE).collect().await;
        let well = done
            .iter()
            .filter(|done| matches!(done, Ok(NodeEditOutcome::Well)))
            .count();
        let so_far = if well == 0 {
            String::new()
        } else {
            format!("; {well} of {} nodes are done", all.len())
        };
        let (mut first, mut lost) = (None, None);
        for one in done {
            match one {
                Ok(NodeEditOutcome::Well) => {}
                Ok(NodeEditOutcome::Moved(reason)) => {
                    first = first.or(Some((if well == 0 { MOVED } else { 1 }, reason)))
                }
                Err(KubernetesActionStop::Ended(ExecutionOutcome::Ended { stderr, .. })) => {
                    first = first.or(Some((
                        1,
                        stderr.trim().trim_start_matches("railwright: ").to_owned(),
                    )));
                }
                Err(stop) => lost = lost.or(Some(stop)),
            }
        }
        match (lost, first) {
            (Some(lost), _) => Err(lost),
            (None, Some((code, reason))) => Ok(performed_from_exit(
                code,
                "",
                &format_error_line(&format!("{reason}{so_far}")),
            )),
            (None, None) => Ok(performed_from_exit(0, "", "")),
        }
    }

    async fn edit_node(
        &self,
        field: &NodeField,
        name: &str,
        change: &NodeFieldChange,
        key: Option<&SealKey>,
    ) -> Result<NodeEditOutcome, KubernetesActionStop> {
        let (object, resource) = new_node_reference(name);
        let place = WriteTarget::new(&object, resource)?;
        let marks = key.cloned().map_or(MarkKey::Absent, MarkKey::Is);
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let live = match self.live(&place).await {
                Ok(live) => live,
                Err(stop) => return end_without_node(stop, &object, change, &doubt),
            };
            let now = field.of(&live, &marks);
            match change.next(&now) {
                NodeEditDecision::Nothing => return Ok(NodeEditOutcome::Well),
                NodeEditDecision::Moved => {
                    let moved = describe_moved_node(field, name, change, now);
                    if doubt.is_there() {
                        return Err(doubt.over(stop_with_failure(&moved)));
                    }
                    return Ok(NodeEditOutcome::Moved(moved));
                }
                NodeEditDecision::Write => {}
            }
            let mark = change.mark.as_ref().zip(key);
            let patch = field.patch(&live, change.new.as_deref(), mark);
            if let Some(reply) = self.patch(&place, &patch, (turn, &mut doubt)).await? {
                return match UnmarkedObject::of(&place, &patch, reply.json()) {
                    None => Ok(NodeEditOutcome::Well),
                    Some(unmarked) => {
                        // What was ours before would be nobody's then.
                        let fate = match now.mark {
                            Some(_) => UnmarkedFate::Stands,
                            None => self.reverse(&place, field, change).await,
                        };
                        Err(unmarked.stop(fate))
                    }
                };
            }
        }
        Err(doubt.over(stop_with_failure(&format!("{object} changes all the time"))))
    }

    /// Gives a node the value that it had before a change.
    async fn reverse(
        &self,
        place: &WriteTarget<'_>,
        field: &NodeField,
        change: &NodeFieldChange,
    ) -> UnmarkedFate {
        self.take_back(place, |live| {
            let now = field.of(live, &MarkKey::Absent);
            let due = now.value == change.new && now.value != change.old;
            due.then(|| field.patch(live, change.old.as_deref(), None))
        })
        .await
    }
}

/// Why a node is left as it is.
fn describe_moved_node(
    field: &NodeField,
    name: &str,
    change: &NodeFieldChange,
    now: FieldNow,
) -> String {
    if now.value == change.old {
        return format!("on {name} our mark is no longer there");
    }
    let is = now.value.map_or_else(
        || "absent".to_owned(),
        |value| one_line(&field.shown(&value), 80),
    );
    format!("on {name} it is {is} by now")
}

/// What becomes of an edit whose node could not be read.
fn end_without_node(
    stop: KubernetesActionStop,
    object: &ObjectName,
    change: &NodeFieldChange,
    doubt: &Doubt,
) -> Result<NodeEditOutcome, KubernetesActionStop> {
    let is_gone = matches!(
        &stop,
        KubernetesActionStop::Ended(ExecutionOutcome::Ended { code: MOVED, .. })
    );
    // With the node went all that it bore.
    if is_gone && change.mark.is_none() {
        return Ok(NodeEditOutcome::Well);
    }
    if is_gone && !doubt.is_there() {
        return Ok(NodeEditOutcome::Moved(format!("{object} is gone")));
    }
    Err(doubt.over(stop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::mark_key::tests::answer_of_key;
    use crate::kubernetes::tests::{Reply, link, says};
    use http::Method;
    use railwright_resource::kubernetes_object::request::KubernetesRead;
    use railwright_resource::node_field::Effect;
    use railwright_resource::node_field::mark::NodeOwnershipAnnotation;
    use railwright_resource::{Action, Read};
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};

    fn label() -> NodeField {
        NodeField::Label {
            key: "pool".to_owned(),
        }
    }

    fn setting(nodes: &[&str]) -> Action {
        let mark = NodeOwnershipAnnotation {
            spec: "train".to_owned(),
            set: "a".to_owned(),
            was: None,
        };
        let change = NodeFieldChange {
            old: None,
            new: Some("a".to_owned()),
            mark: Some(mark),
        };
        Action::EditNodes {
            field: label(),
            edits: vec![NodeEdit {
                nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
                change,
            }],
        }
    }

    fn node(labels: &Value) -> Reply {
        (
            200,
            Vec::new(),
            json!({ "kind": "Node", "metadata": { "name": "gpu-1", "resourceVersion": "7", "labels": labels } })
                .to_string(),
        )
    }

    async fn done(
        action: Action,
        answer: impl Fn(&Method, &str) -> Reply + Clone + Send + Sync + 'static,
    ) -> (ExecutionOutcome, Vec<String>, String) {
        // What is taken is stored as it was sent.
        let answer = move |method: &Method, path: &str| {
            answer_of_key(path).unwrap_or_else(|| answer(method, path))
        };
        let (link, asked) = link(move |method, path, body| match answer(method, path) {
            (200, ..) if *method == Method::PATCH => {
                let mut stored: Value = serde_json::from_str(body).unwrap();
                stored["kind"] = "Node".into();
                stored["metadata"]["name"] = "gpu-1".into();
                (200, Vec::new(), stored.to_string())
            }
            reply => reply,
        });
        let performed = link.perform(&action, "t", None).await.unwrap();
        let mut lines = asked.lines();
        lines.retain(|line| line.contains("/nodes/"));
        (performed, lines, asked.last_body())
    }

    #[tokio::test(start_paused = true)]
    async fn each_node_is_read_and_written_as_it_was_read() {
        let (performed, lines, sent) = done(setting(&["gpu-1"]), |_, _| node(&json!({}))).await;
        let patch = "PATCH /api/v1/nodes/gpu-1?fieldManager=railwright&fieldValidation=Strict";
        assert_eq!(
            (performed, lines),
            (
                performed_from_exit(0, "", ""),
                vec!["GET /api/v1/nodes/gpu-1".to_owned(), patch.to_owned()]
            )
        );
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            (
                &sent["metadata"]["resourceVersion"],
                &sent["metadata"]["labels"]
            ),
            (&json!("7"), &json!({ "pool": "a" }))
        );
        let conflict = |method: &Method, _: &str| {
            if *method == Method::GET {
                node(&json!({}))
            } else {
                says(409, "it was modified")
            }
        };
        let (performed, lines, _) = done(setting(&["gpu-1"]), conflict).await;
        assert_eq!(lines.len(), 2 * usize::try_from(TRIES).unwrap());
        assert!(
            matches!(&performed, ExecutionOutcome::Ended { code: 1, stderr, .. } if stderr.contains("it was modified")),
            "{performed:?}"
        );
    }

    /// An admission webhook takes our mark away: nobody would know that the label is ours.
    #[tokio::test(start_paused = true)]
    async fn an_edit_that_is_stored_without_its_mark_is_taken_back() {
        let labels = Arc::new(Mutex::new(json!({})));
        let kept = labels.clone();
        let (link, _) = link(move |method, path, body| {
            if let Some(key) = answer_of_key(path) {
                return key;
            }
            let mut labels = kept.lock().unwrap();
            if *method == Method::PATCH {
                let patch: Value = serde_json::from_str(body).unwrap();
                *labels = match &patch["metadata"]["labels"]["pool"] {
                    Value::Null => json!({}),
                    value => json!({ "pool": value }),
                };
            }
            node(&labels)
        });
        let performed = link.perform(&setting(&["gpu-1"]), "t", None).await.unwrap();
        let said = format!("{performed:?}");
        assert!(
            said.contains("took railwright.io/label-pool from it")
                && said.contains("it was undone"),
            "{said}"
        );
        assert_eq!(*labels.lock().unwrap(), json!({}));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_another_by_now_is_left_and_the_rest_is_done() {
        let moved = |_: &Method, _: &str| node(&json!({ "pool": "theirs" }));
        let (performed, lines, _) = done(setting(&["gpu-1"]), moved).await;
        assert_eq!(
            (performed, lines.len()),
            (
                performed_from_exit(MOVED, "", "railwright: on gpu-1 it is theirs by now"),
                1
            )
        );
        let one_of_two = |_: &Method, path: &str| {
            if path.contains("gpu-1") {
                node(&json!({}))
            } else {
                says(404, "no such node")
            }
        };
        let (performed, lines, _) = done(setting(&["gpu-1", "gpu-2"]), one_of_two).await;
        assert_eq!(
            (performed, lines.len()),
            (
                performed_from_exit(
                    1,
                    "",
                    "railwright: Node.core gpu-2 is gone; 1 of 2 nodes are done"
                ),
                3
            )
        );
        let mut taking = setting(&["gpu-2"]);
        if let Action::EditNodes { edits, .. } = &mut taking {
            edits[0].change = NodeFieldChange {
                old: Some("a".to_owned()),
                new: None,
                mark: None,
            };
        }
        assert_eq!(
            done(taking, |_, _| says(404, "no such node")).await.0,
            performed_from_exit(0, "", ""),
            "with the node went its labels"
        );
        let lacking = says(
            403,
            r#"nodes "gpu-1" is forbidden: User "u" cannot patch resource "nodes" in API group """#,
        );
        let denied = move |method: &Method, _: &str| {
            if *method == Method::GET {
                node(&json!({}))
            } else {
                lacking.clone()
            }
        };
        let (performed, ..) = done(setting(&["gpu-1"]), denied).await;
        assert!(
            format!("{performed:?}").contains("a rule is missing"),
            "{performed:?}"
        );
    }

    #[tokio::test]
    async fn however_much_is_asked_of_nodes_they_are_listed_once() {
        let answer = |_: &Method, _: &str, _: &str| {
            let items = json!([{ "metadata": { "name": "gpu-1", "labels": { "pool": "a" } } }, { "metadata": { "name": "gpu-2" } }]);
            (
                200,
                Vec::new(),
                json!({ "kind": "NodeList", "items": items }).to_string(),
            )
        };
        let (link, asked) = link(answer);
        let taint = NodeField::Taint {
            key: "x".to_owned(),
            effect: Effect::NoSchedule,
        };
        let reads = [
            KubernetesRead::Nodes,
            KubernetesRead::NodeField(label()),
            KubernetesRead::NodeField(taint),
        ]
        .map(Read::Kubernetes);
        let answers = link.read(&reads).await.unwrap();
        assert_eq!(
            asked.lines(),
            [
                "GET /api/v1/namespaces/kube-system/secrets/railwright.node-marks",
                "GET /api/v1/nodes?limit=500"
            ]
        );
        assert_eq!(
            answers.output(&reads[1]).unwrap(),
            (0, r#"{"gpu-1":{"value":"a"},"gpu-2":{}}"#)
        );
        assert_eq!(
            answers.output(&reads[2]).unwrap(),
            (0, r#"{"gpu-1":{},"gpu-2":{}}"#)
        );
        assert!(answers.output(&reads[0]).unwrap().1.contains("schedulable"));
    }
}
