//! Diagnostics on the screen and as JSON: what, where with a caret, what it means for the fabric,
//! the state that things are in, what to do next. Alike findings of many hosts are one, with the
//! hosts folded.

mod excerpt;
mod fold;

use super::out::{self, ScreenStyle};
use super::wrap::break_words;
use anstyle::{AnsiColor, Style};
use excerpt::Excerpt;
use railwright_base::text::sanitize_text;
use railwright_base::{Diagnostic, Label, Severity};
use railwright_knowledge::spec::Sources;
use schemars::JsonSchema;
use serde::Serialize;

/// The most findings on one screen.
const SHOWN_MAX: usize = 20;

/// Says diagnostics on stderr; nothing where there are none.
pub fn print_diagnostics(diagnostics: &[Diagnostic], sources: &Sources) {
    if !diagnostics.is_empty() {
        let look = ScreenStyle::of_stderr();
        out::print_note(&render_diagnostics(diagnostics, sources, look));
    }
}

/// All findings as text, at most twenty, then how many more there are.
pub fn render_diagnostics(
    diagnostics: &[Diagnostic],
    sources: &Sources,
    look: ScreenStyle,
) -> String {
    let folded = fold::fold_diagnostics(diagnostics);
    let mut parts: Vec<String> = folded
        .iter()
        .take(SHOWN_MAX)
        .map(|diagnostic| render_diagnostic(diagnostic, sources, look))
        .collect();
    if folded.len() > SHOWN_MAX {
        parts.push(format!("and {} more\n", folded.len() - SHOWN_MAX));
    }
    parts.join("\n")
}

/// A finding in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiagnosticDocument {
    /// A code of `docs/codes`.
    code: String,
    severity: Severity,
    /// One sentence.
    message: String,
    /// The file of the first label.
    file: Option<String>,
    /// Its line, from 1.
    line: Option<u32>,
    /// Its column in characters, from 1.
    column: Option<u32>,
    /// Places in files.
    labels: Vec<FindingLabel>,
    /// Target and step.
    subject: Option<String>,
    /// What it means for the fabric.
    effect: Option<String>,
    /// The state that things are in now.
    state: Option<String>,
    /// Edits or commands that go on from here.
    next: Vec<String>,
    /// Where the fact behind it is stated.
    source: Option<String>,
}

/// A place in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingLabel {
    file: String,
    line: Option<u32>,
    column: Option<u32>,
    end_line: Option<u32>,
    end_column: Option<u32>,
    /// The text for that place.
    text: String,
}

/// All findings for JSON, each with its code, its first place as file, line and column, and every
/// label.
pub fn build_diagnostic_documents(
    diagnostics: &[Diagnostic],
    sources: &Sources,
) -> Vec<DiagnosticDocument> {
    diagnostics
        .iter()
        .map(|diagnostic| build_diagnostic_document(diagnostic, sources))
        .collect()
}

fn build_diagnostic_document(diagnostic: &Diagnostic, sources: &Sources) -> DiagnosticDocument {
    let labels: Vec<FindingLabel> = diagnostic
        .labels
        .iter()
        .map(|label| build_finding_label(label, sources))
        .collect();
    let first = labels.first();
    DiagnosticDocument {
        code: diagnostic.code.to_string(),
        severity: diagnostic.severity,
        message: diagnostic.message.clone(),
        file: first.map(|label| label.file.clone()),
        line: first.and_then(|label| label.line),
        column: first.and_then(|label| label.column),
        subject: diagnostic.subject.clone(),
        effect: diagnostic.effect.clone(),
        state: diagnostic.state.clone(),
        next: diagnostic.next.clone(),
        source: diagnostic.source.clone(),
        labels,
    }
}

fn build_finding_label(label: &Label, sources: &Sources) -> FindingLabel {
    let source = sources.get(&label.file);
    let start = source.map(|source| source.line_column(label.span.start));
    let end = source.map(|source| source.line_column(label.span.end));
    let ((line, column), (end_line, end_column)) = (start.unzip(), end.unzip());
    FindingLabel {
        file: label.file.clone(),
        line,
        column,
        end_line,
        end_column,
        text: label.text.clone(),
    }
}

fn render_diagnostic(diagnostic: &Diagnostic, sources: &Sources, look: ScreenStyle) -> String {
    let (word, color) = match diagnostic.severity {
        Severity::Error => ("error", AnsiColor::Red),
        Severity::Warning => ("warning", AnsiColor::Yellow),
    };
    let style = if look.color {
        Style::new().bold().fg_color(Some(color.into()))
    } else {
        Style::new()
    };
    // What is quoted begins no line of its own: programs that read a log act on what stands in the
    // first column.
    let mut lines = Vec::new();
    let mut column = word.len() + diagnostic.code.len() + 3;
    for line in sanitize_text(&diagnostic.message).lines() {
        lines.push(break_words(
            line.split_whitespace(),
            column,
            TEXT_COLUMN,
            look.width,
        ));
        column = TEXT_COLUMN;
    }
    let message = lines.join(&format!("\n{}", " ".repeat(TEXT_COLUMN)));
    let mut out = format!("{style}{word} {}{style:#}: {message}\n", diagnostic.code);
    let (shown, elsewhere) = Excerpt::split(diagnostic, sources);
    if let Some(excerpt) = shown {
        out.push_str(&excerpt.render(diagnostic.severity, look));
    }
    let fields: [(&str, &[String]); 6] = [
        ("also", &elsewhere),
        ("on", diagnostic.subject.as_slice()),
        ("effect", diagnostic.effect.as_slice()),
        ("state", diagnostic.state.as_slice()),
        ("next", &diagnostic.next),
        ("source", diagnostic.source.as_slice()),
    ];
    for (label, texts) in fields {
        for text in texts {
            out.push_str(&format_labelled_line(label, &sanitize_text(text), look));
        }
    }
    out
}

/// `  effect: text`, wrapped at words, further lines under the text.
fn format_labelled_line(label: &str, text: &str, look: ScreenStyle) -> String {
    let style = if look.color {
        Style::new().bold()
    } else {
        Style::new()
    };
    let blank = " ".repeat(TEXT_COLUMN.saturating_sub(label.len() + 3));
    format!(
        "  {style}{label}{style:#}:{blank}{}\n",
        break_words(
            text.split_whitespace(),
            TEXT_COLUMN,
            TEXT_COLUMN,
            look.width
        )
    )
}

/// Where text begins below a message.
const TEXT_COLUMN: usize = 10;

#[cfg(test)]
mod tests;
