//! Reads of many objects at once, page by page, each object cut down to what the question is about
//! before the next page is asked for.

use super::answer::{self, new_exit_answer};
use super::fault::KubernetesRequestError;
use super::kinds::{self, ApiResource};
use super::label_selector::selects_labels;
use super::server::{KubernetesReply, KubernetesRequest, KubernetesServer};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::json_fields::{list_items_at, read_text_at};
use railwright_resource::kubernetes_object::conditions::find_condition;
use railwright_resource::kubernetes_object::request::{NOT_SAID, ObjectName};
use railwright_resource::{AnswerStatus, ReadResult};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Objects of a page, as kubectl asks for them.
const PAGE: usize = 500;
/// What is taken of one page: 500 nodes with the names of all their images.
const PAGE_LIMIT_BYTES: usize = 64 << 20;
/// A server may give more than it was asked for, all that it has at most.
const ITEMS: usize = 100_000;
/// More pages are not asked for: 100,000 objects.
const PAGES: usize = 200;
/// Pods and warnings that are told.
const TOLD: usize = 20;

/// Every object of a kind by name, with its generation and its status; of a definition also which
/// versions of its kind are served, which its status does not say.
pub async fn list_object_states(
    server: &KubernetesServer,
    name: &ObjectName,
    kind: &ApiResource,
) -> Result<ReadResult, KubernetesRequestError> {
    list_objects_by_name(server, name, kind, |object| {
        let generation = object.pointer("/metadata/generation").cloned().unwrap_or_default();
        let going = object.pointer("/metadata/deletionTimestamp").cloned();
        let status = object.get("status").cloned().unwrap_or_default();
        let mut state = json!({ "metadata": { "generation": generation, "deletionTimestamp": going }, "status": status });
        if name.kind == "CustomResourceDefinition" {
            let versions = object.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
            let served = versions.filter_map(|one| Some((one.get("name")?.as_str()?.to_owned(), one.get("served")?.clone())));
            state["served"] = Value::Object(served.collect());
        }
        state
    })
    .await
}

/// What `of` makes of every object, by name.
pub(super) async fn list_objects_by_name(
    server: &KubernetesServer,
    name: &ObjectName,
    kind: &ApiResource,
    of: impl Fn(&Value) -> Value + Sync,
) -> Result<ReadResult, KubernetesRequestError> {
    let listed = list_all_pages(server, name, kind, ObjectSelection::All, |object| {
        let name = object.pointer("/metadata/name")?.as_str()?;
        Some((name.to_owned(), of(object)))
    })
    .await?;
    Ok(match listed {
        Err(answer) => answer,
        Ok(found) => new_exit_answer(0, Value::Object(found.into_iter().collect()).to_string()),
    })
}

