//! The whole run against hosts in memory that answer the typed probes with recorded output: what is
//! sound passes, and each broken host fails its own check with the right words.

use super::request::{
    Expectations, ExpectedGpus, ExpectedMarks, ExpectedRail, FabricFacts, GidKind, VerifyHost,
    VerifyRequest,
};
use super::result::{CheckVerdict, VerifyReport};
use super::run::{VerifyEvent, verify_hosts};
use super::{samples, verify_wave};
use railwright_resource::probe::{Probe, TrafficEnd, TrafficTest};
use railwright_resource::{Action, Read, ReadResults};
use railwright_transport::sim::new_simulated_access;
use railwright_transport::{
    BoxFuture, Connector, ExecutionOutcome, Fence, HostLink, TargetAccess, TransportError, Upkeep,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Broken {
    Unreachable,
    LostInTraffic,
    LinkDown,
    WrongMtu,
    NoAddress,
    NoMarks,
    NoPerftest,
    NoCuda,
    Hung,
    FirstRunUnclear,
}

/// Who serves: (host, port) -> end.
type Serving = Arc<Mutex<BTreeMap<(String, u16), TrafficEnd>>>;

#[derive(Default)]
struct Fabric {
    broken: BTreeMap<usize, Broken>,
    serving: Serving,
    runs: Arc<Mutex<usize>>,
}

struct Host {
    number: usize,
    broken: Option<Broken>,
    serving: Serving,
    runs: Arc<Mutex<usize>>,
}

impl Connector for Fabric {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async move {
            let number: usize = access.name[1..].parse().unwrap();
            let broken = self.broken.get(&number).copied();
            if broken == Some(Broken::Unreachable) {
                return Err(TransportError::Unreachable {
                    host: access.name.clone(),
                    address: access.address().to_owned(),
                    reason: "connection refused".into(),
                });
            }
            Ok(Arc::new(Host {
                number,
                broken,
                serving: self.serving.clone(),
                runs: self.runs.clone(),
            }) as Arc<dyn HostLink>)
        })
    }
}

impl HostLink for Host {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        assert_eq!(reads, [Read::Hardware]);
        Box::pin(async { Ok(samples::build_hardware_answers(samples::HARDWARE)) })
    }
    fn perform<'a>(
        &'a self,
        _: &'a Action,
        _: &'a str,
        _: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        unreachable!("verify changes nothing")
    }
    fn upkeep<'a>(
        &'a self,
        _: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        unreachable!("verify keeps no record")
    }
    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let (code, stdout) = self.answer(probe)?;
            Ok(ExecutionOutcome::Ended {
                code,
                stdout,
                stderr: String::new(),
            })
        })
    }
}

impl Host {
    fn answer(&self, probe: &Probe) -> Result<(i32, String), TransportError> {
        let is = |broken| self.broken == Some(broken);
        let said = |code, text: &str| Ok((code, text.to_owned()));
        match probe {
            Probe::Rails { .. } if is(Broken::LinkDown) => said(0, samples::RAILS_DOWN),
            Probe::Rails { .. } if is(Broken::NoAddress) => said(0, samples::RAILS_NO_ADDRESS),
            Probe::Rails { .. } => {
                let own = samples::RAILS
                    .replace("192.168.77.1/", &format!("192.168.77.{}/", self.number));
                let own = format!("{own}eadm\n")
                    .replace("c0a8:4d01", &format!("c0a8:4d{:02x}", self.number));
                Ok((
                    0,
                    if is(Broken::WrongMtu) {
                        own.replace("mtu 9000", "mtu 1500")
                    } else {
                        own
                    },
                ))
            }
            Probe::PathMtu { .. } if is(Broken::WrongMtu) => said(1, samples::PING_LOCAL_LIMIT),
            Probe::PathMtu { .. } => said(0, samples::PING),
            Probe::ModuleCheck { .. } => said(0, "fine\n"),
            Probe::ServeTraffic { .. } | Probe::SendTraffic { .. } if is(Broken::NoPerftest) => {
                said(127, "@missing ib_write_bw\n")
            }
            Probe::ServeTraffic { end, .. } if is(Broken::NoCuda) && end.gpu.is_some() => {
                said(3, samples::WITHOUT_CUDA)
            }
            Probe::ServeTraffic { end, .. } => {
                let before = self.serving.lock().unwrap().insert(
                    (format!("192.168.77.{}", self.number), end.port),
                    end.clone(),
                );
                assert!(before.is_none(), "two servers on one port");
                said(0, "@listening\n")
            }
            Probe::SendTraffic { .. } if is(Broken::LostInTraffic) => Err(TransportError::Lost {
                host: format!("n{}", self.number),
                reason: "reset by peer".into(),
            }),
            Probe::SendTraffic { end, server, .. } => {
                let served = self
                    .serving
                    .lock()
                    .unwrap()
                    .remove(&(server.to_string(), end.port));
                Ok(self.traffic(end, served))
            }
            Probe::EndTraffic { .. } => said(0, ""),
            Probe::CountMarks { .. } => said(0, "@priorities\n@counting\n"),
            // The mark is the sender's: n2 counts what n1 sent.
            Probe::ReadMarks { .. } => said(
                0,
                if is(Broken::NoMarks) {
                    samples::MARKS_0
                } else {
                    samples::MARKS_26
                },
            ),
            Probe::Counters { .. } => said(0, samples::COUNTERS),
            Probe::Machine { .. } => said(0, samples::MACHINE),
            Probe::LiveTraffic { .. } => said(0, samples::EADM),
            _ => unreachable!("no job is run to prove a fabric"),
        }
    }

