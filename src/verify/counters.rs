//! Error counters of a port before and after the traffic: only the difference says anything, the
//! sum since boot does not.

use super::result::CheckOutcome;
use std::collections::BTreeMap;

const LONGER: &str = "packets longer than this port takes arrived and were dropped: the MTU of the \
                      peer, or of a switch port, is larger than ours";
const ERDMA_OFF: &str = "packets were dropped because RDMA is switched off for the interface";
const ERDMA_LIMIT: &str =
    "packets were dropped at the bandwidth or packet rate of the instance type";

/// Counters that must not move, with what it means when they do. mlx5 names first (what ethtool
/// says of them: torvalds/linux:
/// Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst), then those of
/// eRDMA (torvalds/linux: drivers/infiniband/hw/erdma/erdma_verbs.c) and of Soft-RoCE (`rxe`),
/// whose `completer_retry_err` is left out: its timers repeat packets on every busy machine.
const MUST_NOT_MOVE: &[(&str, &str)] = &[
    ("out_of_sequence", "packets were lost on the way"),
    ("packet_seq_err", "packets were lost on the way"),
    (
        "local_ack_timeout_err",
        "the peer did not answer in time: loss or a stalled path",
    ),
    ("implied_nak_seq_err", "packets were lost on the way"),
    ("rnr_nak_retry_err", "a receiver was not ready"),
    (
        "req_transport_retries_exceeded",
        "a connection broke after all its retries",
    ),
    (
        "req_rnr_retries_exceeded",
        "a connection broke after all its retries",
    ),
    ("roce_adp_retrans", "packets were sent again"),
    (
        "roce_adp_retrans_to",
        "packets were sent again after a timeout",
    ),
    ("roce_slow_restart", "loss made the NIC start slowly again"),
    ("rx_icrc_encapsulated", "packets arrived damaged"),
    ("rp_cnp_ignored", "congestion was signalled and ignored"),
    ("symbol_error", "the cable or transceiver is bad"),
    ("link_downed", "the link went down"),
    ("link_error_recovery", "the link trained anew"),
    ("port_rcv_errors", "packets arrived damaged"),
    ("rx_discards_phy", "the port ran out of buffer"),
    (
        "rx_out_of_buffer",
        "a receive queue of the host had no buffer left",
    ),
    ("rx_out_of_range_len_phy", LONGER),
    ("rx_oversize_pkts_phy", LONGER),
    ("rx_crc_errors_phy", "the cable or transceiver is bad"),
    ("rx_pcs_symbol_err_phy", "the cable or transceiver is bad"),
    ("link_down_events_phy", "the link went down"),
    (
        "tx_pause_storm_warning_events",
        "this port sent its switch PFC pause frames for very long",
    ),
    ("tx_pause_storm_error_events", "a pause storm was cut off"),
    // eRDMA, by the kernel's driver and by Alibaba's own.
    ("tx_disable_drop_cnt", ERDMA_OFF),
    ("rx_disable_drop_cnt", ERDMA_OFF),
    ("tx_bps_limit_drop_cnt", ERDMA_LIMIT),
    ("rx_bps_limit_drop_cnt", ERDMA_LIMIT),
    ("tx_pps_limit_drop_cnt", ERDMA_LIMIT),
    ("rx_pps_limit_drop_cnt", ERDMA_LIMIT),
    ("hw_disable_drop_cnt", ERDMA_OFF),
    ("hw_rx_disable_drop_cnt", ERDMA_OFF),
    ("hw_bps_limit_drop_cnt", ERDMA_LIMIT),
    ("hw_rx_bps_limit_drop_cnt", ERDMA_LIMIT),
    ("hw_pps_limit_drop_cnt", ERDMA_LIMIT),
    ("hw_rx_pps_limit_drop_cnt", ERDMA_LIMIT),
    ("rcvd_seq_err", "packets were lost on the way"),
    ("out_of_seq_request", "packets were lost on the way"),
    (
        "retry_exceeded_err",
        "a connection broke after all its retries",
    ),
    (
        "retry_rnr_exceeded_err",
        "a connection broke after all its retries",
    ),
    ("send_err", "a send failed"),
];

/// Counters of a host by `device/port`.
pub type Counters = BTreeMap<String, BTreeMap<String, u64>>;

/// Reads the `counters` probe: `@counters DEVICE PORT`, then `name value`.
pub fn parse_port_counters(text: &str) -> Counters {
    let mut out = Counters::new();
    let mut key = None;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("@counters ") {
            key = Some(head.trim().replace(' ', "/"));
        } else if let Some(key) = &key {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
                out.entry(key.clone())
                    .or_default()
                    .insert(name.to_owned(), value);
            }
        }
    }
    out
}

/// Packets of eRDMA, by both drivers: where a port counts them, traffic of ours that passed moves
/// both.
const ERDMA_PACKETS: &[[&str; 2]] = &[
    ["rx_packets_cnt", "tx_packets_cnt"],
    ["hw_rx_packets_cnt", "hw_tx_packets_cnt"],
];

