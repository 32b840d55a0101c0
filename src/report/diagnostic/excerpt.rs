//! The lines of a file around a finding, with carets, drawn by miette. Our own source gives it
//! these lines only: its built-in one scans the file from the start for every label.

use crate::out::ScreenStyle;
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};
use railwright_base::text::{clean_line, one_line, orders};
use railwright_base::{Diagnostic, Label, Severity};
use railwright_knowledge::spec::{SourceText, Sources};
use std::fmt;
use std::ops::Range;
use unicode_width::UnicodeWidthChar as _;

/// Labels further than this from the first one are named by line instead of drawn.
const LINES_MAX: usize = 12;
/// Longer lines are cut around the caret, in bytes.
const LINE_LENGTH_MAX: usize = 160;
/// So are lines with a caret that ends further to the right, so that it is never where a screen has
/// no columns.
const CARET_MAX: usize = 86;
/// The bytes of a line that is cut.
const CUT: usize = 80;

/// A part of a file with its labels.
#[derive(Debug)]
pub struct Excerpt<'a> {
    source: &'a SourceText,
    /// The bytes of the file that are shown, and their text with control characters made harmless.
    range: Range<usize>,
    data: String,
    labels: Vec<(Range<usize>, String)>,
}

impl<'a> Excerpt<'a> {
    /// What can be drawn around the first label, and the other labels in words.
    pub fn split(
        diagnostic: &Diagnostic,
        sources: &'a Sources,
    ) -> (Option<Excerpt<'a>>, Vec<String>) {
        let Some(first) = diagnostic.labels.first() else {
            return (None, Vec::new());
        };
        let Some(source) = sources.get(&first.file) else {
            return (
                None,
                diagnostic
                    .labels
                    .iter()
                    .map(|label| describe_label(label, sources))
                    .collect(),
            );
        };
        let (drawn, elsewhere): (Vec<&Label>, Vec<&Label>) = diagnostic
            .labels
            .iter()
            .partition(|label| std::ptr::eq(*label, first) || is_near(source, first, label));
        let excerpt = Excerpt::around(source, &drawn);
        (
            Some(excerpt),
            elsewhere
                .into_iter()
                .map(|label| describe_label(label, sources))
                .collect(),
        )
    }

