//! Diffs of ConfigMap texts by an API server's answers.

use super::edit::{JsonEdit, JsonPointerValue, apply_json_edits};
use super::*;
use crate::kubernetes_object::access::{AccessLevel, ApiVerb, list_object_uses, of_action};
use crate::kubernetes_object::known_kinds::ApiResourceName;
use crate::{AnswerStatus, ReadResult};
use proptest::prelude::*;
use railwright_base::{Address, Target};

const CONF: &str = "{\n  \"version\": \"1\",\n  \"vswitches\": {\"cn-a\":[\"vsw-1\"]},\n  \"enable_eni_trunking\": true\n\
                    }\n";

fn resource(more: Value) -> DesiredResource {
    let mut body = json!({ "name": "eni-config", "namespace": "kube-system", "key": "eni_conf" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    assert_eq!(JsonInConfigMap.check(&body), []);
    let path = JsonInConfigMap.address_path(&body).unwrap();
    DesiredResource::of(
        Address {
            target: Target::kube("prod"),
            path: path.into(),
            attribute: None,
        },
        "json_in_configmap",
        body,
    )
}

fn filter(more: Value) -> DesiredResource {
    let mut body = json!({ "edits": [{ "pointer": "/eni_tag_filter/creator", "value": "terway" }, { "pointer": "/list", "contains": 1 }],
        "restarts": { "kind": "DaemonSet", "name": "terway-eniip" } });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    resource(body)
}

/// A cluster of one ConfigMap and one DaemonSet, on which actions are done as the transport does
/// them.
struct World {
    map: Value,
    set: Value,
}

impl World {
    fn of(text: &str) -> Self {
        let managed = json!([{ "manager": "kubectl-edit", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsV1": { "f:data": { "f:eni_conf": {} } } }]);
        World {
            map: json!({ "data": { "eni_conf": text, "other": "x" }, "metadata": { "managedFields": managed } }),
            set: json!({ "metadata": {}, "spec": { "template": {} } }),
        }
    }

    fn text(&self) -> &str {
        self.map["data"]["eni_conf"].as_str().unwrap()
    }

    fn answers(&self, resource: &DesiredResource) -> ReadResults {
        let mut answers = ReadResults::default();
        for (read, value) in JsonInConfigMap
            .reads(resource)
            .into_iter()
            .zip([&self.map, &self.set])
        {
            let code = if value.is_null() { 1 } else { 0 };
            answers.insert(
                read.key(),
                ReadResult {
                    status: AnswerStatus::Exit(code),
                    out: value.to_string(),
                },
            );
        }
        answers
    }

    fn diff(&self, resource: &DesiredResource) -> ResourceDiff {
        JsonInConfigMap.diff(resource, &self.answers(resource))
    }

    fn undo(&self, resource: &DesiredResource, before: &Value) -> ResourceDiff {
        JsonInConfigMap.undo(resource, before, &self.answers(resource))
    }

    fn perform(&mut self, action: &Action) {
        match action {
            Action::EditConfigMap { edits, mark, .. } => {
                self.map["data"]["eni_conf"] =
                    Value::from(apply_json_edits(self.text(), edits).unwrap());
                if let Some(mark) = mark {
                    self.map["metadata"]["annotations"] = json!({ &mark.name: mark.value });
                }
            }
            Action::MarkPodTemplate { mark, .. } => {
                self.set["spec"]["template"] =
                    json!({ "metadata": { "annotations": { &mark.name: mark.value } } })
            }
            other => panic!("{other:?}"),
        }
    }

    fn perform_all(&mut self, diff: &ResourceDiff) {
        diff.actions.iter().for_each(|action| self.perform(action));
    }
}

fn words(diff: &ResourceDiff) -> Vec<String> {
    diff.actions.iter().map(Action::word).collect()
}

const RESTART: &str = "restart of DaemonSet.apps kube-system/terway-eniip";

#[test]
fn parts_are_edited_and_their_readers_restarted() {
    let (mut world, resource) = (World::of(CONF), filter(json!({})));
    assert_eq!(
        resource.address.to_string(),
        "kube/prod/json_in_configmap/kube-system/eni-config/eni_conf"
    );
    let first = world.diff(&resource);
    assert!(first.is_absent() && first.refusal.is_none(), "{first:?}");
    assert_eq!(
        first.attributes.keys().collect::<Vec<_>>(),
        ["eni_tag_filter.creator", "list holds", RESTART]
    );
    assert_eq!(
        first.attributes["eni_tag_filter.creator"].rival(),
        Some("the text was set by kubectl-edit at 2026-01-02T03:04:05Z")
    );
    assert_eq!(
        (words(&first), first.disruption, first.pending),
        (
            vec!["edit_config_map".into(), "mark_pod_template".into()],
            Disruption::Restart,
            false
        )
    );
    assert_eq!(
        world.diff(&resource),
        first,
        "the same answers give the same marks"
    );

    // A run that ends between the two leaves the restart pending.
    world.perform(&first.actions[0]);
    assert!(world.text().starts_with(
        "{\n  \"version\": \"1\",\n  \"vswitches\": {\"cn-a\":[\"vsw-1\"]},\n  \"enable_eni_trunking\": true,\n  \"eni_tag_filter\": "
    ));
    let pending = world.diff(&resource);
    assert_eq!(
        (pending.pending, words(&pending), &pending.actions[0]),
        (true, vec!["mark_pod_template".into()], &first.actions[1])
    );
    world.perform_all(&pending);
    let met = world.diff(&resource);
    assert!(met.is_met() && met.actions.is_empty(), "{met:?}");

    // Pods may have read what somebody wrote in between.
    world.map["data"]["eni_conf"] = Value::from(world.text().replace("terway\"", "nobody\""));
    let drifted = world.diff(&resource);
    assert_eq!(words(&drifted), ["edit_config_map", "mark_pod_template"]);
    world.perform_all(&drifted);
    assert!(world.diff(&resource).is_met() && world.text().contains("terway"));

    assert!(JsonInConfigMap.can_read_before(&first.before));
    let undo = world.undo(&resource, &first.before);
    assert_eq!(
        (undo.disruption, undo.residue.len()),
        (Disruption::Restart, 0)
    );
    world.perform(&undo.actions[0]);
    assert_eq!(world.text(), CONF);
    let rest = world.undo(&resource, &first.before);
    assert_eq!(words(&rest), ["mark_pod_template"]);
    world.perform_all(&rest);
    let done = world.undo(&resource, &first.before);
    assert!(done.is_met() && done.actions.is_empty(), "{done:?}");
}

#[test]
fn what_stood_there_already_is_not_taken_back() {
    let text = r#"{"eni_tag_filter":{"creator":"terway"},"list":[0,1]}"#;
    let (mut world, resource) = (World::of(text), filter(json!({})));
    let first = world.diff(&resource);
    assert_eq!(
        (words(&first), first.pending),
        (vec!["mark_pod_template".into()], true)
    );
    world.perform_all(&first);
    assert!(world.diff(&resource).is_met());
    let undo = world.undo(&resource, &first.before);
    assert!(
        undo.actions.is_empty() && undo.is_met() && undo.residue[0].contains("nothing reads it"),
        "{undo:?}"
    );
    let blind = world.undo(&resource, &Value::Null);
    assert!(
        blind.residue.len() == 2 && blind.residue[0].contains("is not known"),
        "{blind:?}"
    );
}

#[test]
fn what_stood_in_an_object_that_is_gone_is_not_put_back() {
    let mut world = World::of(r#"{"a":{"b":1},"l":["x"]}"#);
    let resource = resource(
        json!({ "edits": [{ "pointer": "/a/b", "value": 5 }, { "pointer": "/l", "contains": "x" }] }),
    );
    world.map["metadata"]["uid"] = json!("u1");
    let first = world.diff(&resource);
    world.perform_all(&first);
    world.map["metadata"]["uid"] = json!("u2");
    world.map["data"]["eni_conf"] = json!(r#"{"l":["y"]}"#);
    let left = world.undo(&resource, &first.before);
    assert!(
        left.is_met() && left.actions.is_empty() && left.residue[0].contains("was recreated since"),
        "{left:?}"
    );
    // Edited once more, it is known.
    let second = world.diff(&resource);
    world.perform_all(&second);
    let before = JsonInConfigMap.remembered(&first.before, &second.before);
    let undo = world.undo(&resource, &before);
    world.perform_all(&undo);
    assert_eq!(world.text(), r#"{"l":["y"]}"#);
    assert_eq!(
        JsonInConfigMap.remembered(&first.before, &world.diff(&resource).before["parts"]),
        first.before
    );
}

#[test]
fn only_our_element_is_taken_back() {
    let (mut world, resource) = (
        World::of(r#"{"list":[0]}"#),
        resource(json!({ "edits": [{ "pointer": "/list", "contains": { "k": 1 } }] })),
    );
    let first = world.diff(&resource);
    assert_eq!(
        (words(&first), first.disruption),
        (vec!["edit_config_map".into()], Disruption::None)
    );
    world.perform_all(&first);
    world.map["data"]["eni_conf"] = Value::from(world.text().replace("]", ",2]"));
    assert!(world.diff(&resource).is_met());
    let undo = world.undo(&resource, &first.before);
    world.perform_all(&undo);
    assert_eq!(world.text(), r#"{"list":[0,2]}"#);
}

#[test]
fn what_is_not_there_or_no_json_is_never_written_over() {
    let refusal = |world: &World, resource: &DesiredResource| {
        let diff = world.diff(resource);
        assert!(diff.actions.is_empty() && !diff.is_met(), "{diff:?}");
        diff.refusal.unwrap_or_default()
    };
    let resource = filter(json!({}));
    for (text, why) in [
        ("# a comment\n{}", "it is no JSON"),
        ("[]", "no map"),
        (r#"{"eni_tag_filter":""}"#, "`eni_tag_filter` is no map"),
        (r#"{"list":{}}"#, "`list` is no list"),
        (r#"{"list":[],"list":[1]}"#, "stands there twice"),
    ] {
        let said = refusal(&World::of(text), &resource);
        assert!(
            said.contains(why) && said.contains("nothing of it is touched"),
            "{said}"
        );
        let before = json!({ "parts": [{ "part": "value", "pointer": "/eni_tag_filter/creator", "held": { "is": 1 } }] });
        assert!(
            text.contains("list") || World::of(text).undo(&resource, &before).actions.is_empty(),
            "{text}"
        );
    }
    let mut world = World::of(CONF);
    world.map["immutable"] = json!(true);
    assert!(refusal(&world, &resource).contains("immutable"));
    world.map["data"] = json!({ "other": "{}" });
    assert!(refusal(&world, &resource).contains("has no text `eni_conf`"));
    world.map = Value::Null;
    assert!(
        refusal(&world, &resource).contains("ConfigMap.core kube-system/eni-config is not there")
    );
    assert!(world.undo(&resource, &Value::Null).is_met());
    let waiting = world.diff(&filter(
        json!({ "known_after": "ConfigMap.core/kube-system/other" }),
    ));
    assert!(
        waiting.known_after.is_some()
            && waiting.announced == ["edit_config_map", "mark_pod_template"]
    );
    let mut world = World::of(CONF);
    world.set = Value::Null;
    assert!(refusal(&world, &resource).contains("nothing would read the edit"));
}

#[test]
fn beside_a_conflict_nothing_is_edited() {
    let conflict = json!({ "conflicts": [{ "pointer": "/enable_erdma", "value": true, "says": "two of them" }] });
    let refused = World::of(r#"{"enable_erdma":true}"#).diff(&filter(conflict.clone()));
    assert_eq!(
        (
            refused.refusal.as_deref(),
            refused.actions.len(),
            refused.is_met()
        ),
        (Some("two of them"), 0, false)
    );
    assert!(
        World::of(r#"{"enable_erdma":false}"#)
            .diff(&resource(conflict))
            .is_met(),
        "nothing is edited, and nothing stands in the way"
    );
}

#[test]
fn an_object_declared_as_a_whole_is_known() {
    let whole = |name: &str, key: &str| {
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "kube-system" }, "data": { key: "{}" } });
        DesiredResource::of(
            "kube/prod/ConfigMap.core/kube-system/x".parse().unwrap(),
            "kubernetes_object",
            json!({ "manifest": manifest }),
        )
    };
    let edited = filter(json!({}));
    assert!(is_declared_whole(&edited, &whole("eni-config", "eni_conf")));
    assert!(
        !is_declared_whole(&edited, &whole("eni-config", "other"))
            && !is_declared_whole(&edited, &whole("other", "eni_conf"))
    );
}

/// What others own is read and edited, never made or deleted, and no preview writes it.
#[test]
fn a_role_for_edits_makes_and_deletes_nothing() {
    let called = ApiResourceName {
        plural: "configmaps".to_owned(),
        namespaced: true,
    };
    for desired in [true, false] {
        let verbs = |level: AccessLevel| -> Vec<ApiVerb> {
            let uses = list_object_uses(&filter(json!({})), desired);
            assert_eq!(uses.len(), 2);
            uses[0]
                .rights(level, &called)
                .into_iter()
                .map(|(right, _)| right.verb)
                .collect()
        };
        assert_eq!(
            verbs(AccessLevel::Preview),
            [ApiVerb::Get, ApiVerb::List, ApiVerb::Watch]
        );
        assert_eq!(
            verbs(AccessLevel::Apply),
            [ApiVerb::Get, ApiVerb::List, ApiVerb::Watch, ApiVerb::Patch]
        );
    }
    let world = World::of(CONF);
    assert!(world.diff(&filter(json!({}))).actions.iter().all(|action| {
        of_action(action)
            .iter()
            .any(|(_, verb)| *verb == ApiVerb::Patch)
    }));
}

proptest! {
    /// Whatever the server answers and whatever is remembered, nothing panics; where actions come
    /// of it, the transport can do them.
    #[test]
    fn no_answer_panics(text in r#"[\[\]{}",:a-c0-9 \n]{0,40}"#, before in r#"[\[\]{}",:a-c0-9]{0,20}"#, part in any::<bool>()) {
        let inner = if part { format!(r#"{{"list":{text}}}"#) } else { text };
        let (mut world, resource) = (World::of(&inner), filter(json!({})));
        let before: Value = serde_json::from_str(&before).unwrap_or_default();
        for before in [before.clone(), json!({ "parts": [{ "part": "elements", "pointer": "/list", "added": [before], "listed": false }] })] {
            let undo = world.undo(&resource, &before);
            undo.actions.iter().for_each(|action| world.perform(action));
        }
        let diff = world.diff(&resource);
        world.perform_all(&diff);
        prop_assert!(diff.actions.is_empty() || world.diff(&resource).is_met());
    }
}

/// A number is the same however it is written, and what is put back has the digits that it had.
#[test]
fn numbers_of_others_keep_their_digits() {
    let text = r#"{"same":1.0,"long":12345678901234567890123,"small":0.10000000000000000555,"power":1e2,"list":[1.0]}"#;
    let edits = json!([{ "pointer": "/same", "value": 1 }, { "pointer": "/long", "value": 7 }, { "pointer": "/small", "value": 7 },
        { "pointer": "/power", "value": 7 }, { "pointer": "/list", "contains": 1 }]);
    let (mut world, resource) = (World::of(text), resource(json!({ "edits": edits })));
    let diff = world.diff(&resource);
    let differs: Vec<&str> = diff
        .attributes
        .iter()
        .filter(|(_, a)| !a.differences().is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(differs, ["long", "power", "small"]);
    world.perform_all(&diff);
    assert_eq!(
        world.text(),
        r#"{"same":1.0,"long":7,"small":7,"power":7,"list":[1.0]}"#
    );
    assert!(world.diff(&resource).is_met());
    // As the state keeps it.
    let before: Value = serde_json::from_str(&diff.before.to_string()).unwrap();
    let undo = world.undo(&resource, &before);
    world.perform_all(&undo);
    assert_eq!(world.text(), text);
    assert!(world.undo(&resource, &before).is_met());
    let near = World::of(&text.replace("890123", "890124")).undo(&resource, &before);
    assert!(
        !near.attributes["long"].differences().is_empty(),
        "they differ in digits that no float has: {near:?}"
    );
}

#[test]
fn actions_are_read_back_as_they_were_written() {
    let nothing = JsonEdit::Value {
        pointer: "/a".into(),
        old: JsonPointerValue::Is(Value::Null),
        new: JsonPointerValue::Absent,
        up_to: None,
    };
    let written = serde_json::to_string(&nothing).unwrap();
    assert_eq!(
        serde_json::from_str::<JsonEdit>(&written).unwrap(),
        nothing,
        "{written}"
    );
}
