//! Simulated fleets: how long a plan takes from decoded observations, with how much memory, and
//! what a run costs besides the hosts' own time. `cargo bench --bench fleet` prints both tables;
//! `docs/performance.md` keeps one of each.
//!
//! Each figure comes from a process of its own, so that peak memory is that of one fleet.

use railwright_apply::{Context, ExecutionOptions, GateResult, Gatekeeper, apply_plan};
use railwright_base::{Address, Digest, Target, TargetKind};
use railwright_observe::{HostRequest, observe_hosts};
use railwright_plan::{
    Header, IdentityFindings, InventoryOrigin, LastApplied, Outages, Plan, PlanInputs,
    PlanSelection, RolloutPolicy, make_plan,
};
use railwright_resource::{
    DesiredResource, Disruption, Observation, ResourceDeclaration, kind_named,
};
use railwright_state::StateFolder;
use railwright_state::journal_writer::JournalStore;
use railwright_transport::sim::modules::ModuleFile;
use railwright_transport::sim::{Fleet, SimulatedHost, new_simulated_access};
use railwright_transport::{BoxFuture, Secrets};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Resources a host: 20 settings, 15 files, 10 modules, 10 packages, 5 units.
const RESOURCES: usize = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = |text: &str| text.parse().expect("a number of hosts");
    match arguments.get(1..) {
        Some([what, hosts]) if what == "--plan" => plan(count(hosts), false),
        Some([what, hosts]) if what == "--plan-own" => plan(count(hosts), true),
        Some([what, hosts]) if what == "--read" => read(count(hosts)),
        Some([what, switches]) if OWN.iter().any(|(own, _)| what == own) => {
            plan_of_switches(what, count(switches))
        }
        Some([what, hosts]) if what == "--apply" => run(count(hosts)),
        _ => {
            let heads = format!(
                "{:>8} {:>10} {:>12} {:>12} {:>12} {:>12}",
                "hosts", "make s", "us/resource", "render s", "added MiB", "peak MiB"
            );
            say(&format!(
                "plan: {RESOURCES} resources a host, all identical, from decoded observations to the plan \
                 and its digest\n\
                 {heads}"
            ));
            [100, 1_000, 10_000]
                .iter()
                .for_each(|hosts| again("--plan", *hosts));
            say(&format!(
                "\nthe same, where every host has one file with a text of its own\n{heads}"
            ));
            [100, 1_000, 10_000]
                .iter()
                .for_each(|hosts| again("--plan-own", *hosts));
            for (what, own) in OWN {
                say(&format!(
                    "\n\
                     beside 1,000 hosts so many switches, {PORTS} ports each, four resources a port, \
                     {own}"
                ));
                say(&format!(
                    "{:>8} {:>10} {:>12} {:>12} {:>12}",
                    "switches", "make s", "us/resource", "render s", "peak MiB"
                ));
                [8, 64].iter().for_each(|switches| again(what, *switches));
            }
            say("\nreading the file that `facts` records, before such a plan");
            say(&format!(
                "{:>8} {:>10} {:>12} {:>12}",
                "hosts", "file MiB", "read s", "peak MiB"
            ));
            [100, 1_000, 10_000]
                .iter()
                .for_each(|hosts| again("--read", *hosts));
            say("\napply: 8 steps and one reboot a host, in virtual time");
            say(&format!(
                "{:>8} {:>10} {:>10} {:>12} {:>12} {:>14} {:>10}",
                "hosts",
                "virtual s",
                "waves",
                "real s",
                "us a step",
                "bytes a step",
                "syncs a step"
            ));
            [10, 100, 1_000]
                .iter()
                .for_each(|hosts| again("--apply", *hosts));
        }
    }
}

#[allow(clippy::print_stdout)]
fn say(line: &str) {
    println!("{line}");
}

fn again(what: &str, hosts: usize) {
    let own = std::env::current_exe().expect("this program has a path");
    let ended = Command::new(own)
        .args([what, &hosts.to_string()])
        .status()
        .expect("this program runs again");
    assert!(ended.success(), "{what} {hosts}");
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.trim()
        .trim_end_matches(" kB")
        .parse::<f64>()
        .unwrap_or_default()
        / 1024.0
}

fn bodies() -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for n in 0..20 {
        all.push((
            "sysctl",
            json!({ "key": format!("net.core.setting_{n}"), "value": "16777216" }),
        ));
    }
    for n in 0..15 {
        all.push(("file", json!({ "path": format!("/etc/rdma/{n}.conf"), "content": format!("# of the fabric\nvalue = {n}\n") })));
    }
    for n in 0..10 {
        all.push((
            "kernel_module",
            json!({ "name": format!("mod_{n}"), "loaded": true, "at_boot": true }),
        ));
        all.push((
            "package",
            json!({ "name": format!("tool{n}"), "version": "2.0-1" }),
        ));
    }
    for n in 0..5 {
        all.push((
            "systemd_unit",
            json!({ "name": format!("svc{n}.service"), "enabled": true, "active": true }),
        ));
    }
    assert_eq!(all.len(), RESOURCES);
    all
}

