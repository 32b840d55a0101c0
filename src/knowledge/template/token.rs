//! The words of a template: enough of Tera's grammar to see which names, filters and tests an
//! expression uses. Tera's own parser keeps its tree to itself, so the lint reads the text a second
//! time. What the two read differently could neither be checked nor counted, so a template that is
//! not read here to its end is refused (`engine`), and the tests compare the two.

use std::ops::Range;

/// One word inside `{{ }}` or `{% %}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A name or keyword.
    Ident(String),
    /// A string, its escapes undone.
    Text(String),
    /// A number.
    Number,
    /// An operator or bracket, as written.
    Symbol(&'static str),
}

impl Token {
    /// True for this operator or bracket.
    pub fn is(&self, symbol: &str) -> bool {
        matches!(self, Token::Symbol(s) if *s == symbol)
    }

    /// True for this name or keyword.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Ident(w) if w == word)
    }
}

/// A token and where it stands, in bytes of the template.
pub type Placed = (Token, Range<usize>);

/// A stretch of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    /// Text that is written as it stands; a `raw` block too.
    Content(Range<usize>),
    /// `{{ ... }}`.
    Output(Range<usize>, Vec<Placed>),
    /// `{% ... %}`.
    Tag(Range<usize>, Vec<Placed>),
    /// `{# ... #}`.
    Comment,
}

/// The most bytes of one template. The largest of ours has a tenth of it.
pub const TEMPLATE_MAX: usize = 256 << 10;
/// The most outputs and tags of one template.
pub const TAGS_MAX: usize = 5000;
/// How deep `if`, `for` and brackets may stand in each other; every `elif` counts, because Tera
/// reads one within the other.
pub const DEPTH_MAX: usize = 64;

/// Why the reading of a template ended before its text did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateReadError {
    /// It has more than `TEMPLATE_MAX` bytes.
    TooLong,
    /// It has more than `TAGS_MAX` outputs and tags.
    TooManyTags,
    /// It goes deeper than `DEPTH_MAX`.
    TooDeep,
    /// It is no template: Tera says what is wrong there.
    Malformed,
}

/// A template, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateReadResult {
    /// Its pieces, as far as it was read.
    pub pieces: Vec<TemplatePiece>,
    /// The byte where the reading ended, and why, if that is not the end of the text.
    pub unread: Option<(usize, TemplateReadError)>,
}

const SYMBOLS: [&str; 31] = [
    "...", "//", "**", "==", "!=", ">=", "<=", "</", "?.", "?[", "+", "-", "*", "/", "%", "!", ".",
    ",", ":", "~", "|", "=", ">", "<", "(", ")", "[", "]", "{", "}", "@",
];

/// Reads a template, byte by byte as the lexer of Tera 2.4 does (`parsing/lexer.rs` there): only
/// what it takes for white space or a name is one here, it looks for the end of a comment behind
/// its mark, and for `raw` before it looks for words.
pub fn read_template(text: &str) -> TemplateReadResult {
    if text.len() > TEMPLATE_MAX {
        return TemplateReadResult {
            pieces: Vec::new(),
            unread: Some((0, TemplateReadError::TooLong)),
        };
    }
    let (mut pieces, mut at, mut tags, mut depth) = (Vec::new(), 0, 0, Depth::default());
    let ended = loop {
        if at >= text.len() {
            break None;
        }
        let (piece, end) = match read_piece(text, at) {
            Ok(read) => read,
            Err(why) => break Some((at, why)),
        };
        tags += usize::from(matches!(
            piece,
            TemplatePiece::Output(..) | TemplatePiece::Tag(..)
        ));
        if tags > TAGS_MAX {
            break Some((at, TemplateReadError::TooManyTags));
        }
        if let TemplatePiece::Tag(_, words) = &piece
            && depth.follow(words) > DEPTH_MAX
        {
            break Some((at, TemplateReadError::TooDeep));
        }
        pieces.push(piece);
        at = end;
    };
    TemplateReadResult {
        pieces,
        unread: ended,
    }
}

/// The pieces of a template, as far as it can be read.
pub fn split_into_pieces(text: &str) -> Vec<TemplatePiece> {
    read_template(text).pieces
}