/// Which objects of a kind are asked for. The server chooses them, and an object that it may not
/// have chosen makes its answer none.
pub(super) enum ObjectSelection<'a> {
    All,
    /// Those that this label selector selects.
    Labels(&'a str),
    /// Pods of this node.
    OnNode(&'a str),
    /// Events that warn of this object.
    WarningsOf(&'a ObjectName),
}

impl ObjectSelection<'_> {
    /// What is added to the query of a list.
    fn query(&self) -> String {
        let (by, what) = match self {
            ObjectSelection::All => return String::new(),
            ObjectSelection::Labels(labels) => ("label", (*labels).to_owned()),
            ObjectSelection::OnNode(node) => ("field", format!("spec.nodeName={node}")),
            ObjectSelection::WarningsOf(object) => (
                "field",
                format!(
                    "type=Warning,involvedObject.name={},involvedObject.kind={}",
                    object.name, object.kind
                ),
            ),
        };
        format!("&{by}Selector={}", kinds::query_value(&what))
    }

    fn includes(&self, item: &Value) -> bool {
        match self {
            ObjectSelection::All => true,
            ObjectSelection::Labels(selector) => {
                selects_labels(selector, item.pointer("/metadata/labels"))
            }
            ObjectSelection::OnNode(node) => find_json_text(item, "/spec/nodeName") == *node,
            ObjectSelection::WarningsOf(object) => {
                let of = ["/type", "/involvedObject/name", "/involvedObject/kind"]
                    .map(|at| find_json_text(item, at));
                of == ["Warning", object.name.as_str(), object.kind.as_str()]
            }
        }
    }
}

/// What `of` makes of every object, or the answer that says why they were not told.
pub(super) async fn list_all_pages<T>(
    server: &KubernetesServer,
    name: &ObjectName,
    kind: &ApiResource,
    selection: ObjectSelection<'_>,
    of: impl Fn(&Value) -> Option<T> + Sync,
) -> Result<Result<Vec<T>, ReadResult>, KubernetesRequestError> {
    let path = match kinds::list_path(name, kind) {
        Ok(path) => path,
        Err(reason) => return Ok(Err(new_exit_answer(NOT_SAID, reason))),
    };
    let query = selection.query();
    let (mut all, mut next, mut known) = (Vec::new(), String::new(), BTreeSet::new());
    for _ in 0..PAGES {
        let call = KubernetesRequest {
            limit: PAGE_LIMIT_BYTES,
            ..KubernetesRequest::get(format!("{path}?limit={PAGE}{query}{next}"))
        };
        let reply = server.ask(&call).await?;
        let Some(list) = (reply.status == 200 && !reply.cut)
            .then(|| reply.json())
            .flatten()
        else {
            return Ok(Err(answer_from_failed_list(name, kind, &reply)));
        };
        let Some(page) = ObjectListPage::of(&list, &name.kind) else {
            return Ok(Err(new_no_list_answer(kind, "")));
        };
        if let Err(why) = page.check_items(&selection, &mut known) {
            return Ok(Err(new_no_list_answer(kind, why.as_words())));
        }
        if known.len() > PAGE * PAGES {
            break;
        }
        all.extend(page.items.iter().filter_map(&of));
        match page.token {
            Some(token) => next = format!("&continue={}", kinds::query_value(token)),
            None => return Ok(Ok(all)),
        }
    }
    Ok(Err(new_exit_answer(
        NOT_SAID,
        format!("there are more than {} {}", PAGE * PAGES, kind.plural),
    )))
}

/// A page of a list.
struct ObjectListPage<'a> {
    items: &'a [Value],
    /// With which the next one is asked for.
    token: Option<&'a str>,
}

impl<'a> ObjectListPage<'a> {
    /// Of objects of this kind. An answer of another shape is no empty page and no last one, and
    /// one with far more than was asked for is not looked into. A list says of which kind it is
    /// also where it is empty, and bears the name that every kind of Kubernetes gives it
    /// (kubernetes.io/docs/reference/using-api/api-concepts, "Collections").
    fn of(list: &'a Value, kind: &str) -> Option<Self> {
        if list.get("kind")?.as_str()?.strip_suffix("List") != Some(kind) {
            return None;
        }
        let items = list.get("items")?.as_array()?;
        let token = match list.pointer("/metadata/continue") {
            None | Some(Value::Null) => None,
            Some(token) => Some(token.as_str()?).filter(|token| !token.is_empty()),
        };
        // Set only where objects are missing on this page
        // (kubernetes.io/docs/reference/kubernetes-api/common-definitions/list-meta).
        let left = list.pointer("/metadata/remainingItemCount");
        let is_cut = token.is_none() && left.is_some_and(|left| *left != 0 && !left.is_null());
        if is_cut || items.len() > ITEMS {
            return None;
        }
        for item in items {
            let is_of_kind = item.get("kind").is_none_or(|of| of == kind);
            if !is_of_kind || find_json_text(item, "/metadata/name").is_empty() {
                return None;
            }
        }
        Some(ObjectListPage { items, token })
    }

    /// Notes its objects; why it is no page of what was asked for as the error.
    fn check_items(
        &self,
        selection: &ObjectSelection<'_>,
        known: &mut BTreeSet<(String, String)>,
    ) -> Result<(), Reason> {
        for item in self.items {
            let namespace = find_json_text(item, "/metadata/namespace").to_owned();
            let name = find_json_text(item, "/metadata/name").to_owned();
            if !known.insert((namespace, name)) {
                return Err(": its pages repeat".into());
            }
        }
        match self.items.iter().find(|item| !selection.includes(item)) {
            Some(other) => {
                let name = one_line(find_json_text(other, "/metadata/name"), 80);
                Err(format!(": {name} is among them, which was not asked for").into())
            }
            None => Ok(()),
        }
    }
}

