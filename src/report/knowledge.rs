//! The screens of what is known: the catalogue's entries, the rules, and the long text of a rule.

use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::Severity;
use railwright_base::text::{format_count, one_line, sanitize_text};
use railwright_knowledge::catalog::{CatalogTable, CategoryEntry};
use railwright_knowledge::rules::{Rule, RuleSet, RulesReport, WaivedFinding};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most columns of a cell in a list of entries.
const CELL: usize = 26;

/// All entries of a category: a line each, the name and what distinguishes it.
pub fn render_catalog_table<R: CategoryEntry + Serialize>(
    table: &CatalogTable<R>,
    columns: &[&str],
) -> String {
    let mut lines: Vec<(String, Vec<String>)> = table
        .entries()
        .map(|entry| {
            (
                entry.content.identity(),
                format_entry_cells(&entry.content, columns),
            )
        })
        .collect();
    lines.sort();
    let head: Vec<String> = columns
        .iter()
        .map(|column| column.replace('_', " "))
        .collect();
    let longest_name = lines.iter().map(|(name, _)| name.chars().count()).max();
    let name_width = longest_name.unwrap_or(0).max(4);
    let widths = fit_column_widths(&head, &lines, COLUMNS.saturating_sub(name_width));
    let mut out = format_table_line(R::KEY, &head, name_width, &widths);
    for (name, cells) in &lines {
        out.push_str(&format_table_line(name, cells, name_width, &widths));
    }
    sanitize_text(&format!(
        "{out}\n{}. One in full: railwright catalog {} NAME\n",
        format_count(lines.len(), "entry"),
        R::KEY
    ))
}

fn format_entry_cells<R: CategoryEntry + Serialize>(entry: &R, columns: &[&str]) -> Vec<String> {
    let fields = serde_json::to_value(entry).unwrap_or_default();
    let mut cells = Vec::new();
    for column in columns {
        cells.push(match fields.get(*column) {
            Some(value) => format_entry_field(entry, column, value),
            None => String::new(),
        });
    }
    cells
}

fn format_table_line(name: &str, cells: &[String], name_width: usize, widths: &[usize]) -> String {
    let mut line = format!("{name:<name_width$}");
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(&format!("  {:<width$}", one_line(cell, *width)));
    }
    line.trim_end().to_owned() + "\n"
}

/// The widths of the columns, as far as there is room left for them.
fn fit_column_widths(
    head: &[String],
    lines: &[(String, Vec<String>)],
    mut left: usize,
) -> Vec<usize> {
    let mut widths = Vec::new();
    for (at, title) in head.iter().enumerate() {
        let mut widest = title.chars().count();
        for (_, cells) in lines {
            widest = widest.max(cells[at].chars().count());
        }
        let width = widest.min(CELL).min(left.saturating_sub(2));
        widths.push(width);
        left = left.saturating_sub(width + 2);
    }
    widths
}

/// How much there is of what.
pub fn render_knowledge_counts(counts: &[(&str, usize)]) -> String {
    counts
        .iter()
        .map(|(what, count)| format!("  {what:<32} {count:>5}\n"))
        .collect()
}

/// One entry in full.
pub fn render_catalog_entry<R: CategoryEntry + Serialize>(entry: &R, place: &str) -> String {
    let mut out = format!("{} {}   {place}\n", R::KEY, entry.identity());
    if let Ok(Value::Object(fields)) = serde_json::to_value(entry) {
        for (key, value) in fields.iter().filter(|(key, _)| key.as_str() != "name") {
            out.push_str(&wrap_labelled_text(
                &format!("  {:<18} ", key.replace('_', " ")),
                &format_entry_field(entry, key, value),
                COLUMNS,
            ));
        }
    }
    sanitize_text(&out)
}

/// One entry in a line: what distinguishes it.
pub fn entry_in_short<R: CategoryEntry + Serialize>(entry: &R) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(entry) else {
        return String::new();
    };
    let left_out = ["name", "aliases", "source", "note", "pci_ids"];
    let mut shown = Vec::new();
    for (key, value) in &fields {
        if !left_out.contains(&key.as_str()) && *value != Value::Bool(false) {
            let key = key.replace('_', " ");
            shown.push(format!("{key} {}", format_value_words(value)));
        }
    }
    shown.join("; ")
}

/// A field of an entry in words.
fn format_entry_field<R: CategoryEntry>(entry: &R, key: &str, value: &Value) -> String {
    entry
        .in_words(key)
        .unwrap_or_else(|| format_value_words(value))
}

/// A value in words: lists without brackets, `yes` and `no`.
fn format_value_words(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items
            .iter()
            .map(format_value_words)
            .collect::<Vec<_>>()
            .join(", "),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| format!("{key}={}", format_value_words(value)))
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    }
}

