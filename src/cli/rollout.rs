//! `railwright rollout`.

use super::pipeline::Prepared;
use super::{Exit, Failure, outside};
use railwright_apply::status::status;
use railwright_apply::steps::steps;
use railwright_apply::{Past, Patience};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_plan::by_hand::released;
use railwright_plan::{Plan, Unavailable};
use railwright_report as report;
use railwright_report::document::{self, RolloutDocument};
use railwright_state::{ClusterLock, OrderKind, State, StateFolder, run_status};
use railwright_system::clock::Clock;
use std::path::{Path, PathBuf};

/// How many earlier runs a forecast is made of; older ones say little of today's cluster.
const RUNS_LEARNED_FROM: usize = 10;
/// All their journals together, in bytes; a plan is not kept waiting for a forecast.
const BYTES_LEARNED_FROM: u64 = 256 << 20;

/// How a run stands, while it goes on and afterwards; pause it, let it go on, end it
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show how a run stands: its waves, what goes on, what went wrong, when it will likely be over
    ///
    /// Reads the run's journal and takes no lock; any time, from any terminal.
    Status {
        /// The inventory
        inventory: PathBuf,
        /// The run; the newest unless said
        run: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let the run that goes on finish what it is doing and start nothing new
    Pause {
        /// The inventory
        inventory: PathBuf,
    },
    /// Let a paused run go on
    Continue {
        /// The inventory
        inventory: PathBuf,
    },
    /// Let the run that goes on finish what it is doing, and end; `resume` goes on with it
    Abort {
        /// The inventory
        inventory: PathBuf,
    },
}

/// Shows a run or orders it something. Needs the state folder alone: a spec that is broken keeps nobody from stopping a run.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Status { inventory, run, json } => show(inventory, run.as_deref(), *json),
        Command::Pause { inventory } => order(inventory, OrderKind::Pause, "it finishes what it is doing and starts nothing new"),
        Command::Continue { inventory } => order(inventory, OrderKind::Continue, "it goes on"),
        Command::Abort { inventory } => order(inventory, OrderKind::Abort, "it finishes what it is doing, and ends"),
    }
}

/// The state of an inventory, which is not read itself.
fn state(inventory: &Path) -> Result<StateFolder, Failure> {
    outside::state_is_within(inventory).map_err(|link| Failure::refused(vec![*link]))?;
    Ok(StateFolder::beside(inventory))
}

fn order(inventory: &Path, order: OrderKind, what: &str) -> Result<Exit, Failure> {
    let run = state(inventory)?.order(order).map_err(|problem| Failure::refused(vec![problem]))?;
    report::out::note(&format!("ordered: run {run}: {what}; railwright rollout status {} shows it", quote::path(inventory)));
    Ok(Exit::Done)
}

fn show(inventory: &Path, run: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let folder = state(inventory)?;
    let runs = folder.runs()?;
    let chosen = match run {
        None => runs.last(),
        Some(run) => runs.iter().find(|known| *known == run),
    };
    let Some(chosen) = chosen else { return Err(no_run(inventory, run, &runs).into()) };
    let journal = folder.read_journal(chosen)?;
    let run = run_status::fold(&journal.records);
    let plan = folder.read_plan(chosen)?;
    let plan = released(&plan).unwrap_or(plan);
    let steps = steps(&plan)?;
    // Only for a run that did not end: to ask is to share the lock for a moment.
    let live = run.ending.is_none() && Some(chosen) == runs.last() && ClusterLock::is_held(&folder)?;
    // What goes on is not left.
    let outages = State::load(&folder)?.outages;
    let left = Unavailable::left_by_runs(outages.iter().filter(|(_, outage)| !live || outage.run != run.run));
    let status = status(&plan, &steps, &run, live, &past(&folder)?).with_left_by_runs(left);
    let text = match json {
        true => document::text(&RolloutDocument::of(&status)),
        false => report::rollout::screen(&status, &quote::path(inventory), Clock::Real.now()),
    };
    report::out::print(&text);
    Ok(Exit::Done)
}

/// What earlier runs of a folder say of how long things take. A journal that cannot be read says nothing.
pub fn past(folder: &StateFolder) -> Result<Past, Diagnostic> {
    let mut past = Past::default();
    let mut left = BYTES_LEARNED_FROM;
    for run in folder.runs()?.iter().rev().take(RUNS_LEARNED_FROM) {
        if let Ok(journal) = folder.journal_bytes(run, left) {
            left = left.saturating_sub(journal.len() as u64);
            past.learn(&journal);
        }
    }
    Ok(past)
}

/// The line beside a plan that says how long it will likely take.
pub fn time(prepared: &Prepared, plan: &Plan) -> Result<String, Failure> {
    let parallel = Patience::default().parallel;
    let estimate = report::rollout::forecast(plan, &past(&prepared.folder)?, parallel);
    Ok(report::rollout::time(estimate.as_ref()))
}

fn no_run(inventory: &Path, run: Option<&str>, runs: &[String]) -> Diagnostic {
    let what = match run {
        None => "no run was ever begun here".to_owned(),
        Some(run) => format!("there is no run {} here", one_line(run, 40)),
    };
    let known: Vec<&str> = runs.iter().rev().take(5).map(String::as_str).collect();
    let next = match known.is_empty() {
        true => format!("railwright apply {} begins one", quote::path(inventory)),
        false => format!("the latest are {}", known.join(", ")),
    };
    Diagnostic::error("RW1018", what).state("nothing was changed").next(next)
}