fn new_no_list_answer(kind: &ApiResource, why: &str) -> ReadResult {
    new_exit_answer(
        NOT_SAID,
        format!("what came is no list of {}{why}", kind.plural),
    )
}

fn answer_from_failed_list(
    name: &ObjectName,
    kind: &ApiResource,
    reply: &KubernetesReply,
) -> ReadResult {
    match answer::find_denied_verb(reply) {
        Some(verb) => answer::new_denied_answer(name, &verb, &kind.plural),
        None if reply.status == 200 && reply.cut => ReadResult {
            status: AnswerStatus::TooLong,
            out: String::new(),
        },
        None if reply.status == 200 => new_no_list_answer(kind, ""),
        None => new_exit_answer(NOT_SAID, reply.message()),
    }
}

/// What keeps an object: a line for each of its pods that does not run, where it has pods, and each
/// warning of the object itself.
pub async fn list_object_problems(
    server: &KubernetesServer,
    object: &ObjectName,
    selector: Option<&str>,
) -> Result<ReadResult, KubernetesRequestError> {
    let mut lines = Vec::new();
    if let Some(selector) = selector {
        let (pods, kind) = new_reference_beside(object, "Pod", "pods");
        let selection = ObjectSelection::Labels(selector);
        lines = match list_all_pages(server, &pods, &kind, selection, describe_unready_pod).await? {
            Ok(lines) => lines,
            Err(answer) => return Ok(answer),
        };
        lines.truncate(TOLD);
    }
    let (events, kind) = new_reference_beside(object, "Event", "events");
    let selection = ObjectSelection::WarningsOf(object);
    let warnings = list_all_pages(server, &events, &kind, selection, describe_warning).await?;
    lines.extend(warnings.unwrap_or_default().into_iter().rev().take(3));
    Ok(new_exit_answer(0, lines.join("\n")))
}

/// Objects of this kind of the core group, in the namespace of this object.
fn new_reference_beside(
    object: &ObjectName,
    kind: &str,
    plural: &str,
) -> (ObjectName, ApiResource) {
    let name = ObjectName {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        ..object.clone()
    };
    let resource = ApiResource {
        plural: plural.to_owned(),
        namespaced: true,
    };
    (name, resource)
}

fn describe_warning(event: &Value) -> Option<String> {
    let warning = format!("warning: {}", find_json_text(event, "/message"));
    Some(one_line(&warning, 300))
}

/// The text at a JSON pointer; empty where there is none.
pub(super) fn find_json_text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    read_text_at(value, pointer).unwrap_or_default()
}

/// `pod POD on NODE: REASON MESSAGE` of a pod that is not ready.
fn describe_unready_pod(pod: &Value) -> Option<String> {
    let is_ready = find_condition(pod, "Ready", ("status", "True")).is_some();
    if is_ready || pod.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let first = list_items_at(pod, "/status/initContainerStatuses");
    let statuses = list_items_at(pod, "/status/containerStatuses");
    let mut waiting = first
        .iter()
        .chain(statuses)
        .filter_map(|status| status.pointer("/state/waiting"));
    let waiting = waiting.find(|why| find_json_text(why, "/reason") != "PodInitializing");
    let why = match waiting.or_else(|| find_condition(pod, "PodScheduled", ("status", "False"))) {
        Some(why) => format!(
            "{} {}",
            find_json_text(why, "/reason"),
            find_json_text(why, "/message")
        ),
        None => find_json_text(pod, "/status/phase").to_owned(),
    };
    let place = match find_json_text(pod, "/spec/nodeName") {
        "" => "is on no node yet".to_owned(),
        node => format!("on {node}"),
    };
    Some(one_line(
        &format!(
            "pod {} {place}: {why}",
            find_json_text(pod, "/metadata/name")
        ),
        300,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_told_with_its_node_or_that_it_has_none() {
        let on = |spec: Value| {
            describe_unready_pod(&json!({ "metadata": { "name": "plug-bxj74" }, "spec": spec, "status": { "phase": "Pending" } })).unwrap()
        };
        assert_eq!(on(json!({})), "pod plug-bxj74 is on no node yet: Pending");
        assert_eq!(
            on(json!({ "nodeName": "gpu1" })),
            "pod plug-bxj74 on gpu1: Pending"
        );
    }
}
