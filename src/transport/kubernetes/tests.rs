//! How the answers of an API server become exit statuses, on a server that is a function.

use super::KubernetesLink;
use super::credentials::Credentials;
use super::identity::IdentityDescription;
use crate::{ExecutionOutcome, Fence, FencedWrite, HostLink, Upkeep};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::{
    ABSENT, KubernetesRead, MOVED, NO_KIND, NOT_SAID, ObjectName, REFUSED,
};
use railwright_resource::{Action, AnswerStatus, Read, ReadResult};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

pub(super) type Reply = (u16, Vec<(&'static str, String)>, String);

/// What it was asked: method, path with query, document.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Vec<(Method, String, String)>>>);

impl Asked {
    pub(super) fn last_body(&self) -> String {
        self.0
            .lock()
            .unwrap()
            .last()
            .map(|(_, _, body)| body.clone())
            .unwrap_or_default()
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|(.., body)| body.clone())
            .collect()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|(method, path, _)| format!("{method} {path}"))
            .collect()
    }
}

pub(super) fn link(
    answer: impl Fn(&Method, &str, &str) -> Reply + Clone + Send + Sync + 'static,
) -> (KubernetesLink, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, seen) = (answer.clone(), seen.clone());
        async move {
            let (head, body) = request.into_parts();
            let body =
                String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
            let path = head.uri.path_and_query().unwrap().to_string();
            seen.0
                .lock()
                .unwrap()
                .push((head.method.clone(), path.clone(), body.clone()));
            let (status, headers, text) = answer(&head.method, &path, &body);
            let builder = headers.iter().fold(
                Response::builder().status(status),
                |builder, (name, value)| builder.header(*name, value),
            );
            Ok::<_, Infallible>(builder.body(Full::new(text.into_bytes().into())).unwrap())
        }
    });
    (over(kube::Client::new(service, "default")), asked)
}

pub(super) fn over(client: kube::Client) -> KubernetesLink {
    let words = IdentityDescription {
        identity: "the token".to_owned(),
        plugin: "p".to_owned(),
        credentials: Arc::new(Credentials::new(BTreeMap::new())),
    };
    let access = crate::ClusterAccess {
        keeps: "railwright".to_owned(),
        ..Default::default()
    };
    KubernetesLink::new(
        Arc::new(super::KubernetesServer::new(
            "prod".to_owned(),
            "api:6443".to_owned(),
            words,
            client,
        )),
        access,
        Arc::default(),
    )
}

pub(super) fn says(status: u16, message: &str) -> Reply {
    let reason = if status == 404 { "NotFound" } else { "" };
    (
        status,
        Vec::new(),
        json!({ "kind": "Status", "message": message, "reason": reason, "code": status })
            .to_string(),
    )
}

pub(super) fn kinds() -> Reply {
    let resources = json!([
        { "name": "daemonsets", "kind": "DaemonSet", "namespaced": true },
        { "name": "daemonsets/status", "kind": "DaemonSet", "namespaced": true },
    ]);
    (200, Vec::new(), kinds_of("apps/v1", &resources))
}

/// The list of the kinds of a group and version.
pub(super) fn kinds_of(api_version: &str, resources: &Value) -> String {
    json!({ "kind": "APIResourceList", "groupVersion": api_version, "resources": resources })
        .to_string()
}

pub(super) fn daemon_set() -> ObjectName {
    ObjectName {
        api_version: "apps/v1".into(),
        kind: "DaemonSet".into(),
        namespace: Some("n".into()),
        name: "a".into(),
    }
}

pub(super) fn object() -> Read {
    Read::Kubernetes(KubernetesRead::Object(daemon_set()))
}

pub(super) fn preview() -> Read {
    Read::Kubernetes(KubernetesRead::Preview {
        object: daemon_set(),
        manifest: "{}".to_owned(),
    })
}

/// The answer to one read where everything but the list of kinds is answered like this.
async fn answer(read: Read, reply: Reply) -> ReadResult {
    let (link, _) = link(move |_, path, _| {
        if path == "/apis/apps/v1" {
            kinds()
        } else {
            reply.clone()
        }
    });
    link.read(std::slice::from_ref(&read))
        .await
        .unwrap()
        .get(&read)
        .unwrap()
        .clone()
}

