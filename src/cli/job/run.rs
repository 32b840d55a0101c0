//! `railwright job run`: NCCL's tests or a training on hosts over SSH, without Kubernetes, and what
//! their log proves.

use super::deliver::{JobRenderContext, print_warnings_or_fail};
use super::job_output::{JobOutput, remove_empty_output};
use super::nics;
use super::pods::{TypedOptions, parse_name_value};
use super::prove::print_proof;
use super::run_end::{describe_unfinished_job, failure_from_refusal, report_unwritten_output};
use super::watch::parse_job_duration;
use crate::cli::nccl::LEFT_AT_ONCE;
use crate::cli::traffic_looks::{Looks, build_traffic_requests};
use crate::cli::{CommandFailure, Exit};
use clap::Subcommand;
use railwright_base::text::{format_count, format_duration, one_line};
use railwright_base::{Diagnostic, nodeset, quote};
use railwright_knowledge::spec::{Host, Sources};
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::out;
use railwright_session::Inventory;
use railwright_system::clock::Stopwatch;
use railwright_system::signals::{self, wait_for_interrupts};
use railwright_transport::{TargetAccess, TargetContact, new_connector};
use railwright_verify::flow::Flow;
use railwright_verify::host_job::{self, HostJobOutcome};
use railwright_verify::nccl::{NcclExpectations, NcclLog, ObservedRailTraffic};
use railwright_workload::{
    HostJob, HostJobParts, HostKind, HostPart, NcclTest, RequestPlaces, on_hosts,
};
use std::path::PathBuf;

/// The port at which the ranks of a training meet.
const PORT: u16 = 29_500;

/// Run NCCL's tests or a training on hosts over SSH, without Kubernetes, and prove by its output
/// that RDMA was used
///
/// The environment follows from the inventory as that of pods does. It runs under a transient unit
/// with a lease, and nothing of it stays on the hosts. Ends with 0 where the output proves RDMA,
/// with 1 where it disproves it or the job broke, and with 3 where it does not say enough.
#[derive(Debug, clap::Args)]
pub struct JobRunArguments {
    #[command(subcommand)]
    kind: JobRunKind,
}

#[derive(Debug, Subcommand)]
enum JobRunKind {
    /// NCCL's tests, started by mpirun on the first host, which logs in to the others
    NcclTest(Tests),
    /// The shipped training: the model of rank 0 is sent to all ranks, and gradients are summed up
    /// step by step
    Pytorch(TrainingRunArguments),
}

/// What both have in common.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// The folder that holds the spec
    #[arg(short, long, value_name = "FOLDER")]
    inventory: PathBuf,
    /// The hosts, as a node-set; the ranks meet at the first
    #[arg(long, value_name = "HOSTS")]
    on: String,
    /// A variable of its processes, before what the spec and the fabric say; may be given more than
    /// once
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// GPUs of a host; those of the spec when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    gpus: Option<u32>,
    /// Over TCP: the job that another is compared with
    #[arg(long)]
    without_rdma: bool,
    /// While it runs, look at the counters of the rails of all its hosts: every one of them has to
    /// carry data in both directions
    #[arg(long)]
    traffic: bool,
    /// End it after this long: `90s`, `30m`
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_job_duration, default_value = "15m")]
    limit_s: u64,
    /// Keep its output in this file, which must not be there yet, for job prove and job compare
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON at the end, and nothing before it
    #[arg(long)]
    pub json: bool,
}

/// `job run nccl-test`.
#[derive(Debug, clap::Args)]
struct Tests {
    /// The test, with its path where it is not on the hosts' PATH
    #[arg(long, default_value = "all_reduce_perf")]
    program: String,
    /// The smallest message
    #[arg(long, value_name = "SIZE", default_value = "8")]
    from: String,
    /// The largest message
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    to: String,
    /// Turns for each size
    #[arg(long, value_name = "N", default_value_t = 20)]
    turns: u32,
    #[command(flatten)]
    common: Common,
}

/// `job run pytorch`.
#[derive(Debug, clap::Args)]
struct TrainingRunArguments {
    /// Steps
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    steps: u32,
    /// MiB that are summed up in each step
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    size: u32,
    /// The TCP port at which the ranks meet
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = PORT,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    port: u16,
    #[command(flatten)]
    common: Common,
}

