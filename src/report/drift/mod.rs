//! What `drift` shows: the screen, and documents for other programs. All of them are made of one
//! report, and name the planes and reasons in the same words.

pub mod junit;
pub mod markdown;
pub mod prometheus;
pub mod sarif;
mod text;
pub mod watch;
mod words;

use super::document::{self, DriftDocument};
use railwright_drift::DriftReport;
pub use text::render_drift_screen;
pub use words::format_drift_summary;

/// The report as JSON.
pub fn render_drift_json(report: &DriftReport) -> String {
    document::render_json_document(&DriftDocument::of(report))
}

#[cfg(test)]
mod sample_for_tests;
