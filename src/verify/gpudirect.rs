//! GPUDirect RDMA: the bandwidth between GPU memories, against what is stated and against host
//! memory of the same pair.

use super::expected_bandwidth::BandwidthExpectation;
use super::hardware::Nearness;
use super::perftest::{NOT_REGISTERED, TrafficFault};
use super::result::CheckOutcome;
use super::traffic;

/// The least share of the host-memory figure, where NIC and GPU sit on one PCIe switch at both ends
/// and nobody states a number. The thresholds of Azure's machines leave a little less (360 to 380
/// of 390 Gb/s), and those are entries of the catalogue.
const SHARE_PERCENT: f64 = 95.0;

/// A GPU that traffic can use, in the words of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuLocation {
    /// Its PCI address.
    pub address: String,
    /// Where it sits, seen from the NIC.
    pub nearness: Nearness,
}

/// Checks a run from the GPU of the sender to that of the receiver. `host_gbps` is what host memory
/// of the pair delivered.
pub fn check_gpudirect_bandwidth(
    run: Result<f64, TrafficFault>,
    desired: &BandwidthExpectation,
    host_gbps: Option<f64>,
    places: [&GpuLocation; 2],
) -> CheckOutcome {
    let gbps = match run {
        Err(fault) => return evaluate_fault(fault).expected(desired.words.clone()),
        Ok(gbps) => gbps,
    };
    let share = host_gbps.map(|host| gbps * 100.0 / host);
    let of_host = match share {
        Some(share) => format!(", {share:.0} % of host memory"),
        None => String::new(),
    };
    let measured = format!("{gbps:.2} Gb/s{of_host}{}", describe_gpu_locations(places));
    let shared = places
        .iter()
        .all(|place| place.nearness == Nearness::SharedSwitch);
    let (is_slow, expected) = match (desired.least_gbps, share) {
        (Some(least), _) => {
            let is_slow = gbps < least && (shared || desired.is_stated);
            (is_slow, desired.words.clone())
        }
        (None, Some(share)) if shared => {
            let expected = format!(
                "at least {SHARE_PERCENT} % of host memory, as GPU and NIC share a PCIe switch"
            );
            (share < SHARE_PERCENT, expected)
        }
        (None, _) => return CheckOutcome::passed(measured),
    };
    if !is_slow {
        return CheckOutcome::passed(measured).expected(expected);
    }
    CheckOutcome::failed("RW0819", measured)
        .expected(expected)
        .effect(
            "gradients that leave by this rail wait for PCIe: ACS or the IOMMU sends them over the \
             CPU, or the GPU is far from its NIC",
        )
        .next("railwright drift {inventory}")
}

/// Where the GPUs sit, once where both ends are identical.
fn describe_gpu_locations(places: [&GpuLocation; 2]) -> String {
    match places {
        [one, other] if one == other => format!(" (GPU {}, {})", one.address, one.nearness.word()),
        [one, other] => {
            format!(
                " (GPU {}, {}, to {}, {})",
                one.address,
                one.nearness.word(),
                other.address,
                other.nearness.word()
            )
        }
    }
}

/// A run that gave no number. Host memory has passed before, so it is not the fabric's fault.
fn evaluate_fault(fault: TrafficFault) -> CheckOutcome {
    match fault {
        TrafficFault::Broken(words) if words == NOT_REGISTERED => {
            CheckOutcome::failed("RW0819", "the NIC may not use the GPU's memory")
                .effect(
                    "NCCL copies through host memory, without a word: nvidia_peermem is not loaded \
                     or was built for another RDMA stack, or DMA-BUF is missing",
                )
                .next("railwright plan {inventory}")
        }
        TrafficFault::Broken(words) => CheckOutcome::failed("RW0819", words)
            .effect(
                "host memory passes on this rail, GPU memory does not: jobs with GPUDirect abort, \
                 or NCCL copies through host memory",
            )
            .next("railwright plan {inventory}"),
        other => traffic::evaluate_fault(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    fn place(nearness: Nearness) -> GpuLocation {
        GpuLocation {
            address: "0000:1b:00.0".into(),
            nearness,
        }
    }

    fn run(gbps: f64, least: Option<f64>, nearness: Nearness) -> CheckOutcome {
        let desired = BandwidthExpectation {
            least_gbps: least,
            is_stated: false,
            words: least.map_or(String::new(), |l| format!("at least {l}")),
            load: None,
        };
        check_gpudirect_bandwidth(
            Ok(gbps),
            &desired,
            Some(196.0),
            [&place(Nearness::SharedSwitch), &place(nearness)],
        )
    }

    #[test]
    fn a_stated_number_counts_and_else_host_memory_where_the_switch_is_shared() {
        let slow = run(180.0, None, Nearness::SharedSwitch);
        assert_eq!(
            (slow.verdict, slow.code),
            (CheckVerdict::Failed, Some("RW0819"))
        );
        assert_eq!(
            slow.measured,
            "180.00 Gb/s, 92 % of host memory (GPU 0000:1b:00.0, on the NIC's PCIe switch)"
        );
        assert_eq!(
            run(187.0, None, Nearness::SharedSwitch).verdict,
            CheckVerdict::Passed
        );
        assert_eq!(
            run(90.0, None, Nearness::Far).verdict,
            CheckVerdict::Passed,
            "reported, as nothing says what it must be"
        );
        assert_eq!(
            run(180.0, Some(175.0), Nearness::SharedSwitch).verdict,
            CheckVerdict::Passed
        );
        assert_eq!(
            run(170.0, Some(175.0), Nearness::SharedSwitch).code,
            Some("RW0819")
        );
        assert_eq!(
            run(170.0, Some(175.0), Nearness::Far).verdict,
            CheckVerdict::Passed,
            "the catalogue's number is of machines with switches"
        );
    }

    #[test]
    fn a_build_without_cuda_is_not_run_and_memory_that_cannot_be_registered_fails() {
        let here = place(Nearness::SharedSwitch);
        let of = |fault| {
            check_gpudirect_bandwidth(
                Err(fault),
                &BandwidthExpectation::default(),
                None,
                [&here, &here],
            )
        };
        let without = of(TrafficFault::WithoutCuda);
        assert_eq!(
            (without.verdict, without.code),
            (CheckVerdict::NotRun, Some("RW0820"))
        );
        assert!(without.next.contains("built with CUDA"));
        let refused = of(TrafficFault::Broken(NOT_REGISTERED.into()));
        assert!(
            refused.verdict == CheckVerdict::Failed && refused.effect.contains("nvidia_peermem"),
            "{refused:?}"
        );
        assert_eq!(
            of(TrafficFault::Missing("ib_write_bw".into())).verdict,
            CheckVerdict::Unknown
        );
    }
}