/// Renders the job for its hosts, runs it there, and exits by what its output proves.
pub async fn run(arguments: &JobRunArguments) -> Result<Exit, CommandFailure> {
    let (kind, common) = split_job_kind(&arguments.kind);
    let ground = JobRenderContext::read(Some(&common.inventory))?;
    let Some(inventory) = ground.inventory() else {
        return Err(Diagnostic::error("RW1265", "no inventory is given").into());
    };
    let typed = collect_typed_options(&kind, common)?;
    let asked = RequestPlaces::of_options(
        "railwright job run",
        typed
            .iter()
            .map(|(path, option)| (path.as_str(), option.clone())),
    );
    let names = expand_job_hosts(&common.on, &asked, inventory)?;
    let accesses = resolve_host_accesses(inventory, &names, &asked)?;
    let environment = common
        .env
        .iter()
        .map(|text| parse_name_value(text, "--env"))
        .collect::<Result<Vec<_>, _>>()?;
    let job = HostJob {
        kind,
        hosts: names,
        addresses: accesses
            .iter()
            .map(|access| access.address().to_owned())
            .collect(),
        environment,
        gpus: common.gpus,
        over_tcp: common.without_rdma,
    };
    let (parts, sources) = ground.render(&asked, |inputs| on_hosts(inputs, &job, &asked))?;
    print_warnings_or_fail(parts.warnings.clone(), &sources)?;
    run_rendered_job(common, inventory, accesses, parts).await
}

/// What runs, and what all kinds have in common.
fn split_job_kind(kind: &JobRunKind) -> (HostKind, &Common) {
    match kind {
        JobRunKind::NcclTest(tests) => {
            let test = NcclTest {
                program: tests.program.clone(),
                from: tests.from.clone(),
                to: tests.to.clone(),
                turns: tests.turns,
                ..NcclTest::default()
            };
            (HostKind::NcclTest(Box::new(test)), &tests.common)
        }
        JobRunKind::Pytorch(training) => {
            let kind = HostKind::Pytorch {
                steps: training.steps,
                mebibytes: training.size,
                port: training.port,
            };
            (kind, &training.common)
        }
    }
}

/// The options that can be explained, each with what it is about.
fn collect_typed_options(kind: &HostKind, common: &Common) -> Result<TypedOptions, CommandFailure> {
    let mut typed: TypedOptions = vec![("job.hosts".to_owned(), format!("--on={}", common.on))];
    for text in &common.env {
        let (name, value) = parse_name_value(text, "--env")?;
        typed.push((
            format!("jobs.environment.{name}"),
            format!("--env {name}={value}"),
        ));
    }
    if let Some(gpus) = common.gpus {
        typed.push(("job.gpus".to_owned(), format!("--gpus={gpus}")));
    }
    if let HostKind::NcclTest(test) = kind {
        let turns = test.turns.to_string();
        let options = [
            ("program", &test.program),
            ("from", &test.from),
            ("to", &test.to),
            ("turns", &turns),
        ];
        for (name, value) in options {
            typed.push((format!("job.{name}"), format!("--{name}={value}")));
        }
    }
    Ok(typed)
}

/// The hosts of a node-set.
fn expand_job_hosts(
    text: &str,
    asked: &RequestPlaces,
    inventory: &Inventory,
) -> Result<Vec<String>, CommandFailure> {
    nodeset::expand_node_set(text).map_err(|error| {
        let error = Diagnostic::error(
            "RW1221",
            format!("`{}` names no hosts: {error}", one_line(text, 60)),
        )
        .state("nothing was started");
        label_hosts_option(error.next(suggest_hosts(inventory)), asked, "no node-set")
    })
}

/// How the hosts are reached.
fn resolve_host_accesses(
    inventory: &Inventory,
    names: &[String],
    asked: &RequestPlaces,
) -> Result<Vec<TargetAccess>, CommandFailure> {
    let mut accesses = Vec::new();
    for name in names {
        let host = inventory.loaded.host(name);
        let Some(access) = host.and_then(|host| inventory.access(host)) else {
            let why = match host {
                Some(_) => "has no SSH",
                None => "is not in the spec",
            };
            let error = Diagnostic::error("RW1265", format!("`{}` {why}", one_line(name, 60)))
                .state("nothing was started")
                .next(suggest_hosts(inventory));
            return Err(label_hosts_option(error, asked, "named here"));
        };
        accesses.push(access);
    }
    Ok(accesses)
}

fn label_hosts_option(error: Diagnostic, asked: &RequestPlaces, text: &str) -> CommandFailure {
    let mut sources = Sources::default();
    if let Some(line) = asked.source() {
        sources.add(line.clone());
    }
    let labels = asked.label("job.hosts", text).into_iter();
    let error = labels.fold(error, Diagnostic::labelled);
    CommandFailure::from(vec![error]).with_sources(&sources)
}

/// Hosts that can be named, as they are called.
fn suggest_hosts(inventory: &Inventory) -> String {
    let reached: Vec<&str> = inventory
        .loaded
        .reached()
        .map(|host| host.name.as_str())
        .collect();
    match reached.as_slice() {
        [] => "no host of the spec is reached over SSH; railwright job render runs it in pods"
            .to_owned(),
        some => format!(
            "name hosts of the spec that are reached over SSH: --on {}",
            one_line(&nodeset::fold_node_set(some), 80)
        ),
    }
}

