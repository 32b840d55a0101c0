//! Secrets taken out of what is shown or written down. A host may echo what it was sent, in an
//! error, in a log, in the answer to another question. Nothing is compared in this form: what a
//! target reported is compared first and redacted after.

#[cfg(test)]
mod cut_tests;
mod forms;
mod views;

use super::text::start_of;
use forms::{Forms, SecretForm, forms_of};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use views::TextView;

/// A secret shorter than this many bytes is refused: it looks like ordinary text, so nothing could
/// keep it out of a log.
pub const SHORTEST_BYTES: usize = 6;

/// So many places of a message are looked at as places where it was cut off, the last ones.
const MOST_CUTS: usize = 20;

/// A text that is cut to its beginning is redacted together with this many bytes after the cut, so
/// that a secret across the cut is found whole.
pub const ROOM_BYTES: usize = 64 << 10;

/// Knows the secrets of a run in the forms in which they may come back. It has no `Debug`.
#[derive(Clone, Default)]
pub struct Redaction {
    plain: Forms,
    encoded: Forms,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}

impl Redaction {
    /// For these secrets, by name.
    pub fn of<N: AsRef<str>, V: AsRef<str>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        Redaction::of_forms(
            secrets
                .into_iter()
                .flat_map(|(name, value)| forms_of(name.as_ref(), value.as_ref()))
                .collect(),
        )
    }

    fn of_forms(mut forms: Vec<SecretForm>) -> Self {
        let mut known = BTreeSet::new();
        forms.retain(|form| {
            form.text.len() >= SHORTEST_BYTES && known.insert((form.is_encoded, form.text.clone()))
        });
        let (encoded, plain) = forms.into_iter().partition(|form| form.is_encoded);
        Redaction {
            plain: Forms::new(plain),
            encoded: Forms::new(encoded),
        }
    }

    /// Without the forms that stand in these texts in the clear: everybody can read those words
    /// there, and taking them out elsewhere would only blank what is right.
    pub fn except<'a>(&self, clear: impl IntoIterator<Item = &'a str>) -> Cow<'_, Redaction> {
        let found = clear.into_iter().flat_map(|text| self.find_in(text, &[]));
        let standing: BTreeSet<&str> = found.map(|(_, form)| form.text.as_str()).collect();
        if standing.is_empty() {
            return Cow::Borrowed(self);
        }
        let is_clear = |form: &&SecretForm| standing.iter().any(|text| text.contains(&form.text));
        let forms = self.plain.forms.iter().chain(&self.encoded.forms);
        Cow::Owned(Redaction::of_forms(
            forms.filter(|form| !is_clear(form)).cloned().collect(),
        ))
    }

    /// True when the text holds a secret or a line of one.
    pub fn finds_in(&self, text: &str) -> bool {
        !self.find_in(text, &[]).is_empty()
    }

    /// The name of the first secret that the text holds, or holds a line of.
    pub fn name_in(&self, text: &str) -> Option<&str> {
        self.find_in(text, &[])
            .first()
            .map(|(_, form)| form.name.as_str())
    }

    /// Where the text holds which form, whatever was done to it on its way, and where the beginning
    /// of one stands right before one of these cuts. Each view is made once for all cuts.
    fn find_in(&self, text: &str, cuts: &[usize]) -> Vec<(Range<usize>, &SecretForm)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<(Range<usize>, &SecretForm)> =
            self.plain.find_in(text.as_bytes()).collect();
        for cut in cuts {
            let begun = self.plain.begun_in(&text.as_bytes()[..*cut]);
            found.extend(begun.map(|(length, form)| (cut - length..*cut, form)));
        }
        for (view, forms) in self.views(text) {
            found.extend(
                forms
                    .find_in(view.bytes())
                    .map(|(range, form)| (view.place(range), form)),
            );
            for cut in cuts {
                let before = view.before(*cut);
                let place =
                    |length: usize| view.place(before.len() - length..before.len()).start..*cut;
                found.extend(
                    forms
                        .begun_in(before)
                        .map(|(length, form)| (place(length), form)),
                );
            }
        }
        found
    }

    /// There is nothing that it would take out.
    pub fn is_empty(&self) -> bool {
        self.plain.forms.is_empty() && self.encoded.forms.is_empty()
    }

    /// How else the text reads, and which forms it may hold then. A view takes nine times the
    /// memory of the text, so only one exists at a time.
    fn views(&self, text: &str) -> impl Iterator<Item = (TextView, &Forms)> {
        let unescaped = TextView::unescaped(text).map(move |view| (view, &self.plain));
        std::iter::once((TextView::joined(text), &self.encoded)).chain(unescaped)
    }

    /// A text that is whole, such as a file's, with every secret as `[secret NAME]`.
    pub fn replace(&self, text: &str) -> String {
        self.without(text, text.len(), &[])
    }

    /// A text that somebody may have shortened: a secret may be cut off before each `...` in it.
    pub fn replace_shortened(&self, text: &str) -> String {
        self.without(text, text.len(), &find_possible_cuts(text))
    }

    /// A message, which may have been cut off at its end too, in the middle of a secret.
    pub fn apply(&self, text: &str) -> String {
        self.apply_to_first(text, text.len())
    }

    /// The first `length` bytes of a message. Of the rest only [`ROOM_BYTES`] are looked at.
    pub fn apply_to_first(&self, text: &str, length: usize) -> String {
        let text = start_of(text, length.saturating_add(ROOM_BYTES));
        let mut cuts = find_possible_cuts(text);
        cuts.push(text.len());
        self.without(text, length, &cuts)
    }

    fn without(&self, text: &str, length: usize, cuts: &[usize]) -> String {
        let found = self
            .find_in(text, cuts)
            .into_iter()
            .map(|(range, form)| (range, form.name.as_str()))
            .collect();
        blank_out_ranges(text, length, found)
    }

    /// Whether something was taken out of this text.
    pub fn has_taken_out_of(text: &str) -> bool {
        text.split_once("[secret ")
            .is_some_and(|(_, after)| after.contains(']'))
    }
}

