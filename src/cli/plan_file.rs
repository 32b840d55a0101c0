//! Plan files of this machine: read with a limit, and written for their owner alone.

use super::{CommandFailure, output};
use railwright_plan::{self as plan, Plan};
use railwright_session::describe_file_error;
use railwright_system::files;
use std::path::Path;

/// Plan files beyond this many bytes are not read.
const PLAN_LIMIT_BYTES: u64 = 1 << 30;

/// Reads a plan file. An error tells why the file cannot be read, or that it is no plan.
pub fn read_plan(file: &Path) -> Result<Plan, CommandFailure> {
    let bytes = files::read_ordinary(file, PLAN_LIMIT_BYTES)
        .map_err(|error| describe_file_error(file, &error))?;
    Ok(plan::file::parse_plan_file(
        &file.display().to_string(),
        &bytes,
    )?)
}

/// Writes a plan file, for its owner alone.
pub fn write_plan(file: &Path, plan: &Plan) -> Result<(), CommandFailure> {
    output::write_output(
        file,
        &String::from_utf8_lossy(&plan::file::serialize_plan(plan)),
        0o600,
    )
}
