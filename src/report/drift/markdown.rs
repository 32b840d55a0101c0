//! The report for a comment of a pull request: tables folded by node-set, within what a comment may
//! hold.

use super::words::{
    FoldedFindings, collect_undeclared_resources, describe_acceptance, describe_drift_reason,
    describe_drift_values, describe_outlier, explain_drift_reason, fold_equal_findings,
    format_drift_summary, format_finding_ages,
};
use crate::unread;
use indexmap::IndexMap;
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::{clean_line, format_count, one_line};
use railwright_drift::{DriftFinding, DriftReport};

/// What GitHub takes: "body is too long (maximum is 65536 characters)", as its API says
/// (https://github.com/telia-oss/github-pr-resource/issues/259). Counted here in bytes, which are
/// never fewer.
const BUDGET: usize = 65_536;
/// Kept free for the last line, which says what was left out.
const TAIL: usize = 256;
/// The most characters of a value, and of a node-set.
const VALUE: usize = 80;
const HOSTS: usize = 200;

/// A document that never grows beyond its budget: what does not fit any more is counted.
struct BudgetedDocument {
    text: String,
    left_out: usize,
}

impl BudgetedDocument {
    fn fits(&self, part: &str) -> bool {
        self.left_out == 0 && self.text.len() + part.len() + TAIL <= BUDGET
    }

    /// A title with its rows; the title goes only with a row.
    fn table(&mut self, title: &str, rows: impl Iterator<Item = String>) {
        let mut head = Some(title.to_owned());
        for row in rows {
            let part = format!("{}{row}", head.as_deref().unwrap_or_default());
            if self.fits(&part) {
                self.text.push_str(&part);
                head = None;
            } else {
                self.left_out += 1;
            }
        }
    }
}

/// The whole document.
pub fn render_markdown_document(report: &DriftReport) -> String {
    let inventory = &report.inventory.word();
    let targets = format_count(report.targets.len(), "target");
    let (resources, at) = (
        format_count(report.resources, "resource"),
        clean_line(&report.checked_at),
    );
    let origin = clean_line(&report.inventory.words());
    let head = format!(
        "### Drift of {}\n\n**{}** {resources} on {targets}, {origin}, {at}.\n",
        format_code_span(inventory),
        format_drift_summary(report)
    );
    let mut out = BudgetedDocument {
        text: head,
        left_out: 0,
    };
    add_finding_tables(&mut out, report);
    add_other_tables(&mut out, report);
    if !report.not_compared.is_empty() {
        out.table(
            "\n#### Not compared\n",
            std::iter::once(format_code_block(&unread::render_unknown_findings(
                &report.not_compared,
            ))),
        );
    }
    if out.left_out > 0 {
        let left = out.left_out;
        out.text.push_str(&format!(
            "\nand {left} more, for which there is no room here: {}\n",
            format_code_span(&format!("railwright drift {inventory}"))
        ));
    }
    out.text
}

fn add_finding_tables(out: &mut BudgetedDocument, report: &DriftReport) {
    // What counts comes first, what is accepted last.
    let mut groups: IndexMap<String, Vec<FoldedFindings<'_>>> = IndexMap::new();
    let (accepted, counting): (Vec<_>, Vec<_>) = fold_equal_findings(&report.findings)
        .into_iter()
        .partition(|identical| identical.finding.is_accepted());
    for identical in counting.into_iter().chain(accepted) {
        groups
            .entry(format_headline(identical.finding))
            .or_default()
            .push(identical);
    }
    for (headline, members) in &groups {
        let title = format!(
            "\n\
             #### {headline}\n\
             \n\
             | targets | attribute | plane | what | since | spec |\n\
             |---|---|---|---|---|---|\n"
        );
        out.table(&title, members.iter().map(render_finding_row));
    }
}

/// What is no longer in the spec, and outliers.
fn add_other_tables(out: &mut BudgetedDocument, report: &DriftReport) {
    let gone = collect_undeclared_resources(report);
    out.table(
        "\n\
         #### No longer in the spec: applied, and still there\n\
         \n\
         | targets | resource |\n\
         |---|---|\n",
        gone.iter().map(|(resource, who)| {
            format!(
                "| {} | {} |\n",
                format_code_span(&one_line(&fold_node_set(who), HOSTS)),
                format_code_span(resource)
            )
        }),
    );
    out.table(
        "\n#### Outliers: a few hosts of a class differ in what is not managed; no drift\n\n",
        report
            .outliers
            .iter()
            .map(|one| format!("- {}\n", format_code_span(&describe_outlier(one)))),
    );
}

fn format_headline(finding: &DriftFinding) -> String {
    if finding.is_accepted() {
        return "Accepted: known, and no drift until the day is over".to_owned();
    }
    format!(
        "{}: {}",
        describe_drift_reason(finding.reason).1,
        explain_drift_reason(finding.reason)
    )
}

