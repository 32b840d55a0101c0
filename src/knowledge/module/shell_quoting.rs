//! Where a value may stand in a shell template. Autoescape writes every value as one single-quoted
//! word; inside quotes, a here-document, backticks or a comment those quotes would mean something
//! else, and the value could be run.

use crate::template::token::{TemplatePiece, split_into_pieces};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellQuoteContext {
    Plain,
    Single,
    Double,
    Backticks,
    Comment,
}

impl ShellQuoteContext {
    fn words(self) -> &'static str {
        match self {
            ShellQuoteContext::Plain => "plain text",
            ShellQuoteContext::Single => "single quotes",
            ShellQuoteContext::Double => "double quotes",
            ShellQuoteContext::Backticks => "backticks",
            ShellQuoteContext::Comment => "a comment",
        }
    }
}

/// The outputs of a shell template that stand where quoting does not hold, with the reason.
pub fn find_unsafe_outputs(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut stack = vec![ShellQuoteContext::Plain];
    for piece in split_into_pieces(text) {
        match piece {
            TemplatePiece::Output(span, _) => {
                let inside = stack.last().copied().unwrap_or(ShellQuoteContext::Plain);
                if inside != ShellQuoteContext::Plain {
                    found.push((
                        span,
                        format!(
                            "a value inside {} is not safe: it is quoted by itself, as one word",
                            inside.words()
                        ),
                    ));
                }
            }
            TemplatePiece::Content(span) => {
                if let Some(at) = here_document(&text[span.clone()]) {
                    let at = span.start + at;
                    found.push((
                        at..at + 2,
                        "a here-document is not quoted: use printf".to_owned(),
                    ));
                }
                track_shell_quotes(&text[span], &mut stack);
            }
            TemplatePiece::Tag(..) | TemplatePiece::Comment => {}
        }
    }
    found
}

fn here_document(content: &str) -> Option<usize> {
    let at = content.find("<<")?;
    let after = content[at + 2..].trim_start_matches(['-', ' ']);
    after
        .starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '"' | '\'' | '\\'))
        .then_some(at)
}

/// Follows quotes, `$( )`, backticks and comments through a stretch of shell text.
fn track_shell_quotes(content: &str, stack: &mut Vec<ShellQuoteContext>) {
    let mut characters = content.chars().peekable();
    let mut before = '\n';
    while let Some(c) = characters.next() {
        let inside = stack.last().copied().unwrap_or(ShellQuoteContext::Plain);
        match (inside, c) {
            (
                ShellQuoteContext::Plain | ShellQuoteContext::Double | ShellQuoteContext::Backticks,
                '\\',
            ) => {
                characters.next();
            }
            (ShellQuoteContext::Plain, '\'') => stack.push(ShellQuoteContext::Single),
            (ShellQuoteContext::Plain, '"') => stack.push(ShellQuoteContext::Double),
            (ShellQuoteContext::Plain | ShellQuoteContext::Double, '`') => {
                stack.push(ShellQuoteContext::Backticks)
            }
            (ShellQuoteContext::Plain, '#') if before.is_whitespace() || before == ';' => {
                stack.push(ShellQuoteContext::Comment)
            }
            (ShellQuoteContext::Plain | ShellQuoteContext::Double, '$')
                if characters.peek() == Some(&'(') =>
            {
                characters.next();
                stack.push(ShellQuoteContext::Plain);
            }
            (ShellQuoteContext::Plain, '(') => stack.push(ShellQuoteContext::Plain),
            // A `)` that closes nothing is a pattern of `case`.
            (ShellQuoteContext::Plain, ')') if stack.len() > 1 => drop(stack.pop()),
            (ShellQuoteContext::Single, '\'')
            | (ShellQuoteContext::Double, '"')
            | (ShellQuoteContext::Backticks, '`')
            | (ShellQuoteContext::Comment, '\n') => drop(stack.pop()),
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
            assert_eq!(find_unsafe_outputs(text).is_empty(), safe, "{text}");
        }
    }
}
