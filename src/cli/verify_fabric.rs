//! `railwright verify fabric`.

use super::{CommandFailure, Exit, cables, output, recording};
use railwright_base::{Diagnostic, Reason, Target, TargetKind, text};
use railwright_knowledge::spec::Host;
use railwright_observe::{self as observe, HostRequest};
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::fabric::{self, FabricSubject, document::FabricDocument, svg};
use railwright_report::{self as report, document};
use railwright_resource::counters::CounterSampleOrdinal;
use railwright_resource::switch::{SwitchRead, SwitchSystem};
use railwright_resource::{Observation, Read, ReadResults};
use railwright_session::{Inventory, read_inventory, read_recording, secrets};
use railwright_system::{clock, files};
use railwright_transport::{Connector, TargetContact};
use railwright_verify::CheckVerdict;
use railwright_verify::fabric::{
    DesiredFabricSettings, Devices, FabricDevice, FabricLink, check_fabric_links, list_fabric_links,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Look at both ends of every link: MTU, DSCPs, PFC, ECN, and what their counters do in a while
///
/// Reads only, and starts no traffic: run it while a job runs. Exit code 1 where ends do not agree
/// or something is lost, 3 where something could not be found out.
#[derive(Debug, clap::Args)]
pub struct VerifyFabric {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// How long counters are looked at: `30s`, `2m`; 0: not at all
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = parse_counter_duration)]
    pub seconds: u64,
    /// Only the links of these hosts and those between switches, a node-set; all by default
    #[arg(long, value_name = "NODESET", conflicts_with = "observations")]
    pub host: Option<String>,
    /// Judge an observation that `--record` or `facts` wrote, and ask nobody
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,
    /// Keep what was read in this file
    #[arg(long, value_name = "FILE", conflicts_with = "observations")]
    pub record: Option<PathBuf>,
    /// Draw the fabric in this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long)]
    pub force: bool,
    /// Read hosts and switches as this user, who needs no rights but those that `sudoers` prints;
    /// what only root may see is unknown
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name, conflicts_with = "observations")]
    pub read_as: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `30`, `30s`, `2m`, an hour at most.
fn parse_counter_duration(text: &str) -> Result<u64, Reason> {
    let seconds = text::parse_seconds(text, &[('s', 1), ('m', 60)]);
    seconds
        .filter(|seconds| *seconds <= 3600)
        .ok_or_else(|| "seconds or minutes, an hour at most: `30s`, `2m`".into())
}

/// Looks.
pub async fn run(arguments: &VerifyFabric) -> Result<Exit, CommandFailure> {
    output::can_be_written([&arguments.svg, &arguments.record].into_iter().flatten())?;
    for file in [&arguments.svg, &arguments.record].into_iter().flatten() {
        if !arguments.force && files::is_present(file) {
            return Err(CommandFailure::refused(vec![report_present_file(file)]));
        }
    }
    if arguments.svg.is_some() && arguments.svg == arguments.record {
        return Err(CommandFailure::refused(vec![report_same_file()]));
    }
    let inventory = Inventory {
        read_as: arguments.read_as.clone(),
        ..read_inventory(&arguments.inventory)?
    };
    let loaded = &inventory.loaded;
    if loaded.cabling.is_none() {
        return Err(report_no_cabling_file(&inventory.word).into());
    }
    if !inventory.warnings.is_empty() && arguments.observations.is_none() {
        print_diagnostics(&inventory.warnings, &loaded.sources);
    }
    let hosts = match arguments.host.as_deref() {
        Some(set) => cables::select_rail_hosts(&inventory, Some(set))?,
        None => loaded
            .hosts
            .iter()
            .filter(|host| !host.netdevs.is_empty())
            .collect(),
    };
    let only: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let links = list_fabric_links(loaded, Some(&only));
    let observation = match &arguments.observations {
        Some(file) => read_recording(file)?,
        None => read_link_ends(&inventory, &hosts, &links, arguments.seconds).await,
    };
    print_fabric_report(arguments, &inventory, &links, &observation)
}

