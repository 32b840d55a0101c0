//! `railwright state`.

use super::session::{observe_targets, open_session};
use super::subject::resolve_reached_addresses;
use super::subject::{self, KnownSubjects};
use super::{CommandFailure, Exit};
use railwright_apply as apply;
use railwright_apply::target_take_over::{TakeOverDecision, TakenOver};
use railwright_base::text::{clean_line, one_line};
use railwright_base::{Address, Diagnostic, Target, nodeset, quote};
use railwright_knowledge::spec::Sources;
use railwright_plan::{AppliedResource, Outages};
use railwright_report as report;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::document::{self, StateDocument};
use railwright_session::{SessionRequest, read_inventory, secrets};
use railwright_state::{ClusterLock, ClusterState, IdentityConflict, StateFolder, listing};
use railwright_transport::TargetContact;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What railwright remembers: what was last applied, and what was there before
#[derive(Debug, clap::Args)]
pub struct StateArguments {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StateCommand {
    /// List the resources that were applied, one a line
    List {
        /// The inventory
        inventory: PathBuf,
        /// Only below these targets or resources
        under: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one resource in full, as JSON
    Show {
        /// The inventory
        inventory: PathBuf,
        /// The resource: host/gpu-001/link/ens4, or as the screens print it: gpu-001 link ens4
        #[arg(required = true)]
        address: Vec<String>,
    },
    /// Take hosts as in service that a run left out of it, whatever a gate says; the hosts are left
    /// as they are
    ///
    /// They count in the budget of every run until a gate passes them, which the next apply asks
    /// before anything else. Who decided otherwise, and why, is journalled.
    ReturnToService {
        /// The inventory
        inventory: PathBuf,
        /// The hosts, a node-set: gpu-001, 'gpu-[001-004]'
        hosts: String,
        /// Why; whoever reads the journal later sees it
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Drop the memory of resources; the targets are left as they are
    Forget {
        /// The inventory
        inventory: PathBuf,
        /// The resources; as the screens print them in quotes: 'gpu-[001-004] link ens4'
        #[arg(required = true)]
        addresses: Vec<String>,
    },
    /// Take targets over that another cluster applied to last
    ///
    /// What the other cluster brought stays as it is and is not managed: it is listed, and nothing
    /// of it is removed unless the spec comes to say something of it. The other cluster's next plan
    /// refuses these targets. Who decided it, and why, is recorded here and on each of them.
    TakeOver {
        /// The inventory
        inventory: PathBuf,
        /// The targets: 'host/gpu-[001-004]', switch/leaf1
        #[arg(required = true)]
        targets: Vec<String>,
        /// Why; whoever reads the record later sees it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// What their records hold counts as this cluster's: for one whose state was lost
        #[arg(long)]
        keep_record: bool,
    },
}

/// Shows or edits the memory.
pub async fn run(arguments: &StateArguments) -> Result<Exit, CommandFailure> {
    match &arguments.command {
        StateCommand::List {
            inventory,
            under,
            json,
        } => {
            let state = ClusterState::load(&find_state_folder(inventory)?)?;
            print_state(&state, under, *json)?;
        }
        StateCommand::Show { inventory, address } => {
            let state = ClusterState::load(&find_state_folder(inventory)?)?;
            let address = with_applied_addresses(&state, |known| {
                subject::resolve_single_address(&address.join(" "), known)
            })?;
            let applied = listing::find_remembered_resource(&state, &address)
                .map_err(|problem| problem.next(format_list_command(inventory)))?;
            report::out::print_result(&report::document::render_json_document(applied));
        }
        StateCommand::ReturnToService {
            inventory,
            hosts,
            reason,
        } => return_to_service(inventory, hosts, reason).await?,
        StateCommand::Forget {
            inventory,
            addresses,
        } => forget_resources(inventory, addresses)?,
        StateCommand::TakeOver {
            inventory,
            targets,
            reason,
            keep_record,
        } => {
            return take_over(inventory, targets, reason.trim(), *keep_record).await;
        }
    }
    Ok(Exit::Done)
}

/// Prints what is remembered below these prefixes of addresses, all where there is none.
fn print_state(state: &ClusterState, under: &[String], json: bool) -> Result<(), CommandFailure> {
    let under = resolve_address_prefixes(state, under)?;
    let found = listing::list_remembered_resources(state, &under);
    let outages = listing::list_outages(state, &under);
    let taken = listing::taken_over(state, &under);
    report::out::print_result(&if json {
        document::render_json_document(&StateDocument::of(found, outages, &taken))
    } else {
        render_outage_lines(&outages)
            + &render_applied_lines(found)
            + &report::take_over::render_recorded_take_overs(&taken)
    });
    Ok(())
}

/// Drops what is remembered of these resources; an error of one leaves all as they are.
fn forget_resources(inventory: &Path, addresses: &[String]) -> Result<(), CommandFailure> {
    let folder = find_state_folder(inventory)?;
    let state = ClusterState::load(&folder)?;
    let addresses: Vec<Address> = with_applied_addresses(&state, |known| {
        subject::resolve_subjects(addresses, known)?
            .iter()
            .map(|address| subject::resolve_single_address(address, known))
            .collect::<Result<_, _>>()
    })?;
    let lock = ClusterLock::take(&folder, "state forget")
        .map_err(|problem| CommandFailure::refused(vec![problem]))?;
    listing::forget_resources(&folder, &lock, &addresses).map_err(|problem| {
        if problem.next.is_empty() {
            problem.next(format_list_command(inventory))
        } else {
            problem
        }
    })?;
    report::out::print_note(&format!(
        "{} forgotten; the targets were not touched",
        addresses.len()
    ));
    Ok(())
}

/// Takes hosts as in service that a run left out of it.
async fn return_to_service(
    inventory: &Path,
    hosts: &str,
    reason: &str,
) -> Result<(), CommandFailure> {
    if reason.trim().is_empty() {
        let problem = Diagnostic::error(
            "RW1019",
            "a host is not returned to service without a reason",
        )
        .state("nothing was changed");
        return Err(CommandFailure::refused(vec![problem.next(
            "say in --reason why it may take jobs although no gate has passed it",
        )]));
    }
    let names = nodeset::expand_node_set(hosts.strip_prefix("host/").unwrap_or(hosts)).map_err(
        |error| {
            let what = format!("{} names no hosts: {error}", one_line(hosts, 80));
            Diagnostic::error("RW1011", what)
                .state("nothing was changed")
                .next(format_list_command(inventory))
        },
    )?;
    apply::return_to_service(&find_state_folder(inventory)?, &names, reason)
        .await
        .map_err(|problem| CommandFailure::refused(vec![problem]))?;
    report::out::print_note(&format!(
        "{} returned to service; the hosts were not touched, and the journal says why",
        nodeset::fold_node_set(&names)
    ));
    Ok(())
}

fn render_outage_lines(outages: &Outages) -> String {
    let mut text = String::new();
    for (host, outage) in outages {
        let line = format!("host/{host}  OUT OF SERVICE  {}", outage.details());
        text += &clean_line(&line);
        text.push('\n');
    }
    text
}

async fn take_over(
    inventory: &Path,
    targets: &[String],
    reason: &str,
    keep_record: bool,
) -> Result<Exit, CommandFailure> {
    if reason.is_empty() {
        let problem = Diagnostic::error("RW1019", "a target is not taken over without a reason")
            .state("nothing was taken over");
        return Err(CommandFailure::refused(vec![problem.next(
            "say in --reason why it no longer belongs to the other cluster",
        )]));
    }
    let contact = TargetContact::begin();
    let session = open_session(
        inventory,
        &SessionRequest::from_targets(contact).to_change_targets(),
    )?;
    let named = resolve_reached_addresses(&session, targets)?;
    let observed = observe_targets(&session).await?;
    let conflicts = &observed.recognition.conflicts;
    let decided = select_conflicts(&named, conflicts)
        .map_err(|name| refuse_take_over(name, &session.inventory.word))?;
    let passwords = secrets::read_switch_passwords(&session.inventory, contact);
    let context = super::apply::build_apply_context(
        &session,
        contact,
        passwords,
        apply::ExecutionOptions::default(),
        None,
    );
    let decision = TakeOverDecision {
        targets: decided,
        reason: reason.to_owned(),
        keep_record,
        cluster: observed.state.cluster,
        name: session.inventory.loaded.spec.cluster.clone(),
    };
    let taken = apply::target_take_over::take_over_targets(&decision, &context)
        .await
        .map_err(|problem| CommandFailure::refused(vec![problem]))?;
    Ok(print_take_over_results(
        &taken,
        keep_record,
        &session.inventory.word,
    ))
}

fn print_take_over_results(taken: &TakenOver, keep_record: bool, inventory: &str) -> Exit {
    let text = report::take_over::render_take_over_results(taken, keep_record, inventory);
    report::out::print_result(&text);
    let errors = taken.values().filter_map(|one| one.as_ref().err());
    let problems: Vec<Diagnostic> = errors.cloned().collect();
    if problems.is_empty() {
        return Exit::Done;
    }
    print_diagnostics(&problems, &Sources::default());
    Exit::Incomplete
}

/// The targets of these names that answer as another cluster's; an error is the first name that
/// does not.
fn select_conflicts<'n>(
    names: &'n [String],
    conflicts: &BTreeMap<Target, IdentityConflict>,
) -> Result<BTreeMap<Target, IdentityConflict>, &'n str> {
    let mut selected = BTreeMap::new();
    for name in names {
        let target: Target = name.parse().map_err(|_| name.as_str())?;
        let conflict = conflicts
            .get(&target)
            .filter(|conflict| conflict.may_be_taken_over())
            .ok_or(name.as_str())?;
        selected.insert(target, conflict.clone());
    }
    Ok(selected)
}

fn refuse_take_over(name: &str, inventory: &str) -> CommandFailure {
    let message =
        format!("{name} does not answer as another cluster's, so there is nothing to take over");
    let problem = Diagnostic::error("RW0728", message)
        .on(name.to_owned())
        .state("nothing was taken over")
        .next(format!(
            "railwright plan {inventory} names the targets that are refused, and why"
        ));
    CommandFailure::refused(vec![problem])
}

fn render_applied_lines(found: Vec<(&Address, &AppliedResource)>) -> String {
    let mut text = String::new();
    for (address, applied) in found {
        let unfinished = if applied.unfinished {
            "  begun, and did not come through"
        } else {
            ""
        };
        let (at, run) = (&applied.at, &applied.run);
        text += &clean_line(&format!("{address}  {at}  {run}{unfinished}"));
        text.push('\n');
    }
    text
}

fn find_state_folder(path: &Path) -> Result<StateFolder, CommandFailure> {
    Ok(StateFolder::beside(&read_inventory(path)?.folder))
}

/// The command that shows what is remembered.
fn format_list_command(inventory: &Path) -> String {
    format!("railwright state list {}", quote::quote_path(inventory))
}

/// With what is remembered to be named.
fn with_applied_addresses<T>(
    state: &ClusterState,
    use_it: impl FnOnce(&KnownSubjects) -> Result<T, CommandFailure>,
) -> Result<T, CommandFailure> {
    let applied = &state.last_applied.resources;
    let targets: BTreeSet<Target> = applied
        .keys()
        .map(|address| address.target.clone())
        .collect();
    use_it(&KnownSubjects {
        targets: &targets.into_iter().collect::<Vec<_>>(),
        resources: &|| Ok(applied.keys().map(ToString::to_string).collect()),
    })
}

/// The beginnings of addresses that these texts stand for; of `host` and `kube/prod/Job.batch`
/// those below are meant.
fn resolve_address_prefixes(
    state: &ClusterState,
    under: &[String],
) -> Result<Vec<String>, CommandFailure> {
    let (mut prefixes, mut names) = (Vec::new(), Vec::new());
    for text in under {
        let begins_as_address = matches!(text.split('/').next(), Some("host" | "kube" | "switch"));
        if begins_as_address && !text.contains(['[', ',', ' ']) {
            prefixes.push(text.clone());
        } else {
            names.push(text.clone());
        }
    }
    prefixes.extend(with_applied_addresses(state, |known| {
        subject::resolve_subjects(&names, known)
    })?);
    Ok(prefixes)
}
