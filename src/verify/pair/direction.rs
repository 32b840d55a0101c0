//! What is measured from one host to another on a rail: path MTU, bandwidth between host memories
//! and between GPU memories, latency and marks.

use super::{PairTraffic, TrafficRunOptions, TrafficSide};
use crate::expected_bandwidth::{self, BandwidthExpectation};
use crate::machine::ERDMA;
use crate::perftest::{self, Latency};
use crate::request::ExpectedMarks;
use crate::result::{CheckOutcome, CheckVerdict, Measurement, VerifyCheck};
use crate::run::VerifyFindings;
use crate::session::outcome_from_lost_host;
use crate::{eadm, gpudirect, marks, path_mtu, traffic};
use railwright_resource::probe::{Probe, TRAFFIC_SLACK_S, TrafficTest};
use std::sync::atomic::Ordering;

/// Seconds of the run whose marks are counted.
const MARKS_SECONDS: u32 = 1;
/// `eadm` looks a little longer than the traffic runs, which takes a moment to begin.
const LIVE_SLACK_S: u32 = 2;

/// A rail in the direction from one host to another.
#[derive(Clone, Copy)]
pub(super) struct RailDirection<'a, 't> {
    pub(super) traffic: &'a PairTraffic<'t>,
    pub(super) rail: u32,
    pub(super) from: TrafficSide<'a>,
    pub(super) to: TrafficSide<'a>,
}