/// All rules, family by family, a line each.
pub fn render_rule_list(set: &RuleSet) -> String {
    let mut families: BTreeMap<&str, Vec<&Rule>> = BTreeMap::new();
    for rule in set.rules.values() {
        families.entry(&rule.family).or_default().push(rule);
    }
    let mut groups: Vec<_> = families.into_iter().collect();
    groups.sort_by(|(_, one), (_, other)| one[0].code.cmp(&other[0].code));
    let mut out = String::new();
    for (family, rules) in groups {
        let summary = set.families.get(family).map_or("", String::as_str);
        out.push_str(&render_heading(&format!("{family}: {summary}")));
        for rule in rules {
            let own = if rule.own { " (yours)" } else { "" };
            out.push_str(&wrap_labelled_text(
                &format!("{} {:<7} ", rule.code, describe_severity(rule.severity)),
                &format!("{}{own}", rule.title),
                COLUMNS,
            ));
        }
    }
    sanitize_text(&format!(
        "{}\n{}. The long text of one: railwright explain CODE\n",
        out.trim_start_matches('\n'),
        format_count(set.rules.len(), "rule")
    ))
}

fn describe_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// The long text of a rule.
pub fn render_rule_page(rule: &Rule) -> String {
    let mut out = wrap_labelled_text(&format!("{}: ", rule.code), &rule.title, COLUMNS);
    out.push('\n');
    let what = match rule.severity {
        Severity::Error => "error: nothing is planned while it stands, unless it is waived",
        Severity::Warning => "warning: reported, and planned all the same",
    };
    for (label, text) in [
        ("family", rule.family.as_str()),
        ("counts as", what),
        ("looks at", &rule.path),
        ("breaks when", &rule.condition),
        ("effect", rule.means.trim()),
        ("fix", &rule.fix_in_words()),
        ("source", &rule.source),
    ] {
        out.push_str(&wrap_labelled_text(
            &format!("  {label:<12} "),
            text,
            COLUMNS,
        ));
    }
    if let Some(more) = &rule.more {
        out.push('\n');
        for paragraph in more.trim().split("\n\n") {
            out.push_str(&wrap_labelled_text(
                "  ",
                &paragraph.split_whitespace().collect::<Vec<_>>().join(" "),
                COLUMNS,
            ));
        }
    }
    out.push_str("\n  Accepted for a while, in the spec:\n");
    out.push_str(&format!(
        "    rules: {{ waive: [{{ code: {}, reason: ..., owner: ..., until: 2026-12-31 }}] }}\n",
        rule.code
    ));
    sanitize_text(&out)
}

/// What the rules find in a line, for commands that do something else; nothing where there is
/// nothing.
pub fn in_short(evaluation: &RulesReport, inventory: &str) -> Option<String> {
    let mut codes: BTreeMap<(Severity, String), usize> = BTreeMap::new();
    for diagnostic in evaluation.diagnostics() {
        *codes
            .entry((diagnostic.severity, diagnostic.code.to_string()))
            .or_default() += 1;
    }
    let mut parts = Vec::new();
    for severity in [Severity::Error, Severity::Warning] {
        let (mut total, mut names) = (0, Vec::new());
        for ((level, code), count) in &codes {
            if *level == severity {
                total += *count;
                names.push(code.as_str());
            }
        }
        if total > 0 {
            let count = format_count(total, describe_severity(severity));
            parts.push(format!("{count} ({})", names.join(", ")));
        }
    }
    if parts.is_empty() {
        return None;
    }
    let text = format!(
        "{}; railwright validate {inventory} tells more.",
        parts.join(" and ")
    );
    Some(sanitize_text(
        wrap_labelled_text("rules: ", &text, COLUMNS).trim_end(),
    ))
}

/// What is accepted for a while, as a group of a screen; nothing where there is none.
pub fn render_waived_rules(waived: &[WaivedFinding]) -> String {
    if waived.is_empty() {
        return String::new();
    }
    let mut out =
        render_heading("WAIVED: rules that the spec breaks and accepts until the day is over");
    for one in waived {
        let nodes = match &one.nodes {
            Some(nodes) => format!("{nodes}: "),
            None => String::new(),
        };
        out.push_str(&wrap_labelled_text(
            &format!(" . {} ", one.code),
            &format!("{nodes}{}", one.message),
            COLUMNS,
        ));
        out.push_str(&wrap_labelled_text(
            "          ",
            &format!(
                "accepted by {} until {}: {}",
                one.owner, one.until, one.reason
            ),
            COLUMNS,
        ));
    }
    out
}