/// Judges what was read and shows it, whatever file cannot be written.
fn print_fabric_report(
    arguments: &VerifyFabric,
    inventory: &Inventory,
    links: &[FabricLink],
    observation: &Observation,
) -> Result<Exit, CommandFailure> {
    let desired = DesiredFabricSettings::of(&inventory.loaded, arguments.seconds > 0);
    let report = check_fabric_links(links, &collect_devices(inventory, observation), &desired);
    let file = arguments
        .observations
        .as_ref()
        .map(|file| file.display().to_string());
    let from = file
        .as_deref()
        .map(|file| (file, observation.recorded_at.as_str()));
    let subject = FabricSubject {
        inventory: &inventory.word,
        recorded: from,
        desired: &desired,
        report: &report,
    };
    let recorded = match &arguments.record {
        Some(file) => recording::write_recording(file, observation)
            .inspect(|()| print_written_note("what was read is in", file)),
        None => Ok(()),
    };
    let drawn = match &arguments.svg {
        Some(file) => output::write_output(file, &svg::render_fabric_svg(&subject), 0o644)
            .inspect(|()| print_written_note("the fabric is drawn in", file)),
        None => Ok(()),
    };
    let text = match arguments.json {
        true => document::render_json_document(&FabricDocument::of(&subject)),
        false => fabric::render_fabric_screen(&subject),
    };
    report::out::print_result(&text);
    match (recorded, drawn) {
        (Err(unrecorded), Err(undrawn)) => return Err(undrawn.after(unrecorded)),
        (recorded, drawn) => recorded.and(drawn)?,
    }
    Ok(match report.verdict() {
        CheckVerdict::Failed => Exit::Failed,
        CheckVerdict::Unknown => Exit::Incomplete,
        _ => Exit::Done,
    })
}

fn print_written_note(what: &str, file: &Path) {
    report::out::print_note(&format!("{what} {}", file.display()));
}

/// What was asked and answered of each device, by its name.
fn collect_devices(inventory: &Inventory, observation: &Observation) -> Devices {
    let mut devices = Devices::new();
    for host in inventory.loaded.reached() {
        let device = match find_device_answers(observation, &Target::host(&host.name)) {
            Ok(answers) => FabricDevice::Host(answers),
            Err(why) => FabricDevice::Silent(why.to_string()),
        };
        devices.insert(host.name.clone(), device);
    }
    for switch in inventory.loaded.managed_switches() {
        let answers = find_device_answers(observation, &Target::switch(&switch.name));
        let device = match (answers, inventory.system_of(&switch.name)) {
            (Err(why), _) => FabricDevice::Silent(why.to_string()),
            (Ok(answers), Some(system)) => FabricDevice::Switch(system, answers),
            (Ok(_), None) => {
                FabricDevice::Silent("this railwright cannot read its system".to_owned())
            }
        };
        devices.insert(switch.name.clone(), device);
    }
    devices
}

/// What a device answered; an error says why nothing came from it.
fn find_device_answers(observation: &Observation, target: &Target) -> Result<ReadResults, Reason> {
    let found = observation
        .targets
        .get(target)
        .ok_or("it was not asked, or is not in the observation")?;
    match &found.problem {
        Some(trouble) => Err(format!("{} ({})", trouble.shared_message, trouble.code).into()),
        None => Ok(found.answers.clone()),
    }
}

/// Reads all ends, and their counters twice. Changes nothing on any of them.
async fn read_link_ends(
    inventory: &Inventory,
    hosts: &[&Host],
    links: &[FabricLink],
    seconds: u64,
) -> Observation {
    let sample = CounterSampleOrdinal::First;
    let first = build_link_requests(inventory, hosts, links, sample, seconds > 0);
    let connector = secrets::connector_to_look(inventory, TargetContact::begin());
    let mut observation = observe_with_progress(&*connector, first).await;
    let mut targets = observation.targets.values();
    if seconds == 0 || targets.all(|found| found.problem.is_some()) {
        return observation;
    }
    report::out::print_note(&format!("counters are looked at for {seconds} s"));
    clock::sleep_for(Duration::from_secs(seconds)).await;
    let sample = CounterSampleOrdinal::Second;
    let mut second = build_link_requests(inventory, hosts, links, sample, true);
    // What did not answer is not asked again.
    second.retain(|request| {
        let found = observation.targets.get(&request.access.target());
        found.is_some_and(|found| found.problem.is_none())
    });
    for (target, more) in observe_with_progress(&*connector, second).await.targets {
        if let Some(found) = observation.targets.get_mut(&target) {
            found.answers.merge(more.answers);
        }
    }
    observation
}

