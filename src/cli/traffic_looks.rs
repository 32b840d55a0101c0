//! Looks at the counters of rails, one after the other, and what passed between them.

use railwright_base::{Reason, Target, TargetKind};
use railwright_knowledge::spec::Host;
use railwright_observe::{self as observe, HostRequest};
use railwright_resource::traffic::RailTrafficSample;
use railwright_resource::{Fact, Read, TargetObservation};
use railwright_session::Inventory;
use railwright_system::clock;
use railwright_transport::Connector;
use railwright_verify::flow::{Flow, Look};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Between two looks, where nobody says it.
const EVERY_S: u64 = 2;

/// Looks at the rails of hosts.
pub struct Looks<'a> {
    connector: &'a dyn Connector,
    requests: Vec<HostRequest>,
    last: BTreeMap<String, RailTrafficSample>,
}

/// One request a host with rails; of these rails alone, where they are named.
pub fn build_traffic_requests(
    inventory: &Inventory,
    hosts: &[&Host],
    rails: Option<&BTreeSet<u32>>,
) -> Vec<HostRequest> {
    let mut requests = Vec::new();
    for access in inventory.accesses() {
        if access.target().kind != TargetKind::Host {
            continue;
        }
        let Some(host) = hosts.iter().find(|host| *host.name == *access.name) else {
            continue;
        };
        let mut netdevs = Vec::new();
        for rail in &host.netdevs {
            if rails.is_none_or(|rails| rails.contains(&rail.rail)) {
                netdevs.push(rail.netdev.clone());
            }
        }
        if !netdevs.is_empty() {
            let reads = vec![Read::RailTraffic { netdevs }];
            requests.push(HostRequest { access, reads });
        }
    }
    requests
}

/// A look that is not the first of all its hosts.
pub fn says_something(look: &Look) -> bool {
    look.values().any(|hosts| !hosts.is_empty())
}

impl<'a> Looks<'a> {
    /// At what is asked for.
    pub fn new(connector: &'a dyn Connector, requests: Vec<HostRequest>) -> Self {
        Looks {
            connector,
            requests,
            last: BTreeMap::new(),
        }
    }

    /// Rails that are looked at.
    pub fn rails(&self) -> usize {
        self.requests
            .iter()
            .map(|request| list_requested_netdevs(request).len())
            .sum()
    }

    /// Hosts that are asked.
    pub fn hosts(&self) -> usize {
        self.requests.len()
    }

    /// What passed since the look before, which this one takes the place of.
    pub async fn next(&mut self) -> Look {
        let observed = observe::observe_hosts(
            self.connector,
            self.requests.clone(),
            observe::DEFAULT_PARALLEL,
            &|_| {},
        )
        .await;
        self.take(&observed.targets)
    }

    /// One look, at what passed since the one before.
    pub async fn once(&mut self, flow: &mut Flow) {
        let look = self.next().await;
        if says_something(&look) {
            flow.take(&look);
        }
    }

    /// Looks on and on, for as long as it is waited for.
    pub async fn on(&mut self, flow: &mut Flow) {
        loop {
            clock::sleep_for(Duration::from_secs(EVERY_S)).await;
            self.once(flow).await;
        }
    }

    /// Looks for so many seconds, and once more at their end.
    pub async fn during(&mut self, seconds: u64, flow: &mut Flow) {
        let mut left = seconds;
        loop {
            self.once(flow).await;
            if left == 0 {
                return;
            }
            let pause = left.min(EVERY_S);
            clock::sleep_for(Duration::from_secs(pause)).await;
            left -= pause;
        }
    }

    fn take(&mut self, targets: &BTreeMap<Target, TargetObservation>) -> Look {
        let last = &mut self.last;
        let mut look = Look::new();
        for request in &self.requests {
            let host = request.access.name.to_string();
            let sample =
                parse_traffic_sample(targets.get(&request.access.target()), &request.reads);
            let rates = match (&sample, last.get(&host)) {
                (Err(why), _) => Err(why.clone()),
                // Of the first look nothing is known yet, and that is no finding.
                (Ok(_), None) => Ok(None),
                (Ok(now), Some(earlier)) => now.since(earlier).map(Some),
            };
            for netdev in list_requested_netdevs(request) {
                let fact = match &rates {
                    Ok(None) => continue,
                    Ok(Some(rails)) => rails
                        .get(netdev)
                        .cloned()
                        .unwrap_or(Fact::Unknown("the host says nothing of it".into())),
                    Err(why) => Fact::Unknown(why.clone()),
                };
                look.entry(netdev.clone())
                    .or_default()
                    .insert(host.clone(), fact);
            }
            match sample {
                Ok(now) => drop(last.insert(host, now)),
                Err(_) => drop(last.remove(&host)),
            }
        }
        look
    }
}

fn list_requested_netdevs(request: &HostRequest) -> &[String] {
    for read in &request.reads {
        if let Read::RailTraffic { netdevs } = read {
            return netdevs;
        }
    }
    &[]
}

/// What a host counted; why it did not.
fn parse_traffic_sample(
    found: Option<&TargetObservation>,
    reads: &[Read],
) -> Result<RailTrafficSample, Reason> {
    let found = found.ok_or("it was not asked")?;
    if let Some(trouble) = &found.problem {
        return Err(format!("{} ({})", trouble.shared_message, trouble.code).into());
    }
    match reads.first().map(|read| found.answers.output(read)) {
        Some(Ok((0, text))) => Ok(RailTrafficSample::parse(text)),
        Some(Ok((code, _))) => Err(format!("the read ended with status {code}").into()),
        Some(Err(why)) => Err(why),
        None => Err("it was not asked".into()),
    }
}
