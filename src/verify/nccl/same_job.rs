//! Whether two logs are of the same job but for their transport. What both say and say differently
//! makes them two jobs; what one of them leaves open makes it unknown, as silence is no likeness.

use super::NcclLog;
use super::compare::{ComparedLog, Figure};
use super::nccl_tests_table::CollectiveRun;
use super::operation;
use crate::result::CheckOutcome;
use railwright_base::text::format_count;
use std::collections::BTreeSet;

/// What is found, in words.
#[derive(Default)]
struct LogDifferences {
    /// Said by both, and not the same.
    differs: Vec<String>,
    /// Not said by one of them.
    open: Vec<String>,
}

/// What has to be in common.
const SAME_JOB: &str =
    "the same job: ranks, hosts, image, size of a step, operation and type of the data";

/// What both logs must have in common; `rdma` is the place of the one with RDMA.
pub(super) fn check_same_job(
    sides: &[ComparedLog<'_>; 2],
    rdma: usize,
    figures: &[Figure],
) -> CheckOutcome {
    let sides = [&sides[rdma], &sides[1 - rdma]];
    let logs = sides.map(|side| side.log);
    let mut told = LogDifferences::default();
    compare_ranks_and_hosts(&mut told, sides);
    compare_programs(&mut told, logs);
    compare_steps(&mut told, logs, figures);
    compare_tables(&mut told, sides);
    if !told.differs.is_empty() {
        return CheckOutcome::failed("RW1255", told.differs.join("; "))
            .expected(SAME_JOB)
            .effect("what differs between the two may be this, and not RDMA")
            .next("railwright job render compare KIND writes a pair of one job");
    }
    if !told.open.is_empty() {
        return CheckOutcome::unknown("RW1290", told.open.join("; "))
            .expected(SAME_JOB)
            .effect(
                "the two are not known to be the same job, so what differs may be that, and not \
                 RDMA",
            )
            .next(
                "take the whole logs, from their first line, of a job with NCCL_DEBUG=INFO and of \
                 nccl-tests 2.17 or later, which name what they measure",
            );
    }
    CheckOutcome::passed(describe_job(logs[0]))
}

/// Ranks, hosts and program of a job: `16 ranks, 2 hosts`.
fn describe_job(log: &NcclLog) -> String {
    let ranks = match find_rank_count(log) {
        Some(ranks) => format!("{}, ", format_count(ranks as usize, "rank")),
        None => String::new(),
    };
    let program = if log.is_of_ring() {
        ", a ring with no GPU and no NCCL"
    } else {
        ""
    };
    format!(
        "{ranks}{}{program}",
        format_count(log.hosts().len(), "host")
    )
}

/// Compares what sent the data: NCCL or a ring without it, and the release of NCCL.
fn compare_programs(told: &mut LogDifferences, logs: [&NcclLog; 2]) {
    let [ring, other_ring] = logs.map(NcclLog::is_of_ring);
    if ring != other_ring {
        let [with, without] = logs.map(name_program);
        told.differs
            .push(format!("{with} with RDMA, {without} over TCP"));
    }
    let [one, other] = logs.map(|log| &log.versions);
    if !one.is_empty() && !other.is_empty() && one != other {
        told.differs.push(format!(
            "NCCL {} with RDMA, {} over TCP",
            join_versions(one),
            join_versions(other)
        ));
    }
}

fn join_versions(versions: &BTreeSet<String>) -> String {
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    versions.join(" or ")
}

fn name_program(log: &NcclLog) -> &'static str {
    if log.is_of_ring() {
        "a ring without NCCL"
    } else {
        "NCCL"
    }
}

/// How many took part, by NCCL or by nccl-tests.
fn find_rank_count(log: &NcclLog) -> Option<u32> {
    let ranks = match log.world {
        Some(ranks) => ranks,
        None => log.runs.iter().map(|run| run.ranks).max()?,
    };
    (ranks > 0).then_some(ranks)
}

