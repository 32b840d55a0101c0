//! The screen of `verify cabling`: what to move first, then what nobody can tell, folded by
//! node-set; and the same as JSON.

pub mod document;
mod fold;
#[cfg(test)]
mod tests;
mod words;

use super::wrap::{self, render_heading};
use fold::CablingEntry;
use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line};
use railwright_verify::CheckVerdict;
use railwright_verify::cabling::{CablingComparison, CablingFinding, Silent, UnknownCableReason};

/// What was compared.
#[derive(Debug, Clone, Copy)]
pub struct CablingSubject<'a> {
    /// The inventory, as it was named.
    pub inventory: &'a str,
    /// The cabling file.
    pub file: &'a str,
    /// The hosts that were asked.
    pub hosts: &'a [String],
    /// The switches that were.
    pub switches: &'a [String],
}

/// The whole screen.
pub fn render_cabling_screen(subject: &CablingSubject, comparison: &CablingComparison) -> String {
    let (hosts, switches) = (
        list_contacted_devices(subject.hosts, "host", "hosts"),
        list_contacted_devices(subject.switches, "switch", "switches"),
    );
    let head = format!(
        "verify cabling {}{hosts}{switches}   file {}",
        subject.inventory, subject.file
    );
    let mut out = wrap::wrap_labelled_text("", &head, wrap::COLUMNS);
    for (verdict, mark, title) in [
        (CheckVerdict::Failed, '!', "WRONG: not as the file has it"),
        (CheckVerdict::Unknown, '?', "UNKNOWN: inconclusive"),
    ] {
        let findings: Vec<CablingFinding> = comparison
            .findings
            .iter()
            .filter(|finding| finding.kind.verdict() == verdict)
            .cloned()
            .collect();
        if !findings.is_empty() {
            out.push_str(&render_heading(title));
            for entry in fold::fold_cabling_findings(&findings) {
                out.push_str(&render_cabling_entry(&entry, mark, subject));
            }
        }
    }
    out.push_str(&render_cabling_conclusion(comparison));
    out
}

fn list_contacted_devices(names: &[String], one: &str, many: &str) -> String {
    match names.len() {
        0 => String::new(),
        1 => format!("   1 {one}: {}", names[0]),
        count => format!("   {count} {many}: {}", nodeset::fold_node_set(names)),
    }
}

fn render_cabling_entry(entry: &CablingEntry, mark: char, subject: &CablingSubject) -> String {
    let texts = words::describe_cabling_entry(entry, subject.inventory, subject.file);
    let mut out = wrap::wrap_labelled_text(
        &format!(" {mark} "),
        &format!(
            "{}   {}",
            texts.says,
            fold::select_finding_code(entry.finding)
        ),
        wrap::COLUMNS,
    );
    for (word, text) in [
        ("actual", &texts.actual),
        ("desired", &texts.desired),
        ("means", &texts.means),
    ] {
        if !text.is_empty() {
            out.push_str(&wrap::wrap_labelled_text(
                &format!("       {word:<8}"),
                text,
                wrap::COLUMNS,
            ));
        }
    }
    for next in &texts.next {
        // What is reported of a host that cannot be reached is to be copied, and not broken into
        // lines.
        if matches!(
            entry.finding.why,
            Some(UnknownCableReason::Silent(Silent::Unreached(_)))
        ) {
            out.push_str(&format!("       {:<8}{}\n", "next", one_line(next, 1500)));
            continue;
        }
        out.push_str(&wrap::wrap_labelled_text(
            &format!("       {:<8}", "next"),
            &one_line(next, 1500),
            wrap::COLUMNS,
        ));
    }
    out
}

fn render_cabling_conclusion(comparison: &CablingComparison) -> String {
    let counts = comparison.counts;
    let verdict = match comparison.verdict() {
        CheckVerdict::Failed => "The cables are not as the file has them.",
        CheckVerdict::Unknown => "Inconclusive: something could not be found out.",
        _ => "The cables are as the file has them.",
    };
    let parts = [
        (counts.right, "right"),
        (counts.wrong, "wrong"),
        (counts.unknown, "unknown"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let looked = if parts.is_empty() {
        "nothing to be looked at".to_owned()
    } else {
        parts.join(", ")
    };
    let mut out = format!(
        "\n{verdict} {}: {looked}.\n",
        format_count(counts.cables, "cable")
    );
    if counts.not_asked > 0 {
        let was = if counts.not_asked == 1 { "was" } else { "were" };
        let text = format!(
            "{} {was} not looked at: of devices that were not asked.",
            format_count(counts.not_asked, "other cable")
        );
        out.push_str(&wrap::wrap_labelled_text("", &text, wrap::COLUMNS));
    }
    out
}