    fn traffic(&self, end: &TrafficEnd, served: Option<TrafficEnd>) -> (i32, String) {
        *self.runs.lock().unwrap() += 1;
        match (served, self.broken) {
            _ if self.broken == Some(Broken::NoCuda) && end.gpu.is_some() => {
                (1, samples::WITHOUT_CUDA.to_owned())
            }
            (None, _) => (1, samples::NOBODY_LISTENS.to_owned()),
            (Some(_), Some(Broken::Hung)) => (124, String::new()),
            (Some(_), Some(Broken::FirstRunUnclear)) if *self.runs.lock().unwrap() == 1 => {
                (139, "Segmentation fault\n".to_owned())
            }
            (Some(server), _) if server.test != end.test || server.rdma_cm != end.rdma_cm => {
                (17, samples::WRONG_TEST.to_owned())
            }
            (Some(_), _) if end.test == TrafficTest::WriteBandwidth => {
                (0, samples::WRITE_BW_GBITS.to_owned())
            }
            (Some(_), _) => (0, samples::READ_LAT.to_owned()),
        }
    }
}

pub(super) fn request(hosts: usize) -> VerifyRequest {
    let host = |number: usize| VerifyHost {
        access: new_simulated_access(&format!("n{number}")),
        rails: vec![ExpectedRail {
            rail: 0,
            netdev: "ens1f0np0".into(),
            port: "ens1f0np0".into(),
            address: Some(format!("192.168.77.{number}/24")),
            mtu: Some(9000),
            mtu_max: None,
            driver: Some("mlx5_core".into()),
        }],
        gpus: None,
        checks: vec![],
    };
    VerifyRequest {
        inventory: "inventories/lab".into(),
        fabric: FabricFacts {
            gid: GidKind::RoceV2,
            marks: Some(ExpectedMarks {
                dscp: 26,
                priority: 3,
            }),
        },
        expectations: Expectations {
            write_bandwidth_gbps: Some(0.1),
            gpu_bandwidth_gbps: None,
            read_latency_us: Some(1000.0),
            duration_s: 1,
        },
        bandwidths: Vec::new(),
        hosts: (1..=hosts).map(host).collect(),
        rounds_per_rail: None,
    }
}

async fn run(hosts: usize, broken: &[(usize, Broken)]) -> VerifyReport {
    run_as(&request(hosts), broken).await
}

/// Hosts with three GPUs each and a path of GPUDirect.
fn with_gpus(hosts: usize) -> VerifyRequest {
    let mut request = request(hosts);
    let gpus = ExpectedGpus {
        model: "A100-SXM4-80GB".into(),
        count: 3,
        driver: Some("535".into()),
        dmabuf: Some(true),
    };
    request
        .hosts
        .iter_mut()
        .for_each(|host| host.gpus = Some(gpus.clone()));
    request
}

async fn run_as(request: &VerifyRequest, broken: &[(usize, Broken)]) -> VerifyReport {
    let fabric = Fabric {
        broken: broken.iter().copied().collect(),
        ..Fabric::default()
    };
    let rounds = Mutex::new(Vec::new());
    let on_event = |event: VerifyEvent| {
        if let VerifyEvent::Round { pairs, .. } = event {
            rounds.lock().unwrap().push(pairs);
        }
    };
    let report = verify_hosts(&fabric, request, &on_event).await;
    for pairs in rounds.into_inner().unwrap() {
        let busy: Vec<String> = pairs.into_iter().flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(busy.iter().collect::<BTreeSet<_>>().len(), busy.len());
    }
    report
}

