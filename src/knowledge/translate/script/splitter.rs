//! The text of a script split at the separators of the shell: quotes, comments, redirections and
//! here-documents are followed, and nothing is expanded.

use super::ScriptPiece;
use std::collections::VecDeque;

/// Walks over a script character by character.
pub(super) struct ScriptSplitter<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    pieces: Vec<ScriptPiece>,
    text: String,
    begin: usize,
    piped: bool,
    documents: VecDeque<String>,
}

impl<'a> ScriptSplitter<'a> {
    pub(super) fn new(script: &'a str) -> Self {
        let rest = script.chars().peekable();
        ScriptSplitter {
            rest,
            line: 1,
            pieces: Vec::new(),
            text: String::new(),
            begin: 1,
            piped: false,
            documents: VecDeque::new(),
        }
    }

    pub(super) fn pieces(mut self) -> Vec<ScriptPiece> {
        let mut quote = None;
        while let Some(c) = self.next() {
            match (quote, c) {
                (_, '\r') => {}
                (Some(open), c) => {
                    if c == '\\' && open == '"' {
                        self.text.push(c);
                        let escaped = self.next();
                        self.text.extend(escaped);
                    } else {
                        self.text.push(c);
                        quote = (c != open).then_some(open);
                    }
                }
                (None, '\'' | '"') => {
                    self.text.push(c);
                    quote = Some(c);
                }
                (None, c) => self.plain(c),
            }
        }
        self.end(false);
        self.pieces
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn eat(&mut self, desired: char) -> bool {
        let there = self.rest.peek() == Some(&desired);
        if there {
            self.next();
        }
        there
    }

    fn at_word_start(&self) -> bool {
        self.text
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    }

    /// A character outside quotes.
    fn plain(&mut self, c: char) {
        match c {
            '\\' => match self.next() {
                Some('\n') => self.text.push(' '),
                Some('\r') if self.eat('\n') => self.text.push(' '),
                Some(escaped) => self.text.extend(['\\', escaped]),
                None => {}
            },
            '\n' => {
                self.end(false);
                self.bodies();
            }
            '#' if self.at_word_start() => while self.rest.next_if(|c| *c != '\n').is_some() {},
            ';' | '(' | ')' => self.end(false),
            '|' => {
                let either = self.eat('|');
                self.end(!either);
            }
            '&' if self.rest.peek() == Some(&'>') => self.redirect("&"),
            '&' => {
                self.eat('&');
                self.end(false);
            }
            '>' => {
                let number = number_before(&mut self.text);
                self.text.push(' ');
                self.text.extend(number);
                self.arrows();
            }
            '<' if self.eat('<') => self.document(),
            '$' if self.rest.peek() == Some(&'(') => self.substitution(),
            '`' => self.backticks(),
            c => self.text.push(c),
        }
    }

    fn redirect(&mut self, before: &str) {
        self.next();
        self.text.push(' ');
        self.text.push_str(before);
        self.arrows();
    }

    /// The rest of a redirection after its first `>`.
    fn arrows(&mut self) {
        self.text.push('>');
        if self.eat('>') {
            self.text.push('>');
        }
        if self.eat('&') {
            self.text.push('&');
            while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
                self.text.push(digit);
            }
        }
        self.text.push(' ');
    }

    /// `$(...)` as one word, whatever is in it.
    fn substitution(&mut self) {
        let mut raw = "$".to_owned();
        let mut depth = 0usize;
        while let Some(c) = self.next() {
            raw.push(c);
            depth = match c {
                '(' => depth + 1,
                ')' => depth.saturating_sub(1),
                _ => depth,
            };
            if depth == 0 {
                break;
            }
        }
        self.quoted(&raw);
    }

    fn backticks(&mut self) {
        let mut raw = "`".to_owned();
        while let Some(c) = self.next() {
            raw.push(c);
            if c == '`' {
                break;
            }
        }
        self.quoted(&raw);
    }

    fn quoted(&mut self, raw: &str) {
        let raw = raw.replace('\0', "");
        if let Ok(quoted) = shlex::try_quote(&raw) {
            self.text.push_str(&quoted);
        }
    }

    /// `<<WORD`: lines up to WORD belong to this command. `<<<` is none.
    fn document(&mut self) {
        if self.eat('<') {
            self.text.push_str(" <<< ");
            return;
        }
        self.eat('-');
        while self.rest.next_if(|c| *c == ' ').is_some() {}
        let mut word = String::new();
        while let Some(c) = self
            .rest
            .next_if(|c| !c.is_whitespace() && !"|&;<>()".contains(*c))
        {
            word.push(c);
        }
        let word = word.replace(['\'', '"', '\\'], "");
        if !word.is_empty() {
            self.documents.push_back(word);
        }
    }

    /// The here-documents that begin with this line.
    fn bodies(&mut self) {
        while let Some(end) = self.documents.pop_front() {
            let mut body = Vec::new();
            while self.rest.peek().is_some() {
                let (number, mut text) = (self.line, String::new());
                while let Some(c) = self.next().filter(|c| *c != '\n') {
                    text.push(c);
                }
                if text.trim() == end {
                    break;
                }
                body.push((number, text));
            }
            if let Some(piece) = self.pieces.last_mut() {
                piece.body.extend(body);
            }
        }
        self.begin = self.line;
    }

    /// The piece is over; `piped` says whether the next one reads what it writes.
    fn end(&mut self, piped: bool) {
        let text = std::mem::take(&mut self.text);
        let piece = ScriptPiece {
            line: self.begin,
            text,
            piped: self.piped,
            body: Vec::new(),
        };
        self.begin = self.line;
        if !piece.text.trim().is_empty() {
            self.pieces.push(piece);
            self.piped = piped;
        }
    }
}

/// Takes the number of a redirection off the end, where it stands right before it: `2>`.
fn number_before(text: &mut String) -> Option<char> {
    let mut last = text.chars().rev();
    let digit = last.next().filter(char::is_ascii_digit)?;
    if last.next().is_some_and(|c| !c.is_whitespace()) {
        return None;
    }
    text.pop();
    Some(digit)
}