async fn run_rendered_job(
    common: &Common,
    inventory: &Inventory,
    accesses: Vec<TargetAccess>,
    rendered: HostJobParts,
) -> Result<Exit, CommandFailure> {
    let parts: Vec<(TargetAccess, HostPart)> = accesses.into_iter().zip(rendered.parts).collect();
    let names: Vec<&str> = parts.iter().map(|(_, part)| part.host.as_str()).collect();
    let shown = nodeset::fold_node_set(&names);
    let mut output = JobOutput::open(common)?;
    if !common.json {
        out::print_note(&format!(
            "{} with {} each, for {} at most",
            shown,
            format_count(rendered.gpus as usize, "rank"),
            format_duration(common.limit_s)
        ));
    }
    let watched = run_and_watch_rails(common, inventory, &names, &parts, &mut |host, text| {
        output.take(host, text);
    })
    .await;
    if watched.is_err() {
        remove_empty_output(common)?;
    }
    let Some((ended, traffic)) = watched? else {
        out::print_note(LEFT_AT_ONCE);
        return Ok(Exit::Interrupted);
    };
    output
        .kept
        .map_err(|error| report_unwritten_output(common, &error))?;
    if ended == HostJobOutcome::Stopped {
        out::print_note(
            "it was ended on all hosts that answer, and on others the lease ends it; nothing of it \
             stays there",
        );
        return Ok(Exit::Interrupted);
    }
    // How it ended is reported before what its output says: that is of a job that broke.
    let broke = describe_unfinished_job(&ended, common.limit_s)
        .map(|broke| CommandFailure::from(broke).show());
    let log = output.decoder.finish();
    let expected = NcclExpectations {
        traffic: common.traffic.then_some(traffic),
        ..build_expectations(common, inventory, shown, &names, &log)
    };
    let exit = print_proof(&log, &expected, common.json);
    Ok(broke.unwrap_or(exit))
}

/// Runs it, and looks at its rails where that is asked for: how it ended, and what they carried.
/// Nothing where somebody asked twice for its end.
async fn run_and_watch_rails(
    common: &Common,
    inventory: &Inventory,
    names: &[&str],
    parts: &[(TargetAccess, HostPart)],
    lines: &mut (dyn FnMut(&str, &str) + Send),
) -> Result<Option<(HostJobOutcome, ObservedRailTraffic)>, CommandFailure> {
    let mut interrupts = signals::watch_interrupts();
    let mut again = interrupts.clone();
    let stop = async move { drop(interrupts.changed().await) };
    let limit_s = u32::try_from(common.limit_s).unwrap_or(u32::MAX);
    let connector = new_connector(TargetContact::begin());
    let hosts: Vec<&Host> = names
        .iter()
        .filter_map(|name| inventory.loaded.host(name))
        .collect();
    let mut looks = common
        .traffic
        .then(|| Looks::new(&*connector, build_traffic_requests(inventory, &hosts, None)));
    let (mut flow, began) = (Flow::default(), Stopwatch::start());
    // A short job may send all that it has between two looks: the first is before it begins, the
    // last after its end.
    if let Some(looks) = &mut looks {
        looks.once(&mut flow).await;
    }
    let ended = tokio::select! {
        () = wait_for_interrupts(&mut again, 2) => {
            return Ok(None);
        }
        ended = host_job::run_host_job(&*connector, parts, limit_s, lines, stop) => {
            ended.map_err(failure_from_refusal)?
        }
        () = watch_rails(looks.as_mut(), &mut flow) => HostJobOutcome::Stopped,
    };
    if let Some(looks) = &mut looks {
        looks.once(&mut flow).await;
    }
    let seconds = began.elapsed().as_secs();
    Ok(Some((ended, ObservedRailTraffic::Seen { flow, seconds })))
}

/// Looks at the rails of its hosts for as long as it runs, where that is asked for; never ends by
/// itself.
async fn watch_rails(looks: Option<&mut Looks<'_>>, flow: &mut Flow) {
    match looks {
        Some(looks) => looks.on(flow).await,
        None => std::future::pending().await,
    }
}

/// What its output is checked against.
fn build_expectations(
    common: &Common,
    inventory: &Inventory,
    shown: String,
    names: &[&str],
    log: &NcclLog,
) -> NcclExpectations {
    let words = common
        .output
        .as_ref()
        .map_or("--log FILE".to_owned(), |path| {
            format!("--log {}", quote::quote_path(path))
        });
    let mut expected = NcclExpectations::of(shown, words);
    // Of a training no bandwidth is checked.
    if !log.runs.is_empty()
        && let Err(unknown) =
            nics::set_expected_bandwidth(&mut expected, inventory, &names.iter().copied().collect())
    {
        print_diagnostics(&[unknown], &Sources::default());
    }
    expected
}
