//! `railwright show`.

use super::subject::{self, KnownSubjects};
use super::{CommandFailure, Exit, plan_file};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Target};
use railwright_plan::Plan;
use railwright_report as report;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Show a plan file, anywhere, with no credentials
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The plan file
    pub plan: PathBuf,
    /// One target or resource in full: host/gpu-001/link/ens4, or as the plan prints it: gpu-001
    /// link ens4
    pub address: Vec<String>,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows a plan file.
pub fn run(arguments: &Show) -> Result<Exit, CommandFailure> {
    let plan = plan_file::read_plan(&arguments.plan)?;
    let file = arguments.plan.display().to_string();
    let subject = arguments.address.join(" ");
    let text = match subject.as_str() {
        _ if arguments.json => report::document::render_json_document(&plan),
        "" => report::plan::render_plan_screen(
            &plan,
            &report::plan::PlanNextSteps {
                file: Some(file),
                ..Default::default()
            },
        ),
        subject => {
            report::plan::render_plan_details(&plan, &resolve_plan_addresses(&plan, subject)?)
                .ok_or_else(|| {
                    Diagnostic::error(
                        "RW0306",
                        format!("{file} has no step for {}", one_line(subject, 80)),
                    )
                    .state("nothing was changed")
                    .next(format!("railwright show {file}"))
                })?
        }
    };
    report::out::print_result(&text);
    Ok(Exit::Done)
}

/// The addresses that a text stands for in this plan.
fn resolve_plan_addresses(plan: &Plan, text: &str) -> Result<Vec<String>, CommandFailure> {
    let targets: BTreeSet<Target> = plan
        .nodes
        .iter()
        .filter_map(|node| node.target.clone())
        .collect();
    let targets: Vec<Target> = targets.into_iter().collect();
    subject::resolve_subjects(
        &[text.to_owned()],
        &KnownSubjects {
            targets: &targets,
            resources: &|| Ok(list_plan_resources(plan)),
        },
    )
}

fn list_plan_resources(plan: &Plan) -> BTreeSet<String> {
    let members = plan.nodes.iter().flat_map(|node| node.members());
    let addresses = members.map(|member| member.resource.address.to_string());
    addresses.collect()
}
