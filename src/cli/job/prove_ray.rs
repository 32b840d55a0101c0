//! `railwright job prove` of a RayCluster: what its pods have, and RDMA traffic between two of
//! them.

use super::cluster::{Cluster, JobLocationArguments};
use super::prove::exit_from_proof;
use crate::cli::{CommandFailure, Exit};
use railwright_base::quote;
use railwright_base::text::one_line;
use railwright_jobs::job::{ClusterJob, build_ray_selector};
use railwright_report::job::ray::{render_ray_proof_json, render_ray_proof_screen};
use railwright_report::out;
use railwright_session::read_inventory;
use railwright_system::clock;
use railwright_verify::ray::{Pool, RayProofRequest, check_ray_cluster};
use railwright_workload::{list_rdma_pools, perftest_words};

/// Seconds of traffic for each device.
const SECONDS: u32 = 2;

/// The ports of which one is taken by chance, so that two proofs at a time do not meet.
const FIRST_PORT: u16 = 18600;
const PORTS: u16 = 400;

/// Proves.
pub async fn prove_ray_cluster(
    cluster: &Cluster,
    actual: &ClusterJob,
    place: &JobLocationArguments,
    as_json: bool,
) -> Result<Exit, CommandFailure> {
    let inventory = read_inventory(&place.inventory)?;
    let loaded = &inventory.loaded;
    let hosts: Vec<_> = loaded.hosts.iter().collect();
    let prober = cluster.prober();
    let asked = RayProofRequest {
        prober: &prober,
        namespace: place.namespace(),
        selector: build_ray_selector(&actual.job.name),
        owner: &actual.job.uid,
        pools: list_rdma_pools(loaded)
            .into_iter()
            .map(|(resource, devices)| Pool { resource, devices })
            .collect(),
        desired: actual.job.number("desiredWorkerReplicas"),
        words: perftest_words(loaded, &hosts, SECONDS, choose_test_port()),
        seconds: SECONDS,
    };
    let of_pods = asked.actual().await.map_err(|error| error.diagnostic())?;
    let (name, namespace) = (one_line(&actual.job.name, 63), place.namespace());
    let words = format!("-i {} -n {namespace}", quote::quote_path(&place.inventory));
    let proof = check_ray_cluster(&of_pods, &name, &words);
    out::print_result(&match as_json {
        true => render_ray_proof_json(namespace, &name, &of_pods, &proof),
        false => render_ray_proof_screen(namespace, &name, &proof),
    });
    Ok(exit_from_proof(proof.verdict))
}

fn choose_test_port() -> u16 {
    let nonce = clock::generate_nonce().unwrap_or_default();
    let chance = nonce
        .get(..4)
        .and_then(|start| u16::from_str_radix(start, 16).ok())
        .unwrap_or_default();
    FIRST_PORT + chance % PORTS
}
