//! A template as Tera is given it: the author's text, with filters in it that charge (`work`) for
//! what loops, filters and operators do.

use super::names::{find_closing_bracket, is_keyword};
use super::token::{Placed, TemplatePiece, Token, split_into_pieces};
use super::work::{BYTES_A_UNIT, ELEMENTS_FILTER, TEXT_FILTER, TURNS_FILTER, WHOLE_FILTER};
use std::collections::BTreeMap;
use std::ops::Range;

/// Filters that go through all that is in a value.
const TAKES_WHOLE: [&str; 8] = [
    super::filters::VALUE_FILTER,
    "join",
    "json",
    "sh",
    "sort",
    "str",
    "systemd",
    "unique",
];
/// Filters that make a list or map of what is in one.
const TAKES_ELEMENTS: [&str; 5] = ["group_by", "keys", "pairs", "reverse", "values"];
/// Tests that look at more of a value than its type.
const TESTS_OF_CONTENT: [&str; 5] = [
    "containing",
    "ending_with",
    "starting_with",
    "version_before",
    "whole_number",
];
/// Operators that go through all that is in a value.
const OPERATORS: [&str; 9] = ["~", "==", "!=", "<", ">", "<=", ">=", "...", ":"];
/// What stands beside a value of which only the truth is asked, or which is handed on as it is.
const CONDITIONS: [&str; 5] = ["and", "or", "not", "if", "else"];

/// Something put in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Insert {
    /// The byte of the template before which it stands.
    at: usize,
    text: String,
    /// The bytes of the template that it charges for.
    of: Range<usize>,
}

impl Insert {
    /// Charges for a part of the template behind its end.
    fn behind(of: Range<usize>, text: String) -> Self {
        Insert {
            at: of.end,
            text,
            of,
        }
    }

    /// Charges for nothing that is in the template before this byte.
    fn before(at: usize, text: String) -> Self {
        Insert {
            at,
            text,
            of: at..at,
        }
    }
}

/// A template as Tera is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedTemplate {
    /// The text, with what counts in it.
    pub text: String,
    inserted: Vec<Insert>,
}

impl CountedTemplate {
    /// A template with what counts in its loops, before its filters and behind the values of its
    /// operators.
    pub fn of(template: &str) -> Self {
        let pieces = split_into_pieces(template);
        let bodies = loop_bodies(&pieces);
        let mut inserts: Vec<Insert> = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let body = bodies.get(&at).copied().unwrap_or_default();
            count_piece(piece, body, &mut inserts);
        }
        // At one place what charges for a part comes before what charges for the whole, as it was
        // put in.
        inserts.sort_by_key(|insert| insert.at);
        let (mut text, mut from) = (String::with_capacity(template.len() * 2), 0);
        for insert in &inserts {
            text.push_str(&template[from..insert.at]);
            text.push_str(&insert.text);
            from = insert.at;
        }
        text.push_str(&template[from..]);
        CountedTemplate {
            text,
            inserted: inserts,
        }
    }

    /// The bytes of the template that these bytes of the counted text were; what was put in stands
    /// for what it charges for.
    pub fn place(&self, range: &Range<usize>) -> Range<usize> {
        self.original_byte(range.start)
            .unwrap_or_else(|of| of.start)
            ..self.original_byte(range.end).unwrap_or_else(|of| of.end)
    }

    fn original_byte(&self, at: usize) -> Result<usize, &Range<usize>> {
        let mut before = 0;
        for insert in &self.inserted {
            if insert.at + before >= at {
                break;
            }
            if at < insert.at + before + insert.text.len() {
                return Err(&insert.of);
            }
            before += insert.text.len();
        }
        Ok(at - before)
    }
}

/// Where in a template the tag or output stands that holds this byte.
pub fn piece_around(template: &str, at: usize) -> Option<Range<usize>> {
    split_into_pieces(template)
        .into_iter()
        .find_map(|piece| match piece {
            TemplatePiece::Tag(span, _) | TemplatePiece::Output(span, _) if span.contains(&at) => {
                Some(span)
            }
            _ => None,
        })
}

