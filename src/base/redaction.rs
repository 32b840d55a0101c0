//! Secrets taken out of what is shown or written down. A host may echo what it was sent, in an error, in a log, in the
//! answer to another question. Nothing is compared in this form: what a target said is compared first and redacted after.

use super::quote;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use std::collections::{BTreeMap, BTreeSet};

/// A secret shorter than this many bytes is refused: it could not be told from ordinary text, so nothing could keep it out
/// of a log.
pub const SHORTEST_BYTES: usize = 6;

/// One line of a secret of several lines is a secret by itself from this many bytes on: a line of a PEM key has 64. Shorter
/// ones (`[agent]`, `level = info`) are words that stand in other files too.
const SHORTEST_LINE_BYTES: usize = 20;

/// A line with fewer different bytes is a rule or a filler.
const FEWEST_DIFFERENT_BYTES: usize = 10;

/// One form in which a secret may come back.
#[derive(Clone)]
struct Form {
    text: String,
    /// The name of the secret.
    name: String,
    /// The whole secret, not one line of it.
    is_whole: bool,
    /// A text that ends with this many bytes of the form's beginning was cut off within the secret.
    shortest_start: usize,
}

/// Knows the secrets of a run in the forms in which they may come back. It has no `Debug`.
#[derive(Clone, Default)]
pub struct Redaction {
    forms: Vec<Form>,
    /// Finds the forms, by their places in the list; nothing when there are none.
    finder: Option<AhoCorasick>,
}

impl Redaction {
    /// For these secrets, by name.
    pub fn of(secrets: &BTreeMap<String, String>) -> Self {
        Redaction::of_forms(secrets.iter().flat_map(|(name, value)| forms_of(name, value)).collect())
    }

    fn of_forms(mut forms: Vec<Form>) -> Self {
        let mut known = BTreeSet::new();
        forms.retain(|form| form.text.len() >= SHORTEST_BYTES && known.insert(form.text.clone()));
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms.iter().map(|form| &form.text));
        Redaction { finder: finder.ok().filter(|_| !forms.is_empty()), forms }
    }

    /// Without the forms that stand in these texts in the clear: everybody can read those words there, and taking them out elsewhere
    /// would only blank what is right.
    pub fn except<'a>(&self, clear: impl IntoIterator<Item = &'a str>) -> Redaction {
        let Some(finder) = &self.finder else { return self.clone() };
        let standing: BTreeSet<usize> =
            clear.into_iter().flat_map(|text| finder.find_iter(text)).map(|found| found.pattern().as_usize()).collect();
        if standing.is_empty() {
            return self.clone();
        }
        let is_clear = |form: &Form| standing.iter().any(|at| self.forms[*at].text.contains(&form.text));
        Redaction::of_forms(self.forms.iter().filter(|form| !is_clear(form)).cloned().collect())
    }

    /// True when the text holds a secret or a line of one.
    pub fn finds_in(&self, text: &str) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(text))
    }

    /// The name of the first secret that the text holds as a whole.
    pub fn whole_in(&self, text: &str) -> Option<&str> {
        let found = self.finder.as_ref()?.find_iter(text).map(|found| &self.forms[found.pattern().as_usize()]);
        found.filter(|form| form.is_whole).map(|form| form.name.as_str()).next()
    }

    /// A whole text with every secret as `[secret NAME]`.
    pub fn replace(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return text.to_owned() };
        let mut out = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut out, |found, _, out| {
            out.push_str(&format!("[secret {}]", self.forms[found.pattern().as_usize()].name));
            true
        });
        out
    }

    /// The same of a message, which may have been cut off in the middle of a secret.
    pub fn apply(&self, text: &str) -> String {
        let out = self.replace(text);
        let (kept, tail) = match out.strip_suffix("...") {
            Some(kept) => (kept, "..."),
            None => (out.as_str(), ""),
        };
        match self.forms.iter().find_map(|form| Some((begun(kept, form)?, &form.name))) {
            Some((length, name)) => format!("{}[secret {name}]{tail}", &kept[..kept.len() - length]),
            None => out,
        }
    }
}

/// The whole secret as it is, within shell quotes, within JSON, with white space folded, in base64, in a URL, in hexadecimal; and each
/// line of it that is a secret by itself.
fn forms_of(name: &str, value: &str) -> Vec<Form> {
    let inner = |text: &str| text[1..text.len() - 1].to_owned();
    let mut whole = vec![value.to_owned(), value.trim().to_owned(), super::text::clean(value)];
    whole.extend([inner(&quote::sh(value)), inner(&serde_json::Value::from(value).to_string())]);
    whole.push(value.split_whitespace().collect::<Vec<_>>().join(" "));
    for bytes in [value.as_bytes(), value.trim().as_bytes()] {
        whole.extend(in_base64(bytes));
        whole.extend([super::text::hex(bytes), super::text::hex(bytes).to_uppercase()]);
        whole.extend([in_url(bytes, false), in_url(bytes, true)]);
    }
    let of_whole = |text: String| Form { name: name.to_owned(), is_whole: true, shortest_start: shortest_start(&text), text };
    let lines = value.lines().map(str::trim).filter(|line| is_secret_alone(line));
    let of_line = |line: &str| Form { name: name.to_owned(), is_whole: false, shortest_start: SHORTEST_LINE_BYTES, text: line.to_owned() };
    whole.into_iter().map(of_whole).chain(lines.map(of_line)).collect()
}

