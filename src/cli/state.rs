//! `railwright state`.

use super::subject::{self, Known};
use super::{Exit, Failure, inventory};
use crate::base::text::clean_line;
use crate::base::{Address, Diagnostic, Target};
use crate::plan::Applied;
use crate::report;
use crate::report::document::{self, StateDocument};
use crate::state::{State, StateFolder, listing};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What railwright remembers: what was last applied, and what was there before
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
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
    /// Drop the memory of resources; the targets are left as they are
    Forget {
        /// The inventory
        inventory: PathBuf,
        /// The resources; as the screens print them in quotes: 'gpu-[001-004] link ens4'
        #[arg(required = true)]
        addresses: Vec<String>,
    },
}

/// Shows or edits the memory.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::List { inventory, under, json } => {
            let state = State::load(&folder(inventory)?)?;
            let found = listing::list(&state, &below(&state, under)?);
            report::out::print(&if *json { document::text(&StateDocument::of(found)) } else { lines(found) });
        }
        Command::Show { inventory, address } => {
            let state = State::load(&folder(inventory)?)?;
            let address = known(&state, |known| subject::one(&address.join(" "), known))?;
            let applied = listing::show(&state, &address).map_err(|problem| problem.next(list(inventory)))?;
            report::out::print(&serde_json::to_string_pretty(applied).unwrap_or_default());
        }
        Command::Forget { inventory, addresses } => {
            let folder = folder(inventory)?;
            let state = State::load(&folder)?;
            let addresses: Vec<Address> = known(&state, |known| {
                subject::unfold(addresses, known)?.iter().map(|address| subject::one(address, known)).collect::<Result<_, _>>()
            })?;
            listing::forget(&folder, &addresses)
                .map_err(|problem| if problem.next.is_empty() { problem.next(list(inventory)) } else { problem })?;
            report::out::note(&format!("{} forgotten; the targets were not touched", addresses.len()));
        }
    }
    Ok(Exit::Done)
}

fn lines(found: Vec<(&Address, &Applied)>) -> String {
    found.into_iter().map(|(address, applied)| clean_line(&format!("{address}  {}  {}", applied.at, applied.run)) + "\n").collect()
}

fn folder(path: &Path) -> Result<StateFolder, Failure> {
    Ok(StateFolder::beside(&inventory::read(path)?.folder))
}

/// The command that shows what is remembered.
fn list(inventory: &Path) -> String {
    format!("railwright state list {}", inventory.display())
}

/// With what is remembered to be named.
fn known<T>(state: &State, use_it: impl FnOnce(&Known) -> Result<T, Failure>) -> Result<T, Failure> {
    let targets: BTreeSet<Target> = state.last_applied.resources.keys().map(|address| address.target.clone()).collect();
    let targets: Vec<Target> = targets.into_iter().collect();
    let resources =
        || -> Result<BTreeSet<String>, Diagnostic> { Ok(state.last_applied.resources.keys().map(ToString::to_string).collect()) };
    use_it(&Known { targets: &targets, resources: &resources })
}

/// The beginnings of addresses that these texts stand for; of `host` and `kube/prod/Job.batch` those below are meant.
fn below(state: &State, under: &[String]) -> Result<Vec<String>, Failure> {
    let as_it_is = |text: &String| matches!(text.split('/').next(), Some("host" | "kube" | "switch")) && !text.contains(['[', ',', ' ']);
    let (plain, named): (Vec<String>, Vec<String>) = under.iter().cloned().partition(as_it_is);
    let named = known(state, |known| subject::unfold(&named, known))?;
    Ok(plain.into_iter().chain(named).collect())
}