/// Charges for an expression, and for what its tag does with it; `body` are the steps of a loop's
/// body.
fn count_piece(piece: &TemplatePiece, body: u64, inserts: &mut Vec<Insert>) {
    let expression = expression_of(piece);
    let (Some((_, first)), Some((_, last))) = (expression.first(), expression.last()) else {
        return;
    };
    count_expression(expression, inserts);
    let TemplatePiece::Tag(_, words) = piece else {
        return;
    };
    let charge = match words.first() {
        Some((word, _)) if word.is_word("if") || word.is_word("elif") => return,
        Some((word, _)) if word.is_word("for") => format!(")|{TURNS_FILTER}(body={body})"),
        _ => format!(")|{TEXT_FILTER}"),
    };
    inserts.push(Insert::before(first.start, "(".to_owned()));
    inserts.push(Insert::behind(first.start..last.end, charge));
}

/// The expression of an output or a tag.
fn expression_of(piece: &TemplatePiece) -> &[Placed] {
    let words = match piece {
        TemplatePiece::Output(_, words) => return words,
        TemplatePiece::Tag(_, words) => words,
        TemplatePiece::Content(_) | TemplatePiece::Comment => return &[],
    };
    match words.first() {
        Some((word, _)) if word.is_word("if") || word.is_word("elif") => &words[1..],
        Some((word, _)) if word.is_word("for") => words_behind(words, |word| word.is_word("in")),
        Some((word, _)) if word.is_word("set") || word.is_word("set_global") => {
            words_behind(words, |word| word.is("="))
        }
        _ => &[],
    }
}

/// The words behind the first one that splits; none where nothing does.
fn words_behind(words: &[Placed], is_split: impl Fn(&Token) -> bool) -> &[Placed] {
    match words.iter().position(|(word, _)| is_split(word)) {
        Some(at) => &words[at + 1..],
        None => &[],
    }
}

fn count_expression(words: &[Placed], inserts: &mut Vec<Insert>) {
    let copies = count_copies(words);
    let whole = if copies > 1 {
        format!("|{WHOLE_FILTER}(times={copies})")
    } else {
        format!("|{WHOLE_FILTER}")
    };
    let has_operators = (0..words.len()).any(|at| is_operator(words, at));
    for (at, (word, span)) in words.iter().enumerate() {
        if word.is("|") {
            let charge = format!("|{}", charge_of_filter(words.get(at + 1)));
            inserts.push(Insert::before(span.start, charge));
            // The value goes on through the filter: an operator behind the last one handles what
            // that makes.
            let end = if words.get(at + 2).is_some_and(|(word, _)| word.is("(")) {
                find_closing_bracket(words, at + 2) + 1
            } else {
                at + 2
            };
            if has_operators && !words.get(end).is_some_and(|(word, _)| word.is("|")) {
                let of = span.end..words[end.min(words.len()) - 1].1.end;
                inserts.push(Insert::behind(of, whole.clone()));
            }
        } else if begins_path(words, at) {
            count_path(words, at, &whole, inserts);
        }
    }
}

/// How often a text or list can be copied in an expression on its way from value to value.
fn count_copies(words: &[Placed]) -> u64 {
    words
        .iter()
        .filter(|(word, _)| word.is("~") || word.is("...") || word.is(":"))
        .count() as u64
}

fn is_operator(words: &[Placed], at: usize) -> bool {
    match &words[at].0 {
        Token::Symbol(symbol) => OPERATORS.contains(symbol),
        Token::Ident(word) => word == "in" || is_test_of_content(words, at),
        Token::Text(_) | Token::Number => false,
    }
}

/// True for an `is` whose test goes through the value.
fn is_test_of_content(words: &[Placed], at: usize) -> bool {
    let test = match &words[at..] {
        [(is, _), (not, _), (test, _), ..] if is.is_word("is") && not.is_word("not") => test,
        [(is, _), (test, _), ..] if is.is_word("is") => test,
        _ => return false,
    };
    TESTS_OF_CONTENT.iter().any(|name| test.is_word(name))
}

fn charge_of_filter(filter: Option<&Placed>) -> &'static str {
    let Some((filter, _)) = filter else {
        return TEXT_FILTER;
    };
    if TAKES_WHOLE.iter().any(|name| filter.is_word(name)) {
        WHOLE_FILTER
    } else if TAKES_ELEMENTS.iter().any(|name| filter.is_word(name)) {
        ELEMENTS_FILTER
    } else {
        TEXT_FILTER
    }
}

