//! How values, rendered objects, hooks and the objects on the cluster are compared, and what of a
//! secret value is not shown.

use super::compare::{self, HelmReleaseChange, HelmReleaseObject};
use super::request::{HelmReleaseState, InstalledRelease, secret_label};
use super::tests::{compared, installed, is, resource, said, undone};
use super::{rendered_objects, rights};
use crate::kubernetes_object::manifest;
use railwright_base::Reason;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn rendered_objects_are_compared_by_their_fields() {
    let text = "---\n\
                # Source: a\n\
                apiVersion: v1\n\
                kind: ConfigMap\n\
                metadata: { name: a }\n\
                data:\n  t: |\n    x\n     --- y\n\
                ---\n\
                # nothing\n\
                ---\n\
                apiVersion: v1\n\
                kind: List\n\
                items: [{ apiVersion: v1, kind: Secret, metadata: { name: s }, data: { k: QQ== } \
                }]\n";
    let before = rendered_objects::parse_manifest_objects(text).unwrap();
    assert_eq!(before.len(), 2);
    assert!(rendered_objects::parse_manifest_objects("a: [").is_err());
    let after = rendered_objects::parse_manifest_objects(
        &text.replace("QQ==", "Qg==").replace(" x\n", " z\n"),
    )
    .unwrap();
    let changes = compare::diff_rendered_objects(&after, &before);
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(names, ["ConfigMap.core a: data.t", "Secret.core s: data.k"]);
    assert!(
        !serde_json::to_string(&changes).unwrap().contains("Qg=="),
        "{changes:?}"
    );
    let gone = compare::diff_rendered_objects(&after[..1], &before);
    assert_eq!(
        (gone[1].desired.clone(), gone[1].actual.clone()),
        (None, Some(json!("present")))
    );
}

#[test]
fn values_are_compared_and_what_may_be_secret_is_not_shown() {
    let desired = json!({ "a": { "b": 1 }, "token": "new-secret" });
    let actual = json!({ "a": { "b": 2, "c": { "dbPassword": "hunter22" } }, "token": "old-secret", "plain": "old-secret" });
    let mut changes = compare::diff_release_values(&desired, &actual, &["/token".to_owned()]);
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(
        names,
        ["values.a.b", "values.a.c", "values.plain", "values.token"]
    );
    compare::conceal_secret_changes(&mut changes, &actual, &["/token".to_owned()]);
    let shown = serde_json::to_string(&changes).unwrap();
    assert!(
        !["hunter22", "old-secret", "new-secret"]
            .iter()
            .any(|secret| shown.contains(secret)),
        "{shown}"
    );
    assert_eq!(
        compare::diff_release_values(&json!({}), &Value::Null, &[]),
        []
    );
    let labels = BTreeSet::from([
        secret_label("/a/c"),
        secret_label("/list/1/x~1y"),
        secret_label("/gone"),
    ]);
    assert_eq!(
        compare::find_labelled_secret_paths(
            &json!({ "a": { "c": 1, "d": 2 }, "list": [0, { "x/y": 1 }] }),
            &labels
        ),
        ["/a/c", "/list/1/x~1y"]
    );
    let mut named = [
        "ConfigMap.core a: data.old-secret",
        "ConfigMap.core old-secret",
        "values.old-secret.version",
    ]
    .map(|name| HelmReleaseChange {
        name: name.to_owned(),
        desired: Some(json!(1)),
        ..HelmReleaseChange::default()
    })
    .to_vec();
    compare::conceal_secret_changes(&mut named, &actual, &["/token".to_owned()]);
    let names: Vec<&str> = named.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ConfigMap.core a: data.[secret of the release] 0",
            "ConfigMap.core old-secret",
            "values.old-secret.version"
        ]
    );
    assert_eq!(
        compare::diff_release_values(
            &json!({ "a": 2.0, "b": [1.5] }),
            &json!({ "a": 2, "b": [1.5] }),
            &[]
        ),
        []
    );
    let hides = |name: &str| {
        let changes =
            compare::diff_release_values(&json!({}), &json!({ "db": { name: "x" } }), &[]);
        changes[0].actual == Some(json!("(not shown, and another)"))
    };
    for name in [
        "pw",
        "PW",
        "db_pw",
        "adminPw",
        "passwd",
        "apiKey",
        "api-key",
        "PRIVATE_KEY",
        "privateKey",
    ] {
        assert!(hides(name), "{name}");
    }
    for name in ["upward", "power", "keyboard", "stopWatch"] {
        assert!(!hides(name), "{name}");
    }
}

