//! The words of a template: enough of Tera's grammar to see which names, filters and tests an expression uses.
//! Tera's own parser keeps its tree to itself, so the lint reads the text a second time.

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
pub enum Piece {
    /// Text that is written as it stands; a `raw` block too.
    Content(Range<usize>),
    /// `{{ ... }}`.
    Output(Range<usize>, Vec<Placed>),
    /// `{% ... %}`.
    Tag(Range<usize>, Vec<Placed>),
    /// `{# ... #}`.
    Comment,
}

const SYMBOLS: [&str; 31] = [
    "...", "//", "**", "==", "!=", ">=", "<=", "?.", "?[", "+", "-", "*", "/", "%", "!", ".", ",", ":", "~", "|", "=", ">", "<", "(", ")",
    "[", "]", "{", "}", "@", "&",
];

/// The pieces of a template. Where the text is no template at all (an unclosed tag), the pieces end: Tera reports that itself.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let piece = match rest.get(..2) {
            Some("{#") => rest.find("#}").map(|end| (Piece::Comment, at + end + 2)),
            Some("{{") => tokens(text, at + 2, "}}").map(|(words, end)| (Piece::Output(at..end, words), end)),
            Some("{%") => raw_block(text, at).or_else(|| tokens(text, at + 2, "%}").map(|(words, end)| (Piece::Tag(at..end, words), end))),
            _ => {
                let end = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min().map_or(text.len(), |n| at + n);
                Some((Piece::Content(at..end), end))
            }
        };
        let Some((piece, end)) = piece else { break };
        out.push(piece);
        at = end;
    }
    out
}

/// True when the text has anything for Tera to do.
pub fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|open| text.contains(open))
}

/// The inside of a text that is exactly one `{{ expression }}`, whose value keeps its type.
pub fn sole_expression(text: &str) -> Option<Range<usize>> {
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    match pieces(trimmed).as_slice() {
        [Piece::Output(range, _)] if range.end == trimmed.len() => {
            let inner = start + 2..start + trimmed.len() - 2;
            let plain = !text[inner.clone()].starts_with('-') && !text[inner.clone()].ends_with('-');
            plain.then_some(inner)
        }
        _ => None,
    }
}

fn raw_block(text: &str, at: usize) -> Option<(Piece, usize)> {
    let (words, end) = tokens(text, at + 2, "%}")?;
    let [(word, _)] = words.as_slice() else { return None };
    if !word.is_word("raw") {
        return None;
    }
    let mut from = end;
    while let Some(open) = text[from..].find("{%") {
        let open = from + open;
        match tokens(text, open + 2, "%}") {
            Some((words, close)) if matches!(words.as_slice(), [(word, _)] if word.is_word("endraw")) => {
                return Some((Piece::Content(end..open), close));
            }
            _ => from = open + 2,
        }
    }
    None
}

/// The tokens up to the closing mark, and the byte after it.
fn tokens(text: &str, from: usize, close: &str) -> Option<(Vec<Placed>, usize)> {
    let mut out = Vec::new();
    let mut at = from;
    // `{{-` and `{%-` trim white space; the dash is no operator.
    if text[at..].starts_with('-') {
        at += 1;
    }
    loop {
        let rest = &text[at..];
        let c = rest.chars().next()?;
        if rest.starts_with(close) {
            return Some((out, at + close.len()));
        }
        if c == '-' && rest[1..].starts_with(close) {
            return Some((out, at + 1 + close.len()));
        }
        let (token, length) = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '\'' | '"' | '`' => quoted(rest, c)?,
            c if c.is_ascii_digit() => (Token::Number, span_of(rest, |c| c.is_ascii_digit() || c == '.')),
            c if c.is_alphabetic() || c == '_' => {
                let length = span_of(rest, |c| c.is_alphanumeric() || c == '_');
                (Token::Ident(rest[..length].to_owned()), length)
            }
            _ => {
                let symbol = SYMBOLS.iter().find(|s| rest.starts_with(**s))?;
                (Token::Symbol(symbol), symbol.len())
            }
        };
        out.push((token, at..at + length));
        at += length;
    }
}

fn span_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !belongs(c)).unwrap_or(text.len())
}

fn quoted(rest: &str, quote: char) -> Option<(Token, usize)> {
    let mut value = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                other => value.push(other),
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
        let shapes: Vec<String> = pieces(text)
            .iter()
            .map(|piece| match piece {
                Piece::Content(range) => format!("content {:?}", &text[range.clone()]),
                Piece::Output(range, words) => format!("output {:?} of {}", &text[range.clone()], words.len()),
                Piece::Tag(range, words) => format!("tag {:?} of {}", &text[range.clone()], words.len()),
                Piece::Comment => "comment".to_owned(),
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
            assert_eq!(sole_expression(text).map(|range| &text[range]), inner, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[{}%#a'\"\\\\. |\\-é\n]{0,40}") {
            let _ = pieces(&text);
            let _ = sole_expression(&text);
        }
    }
}
