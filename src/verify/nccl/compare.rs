//! A job with and without RDMA: whether the two logs are of such a pair, and what a step of
//! each took.
//!
//! Source of the question: Alibaba Cloud, ACK documentation, accelerate PyTorch jobs with eRDMA and
//! Arena (how to tell whether eRDMA made a training faster).

use super::evaluation::{Aspect, format_bytes};
use super::nccl_tests_table::{CollectiveRun, CollectiveSizeResult};
use super::steps::{STEPS_MIN, StepUnit};
use super::transport::Transport;
use super::{JobVerdict, NcclLog, NcclProof, same_job};
use crate::result::{CheckOutcome, CheckVerdict};
use railwright_base::text::format_count;
use serde::Serialize;

/// A gain below this is none: runs of the same job differ by as much.
const GAIN_MIN: f64 = 1.05;

/// What is checked of two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogComparisonTopic {
    /// One used RDMA, the other TCP.
    Pair,
    /// They are identical in everything else that a log shows.
    Identical,
    /// Neither broke, and its data arrived as it was sent.
    Sound,
    /// What RDMA gained.
    Gain,
}

impl LogComparisonTopic {
    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            LogComparisonTopic::Pair => "pair",
            LogComparisonTopic::Identical => "identical",
            LogComparisonTopic::Sound => "sound",
            LogComparisonTopic::Gain => "gain",
        }
    }
}

/// One of the two logs.
#[derive(Debug, Clone, Copy)]
pub struct ComparedLog<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The words by which a command that is suggested finds it.
    pub words: &'a str,
    /// What it shows.
    pub log: &'a NcclLog,
    /// What that proves.
    pub proof: &'a NcclProof,
}

/// What both took for the same.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Figure {
    /// A step of a training, or the bytes of a message of nccl-tests.
    pub of: FigureSubject,
    /// Seconds with RDMA.
    pub rdma_s: f64,
    /// Seconds over TCP.
    pub tcp_s: f64,
    /// How many times as fast RDMA was.
    pub gain: f64,
    /// Busbw with RDMA and over TCP, in GB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busbw: Option<(f64, f64)>,
}

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureSubject {
    /// The median of a training's steps.
    Training(StepUnit),
    /// A message of so many bytes.
    Message(u64),
}

impl FigureSubject {
    /// For people.
    pub fn word(self) -> String {
        match self {
            FigureSubject::Training(unit) => unit.word(),
            FigureSubject::Message(size) => format_bytes(size),
        }
    }
}

/// Two logs side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct LogComparison {
    /// Whether it is a comparison of RDMA with TCP, with figures.
    pub verdict: JobVerdict,
    /// Topic by topic.
    pub topics: Vec<(LogComparisonTopic, CheckOutcome)>,
    /// The place of the log with RDMA, 0 or 1; nothing where neither or both have it.
    pub rdma: Option<usize>,
    /// Step by step or size by size, the largest last.
    pub figures: Vec<Figure>,
}

impl LogComparison {
    /// The figure that counts: of a step, or of the largest message.
    pub fn figure(&self) -> Option<&Figure> {
        self.figures.last()
    }
}

