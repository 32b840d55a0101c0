//! The command line: one file a command, named after it, holding its arguments (whose doc comments are the help text)
//! and its one function. Nothing else parses arguments or decides an exit code.

pub mod apply;
pub mod cables;
pub mod catalog;
mod ceiling;
pub mod discover;
pub mod doctor;
pub mod drift;
pub mod exit;
pub mod explain;
pub mod explain_host;
pub mod facts;
pub mod failure;
pub mod gate;
pub mod graph;
pub mod image;
pub mod inventory;
mod inventory_files;
pub mod job;
pub mod knowledge;
pub mod lab;
pub mod lock;
pub mod look;
mod nccl;
pub mod output;
mod outside;
pub mod pipeline;
pub mod plan;
pub mod question;
pub mod rbac;
pub mod recording;
pub mod resume;
pub mod rollout;
pub mod rules;
pub mod schema;
pub mod secrets;
pub mod show;
mod spoken;
pub mod state;
mod subject;
pub mod sudoers;
mod traffic_looks;
pub mod translate;
pub mod validate;
pub mod verification;
pub mod verify;
pub mod verify_cabling;
pub mod verify_fabric;
pub mod version;
pub mod watch;
pub mod watch_traffic;
mod wishes;
mod workloads;

use clap::{Parser, Subcommand};
pub use exit::Exit;
pub use failure::Failure;
use railwright_base::Diagnostic;
use railwright_report::out;

/// Declarative provisioning for GPU/RDMA clusters: plan, apply, prove, find drift.
#[derive(Debug, Parser)]
#[command(name = "railwright", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Validate(validate::Validate),
    Plan(plan::Plan),
    Show(show::Show),
    Apply(apply::Apply),
    Resume(resume::Resume),
    Rollout(rollout::Arguments),
    Lock(lock::Arguments),
    Verify(verify::Verify),
    Watch(watch_traffic::Watch),
    Doctor(doctor::Arguments),
    Discover(discover::Arguments),
    Drift(drift::Drift),
    Facts(facts::Facts),
    State(state::Arguments),
    Sudoers(sudoers::Sudoers),
    Rbac(rbac::Rbac),
    Graph(graph::Graph),
    Explain(explain::Explain),
    Catalog(catalog::Arguments),
    Rules(rules::Rules),
    Translate(translate::Translate),
    Job(job::Arguments),
    Image(image::Arguments),
    Schema(schema::Schema),
    Lab(lab::Lab),
    Version(version::Version),
}

/// Runs a command to its exit code, below the ceiling of commands that contact no target.
pub fn run(arguments: Arguments) -> Exit {
    let exit = ceiling::below(move || run_command(arguments.command).unwrap_or_else(|failure| failure.show()))
        .unwrap_or_else(|failure| failure.show());
    // A result that could not be written was not delivered, whatever the command thinks.
    if let (Exit::Done | Exit::Changes | Exit::Incomplete, Some(why)) = (exit, out::failure()) {
        out::note(&format!("the output could not be written: {why}"));
        return Exit::Failed;
    }
    exit
}

fn run_command(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Validate(arguments) => Ok(validate::run(&arguments)),
        Command::Plan(arguments) => wait(plan::run(&arguments)),
        Command::Show(arguments) => show::run(&arguments),
        Command::Apply(arguments) => wait(apply::run(&arguments)),
        Command::Resume(arguments) => wait(resume::run(&arguments)),
        Command::Lock(arguments) => wait(lock::run(&arguments)),
        Command::Rollout(arguments) => rollout::run(&arguments),
        Command::Verify(arguments) => wait(verify::run(&arguments)),
        Command::Watch(arguments) => wait(watch_traffic::run(&arguments)),
        Command::Doctor(arguments) => wait(doctor::run(&arguments)),
        Command::Discover(arguments) => wait(discover::run(&arguments)),
        Command::Drift(arguments) => wait(drift::run(&arguments)),
        Command::Facts(arguments) => wait(facts::run(&arguments)),
        Command::Job(arguments) => wait(job::run(&arguments)),
        Command::Image(arguments) => wait(image::run(&arguments)),
        Command::State(arguments) => wait(state::run(&arguments)),
        Command::Sudoers(arguments) => sudoers::run(&arguments),
        Command::Rbac(arguments) => wait(rbac::run(&arguments)),
        Command::Graph(arguments) => graph::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Catalog(arguments) => catalog::run(&arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Translate(arguments) => translate::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Lab(arguments) => Ok(lab::run(arguments)),
        Command::Version(arguments) => version::run(&arguments),
    }
}

/// Commands that talk to targets run on a runtime of their own.
fn wait(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| no_threads(&error))?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result
}

fn no_threads(error: &std::io::Error) -> Failure {
    Diagnostic::error("RW1015", format!("no threads could be started: {error}"))
        .state("nothing was changed")
        .next("check limits: ulimit -u")
        .into()
}
