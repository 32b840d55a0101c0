//! What a kind makes of a target's answers, with the secrets of the run kept out of it. The kind
//! compares what the target reported as it is; only what comes out is redacted, since that is
//! shown, planned, journalled and remembered.

use super::readability::{
    build_unreadable_diff, is_readable, where_readable, withhold_where_unknown,
};
use super::{
    Attribute, DesiredResource, Provenance, ReadResults, Reading, ResourceDiff, ResourceKind,
};
use railwright_base::Redaction;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Compares a resource with its target.
pub fn diff_resource(
    kind: &dyn ResourceKind,
    resource: &DesiredResource,
    answers: &ReadResults,
) -> ResourceDiff {
    where_readable(kind, resource, || {
        without_secrets(Some(resource), answers, |answers| {
            kind.diff(resource, answers)
        })
    })
}

/// Compares a resource with its target, where an earlier declaration of it was applied or begun,
/// and `before` was there before us.
pub fn diff_after(
    kind: &dyn ResourceKind,
    resource: &DesiredResource,
    earlier: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    if !is_readable(kind, earlier) {
        return build_unreadable_diff("body", "its body");
    }
    where_readable(kind, resource, || {
        without_secrets(Some(resource), answers, |answers| {
            kind.diff_after(resource, earlier, before, answers)
        })
    })
}

/// Compares a resource that is no longer declared with its target, as it was applied. Nothing of it
/// is clear text: it may have been no secret then.
pub fn diff_applied(
    kind: &dyn ResourceKind,
    applied: &DesiredResource,
    answers: &ReadResults,
) -> ResourceDiff {
    where_readable(kind, applied, || {
        without_secrets(None, answers, |answers| kind.diff(applied, answers))
    })
}

