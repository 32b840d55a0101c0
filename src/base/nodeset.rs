//! Node-sets: `gpu[001-064]`, `r[1-4]n[01-16/2],login1`. Unfolded on the way in, folded on the way
//! out, in natural order. The notation is that of ClusterShell and Slurm; what those two read
//! differently (`[01-100]`: 01 to 100, or 001 to 100) is refused here, so that a set never means
//! other hosts than its author thought.

mod fold;
mod stem;

pub use fold::{fold_node_set, natural_order};
pub use stem::{fold_by_stem, fold_names_of_one_stem, is_plain, mask_digits, mask_numbers};

use std::collections::HashSet;
use std::ops::Range;

/// The most names that one node-set may stand for.
pub const NAMES_MAX: usize = 100_000;
/// The most characters of one name (RFC 1035: 253 for a full domain name).
const NAME_LENGTH_MAX: usize = 253;
/// The most digits of a number, so that every number fits in 64 bits.
const DIGITS_MAX: usize = 18;

/// Why a text is no node-set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NodeSetError {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// What is wrong with them, in lower case and without a full stop.
    pub message: String,
    /// What to write instead, where that is clear.
    pub fix: Option<String>,
}

impl NodeSetError {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        NodeSetError {
            span,
            message: message.into(),
            fix: None,
        }
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// A part of a name: plain text, or the numbers of one pair of brackets.
enum NodeSetPart<'a> {
    Text(&'a str),
    Numbers(Vec<Numbers>),
}

/// `first-last/step`, written with at least `width` digits.
struct Numbers {
    first: u64,
    last: u64,
    step: u64,
    width: usize,
}

impl Numbers {
    fn count(&self) -> u64 {
        (self.last - self.first) / self.step + 1
    }
}

/// All names of a node-set, in the order in which they are written; the leftmost bracket moves
/// slowest. A name that comes twice is an error, as are more than `NAMES_MAX` names.
pub fn expand_node_set(text: &str) -> Result<Vec<String>, NodeSetError> {
    expand_with(
        text,
        Alphabet {
            what: "a host name",
            besides: "",
        },
    )
}

/// Expands a set of names of ports: `Ethernet[0-60/4]`, `Eth1/[1-16]`, `ens[0-7]f0np0`.
pub fn expand_ports(text: &str) -> Result<Vec<String>, NodeSetError> {
    expand_with(
        text,
        Alphabet {
            what: "the name of a port",
            besides: "/:",
        },
    )
}

/// What names are made of besides letters, digits, `-`, `_` and `.`.
#[derive(Clone, Copy)]
struct Alphabet {
    what: &'static str,
    besides: &'static str,
}

fn expand_with(text: &str, alphabet: Alphabet) -> Result<Vec<String>, NodeSetError> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for item in split_items(text)? {
        let pieces = parse_item_parts(text, item.clone(), alphabet)?;
        check_size(&pieces, names.len(), &item)?;
        let mut fresh = Vec::new();
        unfold_names(&pieces, &mut String::new(), &mut fresh);
        for name in fresh {
            if !seen.insert(name.clone()) {
                return Err(NodeSetError::new(
                    item,
                    format!("`{name}` is in the node-set twice"),
                ));
            }
            names.push(name);
        }
    }
    Ok(names)
}

/// What was meant, where a single name looks like a range without its brackets: `gpu[01-16]` for
/// `gpu01-16`.
pub fn without_brackets(name: &str) -> Option<String> {
    let (left, last) = name.rsplit_once('-')?;
    let prefix = left.trim_end_matches(|c: char| c.is_ascii_digit());
    let first = &left[prefix.len()..];
    // `ip-10-0-0-7` and `rack-1-16` are names of their own; a range is counted up right behind a
    // word.
    let word = prefix.ends_with(|c: char| c.is_ascii_alphabetic());
    let set = format!("{prefix}[{first}-{last}]");
    (word && expand_node_set(&set).is_ok_and(|names| names.len() > 1)).then_some(set)
}