/// How one port moved.
struct PortCounterDelta<'a> {
    before: &'a BTreeMap<String, u64>,
    after: &'a BTreeMap<String, u64>,
}

impl PortCounterDelta<'_> {
    fn by(&self, name: &str) -> Option<u64> {
        self.after.get(name)?.checked_sub(*self.before.get(name)?)
    }

    /// The counters of errors that the port has, each with its meaning; with a lossless priority
    /// its losses, and pauses of every other one.
    fn watched(&self, lossless: Option<u8>) -> Vec<(String, String)> {
        let mut watched = Vec::new();
        for (name, why) in MUST_NOT_MOVE {
            watched.push(((*name).to_owned(), (*why).to_owned()));
        }
        for priority in 0..8u8 {
            if lossless == Some(priority) {
                let why = "the lossless class lost packets: pause came too late, or not at all";
                for what in ["discards", "buf_discard", "cong_discard"] {
                    watched.push((format!("rx_prio{priority}_{what}"), why.to_owned()));
                }
            } else if lossless.is_some() {
                let why = format!(
                    "priority {priority} was paused, which is not lossless: PFC is on for it at \
                     this port or at its switch"
                );
                for way in ["rx", "tx"] {
                    watched.push((format!("{way}_prio{priority}_pause"), why.clone()));
                }
            }
        }
        watched.retain(|(name, _)| self.before.contains_key(name) || self.after.contains_key(name));
        watched
    }

    /// Those that rose.
    fn risen(&self, watched: &[(String, String)]) -> Vec<(String, u64, String)> {
        let mut risen = Vec::new();
        for (name, why) in watched {
            if let Some(delta) = self.by(name)
                && delta > 0
            {
                risen.push((name.clone(), delta, why.clone()));
            }
        }
        risen
    }

    /// A counter that came, went or fell: it began anew in the meantime, and says nothing of it.
    fn find_break(&self, watched: &[(String, String)]) -> Option<String> {
        let mut names = watched.iter().map(|(name, _)| name);
        names.find_map(|name| match (self.before.get(name), self.after.get(name)) {
            (None, Some(_)) => Some(format!("{name} came during the test")),
            (Some(_), None) => Some(format!("{name} went during the test")),
            (Some(before), Some(after)) if after < before => Some(format!(
                "{name} was {before} before the test and is {after} after it"
            )),
            _ => None,
        })
    }
}

/// RDMA packets did not pass by the device that they were sent over.
pub fn passed_by(measured: String) -> CheckOutcome {
    CheckOutcome::failed("RW0821", measured)
        .effect(
            "the traffic that was measured did not go over this eRDMA device, so that nothing is \
             proven of it",
        )
        .next("railwright drift {inventory}")
}

fn report_counter_break(reason: String) -> CheckOutcome {
    CheckOutcome::unknown("RW0851", reason)
        .effect(
            "the port, its device or its driver was set back or went away during the test, or \
             somebody reset its counters: what went wrong meanwhile was not counted",
        )
        .next("railwright verify {inventory}")
}

