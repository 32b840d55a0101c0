//! GPUDirect RDMA: whether NICs read and write GPU memory themselves, and why not.

use super::expected::NcclExpectations;
use super::log::NcclLog;
use super::transport::Transport;
use crate::result::CheckOutcome;
use railwright_base::text::format_count;
use serde::Serialize;

/// Whether GPUDirect is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direct {
    /// In every channel between hosts.
    On,
    /// In some of them.
    Partly,
    /// In none.
    Off,
    /// The log does not tell.
    Unknown,
}

/// Whether it is used.
pub fn of_log(log: &NcclLog) -> Direct {
    if log.is_of_ring() {
        return Direct::Unknown;
    }
    let channels = log.channels();
    let (mut nics_on, mut nics_off, mut near, mut far) = (0, 0, 0, 0);
    for process in &log.processes {
        nics_on += process.direct_nics.0;
        nics_off += process.direct_nics.1;
        near += process.direct_paths.0;
        far += process.direct_paths.1;
    }
    match (channels.rdma_direct, channels.rdma) {
        (0, 0) if nics_on == 0 && nics_off > 0 => Direct::Off,
        (0, 0) if near == 0 && far > 0 => Direct::Off,
        (0, 0) => Direct::Unknown,
        (0, _) => Direct::Off,
        (_, 0) => Direct::On,
        _ => Direct::Partly,
    }
}

/// Why it is off, as far as the log says.
pub fn explain_gpudirect_off(log: &NcclLog) -> String {
    if log
        .processes
        .iter()
        .any(|process| process.direct_nics.1 > 0)
    {
        return "NICs cannot read GPU memory: neither nvidia_peermem nor DMA-BUF is there for them"
            .to_owned();
    }
    let level = match log.environment.get("NCCL_NET_GDR_LEVEL") {
        Some(values) => values.first(),
        None => None,
    };
    if let Some((distance, most)) = log.processes.iter().find_map(|process| process.too_far) {
        let by = match level {
            Some(level) => format!("NCCL_NET_GDR_LEVEL={level}"),
            None => "NCCL's own level".to_owned(),
        };
        return format!(
            "GPU and NIC are too far apart: distance {distance}, and {by} allows {most}"
        );
    }
    match level {
        Some(level) => format!(
            "the log does not say why; NCCL_NET_GDR_LEVEL={level} limits how far apart GPU and NIC \
             may be"
        ),
        None => "the log does not say why".to_owned(),
    }
}

/// What a log shows where GPUDirect carries all data.
const DIRECT_CHANNELS: &str = "every channel between hosts with GDRDMA";

/// Checks it.
pub fn check_gpudirect(
    log: &NcclLog,
    transport: Transport,
    expected: &NcclExpectations,
) -> CheckOutcome {
    match transport {
        Transport::Socket => return CheckOutcome::not_applicable("no RDMA, no GPUDirect"),
        Transport::Plugin => {
            return CheckOutcome::not_applicable("what a plugin does is not known here");
        }
        _ => {}
    }
    if log.is_of_ring() {
        return report_ring_without_gpus(expected);
    }
    let channels = log.channels();
    match of_log(log) {
        Direct::On => CheckOutcome::passed(format!(
            "on in {} between hosts",
            format_count(channels.rdma_direct as usize, "channel")
        )),
        Direct::Partly => {
            let measured = format!(
                "off in {} of {} channels: {}",
                channels.rdma,
                channels.verbs(),
                explain_gpudirect_off(log)
            );
            report_gpudirect_off(measured, expected)
        }
        Direct::Off => {
            report_gpudirect_off(format!("off: {}", explain_gpudirect_off(log)), expected)
        }
        Direct::Unknown if expected.needs_gpudirect => {
            CheckOutcome::unknown("RW1206", "the log does not tell")
                .expected(DIRECT_CHANNELS)
                .effect("whether data is copied through host memory is not known")
                .next("run the job with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH")
        }
        Direct::Unknown => CheckOutcome::not_applicable(
            "the log does not tell; NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH would",
        ),
    }
}

/// A ring without GPUs says nothing of GPUDirect, whatever its channels are.
fn report_ring_without_gpus(expected: &NcclExpectations) -> CheckOutcome {
    let none = "a ring without GPUs: memory of the hosts was sent";
    match expected.needs_gpudirect {
        true => CheckOutcome::unknown("RW1206", none)
            .expected(DIRECT_CHANNELS)
            .effect("whether NICs read GPU memory is not known")
            .next("run NCCL's tests on the GPUs: railwright job render nccl-test"),
        false => CheckOutcome::not_applicable(none),
    }
}

/// A failure where GPUDirect is needed, a warning elsewhere.
fn report_gpudirect_off(measured: String, expected: &NcclExpectations) -> CheckOutcome {
    let outcome = if expected.needs_gpudirect {
        CheckOutcome::failed("RW1205", measured)
    } else {
        CheckOutcome::warning("RW1205", measured)
    };
    outcome
        .expected(DIRECT_CHANNELS)
        .effect("data is copied through host memory, which takes half of the bandwidth and more")
        .next(
            "lsmod | grep nvidia_peermem; nvidia-smi topo -m; and compare with NCCL_NET_GDR_LEVEL",
        )
}
