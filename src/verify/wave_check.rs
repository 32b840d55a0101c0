//! The functional check between two waves of a rollout: the next batch starts only when it passes.
//!
//! Only hosts that are already done are paired. With fewer than two the canary is checked by link,
//! GID and loopback traffic, and its pair test follows with the next batch.

use super::request::{VerifyHost, VerifyRequest};
use super::result::{CheckVerdict, VerifyReport};
use super::run::{OnEvent, verify_hosts};
use railwright_base::nodeset;
use railwright_transport::Connector;

/// Rounds of pairs in a gate: everybody twice, in one ring.
const GATE_ROUNDS: usize = 2;

/// How a gate ended.
#[derive(Debug, Clone, PartialEq)]
pub struct GateReport {
    /// True when nothing failed and nothing stayed unknown: what is not proven does not count as
    /// done.
    pub passed: bool,
    /// Why not, on one line: hosts and their first finding.
    pub reason: Option<String>,
    /// All results.
    pub report: VerifyReport,
}

/// How many hosts are asked whether they answer, to be the partner of one that has none.
const PARTNERS_ASKED: usize = 3;

/// The hosts that a wave can take one along from: the only host that is done besides, because it
/// had no partner yet, or any where somebody would be left without a partner.
fn list_partners<'d>(wave: &[String], done: &'d [String]) -> Vec<&'d String> {
    let earlier: Vec<&String> = done.iter().filter(|host| !wave.contains(host)).collect();
    if earlier.len() == 1 || wave.len() % 2 == 1 {
        earlier
    } else {
        Vec::new()
    }
}

/// The first of these that answers: whoever left service since its own gate proves nothing of the
/// wave. Where none of the first few does, one of them, so that what it could not prove is
/// reported.
async fn find_partner<'d>(
    connector: &dyn Connector,
    request: &VerifyRequest,
    partners: &[&'d String],
) -> Option<&'d String> {
    for partner in partners.iter().take(PARTNERS_ASKED) {
        let host = request.hosts.iter().find(|host| host.name() == **partner)?;
        if connector.connect(&host.access).await.is_ok() {
            return Some(partner);
        }
    }
    partners.first().copied()
}

/// Proves a wave. `done` are the hosts whose wave passed before; `request` holds all hosts of the
/// cluster.
pub async fn verify_wave(
    connector: &dyn Connector,
    request: &VerifyRequest,
    wave: &[String],
    done: &[String],
    on_event: OnEvent<'_>,
) -> GateReport {
    let mut names = wave.to_vec();
    let has_rails = |host: &VerifyHost| !host.rails.is_empty();
    let mut hosts = request.hosts.iter();
    if hosts.any(|host| wave.iter().any(|name| name == host.name()) && has_rails(host)) {
        names.extend(
            find_partner(connector, request, &list_partners(wave, done))
                .await
                .cloned(),
        );
    }
    let mut request = request.clone();
    request
        .hosts
        .retain(|host| names.iter().any(|name| name == host.name()));
    request.rounds_per_rail = Some(GATE_ROUNDS);
    let report = verify_hosts(connector, &request, on_event).await;
    GateReport {
        passed: report.verdict() == CheckVerdict::Passed,
        reason: describe_gate_failure(&report),
        report,
    }
}

/// Why it did not pass, on one line: the first of its worst findings.
pub fn describe_gate_failure(report: &VerifyReport) -> Option<String> {
    let verdict = report.verdict();
    if verdict == CheckVerdict::Passed {
        return None;
    }
    let bad: Vec<_> = report.with(verdict).collect();
    let first = bad.first()?;
    let more = if bad.len() > 1 {
        format!(", and {} more", bad.len() - 1)
    } else {
        String::new()
    };
    let word = if verdict == CheckVerdict::Failed {
        "failed"
    } else {
        "is unknown"
    };
    Some(format!(
        "{} on {} {word}: {}{more}",
        first.check.word(),
        nodeset::fold_node_set(&first.hosts),
        first.measured
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn the_canary_stands_alone_and_is_paired_with_the_next_batch() {
        for (wave, done, partners) in [
            (&["n1"][..], &[][..], &[][..]),
            (&["n2"], &["n1"], &["n1"]),
            (&["n2", "n3"], &["n1"], &["n1"]),
        ] {
            let done = names(done);
            assert_eq!(list_partners(&names(wave), &done), partners, "{wave:?}");
        }
    }

    #[test]
    fn later_waves_pair_among_themselves_and_lend_one_partner_to_an_odd_one() {
        let done = names(&["n1", "n2", "n3"]);
        for (wave, partners) in [
            (&["n4", "n5"][..], &[][..]),
            (&["n4"], &["n1", "n2", "n3"]),
            (&["n2", "n3"], &["n1"]),
        ] {
            assert_eq!(list_partners(&names(wave), &done), partners, "{wave:?}");
        }
    }
}
