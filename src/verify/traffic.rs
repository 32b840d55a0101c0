//! Compares traffic runs with what the fabric must deliver.

use super::expected_bandwidth::BandwidthExpectation;
use super::perftest::{Latency, NOT_REGISTERED, TrafficFault};
use super::request::Expectations;
use super::result::CheckOutcome;

/// `ib_write_bw` of one direction.
pub fn evaluate_bandwidth(
    run: Result<f64, TrafficFault>,
    desired: &BandwidthExpectation,
) -> CheckOutcome {
    let (least, expected) = (desired.least_gbps, desired.words.clone());
    match run {
        Err(fault) => evaluate_fault(fault).expected(expected),
        Ok(gbps) if least.is_some_and(|least| gbps < least) => {
            CheckOutcome::failed("RW0809", format!("{gbps:.2} Gb/s"))
                .expected(expected)
                .effect("every collective that uses this rail runs at the speed of this pair")
                .next("railwright drift {inventory}")
        }
        Ok(gbps) => CheckOutcome::passed(format!("{gbps:.2} Gb/s")).expected(expected),
    }
}

/// `ib_read_lat` of one direction.
pub fn evaluate_latency(
    run: Result<Latency, TrafficFault>,
    expectations: &Expectations,
) -> CheckOutcome {
    let most = expectations.read_latency_us;
    let expected = match most {
        Some(us) => format!("at most {us} us"),
        None => String::new(),
    };
    match run {
        Err(fault) => evaluate_fault(fault).expected(expected),
        Ok(latency) if most.is_some_and(|most| latency.typical_us > most) => {
            CheckOutcome::failed("RW0810", format!("{:.2} us", latency.typical_us))
                .expected(expected)
                .effect(
                    "small messages wait: a longer way through the fabric, a sleeping CPU, or a \
                     NIC far from its socket",
                )
                .next("railwright drift {inventory}")
        }
        Ok(latency) => {
            CheckOutcome::passed(format!("{:.2} us", latency.typical_us)).expected(expected)
        }
    }
}

/// RDMA traffic of a host with itself: that it flows is enough.
pub fn evaluate_loopback(run: Result<f64, TrafficFault>) -> CheckOutcome {
    match run {
        Err(fault) => evaluate_fault(fault).expected("traffic flows"),
        Ok(gbps) => {
            CheckOutcome::passed(format!("{gbps:.2} Gb/s to itself")).expected("traffic flows")
        }
    }
}

/// A run that gave no number. A program that is missing or an output that makes no sense proves
/// nothing either way.
pub fn evaluate_fault(fault: TrafficFault) -> CheckOutcome {
    let (words, effect) = match fault {
        TrafficFault::Missing(program) => return report_missing_program(&program),
        TrafficFault::WithoutCuda => return report_missing_cuda(),
        TrafficFault::NotUnderstood(words) => {
            return CheckOutcome::unknown("RW0815", words)
                .effect("nothing proves that this rail carries RDMA traffic")
                .next("railwright verify {inventory}");
        }
        TrafficFault::Hung => (
            "the traffic started and never ended; the host ended it".to_owned(),
            "connections are made but packets do not arrive: a smaller MTU on the way, or a full \
             queue that never empties",
        ),
        TrafficFault::NothingMoved => (
            "the connection was made and no data came through".to_owned(),
            "RDMA packets are dropped: UDP port 4791 is closed between the rails, or a hop has a \
             smaller MTU",
        ),
        TrafficFault::NobodyListens => (
            "the receiver could not be reached on the test port".to_owned(),
            "the rail's IP path is broken, or a firewall closes ports 18600-18999 between the \
             rails",
        ),
        TrafficFault::Broken(words) if words == NOT_REGISTERED => (
            "memory could not be registered (locked-memory limit)".to_owned(),
            "RDMA programs of this host get no memory to send from",
        ),
        TrafficFault::Broken(words) => (
            words,
            "no RDMA traffic between these two on this rail: jobs that span them hang or abort",
        ),
    };
    CheckOutcome::failed("RW0811", words)
        .effect(effect)
        .next("railwright verify {inventory}")
}

fn report_missing_program(program: &str) -> CheckOutcome {
    CheckOutcome::unknown("RW0812", format!("{program} is not installed"))
        .effect("nothing proves that this rail carries RDMA traffic")
        .next(if program.starts_with("ib_") {
            "enable module perftest, then railwright plan {inventory}"
        } else {
            "install it, then railwright verify {inventory}"
        })
}

fn report_missing_cuda() -> CheckOutcome {
    CheckOutcome::not_run(
        "RW0820",
        "ib_write_bw is built without CUDA, or too old to know a GPU by its address",
    )
    .effect(
        "nothing proves that the NIC reaches GPU memory; where it does not, NCCL copies through \
         host memory without a word",
    )
    .next(
        "install a perftest that is built with CUDA (its `--help` lists --use_cuda_bus_id), then \
         railwright verify {inventory}",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    const STATED: Expectations = Expectations {
        write_bandwidth_gbps: Some(95.0),
        gpu_bandwidth_gbps: None,
        read_latency_us: Some(5.0),
        duration_s: 2,
    };

    fn stated() -> BandwidthExpectation {
        BandwidthExpectation {
            least_gbps: Some(95.0),
            is_stated: true,
            words: "at least 95 Gb/s, as the spec states".into(),
            load: None,
        }
    }

    #[test]
    fn numbers_are_held_against_what_was_stated() {
        let slow = evaluate_bandwidth(Ok(48.2), &stated());
        assert_eq!(
            (slow.code, slow.measured.as_str(), slow.expected.as_str()),
            (
                Some("RW0809"),
                "48.20 Gb/s",
                "at least 95 Gb/s, as the spec states"
            )
        );
        assert_eq!(
            evaluate_bandwidth(Ok(97.0), &stated()).verdict,
            CheckVerdict::Passed
        );
        assert_eq!(
            evaluate_bandwidth(Ok(0.3), &BandwidthExpectation::default()).verdict,
            CheckVerdict::Passed
        );
        let late = evaluate_latency(
            Ok(Latency {
                typical_us: 371.75,
                p99_us: None,
            }),
            &STATED,
        );
        assert_eq!(
            (late.code, late.measured.as_str()),
            (Some("RW0810"), "371.75 us")
        );
    }

    #[test]
    fn a_missing_program_proves_nothing_and_names_the_module() {
        let evaluated =
            evaluate_bandwidth(Err(TrafficFault::Missing("ib_write_bw".into())), &stated());
        assert_eq!(evaluated.verdict, CheckVerdict::Unknown);
        assert!(evaluated.next.contains("module perftest"));
        assert_eq!(
            evaluate_bandwidth(Err(TrafficFault::Hung), &stated()).verdict,
            CheckVerdict::Failed
        );
        assert_eq!(
            evaluate_bandwidth(
                Err(TrafficFault::NothingMoved),
                &BandwidthExpectation::default()
            )
            .verdict,
            CheckVerdict::Failed
        );
    }
}
