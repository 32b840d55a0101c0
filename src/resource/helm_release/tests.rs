//! What is planned, refused and removed of a release, by read results that are made up.

use super::compare::HelmReleaseChange;
use super::request::{DESCRIPTION, HelmReleasePreview, InstalledRelease, ReleaseRecord};
use super::*;
use crate::kubernetes_object::access::{ApiVerb, of_action};
use crate::kubernetes_object::request::ObjectName;
use crate::{Action, AnswerStatus, Disruption, ReadResult};
use railwright_base::secret::{self, UnknownSecret};
use serde_json::json;

pub(super) fn resource(more: Value) -> DesiredResource {
    let mut body = json!({ "cluster": "lab", "name": "rails", "namespace": "kube-system", "chart": "charts/rails",
        "values": { "agent": { "driver": "ofed" } }, "disruptions": { "agent.driver": "drain" }, "keeps": ["drivers on the hosts"] });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    DesiredResource::of(
        "kube/prod/helm_release/kube-system/rails".parse().unwrap(),
        "helm_release",
        body,
    )
}

pub(super) fn compared(resource: &DesiredResource, code: i32, out: &str) -> ResourceDiff {
    HelmRelease.diff(resource, &answered(HelmRelease.reads(resource), code, out))
}

/// What undoes a release that was installed for this resource.
pub(super) fn undone(
    last: &DesiredResource,
    before: &Value,
    found: &HelmReleaseState,
) -> ResourceDiff {
    let reads = HelmRelease.reads_to_undo(last);
    HelmRelease.undo(last, before, &answered(reads, 0, &said(found)))
}

fn answered(reads: Vec<Read>, code: i32, out: &str) -> ReadResults {
    let mut answers = ReadResults::default();
    answers.insert(
        reads[0].key(),
        ReadResult {
            status: AnswerStatus::Exit(code),
            out: out.to_owned(),
        },
    );
    answers
}

pub(super) fn installed(status: &str, ours: bool) -> InstalledRelease {
    let text = str::to_owned;
    let (chart, version, description) = (text("rails"), text("0.1.0"), text(DESCRIPTION));
    let defines = vec![text("RailDevice.example.org")];
    let kept = vec![text("ConfigMap.core kube-system/kept")];
    let (deletes, record) = (vec![config_map()], record());
    InstalledRelease {
        chart,
        version,
        description,
        status: text(status),
        record,
        ours,
        defines,
        kept,
        deletes,
        ..InstalledRelease::default()
    }
}

fn record() -> ReleaseRecord {
    ReleaseRecord {
        revision: 3,
        uid: "u1".to_owned(),
        version: "7".to_owned(),
        ..ReleaseRecord::default()
    }
}

fn config_map() -> ObjectName {
    let text = str::to_owned;
    ObjectName {
        api_version: text("v1"),
        kind: text("ConfigMap"),
        namespace: Some(text("kube-system")),
        name: text("rails"),
    }
}

pub(super) fn is(version: &str, changes: Vec<HelmReleaseChange>) -> HelmReleasePreview {
    HelmReleasePreview::Is {
        rendering: None,
        chart: "rails".to_owned(),
        version: version.to_owned(),
        content: "c1".to_owned(),
        changes,
    }
}

pub(super) fn said(found: &HelmReleaseState) -> String {
    serde_json::to_string(found).unwrap()
}

#[test]
fn what_is_not_known_is_never_taken_for_no_drift() {
    let resource = resource(json!({}));
    for (code, out) in [
        (NO_HELM, "there is no helm on this machine"),
        (request::NOT_SAID, "secrets is forbidden"),
        (0, "{"),
        (0, "{}"),
    ] {
        let compared = compared(&resource, code, out);
        assert!(
            compared.only_unknown() && compared.actions.is_empty(),
            "{code} {out}: {compared:?}"
        );
    }
    for installed in [Some(installed("deployed", true)), None] {
        let unknown = compared(
            &resource,
            0,
            &said(&HelmReleaseState {
                installed,
                preview: HelmReleasePreview::Unknown("no chart".into()),
            }),
        );
        assert!(
            unknown.only_unknown() && unknown.actions.is_empty(),
            "{unknown:?}"
        );
    }
    let refused = |installed| HelmReleaseState {
        installed,
        preview: HelmReleasePreview::Refused("it does not render".to_owned()),
    };
    let there = compared(
        &resource,
        0,
        &said(&refused(Some(installed("deployed", true)))),
    );
    assert!(
        there.only_unknown() && there.actions.is_empty() && there.refusal.is_some(),
        "a chart that cannot be used is no drift: {there:?}"
    );
    assert!(compared(&resource, 0, &said(&refused(None))).is_absent());
}

