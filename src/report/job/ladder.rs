//! The screen of `doctor --ladder`: a line a trial, and what stands between the last that goes and
//! the first that does not.

use crate::document as documents;
use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::clean_line;
use railwright_jobs::doctor::ladder::{Ladder, Rung, TrialOutcome};
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const FORMAT_VERSION: &str = "2.0";

/// One trial.
pub fn render_trial(rung: Rung, outcome: &TrialOutcome) -> String {
    let (mark, found) = match outcome {
        TrialOutcome::Goes(found) => (' ', found),
        TrialOutcome::Fails(found) => ('!', found),
        TrialOutcome::NotKnown(found) => ('?', found),
    };
    wrap_labelled_text(
        &format!(" {mark} {:<27}", rung.word()),
        &clean_line(found),
        COLUMNS,
    )
}

/// What all of them say.
pub fn render_ladder_conclusion(ladder: &Ladder, inventory: &str) -> String {
    match ladder.first_that_fails() {
        Some((rung, _)) => {
            let title = format!("FIRST THAT FAILS: {}", rung.word());
            render_conclusion_rows(
                &title,
                &[("cause", rung.cause()), ("next", &rung.next(inventory))],
            )
        }
        None if ladder.goes() => render_conclusion_rows(
            "ALL TRIALS GO",
            &[(
                "next",
                "a job of yours that fails differs from these: compare image, environment and \
                 devices",
            )],
        ),
        None => render_conclusion_rows(
            "INCONCLUSIVE",
            &[("means", "no trial failed, and not all could be made")],
        ),
    }
}

fn render_conclusion_rows(title: &str, rows: &[(&str, &str)]) -> String {
    let rows = rows
        .iter()
        .map(|(word, text)| wrap_labelled_text(&format!("   {word:<8}"), text, COLUMNS));
    format!(
        "\n{}{}",
        render_heading(title).trim_start_matches('\n'),
        rows.collect::<String>()
    )
}

/// `doctor --ladder --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LadderDocument<'a> {
    format_version: &'static str,
    /// Every trial that was made, the lowest first.
    trials: Vec<TrialDocument<'a>>,
    /// The first that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_that_fails: Option<Rung>,
    /// What stands between it and the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

/// A trial.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrialDocument<'a> {
    trial: Rung,
    #[serde(flatten)]
    outcome: &'a TrialOutcome,
}

/// Renders the ladder as a JSON document.
pub fn render_ladder_json(ladder: &Ladder) -> String {
    let first = ladder.first_that_fails().map(|(rung, _)| rung);
    documents::render_json_document(&LadderDocument {
        format_version: FORMAT_VERSION,
        trials: ladder
            .rungs
            .iter()
            .map(|(trial, outcome)| TrialDocument {
                trial: *trial,
                outcome,
            })
            .collect(),
        first_that_fails: first,
        cause: first.map(Rung::cause),
    })
}