/// True where a name of a value begins: no keyword, field, filter, test, function or argument.
fn begins_path(words: &[Placed], at: usize) -> bool {
    let Token::Ident(name) = &words[at].0 else {
        return false;
    };
    let is_part = match &words[..at] {
        [.., (is, _), (not, _)] if not.is_word("not") => is.is_word("is"),
        [.., (word, _)] => word.is(".") || word.is("?.") || word.is("|") || word.is_word("is"),
        [] => false,
    };
    let is_named = words
        .get(at + 1)
        .is_some_and(|(word, _)| word.is("(") || word.is("="));
    !is_keyword(name) && !is_part && !is_named
}

/// Charges for a named value where an operator, an argument or a list takes it, and for a text or
/// list that a part is taken out of.
fn count_path(words: &[Placed], start: usize, whole: &str, inserts: &mut Vec<Insert>) {
    let TemplatePath {
        end,
        brackets,
        has_brackets,
    } = find_path_end(words, start);
    let mut is_slice = false;
    if let Some(open) = brackets {
        is_slice = words[open..end].iter().any(|(word, _)| word.is(":"));
        let filter = if is_slice {
            ELEMENTS_FILTER
        } else {
            TEXT_FILTER
        };
        // Behind a filter Tera takes brackets and no fields.
        let of = span_of_words(&words[start..open]);
        inserts.push(Insert::behind(of, format!("|{filter}")));
    }
    // A filter charges for it itself.
    if words.get(end).is_some_and(|(word, _)| word.is("|")) {
        return;
    }
    let of = span_of_words(&words[start..end]);
    if is_slice || !is_only_tested(words, start, end) {
        inserts.push(Insert::behind(of, whole.to_owned()));
    } else if has_brackets && brackets.is_none() {
        inserts.push(Insert::behind(of, format!("|{TEXT_FILTER}")));
    }
}

/// A name with its fields and brackets.
struct TemplatePath {
    /// The word behind it.
    end: usize,
    /// The first of the brackets at its end, where they are `[`.
    brackets: Option<usize>,
    has_brackets: bool,
}

fn find_path_end(words: &[Placed], start: usize) -> TemplatePath {
    let (mut end, mut brackets, mut has_brackets) = (start + 1, None, false);
    while let Some((Token::Symbol(symbol), _)) = words.get(end) {
        match *symbol {
            "." | "?." => {
                brackets = None;
                end += 2;
            }
            "[" | "?[" => {
                has_brackets = true;
                brackets = match *symbol {
                    "[" => brackets.or(Some(end)),
                    _ => None,
                };
                end = find_closing_bracket(words, end) + 1;
            }
            _ => break,
        }
    }
    TemplatePath {
        end: end.min(words.len()),
        brackets,
        has_brackets,
    }
}

/// The bytes of these words; there is at least one.
fn span_of_words(words: &[Placed]) -> Range<usize> {
    words[0].1.start..words[words.len() - 1].1.end
}

/// True when nothing takes the value of these words but a condition, or what the expression is for.
fn is_only_tested(words: &[Placed], mut start: usize, mut end: usize) -> bool {
    while ends_with_group_bracket(&words[..start])
        && words.get(end).is_some_and(|(word, _)| word.is(")"))
    {
        (start, end) = (start - 1, end + 1);
    }
    if start > 0 && !is_condition(&words[start - 1].0) {
        return false;
    }
    let Some((word, _)) = words.get(end) else {
        return true;
    };
    is_condition(word) || (word.is_word("is") && !is_test_of_content(words, end))
}

/// True where the last word is a bracket that groups, and opens no arguments.
fn ends_with_group_bracket(words: &[Placed]) -> bool {
    match words {
        [.., (Token::Ident(name), _), (last, _)] => last.is("(") && is_keyword(name),
        [.., (last, _)] => last.is("("),
        [] => false,
    }
}

fn is_condition(word: &Token) -> bool {
    CONDITIONS.iter().any(|condition| word.is_word(condition))
}

/// The steps of the body of each loop, by the index of its tag.
fn loop_bodies(pieces: &[TemplatePiece]) -> BTreeMap<usize, u64> {
    let (mut open, mut all, mut bodies) = (Vec::new(), 0, BTreeMap::new());
    for (at, piece) in pieces.iter().enumerate() {
        all += compute_piece_cost(piece);
        let TemplatePiece::Tag(_, words) = piece else {
            continue;
        };
        match words.first() {
            Some((word, _)) if word.is_word("for") => open.push((at, all)),
            Some((word, _)) if word.is_word("endfor") => {
                if let Some((tag, before)) = open.pop() {
                    bodies.insert(tag, all - before);
                }
            }
            _ => {}
        }
    }
    bodies.extend(open.into_iter().map(|(tag, before)| (tag, all - before)));
    bodies
}

