//! `railwright job prove JOB --traffic SECONDS`: what passes over the rails of the hosts that run a
//! job's pods.

use super::cluster::Cluster;
use crate::cli::CommandFailure;
use crate::cli::traffic_looks::{Looks, build_traffic_requests};
use railwright_base::nodeset;
use railwright_base::text::{format_duration, one_line};
use railwright_jobs::job::{ClusterJob, JobReader, JobView, Phase};
use railwright_knowledge::spec::Host;
use railwright_observe::HostRequest;
use railwright_report::out;
use railwright_resource::Fact;
use railwright_resource::kubernetes_job::JobPod;
use railwright_session::{Inventory, secrets};
use railwright_transport::TargetContact;
use railwright_verify::flow::{self, Flow, RailTrafficState};
use railwright_verify::nccl::ObservedRailTraffic;
use railwright_workload::rails_of;
use std::collections::BTreeSet;

/// Looks for so many seconds.
pub async fn observe_job_traffic(
    inventory: &Inventory,
    cluster: &Cluster,
    found: &ClusterJob,
    seconds: u64,
) -> Result<ObservedRailTraffic, CommandFailure> {
    let reader = cluster.reader();
    let look = JobReader::at(&reader, &found.job.namespace);
    let view = look.view(found).await.map_err(|error| error.diagnostic())?;
    let Some(view) = view else {
        return Ok(ObservedRailTraffic::Unseen("the job is gone".to_owned()));
    };
    if view.phase != Phase::Running {
        return Ok(ObservedRailTraffic::Unseen(format!(
            "the job is {}, so that nothing passes for it",
            view.phase.word()
        )));
    }
    let pods = select_rank_pods(&view);
    let nodes: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let asks = pods.iter().flat_map(|pod| pod.asks.keys());
    let rails = rails_of(&inventory.loaded, asks.map(String::as_str));
    let hosts = select_hosts_of_nodes(inventory, &nodes);
    let requests = build_traffic_requests(inventory, &hosts, rails.as_ref());
    if requests.is_empty() {
        let why = "none of the nodes that its pods are on is a host of the spec with rails that \
                   is reached over SSH";
        return Ok(ObservedRailTraffic::Unseen(why.to_owned()));
    }
    let flow = look_at_nodes(inventory, &nodes, &hosts, requests, seconds).await;
    let is_quiet =
        flow.count(RailTrafficState::BothWays) + flow.count(RailTrafficState::OneWay) == 0;
    let after = look.view(found).await.map_err(|error| error.diagnostic())?;
    if is_quiet && after.is_none_or(|view| view.phase != Phase::Running) {
        let why = "the job ended while its rails were looked at";
        return Ok(ObservedRailTraffic::Unseen(why.to_owned()));
    }
    Ok(ObservedRailTraffic::Seen { flow, seconds })
}

fn select_hosts_of_nodes<'i>(inventory: &'i Inventory, nodes: &BTreeSet<&str>) -> Vec<&'i Host> {
    let hosts = inventory.loaded.hosts.iter();
    hosts
        .filter(|host| nodes.contains(host.node.as_str()))
        .collect()
}

/// What the rails of these nodes carry; that is unknown of a node whose host is not asked.
async fn look_at_nodes(
    inventory: &Inventory,
    nodes: &BTreeSet<&str>,
    hosts: &[&Host],
    requests: Vec<HostRequest>,
    seconds: u64,
) -> Flow {
    let asked: BTreeSet<String> = requests
        .iter()
        .map(|request| request.access.name.to_string())
        .collect();
    out::print_note(&format!(
        "looking at the rails of {} for {}",
        nodeset::fold_node_set(&asked.iter().collect::<Vec<_>>()),
        format_duration(seconds)
    ));
    let connector = secrets::connector_to_look(inventory, TargetContact::begin());
    let mut flow = Flow::default();
    Looks::new(&*connector, requests)
        .during(seconds, &mut flow)
        .await;
    let hosts = hosts.iter().filter(|host| asked.contains(&host.name));
    let known: BTreeSet<&str> = hosts.map(|host| host.node.as_str()).collect();
    for node in nodes.difference(&known) {
        add_unknown_node(&mut flow, node);
    }
    flow
}

/// Of a node that is not looked at nobody knows what its rails carry.
fn add_unknown_node(flow: &mut Flow, node: &str) {
    let fact = Fact::Unknown("it is not reached over SSH".into());
    flow.take(&flow::Look::from([(
        "rails".to_owned(),
        [(one_line(node, 60), fact)].into(),
    )]));
}

/// The pods that hold ranks: those that ask for GPUs or devices, else all. A launcher only starts
/// the others.
fn select_rank_pods(view: &JobView) -> Vec<&JobPod> {
    let pods = view.pods.iter().filter(|pod| pod.phase == "Running");
    let mut pods: Vec<&JobPod> = pods.collect();
    if pods.iter().any(|pod| !pod.asks.is_empty()) {
        pods.retain(|pod| !pod.asks.is_empty());
    }
    pods
}