/// How many `if`, `elif` and `for` are open.
#[derive(Default)]
struct Depth {
    /// Of each tag that is open: itself and its `elif`s.
    open: Vec<usize>,
    all: usize,
}

impl Depth {
    fn follow(&mut self, words: &[Placed]) -> usize {
        match words.first() {
            Some((Token::Ident(word), _)) if word == "if" || word == "for" => {
                self.open.push(1);
                self.all += 1;
            }
            Some((Token::Ident(word), _)) if word == "elif" => {
                if let Some(last) = self.open.last_mut() {
                    *last += 1;
                    self.all += 1;
                }
            }
            Some((Token::Ident(word), _)) if word == "endif" || word == "endfor" => {
                self.all -= self.open.pop().unwrap_or_default()
            }
            _ => {}
        }
        self.all
    }
}

/// The piece that begins at this byte, and the byte after it.
fn read_piece(text: &str, at: usize) -> Result<(TemplatePiece, usize), TemplateReadError> {
    let mark = text
        .get(at..at + 2)
        .filter(|mark| ["{{", "{%", "{#"].contains(mark));
    let Some(mark) = mark else {
        let end = next_mark(text, at);
        return Ok((TemplatePiece::Content(at..end), end));
    };
    // `{{-`, `{%-` and `{#-` trim white space; the dash is no operator.
    let inside = at + mark.len() + usize::from(text[at + mark.len()..].starts_with('-'));
    match mark {
        "{#" => match text[inside..].find("#}") {
            Some(end) => Ok((TemplatePiece::Comment, inside + end + 2)),
            None => Err(TemplateReadError::Malformed),
        },
        "{{" => read_tokens(text, inside, "}}")
            .map(|(words, end)| (TemplatePiece::Output(at..end, words), end)),
        _ => match marker_length(&text[inside..], "raw") {
            Some(length) => raw_block(text, inside + length),
            None => read_tokens(text, inside, "%}")
                .map(|(words, end)| (TemplatePiece::Tag(at..end, words), end)),
        },
    }
}

fn next_mark(text: &str, at: usize) -> usize {
    let mut pairs = text.as_bytes()[at..].windows(2);
    pairs
        .position(|pair| pair[0] == b'{' && matches!(pair[1], b'{' | b'%' | b'#'))
        .map_or(text.len(), |before| at + before)
}

/// True when the text has anything for Tera to do.
pub fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|open| text.contains(open))
}

/// The inside of a text that is exactly one `{{ expression }}`, whose value keeps its type.
pub fn sole_expression(text: &str) -> Option<Range<usize>> {
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    match split_into_pieces(trimmed).as_slice() {
        [TemplatePiece::Output(range, _)] if range.end == trimmed.len() => {
            let inner = start + 2..start + trimmed.len() - 2;
            let plain =
                !text[inner.clone()].starts_with('-') && !text[inner.clone()].ends_with('-');
            plain.then_some(inner)
        }
        _ => None,
    }
}

/// The bytes of `raw %}` or `endraw %}` behind a `{%`, where it stands there alone.
fn marker_length(rest: &str, name: &str) -> Option<usize> {
    let word = rest.strip_prefix('-').unwrap_or(rest).trim_ascii_start();
    let after = word.strip_prefix(name)?.trim_ascii_start();
    let end = after
        .strip_prefix('-')
        .unwrap_or(after)
        .strip_prefix("%}")?;
    Some(rest.len() - end.len())
}

/// What stands between `raw`, which ends at this byte, and the next `endraw`.
fn raw_block(text: &str, start: usize) -> Result<(TemplatePiece, usize), TemplateReadError> {
    let mut from = start;
    while let Some(before) = text[from..].find("{%") {
        let mark = from + before;
        from = mark + 2;
        if let Some(length) = marker_length(&text[from..], "endraw") {
            return Ok((TemplatePiece::Content(start..mark), from + length));
        }
    }
    Err(TemplateReadError::Malformed)
}