/// What undoes a resource.
pub fn diff_removal(
    kind: &dyn ResourceKind,
    applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    if has_taken_out_of(&redact_recorded_value(before, answers.redaction())) {
        let what = applied.address.within_target();
        let residue = format!(
            "{what} stays as it is: what was there before us held a secret, and was not kept"
        );
        return ResourceDiff {
            residue: vec![residue],
            ..ResourceDiff::default()
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

/// What a resource left behind when it was applied, where `now` is its present declaration.
pub fn diff_left(
    kind: &dyn ResourceKind,
    applied: &DesiredResource,
    now: &DesiredResource,
    answers: &ReadResults,
) -> ResourceDiff {
    where_readable(kind, applied, || {
        without_secrets(Some(now), answers, |answers| kind.left(applied, answers))
    })
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
pub fn remembered_resource(
    applied: &DesiredResource,
    redaction: Option<&Redaction>,
) -> DesiredResource {
    let Some(redaction) = redaction else {
        return applied.clone();
    };
    let mut declaration = (*applied.declaration).clone();
    redact_json_value(&mut declaration.body, &|text| redaction.replace(text));
    DesiredResource {
        declaration: Arc::new(declaration),
        ..applied.clone()
    }
}

fn has_taken_out_of(value: &Value) -> bool {
    collect_json_texts(value)
        .iter()
        .any(|text| Redaction::has_taken_out_of(text))
}

/// What stands in the present declaration everybody can read there; what a kind desires beside it
/// may come from the target.
fn without_secrets(
    resource: Option<&DesiredResource>,
    answers: &ReadResults,
    compare: impl Fn(&ReadResults) -> ResourceDiff,
) -> ResourceDiff {
    let compared = compare(answers);
    // What a kind makes of an answer may hold a secret that the answer holds in a form that nobody
    // knows.
    let Some(redaction) = answers.redaction() else {
        return compared;
    };
    let clear: Vec<Cow<'_, str>> = resource
        .into_iter()
        .flat_map(|resource| collect_json_texts(&resource.body))
        .collect();
    let redaction = redaction.except(clear.iter().map(AsRef::as_ref));
    match answers.without_secret_files(&redaction) {
        // What is in sync says nothing that the spec does not say.
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

/// Everything in a diff that a target's own words may have gone into.
fn redact_diff(mut compared: ResourceDiff, redaction: &Redaction) -> ResourceDiff {
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
fn refuse_actions_with_secrets(compared: &mut ResourceDiff, redaction: &Redaction) {
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
    let (desired, actual) = (attribute.desired.clone(), attribute.actual.clone());
    for (plane, value) in desired.iter() {
        let reading = redact_reading(value, redaction, &|text| redaction.replace(text));
        attribute.desired.set(plane, reading);
    }
    for (plane, value) in actual.iter() {
        // What is equal stays equal.
        let is_whole = desired.get(plane) == Some(value);
        let reading = redact_reading(value, redaction, &|text| match is_whole {
            true => redaction.replace(text),
            false => redaction.replace_shortened(text),
        });
        attribute.actual.set(plane, reading);
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
    use crate::test_support::{Scripted, answered, resource};
    use crate::{Action, Plane, Read};
    use serde_json::json;

    fn compared(secret: &str, desired: &str, actual: &str) -> ResourceDiff {
        let resource = resource(
            &File,
            json!({ "path": "/etc/a", "content": desired, "mode": "0644" }),
        );
        let read = Read::File {
            path: "/etc/a".into(),
        };
        let mut answers =
            answered(&[(&read, 0, &format!("644 root root 9 regular file\n{actual}"))]);
        answers.may_hold(Arc::new(Redaction::of([("token", secret)])));
        diff_resource(&File, &resource, &answers)
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
        diff: || {
            let said = json!({ "hunter2-hunter2": "it said hunter2-hun... and no more" });
            let found = Attribute::in_plane(Plane::Running, Reading::is("x"), Reading::is(said));
            let before = json!({ "hunter2-hunter2": ["hunter2-hunter2", "ends with hunter"] });
            ResourceDiff {
                attributes: [("of hunter2-hunter2".to_owned(), found)].into(),
                before,
                ..ResourceDiff::default()
            }
        },
        undo: |before| {
            let value = before["value"].as_str().unwrap_or_default().to_owned();
            ResourceDiff {
                actions: vec![Action::SetSysctl {
                    key: "a".to_owned(),
                    value,
                }],
                ..ResourceDiff::default()
            }
        },
    };

    #[test]
    fn what_a_kind_makes_of_an_answer_is_redacted_whatever_the_answer_looked_like() {
        let mut answers = ReadResults::default();
        answers.may_hold(Arc::new(Redaction::of([("token", "hunter2-hunter2")])));
        let resource = resource(
            &File,
            json!({ "path": "/etc/a", "content": "x", "mode": "0644" }),
        );
        let made = diff_resource(&TELLS, &resource, &answers);
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

    /// Compares numbers, and undoes what was applied.
    const COUNTS: Scripted = Scripted {
        diff: || {
            let pin = Attribute::in_plane(
                Plane::Running,
                Reading::is(1),
                Reading::is(8_462_951_730_u64),
            );
            let before = json!({ "pin": 8_462_951_730_u64 });
            ResourceDiff {
                attributes: [("pin".to_owned(), pin)].into(),
                before,
                ..ResourceDiff::default()
            }
        },
        undo: |_| {
            let text = Attribute::in_plane(
                Plane::Running,
                Reading::is("was 8462951730"),
                Reading::is("t=8462951730"),
            );
            ResourceDiff {
                attributes: [("text".to_owned(), text)].into(),
                ..ResourceDiff::default()
            }
        },
    };

    /// What it left behind is what its target has now.
    const LEFT: Scripted = Scripted {
        diff: || (COUNTS.undo)(&Value::Null),
        undo: COUNTS.undo,
    };

    #[test]
    fn a_secret_of_digits_is_one_as_a_number_too() {
        let mut answers = ReadResults::default();
        answers.may_hold(Arc::new(Redaction::of([("pin", "8462951730")])));
        let made = diff_resource(
            &COUNTS,
            &resource(&File, json!({ "path": "/etc/a", "content": "x" })),
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
        let applied = resource(
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
        let now = resource(&File, json!({ "path": "/etc/a", "content": "x" }));
        for made in [
            diff_left(&LEFT, &applied, &now, &answers),
            diff_applied(&LEFT, &applied, &answers),
        ] {
            assert!(!format!("{made:?}").contains("8462951730"), "{made:?}");
        }
    }

    #[test]
    fn the_name_of_a_secret_is_never_put_back_in_its_place() {
        let resource = resource(
            &File,
            json!({ "path": "/etc/a", "content": "x", "mode": "0644" }),
        );
        let back =
            |before: Value| diff_removal(&TELLS, &resource, &before, &ReadResults::default());
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
}
