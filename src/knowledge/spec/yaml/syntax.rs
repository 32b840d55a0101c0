//! What is wrong with a text that is no YAML, in the words of whoever wrote it. The parser says
//! what it looked for and did not find, often a line too late; the usual mistakes (a tab, a line
//! out of line, a colon forgotten) show in the text.

use crate::spec::source::SourceText;
use granit_parser::ErrorKind;
use railwright_base::Diagnostic;
use railwright_base::text::{format_count, one_line};
use std::ops::Range;

/// A mistake: where, what, and what to write instead.
struct Mistake {
    span: Range<usize>,
    what: String,
    fix: &'static str,
}

/// The error that the parser stopped with at this byte.
pub(super) fn diagnose_syntax_error(
    source: &SourceText,
    at: usize,
    kind: &ErrorKind,
) -> Diagnostic {
    let lines = YamlErrorContext::up_to(source, at);
    let found = lines
        .tab()
        .or_else(|| lines.no_blank(kind))
        .or_else(|| lines.no_colon(kind))
        .or_else(|| lines.out_of_line(kind));
    let Mistake { span, what, fix } = found.unwrap_or_else(|| Mistake {
        span: at..at,
        what: describe_error_kind(kind),
        fix: "fix the syntax here",
    });
    Diagnostic::error("RW0101", "this is not valid YAML")
        .at(source.name(), span, what)
        .next(format!("{fix}; what follows could not be read"))
}

/// A line with something on it.
#[derive(Clone, Copy)]
struct YamlLine<'a> {
    /// Its first byte.
    start: usize,
    text: &'a str,
}

impl<'a> YamlLine<'a> {
    fn content(&self) -> &'a str {
        self.text.trim_start_matches([' ', '\t'])
    }

    fn column(&self) -> usize {
        self.text.len() - self.content().len()
    }

    /// What stands behind the dashes of a list, and its column.
    fn behind_dashes(&self) -> (&'a str, usize) {
        let mut rest = self.content();
        while let Some(behind) = rest.strip_prefix("- ") {
            rest = behind.trim_start_matches(' ');
        }
        (rest, self.text.len() - rest.len())
    }

    /// `key` and what stands behind its colon.
    fn key(&self) -> Option<(&'a str, &'a str)> {
        let (rest, _) = self.behind_dashes();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            .unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        behind
            .strip_prefix(':')
            .filter(|_| !key.is_empty())
            .map(|behind| (key, behind))
    }
}

/// The lines with something on them, the one with the error last; and the one after it.
struct YamlErrorContext<'a> {
    lines: Vec<YamlLine<'a>>,
    next: Option<YamlLine<'a>>,
}

impl<'a> YamlErrorContext<'a> {
    fn up_to(source: &'a SourceText, at: usize) -> Self {
        let (mut lines, mut start) = (Vec::new(), 0);
        for text in source.text().split_inclusive('\n') {
            let line = YamlLine {
                start,
                text: text.trim_end_matches(['\n', '\r']),
            };
            let is_empty = line.content().is_empty() || line.content().starts_with('#');
            if start > at && !is_empty {
                return YamlErrorContext {
                    lines,
                    next: Some(line),
                };
            }
            if !is_empty {
                lines.push(line);
            }
            start += text.len();
        }
        YamlErrorContext { lines, next: None }
    }

