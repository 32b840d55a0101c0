//! A plan of a large cluster against kubectl's own diff of the same objects, on one real API
//! server, in one run: `cargo bench --bench kubernetes`. Prints a table for `docs/performance.md`.
//! `RAILWRIGHT_BENCH_ROUNDS` (7) says how often each runs.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/kubernetes/cluster.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod cluster;
#[path = "peers/gauge.rs"]
#[allow(dead_code, reason = "the other bench uses more of it")]
mod gauge;
#[path = "../tests/kubernetes/large.rs"]
mod large;
#[path = "../tests/kubernetes/rig.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod rig;

use cluster::Cluster;
use large::{NODES, OBJECTS, bare_nodes, objects, resources};
use rig::ControlPlane;
use serde_json::{Value, json};
use std::process::Command;

fn main() {
    let rounds = std::env::var("RAILWRIGHT_BENCH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(7);
    let Some(plane) = ControlPlane::start() else {
        return println!("NOT MEASURED: there is no control plane");
    };
    bare_nodes(&plane);
    let cluster = Cluster::new(&plane, "admin");
    // Nobody plays kubelets, so nodes are never Ready: what they give is looked at by the plan, and
    // not waited for here.
    cluster.resources(&objects());
    cluster.told(0, &["apply", "inv", "--yes"]);
    cluster.resources(&resources());
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": (1..OBJECTS).map(manifest).collect::<Vec<_>>() });
    cluster.file("objects.json", &list.to_string());
    println!(
        "\n\
         {NODES} nodes, {OBJECTS} resources ({} ConfigMaps and what all nodes give), {rounds} \
         rounds\n",
        OBJECTS - 1
    );
    println!("| | s | least - most | CPU s | peak MiB |\n|---|--:|--:|--:|--:|");
    let plan = row("railwright plan", rounds, || {
        cluster.command(&["plan", "inv"])
    });
    let in_folder = |words: &[&str]| {
        let mut command = plane.kubectl_command(words);
        command.current_dir(cluster.folder());
        command
    };
    let words = [
        "diff",
        "--server-side",
        "--force-conflicts",
        "--field-manager=railwright",
        "-f",
        "objects.json",
    ];
    let diff = row(
        "kubectl diff --server-side, the ConfigMaps alone",
        rounds,
        || in_folder(&words),
    );
    let get = row("kubectl get nodes -o json", rounds, || {
        in_folder(&["get", "nodes", "-o", "json"])
    });
    println!(
        "\nrailwright plan is {:.2} x both of kubectl's, {:.2} x its diff alone.",
        plan / (diff + get),
        plan / diff
    );
}

/// Runs a command in rounds and prints its row; the median of its wall times.
fn row(name: &str, rounds: usize, command: impl Fn() -> Command) -> f64 {
    gauge::run(&mut command());
    let runs: Vec<gauge::Run> = (0..rounds).map(|_| gauge::run(&mut command())).collect();
    let walls: Vec<f64> = runs.iter().map(|run| run.wall).collect();
    let (least, most) = walls.iter().fold((f64::MAX, 0f64), |(least, most), wall| {
        (least.min(*wall), most.max(*wall))
    });
    let (wall, cpu) = (
        gauge::median(walls),
        gauge::median(runs.iter().map(|run| run.cpu).collect()),
    );
    println!(
        "| {name} | {wall:.3} | {least:.3} - {most:.3} | {cpu:.2} | {:.0} |",
        gauge::peak_mib(&mut command())
    );
    wall
}

/// The object as kubectl takes it, with the mark that railwright adds.
fn manifest(n: usize) -> Value {
    let labels = json!({ "role": "rails", "railwright.io/part-of": "train" });
    let metadata =
        json!({ "name": format!("rails-{n}"), "namespace": "default", "labels": labels });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "text": "9000" } })
}