impl<'a> RailDirection<'a, '_> {
    /// Runs all checks, one after the other; marks are counted only on request.
    pub(super) async fn run_checks(&self, with_marks: bool, findings: &mut VerifyFindings) {
        self.check_path_mtu(findings).await;
        let bandwidth_gbps = self.measure_bandwidth(findings).await;
        let gpu_bandwidth_gbps = self.measure_gpu_bandwidth(bandwidth_gbps, findings).await;
        let latency = self.measure_latency(findings).await;
        let [from, to] = self.names();
        findings.matrix.push(Measurement {
            rail: self.rail,
            from: from.to_owned(),
            to: to.to_owned(),
            bandwidth_gbps,
            gpu_bandwidth_gbps,
            latency_us: latency.map(|latency| latency.typical_us),
            latency_p99_us: latency.and_then(|latency| latency.p99_us),
        });
        if let (true, Some(desired)) = (with_marks, self.traffic.run.request.fabric.marks) {
            let outcome = self.count_marks(desired).await;
            self.record(findings, outcome, VerifyCheck::Marks);
        }
    }

    fn names(&self) -> [&'a str; 2] {
        [self.from.session.name(), self.to.session.name()]
    }

    fn record(&self, findings: &mut VerifyFindings, outcome: CheckOutcome, check: VerifyCheck) {
        let run = self.traffic.run;
        run.evaluated(findings, outcome, &self.names(), Some(self.rail), check);
    }

    /// What the pair must deliver, from GPU memory where models of GPUs are given.
    fn select_expectation(&self, gpus: [Option<&'a str>; 2]) -> BandwidthExpectation {
        let [sender, receiver] = gpus;
        let ends = self
            .from
            .end(self.rail, sender)
            .zip(self.to.end(self.rail, receiver));
        ends.map_or_else(BandwidthExpectation::default, |(from, to)| {
            expected_bandwidth::select_bandwidth_expectation(self.traffic.run.request, [from, to])
        })
    }

    async fn check_path_mtu(&self, findings: &mut VerifyFindings) {
        let session = self.from.session;
        let Some(mtu) = session.rail(self.rail).and_then(|rail| rail.mtu) else {
            return;
        };
        let probe = Probe::PathMtu {
            source: self.from.endpoint.address,
            destination: self.to.endpoint.address,
            mtu,
        };
        let outcome = match session.ask(&probe).await {
            Ok(said) => path_mtu::check_path_mtu(said.code, &(said.out + &said.err), mtu),
            Err(reason) => outcome_from_lost_host(&reason),
        };
        self.record(findings, outcome, VerifyCheck::PathMtu);
    }

    /// Gb/s between host memories; nothing where the run gave no figure.
    async fn measure_bandwidth(&self, findings: &mut VerifyFindings) -> Option<f64> {
        let run = self.traffic.run;
        let desired = self.select_expectation([None, None]);
        let seconds = run.request.expectations.duration_s.max(1);
        let what = TrafficRunOptions {
            load: desired.load,
            ..TrafficRunOptions::plain(TrafficTest::WriteBandwidth, seconds)
        };
        let (bandwidth, live) = tokio::join!(
            self.traffic
                .measure(what, self.from, self.to, perftest::bandwidth_gbps),
            self.watch_eadm_traffic(seconds)
        );
        if let Some(outcome) = live.filter(|_| matches!(bandwidth, Ok(Ok(_)))) {
            let receiver = [self.to.session.name()];
            let check = VerifyCheck::LiveTraffic;
            run.evaluated(findings, outcome, &receiver, Some(self.rail), check);
        }
        let gbps = match &bandwidth {
            Ok(Ok(gbps)) => Some(*gbps),
            _ => None,
        };
        let outcome = match bandwidth {
            Ok(measured) => traffic::evaluate_bandwidth(measured, &desired),
            Err(reason) => outcome_from_lost_host(&reason),
        };
        self.record(findings, outcome, VerifyCheck::Bandwidth);
        gbps
    }

    /// What `eadm` of the receiver sees meanwhile, where the rail is eRDMA and it is there.
    async fn watch_eadm_traffic(&self, seconds: u32) -> Option<CheckOutcome> {
        let session = self.to.session;
        let is_erdma = session.rail(self.rail)?.driver.as_deref() == Some(ERDMA);
        if !is_erdma || !session.facts.tools.contains("eadm") {
            return None;
        }
        let probe = Probe::LiveTraffic {
            device: self.to.endpoint.device.clone(),
            seconds: seconds + LIVE_SLACK_S,
        };
        eadm::check_eadm_rates(&session.ask(&probe).await.ok()?.out)
    }

    /// Gb/s between GPU memories, where the spec has a path of GPUDirect on both hosts.
    async fn measure_gpu_bandwidth(
        &self,
        host_gbps: Option<f64>,
        findings: &mut VerifyFindings,
    ) -> Option<f64> {
        let sender = self.from.gpu_model()?;
        let receiver = self.to.gpu_model()?;
        let desired = self.select_expectation([Some(sender), Some(receiver)]);
        let (outcome, gbps) = self.run_gpu_traffic(&desired, host_gbps).await;
        self.record(findings, outcome, VerifyCheck::GpuDirect);
        gbps
    }

    async fn run_gpu_traffic(
        &self,
        desired: &BandwidthExpectation,
        host_gbps: Option<f64>,
    ) -> (CheckOutcome, Option<f64>) {
        let gpus = self.from.gpu().zip(self.to.gpu());
        let Some(((sender, sender_place), (receiver, receiver_place))) = gpus else {
            let sides = [self.from, self.to];
            let without = sides.iter().find(|side| side.gpu().is_none());
            let host = without.map_or("a host", |side| side.session.name());
            let why = format!("{host} has no GPU that NVIDIA's driver runs");
            return (CheckOutcome::not_applicable(why), None);
        };
        if host_gbps.is_none() {
            let outcome = CheckOutcome::not_run("RW0820", "not even host memory passed")
                .effect("GPU memory takes the same way")
                .next("fix bandwidth first");
            return (outcome, None);
        }
        let seconds = self.traffic.run.request.expectations.duration_s.max(1);
        let what = TrafficRunOptions {
            load: desired.load,
            gpus: Some([&sender, &receiver]),
            ..TrafficRunOptions::plain(TrafficTest::WriteBandwidth, seconds)
        };
        let ran = self
            .traffic
            .measure(what, self.from, self.to, perftest::bandwidth_gbps)
            .await;
        match ran {
            Err(reason) => (outcome_from_lost_host(&reason), None),
            Ok(measured) => {
                let gbps = measured.as_ref().ok().copied();
                let places = [&sender_place, &receiver_place];
                let outcome =
                    gpudirect::check_gpudirect_bandwidth(measured, desired, host_gbps, places);
                (outcome, gbps)
            }
        }
    }

    async fn measure_latency(&self, findings: &mut VerifyFindings) -> Option<Latency> {
        let what = TrafficRunOptions::plain(TrafficTest::ReadLatency, 0);
        let ran = self
            .traffic
            .measure(what, self.from, self.to, perftest::latency)
            .await;
        let latency = match &ran {
            Ok(Ok(latency)) => Some(*latency),
            _ => None,
        };
        let outcome = match ran {
            Ok(measured) => {
                traffic::evaluate_latency(measured, &self.traffic.run.request.expectations)
            }
            Err(reason) => outcome_from_lost_host(&reason),
        };
        self.record(findings, outcome, VerifyCheck::Latency);
        latency
    }

    /// Real traffic over rdma_cm, whose default mark is what the sender's configfs says, counted at
    /// the receiver.
    async fn count_marks(&self, desired: ExpectedMarks) -> CheckOutcome {
        let token = format!(
            "{}m{}",
            self.traffic.token,
            self.traffic.count.fetch_add(1, Ordering::Relaxed)
        );
        let netdev = self.to.endpoint.port.clone();
        let count = Probe::CountMarks {
            token: token.clone(),
            sender: self.from.endpoint.address,
            netdev: netdev.clone(),
            lease_s: MARKS_SECONDS + 2 * TRAFFIC_SLACK_S,
        };
        let before = match self.to.session.ask(&count).await {
            Ok(said) => marks::parse_mark_counts(&said.out),
            Err(reason) => return outcome_from_lost_host(&reason),
        };
        let what = TrafficRunOptions {
            rdma_cm: true,
            ..TrafficRunOptions::plain(TrafficTest::WriteBandwidth, MARKS_SECONDS)
        };
        let ran = self
            .traffic
            .measure(what, self.from, self.to, perftest::bandwidth_gbps)
            .await;
        let read = Probe::ReadMarks { token, netdev };
        let after = self.to.session.ask(&read).await;
        let (ran, said) = match (ran, after) {
            (Ok(ran), Ok(said)) => (ran, said),
            (Err(reason), _) | (_, Err(reason)) => return outcome_from_lost_host(&reason),
        };
        // Packets that arrived are checked, however the run ended.
        let counted = marks::parse_mark_counts(&said.out);
        let outcome = marks::check_packet_marks(&before, &counted, desired);
        let is_decided = matches!(outcome.verdict, CheckVerdict::Passed | CheckVerdict::Failed);
        match ran {
            Err(fault) if !is_decided => traffic::evaluate_fault(fault),
            _ => outcome,
        }
    }
}
