//! Whether a log proves that RDMA was used: one judgement an aspect, and what they say together.

use super::collective::{CollectiveRun, CollectiveSizeResult};
use super::compare::format_seconds;
use super::expected::{AcsNic, NcclExpectations};
use super::failure::{NcclFailureCause, describe_completion_status};
use super::log::NcclLog;
use super::transport::{self, Transport};
use crate::result::{CheckOutcome, CheckVerdict};
use railwright_base::text::format_count;
use serde::Serialize;

/// From this size on a low figure disproves; smaller messages are slow for themselves (a run of two
/// hosts in `samples` reaches nine tenths of its end at 256 MiB).
const JUDGED_FROM: u64 = 256 << 20;

/// What is above this share of what NICs carry did not go over these NICs, in percent. Encoding and
/// rounding are far below it.
const MOST_PERCENT: f64 = 110.0;

/// What is judged.
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
pub enum Proven {
    /// RDMA was used, and nothing speaks against it.
    Proven,
    /// Something is not as it must be.
    Disproven,
    /// The log does not say enough.
    NotKnown,
}

/// The judgement of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct NcclProof {
    /// All together.
    pub proven: Proven,
    /// What carried the data.
    pub transport: Transport,
    /// By aspect, in the order of the screen.
    pub aspects: Vec<(Aspect, CheckOutcome)>,
}