/// Checks one port by its counters before and after; `lossless` is the priority that may be paused
/// and may not lose, and `measured` says that traffic was seen to run over it.
pub fn check_port_counters(
    [before, after]: [&BTreeMap<String, u64>; 2],
    lossless: Option<u8>,
    measured: bool,
) -> CheckOutcome {
    let moved = PortCounterDelta { before, after };
    let watched = moved.watched(lossless);
    if watched.is_empty() && before.is_empty() == after.is_empty() {
        return CheckOutcome::not_applicable("the port has no counter of errors that is known");
    }
    let mut packets = ERDMA_PACKETS.iter();
    if measured
        && let Some((rx, tx)) = packets.find_map(|[rx, tx]| Some((moved.by(rx)?, moved.by(tx)?)))
        && (rx == 0 || tx == 0)
    {
        return passed_by(format!(
            "{rx} packets received and {tx} sent during the test"
        ))
        .expected("packets both ways");
    }
    let expected = "no error counter moves";
    if let Some(reason) = moved.find_break(&watched) {
        return report_counter_break(reason).expected(expected);
    }
    let risen = moved.risen(&watched);
    if risen.is_empty() {
        return CheckOutcome::passed("no error counter moved").expected(expected);
    }
    let (mut words, mut meanings) = (Vec::new(), Vec::new());
    for (name, delta, why) in &risen {
        words.push(format!("{name} +{delta}"));
        meanings.push(why.as_str());
    }
    meanings.dedup();
    CheckOutcome::warning("RW0814", words.join(", "))
        .expected(expected)
        .effect(format!("during the test {}", meanings.join("; ")))
        .next("railwright verify {inventory}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    #[test]
    fn only_a_rise_of_an_error_counter_is_told() {
        let port = |text: &str| {
            parse_port_counters(&format!("@counters rocep193s0 1\n{text}"))["rocep193s0/1"].clone()
        };
        let before = port("sent_pkts 10\nrcvd_seq_err 4\nlink_downed 1\nrp_cnp_ignored 7\n");
        let after = port("sent_pkts 90\nrcvd_seq_err 6\nlink_downed 1\nrp_cnp_ignored 7\n");
        let evaluated = check_port_counters([&before, &after], Some(3), true);
        assert_eq!(
            (evaluated.verdict, evaluated.measured.as_str()),
            (CheckVerdict::Warning, "rcvd_seq_err +2")
        );
        assert_eq!(
            check_port_counters([&before, &before], None, true).verdict,
            CheckVerdict::Passed
        );
        let set_back = check_port_counters(
            [
                &before,
                &port("rcvd_seq_err 9\nlink_downed 0\nrp_cnp_ignored 7\n"),
            ],
            None,
            true,
        );
        assert_eq!(
            (set_back.verdict, set_back.measured.as_str()),
            (
                CheckVerdict::Unknown,
                "link_downed was 1 before the test and is 0 after it"
            )
        );
        let none = BTreeMap::new();
        for pair in [[&before, &none], [&none, &after]] {
            assert_eq!(
                check_port_counters(pair, None, true).verdict,
                CheckVerdict::Unknown,
                "a port that goes or comes is inconclusive"
            );
        }
        let strange = port("to_retransmits 0\n");
        assert_eq!(
            check_port_counters([&strange, &port("to_retransmits 900\n")], None, true).verdict,
            CheckVerdict::NotApplicable,
            "nothing is known of what it counts"
        );
        assert_eq!(
            check_port_counters([&BTreeMap::new(), &BTreeMap::new()], None, true).verdict,
            CheckVerdict::NotApplicable
        );
    }

    fn of(before: &str, after: &str, lossless: Option<u8>) -> CheckOutcome {
        let port =
            |text: &str| parse_port_counters(&format!("@counters d 1\n{text}"))["d/1"].clone();
        check_port_counters([&port(before), &port(after)], lossless, true)
    }

    #[test]
    fn the_lossless_priority_may_be_paused_and_may_not_lose() {
        let zero = "rcvd_seq_err 0\n\
                    rx_prio3_pause 0\n\
                    rx_prio5_pause 0\n\
                    tx_prio5_pause 0\n\
                    rx_prio3_buf_discard 0\n\
                    rx_prio0_discards 0\n";
        let paused = zero
            .replace("rx_prio3_pause 0", "rx_prio3_pause 70")
            .replace("rx_prio0_discards 0", "rx_prio0_discards 9");
        assert_eq!(of(zero, &paused, Some(3)).verdict, CheckVerdict::Passed);
        let lossy = of(
            zero,
            &zero.replace("buf_discard 0", "buf_discard 2"),
            Some(3),
        );
        assert!(
            lossy.measured == "rx_prio3_buf_discard +2"
                && lossy.effect.contains("lossless class lost"),
            "{lossy:?}"
        );
        let elsewhere = of(
            zero,
            &zero.replace("prio5_pause 0", "prio5_pause 4"),
            Some(3),
        );
        assert_eq!(elsewhere.measured, "rx_prio5_pause +4, tx_prio5_pause +4");
        assert!(elsewhere.effect.ends_with(
            "priority 5 was paused, which is not lossless: PFC is on for it at this port or at its \
             switch"
        ));
        assert_eq!(
            of(zero, &paused, None).verdict,
            CheckVerdict::Passed,
            "without a lossless class nobody says which may be paused"
        );
    }

    #[test]
    fn packets_that_are_too_long_are_told_in_words_of_the_fabric() {
        let evaluated = of(
            "rx_out_of_range_len_phy 1\n",
            "rx_out_of_range_len_phy 3\n",
            None,
        );
        assert!(
            evaluated
                .effect
                .contains("the MTU of the peer, or of a switch port, is larger than ours"),
            "{evaluated:?}"
        );
    }

    #[test]
    fn packets_of_erdma_move_both_ways_and_its_drops_are_told() {
        let before = "rx_packets_cnt 5\ntx_packets_cnt 5\ntx_bps_limit_drop_cnt 0\n";
        assert_eq!(
            of(before, &before.replace(" 5", " 90"), None).verdict,
            CheckVerdict::Passed
        );
        let one_way = of(
            before,
            &before.replace("tx_packets_cnt 5", "tx_packets_cnt 90"),
            None,
        );
        assert_eq!(
            (one_way.code, one_way.measured.as_str()),
            (
                Some("RW0821"),
                "0 packets received and 85 sent during the test"
            )
        );
        let limited = of(
            before,
            &before
                .replace(" 5", " 90")
                .replace("drop_cnt 0", "drop_cnt 7"),
            None,
        );
        assert!(
            limited.code == Some("RW0814") && limited.effect.contains("instance type"),
            "{limited:?}"
        );
    }

    #[test]
    fn the_counters_of_a_real_soft_roce_port_are_read() {
        let counters = parse_port_counters(crate::samples::COUNTERS);
        assert_eq!(counters["rocep193s0/1"]["rcvd_seq_err"], 0);
        assert!(counters["rocep193s0/1"]["rcvd_pkts"] > 0);
    }
}
