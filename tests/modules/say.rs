//! Diagnostics as plain lines: code, message, file:line:column, the line with its caret, what to
//! do.

use railwright_base::Diagnostic;
use railwright_knowledge::spec::Sources;

/// All of them.
pub fn all(diagnostics: &[Diagnostic], sources: &[&Sources]) -> String {
    diagnostics
        .iter()
        .map(|diagnostic| one(diagnostic, sources))
        .collect()
}

fn one(diagnostic: &Diagnostic, sources: &[&Sources]) -> String {
    let mut out = format!("{} {}\n", diagnostic.code, diagnostic.message);
    for label in &diagnostic.labels {
        let Some(source) = sources.iter().find_map(|sources| sources.get(&label.file)) else {
            panic!("no source named {}: {diagnostic:?}", label.file);
        };
        let (line, column) = source.line_column(label.span.start);
        let text = &source.text()[source.line_span(line as usize - 1)];
        let width = source.text()[label.span.clone()]
            .chars()
            .take_while(|c| *c != '\n')
            .count()
            .max(1);
        out.push_str(&format!(
            "  {}:{line}:{column}\n  | {text}\n  | {}{} {}\n",
            label.file,
            " ".repeat(column as usize - 1),
            "^".repeat(width),
            label.text
        ));
    }
    for (word, text) in [
        ("on", &diagnostic.subject),
        ("effect", &diagnostic.effect),
        ("state", &diagnostic.state),
    ] {
        out.extend(text.iter().map(|text| format!("  {word}: {text}\n")));
    }
    out.extend(
        diagnostic
            .next
            .iter()
            .map(|text| format!("  next: {text}\n")),
    );
    out
}
