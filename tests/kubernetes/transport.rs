//! The connection to an API server, on a real one: who gets in, what is read, previewed, applied
//! and deleted, the cluster's lock and record, and what is said when the server is gone.

use crate::rig::ControlPlane;
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::{
    ABSENT, KubernetesRead, MOVED, NO_KIND, NOT_SAID, ObjectName, REFUSED,
};
use railwright_resource::{Action, AnswerStatus, Read, ReadResult};
use railwright_transport::{
    ClusterAccess, ExecutionOutcome, Fence, FencedWrite, Grounds, HostLink, TargetAccess,
    TargetContact, TargetReach, TransportError, Upkeep, new_connector,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

#[test]
fn an_api_server_is_read_and_changed() {
    let Some(mut plane) = ControlPlane::start() else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let link = connect(&plane, "admin").await;
        let admin = &*link;
        reads_and_previews_change_nothing(&plane, admin).await;
        whole_resources_are_applied(&plane, admin).await;
        preconditions_are_held_by_the_server(&plane, admin).await;
        what_the_server_refuses_is_told(&plane, admin).await;
        kinds_come_in_the_middle(&plane, admin).await;
        dependants_go_first(&plane, admin).await;
        identities_may_what_they_may(&plane).await;
        the_lock_is_held_by_one(&plane, admin).await;
        the_record_is_kept(&plane, admin).await;
        connections_that_are_refused(&plane).await;
        a_server_that_goes_and_comes(&mut plane, admin).await;
    });
}

/// Run by the test above with a proxy in its environment that nothing listens on.
#[test]
fn through_the_environment() {
    let Ok(kubeconfig) = std::env::var("RAILWRIGHT_TEST_KUBECONFIG") else {
        return;
    };
    let connected = async {
        new_connector(TargetContact::begin())
            .connect(&access(Path::new(&kubeconfig)))
            .await
            .map(|_| ())
    };
    tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(connected)
        .unwrap();
}

fn access(kubeconfig: &Path) -> TargetAccess {
    TargetAccess {
        name: "prod".to_owned(),
        reach: TargetReach::Cluster(ClusterAccess {
            kubeconfig: Some(kubeconfig.display().to_string()),
            context: None,
            keeps: "railwright".to_owned(),
            folder: std::path::PathBuf::new(),
        }),
    }
}

async fn connect(plane: &ControlPlane, identity: &str) -> Arc<dyn HostLink> {
    new_connector(TargetContact::begin())
        .connect(&access(&plane.kubeconfig(identity)))
        .await
        .unwrap()
}

async fn refused(kubeconfig: &Path) -> TransportError {
    match new_connector(TargetContact::begin())
        .connect(&access(kubeconfig))
        .await
    {
        Ok(_) => panic!("{} connects", kubeconfig.display()),
        Err(error) => error,
    }
}

