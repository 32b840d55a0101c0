//! `railwright discover cabling`.

use super::{CommandFailure, Exit, cables, output};
use railwright_base::text::{clean_line, format_count, one_line};
use railwright_base::{Diagnostic, nodeset};
use railwright_knowledge::spec::cabling::write;
use railwright_report as report;
use railwright_report::cabling::document::describe_unseen_nics;
use railwright_session::{Inventory, read_uncabled};
use railwright_system::files;
use railwright_verify::cabling::discover::{DiscoveredCables, discover_cables};
use railwright_verify::cabling::{CablingNames, Silent, Views};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Write down what is there, for a spec that does not say it yet
#[derive(Debug, clap::Args)]
pub struct DiscoverArguments {
    #[command(subcommand)]
    what: DiscoverCommand,
}

/// What is discovered.
#[derive(Debug, clap::Subcommand)]
enum DiscoverCommand {
    /// Write the cabling file from what hosts and switches hear of each other (LLDP)
    ///
    /// Reads only. What it writes is the cables as they are, right or wrong: look at it before it
    /// becomes what is desired.
    Cabling {
        /// The inventory: a folder of YAML files
        inventory: PathBuf,
        /// Write the table to this file; without it, to stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Write over a file that is there
        #[arg(long)]
        force: bool,
        /// Only these hosts, a node-set, and no switch; all by default
        #[arg(long, value_name = "NODESET")]
        host: Option<String>,
        /// Read the hosts as this user, who needs no rights but those that `sudoers` prints
        #[arg(long, value_name = "USER", value_parser = Inventory::user_name)]
        read_as: Option<String>,
    },
}

/// Reads what hosts and switches hear, and writes the cabling table that follows from it. Exits
/// with 3 where something could not be read.
pub async fn run(arguments: &DiscoverArguments) -> Result<Exit, CommandFailure> {
    let DiscoverCommand::Cabling {
        inventory,
        output,
        force,
        host,
        read_as,
    } = &arguments.what;
    output::can_be_written(output)?;
    if let Some(file) = output
        && !force
        && files::is_present(file)
    {
        return Err(CommandFailure::refused(vec![report_present_file(file)]));
    }
    // A file that the spec names and that is not there yet, or is wrong, is what this is to fix.
    let inventory = Inventory {
        read_as: read_as.clone(),
        ..read_uncabled(inventory)?
    };
    cables::has_lldp(&inventory)?;
    let hosts = cables::select_rail_hosts(&inventory, host.as_deref())?;
    let switches = cables::select_switches(&inventory, host.as_deref());
    let views = cables::read_neighbours(&inventory, &hosts, &switches).await;
    let spec_switches = inventory.loaded.switches.iter();
    let of_spec: BTreeSet<&str> = spec_switches.map(|switch| switch.name.as_str()).collect();
    let found = discover_cables(
        &cables::list_nics(&inventory, &hosts, &switches),
        &of_spec,
        &CablingNames::of(&inventory.loaded, &[]),
        &views,
    );
    let is_whole = print_unseen_devices(&inventory, &found, &views);
    if found.cables.is_empty() {
        return Err(CommandFailure::with_exit(
            Exit::Incomplete,
            report_no_cables(&inventory.word, output.as_deref()),
        ));
    }
    deliver_cabling_table(&found, output.as_deref())?;
    Ok(if is_whole {
        Exit::Done
    } else {
        Exit::Incomplete
    })
}

/// Writes the cables to a file, or to stdout where there is none.
fn deliver_cabling_table(
    found: &DiscoveredCables,
    output: Option<&Path>,
) -> Result<(), CommandFailure> {
    let table = write::render_cabling_table(&found.cables);
    let Some(file) = output else {
        report::out::print_result(&table);
        return Ok(());
    };
    output::write_output(file, &table, 0o644)?;
    report::out::print_note(&format!(
        "{} written to {}",
        format_count(found.cables.len(), "cable"),
        file.display()
    ));
    Ok(())
}

/// Lists what could not be read; true where everything was.
fn print_unseen_devices(inventory: &Inventory, found: &DiscoveredCables, views: &Views) -> bool {
    let mut lines = describe_silent_devices(views);
    lines.extend(describe_unseen_nics(&found.unseen));
    let is_whole = lines.is_empty();
    if !is_whole {
        report::out::print_note("Not read, so no line was written of it:");
        for line in &lines {
            report::out::print_note(&format!("  {}", one_line(line, 300)));
        }
        report::out::print_note(
            "`railwright explain RW0835` tells why a NIC hears nobody, RW0836 why a host tells \
             nothing.",
        );
    }
    if !found.strangers.is_empty() {
        let names: Vec<&str> = found.strangers.iter().map(String::as_str).collect();
        let names = clean_line(&nodeset::fold_node_set(&names));
        report::out::print_note(&format!(
            "Not in the spec yet, as they call themselves: {names}; write them in `switches` of \
             {}.",
            inventory.word
        ));
    }
    is_whole
}

/// One line for all devices that are silent for the same reason.
fn describe_silent_devices(views: &Views) -> Vec<String> {
    let mut devices: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (device, view) in views {
        let Err(silent) = view else {
            continue;
        };
        let reason = match silent {
            Silent::Unreached(trouble) => format!("{} ({})", silent.shared_message(), trouble.code),
            _ => silent.shared_message(),
        };
        devices.entry(reason).or_default().push(device);
    }
    let devices = devices.into_iter();
    devices
        .map(|(reason, names)| format!("{}: {reason}", nodeset::fold_node_set(&names)))
        .collect()
}

fn report_present_file(file: &Path) -> Diagnostic {
    Diagnostic::error("RW1044", format!("{} is there already", file.display()))
        .effect("it may say what is desired; what is heard is only what is actual")
        .state("it is as it was, and no host was asked")
        .next("name another file and compare the two; or write over it: --force")
}

fn report_no_cables(inventory: &str, output: Option<&Path>) -> Diagnostic {
    let problem = Diagnostic::error("RW1045", "no cable was heard, so nothing was written")
        .effect("a table without a line would say that nothing is plugged in")
        .state(match output {
            Some(file) if files::is_present(file) => format!("{} is as it was", file.display()),
            Some(file) => format!("{} was not written", file.display()),
            None => "nothing was written".to_owned(),
        })
        .next(format!(
            "fix what is said above; where lldpd is missing: `tuning: {{ lldp: true }}`, then \
             railwright plan {inventory}"
        ));
    problem.next("a switch tells the same of its own side: lldpctl there")
}
