//! `railwright rollout`.

use super::{CommandFailure, Exit};
use railwright_apply::status::compute_rollout_status;
use railwright_apply::steps::build_steps;
use railwright_apply::{ExecutionOptions, Past};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_plan::by_hand::release_power_cycles;
use railwright_plan::{Plan, Unavailable};
use railwright_report as report;
use railwright_report::document::{self, RolloutDocument};
use railwright_session::{Session, inventory_file};
use railwright_state::{ClusterLock, ClusterState, OrderKind, StateFolder, run_status};
use railwright_system::clock::Clock;
use std::path::{Path, PathBuf};

/// How many earlier runs a forecast is made of; older ones say little of today's cluster.
const RUNS_LEARNED_FROM: usize = 10;
/// All their journals together, in bytes; a plan is not kept waiting for a forecast.
const BYTES_LEARNED_FROM: u64 = 256 << 20;

/// How a run stands, while it goes on and afterwards; pause it, let it go on, end it
#[derive(Debug, clap::Args)]
pub struct RolloutArguments {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RolloutCommand {
    /// Show how a run stands: its waves, what goes on, what went wrong, when it will likely be over
    ///
    /// Reads the run's journal and takes no lock; any time, from any terminal.
    Status {
        /// The inventory
        inventory: PathBuf,
        /// The run; the newest by default
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

/// Shows a run or orders it something. Needs the state folder alone: a spec that is broken keeps
/// nobody from stopping a run.
pub fn run(arguments: &RolloutArguments) -> Result<Exit, CommandFailure> {
    match &arguments.command {
        RolloutCommand::Status {
            inventory,
            run,
            json,
        } => show_rollout_status(inventory, run.as_deref(), *json),
        RolloutCommand::Pause { inventory } => send_order(
            inventory,
            OrderKind::Pause,
            "it finishes what it is doing and starts nothing new",
        ),
        RolloutCommand::Continue { inventory } => {
            send_order(inventory, OrderKind::Continue, "it goes on")
        }
        RolloutCommand::Abort { inventory } => send_order(
            inventory,
            OrderKind::Abort,
            "it finishes what it is doing, and ends",
        ),
    }
}

/// The state of an inventory, which is not read itself.
fn open_state_folder(inventory: &Path) -> Result<StateFolder, CommandFailure> {
    inventory_file::state_is_within(inventory)
        .map_err(|link| CommandFailure::refused(vec![*link]))?;
    Ok(StateFolder::beside(inventory))
}

fn send_order(inventory: &Path, order: OrderKind, what: &str) -> Result<Exit, CommandFailure> {
    let run = open_state_folder(inventory)?
        .order(order)
        .map_err(|problem| CommandFailure::refused(vec![problem]))?;
    report::out::print_note(&format!(
        "ordered: run {run}: {what}; railwright rollout status {} shows it",
        quote::quote_path(inventory)
    ));
    Ok(Exit::Done)
}

fn show_rollout_status(
    inventory: &Path,
    run: Option<&str>,
    json: bool,
) -> Result<Exit, CommandFailure> {
    let folder = open_state_folder(inventory)?;
    let runs = folder.runs()?;
    let chosen = match run {
        None => runs.last(),
        Some(run) => runs.iter().find(|known| *known == run),
    };
    let Some(chosen) = chosen else {
        return Err(report_no_run(inventory, run, &runs).into());
    };
    let journal = folder.read_journal(chosen)?;
    let run = run_status::fold_journal_records(&journal.records);
    let plan = folder.read_plan(chosen)?;
    let plan = release_power_cycles(&plan).unwrap_or(plan);
    let steps = build_steps(&plan)?;
    // Only for a run that did not end: to ask is to share the lock for a moment.
    let live =
        run.ending.is_none() && Some(chosen) == runs.last() && ClusterLock::is_held(&folder)?;
    // What goes on is not left.
    let outages = ClusterState::load(&folder)?.outages;
    let left = Unavailable::left_by_runs(
        outages
            .iter()
            .filter(|(_, outage)| !live || outage.run != run.run),
    );
    let status = compute_rollout_status(&plan, &steps, &run, live, &load_past_durations(&folder)?)
        .with_left_by_runs(left);
    let text = match json {
        true => document::render_json_document(&RolloutDocument::of(&status)),
        false => report::rollout::render_rollout_screen(
            &status,
            &quote::quote_path(inventory),
            Clock::Real.now(),
        ),
    };
    report::out::print_result(&text);
    Ok(Exit::Done)
}

/// What earlier runs of a folder say of how long things take. A journal that cannot be read says
/// nothing.
pub fn load_past_durations(folder: &StateFolder) -> Result<Past, Diagnostic> {
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
pub fn render_time_estimate(session: &Session, plan: &Plan) -> Result<String, CommandFailure> {
    let parallel = ExecutionOptions::default().parallel;
    let estimate = report::rollout::estimate_plan_duration(
        plan,
        &load_past_durations(&session.folder)?,
        parallel,
    );
    Ok(report::rollout::render_estimate_line(estimate.as_ref()))
}

fn report_no_run(inventory: &Path, run: Option<&str>, runs: &[String]) -> Diagnostic {
    let what = match run {
        None => "no run was ever begun here".to_owned(),
        Some(run) => format!("there is no run {} here", one_line(run, 40)),
    };
    let known: Vec<&str> = runs.iter().rev().take(5).map(String::as_str).collect();
    let next = match known.is_empty() {
        true => format!(
            "railwright apply {} begins one",
            quote::quote_path(inventory)
        ),
        false => format!("the latest are {}", known.join(", ")),
    };
    Diagnostic::error("RW1018", what)
        .state("nothing was changed")
        .next(next)
}