/// A marker such as `-----BEGIN PRIVATE KEY-----` stands in every such file.
fn is_secret_alone(line: &str) -> bool {
    let different: BTreeSet<u8> = line.bytes().collect();
    line.len() >= SHORTEST_LINE_BYTES && different.len() >= FEWEST_DIFFERENT_BYTES && !line.starts_with("-----")
}

/// The first line of several is part of the secret only as far as it is one by itself: every file may end with `[agent]`.
fn shortest_start(form: &str) -> usize {
    match form.trim_start().split_once('\n') {
        Some((first, _)) if !is_secret_alone(first) => form.len() - form.trim_start().len() + first.len() + 2,
        _ => SHORTEST_BYTES,
    }
}

/// In base64 by itself, and as it stands in the base64 of a longer text, at each of the three places in a group of bytes; the digits that
/// its neighbours share are left out.
fn in_base64(bytes: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    for engine in [STANDARD, URL_SAFE] {
        out.push(engine.encode(bytes));
        for (before, shared) in [(0, 0), (1, 2), (2, 3)] {
            let digits = engine.encode([&vec![0; before], bytes].concat());
            let whole = (before + bytes.len()) / 3 * 4;
            out.extend(digits.get(shared..whole).filter(|form| form.len() >= 2 * SHORTEST_BYTES).map(str::to_owned));
        }
    }
    out
}

/// Percent-encoded (RFC 3986, section 2.1); the digits are written in both cases.
fn in_url(bytes: &[u8], in_lower_case: bool) -> String {
    let one = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        byte if in_lower_case => format!("%{byte:02x}"),
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

/// How many bytes at the end of the text are the beginning of this form.
fn begun(text: &str, form: &Form) -> Option<usize> {
    let ends = form.text.char_indices().map(|(at, _)| at).rev();
    ends.take_while(|length| *length >= form.shortest_start).find(|length| text.ends_with(&form.text[..*length]))
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
            "cut in the middle: it's \"7\\ü\nsec".to_owned(),
            format!("Authorization: {}", STANDARD.encode(format!("user:{secret}"))),
            format!("Authorization: {}", STANDARD.encode(format!("me:{secret}!"))),
            format!("https://host/?t={}&x", in_url(secret.as_bytes(), false)),
            format!("0x{}", crate::base::text::hex(secret.as_bytes())),
        ] {
            let left = redaction.apply(&said);
            assert!(left.contains("[secret token]") && redaction.whole_in(&said).is_some() | said.contains("cut"), "{left}");
            assert!(!left.contains("it's") && !left.contains("second"), "{left}");
        }
        assert_eq!(redaction.apply("nothing of it is here"), "nothing of it is here");
        let redaction = super::tests::redaction("hunter2-hunter2");
        assert_eq!(redaction.apply("login with hunter2-hun..."), "login with [secret token]...");
    }

    /// A secret of several lines is made of words that stand in other files too.
    #[test]
    fn of_several_lines_only_those_are_secret_that_stand_nowhere_else() {
        let key = "MC4CAQAwBQYDK2VwBCIEIJ8xqz1pV5h0Qd7m3b2w9kRtYfGhLsXcVbNmAoEiUuPz";
        let secret = format!("[agent]\nlevel = info\n-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        let redaction = redaction(&secret);
        let other = "[logging]\nlevel = info\n[agent]\n-----BEGIN PRIVATE KEY-----\n[agent]\n";
        assert_eq!(redaction.apply(other), other);
        assert!(!redaction.finds_in(other));
        assert_eq!(redaction.apply(&format!("line 4: {key}: bad")), "line 4: [secret token]: bad");
        assert_eq!(redaction.whole_in(key), None, "a line is not the secret");
        assert!(redaction.whole_in(&format!("x\n{secret}y")).is_some());
    }

    #[test]
    fn what_stands_in_the_clear_is_no_secret() {
        let redaction = redaction("enabled");
        assert_eq!(redaction.apply("unit enabled"), "unit [secret token]");
        assert_eq!(redaction.except(["state: enabled"]).apply("unit enabled"), "unit enabled");
        assert_eq!(redaction.except(["state: disabled"]).apply("unit enabled"), "unit [secret token]");
    }
}
