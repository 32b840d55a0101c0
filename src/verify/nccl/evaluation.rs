//! Whether a log proves that RDMA was used: one outcome an aspect, and what they say together.

use super::bandwidth_check::check_bandwidth;
use super::expected::{AcsNic, NcclExpectations};
use super::log::NcclLog;
use super::progress::check_progress;
use super::transport::{self, Transport};
use crate::result::{CheckOutcome, CheckVerdict};
use railwright_base::text::format_count;
use serde::Serialize;
use std::collections::BTreeSet;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// What carried the data between hosts.
    Transport,
    /// The RDMA devices that the ranks use.
    Devices,
    /// Whether NICs read GPU memory themselves.
    Gpudirect,
    /// The NIC of a pod of Alibaba Container Compute Service.
    Hpn0,
    /// What passed over the rails of the job's hosts while it ran, by their counters.
    Traffic,
    /// Whether data arrived as it was sent.
    Data,
    /// What the largest messages reached.
    Bandwidth,
    /// Whether the job goes on, or came to its end.
    Progress,
}

impl Aspect {
    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Aspect::Transport => "transport",
            Aspect::Devices => "devices",
            Aspect::Gpudirect => "gpudirect",
            Aspect::Hpn0 => "hpn0",
            Aspect::Traffic => "traffic",
            Aspect::Data => "data",
            Aspect::Bandwidth => "bandwidth",
            Aspect::Progress => "progress",
        }
    }
}

/// What the aspects say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobVerdict {
    /// RDMA was used, and nothing speaks against it.
    Passed,
    /// Something is not as it must be.
    Failed,
    /// The log does not say enough.
    Inconclusive,
}

impl JobVerdict {
    /// What outcomes say together: one that failed disproves, one that is unknown leaves it open.
    pub fn from_outcomes<'o>(outcomes: impl IntoIterator<Item = &'o CheckOutcome>) -> Self {
        let mut verdict = JobVerdict::Passed;
        for outcome in outcomes {
            match outcome.verdict {
                CheckVerdict::Failed => return JobVerdict::Failed,
                CheckVerdict::Unknown => verdict = JobVerdict::Inconclusive,
                _ => {}
            }
        }
        verdict
    }
}

/// The verdict on a log.
#[derive(Debug, Clone, PartialEq)]
pub struct NcclProof {
    /// All together.
    pub verdict: JobVerdict,
    /// What carried the data.
    pub transport: Transport,
    /// By aspect, in the order of the screen.
    pub aspects: Vec<(Aspect, CheckOutcome)>,
}

/// Checks a log.
pub fn check_nccl_log(log: &NcclLog, expected: &NcclExpectations) -> NcclProof {
    let transport = transport::of_log(log);
    let is_type2 = match expected.acs {
        None | Some(AcsNic::Type1) => false,
        Some(AcsNic::Type2) => true,
        // A log that is silent of networks does not speak against the NIC; one that says TCP is,
        // unless verbs were switched off on purpose.
        Some(AcsNic::Unsaid) => {
            log.is_set("NCCL_IB_DISABLE", "1") || transport == Transport::Unknown
        }
    };
    let bandwidth = check_bandwidth(log, expected, is_type2);
    let mut aspects = vec![];
    if is_type2 {
        let why = "NCCL does not see a NIC of type 2 (NCCL_IB_DISABLE=1 is right there): hpn0 and \
                   the bandwidth count";
        aspects.push((Aspect::Transport, CheckOutcome::not_applicable(why)));
        aspects.push((Aspect::Hpn0, check_hpn0(log, expected)));
    } else {
        aspects.push((Aspect::Transport, check_transport(log, transport, expected)));
        aspects.push((
            Aspect::Devices,
            super::devices::check_rdma_devices(log, transport),
        ));
        aspects.push((
            Aspect::Gpudirect,
            super::direct::check_gpudirect(log, transport, expected),
        ));
    }
    if let Some(seen) = &expected.traffic {
        aspects.push((Aspect::Traffic, super::traffic::check_rail_traffic(seen)));
    }
    aspects.push((Aspect::Data, check_data(log)));
    aspects.push((Aspect::Bandwidth, bandwidth));
    aspects.push((Aspect::Progress, check_progress(log, expected)));
    NcclProof {
        verdict: JobVerdict::from_outcomes(aspects.iter().map(|(_, outcome)| outcome)),
        transport,
        aspects,
    }
}