fn compute_piece_cost(piece: &TemplatePiece) -> u64 {
    match piece {
        TemplatePiece::Content(span) => 1 + span.len() as u64 / BYTES_A_UNIT,
        // Texts that stand in an expression are copied with it.
        TemplatePiece::Tag(span, words) | TemplatePiece::Output(span, words) => {
            1 + words.len() as u64 + span.len() as u64 / BYTES_A_UNIT * (1 + count_copies(words))
        }
        TemplatePiece::Comment => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_put_in_and_places_are_found_again() {
        let template = "a{% for x in list %}{{ x.y | lower }}é{% endfor %}";
        let counted = CountedTemplate::of(template);
        assert_eq!(
            counted.text,
            "a{% for x in (list)|_turns(body=9) %}{{ x.y |_text| lower }}é{% endfor %}"
        );
        for word in ["list", "x.y", "lower", "endfor"] {
            let (here, there) = (
                template.find(word).unwrap(),
                counted.text.find(word).unwrap(),
            );
            assert_eq!(
                counted.place(&(there..there + word.len())),
                here..here + word.len(),
                "{word}"
            );
        }
        let filter = counted.text.find("_turns").unwrap();
        assert_eq!(
            piece_around(template, counted.place(&(filter..filter + 6)).start),
            Some(1..20)
        );
    }

    #[test]
    fn operators_are_charged_for_the_values_that_they_handle() {
        for (template, counted) in [
            ("{{ a.b }}", "{{ a.b }}"),
            (
                "{% if a and not (b.c) or d is defined %}",
                "{% if a and not (b.c) or d is defined %}",
            ),
            (
                "{% if a == b.c[0] %}",
                "{% if a|_whole == b.c|_text[0]|_whole %}",
            ),
            (
                "{{ a ~ b ~ 'x' }}",
                "{{ a|_whole(times=2) ~ b|_whole(times=2) ~ 'x' }}",
            ),
            (
                "{% if 'x' in l and l is containing(pat=y) %}",
                "{% if 'x' in l|_whole and l|_whole is containing(pat=y|_whole) %}",
            ),
            (
                "{% set m = l[1:9] %}",
                "{% set m = (l|_elements[1:9]|_whole)|_text %}",
            ),
            (
                "{% if l[0].x %}{{ t?[0] }}",
                "{% if l[0].x|_text %}{{ t?[0]|_text }}",
            ),
            (
                "{{ (a or b) ~ c }}",
                "{{ (a|_whole or b|_whole) ~ c|_whole }}",
            ),
            (
                "{% if l | default(value=m) == m %}",
                "{% if l |_text| default(value=m|_whole)|_whole == m|_whole %}",
            ),
            (
                "{{ 1 if x else [a, a] }}",
                "{{ 1 if x else [a|_whole, a|_whole] }}",
            ),
            (
                "{% for a, b in c | pairs %}{% endfor %}",
                "{% for a, b in (c |_elements| pairs)|_turns(body=2) %}{% endfor %}",
            ),
        ] {
            assert_eq!(CountedTemplate::of(template).text, counted);
        }
        let nested = CountedTemplate::of(&"{% for a in b %}".repeat(3)).text;
        assert_eq!(
            nested,
            "{% for a in (b)|_turns(body=10) %}{% for a in (b)|_turns(body=5) %}{% for a in (b)|_turns(body=0) %}"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics_and_no_byte_of_it_is_lost(text in "([{}%#a'\"\\\\. |é\n\
                                                                 (]|for |in |set |=|~|\\[|:|\\]|is \
                                                                 |endfor){0,30}") {
            let counted = CountedTemplate::of(&text);
            let mut left = counted.text.clone();
            for insert in &counted.inserted {
                left.replace_range(insert.at..insert.at + insert.text.len(), "");
            }
            proptest::prop_assert_eq!(left, text.clone());
            proptest::prop_assert_eq!(counted.place(&(0..counted.text.len())).end, text.len());
        }
    }
}
