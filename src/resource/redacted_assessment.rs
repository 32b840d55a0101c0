//! What a kind makes of a target's answers, with the secrets of the run kept out of it. The kind
//! compares what the target said as it is; only what comes out is redacted, since that is shown,
//! planned, journalled and remembered.

use super::{
    Assessment, Attribute, DesiredResource, Plane, Provenance, Read, ReadResults, Reading,
    ResourceKind,
};
use crate::file::sealed::{is_sealed, without_seals};
use railwright_base::Redaction;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Compares a resource with its target.
pub fn diff_resource(
    kind: &dyn ResourceKind,
    wish: &DesiredResource,
    answers: &ReadResults,
) -> Assessment {
    where_readable(kind, wish, || {
        without_secrets(Some(wish), answers, |answers| kind.assess(wish, answers))
    })
}

/// Compares a resource with its target, where an earlier wish of it was applied or begun, and
/// `before` was there before us.
pub fn diff_after(
    kind: &dyn ResourceKind,
    wish: &DesiredResource,
    earlier: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> Assessment {
    if !is_readable(kind, earlier) {
        return build_unreadable_diff("body", "its body");
    }
    where_readable(kind, wish, || {
        without_secrets(Some(wish), answers, |answers| {
            kind.assess_after(wish, earlier, before, answers)
        })
    })
}

/// Compares a resource that no wish is about any more with its target, as it was applied. Nothing
/// of it is clear text: it may have been no secret then.
pub fn diff_applied(
    kind: &dyn ResourceKind,
    applied: &DesiredResource,
    answers: &ReadResults,
) -> Assessment {
    where_readable(kind, applied, || {
        without_secrets(None, answers, |answers| kind.assess(applied, answers))
    })
}

/// What takes a resource back.
pub fn diff_removal(
    kind: &dyn ResourceKind,
    applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> Assessment {
    if has_taken_out_of(&redact_recorded_value(before, answers.redaction())) {
        let what = applied.address.within_target();
        let residue = format!(
            "{what} stays as it is: what was there before us held a secret, and was not kept"
        );
        return Assessment {
            residue: vec![residue],
            ..Assessment::default()
        };
    }
    if !before.is_null() && !kind.can_read_before(before) {
        return build_unreadable_diff("before", "what was there before us");
    }
    let undo = where_readable(kind, applied, || {
        without_secrets(None, answers, |answers| kind.undo(applied, before, answers))
    });
    withhold_where_unknown(undo)
}

/// Nothing is taken back of a resource while something of it cannot be read: what is done blind may
/// be somebody's by now, and what cannot be seen would be forgotten.
fn withhold_where_unknown(undo: Assessment) -> Assessment {
    if !undo.has_unknown() {
        return undo;
    }
    let is_unknown = |attribute: &Attribute| {
        let mut differences = attribute.differences().into_iter();
        differences.any(|(_, _, found)| found.is_unknown())
    };
    let attributes = undo.attributes.into_iter();
    Assessment {
        attributes: attributes.filter(|(_, one)| is_unknown(one)).collect(),
        before: undo.before,
        ..Assessment::default()
    }
}

/// What a resource left behind when it was applied, where this is its wish now.
pub fn diff_left(
    kind: &dyn ResourceKind,
    applied: &DesiredResource,
    now: &DesiredResource,
    answers: &ReadResults,
) -> Assessment {
    where_readable(kind, applied, || {
        without_secrets(Some(now), answers, |answers| kind.left(applied, answers))
    })
}

/// Why nothing is known of what was applied.
pub const UNREADABLE_BODY: &str =
    "another version of railwright applied it, with a body that this one cannot read";

/// What has to be read to judge a resource.
pub fn list_reads(kind: &dyn ResourceKind, wish: &DesiredResource) -> Vec<Read> {
    if is_readable(kind, wish) {
        kind.reads(wish)
    } else {
        Vec::new()
    }
}

/// What has to be read to take a resource back.
pub fn list_reads_to_undo(kind: &dyn ResourceKind, applied: &DesiredResource) -> Vec<Read> {
    if is_readable(kind, applied) {
        kind.reads_to_undo(applied)
    } else {
        Vec::new()
    }
}

/// Whether this version may go by what is written of a resource. The record of a target and a state
/// file say of an applied one what another version wrote, with fields that this one does not know,
/// or what anybody wrote, of values that no wish may have.
pub fn is_readable(kind: &dyn ResourceKind, wish: &DesiredResource) -> bool {
    // The seals of a file are put in where no module may write.
    let body = match is_sealed(wish) {
        true => Cow::Owned(without_seals(&wish.body)),
        false => Cow::Borrowed(&wish.body),
    };
    let is_own_address = |path: Vec<String>| {
        kind.target_kind() == wish.address.target.kind && *path == *wish.address.path
    };
    kind.check(&body).is_empty() && kind.address_path(&body).is_none_or(is_own_address)
}

/// Nothing is known of a resource of which cannot be read what it is, and nothing is done to it.
fn where_readable(
    kind: &dyn ResourceKind,
    wish: &DesiredResource,
    compare: impl FnOnce() -> Assessment,
) -> Assessment {
    if is_readable(kind, wish) {
        return compare();
    }
    build_unreadable_diff("body", "its body")
}

fn build_unreadable_diff(name: &str, what: &str) -> Assessment {
    let why =
        format!("another version of railwright wrote {what} in a form that this one cannot read");
    let unknown = Reading::Unknown(why.into());
    let unreadable = Attribute::in_plane(Plane::Running, Reading::Absent, unknown);
    Assessment {
        attributes: [(name.to_owned(), unreadable)].into(),
        ..Assessment::default()
    }
}

/// What is remembered of a resource, without the secrets of this run: it may have been none when it
/// was written down.
pub fn redact_recorded_value(value: &Value, redaction: Option<&Redaction>) -> Value {
    let mut value = value.clone();
    if let Some(redaction) = redaction {
        redact_json_value(&mut value, &|text| redaction.replace(text));
    }
    value
}

/// A resource as it was applied, without the secrets of this run: what a plan carries of it.
pub fn remembered_wish(
    applied: &DesiredResource,
    redaction: Option<&Redaction>,
) -> DesiredResource {
    let Some(redaction) = redaction else {
        return applied.clone();
    };
    let mut want = (*applied.want).clone();
    redact_json_value(&mut want.body, &|text| redaction.replace(text));
    DesiredResource {
        want: Arc::new(want),
        ..applied.clone()
    }
}

fn has_taken_out_of(value: &Value) -> bool {
    collect_json_texts(value)
        .iter()
        .any(|text| Redaction::has_taken_out_of(text))
}

/// What stands in the wish of now everybody can read there; what a kind wants beside it may come
/// from the target.
fn without_secrets(
    wish: Option<&DesiredResource>,
    answers: &ReadResults,
    compare: impl Fn(&ReadResults) -> Assessment,
) -> Assessment {
    let compared = compare(answers);
    // What a kind makes of an answer may hold a secret that the answer holds in a form that nobody
    // knows.
    let Some(redaction) = answers.redaction() else {
        return compared;
    };
    let clear: Vec<Cow<'_, str>> = wish
        .into_iter()
        .flat_map(|wish| collect_json_texts(&wish.body))
        .collect();
    let redaction = redaction.except(clear.iter().map(AsRef::as_ref));
    match answers.without_secret_files(&redaction) {
        // What is as desired says nothing that the spec does not say.
        Cow::Owned(veiled) if !compared.is_met() => redact_diff(compare(&veiled), &redaction),
        _ => redact_diff(compared, &redaction),
    }
}

/// Every text of a JSON value, numbers among them.
pub fn collect_json_texts(value: &Value) -> Vec<Cow<'_, str>> {
    match value {
        Value::String(text) => vec![Cow::Borrowed(text)],
        Value::Number(number) => vec![Cow::Owned(number.to_string())],
        Value::Array(items) => items.iter().flat_map(collect_json_texts).collect(),
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, item)| {
                [Cow::Borrowed(key.as_str())]
                    .into_iter()
                    .chain(collect_json_texts(item))
            })
            .collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
    }
}

