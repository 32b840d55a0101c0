//! Observation files, as `facts` writes them.

use super::{CommandFailure, output};
use railwright_report::document;
use railwright_resource::Observation;
use std::path::Path;

/// Writes an observation file, for its owner alone: it holds what files of the hosts say.
pub fn write_recording(file: &Path, observation: &Observation) -> Result<(), CommandFailure> {
    output::write_output(
        file,
        &document::render_json_document(&observation.redacted()),
        0o600,
    )
}