#[test]
fn a_release_is_new_met_changed_or_somebody_elses() {
    let resource = resource(json!({}));
    let new = compared(
        &resource,
        0,
        &said(&HelmReleaseState {
            installed: None,
            preview: is("0.1.0", Vec::new()),
        }),
    );
    assert!(
        new.is_absent()
            && new.actions.len() == 1
            && new.attributes.contains_key("values.agent.driver"),
        "{new:?}"
    );
    let met = HelmReleaseState {
        installed: Some(installed("deployed", true)),
        preview: is("0.1.0", Vec::new()),
    };
    assert!(compared(&resource, 0, &said(&met)).is_met());
    let theirs = HelmReleaseState {
        installed: Some(installed("deployed", false)),
        ..met.clone()
    };
    assert!(
        compared(&resource, 0, &said(&theirs)).is_met(),
        "what is in sync needs nobody's leave"
    );
    let bumped = |installed| HelmReleaseState {
        installed: Some(installed),
        preview: is("0.2.0", Vec::new()),
    };
    assert!(
        compared(&resource, 0, &said(&bumped(installed("deployed", false))))
            .refusal
            .unwrap()
            .contains("adopt: true")
    );
    let of_bump = compared(&resource, 0, &said(&bumped(installed("failed", true))));
    let differs: Vec<&str> = of_bump
        .attributes
        .iter()
        .filter(|(_, a)| !a.differences().is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        (differs, of_bump.actions.len()),
        (vec!["status", "version"], 1)
    );
    for (status, unlock) in [
        ("pending-upgrade", "rollback"),
        ("pending-install", "uninstall"),
        ("uninstalling", "uninstall"),
    ] {
        let busy = compared(&resource, 0, &said(&bumped(installed(status, true))));
        assert!(
            busy.actions.is_empty()
                && busy
                    .refusal
                    .as_ref()
                    .unwrap()
                    .contains(&format!("helm -n kube-system {unlock} rails")),
            "{busy:?}"
        );
    }
}

#[test]
fn a_value_may_disturb_more_than_its_objects_do() {
    let resource = resource(json!({}));
    let of = |name: &str| {
        let change = HelmReleaseChange {
            name: name.to_owned(),
            desired: Some(json!(1)),
            ..HelmReleaseChange::default()
        };
        let actual = HelmReleaseState {
            installed: Some(installed("deployed", true)),
            preview: is("0.1.0", vec![change]),
        };
        compared(&resource, 0, &said(&actual)).disruption
    };
    let names = [
        "values.agent.driver",
        "values.agent",
        "values.agent.driver.x",
        r#"values."agent.driver""#,
        "values.agent.drivers",
        "values.other",
    ];
    assert_eq!(
        names.map(of),
        [
            Disruption::Drain,
            Disruption::Drain,
            Disruption::Drain,
            Disruption::Drain,
            Disruption::None,
            Disruption::None
        ]
    );
}

/// Of what is not shown nobody knows which item it is.
#[test]
fn a_hidden_value_disturbs_as_each_of_its_items_does() {
    let words =
        json!({ "pools[0].mtu": "restart", "pools[a].mtu": "drain", "pools[c].mtu": "none" });
    let resource = resource(json!({ "disruptions": words }));
    let of = |name: &str, hidden: bool| {
        let change = HelmReleaseChange {
            name: name.to_owned(),
            desired: Some(json!("(not shown)")),
            hidden,
            ..HelmReleaseChange::default()
        };
        let actual = HelmReleaseState {
            installed: Some(installed("deployed", true)),
            preview: is("0.1.0", vec![change]),
        };
        compared(&resource, 0, &said(&actual)).disruption
    };
    assert_eq!(
        ["values.pools[0]", "values.pools[0].mtu"].map(|name| of(name, true)),
        [Disruption::Drain; 2]
    );
    assert_eq!(of("values.pools[b].mtu", false), Disruption::None);
    assert_eq!(of("values.poolside", true), Disruption::None);
}