fn host() -> SimulatedHost {
    let mut host = SimulatedHost::fresh();
    let settings = (0..20).map(|n| (format!("net.core.setting_{n}"), "212992".to_owned()));
    host.kernel.defaults = settings.collect();
    host.kernel.sysctls = host.kernel.defaults.clone();
    for n in 0..10 {
        host.kernel
            .on_disk
            .insert(format!("mod_{n}"), ModuleFile::default());
        host.packages
            .offered
            .insert(format!("tool{n}"), vec!["2.0-1".to_owned()]);
    }
    for n in 0..5 {
        let unit = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
        host.disk.put(
            &format!("/usr/lib/systemd/system/svc{n}.service"),
            unit.into(),
        );
    }
    host.units.reload(&host.disk);
    host
}

fn names(hosts: usize) -> Vec<String> {
    (1..=hosts).map(|n| format!("gpu{n:05}")).collect()
}

/// As a spec gives them: what is declared for all hosts alike is in memory once.
fn resources(names: &[String], bodies: &[(&'static str, Value)]) -> Vec<DesiredResource> {
    let declaration = |(name, body): &(&'static str, Value)| {
        Arc::new(ResourceDeclaration {
            kind: (*name).to_owned(),
            body: body.clone(),
            module: format!("bench/{name}"),
            places: Vec::new(),
        })
    };
    let wants: Vec<Arc<ResourceDeclaration>> = bodies.iter().map(declaration).collect();
    let address = |declaration: &Arc<ResourceDeclaration>| {
        let kind = kind_named(&declaration.kind).expect("a kind");
        Address::host(
            "any",
            &declaration.kind,
            &kind.address_name(&declaration.body).expect("a name"),
        )
    };
    let all: Vec<DesiredResource> = wants
        .iter()
        .map(|declaration| DesiredResource {
            address: address(declaration),
            after: Vec::new(),
            declaration: Arc::clone(declaration),
        })
        .collect();
    let on = |target: &Target| -> Vec<DesiredResource> {
        let on = |resource: &DesiredResource| DesiredResource {
            address: Address {
                target: target.clone(),
                ..resource.address.clone()
            },
            ..resource.clone()
        };
        all.iter().map(on).collect()
    };
    names
        .iter()
        .map(Target::host)
        .flat_map(|target| on(&target))
        .collect()
}

fn observed(fleet: &Fleet, names: &[String], resources: &[DesiredResource]) -> Observation {
    let each = resources.len() / names.len();
    let request = |(n, name): (usize, &String)| {
        let of_host = &resources[n * each..(n + 1) * each];
        HostRequest {
            access: new_simulated_access(name),
            reads: of_host
                .iter()
                .flat_map(|resource| kind_named(&resource.kind).expect("a kind").reads(resource))
                .collect(),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(observe_hosts(
        fleet,
        names.iter().enumerate().map(request).collect(),
        256,
        &|_| {},
    ))
}

fn made(
    names: &[String],
    resources: &[DesiredResource],
    last: &LastApplied,
    observation: &Observation,
) -> Plan {
    let switches = observation
        .targets
        .keys()
        .filter(|target| target.kind == TargetKind::Switch)
        .cloned();
    let targets: Vec<Target> = names.iter().map(Target::host).chain(switches).collect();
    let header = Header {
        made_by: "bench".into(),
        cluster: "bench".into(),
        inventory: InventoryOrigin::default(),
        spec_digest: Digest::of_bytes(b"spec"),
        modules: BTreeMap::new(),
        proof: Default::default(),
        waived: Vec::new(),
        no_ssh: Vec::new(),
    };
    let rollout = RolloutPolicy {
        canary: 1,
        max_unavailable: (names.len() / 10).max(1),
        max_disruption: Disruption::Reboot,
        ..RolloutPolicy::default()
    };
    let selection = PlanSelection::default();
    let outages = &Outages::new();
    let identity = &IdentityFindings::default();
    make_plan(&PlanInputs {
        header,
        resources,
        last,
        outages,
        observation,
        identity,
        kinds: &kind_named,
        targets: &targets,
        nodes: None,
        rollout,
        selection,
    })
    .expect("a plan")
}

fn plan(hosts: usize, own: bool) {
    let names = names(hosts);
    let mut resources = resources(&names, &bodies());
    for resource in resources
        .iter_mut()
        .filter(|resource| own && resource.address.name() == "/etc/rdma/0.conf")
    {
        let text = format!("host = {}\n", resource.address.target.name);
        Arc::make_mut(&mut resource.declaration).body["content"] = text.into();
    }
    let fleet = Fleet::of(names.iter().map(|name| (name.clone(), host())).collect());
    let observation = observed(&fleet, &names, &resources);
    drop(fleet);
    let (before, began) = (peak_mib(), Instant::now());
    let plan = made(&names, &resources, &LastApplied::default(), &observation);
    let took = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let screen = railwright_report::plan::render_plan_screen(&plan, &Default::default());
    let rendered = began.elapsed().as_secs_f64();
    let added = peak_mib() - before;
    say(&format!(
        "{hosts:>8} {took:>10.3} {:>12.2} {rendered:>12.3} {added:>12.0} {:>12.0}   {} lines",
        took * 1e6 / resources.len() as f64,
        peak_mib(),
        screen.lines().count()
    ));
}

/// Ports of a switch that have resources.
const PORTS: usize = 64;

/// What each switch has of its own.
const OWN: [(&str, &str); 3] = [
    ("--switches", "each switch with a description of its own"),
    (
        "--switches-port",
        "each switch with a description and the MTU of one port of its own",
    ),
    (
        "--switches-map",
        "each switch with a map of its own, so that each is planned for itself",
    ),
];

/// What a switch says, with something of its own.
fn own(what: &str, n: usize, said: &str) -> String {
    let described = said.replacen(
        "\"lanes\"",
        &format!("\"description\": \"of {n}\", \"lanes\""),
        1,
    );
    match what {
        "--switches-port" => {
            let mtu = "\"mtu\": \"9100\"";
            let (at, _) = described
                .match_indices(mtu)
                .nth(n % PORTS)
                .expect("each port has one");
            format!(
                "{}\"mtu\": \"{}\"{}",
                &described[..at],
                1500 + n,
                &described[at + mtu.len()..]
            )
        }
        "--switches-map" => described.replacen(
            "\"DSCP_TO_TC_MAP\": {",
            &format!("\"DSCP_TO_TC_MAP\": {{\"own\": {{\"63\": \"{n}\"}}, "),
            1,
        ),
        _ => described,
    }
}

/// The resources of a port: its MTU, its classes, its buffer, its marking.
fn of_port(port: &str) -> [(&'static str, Value); 4] {
    let common = |own: Value| {
        let mut body = own;
        body["system"] = "sonic".into();
        body["port"] = port.into();
        body
    };
    let qos = json!({ "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "watchdog_detection_ms": 200,
        "watchdog_restoration_ms": 200, "watchdog_action": "drop" });
    let ecn = json!({ "priority": 3, "min_bytes": 300_000, "max_bytes": 1_200_000, "probability_percent": 20 });
    [
        ("switch_port", common(json!({ "mtu": 9216, "up": true }))),
        ("switch_qos", common(qos)),
        (
            "switch_buffer",
            common(json!({ "cable_m": 40, "priority": 3 })),
        ),
        ("switch_ecn", common(ecn)),
    ]
}

/// 1,000 hosts and these switches, whose configuration is one that was recorded.
fn plan_of_switches(what: &str, switches: usize) {
    let names = names(1_000);
    let mut resources = resources(&names, &bodies());
    let fleet = Fleet::of(names.iter().map(|name| (name.clone(), host())).collect());
    let mut observation = observed(&fleet, &names, &resources);
    drop(fleet);
    let recorded = include_str!("../plans/rail-optimised/bare.json");
    let recorded: Observation = serde_json::from_str(recorded).expect("it is recorded");
    let leaf = &recorded.targets[&"switch/leaf1".parse::<Target>().expect("a target")];
    for n in 1..=switches {
        let target = Target {
            kind: TargetKind::Switch,
            name: format!("leaf{n}").into(),
        };
        let mut said = leaf.clone();
        let of_switch = |text: &str| {
            if text.contains("\"lanes\"") {
                own(what, n, text)
            } else {
                text.to_owned()
            }
        };
        said.answers.rewrite(of_switch);
        observation.targets.insert(target.clone(), said);
        for (kind, body) in (0..PORTS).flat_map(|port| of_port(&format!("Ethernet{}", port * 4))) {
            let name = body["port"].as_str().expect("a port").to_owned();
            let address = Address {
                target: target.clone(),
                ..Address::host("any", kind, &name)
            };
            let declaration = ResourceDeclaration {
                kind: kind.to_owned(),
                body,
                module: format!("bench/{kind}"),
                places: Vec::new(),
            };
            resources.push(DesiredResource {
                address,
                after: Vec::new(),
                declaration: Arc::new(declaration),
            });
        }
    }
    let began = Instant::now();
    let plan = made(&names, &resources, &LastApplied::default(), &observation);
    let took = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let screen = railwright_report::plan::render_plan_screen(&plan, &Default::default());
    let rendered = began.elapsed().as_secs_f64();
    assert!(
        screen.contains(&format!("{switches} switches will take ports down")),
        "{screen}"
    );
    say(&format!(
        "{switches:>8} {took:>10.3} {:>12.2} {rendered:>12.3} {:>12.0}   {} lines",
        took * 1e6 / resources.len() as f64,
        peak_mib(),
        screen.lines().count()
    ));
}

/// From the file's bytes to the observation that a plan begins with.
fn read(hosts: usize) {
    let names = names(hosts);
    let resources = resources(&names, &bodies());
    let fleet = Fleet::of(names.iter().map(|name| (name.clone(), host())).collect());
    let file = tempfile::NamedTempFile::new().expect("a file");
    serde_json::to_writer(
        std::io::BufWriter::new(&file),
        &observed(&fleet, &names, &resources),
    )
    .expect("it is written");
    drop(fleet);
    let began = Instant::now();
    let bytes = std::fs::read(file.path()).expect("the file is there");
    let observation: Observation = serde_json::from_slice(&bytes).expect("it was just written");
    let took = began.elapsed().as_secs_f64();
    assert_eq!(observation.targets.len(), hosts);
    say(&format!(
        "{hosts:>8} {:>10.1} {took:>12.3} {:>12.0}",
        bytes.len() as f64 / 1024.0 / 1024.0,
        peak_mib()
    ));
}

struct Open;

impl Gatekeeper for Open {
    fn check<'a>(&'a self, _: &'a [String], _: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async { GateResult::default() })
    }
}

/// Counts what goes to the journal's file.
struct Counted {
    inner: Box<dyn JournalStore>,
    bytes: Arc<AtomicU64>,
    syncs: Arc<AtomicU64>,
}

impl JournalStore for Counted {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.inner.append(bytes)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }
}

fn run(hosts: usize) {
    let names = names(hosts);
    let mut few: Vec<(&str, Value)> = bodies().into_iter().step_by(9).collect();
    few.push((
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
    ));
    let resources = resources(&names, &few);
    let fleet = Fleet::of(names.iter().map(|name| (name.clone(), host())).collect());
    let observation = observed(&fleet, &names, &resources);
    let plan = made(&names, &resources, &LastApplied::default(), &observation);
    let folder = tempfile::tempdir().expect("a folder");
    let (bytes, syncs) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, synced) = (bytes.clone(), syncs.clone());
    let state = StateFolder::at(folder.path().join("state")).through(Arc::new(move |inner| {
        Box::new(Counted {
            inner,
            bytes: counted.clone(),
            syncs: synced.clone(),
        })
    }));
    let (_interrupt, interrupts) = tokio::sync::watch::channel(0);
    let context = Context {
        folder: state,
        connector: Arc::new(fleet.clone()),
        secrets: Arc::new(Secrets::new(None, BTreeMap::new(), BTreeMap::new())),
        hosts: names
            .iter()
            .map(|name| (name.clone(), new_simulated_access(name)))
            .collect(),
        without_ssh: BTreeSet::new(),
        nodes: BTreeMap::new(),
        gatekeeper: Arc::new(Open),
        spec_digest: None,
        desired: None,
        patience: ExecutionOptions {
            parallel: 4096,
            ..ExecutionOptions::default()
        },
        clock: railwright_system::clock::Clock::Real,
        interrupts,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let began = Instant::now();
    let (outcome, virtually) = runtime.block_on(async {
        let start = tokio::time::Instant::now();
        let outcome = apply_plan(&plan, &context, Arc::new(|_| ())).await;
        (outcome, start.elapsed())
    });
    let real: Duration = began.elapsed();
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let steps = (outcome.counts.done + outcome.counts.already).max(1);
    let waves = plan
        .nodes
        .iter()
        .map(|node| node.wave)
        .max()
        .unwrap_or_default()
        + 1;
    let per = |n: f64| n / steps as f64;
    say(&format!(
        "{hosts:>8} {:>10.0} {waves:>10} {:>12.2} {:>12.0} {:>14.0} {:>10.2}",
        virtually.as_secs_f64(),
        real.as_secs_f64(),
        per(real.as_secs_f64() * 1e6),
        per(bytes.load(Ordering::Relaxed) as f64),
        per(syncs.load(Ordering::Relaxed) as f64),
    ));
}