fn check_transport(
    log: &NcclLog,
    transport: Transport,
    expected: &NcclExpectations,
) -> CheckOutcome {
    let doctor = format!("railwright doctor {}", expected.words);
    let is_blocked = transport == Transport::Socket && log.has_no_network();
    let may_be_local = transport.is_rdma() || transport == Transport::Socket;
    if may_be_local && !is_blocked && log.is_of_one_host() {
        return report_single_host();
    }
    match transport {
        Transport::Infiniband | Transport::Roce | Transport::Verbs => {
            check_verbs(log, transport, &doctor)
        }
        Transport::Socket => report_sockets(log)
            .expected("RDMA between hosts")
            .next(doctor),
        Transport::Mixed => CheckOutcome::failed("RW1202", describe_mixed_transports(log))
            .expected("one transport, RDMA, everywhere")
            .effect(
                "a collective is as slow as its slowest path, so the whole job goes at the speed \
                 of that",
            )
            .next(doctor),
        Transport::Plugin => report_unknown_plugin(log),
        Transport::Unknown => CheckOutcome::unknown("RW1203", describe_silent_log(log))
            .expected("RDMA between hosts")
            .effect("nothing is proven")
            .next(format!(
                "run the job with NCCL_DEBUG=INFO and take the whole log of a rank; {doctor}"
            )),
    }
}

fn report_single_host() -> CheckOutcome {
    CheckOutcome::unknown(
        "RW1203",
        "all ranks are on one host: nothing crosses the network",
    )
    .expected("RDMA between hosts")
    .effect("what was measured is NVLink, PCIe or memory, whatever NICs NCCL found")
    .next("run it on at least two hosts")
}

fn report_unknown_plugin(log: &NcclLog) -> CheckOutcome {
    let mut plugins = log.processes.iter().filter_map(|process| process.plugin());
    let name = plugins.next().unwrap_or_default();
    CheckOutcome::unknown(
        "RW1203",
        format!("the plugin `{name}`; the log does not say what it sends over"),
    )
    .expected("RDMA between hosts")
    .effect("nothing is proven")
    .next("look for the plugin's own lines, or go by bandwidth: --expect-gbps")
}

fn check_verbs(log: &NcclLog, transport: Transport, doctor: &str) -> CheckOutcome {
    let channels = log.channels();
    if !log.is_connected() && !log.has_worked() {
        return report_unconnected_verbs(transport, channels.verbs()).next(format!(
            "take the whole log, once the job has gone on for a while; {doctor}"
        ));
    }
    if channels.verbs() == 0 && (channels.all() > 0 || !log.names_others()) {
        return report_verbs_within_host(transport, channels.all());
    }
    let ground = match channels.verbs() {
        0 => "chosen by NCCL at its start; the log has no lines of channels".to_owned(),
        verbs => format!(
            "{} between hosts over verbs, none over TCP",
            format_count(verbs as usize, "channel")
        ),
    };
    let of_hosts = format_count(log.hosts().len(), "host");
    CheckOutcome::passed(format!("{} ({of_hosts}): {ground}", transport.word()))
        .expected("RDMA between hosts")
}

/// The outcome for channels over verbs of which nothing says that they were connected.
fn report_unconnected_verbs(transport: Transport, channels: u64) -> CheckOutcome {
    let what = match channels {
        0 => format!(
            "{} was chosen by NCCL at its start, and nothing in the log came after it",
            transport.word()
        ),
        verbs => format!(
            "the log tells of {} over verbs, and not of their connection",
            format_count(verbs as usize, "channel")
        ),
    };
    CheckOutcome::unknown("RW1203", what)
        .expected(
            "RDMA between hosts, by channels over verbs that were connected, a table of nccl-tests \
             or progress of a training",
        )
        .effect("nothing is proven: a job that hangs in its first collective looks like this")
}

/// The outcome for a log in which no channel goes to another host, of so many channels.
fn report_verbs_within_host(transport: Transport, channels: u64) -> CheckOutcome {
    let what = match channels {
        0 => "the log names no second host and no rank of another one",
        _ => "no channel between hosts is in the log, only such within one",
    };
    CheckOutcome::unknown(
        "RW1203",
        format!(
            "{} was chosen by NCCL at its start; {what}",
            transport.word()
        ),
    )
    .expected("RDMA between hosts")
    .effect(
        "nothing is proven: NCCL chooses a network on one host as well, where nothing crosses it",
    )
    .next("take the logs of all ranks, of a job on at least two hosts")
}

fn report_sockets(log: &NcclLog) -> CheckOutcome {
    if log.has_no_network() {
        return CheckOutcome::failed("RW1201", format!("nothing: {}", why_sockets(log))).effect(
            "NCCL may not use TCP (NCCL_NET), and finds nothing else: the job does not start",
        );
    }
    CheckOutcome::failed("RW1201", format!("TCP sockets: {}", why_sockets(log))).effect(
        "every byte between hosts goes through the kernel's TCP: a tenth of the bandwidth and many \
         times the latency",
    )
}

fn describe_silent_log(log: &NcclLog) -> String {
    match (log.lines, log.processes.is_empty()) {
        (0, _) => "the log is empty".to_owned(),
        (_, true) => format!(
            "NCCL says nothing of what carries the data, in {}",
            format_count(log.lines as usize, "line")
        ),
        _ => "NCCL does not say which network it uses".to_owned(),
    }
}

