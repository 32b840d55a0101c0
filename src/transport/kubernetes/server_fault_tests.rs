//! An API server that is busy, refuses the identity, does not answer or answers nonsense, and how
//! many requests it gets at a time.

use super::tests::{
    apply, daemon_set, delete, kinds, link, object, over, preview, says, there, told, write,
};
use crate::{ExecutionOutcome, FencedWrite, Grounds, HostLink, TransportError, Upkeep};
use http::{Request, Response};
use http_body_util::Full;
use kube::client::Body;
use railwright_resource::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_resource::{AnswerStatus, Read};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says() {
    let tries = Arc::new(Mutex::new(0));
    let counted = tries.clone();
    let begun = tokio::time::Instant::now();
    let (link, _) = link(move |_, path, _| {
        if path == "/apis/apps/v1" {
            return kinds();
        }
        let mut tries = counted.lock().unwrap();
        *tries += 1;
        match *tries {
            1 => (429, vec![("retry-after", "3".to_owned())], String::new()),
            2 => (503, vec![("retry-after", "9999".to_owned())], String::new()),
            _ => there(""),
        }
    });
    assert_eq!(
        link.read(&[object()])
            .await
            .unwrap()
            .get(&object())
            .unwrap()
            .status,
        AnswerStatus::Exit(0)
    );
    assert_eq!((*tries.lock().unwrap(), begun.elapsed().as_secs()), (3, 13));
}

#[tokio::test]
async fn a_server_that_does_not_know_us_did_nothing() {
    let (link, _) = link(|_, _, _| says(401, "Unauthorized"));
    let refused = |error| matches!(error, TransportError::IdentityRefused { cluster, reason, .. } if cluster == "prod" && reason == "the token".into());
    assert!(refused(
        link.read(&[Read::Host, object()]).await.unwrap_err()
    ));
    assert!(refused(
        link.perform(&apply(), "t", None).await.unwrap_err()
    ));
    assert!(refused(link.upkeep(&Upkeep::ReadLock).await.unwrap_err()));
    assert!(refused(link.server.greet().await.unwrap_err()));
}

/// A server whose answers never come, or break off.
#[tokio::test(start_paused = true)]
async fn no_answer_is_no_failure() {
    for hangs in [true, false] {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            if request.uri().path() == "/apis/apps/v1" {
                return Ok(Response::new(Full::from(kinds().2)));
            }
            if hangs {
                std::future::pending::<()>().await;
            }
            Err(std::io::Error::other("reset by peer"))
        });
        let link = over(kube::Client::new(service, "default"));
        let desired = if hangs {
            "no answer within 60 s"
        } else {
            "the connection ended: reset by peer"
        };
        let unreachable = |error| matches!(error, TransportError::ServerUnreachable { reason, .. } if reason == desired.into());
        assert!(unreachable(
            link.read(&[Read::Host, object()]).await.unwrap_err()
        ));
        assert!(unreachable(
            link.upkeep(&Upkeep::ReadLock).await.unwrap_err()
        ));
        assert_eq!(
            link.perform(&apply(), "t", None).await.unwrap(),
            ExecutionOutcome::Unknown {
                reason: desired.to_owned().into()
            }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_are_asked_at_a_time_and_no_more() {
    let now = Arc::new(Mutex::new((0, 0)));
    let seen = now.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let now = now.clone();
        async move {
            now.lock().unwrap().0 += 1;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            let mut now = now.lock().unwrap();
            *now = (now.0 - 1, now.1.max(now.0));
            let list = request.uri().path() == "/apis/apps/v1";
            Ok::<_, Infallible>(Response::new(Full::from(if list {
                kinds().2
            } else {
                "{}".to_owned()
            })))
        }
    });
    let link = over(kube::Client::new(service, "default"));
    let read = |n: u32| {
        Read::Kubernetes(KubernetesRead::Object(ObjectName {
            name: format!("a{n}"),
            ..daemon_set()
        }))
    };
    link.read(&(0..100).map(read).collect::<Vec<_>>())
        .await
        .unwrap();
    assert_eq!(seen.lock().unwrap().1, 16);
}

