//! 10,000 nodes in 10 MB: the whole way from files to a checked spec, against serde_yaml 0.9 into
//! the same structs without a single span. `cargo bench --bench spec_load` prints both, and the
//! ratios that we hold ourselves to.
//!
//! Each reading happens in a process of its own, so that peak memory is that of one reader.

use railwright_knowledge::spec::{SourceFile, Spec, load_spec};
use std::process::Command;
use std::time::Instant;

const NODES: usize = 10_000;
const ROUNDS: usize = 5;
const TIME_RATIO_MAX: f64 = 1.5;
const MEMORY_MIB_MAX: f64 = 100.0;
const RULES_SECONDS_MAX: f64 = 1.0;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("--read-with-serde_yaml") => {
            measure(|text| assert_eq!(with_serde_yaml(&text).nodes.len(), NODES))
        }
        Some("--read-with-railwright") => {
            measure(|text| assert_eq!(with_railwright(text).hosts.len(), NODES))
        }
        Some("--judge") => evaluate(),
        _ => compare(),
    }
}

/// The rules over a spec of 10,000 hosts: all identical, and each of a class of its own.
fn evaluate() {
    let catalog = railwright_knowledge::catalog::load_catalog("", [])
        .unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let rules = railwright_knowledge::rules::load_rules("", [])
        .unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let mut each = String::new();
    for (n, line) in generated().lines().enumerate() {
        each.push_str(&if line == "    iommu: pt" {
            format!("    iommu: pt\n    kernel: 5.15.0-{n}-generic\n")
        } else {
            format!("{line}\n")
        });
    }
    for (what, text) in [("alike", generated()), ("each its own sort", each)] {
        let loaded = with_railwright(text);
        let times = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            railwright_knowledge::rules::evaluate_rules(&loaded, &catalog, &rules, "2026-01-01");
            start.elapsed().as_secs_f64()
        });
        let best = times.fold(f64::INFINITY, f64::min);
        say(&format!(
            "{} rules, {NODES} hosts, {what}: {best:.3} s (at most {RULES_SECONDS_MAX})",
            rules.rules.len()
        ));
    }
}

fn with_serde_yaml(text: &str) -> Spec {
    serde_yaml_archived::from_str(text).expect("the generated spec is valid")
}

fn with_railwright(text: String) -> railwright_knowledge::spec::LoadedSpec {
    match load_spec(vec![SourceFile {
        name: "cluster.yaml".into(),
        text,
    }]) {
        Ok(loaded) => loaded,
        Err(problems) => panic!(
            "the generated spec is valid: {:?}",
            problems.diagnostics.first()
        ),
    }
}

/// A spec in which every node has its own entry, about one kilobyte each.
fn generated() -> String {
    let mut text = String::from(
        "cluster: bench\nfabric: { kind: rocev2, mtu: 9000 }\nssh: { user: root }\nnodes:\n",
    );
    for node in 1..=NODES {
        let (rack, high, low) = (node / 32, node / 250, node % 250 + 1);
        text.push_str(&format!(
            "  - name: gpu{node:05}\n    gpu:\n      model: A100-SXM4-80GB\n      count: 8\n      driver: \"535\"\n    nics:\n      model: ConnectX-6\n      rails: 8\n      netdev: \"ens{{rail}}f0np0\"\n      address: 10.1{{rail}}.{high}.{low}/16\n    os: ubuntu-22.04\n    iommu: pt\n    ssh:\n      address: 172.16.{high}.{low}\n      port: 22\n      identities:\n        - keys/rack{rack}\n    labels:\n"
        ));
        for label in 0..23 {
            text.push_str(&format!("      label-{label:02}: value-{rack}-{label}\n"));
        }
    }
    text
}

/// Prints the best time in seconds and the memory that one reading added, in MiB.
fn measure(read: impl Fn(String)) {
    let text = generated();
    let before = peak_mib();
    let first = Instant::now();
    read(text.clone());
    let mut best = first.elapsed().as_secs_f64();
    let added = peak_mib() - before;
    for _ in 1..ROUNDS {
        let copy = text.clone();
        let start = Instant::now();
        read(copy);
        best = best.min(start.elapsed().as_secs_f64());
    }
    let (lines, megabytes) = (text.lines().count(), text.len() as f64 / 1e6);
    say(&format!(
        "{best:.3} s  {added:.0} MiB  {lines} lines  {megabytes:.1} MB"
    ));
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}

fn compare() {
    evaluate();
    let child = |reader: &str| {
        let program = std::env::current_exe().expect("this program has a path");
        let output = Command::new(program)
            .arg(format!("--read-with-{reader}"))
            .output()
            .expect("it can be started again");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        say(&format!("{reader:<11} {}", text.trim_end()));
        let number = |index: usize| {
            text.split_whitespace()
                .nth(index)
                .and_then(|word| word.parse::<f64>().ok())
                .unwrap_or(f64::NAN)
        };
        (number(0), number(2))
    };
    let ((theirs, theirs_mib), (ours, ours_mib)) = (child("serde_yaml"), child("railwright"));
    say(&format!(
        "time        {:.2} x serde_yaml (at most {TIME_RATIO_MAX})",
        ours / theirs
    ));
    say(&format!(
        "memory      {ours_mib:.0} MiB (at most {MEMORY_MIB_MAX}), {:.2} x serde_yaml",
        ours_mib / theirs_mib
    ));
}

#[allow(clippy::print_stdout)]
fn say(text: &str) {
    println!("{text}");
}
