//! Two hosts on one rail: path MTU, bandwidth, latency and marks, both ways one after the other; or
//! one with itself.
//!
//! The choreography of perftest, which negotiates nothing: server in a leased unit, wait until it
//! listens, client, collect both, end the server. Two servers, or a client before its server,
//! cannot happen.

use super::gid::Endpoint;
use super::gpudirect::{self, GpuLocation};
use super::least::{self, BandwidthExpectation, PairEnd};
use super::machine::ERDMA;
use super::perftest::{self, TrafficFault};
use super::request::ExpectedMarks;
use super::result::{CheckOutcome, CheckVerdict, Measurement, VerifyCheck};
use super::run::{VerifyFindings, VerifyRun};
use super::session::{HostSession, outcome_from_lost_host};
use super::{eadm, marks, path_mtu, traffic};
use railwright_resource::probe::{
    GpuBuffer, Probe, TRAFFIC_SLACK_S, TrafficEnd, TrafficLoad, TrafficTest,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Test ports, taken in turn, so that one that is still held by an earlier run is not hit at once
/// again.
const FIRST_PORT: u16 = 18600;
const PORTS: u16 = 400;
/// Seconds of the run whose marks are counted.
const MARKS_SECONDS: u32 = 1;
/// `eadm` looks a little longer than the traffic runs, which takes a moment to begin.
const LIVE_SLACK_S: u32 = 2;
/// How often a client asks again when nobody listens: rdma_cm does not always show its listener.
const ATTEMPTS: u32 = 3;

/// What all pairs share.
pub(super) struct PairTraffic<'a> {
    run: &'a VerifyRun<'a>,
    sessions: &'a BTreeMap<&'a str, HostSession<'a>>,
    token: String,
    count: AtomicU16,
}

/// A host's end of a rail.
#[derive(Clone, Copy)]
struct TrafficSide<'a> {
    session: &'a HostSession<'a>,
    endpoint: &'a Endpoint,
}

/// What is run.
#[derive(Clone, Copy)]
struct TrafficRunOptions<'a> {
    test: TrafficTest,
    seconds: u32,
    rdma_cm: bool,
    load: Option<TrafficLoad>,
    /// GPU memory of the sender and of the receiver.
    gpus: Option<[&'a GpuBuffer; 2]>,
}

impl TrafficRunOptions<'_> {
    /// From host memory to host memory, with perftest's own load.
    fn plain(test: TrafficTest, seconds: u32) -> Self {
        TrafficRunOptions {
            test,
            seconds,
            rdma_cm: false,
            load: None,
            gpus: None,
        }
    }
}

impl<'a> TrafficSide<'a> {
    /// As what a pair must deliver is found for it.
    fn end(&self, rail: u32, gpu: Option<&'a str>) -> Option<PairEnd<'a>> {
        Some(PairEnd {
            rail: self.session.rail(rail)?,
            facts: &self.session.facts,
            gpu,
        })
    }

    /// The model of its GPUs, where the spec has a path of GPUDirect.
    fn gpu_model(&self) -> Option<&'a str> {
        self.session
            .host
            .gpus
            .as_ref()
            .filter(|gpus| gpus.dmabuf.is_some())
            .map(|gpus| gpus.model.as_str())
    }

    /// The GPU nearest to the rail's NIC, as an end of a run and as a place.
    fn gpu(&self) -> Option<(GpuBuffer, GpuLocation)> {
        let dmabuf = self.session.host.gpus.as_ref()?.dmabuf?;
        let (gpu, nearness) = self.session.hardware.nearest_gpu(&self.endpoint.port)?;
        Some((
            GpuBuffer {
                bus_id: gpu.address.clone(),
                dmabuf,
            },
            GpuLocation {
                address: gpu.address.clone(),
                nearness,
            },
        ))
    }
}

/// A number, or why there is none.
type Measured<T> = Result<T, TrafficFault>;

/// A run that came to its end: exit status and output of the client, or of the server that did not
/// start.
type Ran = Result<(i32, String), String>;

impl<'a> PairTraffic<'a> {
    /// For one run of `verify`.
    pub(super) fn new(
        run: &'a VerifyRun<'a>,
        sessions: &'a BTreeMap<&'a str, HostSession<'a>>,
    ) -> Self {
        let nonce = railwright_system::clock::generate_nonce().unwrap_or_default();
        PairTraffic {
            run,
            sessions,
            token: nonce.chars().take(8).collect(),
            count: AtomicU16::new(0),
        }
    }

