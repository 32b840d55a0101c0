//! A plan of real SSH hosts against the tools that people use for it, in one run: `cargo bench
//! --bench peers`. Prints a table for `docs/performance.md`.
//!
//! `RAILWRIGHT_BENCH_HOSTS` (16,24) says how many hosts, `RAILWRIGHT_BENCH_ROUNDS` (15) how often
//! the fast ones run, `RAILWRIGHT_BENCH_SLOW_ROUNDS` (3) how often Ansible and pyinfra do; 0 leaves
//! them out.

mod bare;
mod gauge;
mod hosts;
mod tools;

use hosts::Hosts;
use std::collections::BTreeMap;
use tools::Tool;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, what, count, folder] = arguments.as_slice()
        && what == "--bare"
    {
        return only_bare(count, folder);
    }
    let counts = numbers("RAILWRIGHT_BENCH_HOSTS", &[16, 24]);
    let rounds = numbers("RAILWRIGHT_BENCH_ROUNDS", &[15])[0];
    let slow = numbers("RAILWRIGHT_BENCH_SLOW_ROUNDS", &[3])[0];
    let hosts = match Hosts::start(counts.iter().copied().max().unwrap_or(1)) {
        Ok(hosts) => hosts,
        Err(reason) => return say(&format!("NOT MEASURED: {reason}")),
    };
    let peers = if slow == 0 {
        Err("left out".to_owned())
    } else {
        tools::install()
    };
    machine(&hosts);
    for count in counts {
        tools::lay_out(&hosts, count);
        compare(&hosts, count, rounds, slow, &peers);
    }
}

fn only_bare(count: &str, folder: &str) {
    let at = |name: &str| format!("{}/{name}", folder.trim_end_matches('/'));
    let addresses =
        std::fs::read_to_string(at(&format!("addresses-{count}"))).expect("the addresses");
    let addresses: Vec<String> = addresses.lines().map(str::to_owned).collect();
    let bytes = bare::run(
        &addresses,
        hosts::PORT,
        &at("id"),
        &at("known_hosts"),
        &at("program"),
    );
    assert!(
        bytes > 1000 * addresses.len(),
        "the program was answered: {bytes} bytes"
    );
}

fn numbers(variable: &str, otherwise: &[usize]) -> Vec<usize> {
    let parsed = std::env::var(variable).ok().map(|text| {
        text.split(',')
            .map(|part| part.trim().parse().expect(variable))
            .collect()
    });
    parsed.unwrap_or_else(|| otherwise.to_vec())
}

/// What was measured of one tool.
#[derive(Default)]
struct Figures {
    wall: Vec<f64>,
    cpu: Vec<f64>,
    peak_mib: f64,
    closing: String,
}

fn compare(hosts: &Hosts, count: usize, rounds: usize, slow: usize, peers: &Result<(), String>) {
    let mut all: BTreeMap<&str, Figures> = BTreeMap::new();
    let present: Vec<Tool> = Tool::ALL
        .into_iter()
        .filter(|tool| !tool.is_slow() || peers.is_ok())
        .collect();
    // The run for the memory is the one that fills caches, too.
    for tool in &present {
        all.entry(tool.name()).or_default().peak_mib =
            gauge::peak_mib(&mut tool.command(hosts, count));
        tool.tidy(hosts);
    }
    for round in 0..rounds.max(slow) {
        // Each round begins with another tool, so that nobody always comes after the same one.
        for n in 0..present.len() {
            let tool = present[(round + n) % present.len()];
            if round >= if tool.is_slow() { slow } else { rounds } {
                continue;
            }
            let run = gauge::run(&mut tool.command(hosts, count));
            tool.tidy(hosts);
            let figures = all.entry(tool.name()).or_default();
            figures.wall.push(run.wall);
            figures.cpu.push(run.cpu);
            figures.closing = tools::closing(tool, &run.output);
        }
    }
    table(hosts, count, &all, peers);
}

fn table(hosts: &Hosts, count: usize, all: &BTreeMap<&str, Figures>, peers: &Result<(), String>) {
    let wall = |tool: Tool| {
        all.get(tool.name())
            .map_or(f64::NAN, |figures| gauge::median(figures.wall.clone()))
    };
    let ours = wall(Tool::Railwright);
    say(&format!(
        "\n{count} hosts, {} resources each:\n",
        hosts.resources.len()
    ));
    say(
        "| | wall s | fastest - slowest | of railwright's time | client CPU ms a host | peak MiB | \
         MiB a host | rounds |",
    );
    say("|--|--:|--:|--:|--:|--:|--:|--:|");
    for tool in Tool::ALL {
        let Some(figures) = all.get(tool.name()) else {
            let reason = peers.as_ref().err().cloned().unwrap_or_default();
            say(&format!(
                "| {} | NOT MEASURED: {reason} | | | | | | |",
                tool.name()
            ));
            continue;
        };
        let (least, most) = figures
            .wall
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), wall| {
                (least.min(*wall), most.max(*wall))
            });
        say(&format!(
            "| {} | {:.3} | {least:.3} - {most:.3} | {:.2} | {:.1} | {:.1} | {:.2} | {} |",
            tool.name(),
            wall(tool),
            wall(tool) / ours,
            gauge::median(figures.cpu.clone()) * 1000.0 / count as f64,
            figures.peak_mib,
            figures.peak_mib / count as f64,
            figures.wall.len(),
        ));
    }
    say(&format!(
        "\nrailwright is {:.2} x bare russh, {:.2} x xargs ssh.",
        ours / wall(Tool::Bare),
        ours / wall(Tool::OpenSsh)
    ));
    let closings = Tool::ALL
        .iter()
        .filter_map(|tool| all.get(tool.name()).map(|figures| (tool, &figures.closing)));
    closings
        .filter(|(_, closing)| !closing.is_empty())
        .for_each(|(tool, closing)| say(&format!("- {}: `{closing}`", tool.name())));
}

fn machine(hosts: &Hosts) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, word: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(word))
            .and_then(|line| line.split_once(':'));
        line.map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory: f64 = after(&read("/proc/meminfo"), "MemTotal")
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or_default();
    let model = after(&read("/proc/cpuinfo"), "model name");
    say(&format!(
        "{cores} cores ({model}), {:.0} GiB; clients and {} servers share them.",
        memory / 1024.0 / 1024.0,
        hosts.names.len()
    ));
    Tool::ALL
        .iter()
        .for_each(|tool| say(&format!("- {}: {}", tool.name(), tools::version(*tool))));
}

#[allow(clippy::print_stdout)]
fn say(line: &str) {
    println!("{line}");
}