fn name(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectName {
    ObjectName {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: name.into(),
    }
}

fn config_map(called: &str) -> ObjectName {
    name("v1", "ConfigMap", Some("default"), called)
}

fn manifest(object: &ObjectName, rest: Value) -> Value {
    let mut whole = json!({ "apiVersion": object.api_version, "kind": object.kind, "metadata": { "name": object.name } });
    if let Some(namespace) = &object.namespace {
        whole["metadata"]["namespace"] = json!(namespace);
    }
    whole
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    whole
}

async fn read(link: &dyn HostLink, read: KubernetesRead) -> ReadResult {
    let read = Read::Kubernetes(read);
    link.read(std::slice::from_ref(&read))
        .await
        .unwrap()
        .get(&read)
        .unwrap()
        .clone()
}

async fn get(link: &dyn HostLink, object: &ObjectName) -> (i32, Value) {
    exit(read(link, KubernetesRead::Object(object.clone())).await)
}

async fn preview(link: &dyn HostLink, object: &ObjectName, rest: Value) -> (i32, Value) {
    let manifest = manifest(object, rest).to_string();
    exit(
        read(
            link,
            KubernetesRead::Preview {
                object: object.clone(),
                manifest,
            },
        )
        .await,
    )
}

/// The status, and the object or what is said.
fn exit(answer: ReadResult) -> (i32, Value) {
    let AnswerStatus::Exit(code) = answer.status else {
        panic!("{answer:?}")
    };
    (
        code,
        serde_json::from_str(&answer.out).unwrap_or(Value::String(answer.out)),
    )
}

async fn apply(link: &dyn HostLink, object: &ObjectName, rest: Value) -> (i32, String) {
    let precondition = match get(link, object).await {
        (0, found) => ObjectPrecondition::of(&found),
        _ => ObjectPrecondition::Absent,
    };
    apply_if(link, object, rest, precondition).await
}

async fn apply_if(
    link: &dyn HostLink,
    object: &ObjectName,
    rest: Value,
    precondition: ObjectPrecondition,
) -> (i32, String) {
    let action = Action::ApplyObject {
        object: object.clone(),
        manifest: manifest(object, rest),
        precondition,
    };
    performed(link.perform(&action, "t", None).await)
}

async fn delete(link: &dyn HostLink, object: &ObjectName, uid: &str) -> (i32, String) {
    let precondition = ObjectPrecondition::Present {
        uid: uid.to_owned(),
        part_of: None,
        hands: None,
    };
    performed(
        link.perform(
            &Action::DeleteObject {
                object: object.clone(),
                precondition,
                anew: true,
            },
            "t",
            None,
        )
        .await,
    )
}

fn write(holder: &str, token: u64, write: FencedWrite) -> Upkeep {
    Upkeep::Write {
        fence: Fence::new(holder, token),
        write,
    }
}

fn record(json: String) -> Upkeep {
    write(
        "a",
        9,
        FencedWrite::Record {
            json,
            members: Vec::new(),
            replaces: Default::default(),
            set_aside: None,
        },
    )
}

async fn keep(link: &dyn HostLink, upkeep: Upkeep) -> (i32, String) {
    performed(link.upkeep(&upkeep).await)
}

fn performed(result: Result<ExecutionOutcome, TransportError>) -> (i32, String) {
    match result.unwrap() {
        ExecutionOutcome::Ended {
            code,
            stdout,
            stderr,
        } => (code, stdout + &stderr),
        ExecutionOutcome::Unknown { reason } => panic!("unknown: {reason}"),
    }
}

/// The resource version of everything but what the control plane itself keeps alive.
fn versions(plane: &ControlPlane) -> BTreeMap<String, String> {
    let kinds = plane.kubectl(&["api-resources", "--verbs=list", "-o", "name"]);
    let kinds: Vec<&str> = kinds
        .lines()
        .filter(|kind| !kind.starts_with("leases.") && !kind.starts_with("events"))
        .collect();
    let list: Value =
        serde_json::from_str(&plane.kubectl(&["get", "-A", "-o", "json", &kinds.join(",")]))
            .unwrap();
    let text = |item: &Value, key: &str| {
        item["metadata"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let own = |item: &Value| {
        format!(
            "{} {}/{}",
            item["kind"],
            text(item, "namespace"),
            text(item, "name")
        )
    };
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (own(item), text(item, "resourceVersion")))
        .collect()
}

async fn reads_and_previews_change_nothing(plane: &ControlPlane, admin: &dyn HostLink) {
    let there = config_map("there");
    assert_eq!(
        apply(admin, &there, json!({ "data": { "a": "1" } })).await,
        (0, String::new())
    );
    let before = versions(plane);
    assert!(before.len() > 20, "{before:?}");
    let (code, object) = get(admin, &there).await;
    assert_eq!(
        (
            code,
            &object["data"],
            &object["metadata"]["managedFields"][0]["manager"]
        ),
        (0, &json!({ "a": "1" }), &json!("railwright"))
    );
    assert_eq!(get(admin, &config_map("absent")).await.0, ABSENT);
    assert_eq!(
        get(admin, &name("x.example/v1", "Strange", None, "a"))
            .await
            .0,
        NO_KIND
    );
    let (code, would_be) = preview(admin, &there, json!({ "data": { "a": "2" } })).await;
    assert_eq!(
        (code, &would_be["data"], &would_be["metadata"]["uid"]),
        (0, &json!({ "a": "2" }), &object["metadata"]["uid"])
    );
    let (code, would_be) = preview(
        admin,
        &config_map("absent"),
        json!({ "data": { "a": "1" } }),
    )
    .await;
    assert_eq!((code, &would_be["data"]), (0, &json!({ "a": "1" })));
    let many: Vec<Read> = (0..200)
        .map(|n| Read::Kubernetes(KubernetesRead::Object(config_map(&format!("m{n}")))))
        .collect();
    let answers = admin.read(&many).await.unwrap();
    assert!(
        many.iter()
            .all(|read| answers.get(read).unwrap().status == AnswerStatus::Exit(ABSENT))
    );
    assert_eq!(
        (
            keep(admin, Upkeep::ReadLock).await.0,
            keep(admin, Upkeep::ReadRecord).await.0
        ),
        (1, 1)
    );
    assert_eq!(versions(plane), before);
}

/// Fields that others own are taken over; what is no longer declared goes, and what others added
/// stays. What an apply goes by is checked by the server itself: requests as the program sends
/// them, with nothing looked at before.
async fn preconditions_are_held_by_the_server(plane: &ControlPlane, admin: &dyn HostLink) {
    let object = config_map("raced");
    let patch = |metadata: Value| {
        let mut document = manifest(&object, json!({ "data": { "a": "ours" } }));
        document["metadata"]
            .as_object_mut()
            .unwrap()
            .extend(metadata.as_object().unwrap().clone());
        let words = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=railwright",
            "-f",
            "-",
        ];
        let output = plane.kubectl_as("admin", &words, &document.to_string());
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (done, said) = patch(json!({ "uid": "00000000-0000-0000-0000-000000000000" }));
    assert!(!done && said.contains("uid mismatch"), "{said}");
    assert!(
        patch(json!({ "resourceVersion": "1" })).0,
        "it makes an object"
    );
    let uid = get(admin, &object).await.1["metadata"]["uid"].clone();
    for metadata in [
        json!({ "resourceVersion": "1" }),
        json!({ "uid": "00000000-0000-0000-0000-000000000000" }),
    ] {
        let (done, said) = patch(metadata.clone());
        assert!(!done, "{metadata}: {said}");
    }
    assert!(patch(json!({ "uid": uid })).0);
    let (code, said) = apply_if(
        admin,
        &object,
        json!({ "data": { "a": "theirs" } }),
        ObjectPrecondition::Absent,
    )
    .await;
    assert!(
        code == MOVED && said.contains("railwright made it by now, and it is left alone"),
        "{said}"
    );
    let another = ObjectPrecondition::Present {
        uid: "u".to_owned(),
        part_of: None,
        hands: None,
    };
    assert_eq!(
        apply_if(
            admin,
            &object,
            json!({ "data": { "a": "theirs" } }),
            another
        )
        .await
        .0,
        MOVED
    );
    assert_eq!(get(admin, &object).await.1["data"], json!({ "a": "ours" }));
    plane.kubectl(&["delete", "configmap", "raced"]);
}

async fn whole_resources_are_applied(plane: &ControlPlane, admin: &dyn HostLink) {
    let object = config_map("shared");
    plane.kubectl(&[
        "create",
        "configmap",
        "shared",
        "--from-literal=theirs=1",
        "--from-literal=both=1",
    ]);
    assert_eq!(
        apply(
            admin,
            &object,
            json!({ "data": { "both": "2", "ours": "2" } })
        )
        .await
        .0,
        0
    );
    assert_eq!(
        get(admin, &object).await.1["data"],
        json!({ "theirs": "1", "both": "2", "ours": "2" })
    );
    assert_eq!(
        apply(admin, &object, json!({ "data": { "both": "2" } }))
            .await
            .0,
        0
    );
    let now = get(admin, &object).await.1;
    assert_eq!(now["data"], json!({ "theirs": "1", "both": "2" }));
    let (code, said) = delete(admin, &object, "00000000-0000-0000-0000-000000000000").await;
    assert!(code == MOVED && said.contains("left alone"), "{said}");
    assert_eq!(
        delete(admin, &object, now["metadata"]["uid"].as_str().unwrap()).await,
        (0, String::new())
    );
    assert_eq!(
        (
            get(admin, &object).await.0,
            delete(admin, &object, "gone").await.0
        ),
        (ABSENT, 0)
    );
    // a warning of the server
    let namespace = name("v1", "Namespace", None, "warned");
    let labels = json!({ "metadata": { "name": "warned", "labels": { "pod-security.kubernetes.io/warn": "restricted" } } });
    assert_eq!(apply(admin, &namespace, labels).await.0, 0);
    let (code, said) = apply(admin, &daemon_set("warned", "a"), spec("a")).await;
    assert!(
        code == 0 && said.contains("would violate PodSecurity"),
        "{said}"
    );
}

fn daemon_set(namespace: &str, called: &str) -> ObjectName {
    name("apps/v1", "DaemonSet", Some(namespace), called)
}

fn spec(label: &str) -> Value {
    let template = json!({ "metadata": { "labels": { "app": label } },
                           "spec": { "containers": [{ "name": "c", "image": "example.invalid/c:1", "securityContext": { "privileged": true } }] } });
    json!({ "spec": { "selector": { "matchLabels": { "app": label } }, "template": template } })
}

async fn what_the_server_refuses_is_told(plane: &ControlPlane, admin: &dyn HostLink) {
    let told = |(code, said): (i32, Value), status: i32, words: &str| {
        assert!(
            code == status
                && said
                    .get("message")
                    .unwrap_or(&said)
                    .as_str()
                    .is_some_and(|said| said.contains(words)),
            "{code} {said}"
        );
    };
    told(
        preview(admin, &config_map("a"), json!({ "dta": {} })).await,
        REFUSED,
        "field not declared in schema",
    );
    told(
        preview(admin, &daemon_set("warned", "a"), spec("b")).await,
        REFUSED,
        "field is immutable",
    );
    told(
        preview(admin, &daemon_set("absent", "a"), spec("a")).await,
        NO_KIND,
        "namespaces \"absent\" not found",
    );
    told(
        preview(admin, &name("apps/v1", "DaemonSet", None, "a"), spec("a")).await,
        REFUSED,
        "in a namespace",
    );
    told(
        preview(
            admin,
            &name("apps/v9", "DaemonSet", Some("default"), "a"),
            spec("a"),
        )
        .await,
        NO_KIND,
        "apps/v9",
    );
    told(
        preview(admin, &config_map("A"), json!({})).await,
        REFUSED,
        "Invalid value: \"A\"",
    );
    let (code, said) = apply(admin, &config_map("a"), json!({ "dta": {} })).await;
    assert!(
        code == 1
            && said.starts_with("railwright: ")
            && said.contains("field not declared in schema"),
        "{said}"
    );
    let hook = json!({ "name": "down.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
        "clientConfig": { "url": "https://127.0.0.1:1/" }, "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "warned" } },
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"] }] });
    let webhook = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                          "metadata": { "name": "down" }, "webhooks": [hook] });
    plane.apply(&webhook.to_string());
    let hooked = name("v1", "ConfigMap", Some("warned"), "hooked");
    let mut answer = (0, Value::Null);
    for _ in 0..20 {
        answer = preview(admin, &hooked, json!({})).await;
        if answer.0 != 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    told(
        answer,
        NOT_SAID,
        "failed calling webhook \"down.example.com\"",
    );
    plane.kubectl(&["delete", "validatingwebhookconfiguration", "down"]);
}

async fn kinds_come_in_the_middle(plane: &ControlPlane, admin: &dyn HostLink) {
    let thing = name("rails.example/v1", "Thing", Some("default"), "one");
    assert_eq!(get(admin, &thing).await.0, NO_KIND);
    let definition = name(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        None,
        "things.rails.example",
    );
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "rails": { "type": "integer" } } } } });
    let spec = json!({ "group": "rails.example", "scope": "Namespaced", "names": { "plural": "things", "singular": "thing", "kind": "Thing" },
                       "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] });
    assert_eq!(
        apply(admin, &definition, json!({ "spec": spec })).await.0,
        0
    );
    assert_eq!(
        apply(admin, &thing, json!({ "spec": { "rails": 8 } })).await,
        (0, String::new()),
        "it waits until the kind is served"
    );
    assert_eq!(get(admin, &thing).await.1["spec"], json!({ "rails": 8 }));
    let (code, said) = preview(admin, &thing, json!({ "spec": { "rials": 8 } })).await;
    assert!(
        code == REFUSED && said["message"].as_str().unwrap().contains("rials"),
        "{code} {said}"
    );
    plane.kubectl(&["delete", "crd", "things.rails.example"]);
    assert!(matches!(get(admin, &thing).await.0, ABSENT | NO_KIND));
}

async fn dependants_go_first(plane: &ControlPlane, admin: &dyn HostLink) {
    plane.nodes(&["gpu01", "gpu02"], &[]);
    let object = daemon_set("default", "plugin");
    assert_eq!(apply(admin, &object, spec("plugin")).await.0, 0);
    plane.kubectl(&["rollout", "status", "daemonset/plugin", "--timeout=120s"]);
    let uid = get(admin, &object).await.1["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(delete(admin, &object, &uid).await, (0, String::new()));
    assert_eq!(get(admin, &object).await.0, ABSENT);
    assert_eq!(
        plane.kubectl(&["get", "pods", "-l", "app=plugin", "-o", "name"]),
        "",
        "its pods went before it"
    );
}

async fn identities_may_what_they_may(plane: &ControlPlane) {
    let (reader, nobody) = (
        connect(plane, "reader").await,
        connect(plane, "nobody").await,
    );
    let there = config_map("there");
    assert_eq!(get(&*reader, &there).await.0, 0);
    let resource = || KubernetesRead::Preview {
        object: there.clone(),
        manifest: manifest(&there, json!({})).to_string(),
    };
    let rule = |verb: &str| ReadResult {
        status: AnswerStatus::Denied,
        out: format!("verb {verb}, resource configmaps, API group \"\", namespace default\n"),
    };
    assert_eq!(read(&*reader, resource()).await, rule("patch"));
    assert_eq!(
        read(&*nobody, KubernetesRead::Object(there.clone())).await,
        rule("get")
    );
    let (code, said) = apply(&*reader, &there, json!({})).await;
    assert!(
        code == 1
            && said.contains("a rule is missing")
            && said.contains("verb patch, resource configmaps"),
        "{said}"
    );
    let (code, said) = keep(
        &*nobody,
        Upkeep::Lock {
            holder: "n".to_owned(),
            fence: 1,
        },
    )
    .await;
    assert!(
        code == 74
            && said.contains(
                "verb get, resource leases, API group coordination.k8s.io, namespace kube-system"
            ),
        "{said}"
    );
    let (code, said) = keep(&*nobody, record("{}".to_owned())).await;
    assert!(
        code == 74 && said.contains("verb get, resource secrets"),
        "{said}"
    );
}

async fn the_lock_is_held_by_one(plane: &ControlPlane, admin: &dyn HostLink) {
    let links = futures_util::future::join_all((0..4).map(|_| connect(plane, "admin"))).await;
    let locks: Vec<_> = (0..4)
        .map(|n| Upkeep::Lock {
            holder: format!("h{n}"),
            fence: 3,
        })
        .collect();
    let all = futures_util::future::join_all(
        links
            .iter()
            .zip(&locks)
            .map(|(link, lock)| link.upkeep(lock)),
    )
    .await;
    let codes: Vec<i32> = all.into_iter().map(|result| performed(result).0).collect();
    assert_eq!(
        (
            codes.iter().filter(|code| **code == 0).count(),
            codes.iter().filter(|code| **code == 75).count()
        ),
        (1, 3),
        "{codes:?}"
    );
    let holder = format!("h{}", codes.iter().position(|code| *code == 0).unwrap());
    let lease = plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "lease",
        "railwright",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ]);
    assert_eq!(lease, holder);
    plane.kubectl(&[
        "-n",
        "kube-system",
        "label",
        "lease",
        "railwright",
        "theirs=1",
    ]);
    let beat = || {
        write(
            &holder,
            3,
            FencedWrite::Beat {
                note: "run r1".to_owned(),
            },
        )
    };
    assert_eq!(keep(admin, beat()).await.0, 0);
    let (code, said) = keep(admin, Upkeep::ReadLock).await;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        (code, lines[0], lines[1], lines[3]),
        (0, holder.as_str(), "run r1", "3")
    );
    assert!(lines[2].parse::<u64>().unwrap() < 30, "{said}");
    assert_eq!(
        keep(
            admin,
            Upkeep::Steal {
                holder: "another".to_owned(),
                fence: 9,
                grounds: Grounds::Forced
            }
        )
        .await,
        (75, format!("{holder}\n"))
    );
    assert_eq!(
        keep(
            admin,
            Upkeep::Steal {
                holder: holder.clone(),
                fence: 9,
                grounds: Grounds::Forced
            }
        )
        .await
        .0,
        0
    );
    assert!(matches!(
        admin.upkeep(&beat()).await,
        Err(TransportError::LockLost { holder: None, .. })
    ));
    assert_eq!(keep(admin, Upkeep::ReadLock).await.0, 1);
    assert_eq!(
        keep(
            admin,
            Upkeep::Lock {
                holder: holder.clone(),
                fence: 8
            }
        )
        .await,
        (76, "9\n".to_owned())
    );
    assert_eq!(
        keep(
            admin,
            Upkeep::Lock {
                holder: "next".to_owned(),
                fence: 9
            }
        )
        .await
        .0,
        0
    );
    assert_eq!(
        keep(admin, write("next", 9, FencedWrite::Unlock)).await.0,
        0
    );
    let label = plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "lease",
        "railwright",
        "-o",
        "jsonpath={.metadata.labels.theirs}",
    ]);
    assert_eq!(label, "1", "what others keep there stays");
}

