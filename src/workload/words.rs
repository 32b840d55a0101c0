//! A line as a shell would split it into words, each with its bytes. Nothing is run, and nothing is
//! filled in: what only a shell can do is an error with its place.

use std::ops::Range;

/// A word without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    pub text: String,
    pub span: Range<usize>,
}

/// Why a line has no words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoWords {
    pub span: Range<usize>,
    pub message: String,
    pub label: &'static str,
}

/// The words of a line.
pub(super) fn split_shell_words(line: &str) -> Result<Vec<ShellWord>, NoWords> {
    let mut splitter = ShellLineSplitter {
        line,
        at: 0,
        words: Vec::new(),
        open: None,
    };
    while let Some(c) = splitter.peek() {
        splitter.step(c)?;
    }
    splitter.end();
    Ok(splitter.words)
}

struct ShellLineSplitter<'a> {
    line: &'a str,
    at: usize,
    words: Vec<ShellWord>,
    open: Option<ShellWord>,
}

impl ShellLineSplitter<'_> {
    fn peek(&self) -> Option<char> {
        self.line[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn word(&mut self) -> &mut ShellWord {
        let at = self.at;
        self.open.get_or_insert_with(|| ShellWord {
            text: String::new(),
            span: at..at,
        })
    }

    fn end(&mut self) {
        if let Some(mut word) = self.open.take() {
            word.span.end = self.at;
            self.words.push(word);
        }
    }

    fn step(&mut self, c: char) -> Result<(), NoWords> {
        match c {
            '\\' => self.escape(),
            '\'' | '"' => return self.quoted(c),
            ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' => return Err(self.only_a_shell(c)),
            '$' if self.names_something() => return Err(self.only_a_shell(c)),
            c if c.is_whitespace() => {
                self.end();
                self.take();
            }
            c => {
                self.word().text.push(c);
                self.take();
            }
        }
        Ok(())
    }

    fn names_something(&self) -> bool {
        self.line[self.at + 1..]
            .starts_with(|c: char| c.is_ascii_alphanumeric() || "_{(*@#?!-$".contains(c))
    }

    fn only_a_shell(&self, c: char) -> NoWords {
        let message = match c {
            '$' | '`' => "a shell would fill something in here, and nothing is run",
            _ => "the line is more than one command",
        };
        NoWords {
            span: self.at..self.at + 1,
            message: message.to_owned(),
            label: "only a shell knows what this is",
        }
    }

    /// A line that goes on below. Pages that were copied have lost the line's end and kept the
    /// backslash: a blank stands on both sides of it, which no one means as a word of its own.
    fn continues(&self, before: Option<char>) -> bool {
        let after = self.line[self.at + 1..].chars().next();
        matches!(after, Some('\n' | '\r'))
            || before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace)
    }

    fn escape(&mut self) {
        let before = self.line[..self.at].chars().next_back();
        if self.continues(before) {
            self.take();
            self.take_line_end();
            return;
        }
        self.word();
        self.take();
        if let Some(c) = self.take() {
            self.word().text.push(c);
        }
    }

    fn take_line_end(&mut self) {
        if self.peek() == Some('\r') {
            self.take();
        }
        if self.peek() == Some('\n') {
            self.take();
        }
    }

    fn quoted(&mut self, quote: char) -> Result<(), NoWords> {
        let start = self.at;
        self.word();
        self.take();
        loop {
            let Some(c) = self.peek() else {
                let message = "a quote is not closed".to_owned();
                return Err(NoWords {
                    span: start..start + 1,
                    message,
                    label: "opens here",
                });
            };
            match c {
                c if c == quote => {
                    self.take();
                    return Ok(());
                }
                '\\' if quote == '"' => self.escape_in_quotes(),
                '`' if quote == '"' => return Err(self.only_a_shell(c)),
                '$' if quote == '"' && self.names_something() => return Err(self.only_a_shell(c)),
                c => {
                    self.word().text.push(c);
                    self.take();
                }
            }
        }
    }

    fn escape_in_quotes(&mut self) {
        let before = self.line[..self.at].chars().next_back();
        if self.continues(before) {
            self.take();
            self.take_line_end();
            return;
        }
        self.take();
        match self.peek() {
            Some(c) if "\\\"$`".contains(c) => {
                self.word().text.push(c);
                self.take();
            }
            _ => self.word().text.push('\\'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split_shell_words(line)
            .unwrap()
            .into_iter()
            .map(|word| word.text)
            .collect()
    }

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        for (line, expected) in [
            ("a  b\tc", vec!["a", "b", "c"]),
            (r#"--env='A=b c' "d e"f"#, vec!["--env=A=b c", "d ef"]),
            ("a \\\n  b", vec!["a", "b"]),
            (r"a\ b", vec!["a b"]),
            (r#""\"x\" \n""#, vec!["\"x\" \\n"]),
            ("''", vec![""]),
            (
                r"submit \ --name=x \ --gpus=1",
                vec!["submit", "--name=x", "--gpus=1"],
            ),
            (r#""main.py \ --epochs 1""#, vec!["main.py  --epochs 1"]),
            ("5$ a", vec!["5$", "a"]),
            ("", vec![]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
    }

    #[test]
    fn what_only_a_shell_can_do_is_an_error_at_its_place() {
        for (line, at) in [
            ("a; b", 1),
            ("a $HOME", 2),
            (r#"a "$(id)""#, 3),
            ("a | b", 2),
            ("a 'b", 2),
            ("a `b`", 2),
            ("a > b", 2),
        ] {
            assert_eq!(
                split_shell_words(line).unwrap_err().span.start,
                at,
                "{line}"
            );
        }
        assert_eq!(texts("'$HOME; `id`'"), ["$HOME; `id`"]);
    }

    proptest::proptest! {
        #[test]
        fn what_shlex_quotes_is_read_again(text in "[^\\\\\0]{0,30}") {
            let quoted = shlex::try_quote(&text).unwrap();
            proptest::prop_assert_eq!(texts(&quoted), vec![text]);
        }

        #[test]
        fn no_line_is_too_much(line in ".{0,80}") {
            for word in split_shell_words(&line).unwrap_or_default() {
                proptest::prop_assert!(line.get(word.span).is_some());
            }
        }
    }
}
