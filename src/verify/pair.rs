//! Two hosts on one rail: path MTU, bandwidth, latency and marks, both ways one after the other; or one with itself.
//!
//! The choreography of perftest, which negotiates nothing: server in a leased unit, wait until it listens, client,
//! collect both, end the server. Two servers, or a client before its server, cannot happen.

use super::gid::Endpoint;
use super::perftest::{self, TrafficFault};
use super::request::Marks;
use super::result::{Check, Judgement, Measurement, Verdict};
use super::run::{Findings, Run};
use super::session::{Session, lost};
use super::{marks, path_mtu, traffic};
use crate::resource::probe::{Probe, TRAFFIC_SLACK_S, TrafficEnd, TrafficTest};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Test ports, taken in turn, so that one that is still held by an earlier run is not hit at once again.
const FIRST_PORT: u16 = 18600;
const PORTS: u16 = 400;
/// Seconds of the run whose marks are counted.
const MARKS_SECONDS: u32 = 1;
/// How often a client asks again when nobody listens: rdma_cm does not always show its listener.
const ATTEMPTS: u32 = 3;

/// What all pairs share.
pub(super) struct Traffic<'a> {
    run: &'a Run<'a>,
    sessions: &'a BTreeMap<&'a str, Session<'a>>,
    token: String,
    count: AtomicU16,
}

/// A host's end of a rail.
#[derive(Clone, Copy)]
struct Side<'a> {
    session: &'a Session<'a>,
    endpoint: &'a Endpoint,
}

/// What is run.
#[derive(Clone, Copy)]
struct What {
    test: TrafficTest,
    seconds: u32,
    rdma_cm: bool,
}

/// A number, or why there is none.
type Measured<T> = Result<T, TrafficFault>;

/// A run that came to its end: exit status and output of the client, or of the server that did not start.
type Ran = Result<(i32, String), String>;

impl<'a> Traffic<'a> {
    /// For one run of `verify`.
    pub(super) fn new(run: &'a Run<'a>, sessions: &'a BTreeMap<&'a str, Session<'a>>) -> Self {
        let nonce = crate::system::clock::nonce().unwrap_or_default();
        Traffic { run, sessions, token: nonce.chars().take(8).collect(), count: AtomicU16::new(0) }
    }

    fn side(&self, host: &str, rail: u32) -> Option<Side<'_>> {
        let session = self.sessions.get(host)?;
        Some(Side { session, endpoint: session.endpoints.get(&rail)? })
    }

    /// A run and its number. A run that makes no sense is done once more: on a busy host perftest prints zeros, or breaks
    /// off, every now and then.
    async fn measure<T>(
        &self,
        what: What,
        from: Side<'_>,
        to: Side<'_>,
        read: fn(i32, &str) -> Measured<T>,
    ) -> Result<Measured<T>, String> {
        let (code, out) = self.send(what, from, to).await?;
        match read(code, &out) {
            Err(TrafficFault::NotUnderstood(_)) => {
                let (code, out) = self.send(what, from, to).await?;
                Ok(read(code, &out))
            }
            measured => Ok(measured),
        }
    }

    /// One traffic run from `from` to `to`.
    async fn send(&self, what: What, from: Side<'_>, to: Side<'_>) -> Ran {
        let What { test, seconds, rdma_cm } = what;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (token, port, lease_s) = (format!("{}n{number}", self.token), FIRST_PORT + number % PORTS, seconds + TRAFFIC_SLACK_S);
        let end = |side: Side<'_>| TrafficEnd {
            test,
            device: side.endpoint.device.clone(),
            device_port: side.endpoint.device_port,
            gid_index: Some(side.endpoint.gid_index),
            port,
            seconds,
            rdma_cm,
        };
        let serving = to.session.ask(&Probe::ServeTraffic { token: token.clone(), end: end(to), lease_s }).await?;
        if serving.code != 0 {
            return Ok((serving.code, serving.out + &serving.err));
        }
        let client = Probe::SendTraffic { end: end(from), server: to.endpoint.address, lease_s };
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
            (TrafficFault::NotUnderstood(_), Ok(server)) if is_understood(code, &server) => Ok((code, server)),
            _ => Ok((code, out)),
        }
    }
}

fn is_understood(code: i32, out: &str) -> bool {
    !matches!(perftest::fault(code, out), TrafficFault::NotUnderstood(_))
}