async fn observe_with_progress(
    connector: &dyn Connector,
    requests: Vec<HostRequest>,
) -> Observation {
    let progress = report::progress::HostReadProgress::new(requests.len());
    let observed =
        observe::observe_hosts(connector, requests, observe::DEFAULT_PARALLEL, &|event| {
            progress.show(&event)
        })
        .await;
    progress.end();
    observed
}

/// One request a device: the first time with what it is set to, the second time of its counters
/// alone.
fn build_link_requests(
    inventory: &Inventory,
    hosts: &[&Host],
    links: &[FabricLink],
    sample: CounterSampleOrdinal,
    counts: bool,
) -> Vec<HostRequest> {
    let mut ports: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for end in links.iter().flat_map(|link| [&link.from, &link.to]) {
        ports
            .entry(&end.device)
            .or_default()
            .insert(end.port.clone());
    }
    let asked: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let mut requests = Vec::new();
    for access in inventory.accesses() {
        let Some(ports) = ports.get(&*access.name) else {
            continue;
        };
        let ports: Vec<String> = ports.iter().cloned().collect();
        let reads = match access.target().kind {
            TargetKind::Switch => match inventory.system_of(&access.name) {
                Some(system) => list_switch_reads(system, ports, sample, counts),
                None => Vec::new(),
            },
            TargetKind::Host if asked.contains(&*access.name) => {
                list_host_reads(ports, sample, counts)
            }
            _ => Vec::new(),
        };
        if !reads.is_empty() {
            requests.push(HostRequest { access, reads });
        }
    }
    requests
}

fn list_switch_reads(
    system: SwitchSystem,
    ports: Vec<String>,
    sample: CounterSampleOrdinal,
    counts: bool,
) -> Vec<Read> {
    let mut reads = Vec::new();
    if sample == CounterSampleOrdinal::First {
        let of = SwitchRead::Running;
        reads.push(Read::Switch { system, of });
    }
    if counts {
        reads.push(Read::SwitchCounters {
            system,
            ports,
            sample,
        });
    }
    reads
}

fn list_host_reads(netdevs: Vec<String>, sample: CounterSampleOrdinal, counts: bool) -> Vec<Read> {
    let mut reads = Vec::new();
    if sample == CounterSampleOrdinal::First {
        for netdev in netdevs.iter().cloned() {
            reads.push(Read::Link {
                netdev: netdev.clone(),
            });
            reads.push(Read::LinkQos { netdev });
        }
    }
    if counts {
        reads.push(Read::LinkCounters { netdevs, sample });
    }
    reads
}

fn report_no_cabling_file(inventory: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1043",
        "the spec names no cabling file, so nobody knows which ends belong together",
    )
    .effect("whether both ends of a link agree is not known")
    .state("no host was contacted")
    .next(format!(
        "railwright discover cabling {inventory} -o {inventory}/cabling.csv writes what the hosts \
         hear; look at it"
    ))
    .next("then write `cabling: cabling.csv` in the spec")
}

fn report_same_file() -> Diagnostic {
    Diagnostic::error("RW1046", "the picture and the recording are to be one file")
        .effect("the one would be written over the other")
        .state("nothing was written, and no host was contacted")
        .next("name two files")
}

fn report_present_file(file: &Path) -> Diagnostic {
    Diagnostic::error("RW1046", format!("{} is there already", file.display()))
        .effect("it may be the picture or the recording of another day")
        .state("it is as it was, and no host was contacted")
        .next("name another file; or write over it: --force")
}
