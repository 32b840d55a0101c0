//! Every name that a template uses, checked against the shape of its context. Tera's `if` takes an
//! unknown name for false without a word (seen with 2.4), so a typing error would silently leave a
//! resource out: here it is an error with its place. The language of modules is a part of Tera's:
//! output, `if`, `for`, `set`, `raw`, and a fixed list of filters.

use super::growth;
use super::shape::{ContextShape, EACH};
use super::token::{Placed, TemplatePiece, Token, split_into_pieces};
use railwright_base::suggest;
use std::ops::Range;

/// A path of the context that a template uses, loop variables resolved: `host.rails.*.netdev`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplatePathUse {
    /// The segments; `*` is each element of a list.
    pub path: Vec<String>,
}

/// What is wrong in a template, by bytes of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateProblem {
    /// The code of `docs/codes`.
    pub code: &'static str,
    /// Where.
    pub span: Range<usize>,
    /// What.
    pub message: String,
    /// What to write instead.
    pub fix: Option<String>,
}

/// A name in scope besides the context's own: a loop variable, a `set`.
#[derive(Debug, Clone)]
pub struct Local {
    /// The name.
    pub name: String,
    /// The path of the context that it stands for, if it stands for one.
    pub path: Option<Vec<String>>,
    /// Its shape.
    pub shape: ContextShape,
}

/// Filters that modules may use: Tera's that keep to text, numbers and lists, and ours (`sh`,
/// `json`, `systemd`).
pub const FILTERS: [&str; 34] = [
    "abs",
    "capitalize",
    "default",
    "first",
    "float",
    "get",
    "group_by",
    "indent",
    "int",
    "join",
    "json",
    "keys",
    "last",
    "length",
    "lower",
    "nth",
    "pairs",
    "pluralize",
    "replace",
    "reverse",
    "round",
    "sh",
    "sort",
    "split",
    "str",
    "systemd",
    "title",
    "trim",
    "trim_end",
    "trim_start",
    "truncate",
    "unique",
    "upper",
    "values",
];
const TESTS: [&str; 19] = [
    "array",
    "bool",
    "containing",
    "defined",
    "divisible_by",
    "ending_with",
    "even",
    "float",
    "integer",
    "iterable",
    "map",
    "none",
    "number",
    "odd",
    "starting_with",
    "string",
    "undefined",
    "version_before",
    "whole_number",
];
const FUNCTIONS: [&str; 2] = ["range", "throw"];
const WORDS: [&str; 14] = [
    "and", "or", "not", "in", "if", "else", "none", "None", "null", "true", "True", "false",
    "False", "is",
];

/// The most problems that are reported of one template: with each, names that are near are searched
/// for.
const PROBLEMS_MAX: usize = 100;

/// True for a word of the language, which names nothing.
pub(super) fn is_keyword(word: &str) -> bool {
    WORDS.contains(&word)
}

/// All uses and all problems of one template. `root` is the shape of the context, a map; `locals`
/// are names in scope from outside (the variable of a resource's `for`).
pub fn check_template_names(
    text: &str,
    root: &ContextShape,
    locals: &[Local],
) -> (Vec<TemplatePathUse>, Vec<TemplateProblem>) {
    let mut checker = TemplateNameChecker {
        root,
        scopes: vec![locals.to_vec()],
        uses: Vec::new(),
        problems: Vec::new(),
    };
    for piece in split_into_pieces(text) {
        match piece {
            TemplatePiece::Output(_, words) => checker.check_expression(&words),
            TemplatePiece::Tag(span, words) => checker.check_tag(&span, &words),
            TemplatePiece::Content(_) | TemplatePiece::Comment => {}
        }
    }
    checker.problems.extend(growth::check_text_growth(text));
    checker.uses.sort();
    checker.uses.dedup();
    (checker.uses, checker.problems)
}

struct TemplateNameChecker<'a> {
    root: &'a ContextShape,
    scopes: Vec<Vec<Local>>,
    uses: Vec<TemplatePathUse>,
    problems: Vec<TemplateProblem>,
}

