//! What a kind makes of a target's answers, with the secrets of the run kept out of it. The kind compares what the target said
//! as it is; only what comes out is redacted, since that is shown, planned, journalled and remembered.

use super::{Answers, Assessment, Kind, Reading, Wish};
use crate::base::Redaction;
use serde_json::Value;
use std::borrow::Cow;

/// Compares a resource with its target.
pub fn diff(kind: &dyn Kind, wish: &Wish, answers: &Answers) -> Assessment {
    without_secrets(wish, answers, |answers| kind.assess(wish, answers))
}

/// What takes a resource back.
pub fn diff_removal(kind: &dyn Kind, applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
    if texts(before).into_iter().any(Redaction::has_taken_out_of) {
        let what = applied.address.within_target();
        let residue = format!("{what} stays as it is: what was there before us held a secret, and was not kept");
        return Assessment { residue: vec![residue], ..Assessment::default() };
    }
    without_secrets(applied, answers, |answers| kind.undo(applied, before, answers))
}

/// What a resource that was applied earlier left behind.
pub fn diff_left(kind: &dyn Kind, applied: &Wish, answers: &Answers) -> Assessment {
    without_secrets(applied, answers, |answers| kind.left(applied, answers))
}

fn without_secrets(wish: &Wish, answers: &Answers, compare: impl Fn(&Answers) -> Assessment) -> Assessment {
    let compared = compare(answers);
    // What a kind makes of an answer may hold a secret that the answer holds in a form that nobody knows.
    let Some(redaction) = answers.redaction() else { return compared };
    let desired = compared.attributes.values().flat_map(|attribute| attribute.wanted.iter()).filter_map(|(_, wanted)| match wanted {
        Reading::Is(value) => Some(value),
        _ => None,
    });
    let redaction = redaction.except(desired.chain([&wish.body]).flat_map(texts));
    match answers.without_secret_files(&redaction) {
        // What is as desired says nothing that the spec does not say.
        Cow::Owned(veiled) if !compared.is_met() => redacted(compare(&veiled), &redaction),
        _ => redacted(compared, &redaction),
    }
}

/// Every text of a JSON value.
pub fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(map) => map.iter().flat_map(|(key, item)| [key.as_str()].into_iter().chain(texts(item))).collect(),
        _ => Vec::new(),
    }
}

/// Everything in an assessment that a target's own words may have gone into.
fn redacted(mut compared: Assessment, redaction: &Redaction) -> Assessment {
    let actions = serde_json::to_value(&compared.actions).unwrap_or_default();
    if let Some(name) = texts(&actions).into_iter().find_map(|text| redaction.name_in(text)) {
        let refusal = format!("what is there holds the secret `{name}`, which no plan may carry: take it out by hand");
        (compared.actions, compared.refusal) = (Vec::new(), compared.refusal.or(Some(refusal)));
    }
    for attributes in [&mut compared.attributes, &mut compared.out_of_reach] {
        *attributes = std::mem::take(attributes).into_iter().map(|(name, attribute)| (redaction.replace(&name), attribute)).collect();
    }
    for attribute in compared.attributes.values_mut().chain(compared.out_of_reach.values_mut()) {
        for (plane, found) in attribute.found.clone().iter() {
            attribute.found.set(plane, without(found, redaction));
        }
        redact_all(attribute.by.iter_mut().chain(&mut attribute.input), redaction);
    }
    redact(&mut compared.before, redaction);
    redact_all(compared.interrupts.iter_mut().chain(&mut compared.residue).chain(&mut compared.refusal), redaction);
    redact_all(compared.hopeless.iter_mut().map(|hopeless| &mut hopeless.why), redaction);
    redact_all(compared.lacks.iter_mut().map(|lacks| &mut lacks.said), redaction);
    compared
}

fn without(reading: &Reading, redaction: &Redaction) -> Reading {
    match reading {
        Reading::Is(value) => {
            let mut value = value.clone();
            redact(&mut value, redaction);
            Reading::Is(value)
        }
        Reading::Absent => Reading::Absent,
        Reading::NotApplicable(reason) => Reading::NotApplicable(redaction.apply(reason)),
        Reading::Unknown(reason) => Reading::Unknown(redaction.apply(reason)),
    }
}

