//! Secrets taken out of what hosts and programs say: a host may echo what it was told, in an error, in a log, in an
//! answer to another question.

use super::quote;
use std::collections::BTreeMap;

/// A secret shorter than this many bytes is refused: it could not be told from ordinary text, so nothing could keep it out
/// of a log.
pub const SHORTEST_BYTES: usize = 6;

/// Knows the secrets of a run in the forms in which they may come back. It has no `Debug`.
#[derive(Clone, Default)]
pub struct Redaction {
    /// Form and name of the secret, longest form first.
    forms: Vec<(String, String)>,
}

impl Redaction {
    /// For these secrets, by name.
    pub fn of(secrets: &BTreeMap<String, String>) -> Self {
        let mut forms: Vec<(String, String)> = Vec::new();
        for (name, value) in secrets {
            for form in forms_of(value) {
                if form.len() >= SHORTEST_BYTES && !forms.iter().any(|(known, _)| *known == form) {
                    forms.push((form, name.clone()));
                }
            }
        }
        forms.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        Redaction { forms }
    }

    /// The text with every secret as `[secret NAME]`, also where the text was cut off in the middle of one.
    pub fn apply(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (form, name) in &self.forms {
            if out.contains(form.as_str()) {
                out = out.replace(form.as_str(), &format!("[secret {name}]"));
            }
        }
        let (kept, tail) = match out.strip_suffix("...") {
            Some(kept) => (kept, "..."),
            None => (out.as_str(), ""),
        };
        match self.forms.iter().find_map(|(form, name)| Some((begun(kept, form)?, name))) {
            Some((length, name)) => format!("{}[secret {name}]{tail}", &kept[..kept.len() - length]),
            None => out,
        }
    }
}

/// As it is, within shell quotes, within JSON, with white space folded, and line by line.
fn forms_of(value: &str) -> Vec<String> {
    let quoted = quote::sh(value);
    let json = serde_json::Value::from(value).to_string();
    let inner = |text: &str| text[1..text.len() - 1].to_owned();
    let mut forms = vec![value.to_owned(), value.trim().to_owned(), inner(&quoted), inner(&json)];
    forms.push(value.split_whitespace().collect::<Vec<_>>().join(" "));
    forms.push(super::text::clean(value));
    forms.extend(value.lines().map(|line| line.trim().to_owned()));
    forms
}

/// How many bytes at the end of the text are the beginning of this form.
fn begun(text: &str, form: &str) -> Option<usize> {
    let ends = form.char_indices().map(|(at, _)| at).rev();
    ends.take_while(|length| *length >= SHORTEST_BYTES).find(|length| text.ends_with(&form[..*length]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(value: &str) -> Redaction {
        Redaction::of(&[("token".to_owned(), value.to_owned())].into())
    }

    #[test]
    fn every_form_in_which_it_may_come_back_is_taken_out() {
        let secret = "it's \"7\\ü\nsecond line";
        let redaction = redaction(secret);
        for said in [
            format!("sh: {secret}: not found"),
            format!("+ login {}", quote::sh(secret)),
            serde_json::json!({ "argument": secret }).to_string(),
            format!("one line: {}", crate::base::text::one_line(secret, 99)),
            "line 4: second line".to_owned(),
            "cut in the middle: it's \"7\\ü\nsec".to_owned(),
            "cut in the middle: it's \"7\\...".to_owned(),
        ] {
            let left = redaction.apply(&said);
            assert!(left.contains("[secret token]"), "{left}");
            assert!(!left.contains("it's") && !left.contains("second"), "{left}");
        }
        assert_eq!(redaction.apply("nothing of it is here"), "nothing of it is here");
    }
}