/// `n2: rdma link RW0804`, for everything that is not as it must be.
fn bad(report: &VerifyReport) -> Vec<String> {
    let of = |verdict: CheckVerdict| {
        report.with(verdict).map(move |r| {
            format!(
                "{verdict:?} {}: {} {}",
                r.hosts.join("->"),
                r.check.word(),
                r.code.unwrap_or_default()
            )
        })
    };
    [
        CheckVerdict::Failed,
        CheckVerdict::Unknown,
        CheckVerdict::NotRun,
        CheckVerdict::Warning,
    ]
    .into_iter()
    .flat_map(of)
    .collect()
}

#[tokio::test]
async fn sound_hosts_pass_and_fill_the_matrix() {
    let report = run(4, &[]).await;
    assert_eq!(bad(&report), Vec::<String>::new());
    assert_eq!(
        (report.verdict(), report.matrix.len()),
        (CheckVerdict::Passed, 12)
    );
    assert!(
        report
            .matrix
            .iter()
            .all(|m| m.bandwidth_gbps == Some(0.30) && m.latency_us == Some(371.75))
    );
    let marks = report
        .results
        .iter()
        .filter(|r| r.check.word() == "dscp")
        .count();
    assert_eq!(marks, 4, "each host's marks are counted once");
}

#[tokio::test]
async fn one_host_is_proven_by_itself() {
    let report = run(1, &[]).await;
    let checks: Vec<String> = report.results.iter().map(|r| r.check.word()).collect();
    assert_eq!(
        checks,
        [
            "running",
            "pcie link",
            "netdev",
            "rdma link",
            "gid",
            "loopback",
            "counters"
        ]
    );
    assert_eq!(report.verdict(), CheckVerdict::Passed);
}

#[tokio::test]
async fn each_broken_host_fails_its_own_check() {
    let cases: &[(Broken, &[&str])] = &[
        (Broken::Unreachable, &["Unknown n2: connection RW0801"]),
        (
            Broken::LinkDown,
            &["Failed n2: netdev RW0802", "Failed n2: rdma link RW0804"],
        ),
        (
            Broken::WrongMtu,
            &["Failed n2: netdev RW0803", "Failed n2->n1: path mtu RW0806"],
        ),
        (Broken::NoAddress, &["Failed n2: gid RW0805"]),
        (Broken::NoMarks, &["Failed n1->n2: dscp RW0807"]),
        (
            Broken::NoPerftest,
            &[
                "Unknown n1->n2: bandwidth RW0812",
                "Unknown n1->n2: latency RW0812",
                "Unknown n2->n1: bandwidth RW0812",
                "Unknown n2->n1: latency RW0812",
            ],
        ),
        (
            Broken::Hung,
            &[
                "Failed n2->n1: bandwidth RW0811",
                "Failed n2->n1: latency RW0811",
            ],
        ),
        (
            Broken::LostInTraffic,
            &[
                "Unknown n2->n1: bandwidth RW0801",
                "Unknown n2->n1: latency RW0801",
                "Unknown n2->n1: dscp RW0801",
            ],
        ),
        (Broken::FirstRunUnclear, &[]),
    ];
    for (broken, desired) in cases {
        assert_eq!(bad(&run(2, &[(2, *broken)]).await), *desired, "{broken:?}");
    }
}

#[tokio::test]
async fn a_broken_host_costs_the_pairs_of_others_nothing() {
    let report = run(3, &[(3, Broken::LinkDown)]).await;
    let pairs: Vec<_> = report
        .matrix
        .iter()
        .map(|m| (m.from.as_str(), m.to.as_str()))
        .collect();
    assert_eq!(pairs, [("n1", "n2"), ("n2", "n1")]);
}

#[tokio::test]
async fn gpu_memory_is_sent_where_the_spec_has_a_path_for_it() {
    let report = run_as(&with_gpus(2), &[]).await;
    assert_eq!(bad(&report), Vec::<String>::new());
    assert!(
        report
            .matrix
            .iter()
            .all(|cell| cell.gpu_bandwidth_gbps == Some(0.30))
    );
    let ran: Vec<_> = report
        .results
        .iter()
        .filter(|r| r.check.word() == "gpudirect")
        .map(|r| r.measured.as_str())
        .collect();
    assert_eq!(
        ran,
        ["0.30 Gb/s, 100 % of host memory (GPU 0000:1b:00.0, on the NIC's PCIe switch)"; 2]
    );
    assert!(
        run(2, &[])
            .await
            .matrix
            .iter()
            .all(|cell| cell.gpu_bandwidth_gbps.is_none())
    );
}

