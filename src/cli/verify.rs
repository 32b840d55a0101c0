//! `railwright verify`.

use super::pipeline;
use super::verification;
use super::verify_cabling::{self, VerifyCabling};
use super::verify_fabric::{self, VerifyFabric};
use super::{Exit, Failure};
use crate::base::text::one_line;
use crate::base::{Diagnostic, nodeset};
use crate::report;
use crate::verify::{Verdict, verify};
use std::path::PathBuf;

/// Prove the fabric: drivers, links, GIDs, path MTU, marks, and a matrix of real RDMA traffic
///
/// Starts short test traffic between hosts, one pair a host at a time; the hosts themselves end it even if we die.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Verify {
    #[command(subcommand)]
    what: Option<What>,
    /// The inventory: a folder of YAML files
    #[arg(required = true)]
    pub inventory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is looked at without traffic. A folder of such a name is `./cabling`, `./fabric`.
#[derive(Debug, clap::Subcommand)]
enum What {
    Cabling(VerifyCabling),
    Fabric(VerifyFabric),
}

fn nothing_to_prove(hosts: &str, inventory: &str) -> Diagnostic {
    Diagnostic::error("RW1042", format!("no host can be proven: {} have no SSH", one_line(hosts, 80)))
        .effect("test traffic is started on hosts over SSH, and nothing is started in pods")
        .state("nothing was started")
        .next(format!("railwright drift {inventory} tells what their cluster says of their devices"))
        .next("traffic between nodes is proven by a job of the cluster: `ib_write_bw` or nccl-tests in two pods")
}

/// Proves the fabric.
pub async fn run(arguments: &Verify) -> Result<Exit, Failure> {
    match &arguments.what {
        Some(What::Cabling(arguments)) => return verify_cabling::run(arguments).await,
        Some(What::Fabric(arguments)) => return verify_fabric::run(arguments).await,
        None => {}
    }
    let inventory = arguments.inventory.as_deref().expect("the command line is refused without it");
    let prepared = pipeline::prepare_to_act(inventory)?;
    let request = verification::request(&prepared);
    let without_ssh = prepared.inventory.loaded.without_ssh();
    if !without_ssh.is_empty() {
        let hosts = nodeset::fold(&without_ssh);
        if request.hosts.is_empty() {
            return Err(nothing_to_prove(&hosts, &prepared.inventory.path).into());
        }
        report::out::note(&format!("left out, because they have no SSH: {}", one_line(&hosts, 200)));
    }
    let connector = prepared.connector()?;
    let progress = report::progress::Proving::default();
    let report = verify(&*connector, &request, &|event| progress.show(&event)).await;
    progress.end();
    let text = if arguments.json { report::verify::json(&report) } else { report::verify::screen(&report) };
    report::out::print(&text);
    Ok(match report.verdict() {
        Verdict::Failed => Exit::Failed,
        Verdict::Unknown => Exit::Incomplete,
        Verdict::Passed | Verdict::NotRun | Verdict::Warning | Verdict::NotApplicable => Exit::Done,
    })
}
