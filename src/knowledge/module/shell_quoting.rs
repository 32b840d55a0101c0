//! Where a value may stand in a shell template. Autoescape writes every value as one single-quoted word; inside quotes,
//! a here-document, backticks or a comment those quotes would mean something else, and the value could be run.

use crate::template::token::{Piece, pieces};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Plain,
    Single,
    Double,
    Backticks,
    Comment,
}

impl Inside {
    fn words(self) -> &'static str {
        match self {
            Inside::Plain => "plain text",
            Inside::Single => "single quotes",
            Inside::Double => "double quotes",
            Inside::Backticks => "backticks",
            Inside::Comment => "a comment",
        }
    }
}

/// The outputs of a shell template that stand where quoting does not hold, with the reason.
pub fn misplaced(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut stack = vec![Inside::Plain];
    for piece in pieces(text) {
        match piece {
            Piece::Output(span, _) => {
                let inside = stack.last().copied().unwrap_or(Inside::Plain);
                if inside != Inside::Plain {
                    found.push((span, format!("a value inside {} is not safe: it is quoted by itself, as one word", inside.words())));
                }
            }
            Piece::Content(span) => {
                if let Some(at) = here_document(&text[span.clone()]) {
                    let at = span.start + at;
                    found.push((at..at + 2, "a here-document is not quoted: use printf".to_owned()));
                }
                read(&text[span], &mut stack);
            }
            Piece::Tag(..) | Piece::Comment => {}
        }
    }
    found
}

fn here_document(content: &str) -> Option<usize> {
    let at = content.find("<<")?;
    let after = content[at + 2..].trim_start_matches(['-', ' ']);
    after.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '"' | '\'' | '\\')).then_some(at)
}

/// Follows quotes, `$( )`, backticks and comments through a stretch of shell text.
fn read(content: &str, stack: &mut Vec<Inside>) {
    let mut characters = content.chars().peekable();
    let mut before = '\n';
    while let Some(c) = characters.next() {
        let inside = stack.last().copied().unwrap_or(Inside::Plain);
        match (inside, c) {
            (Inside::Plain | Inside::Double | Inside::Backticks, '\\') => {
                characters.next();
            }
            (Inside::Plain, '\'') => stack.push(Inside::Single),
            (Inside::Plain, '"') => stack.push(Inside::Double),
            (Inside::Plain | Inside::Double, '`') => stack.push(Inside::Backticks),
            (Inside::Plain, '#') if before.is_whitespace() || before == ';' => stack.push(Inside::Comment),
            (Inside::Plain | Inside::Double, '$') if characters.peek() == Some(&'(') => {
                characters.next();
                stack.push(Inside::Plain);
            }
            (Inside::Plain, '(') => stack.push(Inside::Plain),
            // A `)` that closes nothing is a pattern of `case`.
            (Inside::Plain, ')') if stack.len() > 1 => drop(stack.pop()),
            (Inside::Single, '\'') | (Inside::Double, '"') | (Inside::Backticks, '`') | (Inside::Comment, '\n') => drop(stack.pop()),
            _ => {}
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stands_only_where_its_own_quotes_hold() {
        for (text, safe) in [
            ("echo {{ x }}", true),
            ("echo --name={{ x }} # it's fine\nls {{ y }}", true),
            ("a=\"$(cat {{ x }})\"; b={{ y }}", true),
            ("case $a in b) echo {{ x }};; esac", true),
            ("echo 'it''s' \\' {{ x }}", true),
            ("echo \"{{ x }}\"", false),
            ("echo '{{ x }}'", false),
            ("echo `{{ x }}`", false),
            ("ls # {{ x }}", false),
            ("cat <<EOF\n{{ x }}\nEOF", false),
            ("a=\"$(cat \"{{ x }}\")\"", false),
        ] {
            assert_eq!(misplaced(text).is_empty(), safe, "{text}");
        }
    }
}