fn render_finding_row(identical: &FoldedFindings<'_>) -> String {
    let finding = identical.finding;
    let place = finding
        .places
        .first()
        .map_or(String::new(), |place| format_code_span(&place.to_string()));
    let targets = format_code_span(&one_line(&identical.targets(), HOSTS));
    let what = [
        Some(describe_drift_values(finding, VALUE)),
        describe_acceptance(finding),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join("; ");
    let (attribute, plane, what) = (
        format_code_span(&finding.address.within_target()),
        finding.plane.word(),
        format_code_span(&what),
    );
    format!(
        "| {targets} | {attribute} | {plane} | {what} | {} | {place} |\n",
        format_finding_ages(&identical.members).unwrap_or_default()
    )
}

/// Text as it is, whatever it holds: a code span whose fence is longer than any run of backticks in
/// it (https://spec.commonmark.org/0.31.2/#code-spans). Within a table a bar must be escaped even
/// there (https://github.github.com/gfm/#tables-extension-).
fn format_code_span(text: &str) -> String {
    let text = clean_line(text).replace('|', "\\|");
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(measure_longest_run(&text) + 1);
    // One blank on each side is taken away again, and keeps a backtick at the border apart from the
    // fence.
    let blank = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// Lines as they are, within a fence that none of them can end.
fn format_code_block(lines: &str) -> String {
    let fence = "`".repeat(measure_longest_run(lines).max(2) + 1);
    format!("\n{fence}\n{}\n{fence}\n", lines.trim_end())
}

fn measure_longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{accepted, finding, hostile, report};
    use super::*;
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    use railwright_drift::DriftReason;
    use railwright_resource::{Plane, Reading};

    /// The cells of every row, as a reader of GitHub's tables sees them.
    fn rows(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut cell, mut head) = (Vec::new(), None::<String>, false);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::TableRow) => rows.push(Vec::new()),
                Event::Start(Tag::TableHead) | Event::End(TagEnd::TableHead) => head = !head,
                Event::Start(Tag::TableCell) if !head => cell = Some(String::new()),
                Event::End(TagEnd::TableCell) => {
                    if let (Some(row), Some(cell)) = (rows.last_mut(), cell.take()) {
                        row.push(cell);
                    }
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(cell) = &mut cell {
                        cell.push_str(&text);
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => panic!("markup of its own: {html}"),
                _ => {}
            }
        }
        rows
    }

    #[test]
    fn identical_findings_are_a_row() {
        insta::assert_snapshot!(render_markdown_document(&report()), @r"
        ### Drift of `inventories/lab`

        **4 attributes differ from the spec.** 41 resources on 4 targets, not under version control, 2026-01-01T00:00:00Z.

        #### Changed outside: somebody else changed it since it was applied

        | targets | attribute | plane | what | since | spec |
        |---|---|---|---|---|---|
        | `n[1-3]` | `link/ens4#mtu` | running | `actual 1500, desired 9000 (as applied)` |  |  |

        #### Will be lost at reboot: in effect, but no longer written down

        | targets | attribute | plane | what | since | spec |
        |---|---|---|---|---|---|
        | `n2` | `file/%2Fetc%2Fx#content` | persisted | `actual absent, desired 9000 (as applied)` |  |  |

        #### Unknown: could not be found out

        | targets | attribute | plane | what | since | spec |
        |---|---|---|---|---|---|
        | `n2` | `sysctl/a.b#value` | running | `actual unknown (the read ran past its time limit), desired 9000 (as applied)` |  |  |

        #### Not compared

        ```
         ? n9 the whole target
               n9 is not reachable at 192.0.2.9: connection refused
        ```
        ");
        assert_eq!(
            rows(&render_markdown_document(&report()))[0],
            [
                "n[1-3]",
                "link/ens4#mtu",
                "running",
                "actual 1500, desired 9000 (as applied)",
                "",
                ""
            ]
        );
    }

    #[test]
    fn what_is_accepted_comes_last_with_its_reason() {
        let text = render_markdown_document(&accepted(false));
        let rows = rows(&text);
        assert_eq!(
            rows[2][3],
            "actual 1500, desired 9000 (as applied); accepted by ops until 2026-12-31: new cables",
            "{rows:#?}"
        );
        assert!(text.find("#### Accepted").unwrap() > text.find("#### Unknown").unwrap());
    }

    #[test]
    fn whatever_a_host_says_stays_in_its_cell() {
        let text = render_markdown_document(&hostile());
        let rows = rows(&text);
        // The header's cells are no rows for this reader; each finding is alone, as their values
        // were made identical.
        assert!(
            rows.iter().all(|row| [2, 6].contains(&row.len())),
            "{rows:#?}"
        );
        assert!(
            rows[0][3].contains("a|b `c` ``d`` <script>&amp;"),
            "{rows:#?}"
        );
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn ten_thousand_findings_fit_in_a_comment() {
        let mut report = report();
        report.findings = (0..10_000)
            .map(|i| {
                finding(
                    &format!("host/n1/sysctl/a.b{i}#value"),
                    Plane::Running,
                    DriftReason::ChangedOutside,
                    Reading::is(i),
                )
            })
            .collect();
        let text = render_markdown_document(&report);
        assert!(
            text.len() <= BUDGET && text.len() > BUDGET - 2 * TAIL,
            "{}",
            text.len()
        );
        let shown = rows(&text).len();
        assert!(text.trim_end().ends_with(&format!(
            "and {} more, for which there is no room here: `railwright drift inventories/lab`",
            10_001 - shown
        )));
    }
}
