//! `railwright plan`.

use super::session::{check_rules, make_plan, open_session, print_open_run};
use super::subject::resolve_reached_addresses;
use super::{CommandFailure, Exit, output, plan_file, rollout};
use railwright_base::quote;
use railwright_plan::{Plan, PlanNode, PlanSelection};
use railwright_report as report;
use railwright_session::{Inventory, ObservationSource, SessionRequest, SigningKeys};
use railwright_transport::TargetContact;
use std::path::PathBuf;

/// Show every step between the cluster as it is and the cluster as written
///
/// Reads the hosts (or a recorded observation), changes nothing, takes no lock.
#[derive(Debug, clap::Args)]
pub struct PlanArguments {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Write the plan to this file, for `show` and `apply`
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Plan from an observation that `facts` recorded, with no connection at all
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,
    /// Read the hosts as this user, who needs no rights but those that `sudoers` prints; what only
    /// root may see is unknown
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name, conflicts_with = "observations")]
    pub read_as: Option<String>,
    /// Only this target or resource and what it needs: host/gpu-001, 'gpu-[001-004] link ens4'
    #[arg(long, value_name = "ADDRESS")]
    pub target: Vec<String>,
    /// Not this target or resource, nor what needs it
    #[arg(long, value_name = "ADDRESS")]
    pub exclude: Vec<String>,
    /// Exit with 2 when there are changes
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// Makes and shows a plan.
pub async fn run(arguments: &PlanArguments) -> Result<Exit, CommandFailure> {
    output::can_be_written(&arguments.output)?;
    let source = match &arguments.observations {
        Some(file) => ObservationSource::Recorded(file.clone()),
        None => ObservationSource::Live(TargetContact::begin()),
    };
    let session = open_session(
        &arguments.inventory,
        &SessionRequest::new(source).with_keys(SigningKeys::WhereAStepNeedsThem),
    )?
    .read_as(arguments.read_as.clone());
    check_rules(&session)?;
    let selection = PlanSelection {
        targets: resolve_reached_addresses(&session, &arguments.target)?,
        excludes: resolve_reached_addresses(&session, &arguments.exclude)?,
    };
    let plan = make_plan(&session, selection).await?;
    let written = match &arguments.output {
        Some(file) => plan_file::write_plan(file, &plan),
        None => Ok(()),
    };
    if arguments.json {
        report::out::print_result(&report::document::render_json_document(&plan));
    } else {
        let next = report::plan::PlanNextSteps {
            file: match &arguments.output {
                Some(file) if written.is_ok() => Some(quote::quote_path(file)),
                _ => None,
            },
            inventory: quote::quote_path(&arguments.inventory),
            time: rollout::render_time_estimate(&session, &plan)?,
        };
        report::out::print_result(&report::plan::render_plan_screen(&plan, &next));
    }
    written?;
    print_open_run(&session)?;
    Ok(exit_from_plan(&plan, arguments.detailed_exitcode))
}

fn exit_from_plan(plan: &Plan, is_detailed: bool) -> Exit {
    if !plan.refused.is_empty() {
        return Exit::Refused;
    }
    if is_detailed && plan.nodes.iter().any(PlanNode::is_to_be_agreed) {
        return Exit::Changes;
    }
    let has_blocked = plan.nodes.iter().any(|node| node.blocked.is_some());
    if !plan.unknown.is_empty() || plan.has_outages() || has_blocked {
        return Exit::Incomplete;
    }
    Exit::Done
}