/// The tokens up to the closing mark, and the byte after it.
fn read_tokens(
    text: &str,
    from: usize,
    close: &str,
) -> Result<(Vec<Placed>, usize), TemplateReadError> {
    let (mut out, mut at, mut depth) = (Vec::new(), from, 0usize);
    loop {
        at = text.len() - text[at..].trim_ascii_start().len();
        let rest = &text[at..];
        if rest.strip_prefix('-').unwrap_or(rest).starts_with(close) {
            return Ok((out, at + usize::from(rest.starts_with('-')) + close.len()));
        }
        let (token, length) = read_token(rest).ok_or(TemplateReadError::Malformed)?;
        match &token {
            Token::Symbol("(" | "[" | "?[" | "{") => depth += 1,
            Token::Symbol(")" | "]" | "}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(TemplateReadError::TooDeep);
        }
        out.push((token, at..at + length));
        at += length;
    }
}

/// The first token of a text that begins with no white space, and its length.
fn read_token(rest: &str) -> Option<(Token, usize)> {
    let first = rest.chars().next()?;
    match first {
        '\'' | '"' | '`' => read_quoted_token(rest, first),
        '0'..='9' => read_number_token(rest),
        'a'..='z' | 'A'..='Z' | '_' => {
            let length = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            Some((Token::Ident(rest[..length].to_owned()), length))
        }
        _ => {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol))?;
            Some((Token::Symbol(symbol), symbol.len()))
        }
    }
}

/// Digits with one point at most; whole ones have to fit into 64 bits.
fn read_number_token(rest: &str) -> Option<(Token, usize)> {
    let whole = count_digits(rest);
    let length = match rest[whole..].strip_prefix('.') {
        Some(fraction) => whole + 1 + count_digits(fraction),
        None if rest[..whole].parse::<i64>().is_ok() => whole,
        None => return None,
    };
    Some((Token::Number, length))
}

/// How many digits a text begins with.
fn count_digits(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_digit());
    end.unwrap_or(text.len())
}

