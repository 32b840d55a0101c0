//! Observation files: what `facts` writes and `plan --observations` reads.

use super::{SessionError, describe_file_error};
use railwright_base::Diagnostic;
use railwright_resource::Observation;
use railwright_resource::observation::FORMAT_VERSION;
use railwright_system::files;
use std::io;
use std::path::Path;

/// Observation files beyond this many bytes are not read.
const LIMIT_BYTES: u64 = 4 << 30;

/// Reads an observation file.
pub fn read_recording(file: &Path) -> Result<Observation, SessionError> {
    let wrong = |why: String| {
        Diagnostic::error(
            "RW1012",
            format!(
                "{} is no observation: {}",
                file.display(),
                railwright_base::text::one_line(&why, 160)
            ),
        )
        .state("nothing was planned or changed")
        .next("record one: railwright facts INVENTORY -o FILE")
    };
    let bytes = match files::read_object(file, LIMIT_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(wrong(error.to_string()).into());
        }
        read => read.map_err(|error| describe_file_error(file, &error))?,
    };
    let observation: Observation =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    if major(&observation.format_version) != major(FORMAT_VERSION) {
        return Err(wrong(format!(
            "it has format {}, this railwright reads {FORMAT_VERSION}",
            observation.format_version
        ))
        .into());
    }
    Ok(observation)
}
