//! `railwright state`.

use super::{Exit, Failure, inventory};
use crate::base::text::clean_line;
use crate::base::{Address, Diagnostic};
use crate::report;
use crate::report::document::{self, StateDocument};
use crate::state::{State, StateFolder, listing};
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
        /// The resource
        address: String,
    },
    /// Drop the memory of resources; the targets are left as they are
    Forget {
        /// The inventory
        inventory: PathBuf,
        /// The resources
        #[arg(required = true)]
        addresses: Vec<String>,
    },
}

/// Shows or edits the memory.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::List { inventory, under, json: true } => {
            let state = State::load(&folder(inventory)?)?;
            report::out::print(&document::text(&StateDocument::of(listing::list(&state, under))));
        }
        Command::List { inventory, under, json: false } => {
            let state = State::load(&folder(inventory)?)?;
            let lines: String = listing::list(&state, under)
                .into_iter()
                .map(|(address, applied)| clean_line(&format!("{address}  {}  {}", applied.at, applied.run)) + "\n")
                .collect();
            report::out::print(&lines);
        }
        Command::Show { inventory, address } => {
            let state = State::load(&folder(inventory)?)?;
            let applied = listing::show(&state, &parsed(address)?)?;
            report::out::print(&serde_json::to_string_pretty(applied).unwrap_or_default());
        }
        Command::Forget { inventory, addresses } => {
            let addresses = addresses.iter().map(|text| parsed(text)).collect::<Result<Vec<_>, _>>()?;
            listing::forget(&folder(inventory)?, &addresses)?;
            report::out::note(&format!("{} forgotten; the targets were not touched", addresses.len()));
        }
    }
    Ok(Exit::Done)
}

fn folder(path: &Path) -> Result<StateFolder, Failure> {
    Ok(StateFolder::beside(&inventory::read(path)?.folder))
}

fn parsed(text: &str) -> Result<Address, Failure> {
    let wrong = |error| Diagnostic::error("RW1011", format!("{} is no address: {error}", crate::base::text::one_line(text, 80)));
    Ok(text.parse().map_err(wrong)?)
}