/// The stretches between the commas outside brackets, without white space around them.
fn split_items(text: &str) -> Result<Vec<Range<usize>>, NodeSetError> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut open = None;
    for (at, c) in text.char_indices() {
        match (c, open) {
            ('[', None) => open = Some(at),
            ('[', Some(_)) => {
                return Err(NodeSetError::new(at..at + 1, "brackets cannot be nested"));
            }
            (']', Some(_)) => open = None,
            (']', None) => return Err(NodeSetError::new(at..at + 1, "`]` without `[`")),
            (',', None) => {
                items.push(trim_item(text, start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    if let Some(at) = open {
        return Err(NodeSetError::new(at..text.len(), "`[` without `]`"));
    }
    items.push(trim_item(text, start..text.len())?);
    Ok(items)
}

fn trim_item(text: &str, item: Range<usize>) -> Result<Range<usize>, NodeSetError> {
    let raw = &text[item.clone()];
    let start = item.start + (raw.len() - raw.trim_start().len());
    let end = start + raw.trim().len();
    if start >= end {
        let what = if text.trim().is_empty() {
            "the node-set is empty"
        } else {
            "there is no name here"
        };
        return Err(NodeSetError::new(item, what));
    }
    Ok(start..end)
}

fn parse_item_parts(
    text: &str,
    item: Range<usize>,
    alphabet: Alphabet,
) -> Result<Vec<NodeSetPart<'_>>, NodeSetError> {
    let mut pieces = Vec::new();
    let mut at = item.start;
    while at < item.end {
        let rest = &text[at..item.end];
        if rest.starts_with('[') {
            let end = at + rest.find(']').unwrap_or(rest.len() - 1);
            pieces.push(NodeSetPart::Numbers(parse_number_list(text, at + 1..end)?));
            at = end + 1;
        } else {
            let end = at + rest.find('[').unwrap_or(rest.len());
            check_characters(text, at..end, at == item.start, alphabet)?;
            pieces.push(NodeSetPart::Text(&text[at..end]));
            at = end;
        }
    }
    Ok(pieces)
}

fn check_characters(
    text: &str,
    span: Range<usize>,
    first: bool,
    alphabet: Alphabet,
) -> Result<(), NodeSetError> {
    let Alphabet { what, besides } = alphabet;
    let may_stand = |c: &char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') || besides.contains(*c)
    };
    let wrong = text[span.clone()]
        .char_indices()
        .find(|(_, c)| !may_stand(c));
    if let Some((at, c)) = wrong {
        let start = span.start + at;
        return Err(NodeSetError::new(
            start..start + c.len_utf8(),
            format!("{c:?} cannot stand in {what}"),
        ));
    }
    if first && !text[span.clone()].starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(NodeSetError::new(
            span.start..span.start + 1,
            format!("{what} starts with a letter or a digit"),
        ));
    }
    Ok(())
}

fn parse_number_list(text: &str, inside: Range<usize>) -> Result<Vec<Numbers>, NodeSetError> {
    let mut out = Vec::new();
    let mut start = inside.start;
    for part in text[inside].split(',') {
        out.push(parse_number_range(part, start)?);
        start += part.len() + 1;
    }
    Ok(out)
}

/// One of `7`, `001-064`, `1-16/2`; `offset` is where it stands in the whole text.
fn parse_number_range(part: &str, offset: usize) -> Result<Numbers, NodeSetError> {
    let span = offset..offset + part.len();
    let (ends, step) = match part.split_once('/') {
        Some((ends, step)) => (
            ends,
            parse_number(step, offset + ends.len() + 1, "the step")?,
        ),
        None => (part, 1),
    };
    if step == 0 {
        return Err(NodeSetError::new(span, "a step of 0 never ends"));
    }
    let Some((first_text, last_text)) = ends.split_once('-') else {
        if ends.len() != part.len() {
            return Err(
                NodeSetError::new(span, "a step needs a range").fix(format!("write `{ends}`"))
            );
        }
        let first = parse_number(ends, offset, "the number")?;
        return Ok(Numbers {
            first,
            last: first,
            step,
            width: padded_width(ends),
        });
    };
    let first = parse_number(first_text, offset, "the start of the range")?;
    let last = parse_number(
        last_text,
        offset + first_text.len() + 1,
        "the end of the range",
    )?;
    if first > last {
        return Err(NodeSetError::new(span, "the range runs backwards")
            .fix(format!("write `{last_text}-{first_text}`")));
    }
    let width = padded_width(first_text);
    if (width > 0 || padded_width(last_text) > 0) && first_text.len() != last_text.len() {
        let wide = first_text.len().max(last_text.len());
        return Err(
            NodeSetError::new(span, "start and end are padded to different widths").fix(format!(
                "write `{first:0wide$}-{last:0wide$}`, or two ranges if the names have different \
                 widths"
            )),
        );
    }
    Ok(Numbers {
        first,
        last,
        step,
        width,
    })
}

fn parse_number(digits: &str, offset: usize, what: &str) -> Result<u64, NodeSetError> {
    let span = offset..offset + digits.len();
    if digits.is_empty() {
        return Err(NodeSetError::new(span, format!("{what} is missing")));
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NodeSetError::new(
            span,
            format!("{what} is no whole number"),
        ));
    }
    if digits.len() > DIGITS_MAX {
        return Err(NodeSetError::new(
            span,
            format!("{what} has more than {DIGITS_MAX} digits"),
        ));
    }
    digits
        .parse()
        .map_err(|_| NodeSetError::new(span, format!("{what} is no whole number")))
}

