//! How `job run` tells that a job did not begin, or did not come to a good end.

use super::run::Common;
use crate::cli::CommandFailure;
use railwright_base::Diagnostic;
use railwright_base::text::{format_duration, one_line};
use railwright_verify::host_job::{HostJobOutcome, HostJobStartError};
use railwright_workload::describe_missing_requirement;
use std::path::Path;

/// It did not come to a good end.
pub fn describe_unfinished_job(ended: &HostJobOutcome, limit_s: u64) -> Option<Diagnostic> {
    let message = match ended {
        HostJobOutcome::Exited(all) => {
            let bad: Vec<String> = all
                .iter()
                .filter(|(_, code)| *code != 0)
                .map(|(host, code)| format!("{code} on {host}"))
                .collect();
            if bad.is_empty() {
                return None;
            }
            format!("the job ended with exit status {}", bad.join(", "))
        }
        HostJobOutcome::Late => format!("the job had not ended after {}", format_duration(limit_s)),
        HostJobOutcome::Lost { host, why } => format!("the job on {host} is lost: {why}"),
        HostJobOutcome::Stopped => return None,
    };
    Some(
        Diagnostic::error("RW1268", message)
            .state(
                "it was ended on all hosts that answer, and on others the lease ends it; nothing \
                 of it stays there",
            )
            .next(
                "read its last lines; railwright doctor --log FILE finds the first cause (-o FILE \
                 keeps the output)",
            ),
    )
}

/// Nothing was started, or not on all hosts.
pub fn failure_from_refusal(refused: HostJobStartError) -> CommandFailure {
    let nothing = "nothing was started";
    match refused {
        HostJobStartError::Unreached(error) => error.diagnostic().into(),
        HostJobStartError::Unasked { host, why } => Diagnostic::error(
            "RW1267",
            format!("{host} could not be asked what is there: {why}"),
        )
        .state(nothing)
        .into(),
        HostJobStartError::NotStarted { host, why } => {
            Diagnostic::error("RW1267", format!("the job did not start on {host}: {why}"))
                .state(
                    "what was started was ended on all other hosts that answer; on the rest the \
                     lease ends it",
                )
                .next(format!(
                    "railwright verify INVENTORY, and `systemctl --failed` on {host}"
                ))
                .into()
        }
        HostJobStartError::Missing(all) => {
            let missing = all.iter().map(|(host, what)| {
                let (what, brings) = describe_missing_requirement(what);
                Diagnostic::error("RW1266", format!("{what} is not on {host}"))
                    .state(nothing)
                    .next(brings)
            });
            CommandFailure::from(missing.collect::<Vec<_>>())
        }
    }
}

/// What is there may be the output of another day.
pub fn report_present_output(path: &Path) -> Diagnostic {
    Diagnostic::error(
        "RW1265",
        format!(
            "{} is there already",
            one_line(&path.display().to_string(), 80)
        ),
    )
    .effect("it may be the output of another day")
    .state("it is as it was, and nothing was started")
    .next("name another file: -o FILE")
}

/// The output could not be kept.
pub fn report_unwritten_output(common: &Common, error: &std::io::Error) -> Diagnostic {
    let path = common
        .output
        .as_ref()
        .map(|path| one_line(&path.display().to_string(), 80))
        .unwrap_or_default();
    Diagnostic::error("RW1265", format!("{path} cannot be written: {error}"))
        .next("name another file: -o FILE")
}
