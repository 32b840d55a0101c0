//! `railwright apply`.

use super::gate::Gate;
use super::inventory::Inventory;
use super::nccl::Nccl;
use super::pipeline::{self, Prepared};
use super::{Exit, Failure};
use super::{rollout, verification};
use railwright_apply::{self as apply, ApplyOutcome, Context, Ending, EventSink, Patience, Wished};
use railwright_base::Target;
use railwright_plan::{Node, Plan, Selection, UnknownFinding};
use railwright_report as report;
use railwright_report::apply::Besides;
use railwright_report::document::{self, RunDocument};
use railwright_system::clock::Clock;
use railwright_system::{signals, terminal};
use railwright_transport::{Secrets, TargetContact, connector};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Carry out a plan, or plan an inventory and carry that out
///
/// A saved plan is carried out exactly as it was reviewed: if the spec, the state or a host moved since, it is refused.
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
pub async fn run(arguments: &Apply) -> Result<Exit, Failure> {
    let contact = TargetContact::begin();
    let (prepared, plan) = chosen(arguments, contact).await?;
    if !arguments.plan.is_file() || !arguments.yes {
        let next = report::plan::Next { time: rollout::time(&prepared, &plan)?, ..Default::default() };
        report::out::note(&report::plan::screen(&plan, &next));
    }
    let left = pipeline::tell_left_open(&prepared)?;
    if !plan.has_work() {
        let held = plan.nodes.iter().filter(|node| node.held.is_some()).count();
        if !plan.refused.is_empty() {
            return Ok(Exit::Refused);
        }
        let outcome = ApplyOutcome::without_work(!plan.unknown.is_empty() || held > 0 || plan.has_outages());
        match arguments.json {
            true => report::out::print(&document::text(&RunDocument::of(&outcome))),
            false => report::apply::nothing_done(held, &plan, &prepared.inventory.word).iter().for_each(|text| report::out::print(text)),
        }
        return Ok(exit(outcome.ending));
    }
    // Nobody is asked for what would be refused.
    let closed = apply::refusal::of_windows(&plan, plan.nodes.iter(), Clock::Real.now(), "run the same command again");
    if let (false, Some(problem)) = (arguments.yes, closed) {
        return Err(Failure::refused(vec![problem]));
    }
    let nccl = Nccl::of_gate(&prepared.inventory)?;
    // What is only written down is no change that somebody would have to agree to.
    let changes = plan.nodes.iter().any(|node| node.held.is_none() && node.is_to_be_agreed());
    if changes && !arguments.yes && !terminal::confirm(&question(left)) {
        return Err(Failure::nobody_said_yes());
    }
    let patience = patience(arguments.parallel, arguments.reboot_limit);
    let context = context(&prepared, contact, prepared.secrets()?, patience, nccl);
    Ok(follow(&plan, &prepared.inventory, arguments.json, |sink| apply::apply(&plan, &context, sink)).await)
}

/// What is asked before anything is changed.
fn question(left: Option<String>) -> String {
    match left {
        None => "Carry this out? Only `yes` does it: ".to_owned(),
        Some(left) => format!("Carry this out although {left}? Only `yes` does it: "),
    }
}

/// The plan and the inventory that it belongs to.
async fn chosen(arguments: &Apply, contact: TargetContact) -> Result<(Prepared, Plan), Failure> {
    if arguments.plan.is_dir() {
        let prepared = pipeline::prepare_to_carry_out(&arguments.plan, contact)?;
        prepared.lawful()?;
        let selection = Selection { targets: prepared.named(&arguments.target)?, excludes: prepared.named(&arguments.exclude)? };
        let (plan, _) = pipeline::plan(&prepared, selection).await?;
        return Ok((prepared, plan));
    }
    // A plan that cannot be trusted is refused like a stale one.
    let plan = pipeline::read_plan(&arguments.plan).map_err(|failure| Failure { exit: Exit::Refused, ..failure })?;
    let prepared = pipeline::prepare_to_carry_out(Path::new(&plan.inventory.path), contact)?;
    prepared.may_carry(&plan)?;
    Ok((prepared, plan))
}