#[test]
fn a_removal_says_what_goes_along_and_what_stays() {
    let last = resource(json!({}));
    let undone = |installed: InstalledRelease, existed: bool| {
        let found = HelmReleaseState {
            installed: Some(installed),
            preview: HelmReleasePreview::default(),
        };
        undone(&last, &json!({ "existed": existed }), &found)
    };
    let ours = undone(installed("deployed", true), false);
    let (name, namespace, deletes) = (
        "rails".to_owned(),
        "kube-system".to_owned(),
        vec![config_map()],
    );
    let uninstall = Action::UninstallRelease {
        name,
        namespace,
        deletes,
        looked_at: record(),
    };
    assert_eq!(
        of_action(&uninstall),
        [ApiVerb::Get, ApiVerb::Delete].map(|verb| (config_map(), verb))
    );
    assert_eq!(ours.actions, [uninstall]);
    let half = undone(installed("uninstalling", true), false);
    assert_eq!(
        (&half.actions, half.refusal.as_ref()),
        (&ours.actions, None),
        "it can be uninstalled again"
    );
    assert_ne!(
        half.fingerprint(),
        ours.fingerprint(),
        "and is not as it was"
    );
    let edit = |name: &str| HelmReleaseChange {
        name: format!("{name}: data.v"),
        actual: Some(json!("USERDATA")),
        ..HelmReleaseChange::default()
    };
    let edits = vec![
        edit("ConfigMap.core kube-system/rails"),
        edit("ConfigMap.core kube-system/kept"),
    ];
    let edited = undone(
        InstalledRelease {
            edits,
            ..installed("deployed", true)
        },
        false,
    );
    assert_ne!(
        edited.fingerprint(),
        ours.fingerprint(),
        "what others set is lost with it"
    );
    assert_eq!(
        edited.attributes["ConfigMap.core kube-system/rails: data.v"]
            .differences()
            .len(),
        1
    );
    assert!(
        !edited
            .attributes
            .contains_key("ConfigMap.core kube-system/kept: data.v"),
        "{edited:?}"
    );
    let unseen = undone(
        InstalledRelease {
            unseen: Some("it may not look".into()),
            ..installed("deployed", true)
        },
        false,
    );
    assert!(
        unseen.has_unknown() && !unseen.actions.is_empty(),
        "{unseen:?}"
    );
    let loss = "PersistentVolumeClaim.core kube-system/data: its data would go along";
    let with_data = undone(
        InstalledRelease {
            data_losses: vec![loss.to_owned()],
            ..installed("deployed", true)
        },
        false,
    );
    let refusal = with_data.refusal.as_deref().unwrap_or_default();
    assert!(
        refusal.contains(loss) && refusal.contains("`helm.sh/resource-policy: keep`"),
        "{with_data:?}"
    );
    assert!(
        with_data.actions.is_empty() && with_data.interrupts.contains(&loss.to_owned()),
        "{with_data:?}"
    );
    let hooks = InstalledRelease {
        hooks_run: vec!["hook a".to_owned()],
        hooks_stay: vec!["hook b".to_owned()],
        hook_collisions: vec![HelmReleaseChange {
            name: "hook a".to_owned(),
            actual: Some(json!("present")),
            interrupts: Some("a is deleted".to_owned()),
            ..HelmReleaseChange::default()
        }],
        ..installed("deployed", true)
    };
    let hooks = undone(hooks, false);
    assert!(
        hooks
            .interrupts
            .contains(&"hook a runs, as its chart says".to_owned()),
        "{hooks:?}"
    );
    assert!(
        hooks.interrupts.contains(&"a is deleted".to_owned())
            && hooks.fingerprint() != ours.fingerprint(),
        "{hooks:?}"
    );
    assert!(
        hooks
            .residue
            .contains(&"what hook b made stays: Helm leaves it".to_owned()),
        "{hooks:?}"
    );
    assert_eq!(
        ours.residue,
        [
            "ConfigMap.core kube-system/kept stays: its chart says so",
            "drivers on the hosts"
        ]
    );
    assert!(
        ours.interrupts[0].contains("every RailDevice.example.org of the cluster is deleted"),
        "{ours:?}"
    );
    for stays in [
        undone(installed("deployed", false), false),
        undone(installed("deployed", true), true),
    ] {
        assert!(
            stays.actions.is_empty() && stays.residue[0].contains("stays"),
            "{stays:?}"
        );
    }
    assert!(
        undone(installed("pending-upgrade", true), false)
            .actions
            .is_empty()
    );
}