/// A secret may name the item of a list, or a key.
#[test]
fn what_is_not_shown_is_named_by_its_place() {
    let keys = |key: &str| json!([{ "key": key, "role": "admin" }]);
    let config = |key: &str| json!({ "keys": keys(key) }).to_string();
    let values = |key: &str| json!({ "keys": keys(key), "conf": config(key) });
    let secret = |key: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "c.json": config(key) } });
    let map = |data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
    let base64 = "T0xEc2VjcmV0LWh1bnRlcjI";
    let (old, new) = (values("OLDsecret-hunter2"), values("NEWsecret-hunter3"));
    let objects = |data: Value, key: &str| [map(data), secret(key)];
    let names_of = |changes: &mut Vec<HelmReleaseChange>, hidden: &[&str]| -> Vec<String> {
        let hidden: Vec<String> = hidden.iter().map(|at| (*at).to_owned()).collect();
        compare::conceal_secret_changes(changes, &old, &hidden);
        let all = serde_json::to_string(changes).unwrap();
        for secret in ["OLDsecret", "NEWsecret", base64, "live-key"] {
            assert!(!all.contains(secret), "{all}");
        }
        changes.iter().map(|change| change.name.clone()).collect()
    };
    let hidden = ["/keys/0/key", "/conf"];
    let mut changes = compare::diff_release_values(&new, &old, &hidden.map(str::to_owned));
    changes.extend(compare::diff_rendered_objects(
        &objects(json!({ "c.json": config("x") }), "live-key-2"),
        &objects(
            json!({ base64: "made", "c.json": config(&format!("{base64}=")) }),
            "live-key-1",
        ),
    ));
    assert_eq!(
        names_of(&mut changes, &hidden),
        [
            "values.conf",
            "values.keys[0]",
            "ConfigMap.core a: data.[secret of the release] 4",
            "ConfigMap.core a: data.\"c.json\"",
            "Secret.core s: stringData.\"c.json\"",
        ]
    );
    for change in [&changes[0], &changes[1], &changes[4]] {
        assert!(
            change.desired.is_some() && change.actual.is_some(),
            "{change:?}"
        );
    }
    // Nothing of a Secret is shown, whether the spec has secrets or not.
    let mut one = compare::diff_rendered_objects(&[secret("live-key-2")], &[secret("live-key-1")]);
    assert_eq!(
        names_of(&mut one, &[]),
        ["Secret.core s: stringData.\"c.json\""]
    );
    let part = |role: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "c.json": role } });
    let mut less = compare::diff_rendered_objects(&[part("{}")], &[part("{\"live-key\":1}")]);
    names_of(&mut less, &[]);
    assert!(less[0].desired.is_some(), "the text stays: {less:?}");
}

#[test]
fn hooks_are_compared_like_objects_and_told_from_them() {
    let hook = |word: &str, policy: &str| {
        let annotations = json!({ "helm.sh/hook": "pre-upgrade,post-delete", "helm.sh/hook-delete-policy": policy });
        let metadata = json!({ "name": "h", "annotations": annotations });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "a": word } })
    };
    let name = "hook ConfigMap.core h (pre-upgrade,post-delete)".to_owned();
    let changes = compare::diff_rendered_objects(&[hook("EVIL", "x")], &[hook("one", "x")]);
    assert_eq!(
        changes
            .iter()
            .map(|change| change.name.clone())
            .collect::<Vec<_>>(),
        [format!("{name}: data.a")]
    );
    assert_eq!(
        compare::diff_rendered_objects(&[hook("one", "x")], &[])[0].name,
        name
    );
    assert_eq!(
        rights::parse_changed_object(&name),
        None,
        "nothing of it is asked about under the name of an object"
    );
    let of = |policy: &str| compare::hooks_of_uninstall(&[hook("one", policy)]);
    assert_eq!(
        of("before-hook-creation"),
        (vec![name.clone()], vec![name.clone()])
    );
    assert_eq!(of("hook-succeeded"), (vec![name], vec![]));
}