/// Everything in an assessment that a target's own words may have gone into.
fn redact_diff(mut compared: Assessment, redaction: &Redaction) -> Assessment {
    refuse_actions_with_secrets(&mut compared, redaction);
    for attributes in [&mut compared.attributes, &mut compared.out_of_reach] {
        *attributes = std::mem::take(attributes)
            .into_iter()
            .map(|(name, attribute)| (redaction.replace(&name), attribute))
            .collect();
        for attribute in attributes.values_mut() {
            redact_attribute(attribute, redaction);
        }
    }
    redact_json_value(&mut compared.before, &|text| redaction.replace(text));
    redact_all(&mut compared.interrupts, redaction);
    redact_all(&mut compared.residue, redaction);
    redact_all(&mut compared.refusal, redaction);
    if let Some(hopeless) = &mut compared.hopeless {
        hopeless.why = redaction.apply(&hopeless.why);
    }
    if let Some(lacks) = &mut compared.lacks {
        lacks.said = redaction.apply(&lacks.said);
    }
    compared
}

/// Takes the actions out where one of them would carry a secret that the target holds.
fn refuse_actions_with_secrets(compared: &mut Assessment, redaction: &Redaction) {
    let actions = serde_json::to_value(&compared.actions).unwrap_or_default();
    let texts = collect_json_texts(&actions);
    let Some(name) = texts.iter().find_map(|text| redaction.name_in(text)) else {
        return;
    };
    compared.actions.clear();
    if compared.refusal.is_none() {
        compared.refusal = Some(format!(
            "what is there holds the secret `{name}`, which no plan may carry: take it out by hand"
        ));
    }
}