async fn the_record_is_kept(plane: &ControlPlane, admin: &dyn HostLink) {
    assert_eq!(
        keep(
            admin,
            Upkeep::Lock {
                holder: "a".to_owned(),
                fence: 9
            }
        )
        .await,
        (0, "none\n".to_owned())
    );
    for json in [
        r#"{"a":"ä"}"#.to_owned(),
        format!("[{}0]", "1234567890,".repeat(400_000)),
        "{}".to_owned(),
    ] {
        assert_eq!(keep(admin, record(json.clone())).await, (0, String::new()));
        assert_eq!(
            keep(admin, Upkeep::ReadRecord).await,
            (0, format!("{json}\n"))
        );
    }
    let read = Read::File {
        path: "/var/lib/railwright/record.json".to_owned(),
    };
    assert_eq!(
        admin
            .read(std::slice::from_ref(&read))
            .await
            .unwrap()
            .get(&read)
            .unwrap()
            .out,
        "600 root root 2 regular file\n{}"
    );
    let kind = plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "secret",
        "railwright",
        "-o",
        "jsonpath={.type}",
    ]);
    assert_eq!(kind, "railwright.io/record");
    assert_eq!(keep(admin, write("a", 9, FencedWrite::Unlock)).await.0, 0);
    let fence = || {
        plane.kubectl(&[
            "-n",
            "kube-system",
            "get",
            "secret",
            "railwright",
            "-o",
            r"jsonpath={.metadata.annotations.railwright\.io/fence}",
        ])
    };
    assert_eq!(
        (
            fence().as_str(),
            keep(
                admin,
                Upkeep::Lock {
                    holder: "b".to_owned(),
                    fence: 11
                }
            )
            .await
            .0,
            fence().as_str()
        ),
        ("9", 0, "11")
    );
    assert!(matches!(
        admin.upkeep(&record("{}".to_owned())).await,
        Err(TransportError::LockLost { .. })
    ));
    assert_eq!(keep(admin, write("b", 11, FencedWrite::Unlock)).await.0, 0);
}