fn why_sockets(log: &NcclLog) -> String {
    if log.is_set("NCCL_IB_DISABLE", "1") {
        return "NCCL_IB_DISABLE=1 switches RDMA off".to_owned();
    }
    if log.is_set("NCCL_NET", "Socket") {
        return "NCCL_NET=Socket asks for them".to_owned();
    }
    if log.processes.iter().any(|process| process.has_no_device) {
        return "NCCL found no RDMA device (`NET/IB : No device found`)".to_owned();
    }
    // NCCL 2.28.9 does not print NCCL_NET (seen on a host with an H100).
    "NCCL says `NET/Socket` and nothing of RDMA devices, as with an image that lacks libibverbs, \
     or with NCCL_NET=Socket"
        .to_owned()
}

fn describe_mixed_transports(log: &NcclLog) -> String {
    let mut parts = Vec::new();
    for transport in [
        Transport::Socket,
        Transport::Plugin,
        Transport::Mixed,
        Transport::Roce,
        Transport::Infiniband,
        Transport::Verbs,
    ] {
        let mut hosts: BTreeSet<&str> = BTreeSet::new();
        for process in &log.processes {
            if transport::of_process(process) == transport {
                hosts.extend(process.host.as_deref());
            }
        }
        if hosts.is_empty() {
            continue;
        }
        let word = match transport {
            Transport::Mixed => "both at once",
            other => other.word(),
        };
        let named = super::fold_log_names(hosts);
        parts.push(format!("{word} on {named}"));
    }
    parts.join(", ")
}

fn check_hpn0(log: &NcclLog, expected: &NcclExpectations) -> CheckOutcome {
    let desired = "hpn0 is up and running, with an IPv6 address of its link and a global one";
    let show = format!(
        "kubectl exec deploy/NAME -- ifconfig | grep hpn -A 8 >> {}",
        expected.words.strip_prefix("--log ").unwrap_or("FILE")
    );
    match &log.hpn {
        None => CheckOutcome::unknown("RW1213", "the log does not show hpn0")
            .expected(desired)
            .effect("nothing is proven of the NIC")
            .next(show),
        Some(seen) if seen.is_ready() => CheckOutcome::passed(format!(
            "up and running with both addresses (line {})",
            seen.line
        ))
        .expected(desired),
        Some(seen) => {
            let parts = [
                (seen.is_up, "not up"),
                (seen.is_running, "not running"),
                (seen.has_link_address, "without an address of its link"),
                (seen.has_global_address, "without a global IPv6 address"),
            ];
            let mut wrong = Vec::new();
            for (is_right, word) in parts {
                if !is_right {
                    wrong.push(word);
                }
            }
            CheckOutcome::failed(
                "RW1213",
                format!("{} (line {})", wrong.join(", "), seen.line),
            )
            .expected(desired)
            .effect("the pod's high-performance NIC cannot carry traffic")
            .next(
                "delete the pod, and look at its labels: alibabacloud.com/hpn-type must be \
                 \"rdma\"",
            )
        }
    }
}

fn check_data(log: &NcclLog) -> CheckOutcome {
    let wrong: u64 = log.runs.iter().map(|run| run.wrong).sum();
    let out_of_bounds = log.runs.iter().any(|run| run.is_right == Some(false));
    let sizes: u64 = log.runs.iter().map(|run| run.sizes).sum();
    let unchecked: u64 = log.runs.iter().map(|run| run.unchecked).sum();
    if sizes == 0 {
        return CheckOutcome::not_applicable("the log has no table of nccl-tests");
    }
    if wrong > 0 || out_of_bounds {
        let found = match wrong {
            0 => "nccl-tests says at its end that values are out of bounds".to_owned(),
            wrong => format!("{wrong} elements arrived wrong"),
        };
        return CheckOutcome::failed("RW1207", found)
            .expected("#wrong is 0 everywhere")
            .effect(
                "results of this job are worthless, and so is a model that was trained like this",
            )
            .next(
                "run it again with NCCL_NET_GDR_LEVEL=LOC: if the data is right then, GPUDirect's \
                 path (PCIe ACS, IOMMU, driver) breaks it",
            );
    }
    if unchecked == sizes {
        return CheckOutcome::warning("RW1208", "nobody looked at the data (-c 0)")
            .expected("#wrong is 0 everywhere")
            .next("run it with -c 1");
    }
    CheckOutcome::passed(format!(
        "#wrong is 0 in {}",
        format_count((sizes - unchecked) as usize, "size")
    ))
    .expected("#wrong is 0 everywhere")
}

/// A size in words: `8 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    for (shift, word) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let unit = 1_u64 << shift;
        if bytes < unit {
            continue;
        }
        return match bytes % unit {
            0 => format!("{} {word}", bytes >> shift),
            _ => format!("{:.1} {word}", bytes as f64 / unit as f64),
        };
    }
    format!("{bytes} B")
}
