//! `railwright version`: what this is, and how much it knows.

use super::{CommandFailure, Exit, explain};
use railwright_knowledge::module;
use railwright_report::document::{self, VersionDocument};
use railwright_report::{knowledge, out};
use railwright_resource::list_resource_kinds;
use railwright_session::Knowledge;

/// Print the version; with --verbose how many modules, rules and entries of the catalogue there are
#[derive(Debug, clap::Args)]
pub struct Version {
    /// How many modules, rules, entries and cases there are
    #[arg(long)]
    verbose: bool,
    /// Print JSON, numbers and all
    #[arg(long)]
    json: bool,
}

/// Prints it.
pub fn run(arguments: &Version) -> Result<Exit, CommandFailure> {
    let version = env!("CARGO_PKG_VERSION");
    if !arguments.verbose && !arguments.json {
        out::print_result(&format!("railwright {version}\n"));
        return Ok(Exit::Done);
    }
    let Knowledge { catalog, rules } = Knowledge::read("", &[])?;
    let counts = [
        ("modules", module::collect_shipped_modules().len()),
        ("resource kinds", list_resource_kinds().len()),
        ("cases of modules", module::shipped_cases()),
        ("rules", rules.rules.len()),
        // each rule has a spec that keeps it and one that breaks it
        ("cases of rules", 2 * rules.rules.len()),
        ("catalogue: GPUs", catalog.gpu.len()),
        ("catalogue: NICs", catalog.nic.len()),
        ("catalogue: instances", catalog.instance.len()),
        ("catalogue: operating systems", catalog.os.len()),
        ("catalogue: container compute service", catalog.acs.len()),
        ("catalogue: bandwidths", catalog.bandwidth.len()),
        ("catalogue: releases", catalog.release.len()),
        ("catalogue: combinations", catalog.combination.len()),
        ("catalogue: switches", catalog.switch.len()),
        (
            "catalogue: systems of switches",
            catalog.switch_system.len(),
        ),
        ("catalogue: variables of jobs", catalog.variable.len()),
        ("catalogue: arguments of jobs", catalog.argument.len()),
        ("catalogue: user space of images", catalog.user_space.len()),
        ("catalogue: examples of images", catalog.example.len()),
        ("catalogue: images", catalog.image.len()),
        ("catalogue: profilers", catalog.profiler.len()),
        (
            "explained codes",
            explain::list_code_pages().count() + rules.rules.len(),
        ),
    ];
    if arguments.json {
        out::print_result(&document::render_json_document(&VersionDocument::of(
            version, counts,
        )));
    } else {
        out::print_result(&format!(
            "railwright {version}\n{}",
            knowledge::render_knowledge_counts(&counts)
        ));
    }
    Ok(Exit::Done)
}
