//! Two hosts on one rail: path MTU, bandwidth, latency and marks, both ways one after the other; or
//! one with itself.
//!
//! `direction` says what is measured one way. Here is the choreography of perftest, which
//! negotiates nothing: server in a leased unit, wait until it listens, client, collect both, end
//! the server. Two servers, or a client before its server, cannot happen.

mod direction;

use super::expected_bandwidth::PairEnd;
use super::gid::Endpoint;
use super::gpudirect::GpuLocation;
use super::perftest::{self, TrafficFault};
use super::result::VerifyCheck;
use super::run::{VerifyFindings, VerifyRun};
use super::session::{HostSession, outcome_from_lost_host};
use super::traffic;
use direction::RailDirection;
use railwright_base::Reason;
use railwright_resource::probe::{
    GpuBuffer, Probe, TRAFFIC_SLACK_S, TrafficEnd, TrafficLoad, TrafficTest,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Test ports, taken in turn, so that one that is still in use by an earlier run is not hit at once
/// again.
const FIRST_PORT: u16 = 18600;
const PORTS: u16 = 400;
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

    /// The end of a run at this side. Its GPU's memory is used where one is given.
    fn build_end(&self, side: TrafficSide<'_>, port: u16, gpu: Option<&GpuBuffer>) -> TrafficEnd {
        TrafficEnd {
            test: self.test,
            device: side.endpoint.device.clone(),
            device_port: side.endpoint.device_port,
            gid_index: Some(side.endpoint.gid_index),
            port,
            seconds: self.seconds,
            rdma_cm: self.rdma_cm,
            load: self.load,
            gpu: gpu.cloned(),
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
type Ran = Result<(i32, String), Reason>;

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
    ) -> Result<Measured<T>, Reason> {
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
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let token = format!("{}n{number}", self.token);
        let port = FIRST_PORT + number % PORTS;
        let lease_s = what.seconds + TRAFFIC_SLACK_S;
        let [sent, written] = match what.gpus {
            Some(gpus) => gpus.map(Some),
            None => [None, None],
        };
        let serving = to
            .session
            .ask(&Probe::ServeTraffic {
                token: token.clone(),
                end: what.build_end(to, port, written),
                lease_s,
            })
            .await?;
        if serving.code != 0 {
            return Ok((serving.code, serving.out + &serving.err));
        }
        let client = Probe::SendTraffic {
            end: what.build_end(from, port, sent),
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
    let evaluation = match run {
        Ok(measured) => traffic::evaluate_loopback(measured),
        Err(reason) => outcome_from_lost_host(&reason),
    };
    traffic.run.evaluated(
        &mut findings,
        evaluation,
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
            let direction = RailDirection {
                traffic,
                rail,
                from,
                to,
            };
            direction.run_checks(with_marks, &mut findings).await;
        }
    }
    findings
}