fn exit(code: i32, out: &str) -> ReadResult {
    super::answer::new_exit_answer(code, out)
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_an_exit_status_and_what_the_server_says() {
    let lacking = |verb: &str| {
        says(
            403,
            &format!(
                r#"daemonsets.apps "a" is forbidden: User "u" cannot {verb} resource "daemonsets""#
            ),
        )
    };
    let violates = r#"pods "a" is forbidden: violates PodSecurity "baseline:latest""#;
    let typed = "failed to create typed patch object (n/a; apps/v1, Kind=DaemonSet): .spec.x: \
                 field not declared in schema";
    let denied = |verb: &str| ReadResult {
        status: AnswerStatus::Denied,
        out: format!("verb {verb}, resource daemonsets, API group apps, namespace n\n"),
    };
    let refused = |words: &str| exit(REFUSED, &json!({ "message": words }).to_string());
    let whole = (
        200,
        Vec::new(),
        r#"{"b": 1, "metadata": {"name": "a", "managedFields": [], "c": ""}}"#.to_owned(),
    );
    let told = r#"{"b":1,"metadata":{"c":"","managedFields":[],"name":"a"}}"#;
    let another = (
        200,
        Vec::new(),
        r#"{"kind": "Status", "metadata": {"name": "a"}}"#.to_owned(),
    );
    let no_server = (404, Vec::new(), "<html>".to_owned());
    let no_api_server = || exit(NOT_SAID, "what answers there is no API server: <html>");
    for (reply, of_object, of_preview) in [
        (whole, exit(0, told), exit(0, told)),
        (
            another,
            exit(NOT_SAID, "what came is no DaemonSet"),
            exit(NOT_SAID, "what came is no DaemonSet"),
        ),
        (no_server, no_api_server(), no_api_server()),
        (
            says(404, "namespaces \"n\" not found"),
            exit(ABSENT, ""),
            exit(NO_KIND, "namespaces \"n\" not found"),
        ),
        (lacking("get"), denied("get"), denied("get")),
        (lacking("create"), denied("create"), denied("create")),
        (
            says(403, "hook: you cannot"),
            exit(NOT_SAID, "hook: you cannot"),
            refused("hook: you cannot"),
        ),
        (
            says(403, violates),
            exit(NOT_SAID, violates),
            refused(violates),
        ),
        (
            says(422, "is invalid"),
            exit(NOT_SAID, "is invalid"),
            refused("is invalid"),
        ),
        (
            says(409, "is immutable"),
            exit(NOT_SAID, "is immutable"),
            refused("is immutable"),
        ),
        (says(500, typed), exit(NOT_SAID, typed), refused(typed)),
        (
            says(400, "webhook \"w\" does not support dry run"),
            exit(NOT_SAID, "webhook \"w\" does not support dry run"),
            exit(NOT_SAID, "webhook \"w\" does not support dry run"),
        ),
        (
            says(503, "etc\u{1b}[31md"),
            exit(NOT_SAID, "etc\u{fffd}[31md"),
            exit(NOT_SAID, "etc\u{fffd}[31md"),
        ),
        (
            (200, Vec::new(), "[1,2]".to_owned()),
            exit(NOT_SAID, "what came is no DaemonSet"),
            exit(NOT_SAID, "what came is no DaemonSet"),
        ),
        (
            (502, Vec::new(), String::new()),
            exit(NOT_SAID, "status 502, and nothing said"),
            exit(NOT_SAID, "status 502, and nothing said"),
        ),
    ] {
        assert_eq!(
            answer(object(), reply.clone()).await,
            of_object,
            "{reply:?}"
        );
        assert_eq!(
            answer(preview(), reply.clone()).await,
            of_preview,
            "{reply:?}"
        );
    }
    let long = answer(
        object(),
        (200, Vec::new(), format!("\"{}\"", "x".repeat(2 << 20))),
    )
    .await;
    assert_eq!(
        (long.status, long.out.len()),
        (AnswerStatus::TooLong, 1 << 20)
    );
}

#[tokio::test]
async fn what_is_asked_of_a_host_has_no_answer_here() {
    let uid = r#"{"kind":"Namespace","metadata":{"uid":"0a1b2c3d-0000-4000-8000-0123456789ab"}}"#;
    let of_cluster = move |_: &Method, path: &str, _: &str| {
        if path.ends_with("/kube-system") {
            (200, Vec::new(), uid.to_owned())
        } else {
            says(404, "")
        }
    };
    let (link, asked) = link(of_cluster);
    let read = |path: &str| Read::File {
        path: path.to_owned(),
    };
    let reads = [
        Read::Host,
        Read::Hardware,
        read("/etc/hosts"),
        read("/var/lib/railwright/record.json"),
    ];
    let answers = link.read(&reads).await.unwrap();
    let codes: Vec<_> = reads
        .iter()
        .map(|read| answers.get(read).unwrap().clone())
        .collect();
    let which = "machine_id 0a1b2c3d0000400080000123456789ab\nend\n";
    assert_eq!(
        codes,
        [exit(0, which), exit(127, ""), exit(127, ""), exit(1, "")]
    );
    let paths = ["", "/secrets/railwright"]
        .map(|below| format!("GET /api/v1/namespaces/kube-system{below}"));
    assert_eq!(asked.lines(), paths);
    assert!(matches!(
        link.perform(&Action::Reboot, "t", None).await,
        Ok(ExecutionOutcome::Ended { code: 70, .. })
    ));
}

/// A CRD comes in the middle of an apply.
#[tokio::test]
async fn a_kind_is_asked_for_once_and_again_when_it_is_missing() {
    let (link, asked) = link(|_, path, _| {
        if path == "/apis/apps/v1" {
            kinds()
        } else {
            says(404, "")
        }
    });
    let other = Read::Kubernetes(KubernetesRead::Object(ObjectName {
        name: "b".into(),
        ..daemon_set()
    }));
    let strange = ObjectName {
        kind: "Strange".into(),
        ..daemon_set()
    };
    let unknown = Read::Kubernetes(KubernetesRead::Object(strange.clone()));
    link.read(&[object(), other.clone(), preview()])
        .await
        .unwrap();
    link.read(&[object()]).await.unwrap();
    let lists = |asked: &Asked| {
        asked
            .lines()
            .iter()
            .filter(|line| *line == "GET /apis/apps/v1")
            .count()
    };
    assert_eq!(lists(&asked), 1);
    let answers = link.read(&[unknown.clone(), object()]).await.unwrap();
    assert_eq!(
        answers.get(&unknown),
        Some(&exit(
            NO_KIND,
            "the server does not know the kind Strange of apps/v1"
        ))
    );
    assert_eq!(lists(&asked), 2);
    assert!(asked.lines().iter().any(|line| {
        line == "PATCH \
                 /apis/apps/v1/namespaces/n/daemonsets/a?fieldManager=railwright&force=true&fieldValidation=Strict&dryRun=All"
    }));
}

pub(super) fn apply() -> Action {
    Action::ApplyObject {
        object: daemon_set(),
        manifest: json!({ "kind": "DaemonSet" }),
        precondition: ObjectPrecondition::Absent,
    }
}

/// The object as it is there, of UID `u1`, with this finalizer.
pub(super) fn there(finalizer: &str) -> Reply {
    let metadata =
        json!({ "name": "a", "uid": "u1", "resourceVersion": "7", "finalizers": [finalizer] });
    (
        200,
        Vec::new(),
        json!({ "kind": "DaemonSet", "metadata": metadata }).to_string(),
    )
}

pub(super) fn delete(anew: bool) -> Action {
    let precondition = ObjectPrecondition::Present {
        uid: "u1".to_owned(),
        part_of: None,
        hands: None,
    };
    Action::DeleteObject {
        object: daemon_set(),
        precondition,
        anew,
    }
}

pub(super) fn told(performed: ExecutionOutcome) -> (i32, String, String) {
    match performed {
        ExecutionOutcome::Ended {
            code,
            stdout,
            stderr,
        } => (code, stdout, stderr),
        ExecutionOutcome::Unknown { reason } => (-1, String::new(), reason.to_string()),
    }
}

#[tokio::test(start_paused = true)]
async fn an_apply_says_what_came_of_it() {
    let forbidden = r#"daemonsets.apps "a" is forbidden: User "u" cannot patch resource "daemonsets" in API group "apps" in the namespace "n""#;
    let rule = "railwright: a rule is missing in the roles of this identity: verb patch, resource \
                daemonsets, API group apps, namespace n\n";
    // It was to be made, and 201 alone says that it was.
    let over = "railwright: DaemonSet.apps n/a was there by then, and the server wrote over it all \
                the same\n";
    for (reply, desired) in [
        (
            (
                201,
                vec![("warning", "299 - \"old \\\"kind\\\"\"".to_owned())],
                says(201, "").2,
            ),
            (0, "old \"kind\"\n", ""),
        ),
        (says(200, ""), (1, "", over)),
        (
            says(422, "spec.x: Required"),
            (1, "", "railwright: spec.x: Required\n"),
        ),
        (says(403, forbidden), (1, "", rule)),
        (says(504, "Timeout"), (-1, "", "Timeout")),
    ] {
        let (link, asked) = link(move |_, path, _| {
            if path == "/apis/apps/v1" {
                kinds()
            } else {
                reply.clone()
            }
        });
        let (code, stdout, stderr) = told(link.perform(&apply(), "t", None).await.unwrap());
        assert_eq!((code, stdout.as_str(), stderr.as_str()), desired);
        let (_, path, body) = asked
            .0
            .lock()
            .unwrap()
            .iter()
            .find(|(method, ..)| *method == Method::PATCH)
            .unwrap()
            .clone();
        assert!(
            !path.contains("dryRun") && path.contains("force=true"),
            "{path}"
        );
        assert_eq!(
            body,
            r#"{"kind":"DaemonSet","metadata":{"resourceVersion":"1"}}"#
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_of_one_uid_and_waits_until_it_is_gone() {
    let left = Arc::new(Mutex::new(3));
    let server = move |method: &Method, path: &str, _: &str| -> Reply {
        let mut left = left.lock().unwrap();
        match *method {
            _ if path == "/apis/apps/v1" => kinds(),
            Method::DELETE => says(202, ""),
            _ if *left == 0 => says(404, ""),
            _ => {
                *left -= 1;
                there("foregroundDeletion")
            }
        }
    };
    let delete = delete(true);
    let (gone, asked) = link(server);
    assert_eq!(told(gone.perform(&delete, "t", None).await.unwrap()).0, 0);
    let (_, _, options) = asked
        .0
        .lock()
        .unwrap()
        .iter()
        .find(|(method, ..)| *method == Method::DELETE)
        .unwrap()
        .clone();
    let options: Value = serde_json::from_str(&options).unwrap();
    let preconditions = json!({ "uid": "u1", "resourceVersion": "7" });
    assert_eq!(
        (&options["preconditions"], &options["propagationPolicy"]),
        (&preconditions, &json!("Foreground"))
    );
    for (status, code) in [(404, 0), (409, 1)] {
        let (link, _) = link(move |method, path, _| match *method {
            _ if path == "/apis/apps/v1" => kinds(),
            Method::DELETE => says(status, ""),
            _ => there(""),
        });
        assert_eq!(
            told(link.perform(&delete, "t", None).await.unwrap()).0,
            code
        );
    }
    let (another, asked) = link(|_, path, _| match path {
        "/apis/apps/v1" => kinds(),
        _ => (
            200,
            Vec::new(),
            json!({ "metadata": { "name": "a", "uid": "u2", "resourceVersion": "8" } }).to_string(),
        ),
    });
    assert_eq!(
        told(another.perform(&delete, "t", None).await.unwrap()).0,
        MOVED
    );
    assert_eq!(asked.lines().len(), 2, "it is looked at, and left alone");
    let (stays, _) = link(|method, path, _| match *method {
        _ if path == "/apis/apps/v1" => kinds(),
        Method::DELETE => says(202, ""),
        _ => there("x.y/z"),
    });
    let (code, _, stderr) = told(stays.perform(&delete, "t", None).await.unwrap());
    assert!(
        code == 1
            && stderr.contains("held by its finalizer x.y/z (the controller of x.y takes it away)"),
        "{stderr}"
    );
}

pub(super) fn write(write: FencedWrite) -> Upkeep {
    Upkeep::Write {
        fence: Fence::new("a", 3),
        write,
    }
}

#[tokio::test]
async fn what_only_a_host_has_is_said_so() {
    let (link, asked) = link(|_, _, _| says(500, "never asked"));
    let token = || "t".to_owned();
    for (upkeep, code) in [
        (
            Upkeep::Idle {
                attempt: None,
                run: None,
            },
            0,
        ),
        (write(FencedWrite::ServerReads), 0),
        (
            write(FencedWrite::Arm {
                token: token(),
                scope: railwright_resource::rollback_scope::RollbackScope::default(),
                seconds: 9,
            }),
            69,
        ),
        (write(FencedWrite::Disarm { token: token() }), 1),
        (write(FencedWrite::Fire { token: token() }), 1),
        (Upkeep::RollbackStatus { token: token() }, 1),
    ] {
        assert_eq!(
            told(link.upkeep(&upkeep).await.unwrap()).0,
            code,
            "{upkeep:?}"
        );
    }
    assert!(asked.lines().is_empty());
}