async fn ask_until_heard(session: &Session<'_>, client: &Probe) -> Ran {
    let mut attempt = 1;
    loop {
        let said = session.ask(client).await?;
        let out = said.out + &said.err;
        if said.code == 0 || attempt == ATTEMPTS || perftest::fault(said.code, &out) != TrafficFault::NobodyListens {
            return Ok((said.code, out));
        }
        attempt += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// RDMA traffic of a host with itself: for a rail on which no other host is there yet.
pub(super) async fn loopback(traffic: &Traffic<'_>, rail: u32, host: &str) -> Findings {
    let mut findings = Findings::default();
    let Some(side) = traffic.side(host, rail) else { return findings };
    let what = What { test: TrafficTest::WriteBandwidth, seconds: 1, rdma_cm: false };
    let run = traffic.measure(what, side, side, perftest::bandwidth_gbps).await;
    let judgement = run.map_or_else(|reason| lost(&reason), traffic::judge_loopback);
    traffic.run.judged(&mut findings, judgement, &[host], Some(rail), Check::Loopback);
    findings
}

/// A pair, both ways. `marks` says for which of the two as sender the marks are counted.
pub(super) async fn both_ways(traffic: &Traffic<'_>, rail: u32, hosts: [&str; 2], marks: [bool; 2]) -> Findings {
    let mut findings = Findings::default();
    for (from, to, with_marks) in [(hosts[0], hosts[1], marks[0]), (hosts[1], hosts[0], marks[1])] {
        if let (Some(from), Some(to)) = (traffic.side(from, rail), traffic.side(to, rail)) {
            one_way(traffic, rail, from, to, with_marks, &mut findings).await;
        }
    }
    findings
}

async fn one_way(traffic: &Traffic<'_>, rail: u32, from: Side<'_>, to: Side<'_>, with_marks: bool, findings: &mut Findings) {
    let names = [from.session.name(), to.session.name()];
    let run = traffic.run;
    if let Some(mtu) = from.session.rail(rail).and_then(|r| r.mtu) {
        let probe = Probe::PathMtu { source: from.endpoint.address, destination: to.endpoint.address, mtu };
        let judgement = match from.session.ask(&probe).await {
            Ok(said) => path_mtu::judge(said.code, &(said.out + &said.err), mtu),
            Err(reason) => lost(&reason),
        };
        run.judged(findings, judgement, &names, Some(rail), Check::PathMtu);
    }
    let expectations = &run.request.expectations;
    let what = What { test: TrafficTest::WriteBandwidth, seconds: expectations.duration_s.max(1), rdma_cm: false };
    let bandwidth = traffic.measure(what, from, to, perftest::bandwidth_gbps).await;
    let gbps = bandwidth.as_ref().ok().and_then(|b| b.as_ref().ok()).copied();
    let judgement = bandwidth.map_or_else(|reason| lost(&reason), |b| traffic::judge_bandwidth(b, expectations));
    run.judged(findings, judgement, &names, Some(rail), Check::Bandwidth);

    let what = What { test: TrafficTest::ReadLatency, seconds: 0, rdma_cm: false };
    let latency = traffic.measure(what, from, to, perftest::latency).await;
    let measured = latency.as_ref().ok().and_then(|l| l.as_ref().ok()).copied();
    let judgement = latency.map_or_else(|reason| lost(&reason), |l| traffic::judge_latency(l, expectations));
    run.judged(findings, judgement, &names, Some(rail), Check::Latency);

    findings.matrix.push(Measurement {
        rail,
        from: names[0].to_owned(),
        to: names[1].to_owned(),
        bandwidth_gbps: gbps,
        latency_us: measured.map(|l| l.typical_us),
        latency_p99_us: measured.and_then(|l| l.p99_us),
    });
    if let (true, Some(wanted)) = (with_marks, run.request.fabric.marks) {
        let judgement = count_marks(traffic, from, to, wanted).await;
        run.judged(findings, judgement, &names, Some(rail), Check::Marks);
    }
}

/// Real traffic over rdma_cm, whose default mark is what the sender's configfs says, counted at the receiver.
async fn count_marks(traffic: &Traffic<'_>, from: Side<'_>, to: Side<'_>, wanted: Marks) -> Judgement {
    let token = format!("{}m{}", traffic.token, traffic.count.fetch_add(1, Ordering::Relaxed));
    let (sender, netdev) = (from.endpoint.address, to.endpoint.netdev.clone());
    let lease_s = MARKS_SECONDS + 2 * TRAFFIC_SLACK_S;
    let before = match to.session.ask(&Probe::CountMarks { token: token.clone(), sender, netdev: netdev.clone(), lease_s }).await {
        Ok(said) => marks::parse(&said.out),
        Err(reason) => return lost(&reason),
    };
    let what = What { test: TrafficTest::WriteBandwidth, seconds: MARKS_SECONDS, rdma_cm: true };
    let ran = traffic.measure(what, from, to, perftest::bandwidth_gbps).await;
    let after = to.session.ask(&Probe::ReadMarks { token, netdev }).await;
    match (ran, after) {
        (Err(reason), _) | (_, Err(reason)) => lost(&reason),
        // Packets that arrived are judged, however the run ended.
        (Ok(ran), Ok(said)) => match (ran, marks::judge(&before, &marks::parse(&said.out), wanted)) {
            (Err(fault), judged) if !matches!(judged.verdict, Verdict::Passed | Verdict::Failed) => traffic::judge_fault(fault),
            (_, judged) => judged,
        },
    }
}
