//! A build that takes minutes: its output goes to a log, its parts are reported, and the end of the
//! log is reported where it fails.

use super::Result;
use super::event::{LabEvent, LabStep, Listener};
use super::folder::new_folder_error;
use railwright_base::Reason;
use railwright_base::text;
use railwright_system::files;
use railwright_system::process::{Program, ProgramEnding};
use std::path::Path;

/// Runs it. Lines that begin with `step ` are what is reported of it. In words how it went wrong,
/// with the end of its log, where it did.
pub fn run_logged_build(
    program: &Program,
    step: LabStep,
    log: &Path,
    listener: Listener<'_>,
) -> Result<std::result::Result<(), Reason>> {
    let ending = program
        .run_logged(log, step.limit(), &mut |line| {
            if let Some(part) = line.strip_prefix("step ") {
                listener(LabEvent::Note(text::one_line(part, 100)));
            }
        })
        .map_err(|error| new_folder_error(log, &error))?;
    let how = match ending {
        ProgramEnding::Success => return Ok(Ok(())),
        ProgramEnding::TimedOut => "took more than ten times its usual time",
        ProgramEnding::Failure => "failed",
    };
    let tail = files::read_file_tail(log, 4000).unwrap_or_default();
    let last: Vec<&str> = tail.lines().rev().take(8).collect();
    let last = last
        .into_iter()
        .rev()
        .map(|line| format!("  {}", text::one_line(line, 160)))
        .collect::<Vec<_>>()
        .join("\n");
    Ok(Err(format!("{how}; the end of its log:\n{last}").into()))
}
