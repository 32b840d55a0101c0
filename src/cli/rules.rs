//! `railwright rules`: every rule that a spec is checked by.

use super::{CommandFailure, Exit};
use railwright_report::{document, knowledge, out};
use railwright_session::{Knowledge, read_inventory};
use std::path::PathBuf;

/// Every rule that a spec is checked by; `railwright explain CODE` tells more of one
#[derive(Debug, clap::Args)]
pub struct RulesArguments {
    /// With the rules of this inventory among the shipped ones
    inventory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub fn run(arguments: &RulesArguments) -> Result<Exit, CommandFailure> {
    let known = match &arguments.inventory {
        Some(path) => read_inventory(path)?.knowledge,
        None => Knowledge::read("", &[])?,
    };
    if arguments.json {
        out::print_result(&document::render_json_document(
            &document::RulesDocument::of(known.rules.rules.values()),
        ));
    } else {
        out::print_result(&knowledge::render_rule_list(&known.rules));
    }
    Ok(Exit::Done)
}