#[test]
fn bodies_are_checked() {
    let errors = |more: Value| {
        HelmRelease
            .check(&resource(more).body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
    };
    assert_eq!(errors(json!({})), Vec::<String>::new());
    assert_eq!(
        errors(
            json!({ "values": { "a": [9007199254740992u64, 1152921504606846976u64, -3, 0.5, "12345678901234567890"] } })
        ),
        Vec::<String>::new()
    );
    let (bad, digest) = ("-a", "A".repeat(64));
    for (more, pointer) in [
        (json!({ "name": "Rails" }), "/name"),
        (json!({ "name": "a".repeat(54) }), "/name"),
        (json!({ "namespace": "a/b" }), "/namespace"),
        (json!({ "chart": bad }), "/chart"),
        (json!({ "chart": "http://x/y.tgz" }), "/chart"),
        (
            json!({ "repository": "ftp://x", "chart": "a" }),
            "/repository",
        ),
        (
            json!({ "repository": "https://x", "chart": "a/b" }),
            "/chart",
        ),
        (json!({ "version": bad }), "/version"),
        (json!({ "digest": digest }), "/digest"),
        (json!({ "values": [] }), "/values"),
        (
            json!({ "values": { "a/b": [1, 12345678901234567890u64] } }),
            "/values/a~1b/1",
        ),
        (
            json!({ "values": { "a": -9007199254740993i64 } }),
            "/values/a",
        ),
        (
            json!({ "disruptions": { "a": "power_cycle" } }),
            "/disruptions",
        ),
        (json!({ "disruptions": { "a": "much" } }), "/disruptions/a"),
        (json!({ "keeps": "x" }), "/keeps"),
        (json!({ "wait": true }), "/wait"),
    ] {
        assert_eq!(errors(more.clone()), [pointer], "{more}");
    }
    assert!(HelmRelease.may_hold_secret("/values/a") && !HelmRelease.may_hold_secret("/chart"));
}

#[test]
fn secrets_are_filled_in_for_the_process_alone() {
    let resource = resource(
        json!({ "values": { "a": { "b": secret::new_secret_mark("token") }, "list": [secret::new_secret_mark("token")] } }),
    );
    let release = parse_helm_release(&resource);
    assert_eq!(release.hidden, ["/a/b", "/list/0"]);
    let filled = release
        .filled(|name| (name == "token").then(|| "say \"x\"".to_owned()))
        .unwrap();
    let values: Value = serde_json::from_str(&filled.values).unwrap();
    assert_eq!(
        values,
        json!({ "a": { "b": "say \"x\"" }, "list": ["say \"x\""] })
    );
    assert_eq!(
        release.filled(|_| None),
        Err(UnknownSecret("token".to_owned()))
    );
}

/// A saved plan is refused where the chart is another one, and is applied with no other.
#[test]
fn a_plan_is_made_with_one_chart() {
    let resource = resource(json!({}));
    let with = |installed: &Option<InstalledRelease>, content: &str| {
        let preview = HelmReleasePreview::Is {
            rendering: None,
            chart: "rails".to_owned(),
            version: "0.2.0".to_owned(),
            content: content.to_owned(),
            changes: vec![],
        };
        compared(
            &resource,
            0,
            &said(&HelmReleaseState {
                installed: installed.clone(),
                preview,
            }),
        )
    };
    for before in [None, Some(installed("deployed", true))] {
        let (one, other) = (with(&before, "c1"), with(&before, "c2"));
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert!(
            matches!(&one.actions[..], [Action::UpgradeRelease { content, .. }] if content == "c1"),
            "{one:?}"
        );
        assert_eq!(one.is_absent(), before.is_none(), "what is new stays new");
        assert!(HelmRelease.can_read_before(&one.before));
    }
    let due = |chart: Option<&str>, description: &str, ours: bool| {
        let record = ReleaseRecord {
            chart: chart.map(str::to_owned),
            ..record()
        };
        let installed = InstalledRelease {
            description: description.to_owned(),
            record,
            ..installed("deployed", ours)
        };
        installed.is_due(("rails", "0.1.0"), "c1")
    };
    assert_eq!(
        [Some("c1"), Some("c2"), None].map(|chart| due(chart, DESCRIPTION, true)),
        [false, true, false]
    );
    assert!(
        due(Some("c1"), "Upgrade complete", true),
        "its labels go on with a revision of somebody else"
    );
    assert!(
        !due(None, "Install complete", false)
            && installed("failed", true).is_due(("rails", "0.1.0"), "c1")
    );
}

#[test]
fn what_a_value_changes_is_its_doing_and_no_other_chart() {
    let change = |name: &str| HelmReleaseChange {
        name: name.to_owned(),
        desired: Some(json!(1)),
        rendered: true,
        ..HelmReleaseChange::default()
    };
    let object = "DaemonSet.apps rdma/agent: spec.template";
    let input = |version: &str, changes: Vec<HelmReleaseChange>| {
        let actual = HelmReleaseState {
            installed: Some(installed("deployed", true)),
            preview: is(version, changes),
        };
        compared(&resource(json!({})), 0, &said(&actual)).attributes[object]
            .input
            .clone()
            .unwrap()
    };
    assert_eq!(
        input("0.1.0", vec![change("values.agent.driver"), change(object)]),
        "a value of the release"
    );
    assert_eq!(
        input("0.1.0", vec![change(object)]),
        "the chart charts/rails"
    );
    assert_eq!(
        input("0.2.0", vec![change("values.agent.driver"), change(object)]),
        "the chart charts/rails"
    );
}
