//! Nodes of every kind against a resource, and what becomes of them.

use super::edit::{NodeEdit, NodeEditDecision, NodeFieldChange};
use super::field::FieldNow;
use super::mark::NodeOwnershipAnnotation;
use super::{Effect, LABEL, NodeField, OfNodes, TAINT};
use crate::kubernetes_object::access::{AccessLevel, ApiVerb, list_object_uses, of_action};
use crate::kubernetes_object::known_kinds::ApiResourceName;
use crate::kubernetes_object::request::KubernetesRead;
use crate::{
    Action, AnswerStatus, DesiredResource, Disruption, Read, ReadResult, ReadResults, ResourceDiff,
    ResourceKind,
};
use railwright_base::{Address, Target, TargetKind};
use serde_json::{Value, json};
use std::sync::Arc;

fn resource(kind: &OfNodes, body: Value) -> DesiredResource {
    assert_eq!(kind.check(&body), []);
    let path = Arc::new([kind.name().to_owned(), kind.address_name(&body).unwrap()]);
    DesiredResource::of(
        Address {
            target: Target {
                kind: TargetKind::Kube,
                name: "prod".into(),
            },
            path,
            attribute: None,
        },
        kind.name(),
        body,
    )
}

pub(super) fn label(more: Value) -> DesiredResource {
    let mut body =
        json!({ "label": "rdma", "value": "true", "nodes": ["gpu1", "gpu2"], "cluster": "train" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    resource(&LABEL, body)
}

fn taint(effect: &str) -> DesiredResource {
    resource(
        &TAINT,
        json!({ "key": "nvidia.com/gpu", "effect": effect, "nodes": ["gpu1", "gpu2"], "cluster": "train" }),
    )
}

fn answers(resource: &DesiredResource, nodes: Value) -> ReadResults {
    let kind = crate::kind_named(&resource.kind).unwrap();
    let mut answers = ReadResults::default();
    answers.insert(
        kind.reads(resource)[0].key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: nodes.to_string(),
        },
    );
    answers
}

pub(super) fn diff(resource: &DesiredResource, nodes: Value) -> ResourceDiff {
    crate::kind_named(&resource.kind)
        .unwrap()
        .diff(resource, &answers(resource, nodes))
}

pub(super) fn undo(resource: &DesiredResource, nodes: Value) -> ResourceDiff {
    crate::kind_named(&resource.kind).unwrap().undo(
        resource,
        &Value::Null,
        &answers(resource, nodes),
    )
}

pub(super) fn mark(spec: &str, set: &str, was: Option<&str>) -> NodeOwnershipAnnotation {
    NodeOwnershipAnnotation {
        spec: spec.to_owned(),
        set: set.to_owned(),
        was: was.map(str::to_owned),
    }
}

pub(super) fn by(manager: &str) -> Value {
    json!({ "manager": manager, "time": "2026-01-02T03:04:05Z" })
}

/// Every difference, in a line.
fn told(diff: &ResourceDiff) -> String {
    let one = |(name, attribute): (&String, &crate::Attribute)| {
        let by = attribute
            .by
            .as_ref()
            .map(|by| format!(" ({})", by.words()))
            .unwrap_or_default();
        attribute
            .differences()
            .into_iter()
            .map(|(_, desired, actual)| format!("{name} {actual:?} -> {desired:?}{by}\n"))
            .collect::<String>()
    };
    diff.attributes.iter().map(one).collect()
}

pub(super) fn edits(diff: &ResourceDiff) -> Vec<NodeEdit> {
    match &diff.actions[..] {
        [] => Vec::new(),
        [Action::EditNodes { edits, .. }] => edits.clone(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn edit(
    nodes: &[&str],
    old: Option<&str>,
    new: Option<&str>,
    mark: Option<NodeOwnershipAnnotation>,
) -> NodeEdit {
    let text = |value: Option<&str>| value.map(str::to_owned);
    NodeEdit {
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        change: NodeFieldChange {
            old: text(old),
            new: text(new),
            mark,
        },
    }
}

#[test]
fn what_is_not_there_is_set_and_what_is_in_sync_needs_nobodys_leave() {
    let new = diff(
        &label(json!({})),
        json!({ "gpu1": {}, "gpu2": {}, "other": {} }),
    );
    assert_eq!(
        edits(&new),
        [edit(
            &["gpu1", "gpu2"],
            None,
            Some("true"),
            Some(mark("train", "true", None))
        )]
    );
    assert!(
        new.is_absent() && new.disruption == Disruption::None,
        "{new:?}"
    );
    assert_eq!(new.attributes.keys().collect::<Vec<_>>(), ["gpu[1-2]"]);
    let met = diff(
        &label(json!({})),
        json!({ "gpu1": { "value": "true", "by": by("kubelet") }, "gpu2": { "value": "true" } }),
    );
    assert!(met.is_met() && met.actions.is_empty(), "{met:?}");
    let half = diff(
        &label(json!({})),
        json!({ "gpu1": { "value": "true" }, "gpu2": {} }),
    );
    assert_eq!(
        edits(&half),
        [edit(
            &["gpu2"],
            None,
            Some("true"),
            Some(mark("train", "true", None))
        )]
    );
}

#[test]
fn another_value_is_drift_where_it_was_ours_and_a_conflict_where_not() {
    let theirs = json!({ "gpu1": { "value": "no", "by": by("kubectl-label") }, "gpu2": {} });
    let conflict = diff(&label(json!({})), theirs.clone());
    let refusal =
        "gpu1: no, which kubectl-label set; it was never ours; `adopt: true` takes it over";
    assert_eq!(
        (conflict.refusal.as_deref(), conflict.actions.len()),
        (Some(refusal), 0)
    );
    assert!(
        told(&conflict).contains("set by kubectl-label at 2026-01-02T03:04:05Z"),
        "{}",
        told(&conflict)
    );
    let by_parameter = diff(
        &label(json!({ "adopt_with": "modules: { x: {} }" })),
        theirs.clone(),
    );
    assert!(
        by_parameter
            .refusal
            .is_some_and(|why| why.ends_with("; `modules: { x: {} }` takes it over"))
    );
    let adopted = diff(&label(json!({ "adopt": true })), theirs);
    let desired = [
        edit(
            &["gpu2"],
            None,
            Some("true"),
            Some(mark("train", "true", None)),
        ),
        edit(
            &["gpu1"],
            Some("no"),
            Some("true"),
            Some(mark("train", "true", Some("no"))),
        ),
    ];
    assert_eq!(
        (edits(&adopted), adopted.refusal.clone()),
        (desired.to_vec(), None)
    );
    let ours = json!({ "gpu1": { "value": "no", "mark": mark("train", "old", Some("x")), "by": by("kubectl-edit") }, "gpu2": { "value": "true" } });
    let drift = diff(&label(json!({})), ours);
    assert_eq!(
        edits(&drift),
        [edit(
            &["gpu1"],
            Some("no"),
            Some("true"),
            Some(mark("train", "true", Some("x")))
        )]
    );
    assert!(drift.attributes["gpu1"].rival().is_some(), "{drift:?}");
    let other = json!({ "gpu1": { "value": "no", "mark": mark("lab", "no", None) }, "gpu2": { "mark": mark("lab", "no", None) } });
    let other = diff(&label(json!({})), other);
    assert!(
        other
            .refusal
            .as_ref()
            .is_some_and(|why| why.contains("another spec of railwright keeps it")),
        "{other:?}"
    );
}

#[test]
fn a_host_that_is_no_node_is_unknown_and_keeps_the_others_from_nothing() {
    let one = diff(&label(json!({})), json!({ "gpu1": { "value": "true" } }));
    assert!(
        one.is_met() && one.attributes.keys().eq(["gpu1"]),
        "{one:?}"
    );
    let lacks = |of: &ResourceDiff| {
        format!(
            "{:?}",
            of.out_of_reach
                .iter()
                .map(|(name, a)| (name.clone(), a.actual.clone()))
                .collect::<Vec<_>>()
        )
    };
    assert!(
        lacks(&one).contains("the cluster has no node gpu2; ")
            && one.out_of_reach.keys().eq(["gpu2"]),
        "{one:?}"
    );
    let values = json!({ "label": "a", "values": { "gpu1": "x", "gpu2": "y", "gpu3": "y", "gpu4": "x" }, "cluster": "train" });
    let some = diff(&resource(&LABEL, values), json!({ "gpu1": {} }));
    assert!(
        edits(&some).len() == 1 && some.out_of_reach.keys().eq(["gpu4", "gpu[2-3]"]),
        "{some:?}"
    );
    let new = diff(&label(json!({})), json!({ "gpu1": {} }));
    assert!(new.is_absent() && edits(&new).len() == 1, "{new:?}");
    let none = diff(&label(json!({})), json!({ "other": {} }));
    assert!(
        !none.is_met()
            && none.actions.is_empty()
            && none.refusal.as_ref().is_some_and(
                |why| why.contains("no node gpu[1-2]; ") && why.contains("kubernetes_node")
            ),
        "{none:?}"
    );
}

#[test]
fn nodes_that_leave_the_resource_are_as_before_and_what_others_changed_since_stays() {
    let ours = |set: &str, was: Option<&str>| mark("train", set, was);
    let nodes = json!({
        "gpu1": { "value": "true", "mark": ours("true", None) },
        "gpu2": { "value": "true", "mark": ours("true", Some("no")) },
        "gpu3": { "value": "maybe", "mark": ours("true", None), "by": by("kubectl-edit") },
        "gpu4": { "mark": ours("true", None) },
        "gpu5": { "value": "true" },
        "gpu6": { "value": "true", "mark": mark("lab", "true", None) },
    });
    let back = [
        edit(&["gpu1"], Some("true"), None, None),
        edit(&["gpu2"], Some("true"), Some("no"), None),
        edit(&["gpu4"], None, None, None),
        edit(&["gpu3"], Some("maybe"), Some("maybe"), None),
    ];
    let undone = undo(&label(json!({})), nodes.clone());
    assert_eq!(edits(&undone), back);
    assert_eq!(
        undone.residue,
        ["gpu3: maybe stays, which kubectl-edit set since"]
    );
    let moved = diff(&label(json!({ "nodes": ["gpu5"] })), nodes);
    assert_eq!(
        edits(&moved),
        back,
        "and so do those that another list of nodes leaves out"
    );
    assert!(undo(&label(json!({})), json!({ "gpu5": { "value": "true" } })).is_met());
}

#[test]
fn only_a_taint_that_evicts_disturbs() {
    let nodes =
        json!({ "gpu1": {}, "gpu2": { "value": "old", "mark": mark("train", "old", None) } });
    assert_eq!(
        diff(&taint("NoSchedule"), nodes.clone()).disruption,
        Disruption::None
    );
    let evicts = diff(&taint("NoExecute"), nodes);
    assert_eq!(evicts.disruption, Disruption::Drain);
    let who = "pods that do not tolerate nvidia.com/gpu:NoExecute are evicted at once from ";
    assert_eq!(
        evicts.interrupts,
        [format!("{who}gpu1"), format!("{who}gpu2")]
    );
    assert!(
        told(&evicts).contains(r#"gpu2 Is(String("old")) -> Is(String("without a value"))"#),
        "{}",
        told(&evicts)
    );
    let both = diff(&taint("NoExecute"), json!({ "gpu1": {}, "gpu2": {} }));
    assert_eq!(both.interrupts, [format!("{who}all 2 nodes gpu[1-2]")]);
    let met = json!({ "gpu1": { "value": "", "mark": mark("train", "", None) }, "gpu2": { "value": "", "mark": mark("train", "", None) } });
    assert_eq!(undo(&taint("NoExecute"), met).disruption, Disruption::None);
}

#[test]
fn what_cannot_be_read_is_unknown_and_changes_nothing() {
    let resource = label(json!({}));
    let mut denied = ReadResults::default();
    let answer = ReadResult {
        status: AnswerStatus::Denied,
        out: "verb list, resource nodes\n".to_owned(),
    };
    denied.insert(LABEL.reads(&resource)[0].key(), answer);
    for answers in [
        denied,
        ReadResults::default(),
        answers(&resource, json!({ "gpu1": 1 })),
    ] {
        for diff in [
            LABEL.diff(&resource, &answers),
            LABEL.undo(&resource, &Value::Null, &answers),
        ] {
            assert!(diff.only_unknown() && diff.actions.is_empty(), "{diff:?}");
        }
    }
}

#[test]
fn an_edit_holds_for_what_was_planned() {
    let change = NodeFieldChange {
        old: None,
        new: Some("a".to_owned()),
        mark: Some(mark("train", "a", None)),
    };
    let now = |value: Option<&str>, mark: Option<NodeOwnershipAnnotation>| FieldNow {
        value: value.map(str::to_owned),
        mark,
        ..FieldNow::default()
    };
    assert_eq!(change.next(&now(None, None)), NodeEditDecision::Write);
    assert_eq!(
        change.next(&now(Some("a"), Some(mark("train", "a", None)))),
        NodeEditDecision::Nothing,
        "a second try finds the first"
    );
    assert_eq!(change.next(&now(Some("b"), None)), NodeEditDecision::Moved);
    let back = NodeFieldChange {
        old: Some("a".to_owned()),
        new: None,
        mark: None,
    };
    let ours = now(Some("a"), Some(mark("train", "a", None)));
    assert_eq!(back.next(&ours), NodeEditDecision::Write);
    assert_eq!(
        back.next(&now(Some("a"), None)),
        NodeEditDecision::Moved,
        "nothing is undone without our mark"
    );
    assert_eq!(back.next(&now(None, None)), NodeEditDecision::Nothing);
}

#[test]
fn it_takes_a_list_of_nodes_and_a_patch_of_each() {
    let resource = label(json!({}));
    let nodes = ApiResourceName {
        plural: "nodes".to_owned(),
        namespaced: false,
    };
    let verbs = |level: AccessLevel, desired: bool| {
        let all = list_object_uses(&resource, desired)
            .iter()
            .filter(|one| one.object.kind == "Node")
            .flat_map(|one| one.rights(level, &nodes))
            .map(|(right, _)| (right.name, right.verb))
            .collect::<Vec<_>>();
        all.into_iter()
            .map(|(name, verb)| format!("{} {}", verb.word(), name.as_deref().unwrap_or("*")))
            .collect::<Vec<_>>()
    };
    assert_eq!(verbs(AccessLevel::Observe, true), ["list *"]);
    let all = ["list *", "get gpu1", "patch gpu1", "get gpu2", "patch gpu2"];
    assert_eq!(
        (
            verbs(AccessLevel::Apply, true),
            verbs(AccessLevel::Apply, false)
        ),
        (
            all.map(str::to_owned).to_vec(),
            all.map(str::to_owned).to_vec()
        )
    );
    let action = &diff(
        &resource,
        json!({ "gpu1": {}, "gpu2": { "value": "true" } }),
    )
    .actions[0];
    let asked = |action: &Action| -> Vec<(String, ApiVerb)> {
        of_action(action)
            .into_iter()
            .map(|(object, verb)| (object.name, verb))
            .collect()
    };
    let key = "railwright.node-marks";
    let of = |name: &str, verb: ApiVerb| (name.to_owned(), verb);
    assert_eq!(
        asked(action),
        [
            of("gpu1", ApiVerb::Get),
            of("gpu1", ApiVerb::Patch),
            of(key, ApiVerb::Patch),
            of(key, ApiVerb::Create)
        ]
    );
    let ours = json!({ "gpu1": { "value": "true", "mark": mark("train", "true", None) } });
    assert_eq!(
        asked(&undo(&resource, ours).actions[0]),
        [of("gpu1", ApiVerb::Get), of("gpu1", ApiVerb::Patch)],
        "an undo needs no new key"
    );
}

#[test]
fn bodies_are_checked() {
    let label = |body: Value| {
        LABEL
            .check(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
    };
    let taint = |body: Value| {
        TAINT
            .check(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        label(json!({ "label": "example.org/a", "values": { "a": "x", "b": "" } })),
        Vec::<String>::new()
    );
    assert_eq!(
        label(json!({ "label": "a b", "value": "x", "nodes": ["a"] })),
        ["/label"]
    );
    assert_eq!(
        label(json!({ "label": "kubernetes.io/hostname", "value": "x", "nodes": ["a"] })),
        ["/label"]
    );
    assert_eq!(
        label(json!({ "label": "a", "value": "-x", "nodes": ["a"] })),
        ["/value"]
    );
    assert_eq!(
        label(json!({ "label": "a", "values": { "a": "a b" } })),
        ["/values"]
    );
    assert_eq!(
        label(json!({ "label": "a", "values": { "a": "b" }, "adopt": 1 })),
        ["/adopt"]
    );
    assert_eq!(
        label(json!({ "label": "a", "value": true, "nodes": ["a"] })),
        ["/value"]
    );
    assert_eq!(
        label(json!({ "label": "a", "values": { "b": "x", "a": 1 } })),
        ["/values/a"]
    );
    assert_eq!(
        label(json!({ "label": "a", "nodes": ["a"] })),
        [""],
        "a label has a value"
    );
    assert_eq!(
        label(json!({ "label": "a", "value": "x", "nodes": [] })),
        [""]
    );
    assert_eq!(
        label(json!({ "label": "a", "value": "x", "nodes": ["A_B"] })),
        ["/nodes"]
    );
    assert_eq!(
        taint(json!({ "key": "nvidia.com/gpu", "effect": "NoExecute", "nodes": ["a"] })),
        Vec::<String>::new()
    );
    assert_eq!(
        taint(json!({ "key": "a/b/c", "effect": "NoExecute", "nodes": ["a"] })),
        ["/key"]
    );
    assert_eq!(
        taint(json!({ "key": "a/b", "effect": "NoRun", "nodes": ["a"] })),
        ["/effect"]
    );
    assert_eq!(
        TAINT
            .address_name(&json!({ "key": "a/b", "effect": "NoSchedule" }))
            .as_deref(),
        Some("a/b:NoSchedule")
    );
    let read = Read::Kubernetes(KubernetesRead::NodeField(NodeField::Taint {
        key: "a".to_owned(),
        effect: Effect::NoExecute,
    }));
    assert_eq!(read.key(), "kubernetes_node_taint:a:NoExecute");
}
