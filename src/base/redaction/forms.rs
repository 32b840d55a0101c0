//! The forms in which a secret may come back: as it is and line by line, as shells quote it, in
//! base64 and hexadecimal; and how they are found in a text, whole or as its cut-off end.

use super::SHORTEST_BYTES;
use crate::quote;
use crate::text::{format_hex, one_line, sanitize_text};
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use std::collections::BTreeSet;
use std::ops::Range;

/// One line of a secret of several lines is a secret by itself from this many bytes on: a line of a
/// PEM key has 64. Shorter ones (`[agent]`, `level = info`) are words that stand in other files
/// too.
const SHORTEST_LINE_BYTES: usize = 20;

/// A line with fewer different bytes is a rule or a filler.
const FEWEST_DIFFERENT_BYTES: usize = 10;

/// So many lines of a secret are known in base64 and hexadecimal by themselves; a private key has
/// fewer.
const MOST_LINES_ENCODED: usize = 200;

/// One form in which a secret may come back.
#[derive(Clone)]
pub(super) struct SecretForm {
    pub(super) text: String,
    /// The name of the secret.
    pub(super) name: String,
    /// The whole secret, not one line of it.
    pub(super) is_whole: bool,
    /// In base64 or hexadecimal, which may be written in lines and groups; or without its blanks.
    pub(super) is_encoded: bool,
    /// A text that ends with this many bytes of the form's beginning was cut off within the secret.
    shortest_start: usize,
}

/// Forms that are searched together.
#[derive(Clone, Default)]
pub(super) struct Forms {
    pub(super) forms: Vec<SecretForm>,
    /// Finds them, by their places in the list; nothing when there are none.
    finder: Option<AhoCorasick>,
}

impl Forms {
    pub(super) fn new(forms: Vec<SecretForm>) -> Self {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|form| &form.text));
        Forms {
            finder: finder.ok().filter(|_| !forms.is_empty()),
            forms,
        }
    }

    pub(super) fn find_in(
        &self,
        bytes: &[u8],
    ) -> impl Iterator<Item = (Range<usize>, &SecretForm)> {
        let found = self
            .finder
            .iter()
            .flat_map(move |finder| finder.find_iter(bytes));
        found.map(move |found| (found.range(), &self.forms[found.pattern().as_usize()]))
    }

    /// The form with whose beginning the bytes end, and how many bytes of it that are.
    pub(super) fn begun_in(&self, bytes: &[u8]) -> Option<(usize, &SecretForm)> {
        let possible = self
            .forms
            .iter()
            .filter(|form| form.is_whole || !form.is_encoded);
        let begun =
            possible.map(|form| (compute_prefix_overlap(bytes, form.text.as_bytes()), form));
        begun
            .filter(|(length, form)| *length >= form.shortest_start)
            .max_by_key(|(length, _)| *length)
    }
}

/// The secret and its lines as they are, and what is known of them in other forms.
pub(super) fn forms_of(name: &str, value: &str) -> Vec<SecretForm> {
    let lines: Vec<&str> = value
        .lines()
        .map(str::trim)
        .filter(|line| is_secret_alone(line))
        .collect();
    let form = |text: String, is_whole, is_encoded, shortest_start| SecretForm {
        name: name.to_owned(),
        shortest_start,
        text,
        is_whole,
        is_encoded,
    };
    let of_whole = plain_forms(value)
        .into_iter()
        .map(|text| form(text.clone(), true, false, shortest_start(&text)));
    let of_whole_encoded = [value, value.trim()]
        .into_iter()
        .flat_map(encoded_forms)
        .chain(joined_form(value))
        .map(|text| form(text, true, true, SHORTEST_BYTES));
    let of_lines = lines
        .iter()
        .map(|line| form((*line).to_owned(), false, false, SHORTEST_LINE_BYTES));
    let of_lines_encoded = lines
        .iter()
        .take(MOST_LINES_ENCODED)
        .flat_map(|line| encoded_forms(line).into_iter().chain(joined_form(line)));
    let of_lines_encoded =
        of_lines_encoded.map(|text| form(text, false, true, SHORTEST_LINE_BYTES));
    of_whole
        .chain(of_whole_encoded)
        .chain(of_lines)
        .chain(of_lines_encoded)
        .collect()
}

/// As it is, within shell quotes, with white space folded, without what a terminal would act upon,
/// and both as `one_line` does it.
fn plain_forms(value: &str) -> Vec<String> {
    let quoted = quote::quote_for_shell(value);
    let folded = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let in_one_line = one_line(value, usize::MAX);
    vec![
        value.to_owned(),
        value.trim().to_owned(),
        sanitize_text(value),
        quoted[1..quoted.len() - 1].to_owned(),
        folded,
        in_one_line,
    ]
}

/// One of a single line without its blanks, where it has some: a program may fold it over lines, or
/// write other blanks. It is looked for where base64 is, in what is joined.
fn joined_form(value: &str) -> Option<String> {
    let line = value.trim();
    (line.contains(char::is_whitespace) && !line.contains('\n'))
        .then(|| line.replace(|c: char| c.is_whitespace() || c == ':', ""))
}

/// In base64 and in hexadecimal.
fn encoded_forms(value: &str) -> Vec<String> {
    let hex = format_hex(value.as_bytes());
    let mut forms = in_base64(value.as_bytes());
    forms.extend([hex.to_uppercase(), hex]);
    forms
}

/// A marker such as `-----BEGIN PRIVATE KEY-----` stands in every such file.
fn is_secret_alone(line: &str) -> bool {
    let different: BTreeSet<u8> = line.bytes().collect();
    line.len() >= SHORTEST_LINE_BYTES
        && different.len() >= FEWEST_DIFFERENT_BYTES
        && !line.starts_with("-----")
}

/// The first line of several is part of the secret only as far as it is one by itself: every file
/// may end with `[agent]`.
fn shortest_start(form: &str) -> usize {
    match form.trim_start().split_once('\n') {
        Some((first, _)) if !is_secret_alone(first) => {
            form.len() - form.trim_start().len() + first.len() + 2
        }
        _ => SHORTEST_BYTES,
    }
}

/// In base64 by itself, and as it stands in the base64 of a longer text, at each of the three
/// places in a group of bytes; the digits that its neighbours share are left out.
fn in_base64(bytes: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    for engine in [STANDARD, URL_SAFE] {
        let padded = engine.encode(bytes);
        out.extend([padded.trim_end_matches('=').to_owned(), padded]);
        for (before, shared) in [(0, 0), (1, 2), (2, 3)] {
            let digits = engine.encode([&vec![0; before], bytes].concat());
            let whole = (before + bytes.len()) / 3 * 4;
            out.extend(digits.get(shared..whole).map(str::to_owned));
        }
    }
    out
}

/// How many bytes at the end of the text are the beginning of this form, and not all of it: the
/// prefix function of Knuth, Morris and Pratt, so that the work does not grow with what repeats in
/// a secret.
pub(super) fn compute_prefix_overlap(text: &[u8], form: &[u8]) -> usize {
    let most = text.len().min(form.len().saturating_sub(1));
    let mut borders = vec![0; most];
    for at in 1..most {
        let mut length: usize = borders[at - 1];
        while length > 0 && form[length] != form[at] {
            length = borders[length - 1];
        }
        borders[at] = length + usize::from(form[length] == form[at]);
    }
    let mut length = 0;
    for byte in &text[text.len() - most..] {
        while length > 0 && form[length] != *byte {
            length = borders[length - 1];
        }
        length += usize::from(form[length] == *byte);
    }
    length
}
