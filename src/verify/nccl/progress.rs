//! Whether a job goes on, or came to its end.

use super::compare::format_seconds;
use super::evaluation::format_bytes;
use super::expected::NcclExpectations;
use super::failure::{NcclFailureCause, NcclLogFailure, describe_completion_status};
use super::log::NcclLog;
use super::nccl_tests_table::CollectiveRun;
use crate::result::CheckOutcome;
use railwright_base::text::format_count;
use std::collections::BTreeSet;

/// Reports the first failure of a log, else what did not come to its end, else how far the job
/// came.
pub(super) fn check_progress(log: &NcclLog, expected: &NcclExpectations) -> CheckOutcome {
    let doctor = format!("railwright doctor {}", expected.words);
    if let Some(first) = log.failures.first() {
        return report_failure(first, log.failed).next(doctor);
    }
    if let Some(run) = log.runs.iter().rev().find(|run| !run.is_over()) {
        return report_open_run(run).next(doctor);
    }
    let hosts = list_hosts_without_communicator(log);
    if !hosts.is_empty() && log.training.lines == 0 && log.runs.is_empty() {
        return CheckOutcome::unknown(
            "RW1212",
            format!(
                "ranks on {} never completed their communicator",
                super::fold_log_names(hosts)
            ),
        )
        .expected("`Init COMPLETE` of every rank")
        .effect("they still wait for others, the log was cut off, or they hang")
        .next(doctor);
    }
    if log.training.lines > 0 {
        return report_training(log);
    }
    match log.runs.len() {
        0 => report_steps(log, &doctor),
        runs => CheckOutcome::passed(format!(
            "{} of nccl-tests to the end",
            format_count(runs, "run")
        )),
    }
}

fn report_failure(first: &NcclLogFailure, failed: u64) -> CheckOutcome {
    let more = if failed > 1 {
        format!(" (and {} more)", format_count(failed as usize - 1, "line"))
    } else {
        String::new()
    };
    let host = match &first.host {
        Some(host) => format!(" on {host}"),
        None => String::new(),
    };
    CheckOutcome::failed(
        "RW1211",
        format!("line {}{host}: {}{more}", first.line, first.text),
    )
    .effect(describe_failure_effect(&first.trouble))
}

fn describe_failure_effect(cause: &NcclFailureCause) -> &'static str {
    match cause {
        NcclFailureCause::Completion { status, .. } => describe_completion_status(*status),
        NcclFailureCause::Verbs { .. } => {
            "the NIC could not be used: a call that every transfer needs was refused"
        }
        NcclFailureCause::Device => "the RDMA device itself reported that it cannot go on",
        NcclFailureCause::Timeout => {
            "a collective did not end in its time: a rank is gone, or the network lost what it \
             waited for"
        }
        NcclFailureCause::Remote => "another rank was gone; why stands in that rank's log",
        NcclFailureCause::Other => "the job gave up",
    }
}

fn report_open_run(run: &CollectiveRun) -> CheckOutcome {
    let so_far = match run.largest {
        Some(size) => format!(
            "{} up to {}",
            format_count(run.sizes as usize, "size"),
            format_bytes(size.bytes)
        ),
        None => "no size".to_owned(),
    };
    let to_do = match run.bytes_max {
        Some(most) => format!(" of {}", format_bytes(most)),
        None => String::new(),
    };
    CheckOutcome::unknown(
        "RW1212",
        format!("a run of nccl-tests has no last line: {so_far}{to_do}"),
    )
    .expected("`# Avg bus bandwidth` at its end")
    .effect("it still runs, its log was cut off, or it hangs")
}

fn list_hosts_without_communicator(log: &NcclLog) -> BTreeSet<&str> {
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    for process in &log.processes {
        if process.complete.is_empty() && !process.ranks.is_empty() {
            hosts.extend(process.host.as_deref());
        }
    }
    hosts
}

fn report_training(log: &NcclLog) -> CheckOutcome {
    let (first, last) = log.training.epochs;
    let samples = match log.training.samples {
        Some((done, all)) => format!(", {done} of {all} samples of the last"),
        None => String::new(),
    };
    CheckOutcome::passed(format!(
        "{} of progress, epoch {first} to {last}{samples}",
        format_count(log.training.lines as usize, "line")
    ))
}

/// Reports the steps of a job that has neither a table of nccl-tests nor progress of a training.
fn report_steps(log: &NcclLog, doctor: &str) -> CheckOutcome {
    if let Some((_, sampled)) = log.steps.measured() {
        return CheckOutcome::passed(format!(
            "{}, the median {}",
            format_count(sampled.count as usize, "step"),
            format_seconds(sampled.median().unwrap_or_default())
        ));
    }
    if log.is_connected() {
        return CheckOutcome::not_applicable(
            "all channels were connected; no progress that can be read came after it",
        );
    }
    if log.channels().verbs() > 0 {
        return CheckOutcome::warning(
            "RW1212",
            "no progress that can be read came after the channels",
        )
        .expected("a table of nccl-tests, or progress of a training")
        .effect(
            "channels are logged before they are connected: a job that hangs in its first \
             collective looks like this",
        )
        .next(format!(
            "take the log again once the job has gone on for a while; {doctor}"
        ));
    }
    CheckOutcome::not_applicable("the log has neither nccl-tests nor progress of a training")
}
