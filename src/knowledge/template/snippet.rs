//! One template of a module's author: the text that Tera is given, and the way back from its bytes
//! to those in the author's file.

use super::names::{TemplatePathUse, TemplateProblem};
use super::token;
use crate::spec::source::SourceText;
use crate::spec::yaml::{NodeId, YamlDocument};
use railwright_base::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// Where the text of a template stands.
#[derive(Debug, Clone)]
pub enum TemplateOrigin {
    /// A value of `module.yaml`.
    Manifest(NodeId),
    /// A file of its own.
    File(Arc<SourceText>),
}

/// What a template makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// Text, values as they are.
    Text,
    /// POSIX sh: every value becomes one quoted word.
    Shell,
    /// The value of one expression, with its type.
    Value,
    /// True or false.
    Condition,
}

/// One compiled template: its name in the engine, and how to find its bytes in the author's file
/// again.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// The name in the engine.
    pub name: String,
    /// What it makes.
    pub makes: Makes,
    /// The paths of the context that it uses; filled by the lint.
    pub uses: Vec<TemplatePathUse>,
    /// The lint found something: Tera need not say it again.
    pub faulty: bool,
    origin: TemplateOrigin,
    /// The template: the author's text, or the expression wrapped. Tera is given it with what
    /// counts its work.
    text: String,
    /// Bytes that were put before the author's expression.
    before: usize,
    /// The expression within the author's text.
    inner: Range<usize>,
}

impl Snippet {
    /// The template of a text: one that is exactly one expression keeps its type, unless it is
    /// shell.
    pub fn new(name: &str, text: &str, origin: TemplateOrigin, makes: Makes) -> Self {
        let whole = 0..text.len();
        let (name, text, before, inner, makes) = match makes {
            Makes::Shell => (format!("{name}.sh"), text.to_owned(), 0, whole, makes),
            Makes::Text => match token::sole_expression(text) {
                Some(inner) => (
                    name.to_owned(),
                    format!("{{{{({})|_value}}}}", &text[inner.clone()]),
                    3,
                    inner,
                    Makes::Value,
                ),
                None => (name.to_owned(), text.to_owned(), 0, whole, makes),
            },
            Makes::Value => (
                name.to_owned(),
                format!("{{{{({text})|_value}}}}"),
                3,
                whole,
                makes,
            ),
            Makes::Condition => (
                name.to_owned(),
                format!("{{% if ({text}) %}}1{{% endif %}}"),
                7,
                whole,
                makes,
            ),
        };
        Snippet {
            name,
            makes,
            uses: Vec::new(),
            faulty: false,
            origin,
            text,
            before,
            inner,
        }
    }

    /// The template of a text that always makes text: for what is written to a file.
    pub fn verbatim(name: &str, text: &str, origin: TemplateOrigin) -> Self {
        let inner = 0..text.len();
        Snippet {
            name: name.to_owned(),
            makes: Makes::Text,
            uses: Vec::new(),
            faulty: false,
            origin,
            text: text.to_owned(),
            before: 0,
            inner,
        }
    }

    /// The template: the author's text, or the expression wrapped.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file and the bytes in it that belong to a part of the template.
    pub fn place(&self, document: &YamlDocument, part: &Range<usize>) -> (String, Range<usize>) {
        let mut part = self.place_in_text(part.start)..self.place_in_text(part.end);
        if part.is_empty() {
            // Tera means what we put around the expression: the expression it is.
            part = self.inner.clone();
        }
        match &self.origin {
            TemplateOrigin::Manifest(node) => (
                document.source().name().to_owned(),
                within_scalar(document, *node, part),
            ),
            TemplateOrigin::File(source) => (source.name().to_owned(), part),
        }
    }

    /// The byte of the author's text that belongs to one of the template.
    fn place_in_text(&self, at: usize) -> usize {
        let at = self.inner.start + at.saturating_sub(self.before);
        at.clamp(self.inner.start, self.inner.end)
    }

    /// A problem of the lint as a diagnostic.
    pub fn diagnostic(&self, document: &YamlDocument, problem: &TemplateProblem) -> Diagnostic {
        let (file, span) = self.place(document, &problem.span);
        let diagnostic = Diagnostic::error(problem.code, problem.message.clone()).at(
            file,
            span,
            problem.fix.clone().unwrap_or_default(),
        );
        match problem.code {
            "RW0203" => diagnostic.effect(
                "Tera would take it for false or stop in the middle, and a resource would be missing \
                 without a word",
            ),
            _ => diagnostic,
        }
    }
}

/// The bytes of a part of a scalar's text. A block (`|`) stands in the file line by line, each
/// behind its indentation.
fn within_scalar(document: &YamlDocument, node: NodeId, part: Range<usize>) -> Range<usize> {
    let (source, whole, text) = (document.source(), document.span(node), document.text(node));
    let found = document.span_within(node, part.clone());
    let before = text.get(..part.start).unwrap_or_default();
    if found != whole || !text.contains('\n') {
        return found;
    }
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line_text = text[line_start..].lines().next().unwrap_or_default();
    let line = source.line_span(source.line_of(whole.start) + before.matches('\n').count());
    match source
        .text()
        .get(line.clone())
        .and_then(|there| there.find(line_text))
    {
        Some(indentation) => {
            let start = line.start + indentation + part.start - line_start;
            start..(start + part.len()).min(line.end)
        }
        None => whole,
    }
}
