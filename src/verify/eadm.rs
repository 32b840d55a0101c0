//! What `eadm stat -d DEVICE -l` prints while traffic runs over an eRDMA device: a line each second
//! with both directions.

use super::result::CheckOutcome;

/// One line: packets a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EadmRates {
    received: f64,
    sent: f64,
}

/// `rx(...): 914.89 MiB/s 150423 p/s; tx(...): 914.66 MiB/s 147128 p/s`; between the parentheses
/// the word of the language. A live program may end its lines with a carriage return.
fn parse_rate_lines(output: &str) -> Vec<EadmRates> {
    let mut lines = Vec::new();
    for line in output.split(['\n', '\r']) {
        if let Some((rx, tx)) = line.split_once(';')
            && let Some(received) = parse_packet_rate(rx, "rx")
            && let Some(sent) = parse_packet_rate(tx, "tx")
        {
            lines.push(EadmRates { received, sent });
        }
    }
    lines
}

fn parse_packet_rate(half: &str, direction: &str) -> Option<f64> {
    let (name, numbers) = half.split_once(':')?;
    if !name.trim().starts_with(direction) {
        return None;
    }
    let words: Vec<&str> = numbers.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "p/s")?;
    let rate: f64 = words.get(at.checked_sub(1)?)?.parse().ok()?;
    rate.is_finite().then_some(rate)
}

/// Checks the lines of one run; nothing where eadm is not there or says what nobody understands.
pub fn check_eadm_rates(output: &str) -> Option<CheckOutcome> {
    let seen = parse_rate_lines(output);
    let most = seen
        .iter()
        .copied()
        .max_by(|a, b| a.received.min(a.sent).total_cmp(&b.received.min(b.sent)))?;
    let measured = format!(
        "rx {} p/s, tx {} p/s while the traffic ran",
        most.received, most.sent
    );
    let expected = "packets both ways";
    if most.received > 0.0 && most.sent > 0.0 {
        return Some(CheckOutcome::passed(measured).expected(expected));
    }
    Some(super::counters::passed_by(measured).expected(expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;
    use proptest::prelude::*;

    #[test]
    fn the_line_of_alibaba_clouds_page_shows_traffic_both_ways() {
        let evaluated = check_eadm_rates(samples::EADM).unwrap();
        assert_eq!(
            (evaluated.verdict, evaluated.measured.as_str()),
            (
                CheckVerdict::Passed,
                "rx 150423 p/s, tx 147128 p/s while the traffic ran"
            )
        );
    }

    #[test]
    fn traffic_one_way_fails_and_what_is_no_such_line_says_nothing() {
        let one_way = samples::EADM.replace("147128", "0");
        assert_eq!(check_eadm_rates(&one_way).unwrap().code, Some("RW0821"));
        let live = format!("{one_way}\r{}", samples::EADM);
        assert_eq!(
            check_eadm_rates(&live).unwrap().verdict,
            CheckVerdict::Passed,
            "the best second counts"
        );
        assert_eq!(check_eadm_rates("@missing eadm\n"), None);
    }

    proptest! {
        #[test]
        fn no_output_panics(text in "(rx|tx|:|;| p/s|MiB/s|[0-9.]{1,9}|[ -~\n\r]|é){0,60}") {
            check_eadm_rates(&text);
        }
    }
}
