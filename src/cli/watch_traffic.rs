//! `railwright watch traffic`.

use super::inventory::{self, Inventory};
use super::traffic_looks::{Looks, requests, says_something};
use super::{Exit, Failure, cables, secrets};
use railwright_base::Diagnostic;
use railwright_base::text::{self, counted};
use railwright_report::{self as report, traffic};
use railwright_system::clock;
use railwright_system::signals;
use railwright_transport::TargetContact;
use railwright_verify::Verdict;
use railwright_verify::flow::Flow;
use std::path::PathBuf;
use std::time::Duration;

/// Look at what goes on while it goes on
#[derive(Debug, clap::Args)]
pub struct Watch {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Traffic(Traffic),
}

/// Live rates of RDMA traffic over each rail, in both directions, and whether all rails carry
///
/// Reads counters of the hosts' RDMA devices again and again, and starts no traffic: run it while a job runs. Ends by Ctrl-C or after `--for`:
/// with 0 where every rail carried data in both directions, with 1 where one did not while others did, with 3 where nothing passed or
/// something could not be found out.
#[derive(Debug, clap::Args)]
pub struct Traffic {
    /// The inventory: a folder of YAML files
    inventory: PathBuf,
    /// Only these hosts, a node-set; all unless said
    #[arg(long, value_name = "NODESET")]
    host: Option<String>,
    /// The time between two looks: `2s`, `1m`
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = seconds)]
    every: u64,
    /// How long it is looked at: `30s`, `10m`; until Ctrl-C unless said
    #[arg(long = "for", value_name = "DURATION", value_parser = seconds)]
    seconds: Option<u64>,
    /// Read hosts as this user
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name)]
    read_as: Option<String>,
    /// Print JSON at the end, and no look
    #[arg(long)]
    json: bool,
}

/// `2`, `2s`, `10m`, `1h`; from one second to a day.
fn seconds(text: &str) -> Result<u64, String> {
    let seconds = text::seconds(text, &[('s', 1), ('m', 60), ('h', 3600)]);
    seconds
        .filter(|seconds| (1..=86_400).contains(seconds))
        .ok_or_else(|| "seconds, minutes or hours, a day at most: `30s`, `10m`".to_owned())
}

/// Looks.
pub async fn run(arguments: &Watch) -> Result<Exit, Failure> {
    let What::Traffic(arguments) = &arguments.what;
    let inventory = Inventory { read_as: arguments.read_as.clone(), ..inventory::read(&arguments.inventory)? };
    let hosts = match &arguments.host {
        Some(set) => cables::asked(&inventory, Some(set))?,
        None => inventory.loaded.reached().collect(),
    };
    let requests = requests(&inventory, &hosts, None);
    if requests.is_empty() {
        return Err(nobody(&inventory.word).into());
    }
    let connector = secrets::connector_to_look(&inventory, TargetContact::begin());
    let mut watching = Watching { looks: Looks::new(&*connector, requests), quiet: arguments.json };
    let flow = watching.until_the_end(arguments.every, arguments.seconds).await;
    let judgement = flow.judge(&inventory.word);
    report::out::print(&match arguments.json {
        true => traffic::json(&inventory.path, &flow, &judgement),
        false => traffic::end(&judgement),
    });
    Ok(match judgement.verdict {
        Verdict::Failed => Exit::Failed,
        Verdict::Unknown => Exit::Incomplete,
        _ => Exit::Done,
    })
}

fn nobody(inventory: &str) -> Diagnostic {
    Diagnostic::error("RW1011", "no host of the inventory has both rails and SSH")
        .state("no host was asked")
        .next(format!("say in the spec which NICs hosts have (`nics`) and how they are reached (`ssh`); railwright validate {inventory} tells how many are"))
}

struct Watching<'a> {
    looks: Looks<'a>,
    quiet: bool,
}

impl Watching<'_> {
    async fn until_the_end(&mut self, every: u64, whole: Option<u64>) -> Flow {
        let mut interrupts = signals::interrupts();
        let (hosts, rails) = (counted(self.looks.hosts(), "host"), counted(self.looks.rails(), "rail"));
        let until = whole.map_or("Ctrl-C ends it".to_owned(), |seconds| format!("for {seconds} s, or until Ctrl-C"));
        report::out::note(&format!("watching the traffic of {rails} of {hosts}, a look every {every} s; {until}"));
        let mut flow = Flow::default();
        let mut passed = 0;
        loop {
            let look = tokio::select! {
                _ = interrupts.changed() => return flow,
                look = self.looks.next() => look,
            };
            // The first says nothing of rates; hosts that gave no answer are told at once.
            if passed > 0 || says_something(&look) {
                flow.take(&look);
                if !self.quiet {
                    report::out::print(&traffic::look(passed, &look));
                }
            }
            if whole.is_some_and(|whole| passed >= whole) {
                return flow;
            }
            let pause = whole.map_or(every, |whole| every.min(whole - passed));
            tokio::select! {
                _ = interrupts.changed() => return flow,
                () = clock::pause(Duration::from_secs(pause)) => passed += pause,
            }
        }
    }
}
