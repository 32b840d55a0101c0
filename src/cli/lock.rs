//! `railwright lock`.

use super::pipeline::{self, Source};
use super::{Exit, Failure, secrets};
use railwright_apply::locks::{self, Stolen};
use railwright_apply::{Context, Patience};
use railwright_base::{Diagnostic, TargetKind, nodeset, quote};
use railwright_report as report;
use railwright_state::LocalLock;
use railwright_transport::TargetContact;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The locks of a cluster: who has them, and taking them away from the dead
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the lock on this side and those on the hosts, with who has them and when that one was last seen alive
    List {
        /// The inventory
        inventory: PathBuf,
    },
    /// Take locks away from a run that is dead, here and on the hosts
    ///
    /// The holder cannot go on with them: a higher fencing number is left on each host, and its journal is closed to it.
    /// What was taken away, and why, is journalled where this folder has begun a run.
    Steal {
        /// The inventory
        inventory: PathBuf,
        /// Why; whoever reads the journal later sees it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Only on these hosts, a node-set; all unless said
        #[arg(long, value_name = "HOSTS")]
        host: Option<String>,
        /// Also from holders that were seen alive not long ago
        #[arg(long)]
        force: bool,
    },
}

/// Shows locks or takes them away.
pub async fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::List { inventory } => list(inventory).await,
        Command::Steal { inventory, reason, host, force } => steal(inventory, reason, host.as_deref(), *force).await,
    }
}

async fn list(inventory: &std::path::Path) -> Result<Exit, Failure> {
    let contact = TargetContact::begin();
    let prepared = pipeline::prepare(inventory, &Source::Live(contact))?;
    let context = context(&prepared, contact);
    let here = LocalLock::read(&prepared.folder)?;
    let hosts: Vec<String> = context.hosts.keys().cloned().collect();
    let found = locks::list(&hosts, &context).await;
    let incomplete = found.values().any(|lock| matches!(lock, locks::HostLock::Unknown { .. }));
    report::out::print(&report::locks::list(here.as_ref(), &shown(found, &context)));
    Ok(if incomplete { Exit::Incomplete } else { Exit::Done })
}

async fn steal(inventory: &std::path::Path, reason: &str, host: Option<&str>, force: bool) -> Result<Exit, Failure> {
    if reason.trim().is_empty() {
        let problem = Diagnostic::error("RW1019", "a lock is not taken away without a reason").state("nothing was taken away");
        return Err(Failure::refused(vec![problem.next("say in --reason why its holder is dead, or may be robbed")]));
    }
    let contact = TargetContact::begin();
    let prepared = pipeline::prepare_to_act(inventory, contact)?;
    let context = context(&prepared, contact);
    let hosts = match host {
        None => context.hosts.keys().cloned().collect(),
        Some(set) => wanted(set, &context, &prepared)?,
    };
    let stolen = locks::steal(&hosts, reason, force, &context).await.map_err(Failure::refused)?;
    let any = |wanted: fn(&Stolen) -> bool| stolen.values().any(wanted);
    let (young, unknown) = (any(|one| matches!(one, Stolen::Young(_))), any(|one| matches!(one, Stolen::Unknown { .. })));
    report::out::print(&report::locks::stolen(&shown(stolen, &context), &quote::path(inventory)));
    Ok(match (young, unknown) {
        (true, _) => Exit::Refused,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Done,
    })
}

/// By the names that screens have: a host's own, a cluster's with what it is.
fn shown<T>(found: BTreeMap<String, T>, context: &Context) -> BTreeMap<String, T> {
    let name = |name: String| match context.target(&name) {
        cluster if cluster.kind == TargetKind::Kube => cluster.to_string(),
        _ => name,
    };
    found.into_iter().map(|(of, one)| (name(of), one)).collect()
}

fn wanted(set: &str, context: &Context, prepared: &pipeline::Prepared) -> Result<Vec<String>, Failure> {
    let wrong = |why: String| {
        Diagnostic::error("RW1011", format!("{} names no hosts: {why}", railwright_base::text::one_line(set, 80)))
            .state("nothing was taken away")
            .next(super::cables::hosts_to_name(context.hosts.keys().map(String::as_str)))
    };
    let names = nodeset::expand(set).map_err(|error| wrong(error.to_string()))?;
    match names.iter().find(|name| !context.hosts.contains_key(*name)) {
        Some(apart) if prepared.inventory.loaded.host(apart).is_some() => Err(pipeline::no_ssh(apart, &prepared.inventory.word).into()),
        Some(unknown) => Err(wrong(format!("{unknown} is not in the inventory")).into()),
        None => Ok(names),
    }
}

/// Of secrets only the passwords of switches: a lock holds none.
fn context(prepared: &pipeline::Prepared, contact: TargetContact) -> Context {
    super::apply::context(prepared, contact, secrets::passwords(&prepared.inventory, contact), Patience::default(), None)
}
