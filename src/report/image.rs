//! The screen of `image check`: the answer first, then each thing that programs load, with what was
//! found, what it means and what to do.

use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::{clean_line, one_line};
use railwright_verify::CheckVerdict;
use railwright_verify::image::{
    ImageCheckItem, ImageFinding, ImageRequirements, compute_image_verdict,
};
use schemars::JsonSchema;
use serde::Serialize;

/// `image check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImageDocument<'a> {
    format_version: &'static str,
    /// What was looked into: a folder, or `NAMESPACE/POD`.
    looked_into: &'a str,
    /// The kind of fabric.
    fabric: &'a str,
    /// The worst of all findings: passed, failed or unknown (exit code 0, 1 or 3).
    verdict: CheckVerdict,
    /// Each thing that was looked for.
    findings: Vec<ImageFindingDocument<'a>>,
}

/// One thing that was looked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImageFindingDocument<'a> {
    item: ImageCheckItem,
    /// Which: `libibverbs.so.1`, `mlx5`.
    name: &'a str,
    verdict: CheckVerdict,
    /// What was found, in words.
    measured: String,
    /// What must be, in words; empty where nothing is stated.
    expected: &'a str,
    /// A code of `railwright explain`.
    code: Option<&'a str>,
    /// What it means.
    effect: &'a str,
    /// What to do.
    next: &'a str,
}

impl<'a> ImageDocument<'a> {
    /// Of what was found.
    pub fn of(
        looked_into: &'a str,
        desired: &'a ImageRequirements,
        findings: &'a [ImageFinding],
    ) -> Self {
        ImageDocument {
            format_version: "1.0",
            looked_into,
            fabric: &desired.fabric,
            verdict: compute_image_verdict(findings),
            findings: findings
                .iter()
                .map(|finding| ImageFindingDocument {
                    item: finding.item,
                    name: &finding.name,
                    verdict: finding.evaluation.verdict,
                    measured: clean_line(&finding.evaluation.measured),
                    expected: &finding.evaluation.expected,
                    code: finding.evaluation.code,
                    effect: &finding.evaluation.effect,
                    next: &finding.evaluation.next,
                })
                .collect(),
        }
    }
}

/// The whole screen. What several findings say is shown once, behind the last of them.
pub fn render_image_screen(
    looked_into: &str,
    desired: &ImageRequirements,
    findings: &[ImageFinding],
) -> String {
    let mut out = format!(
        "image check {}   for a fabric of kind {}\n",
        one_line(looked_into, 80),
        desired.fabric
    );
    out.push_str(&render_heading(match compute_image_verdict(findings) {
        CheckVerdict::Failed => "MISSING: jobs would go without RDMA",
        CheckVerdict::Unknown => "INCONCLUSIVE: not all of it could be looked at",
        _ => "COMPLETE: what programs load to use RDMA is there",
    }));
    for (n, finding) in findings.iter().enumerate() {
        let is_said_again = findings
            .get(n + 1)
            .is_some_and(|next| has_same_text(finding, next));
        out.push_str(&render_image_finding(finding, is_said_again));
    }
    out
}

fn has_same_text(one: &ImageFinding, other: &ImageFinding) -> bool {
    let (one, other) = (&one.evaluation, &other.evaluation);
    one.code.is_some()
        && other.code.is_some()
        && (&one.effect, &one.next) == (&other.effect, &other.next)
}

fn render_image_finding(finding: &ImageFinding, is_said_again: bool) -> String {
    let evaluation = &finding.evaluation;
    let mark = match evaluation.verdict {
        CheckVerdict::Failed => '!',
        CheckVerdict::Unknown | CheckVerdict::NotRun => '?',
        CheckVerdict::Warning => '~',
        CheckVerdict::NotApplicable => '-',
        CheckVerdict::Passed => ' ',
    };
    let label = format!(" {mark} {:<12} {:<16} ", finding.item.word(), finding.name);
    let Some(code) = evaluation.code else {
        return wrap_labelled_text(&label, &evaluation.measured, COLUMNS);
    };
    let mut out = format!("{label}{code}\n");
    let end = if is_said_again {
        ["", ""]
    } else {
        [evaluation.effect.as_str(), &evaluation.next]
    };
    let rows = [
        ("actual", evaluation.measured.as_str()),
        ("desired", &evaluation.expected),
        ("means", end[0]),
        ("next", end[1]),
    ];
    for (word, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.push_str(&wrap_labelled_text(
            &format!("       {word:<8}"),
            text,
            COLUMNS,
        ));
    }
    out
}