    fn side(&self, host: &str, rail: u32) -> Option<TrafficSide<'_>> {
        let session = self.sessions.get(host)?;
        Some(TrafficSide {
            session,
            endpoint: session.endpoints.get(&rail)?,
        })
    }

    /// A run and its number. A run that makes no sense is done once more: on a busy host perftest
    /// prints zeros, or breaks off, every now and then.
    async fn measure<T>(
        &self,
        what: TrafficRunOptions<'_>,
        from: TrafficSide<'_>,
        to: TrafficSide<'_>,
        read: fn(i32, &str) -> Measured<T>,
    ) -> Result<Measured<T>, String> {
        let (code, out) = self.send(what, from, to).await?;
        match read(code, &out) {
            Err(TrafficFault::NotUnderstood(_) | TrafficFault::NothingMoved) => {
                let (code, out) = self.send(what, from, to).await?;
                Ok(read(code, &out))
            }
            measured => Ok(measured),
        }
    }

    /// One traffic run from `from` to `to`.
    async fn send(
        &self,
        what: TrafficRunOptions<'_>,
        from: TrafficSide<'_>,
        to: TrafficSide<'_>,
    ) -> Ran {
        let TrafficRunOptions {
            test,
            seconds,
            rdma_cm,
            load,
            gpus,
        } = what;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (token, port, lease_s) = (
            format!("{}n{number}", self.token),
            FIRST_PORT + number % PORTS,
            seconds + TRAFFIC_SLACK_S,
        );
        let [sent, written] = gpus.map_or([None, None], |gpus| gpus.map(|gpu| Some(gpu.clone())));
        let end = |side: TrafficSide<'_>, gpu: Option<GpuBuffer>| TrafficEnd {
            test,
            device: side.endpoint.device.clone(),
            device_port: side.endpoint.device_port,
            gid_index: Some(side.endpoint.gid_index),
            port,
            seconds,
            rdma_cm,
            load,
            gpu,
        };
        let serving = to
            .session
            .ask(&Probe::ServeTraffic {
                token: token.clone(),
                end: end(to, written),
                lease_s,
            })
            .await?;
        if serving.code != 0 {
            return Ok((serving.code, serving.out + &serving.err));
        }
        let client = Probe::SendTraffic {
            end: end(from, sent),
            server: to.endpoint.address,
            lease_s,
        };
        let (code, out) = match ask_until_heard(from.session, &client).await {
            // A server ends by itself after its one client, and in any case with its lease.
            Ok((0, out)) => return Ok((0, out)),
            Ok(other) => other,
            Err(reason) => {
                let _ = to.session.ask(&Probe::EndTraffic { token }).await;
                return Err(reason);
            }
        };
        let served = to.session.ask(&Probe::EndTraffic { token }).await;
        // Where the client's words make no sense, the server's may.
        match (perftest::fault(code, &out), served.map(|said| said.out)) {
            (TrafficFault::NotUnderstood(_), Ok(server)) if is_understood(code, &server) => {
                Ok((code, server))
            }
            _ => Ok((code, out)),
        }
    }
}

fn is_understood(code: i32, out: &str) -> bool {
    !matches!(perftest::fault(code, out), TrafficFault::NotUnderstood(_))
}

