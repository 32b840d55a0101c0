//! Whether the largest messages of nccl-tests reached what the NICs of one node carry.

use super::evaluation::format_bytes;
use super::expected::NcclExpectations;
use super::log::NcclLog;
use super::nccl_tests_table::{CollectiveRun, CollectiveSizeResult};
use crate::result::CheckOutcome;

/// From this size on a low figure disproves; smaller messages are slow for themselves (a run of two
/// hosts in `samples` reaches nine tenths of its end at 256 MiB).
const JUDGED_FROM: u64 = 256 << 20;

/// What is above this share of what NICs carry did not go over these NICs, in percent. Encoding and
/// rounding are far below it.
const MOST_PERCENT: f64 = 110.0;

/// The command that measures what is missing.
const MEASURE: &str = "run all_reduce_perf -b 8 -e 8G -f 2 on two hosts, and say with \
                       --expect-gbps what the NICs of one node carry";

/// What nccl-tests measured at the size that is checked.
struct MeasuredBandwidth {
    /// In GB/s.
    busbw: f64,
    /// Bytes of a message.
    bytes: u64,
}

impl MeasuredBandwidth {
    fn describe(&self) -> String {
        format!("{} GB/s busbw at {}", self.busbw, format_bytes(self.bytes))
    }
}

/// What the NICs of one node carry together, and where that number comes from.
struct NodeBandwidth<'a> {
    /// In Gb/s.
    gbps: f64,
    expected: &'a NcclExpectations,
}

impl NodeBandwidth<'_> {
    /// All that the NICs carry, in GB/s.
    fn capacity(&self) -> f64 {
        self.gbps / 8.0
    }

    /// The least that the largest messages must reach, in GB/s.
    fn least(&self) -> f64 {
        self.capacity() * f64::from(self.expected.least_percent) / 100.0
    }

    fn describe_least(&self) -> String {
        format!(
            "at least {:.1} GB/s: {} % of {:.1} GB/s ({} Gb/s, {})",
            self.least(),
            self.expected.least_percent,
            self.capacity(),
            self.gbps,
            self.expected.source
        )
    }
}

/// Compares the bandwidth of the last run with what the NICs of a node carry. Where it `is_needed`,
/// nothing else proves that RDMA was used, and a missing figure leaves the log inconclusive.
pub(super) fn check_bandwidth(
    log: &NcclLog,
    expected: &NcclExpectations,
    is_needed: bool,
) -> CheckOutcome {
    let Some((run, size)) = select_bandwidth_run(log) else {
        let is_missed = expected.node_gbps.is_some() || is_needed;
        return leave_open("the log has no table of nccl-tests".to_owned(), is_missed);
    };
    let Some(busbw) = size.busbw() else {
        return report_missing_figure("the table has no busbw".to_owned());
    };
    let bytes = size.bytes;
    let measured = MeasuredBandwidth { busbw, bytes };
    let words = measured.describe();
    let Some(gbps) = expected.node_gbps else {
        return leave_open(format!("{words}; nothing to hold it against"), is_needed);
    };
    let node = NodeBandwidth { gbps, expected };
    if log.is_of_one_host() {
        return leave_open(format!("{words}, within one host"), is_needed);
    }
    match run.is_of_the_whole_node() {
        Some(true) => compare_bandwidth(&measured, &node),
        Some(false) => leave_open(
            format!("{words}; each GPU has its own share of the NICs in this operation"),
            is_needed,
        ),
        None => report_missing_figure(format!(
            "{words}, and which operation it is does not stand there"
        ))
        .expected(node.describe_least()),
    }
}

/// The run that is checked: the last one that measures what a node's NICs carry, else the last one.
fn select_bandwidth_run(log: &NcclLog) -> Option<(&CollectiveRun, CollectiveSizeResult)> {
    let mut last = None;
    for run in log.runs.iter().rev() {
        let Some(largest) = run.largest else {
            continue;
        };
        if run.is_of_the_whole_node() == Some(true) {
            return Some((run, largest));
        }
        last.get_or_insert((run, largest));
    }
    last
}

fn report_missing_figure(what: String) -> CheckOutcome {
    CheckOutcome::unknown("RW1210", what)
        .expected("a figure of nccl-tests and what to compare it with")
        .effect("whether the fabric's bandwidth was there is not known")
        .next(MEASURE)
}

/// Where nothing but the bandwidth proves anything, a figure that does not say it leaves the log
/// inconclusive; elsewhere the bandwidth does not apply.
fn leave_open(why: String, is_needed: bool) -> CheckOutcome {
    if is_needed {
        report_missing_figure(why)
    } else {
        CheckOutcome::not_applicable(why)
    }
}

fn compare_bandwidth(measured: &MeasuredBandwidth, node: &NodeBandwidth) -> CheckOutcome {
    let (busbw, capacity) = (measured.busbw, node.capacity());
    let share = format!(
        "{}, {:.0} % of what the NICs carry",
        measured.describe(),
        100.0 * busbw / capacity
    );
    if busbw > capacity * MOST_PERCENT / 100.0 {
        return CheckOutcome::unknown("RW1218", share)
            .expected(format!(
                "at most {capacity:.1} GB/s ({} Gb/s, {})",
                node.gbps, node.expected.source
            ))
            .effect(
                "what it is compared with is not what these NICs carry, or the switches reduce \
                 (SHARP): nothing is proven of the bandwidth",
            )
            .next("say with --expect-gbps what the NICs of one node carry together");
    }
    if busbw >= node.least() {
        return CheckOutcome::passed(share).expected(node.describe_least());
    }
    if measured.bytes < JUDGED_FROM {
        let small = format!("{share}, but messages of this size are slow by themselves");
        return CheckOutcome::unknown("RW1209", small)
            .expected(node.describe_least())
            .effect("nothing is proven of the bandwidth")
            .next(MEASURE);
    }
    CheckOutcome::failed("RW1209", share)
        .expected(node.describe_least())
        .effect("jobs wait for the network for longer than its NICs make necessary")
        .next(format!(
            "railwright doctor {}; railwright verify INVENTORY measures each rail by itself",
            node.expected.words
        ))
}