/// What a run needs besides its plan; `nccl` is what its gates ask for besides.
pub fn context(prepared: &Prepared, contact: TargetContact, secrets: Arc<Secrets>, patience: Patience, nccl: Option<Nccl>) -> Context {
    let connector = secrets.carried_by(connector(contact));
    let hosts = prepared.inventory.accesses().map(|access| (access.name.clone(), access)).collect();
    Context {
        folder: prepared.folder.clone(),
        connector: connector.clone(),
        secrets,
        hosts,
        nodes: prepared.inventory.loaded.hosts.iter().map(|host| (host.node.clone(), Target::host(&host.name))).collect(),
        gatekeeper: Arc::new(Gate::new(verification::request(prepared), connector, nccl)),
        spec_digest: Some(prepared.inventory.loaded.digest.clone()),
        wished: Some(Arc::new(Wished { wishes: prepared.desired.wishes.clone(), rollout: prepared.rollout() })),
        patience,
        clock: Clock::Real,
        interrupts: signals::interrupts(),
    }
}

/// How much at a time, and how long for a reboot.
pub fn patience(parallel: usize, reboot_limit_s: u64) -> Patience {
    Patience { parallel: parallel.max(1), reboot: Duration::from_secs(reboot_limit_s), ..Patience::default() }
}

/// Shows a run while it goes on, and what came of it.
pub async fn follow<F>(plan: &Plan, inventory: &Inventory, json: bool, start: impl FnOnce(EventSink) -> F) -> Exit
where
    F: Future<Output = ApplyOutcome>,
{
    let hosts = plan.nodes.iter().filter_map(|n| n.target.as_ref()).collect::<BTreeSet<_>>().len();
    let view = Arc::new(report::apply::View::new(hosts));
    let ticking = {
        let view = view.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                view.tick();
            }
        })
    };
    let sink = {
        let view = view.clone();
        Arc::new(move |event| view.show(&event))
    };
    let outcome = Box::pin(start(sink)).await;
    ticking.abort();
    view.end();
    if !outcome.problems.is_empty() {
        let look = report::out::Look::of_stderr();
        report::out::note(&report::diagnostic::text(&outcome.problems, &inventory.loaded.sources, look));
    }
    let unknown = not_looked_at(plan);
    // What the plan could not find out leaves a run incomplete whose steps were all done.
    let ending = if outcome.ending == Ending::Done && unknown > 0 { Ending::Incomplete } else { outcome.ending };
    let text = match json {
        true => document::text(&RunDocument::of(&ApplyOutcome { ending, ..outcome })),
        false => {
            let provable = inventory.loaded.reached().next().is_some();
            report::apply::summary(&outcome, ending, Besides { inventory: &inventory.word, unknown, provable })
        }
    };
    report::out::print(&text);
    exit(ending)
}

/// How much the plan could not find out and no step of it looks at again.
fn not_looked_at(plan: &Plan) -> usize {
    let members = plan.nodes.iter().flat_map(Node::members);
    let again = members.flat_map(|member| {
        member.differences.iter().map(|one| UnknownFinding::subject_of(&member.wish.address, &one.attribute, one.plane))
    });
    let again: BTreeSet<String> = again.collect();
    plan.refused.len() + plan.unknown.iter().filter(|finding| !again.contains(&finding.subject)).count()
}

fn exit(ending: Ending) -> Exit {
    match ending {
        Ending::Interrupted => Exit::Interrupted,
        Ending::Refused => Exit::Refused,
        Ending::Stopped => Exit::Stopped,
        Ending::Failed => Exit::Failed,
        Ending::Incomplete | Ending::Waiting => Exit::Incomplete,
        Ending::Done => Exit::Done,
    }
}
