//! `railwright rules`: every rule that a spec is judged by.

use super::{Exit, Failure, inventory, knowledge::Knowledge};
use railwright_report::{document, knowledge, out};
use std::path::PathBuf;

/// Every rule that a spec is judged by; `railwright explain CODE` tells more of one
#[derive(Debug, clap::Args)]
pub struct Rules {
    /// With the rules of this inventory among the shipped ones
    inventory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub fn run(arguments: &Rules) -> Result<Exit, Failure> {
    let known = match &arguments.inventory {
        Some(path) => inventory::read(path)?.knowledge,
        None => Knowledge::read("", &[])?,
    };
    if arguments.json {
        out::print(&document::text(&document::RulesDocument::of(known.rules.rules.values())));
    } else {
        out::print(&knowledge::rules(&known.rules));
    }
    Ok(Exit::Done)
}