fn redact_attribute(attribute: &mut Attribute, redaction: &Redaction) {
    let (wanted, found) = (attribute.wanted.clone(), attribute.found.clone());
    for (plane, desired) in wanted.iter() {
        let reading = redact_reading(desired, redaction, &|text| redaction.replace(text));
        attribute.wanted.set(plane, reading);
    }
    for (plane, actual) in found.iter() {
        // What is equal stays equal.
        let is_whole = wanted.get(plane) == Some(actual);
        let reading = redact_reading(actual, redaction, &|text| match is_whole {
            true => redaction.replace(text),
            false => redaction.replace_shortened(text),
        });
        attribute.found.set(plane, reading);
    }
    redact_all(attribute.by.as_mut().map(Provenance::words_mut), redaction);
    redact_all(&mut attribute.input, redaction);
}

fn redact_reading(
    reading: &Reading,
    redaction: &Redaction,
    replace: &dyn Fn(&str) -> String,
) -> Reading {
    match reading {
        Reading::Is(value) => {
            let mut value = value.clone();
            redact_json_value(&mut value, replace);
            Reading::Is(value)
        }
        Reading::Absent => Reading::Absent,
        Reading::NotApplicable(reason) => {
            Reading::NotApplicable(redaction.apply(reason.as_words()).into())
        }
        Reading::Unknown(reason) => Reading::Unknown(redaction.apply(reason.as_words()).into()),
    }
}

fn redact_all<'a>(texts: impl IntoIterator<Item = &'a mut String>, redaction: &Redaction) {
    texts
        .into_iter()
        .for_each(|text| *text = redaction.apply(text));
}