#[test]
fn fields_with_one_text_do_not_hide_each_other() {
    let (desired, actual) = (
        json!({ "a": { "b": "evil" }, "a.b": "good" }),
        json!({ "a": { "b": "good" } }),
    );
    let changes = compare::diff_release_values(&desired, &actual, &[]);
    let state = HelmReleaseState {
        installed: Some(installed("deployed", true)),
        preview: is("0.1.0", changes),
    };
    let compared = compared(&resource(json!({})), 0, &said(&state));
    for name in ["values.a.b", r#"values."a.b""#] {
        assert!(compared.attributes.contains_key(name), "{compared:?}");
    }
}

/// Helm deletes what has the name of a hook, and takes over what bears the marks of the release.
#[test]
fn what_a_revision_brings_and_is_there_already_is_told() {
    let object = |word: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": word } });
    let told = |live: Option<Value>| {
        let manifest = object("one");
        let mut changes = compare::diff_rendered_objects(std::slice::from_ref(&manifest), &[]);
        let new = HelmReleaseObject {
            preview: Some(manifest.clone()),
            manifest,
            live,
        };
        compare::add_present_objects(&mut changes, &[new]);
        changes
    };
    assert_eq!(told(None)[0].actual, None);
    let there = told(Some(object("USERDATA")));
    assert_eq!(
        (there[0].actual.clone(), there[1].actual.clone()),
        (Some(json!("present")), Some(json!("USERDATA")))
    );
}

fn hook(events: &str, policy: &str) -> Value {
    let annotations = json!({ "helm.sh/hook": events, "helm.sh/hook-delete-policy": policy });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "annotations": annotations } })
}

/// Whoever made it, unless a run of the hook left it.
#[test]
fn what_is_deleted_to_make_a_hook_is_told() {
    let runs = |events: &str| {
        !compare::list_run_hooks(&[hook(events, "")], &compare::UPGRADE_EVENTS).is_empty()
    };
    assert!(runs("pre-install,post-upgrade") && !runs("pre-install,pre-delete"));

    let hook = hook("pre-upgrade", "before-hook-creation,hook-succeeded");
    let object = manifest::parse_object_name(&hook).unwrap();
    let told = |live: Result<Option<Value>, Reason>, is_left: bool| {
        compare::describe_hook_collision(&hook, &object, live, is_left)
    };
    let made_by = |manager: &str, annotations: Value| {
        let managed = json!([{ "manager": manager }]);
        Ok(Some(
            json!({ "metadata": { "managedFields": managed, "annotations": annotations } }),
        ))
    };
    assert_eq!(told(Ok(None), true), None);
    assert_eq!(told(made_by("helm", json!({})), true), None);
    let of_a_release = json!({ "meta.helm.sh/release-name": "rails" });
    let said = "ConfigMap.core a is there already, and is deleted to make the hook \
                ConfigMap.core a (pre-upgrade)";
    for (live, is_left) in [
        (made_by("helm", json!({})), false),
        (made_by("kubectl-create", json!({})), true),
        (made_by("helm", of_a_release), true),
    ] {
        let change = told(live, is_left).unwrap();
        assert_eq!(change.interrupts.as_deref(), Some(said));
        assert_eq!(change.actual, Some(json!("present")));
    }
    let unknown = told(Err("forbidden".into()), true).unwrap();
    assert_eq!((unknown.actual, unknown.by.is_some()), (None, true));

    let deletion = || told(made_by("kubectl-create", json!({})), false).unwrap();
    let mut varying = compare::diff_rendered_objects(std::slice::from_ref(&hook), &[]);
    compare::add_hook_collisions(&mut [], &mut varying, vec![deletion()]);
    assert_eq!((varying.len(), varying[0].interrupts.is_some()), (1, true));
    let mut varying = Vec::new();
    compare::add_hook_collisions(&mut [], &mut varying, vec![deletion()]);
    assert_eq!(varying, [deletion()]);
}

