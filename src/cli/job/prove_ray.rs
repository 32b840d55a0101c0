//! `railwright job prove` of a RayCluster: what its pods have, and RDMA traffic between two of them.

use super::cluster::{Cluster, Place};
use crate::cli::{Exit, Failure, inventory};
use railwright_base::quote;
use railwright_base::text::one_line;
use railwright_jobs::job::Found;
use railwright_report::job::ray::{json, screen};
use railwright_report::out;
use railwright_system::clock;
use railwright_verify::nccl::Proven;
use railwright_verify::ray::{Asked, Pool, judge};
use railwright_workload::{perftest_words, pools};

/// Seconds of traffic for each device.
const SECONDS: u32 = 2;

/// The ports of which one is taken by chance, so that two proofs at a time do not meet.
const FIRST_PORT: u16 = 18600;
const PORTS: u16 = 400;

/// Proves.
pub async fn run(cluster: &Cluster, found: &Found, place: &Place, as_json: bool) -> Result<Exit, Failure> {
    let inventory = inventory::read(&place.inventory)?;
    let loaded = &inventory.loaded;
    let hosts: Vec<_> = loaded.hosts.iter().collect();
    let prober = cluster.prober();
    let asked = Asked {
        prober: &prober,
        namespace: &place.namespace,
        selector: found.kind.selector(&found.job),
        pools: pools(loaded).into_iter().map(|(resource, devices)| Pool { resource, devices }).collect(),
        wanted: found.job.number("desiredWorkerReplicas"),
        words: perftest_words(loaded, &hosts, SECONDS, port()),
        seconds: SECONDS,
    };
    let of_pods = asked.found().await.map_err(|error| error.diagnostic())?;
    let (name, namespace) = (one_line(&found.job.name, 63), &place.namespace);
    let words = format!("-i {} -n {namespace}", quote::path(&place.inventory));
    let proof = judge(&of_pods, &name, &words);
    out::print(&match as_json {
        true => json(namespace, &name, &of_pods, &proof),
        false => screen(namespace, &name, &proof),
    });
    Ok(match proof.proven {
        Proven::Proven => Exit::Done,
        Proven::Disproven => Exit::Failed,
        Proven::NotKnown => Exit::Incomplete,
    })
}

fn port() -> u16 {
    let nonce = clock::nonce().unwrap_or_default();
    let chance = nonce.get(..4).and_then(|start| u16::from_str_radix(start, 16).ok()).unwrap_or_default();
    FIRST_PORT + chance % PORTS
}
