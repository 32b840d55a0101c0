//! `railwright watch traffic`.

use super::traffic_looks::{Looks, build_traffic_requests, says_something};
use super::{CommandFailure, Exit, cables};
use railwright_base::text::{self, format_count};
use railwright_base::{Diagnostic, Reason};
use railwright_report::{self as report, traffic};
use railwright_session::{Inventory, read_inventory, secrets};
use railwright_system::clock;
use railwright_system::signals;
use railwright_transport::TargetContact;
use railwright_verify::CheckVerdict;
use railwright_verify::flow::Flow;
use std::path::PathBuf;
use std::time::Duration;

/// Look at what goes on while it goes on
#[derive(Debug, clap::Args)]
pub struct WatchArguments {
    #[command(subcommand)]
    what: WatchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WatchCommand {
    Traffic(WatchTrafficArguments),
}

/// Live rates of RDMA traffic over each rail, in both directions, and whether all rails carry
///
/// Reads counters of the hosts' RDMA devices again and again, and starts no traffic: run it while a
/// job runs. Ends by Ctrl-C or after `--for`: with 0 where every rail carried data in both
/// directions, with 1 where one did not while others did, with 3 where nothing passed or something
/// could not be found out.
#[derive(Debug, clap::Args)]
pub struct WatchTrafficArguments {
    /// The inventory: a folder of YAML files
    inventory: PathBuf,
    /// Only these hosts, a node-set; all by default
    #[arg(long, value_name = "NODESET")]
    host: Option<String>,
    /// The time between two looks: `2s`, `1m`
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_watch_duration)]
    every: u64,
    /// How long it is looked at: `30s`, `10m`; until Ctrl-C by default
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_watch_duration)]
    seconds: Option<u64>,
    /// Read hosts as this user
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name)]
    read_as: Option<String>,
    /// Print JSON at the end, and no look
    #[arg(long)]
    json: bool,
}

/// `2`, `2s`, `10m`, `1h`; from one second to a day.
fn parse_watch_duration(text: &str) -> Result<u64, Reason> {
    let seconds = text::parse_seconds(text, &[('s', 1), ('m', 60), ('h', 3600)]);
    seconds
        .filter(|seconds| (1..=86_400).contains(seconds))
        .ok_or_else(|| "seconds, minutes or hours, a day at most: `30s`, `10m`".into())
}

/// Looks.
pub async fn run(arguments: &WatchArguments) -> Result<Exit, CommandFailure> {
    let WatchCommand::Traffic(arguments) = &arguments.what;
    let inventory = Inventory {
        read_as: arguments.read_as.clone(),
        ..read_inventory(&arguments.inventory)?
    };
    let hosts = match &arguments.host {
        Some(set) => cables::select_rail_hosts(&inventory, Some(set))?,
        None => inventory.loaded.reached().collect(),
    };
    let requests = build_traffic_requests(&inventory, &hosts, None);
    if requests.is_empty() {
        return Err(report_no_rail_hosts(&inventory.word).into());
    }
    let connector = secrets::connector_to_look(&inventory, TargetContact::begin());
    let mut watching = TrafficWatchSession {
        looks: Looks::new(&*connector, requests),
        quiet: arguments.json,
    };
    let flow = watching
        .until_the_end(arguments.every, arguments.seconds)
        .await;
    let evaluation = flow.evaluate(&inventory.word);
    report::out::print_result(&match arguments.json {
        true => traffic::render_traffic_json(&inventory.path, &flow, &evaluation),
        false => traffic::render_traffic_verdict(&evaluation),
    });
    Ok(match evaluation.verdict {
        CheckVerdict::Failed => Exit::Failed,
        CheckVerdict::Unknown => Exit::Incomplete,
        _ => Exit::Done,
    })
}

fn report_no_rail_hosts(inventory: &str) -> Diagnostic {
    Diagnostic::error("RW1011", "no host of the inventory has both rails and SSH")
        .state("no host was asked")
        .next(format!(
            "say in the spec which NICs hosts have (`nics`) and how they are reached (`ssh`); \
             railwright validate {inventory} tells how many are"
        ))
}

struct TrafficWatchSession<'a> {
    looks: Looks<'a>,
    quiet: bool,
}

impl TrafficWatchSession<'_> {
    async fn until_the_end(&mut self, every: u64, whole: Option<u64>) -> Flow {
        let mut interrupts = signals::watch_interrupts();
        let (hosts, rails) = (
            format_count(self.looks.hosts(), "host"),
            format_count(self.looks.rails(), "rail"),
        );
        let until = whole.map_or("Ctrl-C ends it".to_owned(), |seconds| {
            format!("for {seconds} s, or until Ctrl-C")
        });
        report::out::print_note(&format!(
            "watching the traffic of {rails} of {hosts}, a look every {every} s; {until}"
        ));
        let mut flow = Flow::default();
        let mut passed = 0;
        loop {
            let look = tokio::select! {
                _ = interrupts.changed() => return flow,
                look = self.looks.next() => look,
            };
            // The first says nothing of rates; hosts that gave no answer are reported at once.
            if passed > 0 || says_something(&look) {
                flow.take(&look);
                if !self.quiet {
                    report::out::print_result(&traffic::render_traffic_sample(passed, &look));
                }
            }
            if whole.is_some_and(|whole| passed >= whole) {
                return flow;
            }
            let pause = whole.map_or(every, |whole| every.min(whole - passed));
            tokio::select! {
                _ = interrupts.changed() => return flow,
                () = clock::sleep_for(Duration::from_secs(pause)) => passed += pause,
            }
        }
    }
}