async fn ask_until_heard(session: &HostSession<'_>, client: &Probe) -> Ran {
    let mut attempt = 1;
    loop {
        let said = session.ask(client).await?;
        let out = said.out + &said.err;
        if said.code == 0
            || attempt == ATTEMPTS
            || perftest::fault(said.code, &out) != TrafficFault::NobodyListens
        {
            return Ok((said.code, out));
        }
        attempt += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// RDMA traffic of a host with itself: for a rail on which no other host is there yet.
pub(super) async fn run_loopback_check(
    traffic: &PairTraffic<'_>,
    rail: u32,
    host: &str,
) -> VerifyFindings {
    let mut findings = VerifyFindings::default();
    let Some(side) = traffic.side(host, rail) else {
        return findings;
    };
    let what = TrafficRunOptions::plain(TrafficTest::WriteBandwidth, 1);
    let run = traffic
        .measure(what, side, side, perftest::bandwidth_gbps)
        .await;
    let judgement = run.map_or_else(
        |reason| outcome_from_lost_host(&reason),
        traffic::judge_loopback,
    );
    traffic.run.judged(
        &mut findings,
        judgement,
        &[host],
        Some(rail),
        VerifyCheck::Loopback,
    );
    findings
}

/// A pair, both ways. `marks` says for which of the two as sender the marks are counted.
pub(super) async fn both_ways(
    traffic: &PairTraffic<'_>,
    rail: u32,
    hosts: [&str; 2],
    marks: [bool; 2],
) -> VerifyFindings {
    let mut findings = VerifyFindings::default();
    for (from, to, with_marks) in [
        (hosts[0], hosts[1], marks[0]),
        (hosts[1], hosts[0], marks[1]),
    ] {
        if let (Some(from), Some(to)) = (traffic.side(from, rail), traffic.side(to, rail)) {
            one_way(traffic, rail, from, to, with_marks, &mut findings).await;
        }
    }
    findings
}

async fn one_way(
    traffic: &PairTraffic<'_>,
    rail: u32,
    from: TrafficSide<'_>,
    to: TrafficSide<'_>,
    with_marks: bool,
    findings: &mut VerifyFindings,
) {
    let names = [from.session.name(), to.session.name()];
    let run = traffic.run;
    if let Some(mtu) = from.session.rail(rail).and_then(|r| r.mtu) {
        let probe = Probe::PathMtu {
            source: from.endpoint.address,
            destination: to.endpoint.address,
            mtu,
        };
        let judgement = match from.session.ask(&probe).await {
            Ok(said) => path_mtu::check_path_mtu(said.code, &(said.out + &said.err), mtu),
            Err(reason) => outcome_from_lost_host(&reason),
        };
        run.judged(
            findings,
            judgement,
            &names,
            Some(rail),
            VerifyCheck::PathMtu,
        );
    }
    let expectations = &run.request.expectations;
    let wanted = from.end(rail, None).zip(to.end(rail, None));
    let wanted = wanted.map_or_else(BandwidthExpectation::default, |(from, to)| {
        least::select_bandwidth_expectation(run.request, [from, to])
    });
    let what = TrafficRunOptions {
        load: wanted.load,
        ..TrafficRunOptions::plain(TrafficTest::WriteBandwidth, expectations.duration_s.max(1))
    };
    let (bandwidth, live) = tokio::join!(
        traffic.measure(what, from, to, perftest::bandwidth_gbps),
        watch_eadm_traffic(to, rail, what.seconds)
    );
    if let Some(judgement) = live.filter(|_| matches!(bandwidth, Ok(Ok(_)))) {
        run.judged(
            findings,
            judgement,
            &[to.session.name()],
            Some(rail),
            VerifyCheck::LiveTraffic,
        );
    }
    let gbps = bandwidth
        .as_ref()
        .ok()
        .and_then(|b| b.as_ref().ok())
        .copied();
    let judgement = bandwidth.map_or_else(
        |reason| outcome_from_lost_host(&reason),
        |b| traffic::judge_bandwidth(b, &wanted),
    );
    run.judged(
        findings,
        judgement,
        &names,
        Some(rail),
        VerifyCheck::Bandwidth,
    );
    let gpu_gbps = gpu_to_gpu(traffic, rail, [from, to], gbps, findings).await;

    let what = TrafficRunOptions::plain(TrafficTest::ReadLatency, 0);
    let latency = traffic.measure(what, from, to, perftest::latency).await;
    let measured = latency.as_ref().ok().and_then(|l| l.as_ref().ok()).copied();
    let judgement = latency.map_or_else(
        |reason| outcome_from_lost_host(&reason),
        |l| traffic::judge_latency(l, expectations),
    );
    run.judged(
        findings,
        judgement,
        &names,
        Some(rail),
        VerifyCheck::Latency,
    );

    findings.matrix.push(Measurement {
        rail,
        from: names[0].to_owned(),
        to: names[1].to_owned(),
        bandwidth_gbps: gbps,
        gpu_bandwidth_gbps: gpu_gbps,
        latency_us: measured.map(|l| l.typical_us),
        latency_p99_us: measured.and_then(|l| l.p99_us),
    });
    if let (true, Some(wanted)) = (with_marks, run.request.fabric.marks) {
        let judgement = count_marks(traffic, from, to, wanted).await;
        run.judged(findings, judgement, &names, Some(rail), VerifyCheck::Marks);
    }
}

/// What `eadm` of the receiver sees meanwhile, where the rail is eRDMA and it is there.
async fn watch_eadm_traffic(to: TrafficSide<'_>, rail: u32, seconds: u32) -> Option<CheckOutcome> {
    let is_erdma = to.session.rail(rail)?.driver.as_deref() == Some(ERDMA);
    if !is_erdma || !to.session.facts.tools.contains("eadm") {
        return None;
    }
    let probe = Probe::LiveTraffic {
        device: to.endpoint.device.clone(),
        seconds: seconds + LIVE_SLACK_S,
    };
    eadm::check_eadm_rates(&to.session.ask(&probe).await.ok()?.out)
}

/// The same between GPU memories, where the spec has a path of GPUDirect on both hosts; the
/// bandwidth, if there is one.
async fn gpu_to_gpu(
    traffic: &PairTraffic<'_>,
    rail: u32,
    sides: [TrafficSide<'_>; 2],
    host_gbps: Option<f64>,
    findings: &mut VerifyFindings,
) -> Option<f64> {
    let [from, to] = sides;
    let models = from.gpu_model().zip(to.gpu_model());
    let (from_model, to_model) = models?;
    let names = [from.session.name(), to.session.name()];
    let without = sides.iter().find(|side| side.gpu().is_none());
    let (judgement, gbps) = match (from.gpu().zip(to.gpu()), without, host_gbps) {
        (None, without, _) => {
            let host = without.map_or("a host", |side| side.session.name());
            (
                CheckOutcome::not_applicable(format!(
                    "{host} has no GPU that NVIDIA's driver runs"
                )),
                None,
            )
        }
        (_, _, None) => {
            let reason = "not even host memory passed";
            (
                CheckOutcome::not_run("RW0820", reason)
                    .effect("GPU memory takes the same way")
                    .next("mend bandwidth first"),
                None,
            )
        }
        (Some(((one, here), (other, there))), _, Some(_)) => {
            let ends = from
                .end(rail, Some(from_model))
                .zip(to.end(rail, Some(to_model)));
            let wanted = ends.map_or_else(BandwidthExpectation::default, |(from, to)| {
                least::select_bandwidth_expectation(traffic.run.request, [from, to])
            });
            let seconds = traffic.run.request.expectations.duration_s.max(1);
            let what = TrafficRunOptions {
                load: wanted.load,
                gpus: Some([&one, &other]),
                ..TrafficRunOptions::plain(TrafficTest::WriteBandwidth, seconds)
            };
            match traffic
                .measure(what, from, to, perftest::bandwidth_gbps)
                .await
            {
                Err(reason) => (outcome_from_lost_host(&reason), None),
                Ok(ran) => (
                    gpudirect::check_gpudirect_bandwidth(
                        ran.clone(),
                        &wanted,
                        host_gbps,
                        [&here, &there],
                    ),
                    ran.ok(),
                ),
            }
        }
    };
    traffic.run.judged(
        findings,
        judgement,
        &names,
        Some(rail),
        VerifyCheck::GpuDirect,
    );
    gbps
}

/// Real traffic over rdma_cm, whose default mark is what the sender's configfs says, counted at the
/// receiver.
async fn count_marks(
    traffic: &PairTraffic<'_>,
    from: TrafficSide<'_>,
    to: TrafficSide<'_>,
    wanted: ExpectedMarks,
) -> CheckOutcome {
    let token = format!(
        "{}m{}",
        traffic.token,
        traffic.count.fetch_add(1, Ordering::Relaxed)
    );
    let (sender, netdev) = (from.endpoint.address, to.endpoint.port.clone());
    let lease_s = MARKS_SECONDS + 2 * TRAFFIC_SLACK_S;
    let before = match to
        .session
        .ask(&Probe::CountMarks {
            token: token.clone(),
            sender,
            netdev: netdev.clone(),
            lease_s,
        })
        .await
    {
        Ok(said) => marks::parse_mark_counts(&said.out),
        Err(reason) => return outcome_from_lost_host(&reason),
    };
    let what = TrafficRunOptions {
        rdma_cm: true,
        ..TrafficRunOptions::plain(TrafficTest::WriteBandwidth, MARKS_SECONDS)
    };
    let ran = traffic
        .measure(what, from, to, perftest::bandwidth_gbps)
        .await;
    let after = to.session.ask(&Probe::ReadMarks { token, netdev }).await;
    match (ran, after) {
        (Err(reason), _) | (_, Err(reason)) => outcome_from_lost_host(&reason),
        // Packets that arrived are judged, however the run ended.
        (Ok(ran), Ok(said)) => match (
            ran,
            marks::check_packet_marks(&before, &marks::parse_mark_counts(&said.out), wanted),
        ) {
            (Err(fault), judged)
                if !matches!(judged.verdict, CheckVerdict::Passed | CheckVerdict::Failed) =>
            {
                traffic::judge_fault(fault)
            }
            (_, judged) => judged,
        },
    }
}
