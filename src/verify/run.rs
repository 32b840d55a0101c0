//! Asks the hosts: each by itself first, then loopback or pairs, rail by rail, with the error
//! counters around it.

use super::hardware::VerifyHardwareFacts;
use super::pair::{self, PairTraffic};
use super::rail_facts::RailFacts;
use super::request::{VerifyHost, VerifyRequest};
use super::result::{CheckOutcome, CheckResult, Measurement, VerifyCheck, VerifyReport};
use super::session::{HostSession, outcome_from_lost_host, run_probe};
use super::together::run_concurrently;
use super::{counters, gid, link, machine, module_check, schedule};
use railwright_base::Reason;
use railwright_resource::probe::{CounterPort, Probe};
use railwright_transport::{BoxFuture, Connector, Prober};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a port that may still come up is asked again, a second apart.
const LINK_PATIENCE: usize = 5;

/// What happens while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum VerifyEvent {
    /// A check has its verdict.
    Evaluated(CheckResult),
    /// A round of pairs begins.
    Round {
        /// The rail.
        rail: u32,
        /// Its number, from 1.
        number: usize,
        /// How many there are, over all rails.
        of: usize,
        /// Who talks to whom.
        pairs: Vec<(String, String)>,
    },
    /// NCCL's tests begin between these hosts.
    Nccl(Vec<String>),
}

/// Receives every event; called from many places at once.
pub type OnEvent<'a> = &'a (dyn Fn(VerifyEvent) + Sync);

/// Results and measurements of a part of the run.
#[derive(Debug, Default)]
pub(super) struct VerifyFindings {
    pub results: Vec<CheckResult>,
    pub matrix: Vec<Measurement>,
}

impl VerifyFindings {
    pub(super) fn extend(&mut self, other: VerifyFindings) {
        self.results.extend(other.results);
        self.matrix.extend(other.matrix);
    }
}

/// What every part of a run shares.
pub(super) struct VerifyRun<'a> {
    pub request: &'a VerifyRequest,
    on_event: OnEvent<'a>,
}

impl VerifyRun<'_> {
    /// Binds an outcome to its host and reports it.
    pub(super) fn evaluated(
        &self,
        findings: &mut VerifyFindings,
        evaluation: CheckOutcome,
        hosts: &[&str],
        rail: Option<u32>,
        check: VerifyCheck,
    ) {
        let result = evaluation.on(&self.request.inventory, hosts, rail, check);
        (self.on_event)(VerifyEvent::Evaluated(result.clone()));
        findings.results.push(result);
    }
}

/// Proves what the request states; a host that cannot be reached costs its own checks only.
pub async fn verify_hosts(
    connector: &dyn Connector,
    request: &VerifyRequest,
    on_event: OnEvent<'_>,
) -> VerifyReport {
    let run = VerifyRun { request, on_event };
    let mut findings = VerifyFindings::default();
    let asked = request
        .hosts
        .iter()
        .map(|host| -> BoxFuture<'_, _> { Box::pin(check_host(&run, connector, host)) })
        .collect();
    let mut sessions: BTreeMap<&str, HostSession> = BTreeMap::new();
    for (session, own) in run_concurrently(asked).await {
        findings.extend(own);
        sessions.extend(session.map(|s| (s.host.name(), s)));
    }
    let before = read_all_counters(&sessions).await;
    findings.extend(run_traffic(&run, &sessions).await);
    let after = read_all_counters(&sessions).await;
    evaluate_counters(&run, &sessions, &before, &after, &mut findings);
    let hosts: Vec<String> = request.hosts.iter().map(|h| h.name().to_owned()).collect();
    VerifyReport {
        results: findings.results,
        matrix: findings.matrix,
        ..VerifyReport::of(&request.inventory, &hosts)
    }
}

/// One host by itself: connection, links, GIDs, login, proofs of its modules.
async fn check_host<'a>(
    run: &VerifyRun<'_>,
    connector: &dyn Connector,
    host: &'a VerifyHost,
) -> (Option<HostSession<'a>>, VerifyFindings) {
    let mut findings = VerifyFindings::default();
    let (prober, facts) = match connect_and_read_rails(connector, host).await {
        Ok(opened) => opened,
        Err(reason) => {
            run.evaluated(
                &mut findings,
                outcome_from_lost_host(&reason),
                &[host.name()],
                None,
                VerifyCheck::Connection,
            );
            return (None, findings);
        }
    };
    let mut session = HostSession {
        host,
        prober,
        facts,
        hardware: VerifyHardwareFacts::default(),
        endpoints: BTreeMap::new(),
    };
    machine::check_machine(run, &mut session, &mut findings).await;
    evaluate_rails(run, &mut session, &mut findings);
    evaluate_login(run, &session, &mut findings).await;
    (Some(session), findings)
}

