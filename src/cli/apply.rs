//! `railwright apply`.

use super::nccl::Nccl;
use super::rollout_gate::Gate;
use super::session::{check_rules, make_plan, open_session, print_open_run};
use super::subject::resolve_reached_addresses;
use super::{CommandFailure, Exit, plan_file, rollout, verification};
use railwright_apply::{
    self as apply, ApplyOutcome, Context, DesiredSpec, EventSink, ExecutionOptions, RunExitClass,
};
use railwright_base::Target;
use railwright_plan::{ClusterNodes, Plan, PlanNode, PlanSelection, UnknownFinding};
use railwright_report as report;
use railwright_report::apply::{Besides, RunView};
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::document::{self, ApplyRunDocument};
use railwright_session::{Inventory, Session, SessionRequest};
use railwright_system::clock::Clock;
use railwright_system::{signals, terminal};
use railwright_transport::{Secrets, TargetContact, new_connector};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Apply a plan, or plan an inventory and apply that
///
/// A saved plan is applied exactly as it was reviewed: if the spec, the state or a host moved
/// since, it is refused.
#[derive(Debug, clap::Args)]
pub struct Apply {
    /// A plan file, or an inventory (a folder) to plan and apply in one go
    pub plan: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// With an inventory: only this target or resource and what it needs
    #[arg(long, value_name = "ADDRESS")]
    pub target: Vec<String>,
    /// With an inventory: not this target or resource, nor what needs it
    #[arg(long, value_name = "ADDRESS")]
    pub exclude: Vec<String>,
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

/// Carries out a plan.
pub async fn run(arguments: &Apply) -> Result<Exit, CommandFailure> {
    let contact = TargetContact::begin();
    let (session, plan) = load_plan_and_inventory(arguments, contact).await?;
    if !arguments.plan.is_file() || !arguments.yes {
        let next = report::plan::PlanNextSteps {
            time: rollout::render_time_estimate(&session, &plan)?,
            ..Default::default()
        };
        report::out::print_note(&report::plan::render_plan_screen(&plan, &next));
    }
    let left = print_open_run(&session)?;
    if !plan.has_work() {
        return Ok(end_without_work(&plan, &session, arguments.json));
    }
    // Nobody is asked for what would be refused.
    let closed = apply::plan_validity::check_windows(
        &plan,
        plan.nodes.iter(),
        Clock::Real.now(),
        "run the same command again",
    );
    if let (false, Some(problem)) = (arguments.yes, closed) {
        return Err(CommandFailure::refused(vec![problem]));
    }
    let nccl = Nccl::of_gate(&session.inventory)?;
    // What is only written down is no change that somebody would have to agree to.
    let changes = plan
        .nodes
        .iter()
        .any(|node| node.blocked.is_none() && node.is_to_be_agreed());
    if changes && !arguments.yes && !terminal::ask_confirmation(&format_confirmation_prompt(left)) {
        return Err(CommandFailure::nobody_said_yes());
    }
    let patience = build_execution_options(arguments.parallel, arguments.reboot_limit);
    let context = build_apply_context(&session, contact, session.secrets()?, patience, nccl);
    Ok(
        follow_run(&plan, &session.inventory, arguments.json, |sink| {
            apply::apply_plan(&plan, &context, sink)
        })
        .await,
    )
}

/// Prints why nothing is done.
fn end_without_work(plan: &Plan, session: &Session, json: bool) -> Exit {
    if !plan.refused.is_empty() {
        return Exit::Refused;
    }
    let blocked = plan
        .nodes
        .iter()
        .filter(|node| node.blocked.is_some())
        .count();
    let is_incomplete = !plan.unknown.is_empty() || blocked > 0 || plan.has_outages();
    let outcome = ApplyOutcome::without_work(is_incomplete);
    if json {
        let document = ApplyRunDocument::of(&outcome);
        report::out::print_result(&document::render_json_document(&document));
    } else if let Some(text) = report::apply::nothing_done(blocked, plan, &session.inventory.word) {
        report::out::print_result(&text);
    }
    exit_from_run_class(outcome.ending)
}

/// What is asked before anything is changed.
fn format_confirmation_prompt(left: Option<String>) -> String {
    match left {
        None => "Apply this? Only `yes` does it: ".to_owned(),
        Some(left) => format!("Apply this although {left}? Only `yes` does it: "),
    }
}

/// The plan and the inventory that it belongs to.
async fn load_plan_and_inventory(
    arguments: &Apply,
    contact: TargetContact,
) -> Result<(Session, Plan), CommandFailure> {
    if arguments.plan.is_dir() {
        let session = open_session(&arguments.plan, &SessionRequest::to_apply(contact))?;
        check_rules(&session)?;
        let selection = PlanSelection {
            targets: resolve_reached_addresses(&session, &arguments.target)?,
            excludes: resolve_reached_addresses(&session, &arguments.exclude)?,
        };
        let plan = make_plan(&session, selection).await?;
        return Ok((session, plan));
    }
    // A plan that cannot be trusted is refused like a stale one.
    let plan = plan_file::read_plan(&arguments.plan).map_err(|failure| CommandFailure {
        exit: Exit::Refused,
        ..failure
    })?;
    let session = open_session(
        Path::new(&plan.inventory.path),
        &SessionRequest::to_apply(contact),
    )?;
    session.check_plan_keys(&plan)?;
    Ok((session, plan))
}

/// What a run needs besides its plan; `nccl` is what its gates ask for besides.
pub fn build_apply_context(
    session: &Session,
    contact: TargetContact,
    secrets: Arc<Secrets>,
    patience: ExecutionOptions,
    nccl: Option<Nccl>,
) -> Context {
    let connector = secrets.carried_by(new_connector(contact));
    let hosts = session
        .inventory
        .accesses()
        .map(|access| (access.name.clone(), access))
        .collect();
    Context {
        folder: session.folder.clone(),
        connector: connector.clone(),
        secrets,
        hosts,
        without_ssh: session
            .inventory
            .loaded
            .without_ssh()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        nodes: ClusterNodes::of(&session.inventory.loaded)
            .into_iter()
            .flat_map(|nodes| nodes.by_host)
            .map(|(host, node)| (node, host))
            .collect(),
        gatekeeper: Arc::new(Gate::new(
            verification::build_verify_request(session),
            connector,
            nccl,
        )),
        spec_digest: Some(session.inventory.loaded.digest.clone()),
        desired: Some(Arc::new(DesiredSpec {
            resources: session.desired.resources.clone(),
            rollout: session.rollout(),
            modules: session.desired.digests.clone(),
            proof: session.proof(),
        })),
        patience,
        clock: Clock::Real,
        interrupts: signals::watch_interrupts(),
    }
}

/// How much at a time, and how long for a reboot.
pub fn build_execution_options(parallel: usize, reboot_limit_s: u64) -> ExecutionOptions {
    ExecutionOptions {
        parallel: parallel.max(1),
        reboot: Duration::from_secs(reboot_limit_s),
        ..ExecutionOptions::default()
    }
}

/// Shows a run while it goes on, and what came of it.
pub async fn follow_run<F>(
    plan: &Plan,
    inventory: &Inventory,
    json: bool,
    start: impl FnOnce(EventSink) -> F,
) -> Exit
where
    F: Future<Output = ApplyOutcome>,
{
    let outcome = run_with_view(plan, start).await;
    print_diagnostics(&outcome.problems, &inventory.loaded.sources);
    let unknown = count_unread(plan);
    // What the plan could not find out leaves a run incomplete whose steps were all done.
    let ending = if outcome.ending == RunExitClass::Done && unknown > 0 {
        RunExitClass::Incomplete
    } else {
        outcome.ending
    };
    let text = match json {
        true => document::render_json_document(&ApplyRunDocument::of(&ApplyOutcome {
            ending,
            ..outcome
        })),
        false => {
            let provable = inventory.loaded.reached().next().is_some();
            report::apply::render_run_summary(
                &outcome,
                ending,
                Besides {
                    inventory: &inventory.word,
                    unknown,
                    provable,
                },
            )
        }
    };
    report::out::print_result(&text);
    exit_from_run_class(ending)
}

/// Shows the events of a run, and the time that it takes, until it ends.
async fn run_with_view<F>(plan: &Plan, start: impl FnOnce(EventSink) -> F) -> ApplyOutcome
where
    F: Future<Output = ApplyOutcome>,
{
    let targets: BTreeSet<&Target> = plan
        .nodes
        .iter()
        .filter_map(|node| node.target.as_ref())
        .collect();
    let view = Arc::new(RunView::new(targets.len()));
    let ticking = tokio::spawn(tick_every_second(view.clone()));
    let sink = {
        let view = view.clone();
        Arc::new(move |event| view.show(&event))
    };
    let outcome = Box::pin(start(sink)).await;
    ticking.abort();
    view.end();
    outcome
}

async fn tick_every_second(view: Arc<RunView>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        view.tick();
    }
}

/// How much the plan could not find out and no step of it looks at again.
fn count_unread(plan: &Plan) -> usize {
    let members = plan.nodes.iter().flat_map(PlanNode::members);
    let again = members.flat_map(|member| {
        member.differences.iter().map(|one| {
            UnknownFinding::subject_of(&member.resource.address, &one.attribute, one.plane)
        })
    });
    let again: BTreeSet<String> = again.collect();
    plan.refused.len()
        + plan
            .unknown
            .iter()
            .filter(|finding| !again.contains(&finding.subject))
            .count()
}

fn exit_from_run_class(ending: RunExitClass) -> Exit {
    match ending {
        RunExitClass::Interrupted => Exit::Interrupted,
        RunExitClass::Refused => Exit::Refused,
        RunExitClass::Stopped => Exit::Stopped,
        RunExitClass::Failed => Exit::Failed,
        RunExitClass::Incomplete | RunExitClass::Waiting => Exit::Incomplete,
        RunExitClass::Done => Exit::Done,
    }
}
