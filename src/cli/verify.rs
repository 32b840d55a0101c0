//! `railwright verify`.

use super::nccl::{LEFT_AT_ONCE, Nccl};
use super::session::open_session;
use super::verification;
use super::verify_cabling::{self, VerifyCabling};
use super::verify_fabric::{self, VerifyFabric};
use super::{CommandFailure, Exit};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, nodeset};
use railwright_report as report;
use railwright_report::progress::Proving;
use railwright_session::{Inventory, Session, SessionRequest};
use railwright_system::signals::{self, wait_for_interrupts};
use railwright_transport::{Connector, TargetContact};
use railwright_verify::nccl_run::run_nccl_checks;
use railwright_verify::{CheckVerdict, VerifyEvent, VerifyReport, verify_hosts};
use std::path::PathBuf;

/// Prove the fabric: drivers, links, GIDs, path MTU, marks, and a matrix of real RDMA traffic
///
/// Starts short test traffic between hosts, one pair a host at a time; the hosts themselves end it
/// even if we die.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct VerifyArguments {
    #[command(subcommand)]
    what: Option<VerifyCommand>,
    /// The inventory: a folder of YAML files
    #[arg(required = true)]
    pub inventory: Option<PathBuf>,
    /// Run NCCL's tests between all hosts with GPUs too, as the gate of the spec has them
    /// (rollout.gate.nccl), and check their output
    #[arg(long)]
    pub nccl: bool,
    /// The test, with its path where it is not on the hosts' PATH; what the spec says unless given
    #[arg(long, value_name = "PROGRAM", requires = "nccl")]
    pub program: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is looked at without traffic. A folder of such a name is `./cabling`, `./fabric`.
#[derive(Debug, clap::Subcommand)]
enum VerifyCommand {
    Cabling(VerifyCabling),
    Fabric(VerifyFabric),
}

fn report_nothing_to_prove(hosts: &str, inventory: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1042",
        format!(
            "no host can be verified: {} have no SSH",
            one_line(hosts, 80)
        ),
    )
    .effect("test traffic is started on hosts over SSH, and nothing is started in pods")
    .state("nothing was started")
    .next(format!(
        "railwright drift {inventory} tells what their cluster says of their devices"
    ))
    .next(
        "traffic between nodes is proven by a job of the cluster: `ib_write_bw` or nccl-tests in \
         two pods",
    )
}

/// What has no host has nothing that test traffic could be started on.
fn report_no_host(has_switches: bool, inventory: &str) -> Diagnostic {
    let error = Diagnostic::error("RW1042", "no host can be verified: the spec has none")
        .state("nothing was started");
    match has_switches {
        true => error.next(format!(
            "railwright verify fabric {inventory} compares what its switches have with the spec"
        )),
        false => error.next("name the hosts in the spec: nodes: [{ name: gpu[01-16], ... }]"),
    }
}

/// NCCL's tests as the spec has them, with the program that was named.
fn configure_nccl_tests(
    arguments: &VerifyArguments,
    inventory: &Inventory,
) -> Result<Nccl, CommandFailure> {
    let gate = inventory
        .loaded
        .spec
        .rollout
        .gate
        .clone()
        .unwrap_or_default();
    let mut tests = gate.nccl.unwrap_or_default();
    tests.program = arguments.program.clone().or(tests.program);
    Nccl::of(inventory, tests)
}

/// Runs them and adds what they say; the exit code where somebody asked to stop.
async fn run_nccl(
    tests: &Nccl,
    connector: &dyn Connector,
    report: &mut VerifyReport,
    progress: &Proving,
) -> Result<Option<Exit>, CommandFailure> {
    let mut interrupts = signals::watch_interrupts();
    let mut again = interrupts.clone();
    let works = tests.works(&tests.hosts(), &[])?;
    let begins = |hosts: &[String]| progress.show(&VerifyEvent::Nccl(hosts.to_vec()));
    let stop = async move { drop(interrupts.changed().await) };
    let inventory = report.inventory.clone();
    let proven = tokio::select! {
        () = wait_for_interrupts(&mut again, 2) => None,
        proven = run_nccl_checks(connector, &inventory, works, &begins, stop) => Some(proven),
    };
    let is_stopped = *again.borrow() > 0;
    match proven {
        Some((results, figures)) if !is_stopped => {
            report.results.extend(results);
            report.nccl = figures;
            return Ok(None);
        }
        Some(_) => {
            progress.end();
            report::out::print_note(
                "NCCL's tests were ended on all hosts that answer, and on others their lease ends \
                 them; nothing of them stays there",
            );
        }
        None => {
            progress.end();
            report::out::print_note(LEFT_AT_ONCE);
        }
    }
    Ok(Some(Exit::Interrupted))
}

/// Proves the fabric.
pub async fn run(arguments: &VerifyArguments) -> Result<Exit, CommandFailure> {
    match &arguments.what {
        Some(VerifyCommand::Cabling(arguments)) => return verify_cabling::run(arguments).await,
        Some(VerifyCommand::Fabric(arguments)) => return verify_fabric::run(arguments).await,
        None => {}
    }
    let inventory = arguments
        .inventory
        .as_deref()
        .expect("the command line is refused without it");
    let contact = TargetContact::begin();
    let session = open_session(
        inventory,
        &SessionRequest::from_targets(contact).to_change_targets(),
    )?;
    let request = verification::build_verify_request(&session);
    check_hosts_to_prove(&session, request.hosts.is_empty())?;
    let tests = arguments
        .nccl
        .then(|| configure_nccl_tests(arguments, &session.inventory))
        .transpose()?;
    let connector = session.connector(contact)?;
    let progress = Proving::default();
    let mut report = verify_hosts(&*connector, &request, &|event| progress.show(&event)).await;
    if let Some(tests) = tests
        && let Some(exit) = run_nccl(&tests, &*connector, &mut report, &progress).await?
    {
        return Ok(exit);
    }
    progress.end();
    let text = if arguments.json {
        report::verify::render_verify_json(&report)
    } else {
        report::verify::render_verify_screen(&report)
    };
    report::out::print_result(&text);
    Ok(match report.conclusion() {
        CheckVerdict::Failed => Exit::Failed,
        CheckVerdict::Unknown | CheckVerdict::NotRun => Exit::Incomplete,
        CheckVerdict::Passed | CheckVerdict::Warning | CheckVerdict::NotApplicable => Exit::Done,
    })
}

/// Says which hosts are left out; an error where none is left.
fn check_hosts_to_prove(session: &Session, is_none: bool) -> Result<(), CommandFailure> {
    let (loaded, path) = (&session.inventory.loaded, &session.inventory.word);
    let without_ssh = loaded.without_ssh();
    let hosts = nodeset::fold_node_set(&without_ssh);
    if is_none && without_ssh.is_empty() {
        return Err(report_no_host(loaded.managed_switches().next().is_some(), path).into());
    }
    if is_none {
        return Err(report_nothing_to_prove(&hosts, path).into());
    }
    if !without_ssh.is_empty() {
        report::out::print_note(&format!(
            "left out, because they have no SSH: {}",
            one_line(&hosts, 200)
        ));
    }
    Ok(())
}