/// A connection to a host, and the facts of the host's rails; or why there is none.
async fn connect_and_read_rails(
    connector: &dyn Connector,
    host: &VerifyHost,
) -> Result<(Prober, RailFacts), Reason> {
    let opened = connector.connect(&host.access).await;
    let prober = Prober::new(opened.map_err(|error| error.to_string())?);
    let facts = read_rail_facts(&prober, host).await?;
    Ok((prober, facts))
}

/// Asks again while a port may still come up by itself.
async fn read_rail_facts(prober: &Prober, host: &VerifyHost) -> Result<RailFacts, Reason> {
    let probe = Probe::Rails {
        netdevs: host.rails.iter().map(|r| r.netdev.clone()).collect(),
    };
    let mut patience = LINK_PATIENCE;
    loop {
        let facts = RailFacts::parse(&run_probe(prober, &probe).await?.out);
        let mut rails = host.rails.iter();
        let is_settled = !rails.any(|rail| link::may_still_come_up(rail, &facts));
        if is_settled || patience == 0 {
            return Ok(facts);
        }
        patience -= 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn evaluate_rails(
    run: &VerifyRun<'_>,
    session: &mut HostSession<'_>,
    findings: &mut VerifyFindings,
) {
    let kind = run.request.fabric.gid;
    for rail in &session.host.rails {
        let (name, number) = ([session.host.name()], Some(rail.rail));
        let netdev = link::evaluate_netdev(rail, &session.facts);
        let rdma = link::evaluate_rdma(rail, &session.facts);
        // A wrong MTU still carries traffic, and the traffic shows what it costs.
        let usable = netdev.code != Some("RW0802") && rdma.code.is_none();
        run.evaluated(findings, netdev, &name, number, VerifyCheck::Netdev);
        run.evaluated(findings, rdma, &name, number, VerifyCheck::RdmaLink);
        run.evaluated(
            findings,
            gid::check_rail_gid(kind, rail, &session.facts),
            &name,
            number,
            VerifyCheck::Gid,
        );
        if let (true, Some(endpoint)) = (
            usable,
            gid::find_traffic_endpoint(kind, rail, &session.facts),
        ) {
            session.endpoints.insert(rail.rail, endpoint);
        }
    }
}

async fn evaluate_login(
    run: &VerifyRun<'_>,
    session: &HostSession<'_>,
    findings: &mut VerifyFindings,
) {
    let name = [session.name()];
    for check in &session.host.checks {
        let evaluation = match session
            .ask(&Probe::ModuleCheck {
                script: check.run.clone(),
            })
            .await
        {
            Ok(said) => module_check::check_module_output(check, said.code, &said.out, &said.err),
            Err(reason) => outcome_from_lost_host(&reason),
        };
        run.evaluated(
            findings,
            evaluation,
            &name,
            None,
            VerifyCheck::Module(check.id.clone()),
        );
    }
}

/// Loopback where a rail has one usable host, pairs in rounds where it has more.
async fn run_traffic(
    run: &VerifyRun<'_>,
    sessions: &BTreeMap<&str, HostSession<'_>>,
) -> VerifyFindings {
    let mut by_rail: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for session in sessions.values() {
        for rail in session.endpoints.keys() {
            by_rail
                .entry(*rail)
                .or_default()
                .push(session.name().to_owned());
        }
    }
    let traffic = PairTraffic::new(run, sessions);
    let mut findings = VerifyFindings::default();
    for (rail, hosts) in by_rail.iter().filter(|(_, hosts)| hosts.len() == 1) {
        findings.extend(pair::run_loopback_check(&traffic, *rail, &hosts[0]).await);
    }
    let rounds = schedule::schedule_rounds(&by_rail, run.request.rounds_per_rail);
    let mut marked = BTreeSet::new();
    for (place, round) in rounds.iter().enumerate() {
        let (rail, number, of) = (round.rail, place + 1, rounds.len());
        (run.on_event)(VerifyEvent::Round {
            rail,
            number,
            of,
            pairs: round.pairs.clone(),
        });
        let mut work: Vec<BoxFuture<'_, VerifyFindings>> = Vec::new();
        for (a, b) in &round.pairs {
            // The marks are the sender's: counted once for each, in its first pair.
            let marks = [
                marked.insert((rail, a.as_str())),
                marked.insert((rail, b.as_str())),
            ];
            work.push(Box::pin(pair::both_ways(&traffic, rail, [a, b], marks)));
        }
        for own in run_concurrently(work).await {
            findings.extend(own);
        }
    }
    findings
}

/// Whether a measurement of this rail moved data from or to a host.
fn has_bandwidth(matrix: &[Measurement], host: &str, rail: u32) -> bool {
    matrix.iter().any(|one| {
        let is_of_host = one.from == host || one.to == host;
        one.rail == rail && one.bandwidth_gbps.is_some() && is_of_host
    })
}

type HostCounters<'a> = BTreeMap<&'a str, Result<counters::Counters, Reason>>;

async fn read_all_counters<'a>(sessions: &BTreeMap<&'a str, HostSession<'_>>) -> HostCounters<'a> {
    let mut asked: Vec<BoxFuture<'_, _>> = Vec::new();
    for (name, session) in sessions {
        if !session.endpoints.is_empty() {
            asked.push(Box::pin(
                async move { (*name, read_counters(session).await) },
            ));
        }
    }
    run_concurrently(asked).await.into_iter().collect()
}

async fn read_counters(session: &HostSession<'_>) -> Result<counters::Counters, Reason> {
    let mut ports = Vec::new();
    for endpoint in session.endpoints.values() {
        ports.push(CounterPort {
            device: endpoint.device.clone(),
            device_port: endpoint.device_port,
            netdev: endpoint.port.clone(),
        });
    }
    let said = session.ask(&Probe::Counters { ports }).await?;
    Ok(counters::parse_port_counters(&said.out))
}

fn evaluate_counters(
    run: &VerifyRun<'_>,
    sessions: &BTreeMap<&str, HostSession<'_>>,
    before: &HostCounters<'_>,
    after: &HostCounters<'_>,
    findings: &mut VerifyFindings,
) {
    let none = BTreeMap::new();
    let lossless = run.request.fabric.marks.map(|marks| marks.priority);
    for (name, session) in sessions {
        for (rail, endpoint) in &session.endpoints {
            let port = format!("{}/{}", endpoint.device, endpoint.device_port);
            let evaluation = match (before.get(name), after.get(name)) {
                (Some(Ok(before)), Some(Ok(after))) => {
                    let measured = has_bandwidth(&findings.matrix, name, *rail);
                    counters::check_port_counters(
                        [
                            before.get(&port).unwrap_or(&none),
                            after.get(&port).unwrap_or(&none),
                        ],
                        lossless,
                        measured,
                    )
                }
                (Some(Err(reason)), _) | (_, Some(Err(reason))) => outcome_from_lost_host(reason),
                _ => continue,
            };
            run.evaluated(
                findings,
                evaluation,
                &[name],
                Some(*rail),
                VerifyCheck::Counters,
            );
        }
    }
}
