//! Whole packets between two rails that no hop may split: `ping -M do`, both ways, because a peer
//! with a smaller MTU still *takes* large packets and only its own direction shows it.

use super::result::CheckOutcome;
use railwright_base::text::one_line;

/// Evaluates the output of `ping -n -M do -s SIZE -c 3` (iputils) and its exit status.
pub fn check_path_mtu(code: i32, output: &str, mtu: u32) -> CheckOutcome {
    if output.contains("@missing ping") {
        return CheckOutcome::unknown("RW0812", "ping is not installed")
            .next("install iputils-ping, then railwright verify {inventory}");
    }
    let expected = format!("{mtu} bytes unsplit");
    if let Some((words, effect)) = find_size_limit(output) {
        return report_split_path(words, effect, expected);
    }
    let (words, effect) = match (loss_percent(output), code) {
        (Some(0.0), 0) => {
            return CheckOutcome::passed(format!("{mtu} bytes, no loss")).expected(expected);
        }
        (Some(100.0), _) if output.contains("Destination Host Unreachable") => (
            "the peer's address does not answer ARP".to_owned(),
            "the two rails are not on one network: cabling, VLAN or address",
        ),
        (Some(100.0), _) => (
            format!("packets of {mtu} bytes vanish"),
            "a hop with a smaller MTU drops them without a word (switch port, peer), or the peer \
             is not there",
        ),
        (Some(loss), _) => (
            format!("{loss} % of the packets lost"),
            "RoCE answers loss with stalls: a link that loses pings is not fit for it",
        ),
        (None, _) if output.contains("Cannot assign requested address") => (
            "this host does not have the rail's address".to_owned(),
            "traffic of this rail leaves through another one",
        ),
        (None, _) if output.contains("Network is unreachable") => (
            "no route to the peer's address".to_owned(),
            "the two rails are not on one network",
        ),
        (None, _) => {
            let words = format!("ping said: {}", one_line(output, 100));
            return CheckOutcome::unknown("RW0815", words).expected(expected);
        }
    };
    report_split_path(words, effect, expected)
}

/// Who says that packets of this size do not pass, and what that means.
fn find_size_limit(output: &str) -> Option<(String, &'static str)> {
    if let Some(local) = limit_after(output, "message too long") {
        return Some((
            format!("this host's own netdev stops at {local} bytes"),
            "this host cannot send what its peers expect; RDMA falls to a smaller path MTU or \
             connections break",
        ));
    }
    let router = limit_after(output, "frag needed")?;
    Some((
        format!("a router on the way stops at {router} bytes"),
        "it drops whole RDMA packets, which are never split",
    ))
}

fn report_split_path(words: String, effect: &str, expected: String) -> CheckOutcome {
    CheckOutcome::failed("RW0806", words)
        .expected(expected)
        .effect(effect)
        .next("railwright drift {inventory}")
}

/// The MTU that follows some words: `ping: local error: message too long, mtu=1500` (iputils
/// 20221126), `Message too long, mtu: 1500` (older), `Frag needed and DF set (mtu = 1500)` (from a
/// router).
fn limit_after(output: &str, words: &str) -> Option<u32> {
    let lower = output.to_lowercase();
    let rest = &lower[lower.find(words)?..];
    let digits: String = rest
        .split("mtu")
        .nth(1)?
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// `3 packets transmitted, 3 received, 0% packet loss, time 404ms`.
fn loss_percent(output: &str) -> Option<f64> {
    let line = output.lines().find(|l| l.contains("packet loss"))?;
    line.split(',')
        .find(|part| part.contains("packet loss"))?
        .trim()
        .split('%')
        .next()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;
    use proptest::prelude::*;

    #[test]
    fn no_loss_passes() {
        assert_eq!(
            check_path_mtu(0, samples::PING, 9000).verdict,
            CheckVerdict::Passed
        );
    }

    #[test]
    fn our_own_small_mtu_and_a_silent_drop_say_different_things() {
        assert_eq!(
            check_path_mtu(1, samples::PING_LOCAL_LIMIT, 9000).measured,
            "this host's own netdev stops at 1500 bytes"
        );
        assert_eq!(
            check_path_mtu(1, samples::PING_SILENT, 9000).measured,
            "packets of 9000 bytes vanish"
        );
        let router = "From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n\
                      3 packets transmitted, 0 received, 100% packet loss";
        assert_eq!(
            check_path_mtu(1, router, 9000).measured,
            "a router on the way stops at 1500 bytes"
        );
    }

    #[test]
    fn a_missing_address_and_a_missing_tool_are_told_apart() {
        assert_eq!(
            check_path_mtu(2, "ping: bind: Cannot assign requested address\n", 9000).code,
            Some("RW0806")
        );
        assert_eq!(
            check_path_mtu(127, "@missing ping\n", 9000).verdict,
            CheckVerdict::Unknown
        );
        assert_eq!(check_path_mtu(0, "", 9000).verdict, CheckVerdict::Unknown);
    }

    proptest! {
        #[test]
        fn no_output_panics(text in "(packet loss|mtu|message too long|%|,|[0-9]|[ -~\n]|é){0,40}") {
            check_path_mtu(1, &text, 9000);
        }
    }
}
