//! Writes whose ground is gone: the lock is another one's by now, an earlier try may have been
//! done, or somebody changed what was looked at.

use super::mark_key::tests::answer_of_key;
use super::tests::{Reply, kinds, kinds_of, link, says, told};
use crate::{ExecutionOutcome, Fence, Grounds, HostLink as _, TransportError, Upkeep};
use http::Method;
use railwright_resource::json_in_configmap::edit::{JsonEdit, JsonPointerValue};
use railwright_resource::json_in_configmap::mark::RestartMark;
use railwright_resource::kubernetes_object::ownership::{ADOPTED, ATTEMPT, MEMBERSHIP};
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::{MOVED, ObjectName};
use railwright_resource::node_field::NodeField;
use railwright_resource::node_field::edit::{NodeEdit, NodeFieldChange};
use railwright_resource::{Action, kubernetes_object::nodes::CORDONED, node_field};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn named(api_version: &str, kind: &str, name: &str) -> ObjectName {
    let namespace = (kind != "Node").then(|| "n".to_owned());
    ObjectName {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace,
        name: name.to_owned(),
    }
}

/// What is there under this name.
fn object(name: &str) -> Value {
    let managed = json!([{ "manager": "railwright", "operation": "Apply" }, { "manager": "controller", "subresource": "status" }]);
    json!({
        "metadata": {
            "name": name, "uid": "u1", "resourceVersion": "7", "labels": { MEMBERSHIP: "train" },
            "annotations": if name == "cordoned" { json!({ CORDONED: "{}" }) } else { json!({}) }, "managedFields": managed,
        },
        "data": { "conf": r#"{"a": 1}"# },
    })
}

/// Every action that writes to a cluster with requests of our own.
fn actions() -> Vec<Action> {
    let conf = || named("v1", "ConfigMap", "conf");
    let manifest = |name: &str| json!({ "kind": "ConfigMap", "metadata": { "name": name, "labels": { MEMBERSHIP: "train" } } });
    let looked_at = ObjectPrecondition::of(&object("conf"));
    let edit = JsonEdit::Value {
        pointer: "/a".to_owned(),
        old: JsonPointerValue::Is(json!(1)),
        new: JsonPointerValue::Is(json!(2)),
        up_to: None,
    };
    let mark = RestartMark {
        name: "railwright.io/x".to_owned(),
        value: Some("y".to_owned()),
    };
    let of_node = node_field::mark::NodeOwnershipAnnotation {
        spec: "train".to_owned(),
        set: "a".to_owned(),
        was: None,
    };
    let change = NodeFieldChange {
        old: None,
        new: Some("a".to_owned()),
        mark: Some(of_node),
    };
    let field = NodeField::Label {
        key: "pool".to_owned(),
    };
    vec![
        Action::ApplyObject {
            object: named("v1", "ConfigMap", "new"),
            manifest: manifest("new"),
            precondition: ObjectPrecondition::Absent,
        },
        Action::ApplyObject {
            object: conf(),
            manifest: manifest("conf"),
            precondition: looked_at.clone(),
        },
        Action::CreateObject {
            object: named("v1", "ConfigMap", "new"),
            manifest: manifest("new"),
        },
        Action::DeleteObject {
            object: conf(),
            precondition: ObjectPrecondition::for_deletion(&object("conf")),
            anew: false,
        },
        Action::UnmarkObject {
            object: conf(),
            precondition: looked_at.clone(),
        },
        Action::EditConfigMap {
            object: conf(),
            precondition: looked_at,
            key: "conf".to_owned(),
            edits: vec![edit],
            mark: None,
        },
        Action::MarkPodTemplate {
            object: named("apps/v1", "DaemonSet", "a"),
            precondition: ObjectPrecondition::of(&object("a")),
            mark,
        },
        Action::EditNodes {
            field,
            edits: vec![NodeEdit {
                nodes: vec!["gpu-1".to_owned()],
                change,
            }],
        },
        Action::CordonNode {
            node: "gpu-1".to_owned(),
            mark: "{}".to_owned(),
        },
        Action::UncordonNode {
            node: "cordoned".to_owned(),
        },
        Action::EvictPod {
            namespace: "n".to_owned(),
            name: "p".to_owned(),
            uid: "u1".to_owned(),
        },
    ]
}

fn lease(holder: &str, token: &str, version: u64) -> Reply {
    let annotations = json!({ "railwright.io/holder": holder, "railwright.io/fence": token });
    let metadata = json!({ "name": "railwright", "resourceVersion": version.to_string(), "annotations": annotations });
    (200, Vec::new(), json!({ "kind": "Lease", "metadata": metadata, "spec": { "renewTime": "2026-01-01T00:00:00.000000Z" } }).to_string())
}

/// What is read, with nothing changed.
fn read(path: &str) -> Reply {
    if let Some(key) = answer_of_key(path) {
        return key;
    }
    let name = path.rsplit('/').next().unwrap();
    match path {
        "/api/v1" => {
            let resources =
                json!([{ "name": "configmaps", "kind": "ConfigMap", "namespaced": true }]);
            (200, Vec::new(), kinds_of("v1", &resources))
        }
        "/apis/apps/v1" => kinds(),
        _ if name == "new" => says(404, "not found"),
        _ => (200, Vec::new(), object(name).to_string()),
    }
}

/// What comes of an action under this run's lock, which another one takes over after so many
/// writes; and how many writes there were. Each is answered with this status.
async fn acted(
    action: &Action,
    lost_after: usize,
    status: u16,
) -> (Result<ExecutionOutcome, TransportError>, usize) {
    let writes = Arc::new(Mutex::new(0));
    let count = writes.clone();
    let (link, _) = link(move |method, path, _| {
        let mut count = count.lock().unwrap();
        match *method {
            Method::GET if path.contains("/leases/") && *count >= lost_after => lease("b", "6", 9),
            Method::GET if path.contains("/leases/") => lease("a", "5", 8),
            Method::GET => read(path),
            _ => {
                *count += 1;
                says(status, "it says")
            }
        }
    });
    let performed = link.perform(action, "t", Some(&Fence::new("a", 5))).await;
    let writes = *writes.lock().unwrap();
    (performed, writes)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_the_lock() {
    for action in actions() {
        let (performed, writes) = acted(&action, 0, 200).await;
        assert!(
            matches!(&performed, Err(TransportError::LockLost { holder, .. }) if holder.as_deref() == Some("b")),
            "{performed:?}"
        );
        assert_eq!(writes, 0, "{action:?}");
        // Nor after the first of its requests, however that ended.
        for status in [409, 429, 500, 503, 504] {
            let (performed, writes) = acted(&action, 1, status).await;
            assert_eq!(writes, 1, "{status}: {action:?}");
            let settled = status == 409
                && matches!(
                    action,
                    Action::EvictPod { .. } | Action::MarkPodTemplate { .. }
                );
            assert!(
                settled || matches!(performed, Err(TransportError::LockLost { .. })),
                "{status}: {action:?}: {performed:?}"
            );
        }
        // The token counts: the same holder has taken it again since.
        let (again, asked) = link(|_, path, _| {
            if path.contains("/leases/") {
                lease("a", "6", 9)
            } else {
                read(path)
            }
        });
        let performed = again.perform(&action, "t", Some(&Fence::new("a", 5))).await;
        assert!(
            matches!(performed, Err(TransportError::LockLost { .. })),
            "{performed:?}"
        );
        assert!(
            asked.lines().iter().all(|line| line.starts_with("GET ")),
            "{:?}",
            asked.lines()
        );
    }
}

/// A try that was not answered may have been done, whatever the next ones come to.
#[tokio::test(start_paused = true)]
async fn once_a_try_is_unsure_every_later_error_is() {
    for (action, after) in actions()
        .iter()
        .flat_map(|action| [400, 401, 403, 422, 429, 0].map(|after| (action.clone(), after)))
    {
        let writes = Arc::new(Mutex::new(0));
        let (link, _) = link(move |method, path, _| {
            let mut writes = writes.lock().unwrap();
            match *method {
                // No answer to a look after it, either.
                Method::GET if *writes > 0 && after == 0 => says(403, "no"),
                Method::GET => read(path),
                _ => {
                    *writes += 1;
                    says(
                        if *writes == 1 || after == 0 {
                            504
                        } else {
                            after
                        },
                        "it says",
                    )
                }
            }
        });
        let performed = link.perform(&action, "t", None).await;
        assert!(
            matches!(performed, Ok(ExecutionOutcome::Unknown { .. })),
            "{after}: {action:?}: {performed:?}"
        );
    }
}

/// Another run of the same spec made it: its mark is no proof that we did.
#[tokio::test(start_paused = true)]
async fn what_another_run_made_is_known_by_its_attempt() {
    let action = &actions()[0];
    for (status, attempt, desired) in [
        (409, "other", MOVED),
        (504, "other", MOVED),
        (409, "t", 0),
        (504, "t", 0),
    ] {
        let writes = Arc::new(Mutex::new(0));
        let count = writes.clone();
        let (link, asked) = link(move |method, path, _| {
            let mut count = count.lock().unwrap();
            match *method {
                Method::GET if *count > 0 && path.ends_with("/new") => {
                    let mut made = object("new");
                    made["metadata"]["annotations"][ATTEMPT] = json!(attempt);
                    let fields =
                        json!({ "f:metadata": { "f:labels": { "f:railwright.io/part-of": {} } } });
                    made["metadata"]["managedFields"] = json!([{ "manager": "railwright", "operation": "Apply", "fieldsV1": fields }]);
                    (200, Vec::new(), made.to_string())
                }
                Method::GET => read(path),
                _ => {
                    *count += 1;
                    says(status, "it says")
                }
            }
        });
        let (code, ..) = told(link.perform(action, "t", None).await.unwrap());
        assert_eq!(
            (code, *writes.lock().unwrap()),
            (desired, 1),
            "{status} {attempt}"
        );
        let sent: Value = serde_json::from_str(
            &asked
                .bodies()
                .into_iter()
                .find(|body| !body.is_empty())
                .unwrap(),
        )
        .unwrap();
        assert_eq!(sent["metadata"]["annotations"][ATTEMPT], "t");
    }
}

/// The object goes, and a gateway answers for the server.
#[tokio::test(start_paused = true)]
async fn what_a_gateway_says_of_a_write_is_no_refusal() {
    for (status, page) in [
        (404, "<html>default backend".to_owned()),
        (301, String::new()),
        (403, "{}".to_owned()),
        (403, "x".repeat(320 << 10)),
        (202, String::new()),
        (204, String::new()),
    ] {
        let is_gone = Arc::new(Mutex::new(false));
        let (link, _) = link(move |method, path, _| {
            let mut is_gone = is_gone.lock().unwrap();
            match *method {
                Method::GET if *is_gone && path.ends_with("/conf") => says(404, "not found"),
                Method::GET => read(path),
                _ => {
                    *is_gone = true;
                    (status, Vec::new(), page.clone())
                }
            }
        });
        let (code, _, said) = told(link.perform(&actions()[3], "t", None).await.unwrap());
        assert_eq!(code, 0, "{status}: {said}");
    }
}

/// A page that lets somebody log in, in the place of the server's answer: nothing was written.
#[tokio::test(start_paused = true)]
async fn what_a_gateway_says_of_a_write_is_no_success() {
    for (status, page) in [
        (200, "<html>Sign in</html>".to_owned()),
        (201, "{}".to_owned()),
        (200, "x".repeat(1 << 20)),
    ] {
        for action in actions() {
            let page = page.clone();
            let (link, _) = link(move |method, path, _| match *method {
                Method::GET => read(path),
                _ => (status, Vec::new(), page.clone()),
            });
            let (code, _, said) = told(link.perform(&action, "t", None).await.unwrap());
            assert_ne!(code, 0, "{status} {action:?}: {said}");
        }
    }
}

/// What comes of a deletion that met another write, which left this behind.
async fn deleted_after(
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> (i32, usize) {
    let writes = Arc::new(Mutex::new(0));
    let count = writes.clone();
    let (link, _) = link(move |method, path, _| {
        let mut count = count.lock().unwrap();
        match *method {
            Method::GET if *count == 1 && path.ends_with("/conf") => {
                let mut now = object("conf");
                now["metadata"]["resourceVersion"] = json!("8");
                change(&mut now);
                (200, Vec::new(), now.to_string())
            }
            Method::GET => read(path),
            _ => {
                *count += 1;
                says(if *count == 1 { 409 } else { 200 }, "it says")
            }
        }
    });
    let (code, ..) = told(link.perform(&actions()[3], "t", None).await.unwrap());
    let writes = *writes.lock().unwrap();
    (code, writes)
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changed_meanwhile_is_not_deleted() {
    let left_alone = (MOVED, 1);
    assert_eq!(
        deleted_after(|now| now["metadata"]["annotations"][ADOPTED] = json!("true")).await,
        left_alone
    );
    assert_eq!(
        deleted_after(|now| now["metadata"]["managedFields"][0]["manager"] = json!("argocd")).await,
        left_alone
    );
    assert_eq!(
        deleted_after(|now| now["data"]["more"] = json!("precious")).await,
        left_alone
    );
    // Nor what was changed before the first look of the write itself, by whomever.
    let mut compared = object("conf");
    compared["data"]["conf"] = json!("{}");
    let precondition = ObjectPrecondition::for_deletion(&compared);
    let (link, asked) = link(|_, path, _| read(path));
    let delete = Action::DeleteObject {
        object: named("v1", "ConfigMap", "conf"),
        precondition,
        anew: false,
    };
    let (code, _, said) = told(link.perform(&delete, "t", None).await.unwrap());
    assert!(
        code == MOVED && said.contains("was changed since it was looked at"),
        "{code} {said}"
    );
    assert!(
        asked.lines().iter().all(|line| line.starts_with("GET ")),
        "{:?}",
        asked.lines()
    );
    // What the server and the controllers note for themselves moves all the time.
    assert_eq!(
        deleted_after(|now| now["status"]["replicas"] = json!(3)).await,
        (0, 2)
    );
    assert_eq!(
        deleted_after(|now| now["metadata"]["managedFields"][1]["manager"] = json!("another"))
            .await,
        (0, 2)
    );
}

/// The clock of the server's answers is that of whatever stands between: only what is seen of the
/// lock counts.
#[tokio::test(start_paused = true)]
async fn a_lock_that_lives_is_not_taken_for_silent_by_a_wrong_date() {
    for (beats, grounds, code) in [
        (true, Grounds::Silent(180), 77),
        (false, Grounds::Silent(180), 0),
        (true, Grounds::Forced, 0),
        (true, Grounds::Dead, 0),
    ] {
        let begun = tokio::time::Instant::now();
        let written = Arc::new(Mutex::new(false));
        let is_written = written.clone();
        let (link, _) = link(move |method, _, _| {
            let beat = if beats {
                10 + begun.elapsed().as_secs() / 60
            } else {
                10
            };
            match *method {
                Method::GET => {
                    let (status, _, body) = lease("ann", "3", beat);
                    (
                        status,
                        vec![("date", "Mon, 23 Nov 2026 00:00:00 GMT".to_owned())],
                        body,
                    )
                }
                _ => {
                    *is_written.lock().unwrap() = true;
                    says(200, "")
                }
            }
        });
        let steal = Upkeep::Steal {
            holder: "ann".to_owned(),
            fence: 9,
            grounds,
        };
        assert_eq!(
            told(link.upkeep(&steal).await.unwrap()).0,
            code,
            "{beats} {grounds:?}"
        );
        assert_eq!(*written.lock().unwrap(), code == 0);
        assert!(
            begun.elapsed().as_secs()
                >= if code == 0 && grounds == Grounds::Silent(180) {
                    180
                } else {
                    0
                }
        );
    }
}