/// Helm 3 fails there, and Helm 4 may write into it and then delete it.
#[test]
fn what_a_hook_does_not_delete_first_is_in_its_way() {
    for events in ["pre-upgrade", "pre-delete"] {
        let hook = hook(events, "hook-succeeded");
        let object = manifest::parse_object_name(&hook).unwrap();
        let told =
            |live: Option<Value>| compare::describe_hook_collision(&hook, &object, Ok(live), true);
        assert_eq!(told(None), None);
        let change = told(Some(json!({ "metadata": {} }))).unwrap();
        let words = format!(
            "ConfigMap.core a is there already, and the hook ConfigMap.core a ({events}) does not \
             delete it first: delete it, or give the hook another name"
        );
        assert_eq!(change.hindrance.as_ref(), Some(&words));
        assert_eq!(
            (change.actual.clone(), change.interrupts.clone()),
            (Some(json!("present")), None)
        );

        let installed = InstalledRelease {
            hook_collisions: vec![change.clone()],
            ..installed("deployed", true)
        };
        let state = HelmReleaseState {
            installed: Some(installed),
            preview: is("0.1.0", vec![change]),
        };
        for held in [
            compared(&resource(json!({})), 0, &said(&state)),
            undone(&resource(json!({})), &json!({ "existed": false }), &state),
        ] {
            assert_eq!(
                (held.refusal.as_ref(), held.actions.len()),
                (Some(&words), 0)
            );
        }
    }
}

/// A new revision asks the object on the cluster, and takes no other word than `keep`.
#[test]
fn what_an_upgrade_keeps_is_what_its_object_says() {
    let live = |name: &str, policy: &str| HelmReleaseObject {
        manifest: json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "annotations": { "helm.sh/resource-policy": "keep" } } }),
        live: Some(json!({ "metadata": { "annotations": { "helm.sh/resource-policy": policy } } })),
        preview: None,
    };
    let kept = compare::list_kept_by_upgrade(&[live("a", "keep"), live("b", "Keep")]);
    assert_eq!(kept, BTreeSet::from(["ConfigMap.core a".to_owned()]));
}

/// Two edits of a Secret are distinguished, though neither is shown.
#[test]
fn an_edit_of_a_secret_counts_and_is_not_shown() {
    let secret = |word: &str, time: &str| {
        let held = json!({ "f:data": { "f:k": {} } });
        let managers = json!([{ "manager": "kubectl-patch", "operation": "Update", "time": time, "fieldsV1": held }]);
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "managedFields": managers }, "data": { "k": word } })
    };
    let manifest = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": { "k": "b25l" } });
    let found = |word: &str, time: &str| {
        let live = HelmReleaseObject {
            manifest: manifest.clone(),
            live: Some(secret(word, time)),
            preview: Some(manifest.clone()),
        };
        let mut changes = compare::diff_live_objects(&[live]);
        let found = changes[0].actual.clone();
        compare::conceal_secret_changes(
            &mut changes,
            &json!({ "token": "hunter22" }),
            &["/token".to_owned()],
        );
        assert_eq!(
            changes[0].actual, found,
            "concealed once more it is the same"
        );
        found.unwrap()
    };
    let first = found("dHdv", "2026-01-02T03:04:05Z");
    assert_eq!(first, "(not shown, and another since 2026-01-02T03:04:05Z)");
    assert_ne!(found("dGhyZWU=", "2026-01-02T03:04:06Z"), first);
}

#[test]
fn an_object_of_another_kind_stays_as_somebody_set_it() {
    let object = |kind: &str, group: &str, mtu: u32| json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": { "name": "a" }, "spec": { "mtu": mtu } });
    let stays = |kind: &str, group: &str| {
        let manifest = object(kind, group, 9000);
        let live = HelmReleaseObject {
            preview: Some(manifest.clone()),
            live: Some(object(kind, group, 1500)),
            manifest,
        };
        compare::diff_live_objects(std::slice::from_ref(&live))[0].stays
    };
    assert!(
        stays("Rail", "example.org") && stays("CustomResourceDefinition", "apiextensions.k8s.io")
    );
    assert!(!stays("DaemonSet", "apps") && !stays("Ingress", "networking.k8s.io"));
    let change = HelmReleaseChange {
        name: "Rail.example.org a: spec.mtu".to_owned(),
        desired: Some(json!(1)),
        stays: true,
        ..HelmReleaseChange::default()
    };
    let actual = HelmReleaseState {
        installed: Some(installed("deployed", true)),
        preview: is("0.1.0", vec![change]),
    };
    let held = compared(&resource(json!({})), 0, &said(&actual));
    assert!(held.actions.is_empty() && held.refusal.unwrap().contains("does not set back"));
}