fn hostile() -> Vec<String> {
    let lease = |annotations: Value| {
        json!({ "metadata": { "annotations": annotations }, "spec": 1 }).to_string()
    };
    vec![
        "null".to_owned(),
        "[]".to_owned(),
        "\"x\"".to_owned(),
        "[".repeat(10_000),
        "{\"a\":".repeat(10_000),
        json!({ "metadata": 1, "spec": [], "data": "x", "resources": {} }).to_string(),
        json!({ "metadata": { "annotations": [], "uid": 7 }, "data": { "record.json": "AAAA" } }).to_string(),
        json!({ "resources": [1, { "name": "../x", "kind": "DaemonSet", "namespaced": true }, { "name": 1 }] }).to_string(),
        json!({ "data": { "record.json": "H4sI" }, "message": { "a": 1 } }).to_string(),
        lease(json!({ "railwright.io/holder": "a", "railwright.io/fence": 7 })),
        lease(json!({ "railwright.io/holder": "a", "railwright.io/fence": "-1" })),
        lease(json!({ "railwright.io/holder": "a", "railwright.io/fence": "99999999999999999999999" })),
        lease(json!({ "railwright.io/holder": "h\n".repeat(10_000), "railwright.io/note": "\u{1b}\n" })),
        "\u{1b}[2J\u{0}\u{fffd}".to_owned(),
    ]
}

/// Whatever comes, everything that is asked ends in a status.
#[tokio::test(start_paused = true)]
async fn hostile_answers_end_in_a_status() {
    let holder = || "a".to_owned();
    for (body, status) in hostile()
        .iter()
        .flat_map(|body| [200, 201, 400, 403, 404, 409, 422].map(|status| (body.clone(), status)))
    {
        let headers = vec![
            ("date", "yesterday".to_owned()),
            ("warning", "\"".to_owned()),
            ("retry-after", "-1".to_owned()),
        ];
        let reply = (status, headers, body);
        let listed = reply.clone();
        let (every, _) = link(move |_, _, _| listed.clone());
        let (listing, _) = link(move |_, path, _| {
            if path == "/apis/apps/v1" {
                kinds()
            } else {
                reply.clone()
            }
        });
        for link in [every, listing] {
            let record = Read::File {
                path: "/var/lib/railwright/record.json".to_owned(),
            };
            let [kind, access] = super::access_review::tests::questions();
            let answers = link
                .read(&[object(), preview(), kind, access])
                .await
                .unwrap();
            assert!(
                answers
                    .iter()
                    .all(|(_, answer)| answer.out.len() <= 1 << 20)
            );
            // A record that is none is never taken for absent.
            let said = link.read(&[object(), record.clone()]).await;
            let found = said.as_ref().ok().and_then(|answers| answers.get(&record));
            let is_absent = found.is_some_and(|answer| answer.status == AnswerStatus::Exit(1));
            assert!(
                matches!(said, Err(TransportError::RecordUnread { .. })) || !is_absent,
                "{status}"
            );
            for upkeep in [
                Upkeep::ReadLock,
                Upkeep::ReadRecord,
                write(FencedWrite::Record {
                    json: "{}".to_owned(),
                    members: Vec::new(),
                    replaces: Default::default(),
                    set_aside: None,
                }),
                Upkeep::Lock {
                    holder: holder(),
                    fence: 3,
                },
                write(FencedWrite::Unlock),
                write(FencedWrite::Beat { note: holder() }),
                Upkeep::Steal {
                    holder: holder(),
                    fence: 3,
                    grounds: Grounds::Forced,
                },
            ] {
                let kept = link.upkeep(&upkeep).await;
                if matches!(kept, Err(TransportError::LockLost { .. })) {
                    continue;
                }
                let (code, stdout, _) = told(kept.unwrap());
                assert!(code != 75 || stdout.lines().count() == 1, "{stdout}");
            }
            for action in [apply(), delete(true)] {
                link.perform(&action, "t", None).await.unwrap();
            }
        }
    }
}
