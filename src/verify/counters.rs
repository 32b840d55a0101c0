//! Error counters of a port before and after the traffic: only the difference says anything, the sum since boot does not.

use super::result::Judgement;
use std::collections::BTreeMap;

/// Counters that must not move, with what it means when they do. mlx5 names first, then those of Soft-RoCE (`rxe`), whose
/// `completer_retry_err` is left out: its timers repeat packets on every busy machine.
const MUST_NOT_MOVE: &[(&str, &str)] = &[
    ("out_of_sequence", "packets were lost on the way"),
    ("packet_seq_err", "packets were lost on the way"),
    ("local_ack_timeout_err", "the peer did not answer in time: loss or a stalled path"),
    ("implied_nak_seq_err", "packets were lost on the way"),
    ("rnr_nak_retry_err", "a receiver was not ready"),
    ("req_transport_retries_exceeded", "a connection broke after all its retries"),
    ("req_rnr_retries_exceeded", "a connection broke after all its retries"),
    ("roce_adp_retrans", "packets were sent again"),
    ("roce_slow_restart", "loss made the NIC start slowly again"),
    ("rx_icrc_encapsulated", "packets arrived damaged"),
    ("rp_cnp_ignored", "congestion was signalled and ignored"),
    ("symbol_error", "the cable or transceiver is bad"),
    ("link_downed", "the link went down"),
    ("link_error_recovery", "the link trained anew"),
    ("port_rcv_errors", "packets arrived damaged"),
    ("rx_prio3_discards", "the lossless class lost packets"),
    ("rx_discards_phy", "the port ran out of buffer"),
    ("rx_out_of_range_len_phy", "the peer's MTU is larger than ours"),
    ("rx_oversize_pkts_phy", "the peer's MTU is larger than ours"),
    ("rx_crc_errors_phy", "the cable or transceiver is bad"),
    ("rx_pcs_symbol_err_phy", "the cable or transceiver is bad"),
    ("link_down_events_phy", "the link went down"),
    ("tx_pause_storm_error_events", "a pause storm was cut off"),
    ("rcvd_seq_err", "packets were lost on the way"),
    ("out_of_seq_request", "packets were lost on the way"),
    ("retry_exceeded_err", "a connection broke after all its retries"),
    ("retry_rnr_exceeded_err", "a connection broke after all its retries"),
    ("send_err", "a send failed"),
];

/// Counters of a host by `device/port`.
pub type Counters = BTreeMap<String, BTreeMap<String, u64>>;

/// Reads the `counters` probe: `@counters DEVICE PORT`, then `name value`.
pub fn parse(text: &str) -> Counters {
    let mut out = Counters::new();
    let mut key = None;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("@counters ") {
            key = Some(head.trim().replace(' ', "/"));
        } else if let Some(key) = &key {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
                out.entry(key.clone()).or_default().insert(name.to_owned(), value);
            }
        }
    }
    out
}

/// Judges one port. A counter that fell was reset by somebody and says nothing.
pub fn judge(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Judgement {
    let risen: Vec<(&str, u64, &str)> = MUST_NOT_MOVE
        .iter()
        .filter_map(|(name, meaning)| {
            let delta = after.get(*name)?.checked_sub(*before.get(*name)?)?;
            (delta > 0).then_some((*name, delta, *meaning))
        })
        .collect();
    if after.is_empty() {
        return Judgement::not_applicable("the port has no counters");
    }
    let Some((_, _, meaning)) = risen.first() else {
        return Judgement::passed("no error counter moved").expected("no error counter moves");
    };
    let words: Vec<String> = risen.iter().map(|(name, delta, _)| format!("{name} +{delta}")).collect();
    Judgement::warning("RW0814", words.join(", "))
        .expected("no error counter moves")
        .effect(format!("during the test {meaning}"))
        .next("railwright verify {inventory}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::result::Verdict;

    #[test]
    fn only_a_rise_of_an_error_counter_is_told() {
        let port = |text: &str| parse(&format!("@counters rocep193s0 1\n{text}"))["rocep193s0/1"].clone();
        let before = port("sent_pkts 10\nrcvd_seq_err 4\nlink_downed 1\nrp_cnp_ignored 7\n");
        let after = port("sent_pkts 90\nrcvd_seq_err 6\nlink_downed 1\nrp_cnp_ignored 0\n");
        let judged = judge(&before, &after);
        assert_eq!((judged.verdict, judged.measured.as_str()), (Verdict::Warning, "rcvd_seq_err +2"));
        assert_eq!(judge(&before, &before).verdict, Verdict::Passed);
        assert_eq!(judge(&BTreeMap::new(), &BTreeMap::new()).verdict, Verdict::NotApplicable);
    }

    #[test]
    fn the_counters_of_a_real_soft_roce_port_are_read() {
        let counters = parse(crate::verify::samples::COUNTERS);
        assert_eq!(counters["rocep193s0/1"]["rcvd_seq_err"], 0);
        assert!(counters["rocep193s0/1"]["rcvd_pkts"] > 0);
    }
}