impl TemplateNameChecker<'_> {
    fn report_problem(
        &mut self,
        code: &'static str,
        span: &Range<usize>,
        message: String,
        fix: Option<String>,
    ) {
        self.problems.push(TemplateProblem {
            code,
            span: span.clone(),
            message,
            fix,
        });
    }

    fn check_tag(&mut self, span: &Range<usize>, words: &[Placed]) {
        let Some((Token::Ident(word), _)) = words.first() else {
            return;
        };
        match word.as_str() {
            "if" | "elif" => self.check_expression(&words[1..]),
            "for" => self.open_loop(&words[1..]),
            "endfor" => {
                if self.scopes.len() > 1 {
                    self.scopes.pop();
                }
            }
            "set" | "set_global" => self.bind_name(&words[1..]),
            "else" | "endif" | "endset" | "raw" | "endraw" | "break" | "continue" => {}
            other => self.report_problem(
                "RW0205",
                span,
                format!("`{other}` is not in the language of modules"),
                Some("output, if, for, set and raw are".into()),
            ),
        }
    }

    fn open_loop(&mut self, words: &[Placed]) {
        let split = words
            .iter()
            .position(|(word, _)| word.is_word("in"))
            .unwrap_or(words.len());
        let (variables, rest) = words.split_at(split);
        let rest = rest.get(1..).unwrap_or_default();
        self.check_expression(rest);
        let mut names: Vec<String> = Vec::new();
        for (word, _) in variables {
            if let Token::Ident(name) = word {
                names.push(name.clone());
            }
        }
        let (path, shape) = self.element_of(rest, names.len());
        let counters =
            ["index", "index0", "first", "last", "length"].map(|name| (name, ContextShape::Scalar));
        let mut scope = vec![Local {
            name: "loop".into(),
            path: None,
            shape: ContextShape::map(counters),
        }];
        match names.as_slice() {
            [name] => scope.push(Local {
                name: name.clone(),
                path,
                shape,
            }),
            [key, value] => {
                scope.push(Local {
                    name: key.clone(),
                    path: None,
                    shape: ContextShape::Any,
                });
                scope.push(Local {
                    name: value.clone(),
                    path,
                    shape,
                });
            }
            _ => {}
        }
        self.scopes.push(scope);
    }

    /// What one turn of a loop over this expression sees; known only when the expression is a plain
    /// path.
    fn element_of(&self, words: &[Placed], names: usize) -> (Option<Vec<String>>, ContextShape) {
        let Some((mut path, shape)) = self.plain_path(words) else {
            return (None, ContextShape::Any);
        };
        path.push(EACH.to_owned());
        match shape {
            ContextShape::List(element) => (Some(path), *element),
            ContextShape::Open(value) if names == 2 => (Some(path), *value),
            _ => (Some(path), ContextShape::Any),
        }
    }

    fn plain_path(&self, words: &[Placed]) -> Option<(Vec<String>, ContextShape)> {
        let mut segments = Vec::new();
        for (at, (word, _)) in words.iter().enumerate() {
            match word {
                Token::Ident(name) if at % 2 == 0 => segments.push(name.clone()),
                Token::Symbol("." | "?.") if at % 2 == 1 => {}
                _ => return None,
            }
        }
        let (path, shape) = self.resolve(&segments).ok()?;
        Some((path?, shape))
    }

    fn bind_name(&mut self, words: &[Placed]) {
        let Some((Token::Ident(name), _)) = words.first() else {
            return;
        };
        let value = words
            .iter()
            .position(|(word, _)| word.is("="))
            .map(|at| &words[at + 1..]);
        match value {
            Some(value) => self.check_expression(value),
            // What a block captures counts as quoted already, and a filter could take the quotes
            // off again.
            None => {
                let span = words[0].1.clone();
                self.report_problem(
                    "RW0205",
                    &span,
                    "a `set` block is not in the language of modules".into(),
                    Some("use {% set name = ... %}".into()),
                );
            }
        }
        let (path, shape) = match value.and_then(|value| self.plain_path(value)) {
            Some((path, shape)) => (Some(path), shape),
            None => (None, ContextShape::Any),
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(Local {
                name: name.clone(),
                path,
                shape,
            });
        }
    }

    /// The absolute path (none for a local that is no part of the context) and the shape of a
    /// dotted name.
    fn resolve(
        &self,
        segments: &[String],
    ) -> Result<(Option<Vec<String>>, ContextShape), super::shape::NoSuchName> {
        let first = segments.first().map(String::as_str).unwrap_or_default();
        let mut locals = self.scopes.iter().flatten().rev();
        let Some(local) = locals.find(|local| local.name == first) else {
            return Ok((Some(segments.to_vec()), self.root.at(segments)?.clone()));
        };
        let below = &segments[1..];
        match local.shape.at(below) {
            Ok(shape) => {
                let path = local
                    .path
                    .as_ref()
                    .map(|path| [path.as_slice(), below].concat());
                Ok((path, shape.clone()))
            }
            Err(error) => Err(super::shape::NoSuchName {
                segment: error.segment + 1,
                ..error
            }),
        }
    }

    fn check_expression(&mut self, words: &[Placed]) {
        let mut at = 0;
        while at < words.len() && self.problems.len() < PROBLEMS_MAX {
            at = self.step(words, at);
        }
    }

    /// Takes what stands at `at` and returns where to go on.
    fn step(&mut self, words: &[Placed], at: usize) -> usize {
        let (token, span) = &words[at];
        let next = words.get(at + 1).map(|(word, _)| word);
        match token {
            Token::Symbol("|") => {
                self.check_known_word(words.get(at + 1), &FILTERS, "filter");
                at + 2
            }
            Token::Symbol("." | "?.") => at + 2,
            Token::Ident(word) if word == "is" => {
                let test = if next.is_some_and(|word| word.is_word("not")) {
                    at + 2
                } else {
                    at + 1
                };
                self.check_known_word(words.get(test), &TESTS, "test");
                test + 1
            }
            Token::Ident(word) if word == "for" => {
                self.report_problem(
                    "RW0205",
                    span,
                    "a list comprehension is not in the language of modules".into(),
                    Some("use {% for %}".into()),
                );
                words.len()
            }
            Token::Ident(word) if is_keyword(word) => at + 1,
            Token::Ident(_) if next.is_some_and(|word| word.is("(")) => {
                self.check_known_word(words.get(at), &FUNCTIONS, "function");
                at + 1
            }
            Token::Ident(_) if next.is_some_and(|word| word.is("=") || word.is(":")) => at + 2,
            Token::Ident(_) => self.take_name(words, at),
            _ => at + 1,
        }
    }

    fn check_known_word(&mut self, word: Option<&Placed>, known: &[&str], what: &str) {
        let Some((Token::Ident(word), span)) = word else {
            return;
        };
        if known.contains(&word.as_str()) || word == super::filters::VALUE_FILTER {
            return;
        }
        let message = match word.as_str() {
            "safe" => "`safe` would let a value reach a shell unquoted, so modules cannot use it"
                .to_owned(),
            _ => format!("there is no {what} `{word}` in the language of modules"),
        };
        let fix = suggest::find_nearest_word(word, known.iter().copied())
            .map(|near| format!("did you mean `{near}`?"));
        let span = span.clone();
        self.report_problem("RW0205", &span, message, fix);
    }

    /// A dotted name, with subscripts; then what it is compared with.
    fn take_name(&mut self, words: &[Placed], start: usize) -> usize {
        let mut segments: Vec<(String, Range<usize>)> = Vec::new();
        if let (Token::Ident(name), span) = &words[start] {
            segments.push((name.clone(), span.clone()));
        }
        let mut at = start + 1;
        loop {
            match words.get(at).map(|(word, _)| word) {
                Some(Token::Symbol("." | "?.")) => match words.get(at + 1) {
                    Some((Token::Ident(name), span)) => {
                        segments.push((name.clone(), span.clone()));
                        at += 2;
                    }
                    _ => break,
                },
                Some(Token::Symbol("[" | "?[")) => {
                    let close = find_closing_bracket(words, at);
                    let inner = words.get(at + 1..close).unwrap_or_default();
                    let span = inner
                        .first()
                        .map_or(words[at].1.clone(), |(_, span)| span.clone());
                    match inner {
                        [(Token::Text(key), _)] => segments.push((key.clone(), span)),
                        _ => {
                            self.check_expression(inner);
                            segments.push((EACH.to_owned(), span));
                        }
                    }
                    at = close + 1;
                }
                _ => break,
            }
        }
        if let Some(shape) = self.resolve_name(&segments) {
            self.check_compared_words(words, at, &shape);
        }
        at
    }

    fn resolve_name(&mut self, segments: &[(String, Range<usize>)]) -> Option<ContextShape> {
        let names: Vec<String> = segments.iter().map(|(name, _)| name.clone()).collect();
        let error = match self.resolve(&names) {
            Ok((path, shape)) => {
                self.uses.extend(path.map(|path| TemplatePathUse { path }));
                return Some(shape);
            }
            Err(error) => error,
        };
        let (wrong, span) = segments.get(error.segment)?;
        let before = names[..error.segment].join(".");
        let message = match (before.is_empty(), error.known.is_empty()) {
            (true, _) => format!("there is no `{wrong}` here"),
            (false, false) => format!("`{before}` has no `{wrong}`"),
            (false, true) => format!("`{before}` is a plain value: nothing is below it"),
        };
        let mut known: Vec<&str> = error.known.iter().map(String::as_str).collect();
        if error.segment == 0 {
            for local in self.scopes.iter().flatten() {
                known.push(&local.name);
            }
        }
        let fix = match suggest::find_nearest_word(wrong, known.iter().copied()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if known.is_empty() => None,
            None => Some(format!("there are: {}", known.join(", "))),
        };
        self.report_problem("RW0203", span, message, fix);
        None
    }

    /// `fabric.kind == "rocev3"` would be false for ever: words that a choice does not have are
    /// errors.
    fn check_compared_words(&mut self, words: &[Placed], at: usize, shape: &ContextShape) {
        let ContextShape::Choice(choices) = shape else {
            return;
        };
        for (token, span) in list_compared_words(words, at) {
            let Token::Text(word) = token else { continue };
            if choices.contains(word) {
                continue;
            }
            let names = choices.iter().map(String::as_str);
            let fix = match suggest::find_nearest_word(word, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it is one of: {}", choices.join(", ")),
            };
            let message = format!("this is never `{word}`");
            self.report_problem("RW0203", span, message, Some(fix));
        }
    }
}

/// The words behind `==` or `!=`, or in the list behind `in` or `not in`.
fn list_compared_words(words: &[Placed], at: usize) -> &[Placed] {
    let open = match words.get(at) {
        Some((Token::Symbol("==" | "!="), _)) => {
            return words.get(at + 1..at + 2).unwrap_or_default();
        }
        Some((Token::Ident(word), _)) if word == "in" => at + 1,
        Some((Token::Ident(word), _)) if word == "not" => at + 2,
        _ => return &[],
    };
    if !words.get(open).is_some_and(|(word, _)| word.is("[")) {
        return &[];
    }
    let close = find_closing_bracket(words, open);
    words.get(open + 1..close).unwrap_or_default()
}

/// The index of the bracket that closes the one at `open`, or the end.
pub(super) fn find_closing_bracket(words: &[Placed], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, (word, _)) in words.iter().enumerate().skip(open) {
        match word {
            Token::Symbol("(" | "[" | "{" | "?[") => depth += 1,
            Token::Symbol(")" | "]" | "}") => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    words.len()
}

#[cfg(test)]
mod tests;
