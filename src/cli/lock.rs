//! `railwright lock`.

use super::session::open_session;
use super::subject::report_host_without_ssh;
use super::{CommandFailure, Exit};
use railwright_apply::lock_steal::{self, Stolen};
use railwright_apply::{Context, ExecutionOptions};
use railwright_base::{Diagnostic, TargetKind, nodeset, quote};
use railwright_report as report;
use railwright_session::{Session, SessionRequest, secrets};
use railwright_state::LocalLock;
use railwright_transport::TargetContact;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The locks of a cluster: who has them, and taking them away from the dead
#[derive(Debug, clap::Args)]
pub struct LockArguments {
    #[command(subcommand)]
    command: LockCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LockCommand {
    /// Show the lock on this side and those on the hosts, with who has them and when that one was
    /// last seen alive
    List {
        /// The inventory
        inventory: PathBuf,
    },
    /// Take locks away from a run that is dead, here and on the hosts
    ///
    /// The holder cannot go on with them: a higher fencing number is left on each host, and its
    /// journal is closed to it. What was taken away, and why, is journalled where this folder has
    /// begun a run.
    Steal {
        /// The inventory
        inventory: PathBuf,
        /// Why; whoever reads the journal later sees it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Only on these hosts, a node-set; all by default
        #[arg(long, value_name = "HOSTS")]
        host: Option<String>,
        /// Also from holders that were seen alive not long ago
        #[arg(long)]
        force: bool,
    },
}

/// Shows locks or takes them away.
pub async fn run(arguments: &LockArguments) -> Result<Exit, CommandFailure> {
    match &arguments.command {
        LockCommand::List { inventory } => run_lock_list(inventory).await,
        LockCommand::Steal {
            inventory,
            reason,
            host,
            force,
        } => run_lock_steal(inventory, reason, host.as_deref(), *force).await,
    }
}

async fn run_lock_list(inventory: &std::path::Path) -> Result<Exit, CommandFailure> {
    let contact = TargetContact::begin();
    let session = open_session(inventory, &SessionRequest::from_targets(contact))?;
    let context = build_lock_context(&session, contact);
    let here = LocalLock::read(&session.folder)?;
    let hosts: Vec<String> = context.hosts.keys().cloned().collect();
    let found = lock_steal::list_host_locks(&hosts, &context).await;
    let incomplete = found
        .values()
        .any(|lock| matches!(lock, lock_steal::HostLock::Unknown { .. }));
    report::out::print_result(&report::locks::render_lock_list(
        here.as_ref(),
        &key_by_display_name(found, &context),
    ));
    Ok(if incomplete {
        Exit::Incomplete
    } else {
        Exit::Done
    })
}

async fn run_lock_steal(
    inventory: &std::path::Path,
    reason: &str,
    host: Option<&str>,
    force: bool,
) -> Result<Exit, CommandFailure> {
    if reason.trim().is_empty() {
        let problem = Diagnostic::error("RW1019", "a lock is not taken away without a reason")
            .state("nothing was taken away");
        return Err(CommandFailure::refused(vec![
            problem.next("say in --reason why its holder is dead, or may lose it"),
        ]));
    }
    let contact = TargetContact::begin();
    let session = open_session(
        inventory,
        &SessionRequest::from_targets(contact).to_change_targets(),
    )?;
    let context = build_lock_context(&session, contact);
    let hosts = match host {
        None => context.hosts.keys().cloned().collect(),
        Some(set) => expand_lock_hosts(set, &context, &session)?,
    };
    let stolen = lock_steal::steal_locks(&hosts, reason, force, &context)
        .await
        .map_err(CommandFailure::refused)?;
    let mut outcomes = stolen.values();
    let may_be_alive = outcomes.any(|outcome| matches!(outcome, Stolen::MayBeAlive(_)));
    let mut outcomes = stolen.values();
    let has_unknown = outcomes.any(|outcome| matches!(outcome, Stolen::Unknown { .. }));
    report::out::print_result(&report::locks::render_steal_outcomes(
        &key_by_display_name(stolen, &context),
        &quote::quote_path(inventory),
    ));
    Ok(match (may_be_alive, has_unknown) {
        (true, _) => Exit::Refused,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Done,
    })
}

/// By the names that screens have: a host's own, a cluster's with what it is.
fn key_by_display_name<T>(found: BTreeMap<String, T>, context: &Context) -> BTreeMap<String, T> {
    let mut by_display_name = BTreeMap::new();
    for (name, value) in found {
        let target = context.target(&name);
        let is_cluster = target.kind == TargetKind::Kube;
        by_display_name.insert(if is_cluster { target.to_string() } else { name }, value);
    }
    by_display_name
}

fn expand_lock_hosts(
    set: &str,
    context: &Context,
    session: &Session,
) -> Result<Vec<String>, CommandFailure> {
    let names = nodeset::expand_node_set(set)
        .map_err(|error| report_no_lock_hosts(set, context, &error.to_string()))?;
    for name in &names {
        if context.hosts.contains_key(name) {
            continue;
        }
        if session.inventory.loaded.host(name).is_some() {
            return Err(report_host_without_ssh(name, &session.inventory.word).into());
        }
        let why = format!("{name} is not in the inventory");
        return Err(report_no_lock_hosts(set, context, &why).into());
    }
    Ok(names)
}

fn report_no_lock_hosts(set: &str, context: &Context, why: &str) -> Diagnostic {
    let shown = railwright_base::text::one_line(set, 80);
    Diagnostic::error("RW1011", format!("{shown} names no hosts: {why}"))
        .state("nothing was taken away")
        .next(super::cables::hosts_to_name(
            context.hosts.keys().map(String::as_str),
        ))
}

/// Of secrets only the passwords of switches: a lock holds none.
fn build_lock_context(session: &Session, contact: TargetContact) -> Context {
    super::apply::build_apply_context(
        session,
        contact,
        secrets::read_switch_passwords(&session.inventory, contact),
        ExecutionOptions::default(),
        None,
    )
}
