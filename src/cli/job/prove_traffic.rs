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
    let unseen = |why: &str| Ok(ObservedRailTraffic::Unseen(why.to_owned()));
    let view = look.view(found).await.map_err(|error| error.diagnostic())?;
    let Some(view) = view else {
        return unseen("the job is gone");
    };
    if view.phase != Phase::Running {
        return unseen(&format!(
            "the job is {}, so that nothing passes for it",
            view.phase.word()
        ));
    }
    let pods = select_rank_pods(&view);
    let nodes: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let asks = pods
        .iter()
        .flat_map(|pod| pod.asks.keys())
        .map(String::as_str);
    let rails = rails_of(&inventory.loaded, asks);
    let hosts = select_hosts_of_nodes(inventory, &nodes);
    let requests = build_traffic_requests(inventory, &hosts, rails.as_ref());
    if requests.is_empty() {
        return unseen(
            "none of the nodes that its pods are on is a host of the spec with rails that is \
             reached over SSH",
        );
    }
    let asked: BTreeSet<String> = requests
        .iter()
        .map(|request| request.access.name.to_string())
        .collect();
    out::print_note(&format!(
        "looking at the rails of {} for {}",
        nodeset::fold_node_set(&asked.iter().collect::<Vec<_>>()),
        format_duration(seconds)
    ));
    let mut flow = look_at_rails(inventory, requests, seconds).await;
    let hosts = hosts.iter().filter(|host| asked.contains(&host.name));
    let known: BTreeSet<&str> = hosts.map(|host| host.node.as_str()).collect();
    nodes
        .difference(&known)
        .for_each(|node| add_unknown_node(&mut flow, node));
    let is_quiet =
        flow.count(RailTrafficState::BothWays) + flow.count(RailTrafficState::OneWay) == 0;
    let after = look.view(found).await.map_err(|error| error.diagnostic())?;
    if is_quiet && after.is_none_or(|view| view.phase != Phase::Running) {
        return unseen("the job ended while its rails were looked at");
    }
    Ok(ObservedRailTraffic::Seen { flow, seconds })
}

fn select_hosts_of_nodes<'i>(inventory: &'i Inventory, nodes: &BTreeSet<&str>) -> Vec<&'i Host> {
    let hosts = inventory.loaded.hosts.iter();
    hosts
        .filter(|host| nodes.contains(host.node.as_str()))
        .collect()
}

async fn look_at_rails(inventory: &Inventory, requests: Vec<HostRequest>, seconds: u64) -> Flow {
    let connector = secrets::connector_to_look(inventory, TargetContact::begin());
    let mut flow = Flow::default();
    Looks::new(&*connector, requests)
        .during(seconds, &mut flow)
        .await;
    flow
}

/// Of a node that is not looked at nobody knows what its rails carry.
fn add_unknown_node(flow: &mut Flow, node: &str) {
    let fact = Fact::Unknown("it is not reached over SSH".to_owned());
    flow.take(&flow::Look::from([(
        "rails".to_owned(),
        [(one_line(node, 60), fact)].into(),
    )]));
}

/// The pods that hold ranks: those that ask for GPUs or devices, else all. A launcher only starts
/// the others.
fn select_rank_pods(view: &JobView) -> Vec<&JobPod> {
    let running = || view.pods.iter().filter(|pod| pod.phase == "Running");
    let asking: Vec<&JobPod> = running().filter(|pod| !pod.asks.is_empty()).collect();
    if asking.is_empty() {
        running().collect()
    } else {
        asking
    }
}