    /// The parser may notice a mistake at the line after it.
    fn last_two(&self) -> impl Iterator<Item = &YamlLine<'a>> {
        self.lines.iter().rev().take(2)
    }

    fn tab(&self) -> Option<Mistake> {
        self.last_two().chain(&self.next).find_map(|line| {
            let at = line.start + line.text[..line.column()].find('\t')?;
            let what = "a tab stands in the indentation; YAML knows spaces only".to_owned();
            Some(Mistake {
                span: at..at + 1,
                what,
                fix: "write two spaces for each level",
            })
        })
    }

    /// `mtu:9000` is one word to YAML.
    fn no_blank(&self, kind: &ErrorKind) -> Option<Mistake> {
        self.last_two().filter(|_| in_block(kind)).find_map(|line| {
            let (key, behind) = line.key()?;
            let tight = behind.starts_with(|c: char| {
                c.is_ascii_alphanumeric() || matches!(c, '"' | '\'' | '[' | '{')
            });
            let at = line.start + line.behind_dashes().1 + key.len();
            let what = format!("between `{}:` and its value is no space", one_line(key, 40));
            tight.then_some(Mistake {
                span: at..at + 1,
                what,
                fix: "write `key: value`",
            })
        })
    }

    /// `cluster lab`: a word where a key should be.
    fn no_colon(&self, kind: &ErrorKind) -> Option<Mistake> {
        if !in_block(kind) {
            return None;
        }
        for line in self.last_two() {
            let (rest, column) = line.behind_dashes();
            let word = rest.split(' ').next().unwrap_or_default();
            let is_key =
                !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if line.content().starts_with('-') || !is_key || rest.contains(':') {
                continue;
            }
            let at = line.start + column;
            return Some(Mistake {
                span: at..at + word.len(),
                what: format!("a `:` is missing after `{}`", one_line(word, 40)),
                fix: "write `key: value`",
            });
        }
        None
    }

    /// A line that begins where none of those begin that it could belong to.
    fn out_of_line(&self, kind: &ErrorKind) -> Option<Mistake> {
        let (last, earlier) = self.lines.split_last()?;
        let before = earlier.last()?;
        let mut open: Vec<usize> = Vec::new();
        for line in earlier {
            open.retain(|column| *column < line.column());
            open.push(line.column());
            let inner = line.behind_dashes().1;
            if inner > line.column() {
                open.push(inner);
            }
        }
        let column = last.column();
        let deeper_is_fine = before
            .key()
            .is_some_and(|(_, behind)| behind.trim().is_empty())
            || before.content() == "-";
        let fits = open.contains(&column)
            || (deeper_is_fine && open.last().is_some_and(|top| column > *top));
        if !in_block(kind) || fits {
            return None;
        }
        let columns: Vec<String> = open.iter().map(ToString::to_string).collect();
        let what = format!(
            "{} before this; the lines above that it could belong to have {}",
            format_count(column, "space"),
            columns.join(" or ")
        );
        let end = last.start + last.text.len();
        let content = last.start + column;
        let word = last
            .content()
            .find([':', ' '])
            .map_or(end, |length| content + length);
        Some(Mistake {
            span: content..word,
            what,
            fix: "bring it in line with its neighbours",
        })
    }
}

/// What a line brings about that is no key or item where one should be.
fn in_block(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidIndentation
            | ErrorKind::ExpectedBlockMappingKey
            | ErrorKind::ExpectedBlockSequenceEntry
            | ErrorKind::MappingValueNotAllowed
            | ErrorKind::MappingKeyNotAllowed
            | ErrorKind::BlockSequenceEntryNotAllowed
            | ErrorKind::InvalidColonPlacement
            | ErrorKind::SimpleKeyExpected
            | ErrorKind::InvalidSimpleKey
            | ErrorKind::ExpectedDocumentStart
    )
}