#[tokio::test]
async fn a_perftest_without_cuda_is_not_run_and_stops_nothing() {
    let report = run_as(&with_gpus(2), &[(2, Broken::NoCuda)]).await;
    assert_eq!(
        bad(&report),
        [
            "NotRun n1->n2: gpudirect RW0820",
            "NotRun n2->n1: gpudirect RW0820"
        ]
    );
    assert_eq!(report.verdict(), CheckVerdict::Passed);
    let mut without = with_gpus(2);
    without.hosts[1].gpus.as_mut().unwrap().count = 0;
    without.expectations.gpu_bandwidth_gbps = Some(0.5);
    let slow: Vec<String> = bad(&run_as(&without, &[]).await);
    assert_eq!(
        slow,
        [
            "Failed n2: gpus RW0818",
            "Failed n1->n2: gpudirect RW0819",
            "Failed n2->n1: gpudirect RW0819"
        ]
    );
    let hung = run_as(&with_gpus(2), &[(2, Broken::Hung)]).await;
    assert!(
        bad(&hung).contains(&"NotRun n2->n1: gpudirect RW0820".to_owned()),
        "{:?}",
        bad(&hung)
    );
}

#[tokio::test]
async fn on_erdma_the_routes_and_what_eadm_sees_are_evaluated_too() {
    let mut erdma = request(2);
    let rails = erdma.hosts.iter_mut().flat_map(|host| &mut host.rails);
    rails.for_each(|rail| (rail.driver, rail.mtu_max) = (Some("erdma".into()), Some(8500)));
    let report = run_as(&erdma, &[]).await;
    assert_eq!(
        bad(&report),
        ["Failed n1: netdev RW0803", "Failed n2: netdev RW0803"]
    );
    let passed = |word: &str| {
        report
            .with(CheckVerdict::Passed)
            .filter(|r| r.check.word() == word)
            .count()
    };
    assert_eq!((passed("routes"), passed("erdma traffic")), (2, 2));
    assert!(
        run(2, &[])
            .await
            .results
            .iter()
            .all(|r| !["routes", "erdma traffic"].contains(&r.check.word().as_str()))
    );
}

#[tokio::test]
async fn a_gate_stops_at_what_failed_and_at_what_is_not_proven() {
    let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let open = |broken: &[(usize, Broken)]| Fabric {
        broken: broken.iter().copied().collect(),
        ..Fabric::default()
    };
    let canary = verify_wave(&open(&[]), &request(3), &names(&["n1"]), &[], &|_| ()).await;
    assert!(canary.passed && canary.report.matrix.is_empty() && canary.reason.is_none());
    let next = verify_wave(
        &open(&[]),
        &request(3),
        &names(&["n2"]),
        &names(&["n1"]),
        &|_| (),
    )
    .await;
    assert_eq!((next.passed, next.report.matrix.len()), (true, 2));
    let failed = verify_wave(
        &open(&[(2, Broken::NoAddress)]),
        &request(3),
        &names(&["n2"]),
        &names(&["n1"]),
        &|_| (),
    )
    .await;
    assert_eq!(
        failed.reason.as_deref(),
        Some(
            "gid on n2 failed: rocep193s0 has no GID for 192.168.77.2: the address is not on \
             ens1f0np0"
        )
    );
    // Whoever died since its own gate is no partner.
    for (broken, rails, reason) in [
        (vec![(1, Broken::Unreachable)], true, None),
        (
            vec![(1, Broken::Unreachable), (3, Broken::Unreachable)],
            true,
            Some("connection on n1 is unknown"),
        ),
        (
            vec![(1, Broken::Unreachable), (3, Broken::Unreachable)],
            false,
            None,
        ),
    ] {
        let mut request = request(3);
        if !rails {
            request.hosts.iter_mut().for_each(|host| host.rails.clear());
        }
        let done = names(&["n1", "n3"]);
        let gate = verify_wave(&open(&broken), &request, &names(&["n2"]), &done, &|_| ()).await;
        let said = gate.reason.unwrap_or_default();
        assert_eq!(gate.passed, reason.is_none(), "{said}");
        assert!(said.starts_with(reason.unwrap_or_default()), "{said}");
    }
    let unknown = verify_wave(
        &open(&[(2, Broken::Unreachable)]),
        &request(3),
        &names(&["n2"]),
        &names(&["n1"]),
        &|_| (),
    )
    .await;
    assert!(
        !unknown.passed
            && unknown
                .reason
                .unwrap()
                .starts_with("connection on n2 is unknown: n2 is not reachable")
    );
}
