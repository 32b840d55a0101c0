//! `railwright resume`.

use super::apply::{build_apply_context, build_execution_options, follow_run};
use super::nccl::Nccl;
use super::session::open_session;
use super::subject::resolve_reached_addresses;
use super::{CommandFailure, Exit};
use railwright_apply::{self as apply, Decisions};
use railwright_base::{Address, Diagnostic};
use railwright_knowledge::spec::Sources;
use railwright_report::diagnostic::print_diagnostics;
use railwright_session::{Session, SessionRequest};
use railwright_transport::TargetContact;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Go on with a run that was interrupted or stopped, or that waits for power cycles by hand
///
/// Every step without an outcome is looked at first: in sync is done, as before is done again. A
/// power cycle that somebody made is checked, and what comes after it on the host is applied.
#[derive(Debug, clap::Args)]
pub struct Resume {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Do this resource again although nobody knows whether it took effect
    #[arg(long, value_name = "ADDRESS")]
    pub redo: Vec<String>,
    /// Take this resource as done, as it is now
    #[arg(long, value_name = "ADDRESS")]
    pub accept: Vec<String>,
    /// Steps at the same time
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub parallel: usize,
    /// Seconds that a host may take to come back from a reboot
    #[arg(long, value_name = "S", default_value_t = 1200)]
    pub reboot_limit: u64,
    /// Print what came of it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Goes on with the newest run.
pub async fn run(arguments: &Resume) -> Result<Exit, CommandFailure> {
    let contact = TargetContact::begin();
    let session = open_session(&arguments.inventory, &SessionRequest::to_apply(contact))?;
    let decisions = Decisions {
        redo: parse_addresses(&session, &arguments.redo)?,
        accept: parse_addresses(&session, &arguments.accept)?,
    };
    let nccl = Nccl::of_gate(&session.inventory)?;
    let patience = build_execution_options(arguments.parallel, arguments.reboot_limit);
    let context = build_apply_context(&session, contact, session.secrets()?, patience, nccl);
    let Some(run) = session.folder.newest_run()? else {
        return Err(CommandFailure::refused(vec![
            Diagnostic::error("RW1014", "there is no run to resume")
                .state("nothing was changed")
                .next(format!(
                    "railwright plan {} shows what is to be done",
                    session.inventory.word
                )),
        ]));
    };
    let plan = session.folder.read_plan(&run)?;
    session.check_plan_keys(&plan)?;
    if plan.spec_digest != session.inventory.loaded.digest
        || plan.modules != session.desired.digests
    {
        print_diagnostics(&[report_changed_spec(&session, &run)], &Sources::default());
    }
    Ok(
        follow_run(&plan, &session.inventory, arguments.json, |sink| {
            apply::resume_run(&context, decisions, sink)
        })
        .await,
    )
}

/// The steps are what was reviewed; the checks of the gates, and when steps may begin, are what the
/// spec says now.
fn report_changed_spec(session: &Session, run: &str) -> Diagnostic {
    let inventory = &session.inventory.word;
    Diagnostic::warning(
        "RW0644",
        format!("the spec or a module was changed since the plan of run {run} was made"),
    )
    .on(inventory.clone())
    .effect(
        "the steps that are left bring what the spec said then; gates check, and windows open, by \
         what it says now",
    )
    .state("nothing was changed yet")
    .next(format!(
        "to bring what the spec says now instead: railwright apply {inventory}"
    ))
}

fn parse_addresses(
    session: &Session,
    texts: &[String],
) -> Result<BTreeSet<Address>, CommandFailure> {
    let mut addresses = BTreeSet::new();
    for text in resolve_reached_addresses(session, texts)? {
        let address = text.parse::<Address>().map_err(|error| {
            let shown = railwright_base::text::one_line(&text, 80);
            Diagnostic::error("RW1011", format!("{shown} is no resource: {error}"))
                .state("nothing was changed")
        })?;
        addresses.insert(address);
    }
    Ok(addresses)
}
