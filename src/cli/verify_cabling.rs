//! `railwright verify cabling`.

use super::{CommandFailure, Exit, cables};
use railwright_base::Diagnostic;
use railwright_report::cabling::{self, CablingSubject, document::CablingDocument};
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::{self as report, document};
use railwright_session::{Inventory, read_inventory};
use railwright_verify::CheckVerdict;
use railwright_verify::cabling::{CablingNames, CablingScope, compare_cabling};
use std::path::PathBuf;

/// Compare the cabling file with what hosts and switches hear of each other (LLDP), as moves to
/// make by hand
///
/// Reads only. A NIC that hears nobody is unknown, and never taken for miswired.
#[derive(Debug, clap::Args)]
pub struct VerifyCabling {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Only these hosts, a node-set, and no switch; all by default
    #[arg(long, value_name = "NODESET")]
    pub host: Option<String>,
    /// Read the hosts as this user, who needs no rights but those that `sudoers` prints
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name)]
    pub read_as: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Compares.
pub async fn run(arguments: &VerifyCabling) -> Result<Exit, CommandFailure> {
    let inventory = Inventory {
        read_as: arguments.read_as.clone(),
        ..read_inventory(&arguments.inventory)?
    };
    let loaded = &inventory.loaded;
    let Some(cabling) = &loaded.cabling else {
        return Err(report_no_cabling_file(&inventory.word).into());
    };
    cables::has_lldp(&inventory)?;
    print_diagnostics(&inventory.warnings, &loaded.sources);
    let hosts = cables::select_rail_hosts(&inventory, arguments.host.as_deref())?;
    let switches = cables::select_switches(&inventory, arguments.host.as_deref());
    let views = cables::read_neighbours(&inventory, &hosts, &switches).await;
    let (names, nics) = (
        CablingNames::of(loaded, &cabling.cables),
        cables::list_nics(&inventory, &hosts, &switches),
    );
    let comparison = compare_cabling(
        CablingScope {
            cables: &cabling.cables,
            nics: &nics,
            names: &names,
        },
        &views,
    );
    let asked: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let switches: Vec<String> = switches.iter().map(|switch| switch.name.clone()).collect();
    let subject = CablingSubject {
        inventory: &inventory.word,
        file: &cabling.file,
        hosts: &asked,
        switches: &switches,
    };
    let text = match arguments.json {
        true => document::render_json_document(&CablingDocument::of(&subject, &comparison)),
        false => cabling::render_cabling_screen(&subject, &comparison),
    };
    report::out::print_result(&text);
    Ok(match comparison.verdict() {
        CheckVerdict::Failed => Exit::Failed,
        CheckVerdict::Unknown => Exit::Incomplete,
        _ => Exit::Done,
    })
}

fn report_no_cabling_file(inventory: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1043",
        "the spec names no cabling file, so there is nothing to compare with",
    )
    .effect("which NIC belongs in which port of a switch is written nowhere")
    .state("no host was asked")
    .next(format!(
        "railwright discover cabling {inventory} -o {inventory}/cabling.csv writes what the hosts \
         hear; look at it"
    ))
    .next("then write `cabling: cabling.csv` in the spec")
}