/// The digits that zero padding keeps: all of them where the text starts with a zero, else none in
/// particular.
fn padded_width(digits: &str) -> usize {
    if digits.len() > 1 && digits.starts_with('0') {
        digits.len()
    } else {
        0
    }
}

/// Refuses a set that is too large before a single name of it is written down.
fn check_size(
    pieces: &[NodeSetPart<'_>],
    already: usize,
    item: &Range<usize>,
) -> Result<(), NodeSetError> {
    let mut count: u64 = 1;
    let mut length = 0usize;
    for piece in pieces {
        match piece {
            NodeSetPart::Text(text) => length = length.saturating_add(text.len()),
            NodeSetPart::Numbers(ranges) => {
                count = count.saturating_mul(
                    ranges
                        .iter()
                        .fold(0, |sum: u64, r| sum.saturating_add(r.count())),
                );
                length = length.saturating_add(
                    ranges
                        .iter()
                        .map(|r| r.width.max(r.last.to_string().len()))
                        .max()
                        .unwrap_or(0),
                );
            }
        }
    }
    if length > NAME_LENGTH_MAX {
        return Err(NodeSetError::new(
            item.clone(),
            format!("a name is longer than {NAME_LENGTH_MAX} characters"),
        ));
    }
    if count.saturating_add(already as u64) > NAMES_MAX as u64 {
        return Err(NodeSetError::new(
            item.clone(),
            format!("the node-set stands for more than {NAMES_MAX} names"),
        ));
    }
    Ok(())
}

fn unfold_names(pieces: &[NodeSetPart<'_>], prefix: &mut String, out: &mut Vec<String>) {
    let Some((first, rest)) = pieces.split_first() else {
        out.push(prefix.clone());
        return;
    };
    let length = prefix.len();
    match first {
        NodeSetPart::Text(text) => {
            prefix.push_str(text);
            unfold_names(rest, prefix, out);
            prefix.truncate(length);
        }
        NodeSetPart::Numbers(ranges) => {
            for range in ranges {
                for index in 0..range.count() {
                    let (value, width) = (range.first + index * range.step, range.width);
                    prefix.push_str(&format!("{value:0width$}"));
                    unfold_names(rest, prefix, out);
                    prefix.truncate(length);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_in_the_order_written() {
        for (text, names) in [
            ("login1", "login1"),
            ("gpu[8-11]", "gpu8 gpu9 gpu10 gpu11"),
            ("gpu[008-010]", "gpu008 gpu009 gpu010"),
            ("n[1-7/3],a", "n1 n4 n7 a"),
            ("r[1-2]n[01,03]", "r1n01 r1n03 r2n01 r2n03"),
            (" n2 , n1 ", "n2 n1"),
            ("[1-2].rack.example", "1.rack.example 2.rack.example"),
            ("n[1,01,001]", "n1 n01 n001"),
        ] {
            assert_eq!(expand_node_set(text).unwrap().join(" "), names, "{text}");
        }
    }

    #[test]
    fn ports_have_characters_that_hosts_do_not() {
        for (text, names) in [
            ("Ethernet[0-8/4]", "Ethernet0 Ethernet4 Ethernet8"),
            ("Eth1/[1-2]", "Eth1/1 Eth1/2"),
            ("Ethernet[1-2]/1:1", "Ethernet1/1:1 Ethernet2/1:1"),
            ("swp1,swp3", "swp1 swp3"),
        ] {
            assert_eq!(expand_ports(text).unwrap().join(" "), names, "{text}");
        }
        assert_eq!(
            expand_node_set("Eth1/1").unwrap_err().message,
            "'/' cannot stand in a host name"
        );
        assert_eq!(
            expand_ports("a b").unwrap_err().message,
            "' ' cannot stand in the name of a port"
        );
    }

    #[test]
    fn a_range_without_brackets_is_seen() {
        for (name, meant) in [
            ("gpu01-16", Some("gpu[01-16]")),
            ("r1n1-4", Some("r1n[1-4]")),
            ("gpu-01-16", None),
            ("ip-10-0-0-7", None),
            ("gpu16-01", None),
            ("gpu1-016", None),
            ("gpu01", None),
            ("gpu01-a", None),
            ("1-4", None),
        ] {
            assert_eq!(without_brackets(name).as_deref(), meant, "{name}");
        }
    }

    #[test]
    fn every_mistake_is_pointed_at() {
        for (text, wrong, message) in [
            ("", "", "the node-set is empty"),
            ("n1,,n2", "", "there is no name here"),
            ("n[5-1]", "5-1", "the range runs backwards"),
            ("n[1-]", "", "the end of the range is missing"),
            ("n[-2]", "", "the start of the range is missing"),
            ("n[]", "", "the number is missing"),
            ("n[1-x]", "x", "the end of the range is no whole number"),
            (
                "n[01-100]",
                "01-100",
                "start and end are padded to different widths",
            ),
            (
                "n[1-010]",
                "1-010",
                "start and end are padded to different widths",
            ),
            ("n[1-4/0]", "1-4/0", "a step of 0 never ends"),
            ("n[4/2]", "4/2", "a step needs a range"),
            ("n[1-4", "[1-4", "`[` without `]`"),
            ("n1]", "]", "`]` without `[`"),
            ("n[[1]]", "[", "brackets cannot be nested"),
            ("n 1", " ", "' ' cannot stand in a host name"),
            ("n\u{e9}1", "\u{e9}", "'\u{e9}' cannot stand in a host name"),
            ("-n", "-", "a host name starts with a letter or a digit"),
            ("n[1-3],n2", "n2", "`n2` is in the node-set twice"),
            (
                "n[1-1000]m[1-1000]",
                "n[1-1000]m[1-1000]",
                "the node-set stands for more than 100000 names",
            ),
            (
                "n[0-9999999999999999999]",
                "9999999999999999999",
                "the end of the range has more than 18 digits",
            ),
        ] {
            let error = expand_node_set(text).unwrap_err();
            assert_eq!(
                (&text[error.span.clone()], error.message.as_str()),
                (wrong, message),
                "{text}"
            );
        }
        assert_eq!(expand_node_set("n[5-1]").unwrap_err().span, 2..5);
        assert_eq!(
            expand_node_set("n[01-100]").unwrap_err().fix.unwrap(),
            "write `001-100`, or two ranges if the names have different widths"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-c0-3\\[\\],/ -]{0,24}|.{0,24}") {
            if let Err(error) = expand_node_set(&text) {
                proptest::prop_assert!(text.get(error.span).is_some());
            }
        }
    }
}
