//! The DSCP that RoCE packets really arrive with, counted at the receiver: a wrong mark puts them
//! into the wrong, lossy queue of every switch, and nothing says so.
//!
//! Soft-RoCE packets pass the kernel, so nftables counts them by DSCP. A NIC that does RoCE by
//! itself is invisible to nftables; it counts packets per priority, which the DSCP maps to.

use super::request::ExpectedMarks;
use super::result::CheckOutcome;
use serde_json::Value;
use std::collections::BTreeMap;

/// The least share of packets that must have the mark, in percent: handshakes and acknowledgements
/// of other connections may have another one.
const SHARE_PERCENT: f64 = 95.0;
/// Fewer packets than this prove nothing.
const ENOUGH_PACKETS: u64 = 50;

/// What the probe said before or after the traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkCounts {
    /// Packets by DSCP, from nftables; empty when it saw none.
    pub by_dscp: BTreeMap<u8, u64>,
    /// Packets received by priority, from the NIC; empty where it has no such counters.
    pub by_priority: BTreeMap<u8, u64>,
}

/// Reads the `count-marks` or `read-marks` probe.
pub fn parse_mark_counts(text: &str) -> MarkCounts {
    let mut counts = MarkCounts::default();
    for line in text.lines() {
        if line.trim_start().starts_with('{') {
            counts.by_dscp.extend(parse_nft_counters(line));
        } else if let Some((priority, packets)) = parse_priority_line(line) {
            counts.by_priority.insert(priority, packets);
        }
    }
    counts
}

/// `rx_prio3_packets: 14118` (ethtool -S).
fn parse_priority_line(line: &str) -> Option<(u8, u64)> {
    let (name, value) = line.trim().split_once(':')?;
    let priority = name.strip_prefix("rx_prio")?.strip_suffix("_packets")?;
    Some((priority.parse().ok()?, value.trim().parse().ok()?))
}

/// `nft -j -n list set` (1.0.6):
/// `{"nftables":[..,{"set":{..,"elem":[{"elem":{"val":26,"counter":{"packets":14118,..}}}]}}]}`.
fn parse_nft_counters(json: &str) -> Vec<(u8, u64)> {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let mut counts = Vec::new();
    for entry in value["nftables"].as_array().into_iter().flatten() {
        for element in entry["set"]["elem"].as_array().into_iter().flatten() {
            let element = &element["elem"];
            if let Some(dscp) = element["val"].as_u64()
                && let Ok(dscp) = u8::try_from(dscp)
                && let Some(packets) = element["counter"]["packets"].as_u64()
            {
                counts.push((dscp, packets));
            }
        }
    }
    counts
}

/// Checks the packets that arrived between two readings.
pub fn check_packet_marks(
    before: &MarkCounts,
    after: &MarkCounts,
    desired: ExpectedMarks,
) -> CheckOutcome {
    let expected = format!("at least {SHARE_PERCENT} % with DSCP {}", desired.dscp);
    if after.by_dscp.values().sum::<u64>() >= ENOUGH_PACKETS {
        return check_mark_share(&after.by_dscp, desired.dscp, "DSCP", expected);
    }
    let mut delta: BTreeMap<u8, u64> = BTreeMap::new();
    for (priority, packets) in &after.by_priority {
        let earlier = before.by_priority.get(priority).copied().unwrap_or(0);
        delta.insert(*priority, packets.saturating_sub(earlier));
    }
    if delta.values().sum::<u64>() >= ENOUGH_PACKETS {
        return check_mark_share(
            &delta,
            desired.priority,
            "priority",
            format!(
                "at least {SHARE_PERCENT} % on priority {}",
                desired.priority
            ),
        );
    }
    if after.by_priority.is_empty() {
        return CheckOutcome::not_applicable(
            "neither nftables nor the NIC can count the marks here",
        )
        .expected(expected);
    }
    CheckOutcome::unknown("RW0815", "too few packets were counted for a verdict")
        .expected(expected)
        .next("railwright verify {inventory}")
}

fn check_mark_share(
    counts: &BTreeMap<u8, u64>,
    desired: u8,
    word: &str,
    expected: String,
) -> CheckOutcome {
    let total: u64 = counts.values().sum();
    let share = counts.get(&desired).copied().unwrap_or(0) as f64 * 100.0 / total.max(1) as f64;
    if share >= SHARE_PERCENT {
        return CheckOutcome::passed(format!("{share:.0} % on {word} {desired}"))
            .expected(expected);
    }
    let most = match counts.iter().max_by_key(|(_, packets)| **packets) {
        Some((value, _)) => *value,
        None => 0,
    };
    CheckOutcome::failed(
        "RW0807",
        format!("{share:.0} % on {word} {desired}, most on {word} {most}"),
    )
    .expected(expected)
    .effect(
        "RoCE traffic of the sender travels in the wrong class: it is not lossless there, and \
         takes the buffer of others",
    )
    .next("railwright drift {inventory}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;
    use proptest::prelude::*;

    const WANTED: ExpectedMarks = ExpectedMarks {
        dscp: 26,
        priority: 3,
    };

    #[test]
    fn nftables_counts_what_passes_the_kernel() {
        let evaluated = check_packet_marks(
            &MarkCounts::default(),
            &parse_mark_counts(samples::MARKS_26),
            WANTED,
        );
        assert_eq!(
            (evaluated.verdict, evaluated.measured.as_str()),
            (CheckVerdict::Passed, "100 % on DSCP 26")
        );
    }

    #[test]
    fn unmarked_traffic_fails_and_says_where_it_went() {
        let evaluated = check_packet_marks(
            &MarkCounts::default(),
            &parse_mark_counts(samples::MARKS_0),
            WANTED,
        );
        assert_eq!(
            (evaluated.code, evaluated.measured.as_str()),
            (Some("RW0807"), "0 % on DSCP 26, most on DSCP 0")
        );
    }

    #[test]
    fn a_nic_that_bypasses_the_kernel_goes_by_its_priorities() {
        let before = parse_mark_counts(
            "@priorities\n     rx_prio0_packets: 500\n     rx_prio3_packets: 100\n@counting\n",
        );
        let after = parse_mark_counts(
            "@priorities\n     rx_prio0_packets: 501\n     rx_prio3_packets: 9100\n\
             @marks\n\
             {\"nftables\":[]}\n",
        );
        assert_eq!(
            check_packet_marks(&before, &after, WANTED).measured,
            "100 % on priority 3"
        );
        let wrong = parse_mark_counts("rx_prio0_packets: 9500\nrx_prio3_packets: 100\n");
        assert_eq!(
            check_packet_marks(&before, &wrong, WANTED).measured,
            "0 % on priority 3, most on priority 0"
        );
    }

    #[test]
    fn where_nothing_can_count_it_does_not_apply_and_no_packets_prove_nothing() {
        assert_eq!(
            check_packet_marks(
                &MarkCounts::default(),
                &parse_mark_counts("@missing nft\n"),
                WANTED
            )
            .verdict,
            CheckVerdict::NotApplicable
        );
        let same = parse_mark_counts("rx_prio0_packets: 9500\n");
        assert_eq!(
            check_packet_marks(&same, &same, WANTED).verdict,
            CheckVerdict::Unknown
        );
    }

    proptest! {
        #[test]
        fn no_output_panics(text in "(\\{\"nftables\":\\[|rx_prio3_packets: |[ -~\n]){0,40}") {
            check_packet_marks(&parse_mark_counts(&text), &parse_mark_counts(&text), WANTED);
        }
    }
}