/// The last places where a text may have been cut off.
fn find_possible_cuts(text: &str) -> Vec<usize> {
    text.rmatch_indices("...")
        .map(|(cut, _)| cut)
        .take(MOST_CUTS)
        .collect()
}

/// The first `length` bytes of the text, with a secret's name in the place of each range that
/// begins in them; ranges that meet are one.
fn blank_out_ranges(text: &str, length: usize, mut found: Vec<(Range<usize>, &str)>) -> String {
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let end = start_of(text, length).len();
    let mut out = String::with_capacity(end);
    let mut through = 0;
    for (range, name) in found.into_iter().take_while(|(range, _)| range.start < end) {
        if range.start >= through {
            out.push_str(&text[through..range.start]);
            out.push_str(&format!("[secret {name}]"));
        }
        through = through.max(range.end);
    }
    out.push_str(&text[through.min(end)..end]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    fn redaction(value: &str) -> Redaction {
        Redaction::of([("token", value)])
    }

    fn escaped(text: &str, one: impl Fn(u8) -> String) -> String {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    one(byte)
                }
            })
            .collect()
    }

    /// In hexadecimal, so many bytes a line.
    fn grouped(text: &str, in_line: usize, between: &str, end: &str) -> String {
        let line = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(between)
        };
        text.as_bytes()
            .chunks(in_line)
            .map(line)
            .collect::<Vec<_>>()
            .join(end)
    }

    /// A private key as it is printed by `base64`, which breaks lines at 76 digits, within a
    /// message, cut off, and in part.
    #[test]
    fn a_key_in_lines_of_base64_is_taken_out() {
        let line = |n: u32| {
            let numbers = std::iter::successors(Some(n), |x| Some((x * 75 + 74) % 65_537));
            numbers
                .take(70)
                .map(|x| char::from(b'A' + (x % 26) as u8))
                .collect::<String>()
        };
        let lines: Vec<String> = (1..6).map(line).collect();
        let key = format!(
            "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
            lines.join("\n")
        );
        let redaction = redaction(&key);
        let wrapped = |text: &str| {
            let digits = STANDARD.encode(text);
            digits
                .as_bytes()
                .chunks(76)
                .map(|line| String::from_utf8_lossy(line).into_owned() + "\n")
                .collect::<String>()
        };
        for text in [
            key.clone(),
            format!("host: {key} and more"),
            key.trim().to_owned(),
        ] {
            for said in [
                format!("ü {}", wrapped(&text)),
                serde_json::json!({ "out": wrapped(&text) }).to_string(),
            ] {
                let left = redaction.apply(&said);
                assert!(left.contains("[secret token]") && left.len() < 80, "{left}");
                assert!(redaction.name_in(&said).is_some());
            }
        }
        let all = wrapped(&key);
        let cut = redaction.apply(&format!("said {}...", &all[..200]));
        assert_eq!(cut, "said [secret token]...");
        let tail = redaction.apply(&wrapped(&lines[1..4].join("\n")));
        assert!(
            tail.contains("[secret token]") && tail.len() < 100,
            "{tail}"
        );
        assert_eq!(
            redaction.apply("nothing: of\nit & 100% \\ here"),
            "nothing: of\nit & 100% \\ here"
        );
    }

    /// `curl -v -u root:PASSWORD` prints this, whatever comes before the password.
    #[test]
    fn a_short_password_is_found_in_the_base64_of_a_longer_text() {
        for before in ["a:", "ab:", "abc:", "root:"] {
            for password in ["hunter2", "hunter22", "hunter222"] {
                let said = format!(
                    "> Authorization: Basic {}",
                    STANDARD.encode(format!("{before}{password}"))
                );
                assert!(
                    redaction(password).apply(&said).contains("[secret token]"),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn every_form_in_which_it_may_come_back_is_taken_out() {
        let secret = "it's \"7\\ü\nsecond line";
        let redaction = redaction(secret);
        for said in [
            format!("sh: {secret}: not found"),
            format!("+ login {}", quote::quote_for_shell(secret)),
            serde_json::json!({ "argument": secret }).to_string(),
            format!("one line: {}", crate::text::one_line(secret, 99)),
            "cut in the middle: it's \"7\\ü\nsec".to_owned(),
            format!(
                "Authorization: {}",
                STANDARD.encode(format!("user:{secret}"))
            ),
            format!(
                "Authorization: {}",
                STANDARD.encode(format!("me:{secret}!"))
            ),
            format!(
                "https://host/?t={}&x",
                escaped(secret, |byte| format!("%{byte:02X}"))
            ),
            format!(
                "https://host/?t={}&x",
                escaped(secret, |byte| format!("%{byte:02x}"))
            ),
            format!(
                "t={}&x",
                escaped(secret, |byte| if byte == b' ' {
                    "+".to_owned()
                } else {
                    format!("%{byte:02X}")
                })
            ),
            format!("0x{}", crate::text::format_hex(secret.as_bytes())),
            // `set -x` of dash, and how coreutils names a file.
            format!("+ login '{}'", secret.replace('\'', r#"'"'"'"#)),
            r#"cannot access 'it'\''s "7\'$'\303\274\n''second line': gone"#.to_owned(),
            // `od -An -tx1`, `xxd -p`, and as fingerprints are written.
            format!("{}\n", grouped(secret, 16, " ", "\n")),
            format!("{}\n", grouped(secret, 10, "", "\n")).to_uppercase(),
            grouped(secret, 99, ":", ""),
            // `printf %q` of bash in the C locale, Python's `repr` of bytes, Python's and Go's
            // `html.escape`, JSON in ASCII.
            r#"$'it\'s "7\\\303\274\nsecond line'"#.to_owned(),
            r#"b'it\'s "7\\\xc3\xbc\nsecond line'"#.to_owned(),
            "<p>it&#x27;s &quot;7\\ü\nsecond line</p>".to_owned(),
            "<p>it&#39;s &#34;7\\ü\nsecond line</p>".to_owned(),
            r#"{"a":"it's \u00227\\\u00fc\nsecond line"}"#.to_owned(),
            r#"a cut escape: it's \"7\\\u00fc\nsec"#.to_owned(),
        ] {
            let left = redaction.apply(&said);
            assert!(
                left.contains("[secret token]")
                    && redaction.name_in(&said).is_some() | said.contains("cut"),
                "{left}"
            );
            assert!(
                !left.contains("it") && !left.contains("sec\n") && !left.contains("second"),
                "{left}"
            );
        }
        assert_eq!(
            redaction.apply("nothing of it is here"),
            "nothing of it is here"
        );
        let redaction = super::tests::redaction("correct horse's staple");
        for said in [
            "t=correct+horse's+staple",
            r#"'correct horse'"'"'s staple'"#,
            "$'correct horse\\'s staple'",
        ] {
            assert!(
                redaction.name_in(said).is_some() && !redaction.apply(said).contains("horse"),
                "{said}"
            );
        }
        let redaction = super::tests::redaction("hunter2-hunter2");
        assert_eq!(
            redaction.apply("login with hunter2-hun..."),
            "login with [secret token]..."
        );
        assert_eq!(
            redaction.replace_shortened("with hunter2-hun... or hunter2"),
            "with [secret token]... or hunter2"
        );
        assert_eq!(
            redaction.replace("with hunter2-hun..."),
            "with hunter2-hun...",
            "a file may say so"
        );
        // Written on Windows, or with what no terminal shows, and printed in one line.
        for secret in [
            "user=admin1\r\npass=Tr0ub4dor\r\nx=1",
            "Tr0ub4dor\u{200b}  two  blanks",
        ] {
            let said = crate::text::one_line(&format!("it said: {secret}"), 200);
            assert_eq!(
                super::tests::redaction(secret).apply(&said),
                "it said: [secret token]"
            );
        }
    }

    /// A secret of several lines is made of words that stand in other files too.
    #[test]
    fn of_several_lines_only_those_are_secret_that_stand_nowhere_else() {
        let key = "MC4CAQAwBQYDK2VwBCIEIJ8xqz1pV5h0Qd7m3b2w9kRtYfGhLsXcVbNmAoEiUuPz";
        let secret = format!(
            "[agent]\nlevel = info\n-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"
        );
        let redaction = redaction(&secret);
        let other = "[logging]\nlevel = info\n[agent]\n-----BEGIN PRIVATE KEY-----\n[agent]\n";
        assert_eq!(redaction.apply(other), other);
        assert!(!redaction.finds_in(other));
        assert_eq!(
            redaction.apply(&format!("line 4: {key}: bad")),
            "line 4: [secret token]: bad"
        );
        assert!(
            redaction.name_in(key).is_some(),
            "a long line is a secret by itself"
        );
        assert!(redaction.name_in(&format!("x\n{secret}y")).is_some());
    }

    #[test]
    fn what_stands_in_the_clear_is_no_secret() {
        let redaction = redaction("enabled");
        assert_eq!(redaction.apply("unit enabled"), "unit [secret token]");
        assert_eq!(
            redaction.except(["state: enabled"]).apply("unit enabled"),
            "unit enabled"
        );
        assert_eq!(
            redaction.except(["state: disabled"]).apply("unit enabled"),
            "unit [secret token]"
        );
    }

    #[test]
    fn a_secret_of_several_words_is_found_with_other_blanks() {
        let words = redaction("correct horse: battery staple");
        for said in [
            "token: correct horse: battery\n  staple",
            "correct\thorse:\tbattery\tstaple",
            "correct  horse:  battery  staple",
            "correct\u{a0}horse:\u{2003}battery staple",
            r"correct horse: battery\n staple",
        ] {
            let shown = words.apply(said);
            assert!(shown.contains("[secret token]"), "{shown}");
            assert!(!shown.contains("staple"), "{shown}");
        }
    }
}
