//! A build that takes minutes: its output goes to a log, its parts are told, and the end of the log is told where it fails.

use super::Result;
use super::event::{Event, Listener, Step};
use super::folder::trouble;
use railwright_base::text;
use railwright_system::files;
use railwright_system::process::{Ending, Program};
use std::path::Path;

/// Runs it. Lines that begin with `step ` are what is told of it. In words how it went wrong, with the end of its log, where it did.
pub fn run(program: &Program, step: Step, log: &Path, listener: Listener<'_>) -> Result<std::result::Result<(), String>> {
    let ending = program
        .run_logged(log, step.limit(), &mut |line| {
            if let Some(part) = line.strip_prefix("step ") {
                listener(Event::Note(text::one_line(part, 100)));
            }
        })
        .map_err(|error| trouble(log, &error))?;
    let how = match ending {
        Ending::Success => return Ok(Ok(())),
        Ending::TimedOut => "took more than ten times its usual time",
        Ending::Failure => "failed",
    };
    let tail = files::tail(log, 4000).unwrap_or_default();
    let last: Vec<&str> = tail.lines().rev().take(8).collect();
    let last = last.into_iter().rev().map(|line| format!("  {}", text::one_line(line, 160))).collect::<Vec<_>>().join("\n");
    Ok(Err(format!("{how}; the end of its log:\n{last}")))
}