fn compare_ranks_and_hosts(told: &mut LogDifferences, sides: [&ComparedLog<'_>; 2]) {
    let logs = sides.map(|side| side.log);
    let ranks = logs.map(find_rank_count);
    if let Some(silent) = name_silent_sides(sides.map(|side| side.name), &ranks) {
        told.open
            .push(format!("how many ranks there were is not said by {silent}"));
    } else if let [Some(one), Some(other)] = ranks
        && one != other
    {
        told.differs.push(format!(
            "{} with RDMA, {} over TCP",
            format_count(one as usize, "rank"),
            format_count(other as usize, "rank")
        ));
    }
    let [one, other] = logs.map(|log| log.hosts().len());
    if one > 0 && other > 0 && one != other {
        told.differs.push(format!(
            "{} with RDMA, {} over TCP",
            format_count(one, "host"),
            format_count(other, "host")
        ));
    }
}

/// The names of the sides that do not say it; nothing where both do.
fn name_silent_sides<T>(names: [&str; 2], said: &[Option<T>; 2]) -> Option<String> {
    match said {
        [Some(_), Some(_)] => None,
        [None, Some(_)] => Some(names[0].to_owned()),
        [Some(_), None] => Some(names[1].to_owned()),
        [None, None] => Some(names.join(" and ")),
    }
}

fn compare_steps(told: &mut LogDifferences, logs: [&NcclLog; 2], figures: &[Figure]) {
    if let [Some((one, _)), Some((other, _))] = logs.map(|log| log.steps.measured())
        && one != other
        && figures.is_empty()
    {
        told.differs.push(format!(
            "a line of progress is {} with RDMA, {} over TCP",
            one.word(),
            other.word()
        ));
    }
    if let [Some(one), Some(other)] = logs.map(|log| log.steps.batch())
        && one != other
    {
        told.differs.push(format!(
            "a step is {one} samples with RDMA, {other} over TCP"
        ));
    }
}

/// The run that is compared: the last one with a table.
pub(super) fn find_last_table(log: &NcclLog) -> Option<&CollectiveRun> {
    log.runs.iter().rev().find(|run| !run.each.is_empty())
}

/// What both tables measured, where it is known to be the same.
pub(super) fn same_test(logs: [&NcclLog; 2]) -> Option<[&CollectiveRun; 2]> {
    let runs = [find_last_table(logs[0])?, find_last_table(logs[1])?];
    let mut told = LogDifferences::default();
    compare_tests(&mut told, ["", ""], logs, runs);
    (told.differs.is_empty() && told.open.is_empty()).then_some(runs)
}

fn compare_tables(told: &mut LogDifferences, sides: [&ComparedLog<'_>; 2]) {
    let logs = sides.map(|side| side.log);
    match logs.map(find_last_table) {
        // Steps of a training go before tables, which a job may print at its start.
        _ if logs.iter().all(|log| log.steps.measured().is_some()) => {}
        [Some(one), Some(other)] => {
            compare_tests(told, sides.map(|side| side.name), logs, [one, other])
        }
        [Some(_), None] if logs[1].steps.measured().is_some() => {
            told.differs
                .push("nccl-tests with RDMA, a training over TCP".to_owned());
        }
        [None, Some(_)] if logs[0].steps.measured().is_some() => {
            told.differs
                .push("a training with RDMA, nccl-tests over TCP".to_owned());
        }
        _ => {}
    }
}

fn compare_tests(
    told: &mut LogDifferences,
    names: [&str; 2],
    logs: [&NcclLog; 2],
    runs: [&CollectiveRun; 2],
) {
    let measured = [0, 1].map(|n| {
        let ranks = match runs[n].ranks {
            0 => find_rank_count(logs[n]),
            ranks => Some(ranks),
        };
        operation::of_run(runs[n], ranks)
    });
    let reductions = runs.map(|run| run.operation.as_deref());
    let types = runs.map(|run| run.data_type.as_deref());
    let operations = describe_difference(measured);
    let is_one_operation = operations.is_none();
    told.differs.extend(operations);
    told.differs.extend(describe_difference(types));
    if is_one_operation && let Some(difference) = describe_difference(reductions) {
        told.differs.push(format!("redop {difference}"));
    }
    for (what, said) in [
        ("which operation was measured", measured),
        ("what type the data has", types),
    ] {
        if let Some(silent) = name_silent_sides(names, &said) {
            told.open
                .push(format!("{what} is not told by the table of {silent}"));
        }
    }
}

/// What both say and say differently.
fn describe_difference(said: [Option<&str>; 2]) -> Option<String> {
    match said {
        [Some(one), Some(other)] if one != other => {
            Some(format!("{one} with RDMA, {other} over TCP"))
        }
        _ => None,
    }
}