/// The admin's kubeconfig with something else in it.
fn bent(plane: &ControlPlane, called: &str, bend: impl Fn(&str) -> String) -> std::path::PathBuf {
    let path = plane.work().join(format!("{called}.kubeconfig"));
    std::fs::write(
        &path,
        bend(&std::fs::read_to_string(plane.kubeconfig("admin")).unwrap()),
    )
    .unwrap();
    path
}

fn with_user(own: &str, user: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("users:") {
            format!("users: [{{name: admin, user: {user}}}]\n")
        } else {
            format!("{line}\n")
        }
    };
    own.lines().map(line).collect()
}

async fn connections_that_are_refused(plane: &ControlPlane) {
    let token = plane
        .kubectl(&["-n", "default", "create", "token", "default"])
        .trim()
        .to_owned();
    let good = bent(plane, "token", |own| {
        with_user(own, &format!("{{token: {token}}}"))
    });
    assert!(
        new_connector(TargetContact::begin())
            .connect(&access(&good))
            .await
            .is_ok()
    );
    let plugin = |script: &str| {
        let handed = r#"apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, env: [{name: T, value: secret-of-plugin}]"#;
        format!("{{exec: {{{handed}, command: sh, args: [-c, {script:?}]}}}}")
    };
    let says = format!(
        r#"printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{token}"}}}}'"#
    );
    let calls = plane.work().join("plugin.calls");
    let good = bent(plane, "plugin", |own| {
        with_user(own, &plugin(&format!("echo >>{}; {says}", calls.display())))
    });
    let connector_of_a_run = new_connector(TargetContact::begin());
    let mut called = Vec::new();
    for _ in 0..3 {
        assert!(connector_of_a_run.connect(&access(&good)).await.is_ok());
        called.push(std::fs::read_to_string(&calls).unwrap().lines().count());
    }
    assert!(
        called[0] > 0 && called == [called[0]; 3],
        "a run asks its plugin for its first connection: {called:?}"
    );

    let wrong = bent(plane, "wrong", |own| {
        with_user(own, "{token: not-the-token}")
    });
    let error = refused(&wrong).await;
    assert!(
        matches!(&error, TransportError::IdentityRefused { reason, .. } if reason.as_words().starts_with("the token of ")),
        "{error}"
    );
    assert_eq!(error.diagnostic().code, "RW0415");
    let stranger = bent(plane, "stranger", |own| {
        let (start, end) = (
            own.find(", certificate-authority-data").unwrap(),
            own.find("}}]\nusers").unwrap(),
        );
        [&own[..start], &own[end..]].concat()
    });
    let error = refused(&stranger).await;
    assert!(
        matches!(&error, TransportError::ServerNotTrusted { reason, .. } if reason.as_words().contains("authority")),
        "{error}"
    );
    let error = refused(&bent(plane, "name", |own| {
        own.replace("https://127.0.0.1", "https://[::ffff:127.0.0.1]")
    }))
    .await;
    assert!(
        matches!(&error, TransportError::ServerNotTrusted { reason, .. } if reason.as_words().contains("for another name")),
        "{error}"
    );
    let deaf = bent(plane, "deaf", |own| {
        own.replace("https://127.0.0.1:", "https://127.0.0.1:1#")
    });
    let error = refused(&deaf).await;
    assert!(
        matches!(&error, TransportError::ServerUnreachable { reason, .. } if reason.as_words().contains("refused")),
        "{error}"
    );

    let fails = bent(plane, "fails", |own| {
        with_user(
            own,
            &plugin("echo secret-on-stdout; echo log in first, $T >&2; exit 3"),
        )
    });
    let garbage = bent(plane, "garbage", |own| {
        with_user(own, &plugin("echo '{secret-on-stdout: ['"))
    });
    let pem = bent(plane, "pem", |own| {
        let (start, end) = (
            own.find("authority-data: ").unwrap(),
            own.find("}}]\nusers").unwrap(),
        );
        [&own[..start], "authority-data: AAAA", &own[end..]].concat()
    });
    let file = bent(plane, "file", |own| {
        format!("{own}\n  token: secret-in-file: [\n")
    });
    for (path, words) in [
        (
            &fails,
            "the exec plugin sh failed (exit status: 3): log in first, [secret T]",
        ),
        (&garbage, "printed no ExecCredential"),
        (&file, "is no kubeconfig: line "),
        (&pem, "no certificate in PEM"),
        (&plane.work().join("absent"), "No such file"),
    ] {
        let error = refused(path).await;
        assert!(
            matches!(&error, TransportError::NoIdentity { reason, .. } if reason.as_words().contains(words) && !reason.as_words().contains("secret-")),
            "{error}"
        );
    }
    let mut elsewhere = access(&plane.kubeconfig("admin"));
    if let TargetReach::Cluster(cluster) = &mut elsewhere.reach {
        cluster.context = Some("other".to_owned());
    }
    let error = new_connector(TargetContact::begin())
        .connect(&elsewhere)
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&error, TransportError::NoIdentity { reason, .. } if reason.as_words().contains("has no context other; it has: ")),
        "{error}"
    );

    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "transport::through_the_environment"])
        .envs([
            ("HTTPS_PROXY", "http://127.0.0.1:1"),
            ("https_proxy", "http://127.0.0.1:1"),
            ("NO_PROXY", "else.example,"),
        ])
        .env("RAILWRIGHT_TEST_KUBECONFIG", plane.kubeconfig("admin"))
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stdout)
    );
}

async fn a_server_that_goes_and_comes(plane: &mut ControlPlane, admin: &dyn HostLink) {
    let there = config_map("there");
    let question = [
        Read::Host,
        Read::Kubernetes(KubernetesRead::Object(there.clone())),
    ];
    plane.stop_api_server();
    let gone = |error: &TransportError| matches!(error, TransportError::ServerUnreachable { .. });
    assert!(gone(&admin.read(&question).await.unwrap_err()));
    assert!(gone(&admin.upkeep(&Upkeep::ReadLock).await.unwrap_err()));
    assert!(gone(&refused(&plane.kubeconfig("admin")).await));
    let precondition = ObjectPrecondition::Absent;
    let change = Action::ApplyObject {
        object: there.clone(),
        manifest: manifest(&there, json!({})),
        precondition,
    };
    assert!(
        matches!(admin.perform(&change, "t", None).await, Err(error) if gone(&error)),
        "it was certainly not taken"
    );
    plane.start_api_server();
    assert_eq!(get(admin, &there).await.0, 0);
}