/// Compares two logs.
pub fn compare_nccl_logs(sides: [ComparedLog<'_>; 2]) -> LogComparison {
    let (pair, rdma) = check_transport_pair(&sides);
    let figures = rdma
        .map(|place| collect_figures(sides[place].log, sides[1 - place].log))
        .unwrap_or_default();
    let mut topics = vec![(LogComparisonTopic::Pair, pair)];
    if let Some(place) = rdma {
        topics.push((
            LogComparisonTopic::Identical,
            same_job::check_same_job(&sides, place, &figures),
        ));
        topics.push((LogComparisonTopic::Sound, check_sound_runs(&sides)));
        topics.push((
            LogComparisonTopic::Gain,
            check_gain(&sides, place, &figures),
        ));
    }
    LogComparison {
        verdict: JobVerdict::from_outcomes(topics.iter().map(|(_, outcome)| outcome)),
        topics,
        rdma,
        figures,
    }
}

/// The two logs that a comparison needs.
const TRANSPORT_PAIR: &str = "one log over RDMA between hosts, one over TCP";

/// Whether one used RDMA and the other TCP, and which.
fn check_transport_pair(sides: &[ComparedLog<'_>; 2]) -> (CheckOutcome, Option<usize>) {
    if let Some(side) = sides.iter().find(|side| side.log.is_of_one_host()) {
        let why = format!(
            "all ranks of {} are on one host, and nothing of it crosses the network",
            side.name
        );
        return (reject_pair(sides, &why), None);
    }
    if let Some(side) = sides
        .iter()
        .find(|side| side.proof.transport.is_rdma() && !is_transport_proven(side))
    {
        let measured = format!(
            "{}; that {} used RDMA is not proven",
            describe_transports(sides),
            side.name
        );
        let next = format!("railwright job prove {} says what is missing", side.words);
        return (report_unknown_pair(measured, next), None);
    }
    let rdma = match sides.map(|side| side.proof.transport) {
        [one, other] if one.is_rdma() && other == Transport::Socket => 0,
        [one, other] if one == Transport::Socket && other.is_rdma() => 1,
        _ => return (explain_unfit_pair(sides), None),
    };
    let outcome = CheckOutcome::passed(describe_transports(sides)).expected(TRANSPORT_PAIR);
    (outcome, Some(rdma))
}

fn is_transport_proven(side: &ComparedLog<'_>) -> bool {
    side.proof
        .aspects
        .iter()
        .any(|(aspect, told)| *aspect == Aspect::Transport && told.verdict == CheckVerdict::Passed)
}

/// Why two logs are not one with RDMA and one over TCP.
fn explain_unfit_pair(sides: &[ComparedLog<'_>; 2]) -> CheckOutcome {
    match sides.map(|side| side.proof.transport) {
        of if of.contains(&Transport::Mixed) => {
            reject_pair(sides, "one of them used both, so it is neither")
        }
        [one, other] if one.is_rdma() && other.is_rdma() => reject_pair(sides, "both used RDMA"),
        [Transport::Socket, Transport::Socket] => reject_pair(sides, "both went over TCP"),
        _ => {
            let silent = sides.iter().find(|side| {
                matches!(side.proof.transport, Transport::Unknown | Transport::Plugin)
            });
            let words = silent.map(|side| side.words).unwrap_or_default();
            let next = format!(
                "run the job with NCCL_DEBUG=INFO and take its whole log; railwright job prove \
                 {words} says what is missing"
            );
            report_unknown_pair(describe_transports(sides), next)
        }
    }
}

/// The outcome for two logs that are known not to be such a pair.
fn reject_pair(sides: &[ComparedLog<'_>; 2], why: &str) -> CheckOutcome {
    // Of two over TCP one was meant to use RDMA.
    let next = match sides
        .iter()
        .all(|side| side.proof.transport == Transport::Socket)
    {
        true => format!(
            "railwright doctor {} says why RDMA was not used",
            sides[0].words
        ),
        false => "railwright job render compare KIND writes such a pair".to_owned(),
    };
    let measured = describe_transports(sides);
    CheckOutcome::failed("RW1252", format!("{measured}; {why}"))
        .expected(TRANSPORT_PAIR)
        .effect("this compares nothing")
        .next(next)
}

/// The outcome for two logs that do not say enough of their transport.
fn report_unknown_pair(measured: String, next: String) -> CheckOutcome {
    CheckOutcome::unknown("RW1253", measured)
        .expected(TRANSPORT_PAIR)
        .effect("which of both used RDMA is not known")
        .next(next)
}

fn describe_transports(sides: &[ComparedLog<'_>; 2]) -> String {
    describe_sides(sides, |side| {
        format!("{}: {}", side.name, describe_transport(side))
    })
}

/// A text of each of the two, in their order.
fn describe_sides(
    sides: &[ComparedLog<'_>; 2],
    describe: fn(&ComparedLog<'_>) -> String,
) -> String {
    let [one, other] = sides;
    format!("{}; {}", describe(one), describe(other))
}

fn describe_transport(side: &ComparedLog<'_>) -> String {
    match side.proof.transport {
        Transport::Unknown => "the log does not tell".to_owned(),
        transport => transport.word().to_owned(),
    }
}

/// Whether both did their work.
fn check_sound_runs(sides: &[ComparedLog<'_>; 2]) -> CheckOutcome {
    for side in sides {
        for (aspect, told) in &side.proof.aspects {
            let measured = format!("{}: {}", side.name, told.measured);
            let outcome = match (aspect, told.verdict) {
                (Aspect::Data, CheckVerdict::Failed) => CheckOutcome::failed("RW1207", measured),
                (Aspect::Progress, CheckVerdict::Failed | CheckVerdict::Unknown) => {
                    CheckOutcome::unknown(told.code.unwrap_or("RW1211"), measured)
                }
                _ => continue,
            };
            return outcome
                .expected("both did all their work")
                .effect(told.effect.clone())
                .next(format!("railwright job prove {}", side.words));
        }
    }
    CheckOutcome::passed("neither broke")
}

/// What both took, where both logs say it of the same.
fn collect_figures(rdma: &NcclLog, tcp: &NcclLog) -> Vec<Figure> {
    if let (Some((unit, one)), Some((other_unit, other))) =
        (rdma.steps.measured(), tcp.steps.measured())
        && unit == other_unit
        && let (Some(rdma_s), Some(tcp_s)) = (one.median(), other.median())
    {
        return vec![Figure {
            of: FigureSubject::Training(unit),
            rdma_s,
            tcp_s,
            gain: tcp_s / rdma_s,
            busbw: None,
        }];
    }
    let Some([one, other]) = same_job::same_test([rdma, tcp]) else {
        return Vec::new();
    };
    let mut figures: Vec<Figure> = Vec::new();
    for size in &one.each {
        if let Some(other) = other.each.iter().find(|other| other.bytes == size.bytes) {
            figures.extend(build_size_figure(size, other));
        }
    }
    figures.sort_by_key(|figure| {
        if let FigureSubject::Message(size) = figure.of {
            size
        } else {
            0
        }
    });
    figures
}

fn build_size_figure(rdma: &CollectiveSizeResult, tcp: &CollectiveSizeResult) -> Option<Figure> {
    let (rdma_s, tcp_s) = (rdma.seconds()?, tcp.seconds()?);
    let is_measured = rdma_s > 0.0 && tcp_s > 0.0;
    is_measured.then(|| Figure {
        of: FigureSubject::Message(rdma.bytes),
        rdma_s,
        tcp_s,
        gain: tcp_s / rdma_s,
        busbw: rdma.busbw().zip(tcp.busbw()),
    })
}

fn check_gain(sides: &[ComparedLog<'_>; 2], rdma: usize, figures: &[Figure]) -> CheckOutcome {
    let Some(figure) = figures.last() else {
        return report_no_figures(sides);
    };
    let words = describe_gain([sides[rdma].log, sides[1 - rdma].log], figure);
    if figure.gain >= GAIN_MIN {
        return CheckOutcome::passed(words);
    }
    if figure.gain < 1.0 / GAIN_MIN {
        return CheckOutcome::warning("RW1258", words)
            .expected("RDMA is faster")
            .effect(
                "the RDMA path is the slower one, which no sound fabric is: loss, a priority \
                 without PFC, GPUDirect that is off, or fewer NICs than there are",
            )
            .next(
                "railwright verify INVENTORY measures each rail by itself, railwright verify \
                 fabric INVENTORY counts what is lost",
            );
    }
    let (effect, next) = match figure.of {
        FigureSubject::Training(_) => (
            "the job hardly waits for the network: its time goes elsewhere, or its model is too \
             small to have much to send",
            "look with a profiler what a step waits for, below",
        ),
        FigureSubject::Message(_) => (
            "the collective waits for something else than the network",
            "railwright verify INVENTORY measures each rail by itself, and railwright job prove \
             says whether GPUDirect was on",
        ),
    };
    CheckOutcome::warning("RW1256", words)
        .expected("RDMA is faster")
        .effect(effect)
        .next(next)
}

/// `485 ms with RDMA, ...`; the log with RDMA is the first.
fn describe_gain(logs: [&NcclLog; 2], figure: &Figure) -> String {
    let of = match figure.of {
        FigureSubject::Training(unit) => {
            let [with, without] = logs.map(count_measured_steps);
            format!("{}, the median of {with} and {without}", unit.word())
        }
        FigureSubject::Message(size) => format!("a message of {}", format_bytes(size)),
    };
    format!(
        "{} with RDMA, {} over TCP for {of}: {:.2} times as fast",
        format_seconds(figure.rdma_s),
        format_seconds(figure.tcp_s),
        figure.gain
    )
}

fn count_measured_steps(log: &NcclLog) -> u64 {
    match log.steps.measured() {
        Some((_, sampled)) => sampled.count,
        None => 0,
    }
}

fn report_no_figures(sides: &[ComparedLog<'_>; 2]) -> CheckOutcome {
    let (measured, next) = explain_missing_figures(sides);
    CheckOutcome::unknown("RW1254", measured)
        .expected(format!(
            "the times of {STEPS_MIN} steps and more, or of the same sizes of one test, in both \
             logs"
        ))
        .effect("what RDMA gained is not known")
        .next(next)
}

/// Why two logs have no figure in common, and what helps.
fn explain_missing_figures(sides: &[ComparedLog<'_>; 2]) -> (String, &'static str) {
    let logs = sides.map(|side| side.log);
    if let [Some(_), Some(_)] = logs.map(same_job::find_last_table) {
        if let Some(runs) = same_job::same_test(logs) {
            return explain_missing_sizes(sides, runs);
        }
        let tables = describe_sides(sides, |side| {
            format!("{} has a table of nccl-tests", side.name)
        });
        return (
            format!("{tables}, and the two are not known to be of one test"),
            "run the same test twice: railwright job render compare nccl-test writes such a pair",
        );
    }
    let next = match logs
        .iter()
        .any(|log| log.training.lines > 0 && log.steps.measured().is_none())
    {
        true => {
            "take the logs with the times of their lines: kubectl logs --timestamps POD, which \
             railwright job compare JOB does by itself"
        }
        false => "take the whole log of both jobs, each to its end",
    };
    (describe_sides(sides, describe_measurements), next)
}

/// Why two tables of one test have no size with a time in common, and what helps.
fn explain_missing_sizes(
    sides: &[ComparedLog<'_>; 2],
    runs: [&CollectiveRun; 2],
) -> (String, &'static str) {
    if let Some(place) = runs
        .iter()
        .position(|run| run.each.iter().all(|size| size.seconds().is_none()))
    {
        return (
            format!("the table of {} has no column of time", sides[place].name),
            "run the test without -C, which puts the time of the CPU into its place",
        );
    }
    let sizes = describe_sides(sides, |side| {
        let sizes = same_job::find_last_table(side.log).map(describe_size_range);
        format!("{} has {}", side.name, sizes.unwrap_or_default())
    });
    (
        format!("no size with a time is in both tables: {sizes}"),
        "run both with the same -b, -e and -f",
    )
}

fn describe_measurements(side: &ComparedLog<'_>) -> String {
    match (
        side.log.steps.measured(),
        same_job::find_last_table(side.log),
        side.log.training.lines,
    ) {
        (Some((unit, _)), ..) => format!("{} has {}", side.name, unit.word()),
        (None, Some(_), _) => format!("{} has a table of nccl-tests", side.name),
        (None, None, 0) => format!(
            "{} has neither steps of a training nor a table of nccl-tests",
            side.name
        ),
        (None, None, lines) => format!(
            "{} has {} of progress, and too few with a time",
            side.name,
            format_count(lines as usize, "line")
        ),
    }
}

/// The sizes of a table: how many, and from which to which.
fn describe_size_range(run: &CollectiveRun) -> String {
    let sizes: Vec<u64> = run.each.iter().map(|size| size.bytes).collect();
    match (sizes.iter().copied().min(), sizes.iter().copied().max()) {
        (Some(least), Some(most)) if least < most => {
            format!(
                "{} from {} to {}",
                format_count(run.each.len(), "size"),
                format_bytes(least),
                format_bytes(most)
            )
        }
        (Some(only), _) => format_bytes(only),
        _ => "no size".to_owned(),
    }
}

/// Seconds with three figures: `485 ms`, `35.2 us`.
pub fn format_seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        _ if seconds >= 1.0 => (seconds, "s"),
        _ if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "us"),
    };
    let digits = match value {
        _ if value >= 100.0 => 0,
        _ if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}