/// Judges a log.
pub fn check_nccl_log(log: &NcclLog, expected: &NcclExpectations) -> NcclProof {
    let transport = transport::of_log(log);
    let is_type2 = match expected.acs {
        None | Some(AcsNic::Type1) => false,
        Some(AcsNic::Type2) => true,
        // A log that is silent of networks is not held against the NIC; one that says TCP is,
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
    aspects.extend(
        expected
            .traffic
            .as_ref()
            .map(|seen| (Aspect::Traffic, super::traffic::check_rail_traffic(seen))),
    );
    aspects.push((Aspect::Data, check_data(log)));
    aspects.push((Aspect::Bandwidth, bandwidth));
    aspects.push((Aspect::Progress, check_progress(log, expected)));
    let has = |verdict: CheckVerdict| {
        aspects
            .iter()
            .any(|(_, judgement)| judgement.verdict == verdict)
    };
    let proven = match (has(CheckVerdict::Failed), has(CheckVerdict::Unknown)) {
        (true, _) => Proven::Disproven,
        (false, true) => Proven::NotKnown,
        (false, false) => Proven::Proven,
    };
    NcclProof {
        proven,
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
    match transport {
        _ if log.is_of_one_host()
            && (transport.is_rdma()
                || (transport == Transport::Socket && !log.has_no_network())) =>
        {
            CheckOutcome::unknown(
                "RW1203",
                "all ranks are on one host: nothing crosses the network",
            )
            .expected("RDMA between hosts")
            .effect("what was measured is NVLink, PCIe or memory, whatever NICs NCCL found")
            .next("run it on at least two hosts")
        }
        Transport::Infiniband | Transport::Roce | Transport::Verbs => {
            over_verbs(log, transport, &doctor)
        }
        Transport::Socket => over_sockets(log)
            .expected("RDMA between hosts")
            .next(doctor),
        Transport::Mixed => CheckOutcome::failed("RW1202", describe_mixed_transports(log))
            .expected("one transport, RDMA, everywhere")
            .effect(
                "a collective is as slow as its slowest path, so the whole job goes at the speed \
                 of that",
            )
            .next(doctor),
        Transport::Plugin => {
            let name = log
                .processes
                .iter()
                .find_map(|process| process.plugin())
                .unwrap_or_default();
            CheckOutcome::unknown(
                "RW1203",
                format!("the plugin `{name}`; the log does not say what it sends over"),
            )
            .expected("RDMA between hosts")
            .effect("nothing is proven")
            .next("look for the plugin's own lines, or judge by bandwidth: --expect-gbps")
        }
        Transport::Unknown => CheckOutcome::unknown("RW1203", describe_silent_log(log))
            .expected("RDMA between hosts")
            .effect("nothing is proven")
            .next(format!(
                "run the job with NCCL_DEBUG=INFO and take the whole log of a rank; {doctor}"
            )),
    }
}

fn over_verbs(log: &NcclLog, transport: Transport, doctor: &str) -> CheckOutcome {
    let channels = log.channels();
    if !log.is_connected() && !log.has_worked() {
        let what = match channels.verbs() {
            0 => format!(
                "{} was chosen by NCCL at its start, and nothing in the log came after it",
                transport.word()
            ),
            verbs => {
                format!(
                    "the log tells of {} over verbs, and not of their connection",
                    format_count(verbs as usize, "channel")
                )
            }
        };
        return CheckOutcome::unknown("RW1203", what)
            .expected(
                "RDMA between hosts, by channels over verbs that were connected, a table of \
                 nccl-tests or progress of a training",
            )
            .effect("nothing is proven: a job that hangs in its first collective looks like this")
            .next(format!(
                "take the whole log, once the job has gone on for a while; {doctor}"
            ));
    }
    if channels.verbs() == 0 && (channels.all() > 0 || !log.names_others()) {
        let what = match channels.all() {
            0 => "the log names no second host and no rank of another one",
            _ => "no channel between hosts is in the log, only such within one",
        };
        return CheckOutcome::unknown(
            "RW1203",
            format!(
                "{} was chosen by NCCL at its start; {what}",
                transport.word()
            ),
        )
        .expected("RDMA between hosts")
        .effect(
            "nothing is proven: NCCL chooses a network on one host as well, where nothing crosses \
             it",
        )
        .next("take the logs of all ranks, of a job on at least two hosts");
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

fn over_sockets(log: &NcclLog) -> CheckOutcome {
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
    let of = |wanted: Transport| {
        let hosts = log
            .processes
            .iter()
            .filter(|process| transport::of_process(process) == wanted);
        hosts
            .filter_map(|process| process.host.as_deref())
            .collect::<std::collections::BTreeSet<&str>>()
    };
    let parts = [
        Transport::Socket,
        Transport::Plugin,
        Transport::Mixed,
        Transport::Roce,
        Transport::Infiniband,
        Transport::Verbs,
    ];
    let parts = parts.into_iter().filter_map(|wanted| {
        let hosts = of(wanted);
        let named = super::fold_log_names(hosts.iter().copied());
        (!hosts.is_empty()).then(|| {
            format!(
                "{} on {named}",
                if wanted == Transport::Mixed {
                    "both at once"
                } else {
                    wanted.word()
                }
            )
        })
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn check_hpn0(log: &NcclLog, expected: &NcclExpectations) -> CheckOutcome {
    let wanted = "hpn0 is up and running, with an IPv6 address of its link and a global one";
    let show = format!(
        "kubectl exec deploy/NAME -- ifconfig | grep hpn -A 8 >> {}",
        expected.words.strip_prefix("--log ").unwrap_or("FILE")
    );
    match &log.hpn {
        None => CheckOutcome::unknown("RW1213", "the log does not show hpn0")
            .expected(wanted)
            .effect("nothing is proven of the NIC")
            .next(show),
        Some(seen) if seen.is_ready() => CheckOutcome::passed(format!(
            "up and running with both addresses (line {})",
            seen.line
        ))
        .expected(wanted),
        Some(seen) => {
            let parts = [
                (seen.is_up, "not up"),
                (seen.is_running, "not running"),
                (seen.has_link_address, "without an address of its link"),
                (seen.has_global_address, "without a global IPv6 address"),
            ];
            let wrong: Vec<&str> = parts
                .iter()
                .filter(|(is_so, _)| !is_so)
                .map(|(_, word)| *word)
                .collect();
            CheckOutcome::failed(
                "RW1213",
                format!("{} (line {})", wrong.join(", "), seen.line),
            )
            .expected(wanted)
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

/// The run that is judged: the last one that measures what a node's NICs carry, else the last one.
fn select_bandwidth_run(log: &NcclLog) -> Option<(&CollectiveRun, CollectiveSizeResult)> {
    let measured = || {
        log.runs
            .iter()
            .rev()
            .filter_map(|run| Some((run, run.largest?)))
    };
    measured()
        .find(|(run, _)| run.is_of_the_whole_node() == Some(true))
        .or_else(|| measured().next())
}

fn check_bandwidth(log: &NcclLog, expected: &NcclExpectations, is_needed: bool) -> CheckOutcome {
    let state = "run all_reduce_perf -b 8 -e 8G -f 2 on two hosts, and say with --expect-gbps what \
                 the NICs of one node carry";
    let missing = |what: &str| {
        let judgement = CheckOutcome::unknown("RW1210", what.to_owned())
            .expected("a figure of nccl-tests and what it is held against");
        judgement
            .effect("whether the fabric's bandwidth was there is not known")
            .next(state)
    };
    let Some((run, size)) = select_bandwidth_run(log) else {
        return match expected.node_gbps.is_some() || is_needed {
            true => missing("the log has no table of nccl-tests"),
            false => CheckOutcome::not_applicable("the log has no table of nccl-tests"),
        };
    };
    let Some(busbw) = size.busbw() else {
        return missing("the table has no busbw");
    };
    let measured = format!("{busbw} GB/s busbw at {}", format_bytes(size.bytes));
    let Some(gbps) = expected.node_gbps else {
        let unjudged = format!("{measured}; nothing to hold it against");
        return if is_needed {
            missing(&unjudged)
        } else {
            CheckOutcome::not_applicable(unjudged)
        };
    };
    let can = gbps / 8.0;
    let least = can * f64::from(expected.least_percent) / 100.0;
    let wanted = format!(
        "at least {least:.1} GB/s: {} % of {can:.1} GB/s ({gbps} Gb/s, {})",
        expected.least_percent, expected.source
    );
    // where nothing but the bandwidth proves anything, a figure that does not say it leaves it open
    let aside = |why: String| {
        if is_needed {
            missing(&why)
        } else {
            CheckOutcome::not_applicable(why)
        }
    };
    if log.is_of_one_host() {
        return aside(format!("{measured}, within one host"));
    }
    match run.is_of_the_whole_node() {
        Some(true) => {}
        Some(false) => {
            return aside(format!(
                "{measured}; each GPU has its own share of the NICs in this operation"
            ));
        }
        None => {
            return missing(&format!(
                "{measured}, and which operation it is does not stand there"
            ))
            .expected(wanted);
        }
    }
    let share = format!(
        "{measured}, {:.0} % of what the NICs carry",
        100.0 * busbw / can
    );
    if busbw > can * MOST_PERCENT / 100.0 {
        return CheckOutcome::unknown("RW1218", share)
            .expected(format!(
                "at most {can:.1} GB/s ({gbps} Gb/s, {})",
                expected.source
            ))
            .effect(
                "what it is held against is not what these NICs carry, or the switches reduce \
                 (SHARP): nothing is proven of the bandwidth",
            )
            .next("say with --expect-gbps what the NICs of one node carry together");
    }
    if busbw >= least {
        return CheckOutcome::passed(share).expected(wanted);
    }
    if size.bytes < JUDGED_FROM {
        let small = format!("{share}, but messages of this size are slow by themselves");
        return CheckOutcome::unknown("RW1209", small)
            .expected(wanted)
            .effect("nothing is proven of the bandwidth")
            .next(state);
    }
    CheckOutcome::failed("RW1209", share)
        .expected(wanted)
        .effect("jobs wait for the network for longer than its NICs make necessary")
        .next(format!(
            "railwright doctor {}; railwright verify INVENTORY measures each rail by itself",
            expected.words
        ))
}

/// A size in words: `8 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes >= 1 << shift);
    unit.map_or(format!("{bytes} B"), |(shift, word)| {
        match bytes % (1 << shift) {
            0 => format!("{} {word}", bytes >> shift),
            _ => format!("{:.1} {word}", bytes as f64 / f64::from(1 << shift)),
        }
    })
}

fn check_progress(log: &NcclLog, expected: &NcclExpectations) -> CheckOutcome {
    let doctor = format!("railwright doctor {}", expected.words);
    if let Some(first) = log.failures.first() {
        let more = if log.failed > 1 {
            format!(
                " (and {} more)",
                format_count(log.failed as usize - 1, "line")
            )
        } else {
            String::new()
        };
        let host = first
            .host
            .as_deref()
            .map_or(String::new(), |host| format!(" on {host}"));
        let effect = match &first.trouble {
            NcclFailureCause::Completion { status, .. } => describe_completion_status(*status),
            NcclFailureCause::Verbs { .. } => {
                "the NIC could not be used: a call that every transfer needs was refused"
            }
            NcclFailureCause::Device => "the RDMA device itself reported that it cannot go on",
            NcclFailureCause::Timeout => {
                "a collective did not end in its time: a rank is gone, or the network lost what it \
                 waited for"
            }
            NcclFailureCause::Remote => "another rank was gone; why stands in that rank's log",
            NcclFailureCause::Other => "the job gave up",
        };
        return CheckOutcome::failed(
            "RW1211",
            format!("line {}{host}: {}{more}", first.line, first.text),
        )
        .effect(effect)
        .next(doctor);
    }
    let is_open = |run: &&CollectiveRun| !run.is_over();
    if let Some(run) = log.runs.iter().rev().find(is_open) {
        let so_far = run.largest.map_or("no size".to_owned(), |size| {
            format!(
                "{} up to {}",
                format_count(run.sizes as usize, "size"),
                format_bytes(size.bytes)
            )
        });
        let to_do = run
            .bytes_max
            .map_or(String::new(), |most| format!(" of {}", format_bytes(most)));
        return CheckOutcome::unknown(
            "RW1212",
            format!("a run of nccl-tests has no last line: {so_far}{to_do}"),
        )
        .expected("`# Avg bus bandwidth` at its end")
        .effect("it still runs, its log was cut off, or it hangs")
        .next(doctor);
    }
    let began = log
        .processes
        .iter()
        .filter(|process| process.complete.is_empty() && !process.ranks.is_empty());
    let hosts: std::collections::BTreeSet<&str> = began
        .filter_map(|process| process.host.as_deref())
        .collect();
    if !hosts.is_empty() && log.training.lines == 0 && log.runs.is_empty() {
        return CheckOutcome::unknown(
            "RW1212",
            format!(
                "ranks on {} never completed their communicator",
                super::fold_log_names(hosts)
            ),
        )
        .expected("`Init COMPLETE` of every rank")
        .effect("they still wait for others, the log was cut off, or they hang")
        .next(doctor);
    }
    match (&log.training, log.runs.len()) {
        (training, _) if training.lines > 0 => {
            let (first, last) = training.epochs;
            let samples = training.samples.map_or(String::new(), |(done, all)| {
                format!(", {done} of {all} samples of the last")
            });
            CheckOutcome::passed(format!(
                "{} of progress, epoch {first} to {last}{samples}",
                format_count(training.lines as usize, "line")
            ))
        }
        (_, 0) => match log
            .steps
            .measured()
            .map(|(_, sampled)| (sampled.count, sampled.median().unwrap_or_default()))
        {
            Some((steps, median)) => CheckOutcome::passed(format!(
                "{}, the median {}",
                format_count(steps as usize, "step"),
                format_seconds(median)
            )),
            None if log.is_connected() => CheckOutcome::not_applicable(
                "all channels were connected; no progress that can be read came after it",
            ),
            None if log.channels().verbs() > 0 => CheckOutcome::warning(
                "RW1212",
                "no progress that can be read came after the channels",
            )
            .expected("a table of nccl-tests, or progress of a training")
            .effect(
                "channels are told before they are connected: a job that hangs in its first \
                 collective looks like this",
            )
            .next(format!(
                "take the log again once the job has gone on for a while; {doctor}"
            )),
            None => CheckOutcome::not_applicable(
                "the log has neither nccl-tests nor progress of a training",
            ),
        },
        (_, runs) => CheckOutcome::passed(format!(
            "{} of nccl-tests to the end",
            format_count(runs, "run")
        )),
    }
}