fn read_quoted_token(rest: &str, quote: char) -> Option<(Token, usize)> {
    let mut value = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                other @ ('"' | '\'' | '/' | '\\') => value.push(other),
                _ => return None,
            },
            c if c == quote => return Some((Token::Text(value), at + 1)),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_falls_into_content_outputs_and_tags() {
        let text = "a {{ x.y }}{# no #}{% if z %}b{% endif %}{% raw %}{{ not }}{% endraw %}";
        let shapes: Vec<String> = split_into_pieces(text)
            .iter()
            .map(|piece| match piece {
                TemplatePiece::Content(range) => format!("content {:?}", &text[range.clone()]),
                TemplatePiece::Output(range, words) => {
                    format!("output {:?} of {}", &text[range.clone()], words.len())
                }
                TemplatePiece::Tag(range, words) => {
                    format!("tag {:?} of {}", &text[range.clone()], words.len())
                }
                TemplatePiece::Comment => "comment".to_owned(),
            })
            .collect();
        insta::assert_snapshot!(shapes.join("\n"), @r#"
        content "a "
        output "{{ x.y }}" of 3
        comment
        tag "{% if z %}" of 2
        content "b"
        tag "{% endif %}" of 1
        content "{{ not }}"
        "#);
    }

    #[test]
    fn only_a_lone_expression_keeps_its_type() {
        for (text, inner) in [
            ("{{ mtu }}", Some(" mtu ")),
            ("  {{ '}}' ~ a }}\n", Some(" '}}' ~ a ")),
            ("{{ a }}{{ b }}", None),
            ("x{{ a }}", None),
            ("{{- a -}}", None),
            ("{{ a", None),
        ] {
            assert_eq!(
                sole_expression(text).map(|range| &text[range]),
                inner,
                "{text}"
            );
        }
    }

    #[test]
    fn comments_raw_blocks_and_words_end_where_tera_ends_them() {
        let code = |text: &str| {
            split_into_pieces(text)
                .iter()
                .filter(|piece| matches!(piece, TemplatePiece::Output(..) | TemplatePiece::Tag(..)))
                .count()
        };
        for (text, seen) in [
            ("{#} {% raw %} #}{{ secret }}{# {% endraw %} #}", 1),
            ("{#-#}{{ secret }}", 1),
            (
                "{% raw %}{%\u{a0}endraw %}{{ no }}{% endraw %}{{ secret }}",
                1,
            ),
            ("{%-- raw -%}{{ no }}{%-endraw%}{{ secret }}", 1),
            ("{% raw %}{%-- endraw %}{{ no }}{% endraw %}{{ secret }}", 1),
            ("{% raw - %}{% endraw %}", 2),
        ] {
            assert_eq!(
                (code(text), read_template(text).unread),
                (seen, None),
                "{text}"
            );
        }
        for text in [
            "{{ a\u{a0} }}",
            "{{ é }}",
            "{{ a & b }}",
            "{{ 'a\\d' }}",
            "{{ 9223372036854775808 }}",
            "{% raw %}",
            "{# ",
            "{{ a",
        ] {
            assert_eq!(
                read_template(text).unread,
                Some((0, TemplateReadError::Malformed)),
                "{text}"
            );
        }
    }

    /// Each of these took time that grew with the square of its length, or more stack than there
    /// is.
    #[test]
    fn a_template_has_an_end_in_every_direction() {
        for (text, at, why) in [
            ("x".repeat(TEMPLATE_MAX + 1), 0, TemplateReadError::TooLong),
            (
                format!("{{% raw %}}{}", "{% a ".repeat(20_000)),
                0,
                TemplateReadError::Malformed,
            ),
            (
                "{%if 1%}x{%endif%}".repeat(9000),
                0,
                TemplateReadError::TooManyTags,
            ),
            (
                "{% for a in b %}".repeat(4000),
                0,
                TemplateReadError::TooDeep,
            ),
            (
                format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(4000)),
                0,
                TemplateReadError::TooDeep,
            ),
            (
                format!("{{{{ {} }}}}", "a[".repeat(70)),
                0,
                TemplateReadError::TooDeep,
            ),
        ] {
            let unread = read_template(&text).unread.unwrap();
            assert_eq!((unread.1, unread.0 >= at), (why, true), "{}", &text[..40]);
        }
        let most = "{% if a %}{% elif b %}{% endif %}{{ [(1)] }}".repeat(1000);
        assert_eq!(read_template(&most).unread, None);
    }

    /// What Tera makes of a template whose code is known: an output writes the text in it, a tag
    /// nothing. White space is left out, because a dash in a mark trims it.
    fn made_of(pieces: &[TemplatePiece], text: &str) -> String {
        let made = pieces.iter().map(|piece| match piece {
            TemplatePiece::Content(span) => text[span.clone()].to_owned(),
            TemplatePiece::Output(_, words) => words
                .iter()
                .map(|(word, _)| {
                    if let Token::Text(text) = word {
                        text
                    } else {
                        ""
                    }
                })
                .collect(),
            TemplatePiece::Tag(..) | TemplatePiece::Comment => String::new(),
        });
        made.collect::<String>().split_whitespace().collect()
    }

    const PARTS: [&str; 37] = [
        "{#",
        "{#}",
        "#}",
        "{#-",
        "-#}",
        "{",
        "%",
        "}",
        "#",
        "-",
        " ",
        "\n",
        "\u{a0}",
        "\u{b}",
        "é",
        "x",
        "'",
        "\"",
        "raw",
        "endraw",
        "{% raw %}",
        "{%- raw -%}",
        "{%-- raw %}",
        "{% endraw %}",
        "{%-endraw-%}",
        "{%\u{a0}endraw %}",
        "{%",
        "%}",
        "{%-",
        "-%}",
        "{{ 'K' }}",
        "{{-'K'-}}",
        "{{",
        "}}",
        "{% set a = 1 %}",
        "{% set a = '%}' %}",
        "{{ 'K'\u{a0}}}",
    ];

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(2000))]
        #[test]
        fn tera_runs_the_code_that_is_seen_here_and_no_other(parts in proptest::collection::vec(proptest::sample::select(&PARTS[..]), 0..16)) {
            let text = parts.concat();
            let mut tera = tera::Tera::new();
            tera.autoescape_on(Vec::<&str>::new());
            if tera.add_raw_template("t", &text).is_ok() {
                let TemplateReadResult { pieces, unread } = read_template(&text);
                proptest::prop_assert_eq!(unread, None, "{}", &text);
                if let Ok(made) = tera.render("t", &tera::Context::new()) {
                    proptest::prop_assert_eq!(made.split_whitespace().collect::<String>(), made_of(&pieces, &text), "{}", text);
                }
            }
        }

        #[test]
        fn no_text_panics(text in "[{}%#a'\"\\\\. |\\-é\n]{0,40}") {
            let _ = split_into_pieces(&text);
            let _ = sole_expression(&text);
        }
    }
}