fn redact_all<'a>(texts: impl IntoIterator<Item = &'a mut String>, redaction: &Redaction) {
    texts.into_iter().for_each(|text| *text = redaction.apply(text));
}

fn redact(value: &mut Value, redaction: &Redaction) {
    match value {
        Value::String(text) => *text = redaction.replace(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redaction)),
        Value::Object(map) => {
            map.values_mut().for_each(|item| redact(item, redaction));
            *map = std::mem::take(map).into_iter().map(|(name, item)| (redaction.replace(&name), item)).collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::file::File;
    use crate::resource::test_support::{Scripted, answered, wish};
    use crate::resource::{Action, Attribute, Plane, Read};
    use serde_json::json;
    use std::sync::Arc;

    fn compared(secret: &str, desired: &str, actual: &str) -> Assessment {
        let wish = wish(&File, json!({ "path": "/etc/a", "content": desired, "mode": "0644" }));
        let read = Read::File { path: "/etc/a".into() };
        let mut answers = answered(&[(&read, 0, &format!("644 root root 9 regular file\n{actual}"))]);
        answers.may_hold(Arc::new(Redaction::of([("token", secret)])));
        diff(&File, &wish, &answers)
    }

    #[test]
    fn what_is_right_stays_right_whatever_the_secrets_are() {
        let text = "[agent]\nlevel = info\nWantedBy=multi-user.target\n";
        for secret in ["enabled", "[agent]\nlevel = info\nkey = x\n", "level = info", text, "WantedBy=multi-user.target\nkey = y"] {
            assert!(compared(secret, text, text).is_met(), "{secret}");
        }
    }

    #[test]
    fn what_differs_is_shown_and_remembered_without_the_secret() {
        let made = compared("hunter2-hunter2", "x\n", "t=hunter2-hunter2\n");
        assert_eq!(made.actions.iter().map(Action::word).collect::<Vec<_>>(), ["write_file"]);
        assert!(!made.is_met() && !format!("{made:?}").contains("hunter2"), "{made:?}");
        let plain = compared("hunter2-hunter2", "x\n", "t=hunter1\n");
        assert!(format!("{plain:?}").contains("hunter1"), "{plain:?}");
    }

    /// A kind that undoes what hid a secret from whoever looks at the answer, and says it under the secret's own name.
    const TELLS: Scripted = Scripted {
        assess: || {
            let said = json!({ "hunter2-hunter2": "it said hunter2-hun... and no more" });
            let found = Attribute::in_plane(Plane::Running, Reading::is("x"), Reading::is(said));
            let before = json!({ "hunter2-hunter2": ["hunter2-hunter2", "ends with hunter"] });
            Assessment { attributes: [("of hunter2-hunter2".to_owned(), found)].into(), before, ..Assessment::default() }
        },
        undo: |before| {
            let value = before["value"].as_str().unwrap_or_default().to_owned();
            Assessment { actions: vec![Action::SetSysctl { key: "a".to_owned(), value }], ..Assessment::default() }
        },
        convergent: true,
    };

    #[test]
    fn what_a_kind_makes_of_an_answer_is_redacted_whatever_the_answer_looked_like() {
        let mut answers = Answers::default();
        answers.may_hold(Arc::new(Redaction::of([("token", "hunter2-hunter2")])));
        let wish = wish(&File, json!({ "path": "/etc/a", "content": "x", "mode": "0644" }));
        let made = diff(&TELLS, &wish, &answers);
        assert!(!format!("{:?}", made.attributes).contains("hunter2-"), "{:?}", made.attributes);
        assert_eq!(
            made.before,
            json!({ "[secret token]": ["[secret token]", "ends with hunter"] }),
            "what was there before was not cut off"
        );
    }

    #[test]
    fn the_name_of_a_secret_is_never_put_back_in_its_place() {
        let wish = wish(&File, json!({ "path": "/etc/a", "content": "x", "mode": "0644" }));
        let back = |before: Value| diff_removal(&TELLS, &wish, &before, &Answers::default());
        assert_eq!(back(json!({ "value": "old" })).actions.len(), 1);
        let kept = back(json!({ "value": "is [secret token] here" }));
        assert!(kept.actions.is_empty());
        assert_eq!(kept.residue, ["file/%2Fetc%2Fa stays as it is: what was there before us held a secret, and was not kept"]);
    }
}
