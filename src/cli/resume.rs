//! `railwright resume`.

use super::apply::{build_apply_context, build_execution_options, follow_run};
use super::nccl::Nccl;
use super::pipeline::{self, PreparedInventory};
use super::{CommandFailure, Exit};
use railwright_apply::{self as apply, Decisions};
use railwright_base::{Address, Diagnostic};
use railwright_report as report;
use railwright_transport::TargetContact;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Go on with a run that was interrupted or stopped, or that waits for power cycles by hand
///
/// Every step without an outcome is looked at first: as wished is done, as before is done again. A
/// power cycle that somebody made is proven, and what comes after it on the host is carried out.
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
    let prepared = pipeline::prepare_to_carry_out(&arguments.inventory, contact)?;
    let decisions = Decisions {
        redo: parse_addresses(&prepared, &arguments.redo)?,
        accept: parse_addresses(&prepared, &arguments.accept)?,
    };
    let nccl = Nccl::of_gate(&prepared.inventory)?;
    let patience = build_execution_options(arguments.parallel, arguments.reboot_limit);
    let context = build_apply_context(&prepared, contact, prepared.secrets()?, patience, nccl);
    let Some(run) = prepared.folder.newest_run()? else {
        return Err(CommandFailure::refused(vec![
            Diagnostic::error("RW1014", "there is no run to resume")
                .state("nothing was changed")
                .next(format!(
                    "railwright plan {} shows what is to be done",
                    prepared.inventory.word
                )),
        ]));
    };
    let plan = prepared.folder.read_plan(&run)?;
    prepared.may_carry(&plan)?;
    if plan.spec_digest != prepared.inventory.loaded.digest {
        report::out::print_note(&report::diagnostic::render_diagnostics(
            &[report_changed_spec(&prepared, &run)],
            &Default::default(),
            report::out::ScreenStyle::of_stderr(),
        ));
    }
    Ok(
        follow_run(&plan, &prepared.inventory, arguments.json, |sink| {
            apply::resume_run(&context, decisions, sink)
        })
        .await,
    )
}

/// The steps are what was reviewed; the checks of the gates, and when steps may begin, are what the
/// spec says now.
fn report_changed_spec(prepared: &PreparedInventory, run: &str) -> Diagnostic {
    let inventory = &prepared.inventory.word;
    Diagnostic::warning(
        "RW0644",
        format!("the spec was changed since the plan of run {run} was made"),
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
    prepared: &PreparedInventory,
    texts: &[String],
) -> Result<BTreeSet<Address>, CommandFailure> {
    let whole = |text: String| {
        text.parse().map_err(|error| {
            let what = format!(
                "{} is no resource: {error}",
                railwright_base::text::one_line(&text, 80)
            );
            Diagnostic::error("RW1011", what)
                .state("nothing was changed")
                .into()
        })
    };
    prepared.named(texts)?.into_iter().map(whole).collect()
}
