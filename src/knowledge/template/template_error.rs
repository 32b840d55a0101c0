//! What is said of a template that cannot be read or filled in, or makes too much, at the place in
//! the author's file.

use super::counted::{self, CountedTemplate};
use super::output_limit;
use super::snippet::Snippet;
use super::token::{self, TemplateReadError};
use crate::spec::yaml::YamlDocument;
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use std::ops::Range;
use tera::ErrorKind;

pub(super) fn new_unusable_template_error(
    snippet: &Snippet,
    document: &YamlDocument,
    message: String,
) -> Diagnostic {
    let (file, span) = snippet.place(document, &(0..snippet.text().len()));
    Diagnostic::error("RW0204", "a template cannot be used").at(file, span, message)
}

/// A template that was not read to its end can be neither checked nor counted.
pub(super) fn new_unreadable_template_error(
    snippet: &Snippet,
    document: &YamlDocument,
    at: usize,
    why: TemplateReadError,
) -> Diagnostic {
    let (file, span) = snippet.place(document, &(at..(at + 2).min(snippet.text().len())));
    let label = match why {
        TemplateReadError::TooLong => format!("it has more than {} KiB", token::TEMPLATE_MAX >> 10),
        TemplateReadError::TooManyTags => format!(
            "more than {} outputs and tags stand in it, up to here",
            token::TAGS_MAX
        ),
        TemplateReadError::TooDeep => format!(
            "`if`, `elif`, `for` or brackets are open here more than {} deep",
            token::DEPTH_MAX
        ),
        TemplateReadError::Malformed => "what comes from here on cannot be checked".to_owned(),
    };
    let diagnostic = Diagnostic::error("RW0204", "a template cannot be read").at(file, span, label);
    if why == TemplateReadError::Malformed {
        diagnostic
    } else {
        diagnostic.next("divide it into several files, or bring what is large with a package")
    }
}

pub(super) fn new_size_limit_error((file, span): (String, Range<usize>)) -> Diagnostic {
    Diagnostic::error("RW0217", "a template makes too much")
        .at(file, span, output_limit::TOO_MUCH)
        .effect("railwright would run out of memory, or a host out of space")
        .next(
            "take out the loop or filter that repeats the text; bring what is large with a package",
        )
}

/// Tera tells the byte of what counted; it is the loop or output around it that works too much.
pub(super) fn new_work_limit_error(
    snippet: &Snippet,
    document: &YamlDocument,
    error: &tera::Error,
    reason: &str,
) -> Diagnostic {
    let part = match error.kind() {
        ErrorKind::RenderingError(report) => in_template(snippet, &report.span().range),
        _ => 0..0,
    };
    let part = counted::piece_around(snippet.text(), part.start).unwrap_or(part);
    let (file, span) = snippet.place(document, &part);
    Diagnostic::error("RW0217", "a template makes too much")
        .at(file, span, reason)
        .effect("railwright would work on it for minutes or without end")
        .next("take out the loop within a loop, or the filter that is taken in every turn")
}

/// The bytes of the template that Tera means.
fn in_template(snippet: &Snippet, part: &Range<usize>) -> Range<usize> {
    CountedTemplate::of(snippet.text()).place(part)
}

pub(super) fn diagnose_tera_error(
    snippet: &Snippet,
    document: &YamlDocument,
    error: &tera::Error,
) -> Diagnostic {
    match error.kind() {
        ErrorKind::RenderingError(report) if report.message().contains(output_limit::TOO_MUCH) => {
            new_size_limit_error(
                snippet.place(document, &in_template(snippet, &report.span().range)),
            )
        }
        ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
            let (file, span) = snippet.place(document, &in_template(snippet, &report.span().range));
            let what = if matches!(error.kind(), ErrorKind::SyntaxError(_)) {
                "a template cannot be read"
            } else {
                "a template cannot be filled in"
            };
            Diagnostic::error("RW0204", what).at(file, span, one_line(report.message(), 200))
        }
        other => new_unusable_template_error(snippet, document, one_line(&other.to_string(), 200)),
    }
}

/// More is made than all may make together: `place` is what made it.
pub fn too_much_kept((file, span): (String, Range<usize>)) -> Diagnostic {
    Diagnostic::error("RW0217", "a template makes too much")
        .at(
            file,
            span,
            "with this, the modules make more than all of them may make together",
        )
        .effect("railwright would run out of memory")
        .next("take out the loop that repeats it; bring what is large with a package")
}
