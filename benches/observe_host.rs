//! What reading a host costs that host: eight ConnectX-6, eight A100, all that the inventory
//! `roce-a100` declares, and what the host is made of. `cargo bench --bench observe_host`, as
//! root, on the fixture host of the tests (its NICs and GPUs are a made tree of /sys; the fakes
//! of vendors' tools are shell scripts and are counted apart).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the rigs of the tests end where something is not as it must be"
)]

#[path = "../tests/journeys/fixture/mod.rs"]
#[allow(dead_code, reason = "the stories of the journeys use the rest of it")]
mod fixture;
#[path = "../tests/kinds/rig.rs"]
#[allow(dead_code, reason = "the stories of the kinds use the rest of it")]
mod rig;
#[path = "../tests/transport/server.rs"]
#[allow(dead_code, reason = "the stories of the transport use the rest of it")]
mod server;

use fixture::models::MODELS;
use fixture::{Fixture, repository};
use railwright_base::Target;
use railwright_knowledge::spec::{self, SourceFile};
use railwright_resource::{DesiredResource, Read, kind_named, program};
use std::collections::BTreeSet;
use std::io::Write as _;

const ROUNDS: usize = 5;
const PROCESSOR_MS_MAX: f64 = 250.0;
const KIB_MAX: f64 = 64.0;

fn main() {
    let Some(host) = Fixture::start("observe_host", &MODELS[0]) else {
        return;
    };
    let reads = reads();
    let (tools, own): (Vec<Read>, Vec<Read>) = reads.iter().cloned().partition(asks_tools);
    for (what, reads) in [
        ("all", &reads),
        ("without vendors' tools", &own),
        ("vendors' tools, by fakes", &tools),
    ] {
        let (mut best, mut bytes) = (f64::INFINITY, 0);
        for _ in 0..ROUNDS {
            let (ms, length) = observe(&host, reads);
            (best, bytes) = (best.min(ms), length);
        }
        let said = format!(
            "{what}: {} reads in one program, {best:.0} ms of processor time (at most \
             {PROCESSOR_MS_MAX}), {:.1} KiB (at most {KIB_MAX})\n",
            reads.len(),
            bytes as f64 / 1024.0
        );
        std::io::stdout()
            .write_all(said.as_bytes())
            .expect("standard output is open");
    }
    by_sort(&host, &own);
}

/// What each sort of read costs beyond an empty program, dearest first: where the next saving is.
fn by_sort(host: &Fixture, reads: &[Read]) {
    let best = |reads: &[Read]| {
        (0..ROUNDS)
            .map(|_| observe(host, reads).0)
            .fold(f64::INFINITY, f64::min)
    };
    let empty = best(&[]);
    let sorts: BTreeSet<String> = reads.iter().map(sort).collect();
    let cost = |name: String| {
        let of_it: Vec<Read> = reads
            .iter()
            .filter(|read| sort(read) == name)
            .cloned()
            .collect();
        (best(&of_it) - empty, of_it.len(), name)
    };
    let mut costs: Vec<(f64, usize, String)> = sorts.into_iter().map(cost).collect();
    costs.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (ms, count, name) in costs {
        let said = format!("  {ms:.0} ms for {count} of sort {name}\n");
        std::io::stdout()
            .write_all(said.as_bytes())
            .expect("standard output is open");
    }
}

/// What stands before the first colon of a read's key.
fn sort(read: &Read) -> String {
    read.key().split(':').next().unwrap_or_default().to_owned()
}

/// `dcb`, `ethtool` and `rdma`, which cost what their makers made them cost.
fn asks_tools(read: &Read) -> bool {
    matches!(
        read,
        Read::LinkQos { .. } | Read::RdmaLinks | Read::CageModules | Read::Unit { .. }
    )
}

/// What the first host of the inventory is asked.
fn reads() -> Vec<Read> {
    let text = std::fs::read_to_string(repository("inventories/roce-a100/cluster.yaml"))
        .expect("the inventory is there");
    let loaded = spec::load_spec(vec![SourceFile {
        name: "cluster.yaml".into(),
        text,
    }])
    .unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let catalog = railwright_knowledge::catalog::load_catalog("", [])
        .unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let modules = railwright_knowledge::module::load_modules(
        railwright_knowledge::module::collect_shipped_modules(),
    )
    .unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let key = include_str!("../modules/package-repositories/tests/no-os/key.asc");
    let texts = railwright_knowledge::module::context::list_referenced_files(&loaded)
        .into_iter()
        .map(|(path, _)| (path, key.to_owned()))
        .collect();
    let desired = railwright_knowledge::module::compute_desired_state(
        &loaded,
        &catalog,
        &railwright_knowledge::solve::SolverAnswers::new(&loaded, &catalog),
        &modules,
        &texts,
    )
    .unwrap_or_else(|errors| panic!("{errors:?}"));
    let first = Target::host(&loaded.hosts[0].name);
    let mine = desired
        .resources
        .iter()
        .filter(|resource| resource.address.target == first);
    let of = |resource: &DesiredResource| {
        kind_named(&resource.kind)
            .map(|kind| kind.reads(resource))
            .unwrap_or_default()
    };
    let all: BTreeSet<Read> = mine
        .flat_map(of)
        .chain([Read::Host, Read::Hardware, Read::CageModules])
        .collect();
    all.into_iter().collect()
}

/// Processor time of the shell and of all that it started, in milliseconds, and the bytes of the
/// answer.
fn observe(host: &Fixture, reads: &[Read]) -> (f64, usize) {
    let program = program::render_read_program(reads, "", "feedc0ffee");
    // `times` prints what the shell used, and below it what its children used; bash's tells
    // milliseconds, dash's hundredths.
    let script = format!(
        "cat >/run/program <<'END OF PROGRAM'\n\
         {program}\n\
         END OF PROGRAM\n\
         bash -c 'sh -s </run/program >/run/answer; times'; wc -c </run/answer"
    );
    let said = host.0.must(&script);
    let mut lines = said.lines();
    let ms = |text: &str| -> f64 {
        let parse = |word: &str| {
            word.trim_end_matches('s').split_once('m').map(|(m, s)| {
                m.parse::<f64>().unwrap_or(0.0) * 60.0 + s.parse::<f64>().unwrap_or(0.0)
            })
        };
        text.split_whitespace().filter_map(parse).sum::<f64>() * 1000.0
    };
    let used = lines.by_ref().take(2).last().map_or(0.0, ms);
    (
        used,
        lines
            .next()
            .and_then(|line| line.trim().parse().ok())
            .unwrap_or_default(),
    )
}