/// Replaces texts and names; a number becomes a text where it is a secret.
fn redact_json_value(value: &mut Value, replace: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = replace(text),
        Value::Number(number) => {
            let digits = number.to_string();
            let replaced = replace(&digits);
            if replaced != digits {
                *value = Value::String(replaced);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| redact_json_value(item, replace)),
        Value::Object(map) => {
            map.values_mut()
                .for_each(|item| redact_json_value(item, replace));
            *map = std::mem::take(map)
                .into_iter()
                .map(|(name, item)| (replace(&name), item))
                .collect();
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::File;
    use crate::test_support::{Scripted, answered, wish};
    use crate::{Action, AnswerStatus, Plane, Read, ReadResult, Want, kind_named};
    use railwright_base::{Address, Target};
    use serde_json::json;

    fn compared(secret: &str, desired: &str, actual: &str) -> Assessment {
        let wish = wish(
            &File,
            json!({ "path": "/etc/a", "content": desired, "mode": "0644" }),
        );
        let read = Read::File {
            path: "/etc/a".into(),
        };
        let mut answers =
            answered(&[(&read, 0, &format!("644 root root 9 regular file\n{actual}"))]);
        answers.may_hold(Arc::new(Redaction::of([("token", secret)])));
        diff_resource(&File, &wish, &answers)
    }

    #[test]
    fn what_is_right_stays_right_whatever_the_secrets_are() {
        let text = "[agent]\nlevel = info\nWantedBy=multi-user.target\n";
        for secret in [
            "enabled",
            "[agent]\nlevel = info\nkey = x\n",
            "level = info",
            text,
            "WantedBy=multi-user.target\nkey = y",
        ] {
            assert!(compared(secret, text, text).is_met(), "{secret}");
        }
    }

    #[test]
    fn what_differs_is_shown_and_remembered_without_the_secret() {
        let made = compared("hunter2-hunter2", "x\n", "t=hunter2-hunter2\n");
        assert_eq!(
            made.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["write_file"]
        );
        assert!(
            !made.is_met() && !format!("{made:?}").contains("hunter2"),
            "{made:?}"
        );
        let plain = compared("hunter2-hunter2", "x\n", "t=hunter1\n");
        assert!(format!("{plain:?}").contains("hunter1"), "{plain:?}");
    }

    /// A kind that undoes what hid a secret from whoever looks at the answer, and says it under the
    /// secret's own name.
    const TELLS: Scripted = Scripted {
        assess: || {
            let said = json!({ "hunter2-hunter2": "it said hunter2-hun... and no more" });
            let found = Attribute::in_plane(Plane::Running, Reading::is("x"), Reading::is(said));
            let before = json!({ "hunter2-hunter2": ["hunter2-hunter2", "ends with hunter"] });
            Assessment {
                attributes: [("of hunter2-hunter2".to_owned(), found)].into(),
                before,
                ..Assessment::default()
            }
        },
        undo: |before| {
            let value = before["value"].as_str().unwrap_or_default().to_owned();
            Assessment {
                actions: vec![Action::SetSysctl {
                    key: "a".to_owned(),
                    value,
                }],
                ..Assessment::default()
            }
        },
    };

    #[test]
    fn what_a_kind_makes_of_an_answer_is_redacted_whatever_the_answer_looked_like() {
        let mut answers = ReadResults::default();
        answers.may_hold(Arc::new(Redaction::of([("token", "hunter2-hunter2")])));
        let wish = wish(
            &File,
            json!({ "path": "/etc/a", "content": "x", "mode": "0644" }),
        );
        let made = diff_resource(&TELLS, &wish, &answers);
        assert!(
            !format!("{:?}", made.attributes).contains("hunter2-"),
            "{:?}",
            made.attributes
        );
        assert_eq!(
            made.before,
            json!({ "[secret token]": ["[secret token]", "ends with hunter"] }),
            "what was there before was not cut off"
        );
    }

    #[test]
    fn what_is_right_stays_right_where_it_ends_as_a_secret_that_was_cut_off() {
        let text = "# do not change...\n";
        let made = compared("change-8812-xyz", text, text);
        assert!(
            made.is_met() && !format!("{made:?}").contains("secret"),
            "{made:?}"
        );
        let before = compared("change-8812-xyz", "x\n", text).before;
        assert_eq!(before["regular"]["content"]["text"], text);
    }

    /// Compares numbers, and takes back what was applied.
    const COUNTS: Scripted = Scripted {
        assess: || {
            let pin = Attribute::in_plane(
                Plane::Running,
                Reading::is(1),
                Reading::is(8_462_951_730_u64),
            );
            let before = json!({ "pin": 8_462_951_730_u64 });
            Assessment {
                attributes: [("pin".to_owned(), pin)].into(),
                before,
                ..Assessment::default()
            }
        },
        undo: |_| {
            let text = Attribute::in_plane(
                Plane::Running,
                Reading::is("was 8462951730"),
                Reading::is("t=8462951730"),
            );
            Assessment {
                attributes: [("text".to_owned(), text)].into(),
                ..Assessment::default()
            }
        },
    };

    /// What it left behind is what its target has now.
    const LEFT: Scripted = Scripted {
        assess: || (COUNTS.undo)(&Value::Null),
        undo: COUNTS.undo,
    };

    #[test]
    fn a_secret_of_digits_is_one_as_a_number_too() {
        let mut answers = ReadResults::default();
        answers.may_hold(Arc::new(Redaction::of([("pin", "8462951730")])));
        let made = diff_resource(
            &COUNTS,
            &wish(&File, json!({ "path": "/etc/a", "content": "x" })),
            &answers,
        );
        assert!(!format!("{made:?}").contains("8462951730"), "{made:?}");
        assert_eq!(
            (made.is_met(), made.before),
            (false, json!({ "pin": "[secret pin]" }))
        );
    }

    /// The text of an earlier spec, or what was there before us, became a secret since.
    #[test]
    fn what_is_remembered_is_no_clear_text() {
        let mut answers = ReadResults::default();
        answers.may_hold(Arc::new(Redaction::of([("pin", "8462951730")])));
        let applied = wish(
            &File,
            json!({ "path": "/etc/a", "content": "t=8462951730" }),
        );
        let made = diff_removal(&COUNTS, &applied, &json!(null), &answers);
        assert!(
            !made.attributes.is_empty() && !format!("{made:?}").contains("8462951730"),
            "{made:?}"
        );
        let kept = diff_removal(
            &COUNTS,
            &applied,
            &json!({ "text": "t=8462951730" }),
            &answers,
        );
        assert!(
            kept.attributes.is_empty() && kept.residue[0].contains("held a secret"),
            "{kept:?}"
        );
        let now = wish(&File, json!({ "path": "/etc/a", "content": "x" }));
        for made in [
            diff_left(&LEFT, &applied, &now, &answers),
            diff_applied(&LEFT, &applied, &answers),
        ] {
            assert!(!format!("{made:?}").contains("8462951730"), "{made:?}");
        }
    }

    #[test]
    fn the_name_of_a_secret_is_never_put_back_in_its_place() {
        let wish = wish(
            &File,
            json!({ "path": "/etc/a", "content": "x", "mode": "0644" }),
        );
        let back = |before: Value| diff_removal(&TELLS, &wish, &before, &ReadResults::default());
        assert_eq!(back(json!({ "value": "old" })).actions.len(), 1);
        let kept = back(json!({ "value": "is [secret token] here" }));
        assert!(kept.actions.is_empty());
        assert_eq!(
            kept.residue,
            [
                "file/%2Fetc%2Fa stays as it is: what was there before us held a secret, and was \
                 not kept"
            ]
        );
    }

    /// A kind, a body, and what was there before us as a later version may write it: with other
    /// names, fields or types.
    const WRITTEN_BY_A_LATER_VERSION: &str = r#"
file {"path": "/etc/a", "content": "x"} {"was_absent": {"folder": null}}
file {"path": "/etc/a", "content": "x"} {"absent": {"folder": null, "links": 0}}
sysctl {"key": "net.a", "value": 2} {"running": "1", "persisted": null, "file": {"absent": {"folder": null}}}
link {"netdev": "en1", "mtu": 1400} {"running": {"mtu": 1500, "up": true, "addresses": [{"address": "192.0.2.7/24"}]}, "persisted": {"manager": null, "values": {"addresses": []}, "own": null, "settings": {}}}
link {"netdev": "en1", "mtu": 1400} {"now": {"mtu": 1500, "up": true, "addresses": []}, "on_disk": {"manager": null, "values": {"addresses": []}, "own": null, "settings": {}}}
vlan {"netdev": "en1.5", "parent": "en1", "id": 5} {"was_running": true, "persisted": true}
package {"name": "jq"} {"manager": "apt", "state": {"gone": {}}, "held": false}
package_repository {"name": "r", "manager": "dnf", "url": "file:/r", "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----\nmDME\n-----END PGP PUBLIC KEY BLOCK-----"} {"/etc/yum.repos.d/r.repo": "plain"}
systemd_unit {"name": "q.service", "active": true} {"state": {"there": true, "masked": false, "enabled": true, "active": true}, "files": {}}
kernel_parameter {"parameter": "iommu", "value": "pt"} {"persisted": "absent", "next_boot": "absent", "running": "absent"}
kernel_module {"name": "a", "loaded": true} {"was_loaded": false, "files": {}}
kernel_module {"name": "a", "loaded": true} {"loaded": false, "files": {"/etc/modprobe.d/zz-railwright-a.conf": "plain"}}
kernel_module_build {"name": "a", "version": "1", "source": {"git": "https://h/a.git", "revision": "1"}} {"tree": false, "installed": null, "kernel": "6.1"}
link_qos {"netdev": "en1", "pfc": [3]} {"running": {"pfc": [], "buffers": {}}}
link_qos {"netdev": "en1", "pfc": [3]} {"settings": {"pfc": []}}
link_ecn {"netdev": "en1", "priorities": [3]} {"files": {"roce_rp/enable/3": "0"}}
interrupt_affinity {"netdev": "en1", "cpus": "numa-local"} {"interrupts": {"40": {"name": "a", "cpus": "0"}}}
pci_setting {"netdev": "en1", "max_read_request": 4096} {"max_read_request": 512}
pci_setting {"acs": "off", "bridges": ["0000:3a:00.0"]} {"bridges": {"0000:3a:00.0": "001d"}}
netdev_name {"name": "rail0", "device": "0000:3b:00.0"} {"running": "ens1", "link_file": null}
firmware_setting {"netdev": "en1", "settings": {"SRIOV_EN": 1}} {"default": {}, "running": {}, "next": {"SRIOV_EN": "False(0)"}}
configfs_value {"netdev": "en1", "attribute": "default_roce_tos", "value": 104} {"running": {"value": 0}}
configfs_value {"netdev": "en1", "attribute": "default_roce_tos", "value": 104} {"value": 0}
rdma_link {"netdev": "en1", "type": "rxe"} {"device": {"name": "rxe0"}, "kept": false}
helm_release {"cluster": "lab", "name": "r", "namespace": "n", "chart": "c"} {"was_there": false}
kubernetes_object {"cluster": "lab", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}} {"existed": false, "uid": "u1"}
json_in_configmap {"name": "c", "namespace": "n", "key": "k", "edits": [{"pointer": "/a", "value": 1}]} {"parts": [{"part": "range", "pointer": "/a"}], "uid": null}
json_in_configmap {"name": "c", "namespace": "n", "key": "k", "edits": [{"pointer": "/a", "value": 1}]} {"parts": [{"part": "value", "pointer": "/a", "held": "absent", "owner": "x"}], "uid": null}
switch_port {"system": "sonic", "port": "Ethernet0", "mtu": 9000} {"PORT|Ethernet0": {"mtu": 9100}}
switch_port {"system": "sonic", "port": "Ethernet0", "mtu": 9000} {"PORT": {"mtu": "9100"}}
switch_port {"system": "eos", "port": "Ethernet1", "mtu": 9000} {"mtu": null, "l2 mtu": null}
switch_qos {"system": "eos", "port": "Ethernet1", "priority": 3, "dscp": 26} {"qos trust": ["qos trust dscp"], "shared": {}}
switch_qos {"system": "eos", "port": "Ethernet1", "priority": 3, "dscp": 26} {"qos trust": null, "shared": {"26": 3}}
switch_qos {"system": "cumulus", "port": "swp1", "priority": 3, "dscp": 26} {"interface swp1 qos mapping profile": ["a", "b"]}
switch_ecn {"system": "cumulus", "port": "swp1", "priority": 3, "min_bytes": 1, "max_bytes": 2, "probability_percent": 5} {"port swp1 congestion-control": null}
switch_buffer {"system": "cumulus", "port": "swp1", "cable_m": 40, "priority": 3} {"qos pfc railwright_swp1 cable-length": true}"#;

    /// A resource as it was applied, under its own address.
    fn applied(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
        let target = Target {
            kind: kind.target_kind(),
            name: "t".into(),
        };
        let path = kind.address_path(&body).unwrap();
        let want = Want {
            body,
            kind: kind.name().into(),
            module: "m/r".into(),
            places: vec![],
        };
        DesiredResource {
            want: Arc::new(want),
            address: Address {
                target,
                path: path.into(),
                attribute: None,
            },
            after: vec![],
        }
    }

    #[test]
    fn nothing_is_taken_back_while_its_present_state_is_unknown() {
        let absent = json!({ "absent": { "folder": null } });
        let planes = json!({ "persisted": "absent", "next_boot": "absent", "running": "absent", "drop_in": absent });
        let unit = json!({ "unit": { "there": true, "masked": false, "enabled": false, "active": false }, "files": {} });
        for (kind, body, before) in [
            (
                "file",
                json!({ "path": "/etc/a", "content": "x", "mode": "0644" }),
                absent.clone(),
            ),
            (
                "sysctl",
                json!({ "key": "net.a", "value": 2 }),
                json!({ "running": "1", "persisted": null, "drop_in": absent }),
            ),
            (
                "kernel_parameter",
                json!({ "parameter": "iommu", "value": "pt" }),
                planes,
            ),
            (
                "systemd_unit",
                json!({ "name": "q.service", "active": true }),
                unit,
            ),
        ] {
            let kind = kind_named(kind).unwrap();
            let applied = applied(kind, body);
            let mut answers = ReadResults::default();
            for read in kind.reads_to_undo(&applied) {
                let (status, out) = (AnswerStatus::TimedOut, String::new());
                answers.insert(read.key(), ReadResult { status, out });
            }
            let back = diff_removal(kind, &applied, &before, &answers);
            assert!(back.only_unknown(), "{}: {back:?}", kind.name());
            assert!(
                back.actions.is_empty() && back.residue.is_empty(),
                "{back:?}"
            );
        }
    }

    /// A record says what its writer likes, and may name things to programs of this machine.
    #[test]
    fn what_no_spec_could_wish_is_not_asked_about() {
        let chart = json!({ "cluster": "lab", "name": "r", "namespace": "n", "chart": "c" });
        let helm = |name: &str, value: &str| {
            let mut body = chart.clone();
            body[name] = json!(value);
            applied(kind_named("helm_release").unwrap(), body)
        };
        let file = |path: &str| {
            applied(
                &File,
                json!({ "path": path, "content": "x", "mode": "0644" }),
            )
        };
        let elsewhere = DesiredResource {
            address: Address::host("n1", "file", "/etc/b"),
            ..file("/etc/a")
        };
        let on_host = DesiredResource {
            address: Address {
                target: Target::host("n1"),
                ..helm("name", "r").address
            },
            ..helm("name", "r")
        };
        for (applied, is_asked_about) in [
            (helm("name", "r"), true),
            (helm("name", "-gf/root/.kube/config"), false),
            (helm("chart", "--post-renderer=/bin/sh"), false),
            (helm("repository", "http://h/c"), false),
            (on_host, false),
            (file("/etc/a"), true),
            (file("etc/a"), false),
            (elsewhere, false),
        ] {
            let kind = kind_named(&applied.kind).unwrap();
            for reads in [
                list_reads(kind, &applied),
                list_reads_to_undo(kind, &applied),
            ] {
                assert_eq!(!reads.is_empty(), is_asked_about, "{applied:?}");
            }
            let back = diff_removal(kind, &applied, &Value::Null, &ReadResults::default());
            assert_eq!(
                back.attributes.keys().eq(["body"]),
                !is_asked_about,
                "{back:?}"
            );
            assert!(back.actions.is_empty() && (is_asked_about || back.has_unknown()));
        }
    }

    /// `null` was not recorded.
    #[test]
    fn what_another_version_wrote_of_the_time_before_us_is_unknown() {
        for case in WRITTEN_BY_A_LATER_VERSION.lines().skip(1) {
            let (kind, values) = case.split_once(' ').unwrap();
            let kind = kind_named(kind).unwrap();
            let mut values = serde_json::Deserializer::from_str(values).into_iter();
            let [body, before]: [Value; 2] =
                std::array::from_fn(|_| values.next().unwrap().unwrap());
            let applied = applied(kind, body);
            assert!(
                is_readable(kind, &applied),
                "{case}: {:?}",
                kind.check(&applied.body)
            );
            let back =
                |before: &Value| diff_removal(kind, &applied, before, &ReadResults::default());
            let unknown = back(&before);
            assert!(
                unknown.attributes.keys().eq(["before"]) && unknown.has_unknown(),
                "{case}: {unknown:?}"
            );
            assert!(unknown.actions.is_empty() && unknown.residue.is_empty());
            let unrecorded = back(&Value::Null);
            assert!(
                !unrecorded.attributes.contains_key("before"),
                "{case}: {unrecorded:?}"
            );
        }
    }
}
