//! The command line: one file a command, named after it, holding its arguments (whose doc comments
//! are the help text) and its one function. Nothing else parses arguments or decides an exit code.

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
pub mod graph;
pub mod image;
pub mod job;
pub mod lab;
pub mod lock;
pub mod look;
mod nccl;
pub mod output;
pub mod plan;
mod plan_file;
pub mod rbac;
mod rbac_roles;
pub mod recording;
pub mod resume;
pub mod rollout;
pub mod rollout_gate;
pub mod rules;
pub mod schema;
pub mod session;
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

use clap::{Parser, Subcommand};
pub use exit::Exit;
pub use failure::CommandFailure;
use railwright_base::Diagnostic;
use railwright_report::out;

/// Declarative provisioning for GPU/RDMA clusters: plan, apply, prove, find drift.
#[derive(Debug, Parser)]
#[command(name = "railwright", version, max_term_width = 100)]
pub struct CliArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    Validate(validate::Validate),
    Plan(plan::PlanArguments),
    Show(show::Show),
    Apply(apply::Apply),
    Resume(resume::Resume),
    Rollout(rollout::RolloutArguments),
    Lock(lock::LockArguments),
    Verify(verify::VerifyArguments),
    Watch(watch_traffic::WatchArguments),
    Doctor(doctor::DoctorArguments),
    Discover(discover::DiscoverArguments),
    Drift(drift::DriftArguments),
    Facts(facts::Facts),
    State(state::StateArguments),
    Sudoers(sudoers::Sudoers),
    Rbac(rbac::Rbac),
    Graph(graph::GraphArguments),
    Explain(explain::Explain),
    Catalog(catalog::CatalogArguments),
    Rules(rules::RulesArguments),
    Translate(translate::Translate),
    Job(job::JobArguments),
    Image(image::ImageArguments),
    Schema(schema::Schema),
    Lab(lab::Lab),
    Version(version::Version),
}

/// Runs a command to its exit code, below the ceiling of commands that contact no target.
pub fn run(arguments: CliArguments) -> Exit {
    let exit = ceiling::run_below_ceiling(move || {
        run_command(arguments.command).unwrap_or_else(|failure| failure.show())
    })
    .unwrap_or_else(|failure| failure.show());
    // A result that could not be written was not delivered, whatever the command thinks.
    if let (Exit::Done | Exit::Changes | Exit::Incomplete, Some(why)) =
        (exit, out::find_write_failure())
    {
        out::print_note(&format!("the output could not be written: {why}"));
        return Exit::Failed;
    }
    exit
}

fn run_command(command: CliCommand) -> Result<Exit, CommandFailure> {
    match command {
        CliCommand::Validate(arguments) => Ok(validate::run(&arguments)),
        CliCommand::Plan(arguments) => block_on_runtime(plan::run(&arguments)),
        CliCommand::Show(arguments) => show::run(&arguments),
        CliCommand::Apply(arguments) => block_on_runtime(apply::run(&arguments)),
        CliCommand::Resume(arguments) => block_on_runtime(resume::run(&arguments)),
        CliCommand::Lock(arguments) => block_on_runtime(lock::run(&arguments)),
        CliCommand::Rollout(arguments) => rollout::run(&arguments),
        CliCommand::Verify(arguments) => block_on_runtime(verify::run(&arguments)),
        CliCommand::Watch(arguments) => block_on_runtime(watch_traffic::run(&arguments)),
        CliCommand::Doctor(arguments) => block_on_runtime(doctor::run(&arguments)),
        CliCommand::Discover(arguments) => block_on_runtime(discover::run(&arguments)),
        CliCommand::Drift(arguments) => block_on_runtime(drift::run(&arguments)),
        CliCommand::Facts(arguments) => block_on_runtime(facts::run(&arguments)),
        CliCommand::Job(arguments) => block_on_runtime(job::run(&arguments)),
        CliCommand::Image(arguments) => block_on_runtime(image::run(&arguments)),
        CliCommand::State(arguments) => block_on_runtime(state::run(&arguments)),
        CliCommand::Sudoers(arguments) => sudoers::run(&arguments),
        CliCommand::Rbac(arguments) => block_on_runtime(rbac::run(&arguments)),
        CliCommand::Graph(arguments) => graph::run(&arguments),
        CliCommand::Explain(arguments) => explain::run(&arguments),
        CliCommand::Catalog(arguments) => catalog::run(&arguments),
        CliCommand::Rules(arguments) => rules::run(&arguments),
        CliCommand::Translate(arguments) => translate::run(&arguments),
        CliCommand::Schema(arguments) => schema::run(&arguments),
        CliCommand::Lab(arguments) => Ok(lab::run(arguments)),
        CliCommand::Version(arguments) => version::run(&arguments),
    }
}

/// Commands that talk to targets run on a runtime of their own.
fn block_on_runtime(
    work: impl Future<Output = Result<Exit, CommandFailure>>,
) -> Result<Exit, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| report_no_threads(&error))?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result
}

fn report_no_threads(error: &std::io::Error) -> CommandFailure {
    Diagnostic::error("RW1015", format!("no threads could be started: {error}"))
        .state("nothing was changed")
        .next("check limits: ulimit -u")
        .into()
}