fn describe_error_kind(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            "a quote is opened and not closed".to_owned()
        }
        ErrorKind::UnclosedFlowCollection { open } => format!("`{open}` is opened and not closed"),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            format!("`{close}` stands where `{open}` has to be closed")
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            "nothing was opened that this could close".to_owned()
        }
        ErrorKind::UnexpectedCharacter { character } => {
            format!("text that begins with {character:?} needs quotes")
        }
        ErrorKind::UnknownAnchor => {
            "nothing above is named so with `&`; text that begins with `*` needs quotes".to_owned()
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            "a `:` too many; text with `: ` in it needs quotes".to_owned()
        }
        ErrorKind::SimpleKeyExpected
        | ErrorKind::InvalidSimpleKey
        | ErrorKind::ExpectedBlockMappingKey => "here should be `key: value`".to_owned(),
        ErrorKind::ExpectedBlockSequenceEntry => {
            "neither an item of the list above (`- `) nor in line with the keys of one".to_owned()
        }
        ErrorKind::ExpectedFlowMappingSeparator => "a `,` or `}` is missing before this".to_owned(),
        ErrorKind::ExpectedFlowSequenceSeparator => {
            "a `,` or `]` is missing before this".to_owned()
        }
        ErrorKind::BlockSequenceEntryNotAllowed | ErrorKind::BlockEntryInFlowCollection => {
            "no item of a list (`- `) can stand here".to_owned()
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => "a tab stands where only spaces may".to_owned(),
        ErrorKind::RecursionLimitExceeded => "too many levels".to_owned(),
        other => one_line(&other.to_string(), 200),
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::source::{SourceFile, SourceText};
    use crate::spec::yaml::{AliasBudget, YamlDocument};
    use railwright_base::Diagnostic;
    use std::sync::Arc;

    /// `caret | label` of what is wrong with the text.
    fn said(text: &str) -> String {
        let mut problems: Vec<Diagnostic> = Vec::new();
        YamlDocument::parse(
            Arc::new(SourceText::new(SourceFile {
                name: "c.yaml".into(),
                text: text.into(),
            })),
            &mut AliasBudget::default(),
            &mut problems,
        );
        let [problem] = problems.as_slice() else {
            return format!("{problems:?}");
        };
        assert!(
            problem.code == "RW0101"
                && problem.next[0].ends_with("; what follows could not be read"),
            "{problem:?}"
        );
        format!(
            "{} | {}",
            &text[problem.labels[0].span.clone()],
            problem.labels[0].text
        )
    }

    #[test]
    fn the_usual_mistakes_are_told_in_the_words_of_their_author() {
        for (text, told) in [
            (
                "cluster: a\nfabric:\n\tkind: none\n",
                "\t | a tab stands in the indentation; YAML knows spaces only",
            ),
            (
                "nodes:\n  - name: a\n\t  os: debian-12\n",
                "\t | a tab stands in the indentation; YAML knows spaces only",
            ),
            (
                "nodes:\n  - name: a\n     os: b\n",
                "os | 5 spaces before this; the lines above that it could belong to have 0 or 2 or \
                 4",
            ),
            (
                "nodes:\n  - name: a\n   os: b\n",
                "os | 3 spaces before this; the lines above that it could belong to have 0 or 2 or \
                 4",
            ),
            (
                "fabric:\n    kind: none\n  mtu: 9\n",
                "mtu | 2 spaces before this; the lines above that it could belong to have 0 or 4",
            ),
            (
                "cluster lab\nfabric:\n  kind: none\n",
                "cluster | a `:` is missing after `cluster`",
            ),
            (
                "fabric:\n  kind none\n  mtu: 9000\n",
                "kind | a `:` is missing after `kind`",
            ),
            (
                "cluster:lab\nfabric:\n  kind: none\n",
                ": | between `cluster:` and its value is no space",
            ),
            (
                "cluster: lab: two\n",
                " | a `:` too many; text with `: ` in it needs quotes",
            ),
            (
                "cluster: \"lab\nfabric: {}\n",
                " | a quote is opened and not closed",
            ),
            (
                "nodes: [{ name: a ]\n",
                " | `]` stands where `{` has to be closed",
            ),
            ("nodes: [{ name: a },\n", " | `[` is opened and not closed"),
            (
                "cluster: @lab\n",
                " | text that begins with '@' needs quotes",
            ),
            (
                "cluster: *lab\n",
                " | nothing above is named so with `&`; text that begins with `*` needs quotes",
            ),
            (
                "nodes:\n  - name: a\n  os: b\n",
                " | neither an item of the list above (`- `) nor in line with the keys of one",
            ),
        ] {
            assert_eq!(said(text), told, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "([a-c]{1,3}|: ?|- |\n {0,5}|\t|\"|[\\[\\]{},*&@é]){0,30}") {
            let _ = YamlDocument::parse(Arc::new(SourceText::new(SourceFile { name: "c.yaml".into(), text })), &mut AliasBudget::default(), &mut Vec::new());
        }
    }
}