    fn around(source: &'a SourceText, labels: &[&Label]) -> Excerpt<'a> {
        let lines = labels.iter().map(|label| source.line_of(label.span.start));
        let (top, bottom) = lines.fold((usize::MAX, 0), |(top, bottom), line| {
            (top.min(line), bottom.max(line))
        });
        let first = source.line_span(top);
        let is_far = labels[0]
            .span
            .end
            .min(first.end)
            .saturating_sub(first.start)
            > CARET_MAX;
        let range = if first.len() > LINE_LENGTH_MAX || (is_far && top == bottom) {
            cut_around(source, top, labels[0].span.start)
        } else {
            let above = match top.checked_sub(1) {
                Some(above) if is_short_line(source, above) => above,
                _ => top,
            };
            let has_below = bottom + 1 < source.line_count() && is_short_line(source, bottom + 1);
            let below = if has_below { bottom + 1 } else { bottom };
            source.line_span(above).start..source.line_span(below).end
        };
        let labels = labels
            .iter()
            .map(|label| clip_label(source, &range, label))
            .collect();
        let data = replace_control_characters(&source.text()[range.clone()]);
        Excerpt {
            source,
            range,
            data,
            labels,
        }
    }

    /// The lines with their carets.
    pub fn render(&self, severity: Severity, look: ScreenStyle) -> String {
        let theme = if look.color {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(look.width)
            .with_links(false);
        let mut out = String::new();
        // Drawing into a string cannot fail; were it to, the finding's words still stand above.
        let drawn = handler
            .render_report(
                &mut out,
                &ExcerptDiagnostic {
                    excerpt: self,
                    severity,
                },
            )
            .is_ok();
        // The first line is miette's own heading, empty here, because ours holds the code and the
        // message.
        let body = out
            .split_once('\n')
            .map_or("", |(_, body)| body)
            .trim_end_matches('\n');
        let body: String = body
            .lines()
            .map(|line| clip_line(line, look.width) + "\n")
            .collect();
        if drawn { body } else { String::new() }
    }
}

/// Whether a label can be drawn beside the first one: in its file, few and short lines away.
fn is_near(source: &SourceText, first: &Label, label: &Label) -> bool {
    let home = source.line_of(first.span.start);
    let line = source.line_of(label.span.start);
    label.file == first.file
        && line.abs_diff(home) <= LINES_MAX
        && (line.min(home)..=line.max(home)).all(|line| is_short_line(source, line))
}

fn is_short_line(source: &SourceText, line: usize) -> bool {
    source.line_span(line).len() <= LINE_LENGTH_MAX
}

fn clip_label(source: &SourceText, range: &Range<usize>, label: &Label) -> (Range<usize>, String) {
    let line_end = source
        .line_span(source.line_of(label.span.start))
        .end
        .min(range.end);
    let start = label.span.start.clamp(range.start, line_end);
    (
        start..label.span.end.clamp(start, line_end),
        one_line(&label.text, 200),
    )
}

/// A line of the file in a drawing, cut where the screen ends; what only colours it takes no
/// column. Words below a line stay.
fn clip_line(line: &str, width: usize) -> String {
    let mut is_colour = false;
    let mut shown = String::new();
    let (mut taken, mut fits) = (0, 0);
    for (at, c) in line.char_indices() {
        let is_shown = !is_colour && c != '\u{1b}';
        is_colour = (is_colour || c == '\u{1b}') && c != 'm';
        let own = match is_shown {
            true => c.width().unwrap_or_default(),
            false => 0,
        };
        taken += own;
        if taken < width {
            fits = at + c.len_utf8();
        }
        if own > 0 {
            shown.push(c);
        }
    }
    if taken <= width || !shown.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return line.to_owned();
    }
    let end = if line.contains('\u{1b}') {
        "\u{1b}[0m"
    } else {
        ""
    };
    format!("{}…{end}", &line[..fits])
}

fn describe_label(label: &Label, sources: &Sources) -> String {
    let place = sources
        .get(&label.file)
        .map(|source| source.line_column(label.span.start));
    let place = place.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
    format!("{}{place}: {}", clean_line(&label.file), label.text)
}

/// A part of one long line, at character boundaries.
fn cut_around(source: &SourceText, line: usize, offset: usize) -> Range<usize> {
    let span = source.line_span(line);
    let offset = offset.clamp(span.start, span.end);
    let start = find_character_boundary(
        source,
        span.end,
        offset.saturating_sub(CUT / 2).max(span.start),
    );
    let end = find_character_boundary(source, span.end, (offset + CUT / 2).min(span.end));
    start..end.max(start)
}

fn find_character_boundary(source: &SourceText, last: usize, desired: usize) -> usize {
    (desired..=last)
        .find(|at| source.text().is_char_boundary(*at))
        .unwrap_or(last)
}

/// Keeps the number of bytes, without anything that a terminal or the runner of a pipeline obeys.
fn replace_control_characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let turns_text = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => out.push(c),
            // Both are three bytes long, so that the carets stay where they belong.
            _ if turns_text => out.push('\u{fffd}'),
            c if c.is_control() || c == '\u{61c}' => out.push_str(&"?".repeat(c.len_utf8())),
            c => out.push(c),
        }
    }
    orders(text)
        .into_iter()
        .for_each(|place| out.replace_range(place..=place, "?"));
    out
}

impl SourceCode for Excerpt<'_> {
    fn read_span<'s>(
        &'s self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'s> + 's>, MietteError> {
        let (start, end) = (span.offset(), span.offset() + span.len());
        let (first, last) = (
            self.source.line_of(start).saturating_sub(before),
            self.source.line_of(end) + after,
        );
        let from = if before == 0 {
            start
        } else {
            self.source.line_span(first).start.max(self.range.start)
        };
        let until = self
            .source
            .line_span(last.min(self.source.line_count() - 1))
            .end
            .min(self.range.end)
            .max(from);
        let bytes = self
            .data
            .as_bytes()
            .get(from - self.range.start..until - self.range.start)
            .ok_or(MietteError::OutOfBounds)?;
        let (line, column) = self.source.line_column(from);
        let contents = MietteSpanContents::new_named(
            clean_line(self.source.name()),
            bytes,
            (from, until - from).into(),
            line as usize - 1,
            column as usize - 1,
            last - first + 1,
        );
        Ok(Box::new(contents))
    }
}

/// What miette asks for: no words of its own, only the lines and labels.
#[derive(Debug)]
struct ExcerptDiagnostic<'a> {
    excerpt: &'a Excerpt<'a>,
    severity: Severity,
}

impl fmt::Display for ExcerptDiagnostic<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for ExcerptDiagnostic<'_> {}

impl miette::Diagnostic for ExcerptDiagnostic<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self
            .excerpt
            .labels
            .iter()
            .enumerate()
            .map(|(index, (span, text))| {
                let at: SourceSpan = (span.start, span.len()).into();
                if index == 0 {
                    LabeledSpan::new_primary_with_span(Some(text.clone()), at)
                } else {
                    LabeledSpan::new_with_span(Some(text.clone()), at)
                }
            });
        Some(Box::new(labels))
    }
}
