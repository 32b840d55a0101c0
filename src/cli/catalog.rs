//! `railwright catalog SORT [NAME]`: what is known of GPUs, NICs, instances, operating systems, releases, switches, what jobs are run with and what images need, with its sources.

use super::{Exit, Failure, inventory, knowledge::Knowledge};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::catalog::{Catalog, Entry, Row, Table};
use railwright_report::knowledge::{row, rows};
use railwright_report::{document, out};
use serde::Serialize;
use std::path::PathBuf;

/// What is known of GPUs, NICs, instances, operating systems, releases, switches and jobs, with sources
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The sort
    #[arg(value_enum)]
    sort: Sort,
    /// One row in full, by its name or alias
    name: Option<String>,
    /// With the rows of this inventory over the shipped ones
    #[arg(long, value_name = "FOLDER")]
    inventory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The sorts of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// GPU models
    Gpu,
    /// RDMA NICs
    Nic,
    /// Instances of clouds
    Instance,
    /// Operating systems
    Os,
    /// What Alibaba Container Compute Service offers
    Acs,
    /// What pairs of ports deliver: the numbers that `verify` judges by
    Bandwidth,
    /// Releases of drivers, toolkits and stacks, and what each needs
    Release,
    /// Combinations of them that are known to fit or not
    Combination,
    /// Switches
    Switch,
    /// The systems of switches, and the numbers that they come with
    SwitchSystem,
    /// Environment variables of jobs: what they decide, their values and defaults, what pages advise
    Variable,
    /// Arguments of mpirun and of the tests that jobs run
    Argument,
    /// Images of which something has to be known
    Image,
    /// Profilers that say what a step of a training waits for
    Profiler,
    /// The RDMA user space that an image needs, by kind of fabric
    UserSpace,
    /// Examples that `image render` can put into an image
    Example,
}

/// Shows the rows.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let knowledge = match &arguments.inventory {
        Some(path) => inventory::read(path)?.knowledge,
        None => Knowledge::read("", &[])?,
    };
    let catalog = &*knowledge.catalog;
    let (name, json) = (arguments.name.as_deref(), arguments.json);
    match arguments.sort {
        Sort::Gpu => {
            show(catalog, &catalog.gpu, name, json, &["architecture", "memory_gb", "nvswitch", "modules", "driver_branch_min"], |name| {
                catalog.gpu.entry(name)
            })
        }
        Sort::Nic => show(catalog, &catalog.nic, name, json, &["driver", "speeds_gbps", "fabrics", "not_provisioned"], |name| {
            catalog.nic.entry(name)
        }),
        Sort::Instance => show(catalog, &catalog.instance, name, json, &["cloud", "gpu", "virtual", "erdma"], |name| {
            catalog.instance_of(name).and_then(|row| catalog.instance.entry(&row.name))
        }),
        Sort::Os => show(
            catalog,
            &catalog.os,
            name,
            json,
            &["package_manager", "kernel", "rdma_core", "mlnx_ofed_max", "doca_min", "doca_max"],
            |name| catalog.system(name).and_then(|row| catalog.os.entry(&row.name)),
        ),
        Sort::Bandwidth => show(catalog, &catalog.bandwidth, name, json, &["rate_gbps", "least_gbps", "seen_gbps", "gpus"], |name| {
            catalog.bandwidth.entry(name)
        }),
        Sort::Release => show(catalog, &catalog.release, name, json, &["line", "brings", "needs"], |name| catalog.release.entry(name)),
        Sort::Combination => {
            show(catalog, &catalog.combination, name, json, &["excludes", "unsure", "chosen"], |name| catalog.combination.entry(name))
        }
        Sort::Switch => {
            show(catalog, &catalog.switch, name, json, &["asic", "systems", "speeds_gbps", "buffer_model", "cell_bytes"], |name| {
                catalog.switch.entry(name)
            })
        }
        Sort::SwitchSystem => show(catalog, &catalog.switch_system, name, json, &["mtu_max", "trust", "dscp", "ecn"], |name| {
            catalog.switch_system.entry(name)
        }),
        Sort::Variable => {
            show(catalog, &catalog.variable, name, json, &["program", "values", "defaults"], |name| catalog.variable.entry(name))
        }
        Sort::Argument => show(catalog, &catalog.argument, name, json, &["reason"], |name| catalog.argument.entry(name)),
        Sort::Image => show(catalog, &catalog.image, name, json, &["demo", "ray"], |name| catalog.image.entry(name)),
        Sort::Profiler => show(catalog, &catalog.profiler, name, json, &["platform", "run"], |name| catalog.profiler.entry(name)),
        Sort::UserSpace => {
            show(catalog, &catalog.user_space, name, json, &["packages", "repository", "providers"], |name| catalog.user_space.entry(name))
        }
        Sort::Example => show(catalog, &catalog.example, name, json, &["folder", "code"], |name| catalog.example.entry(name)),
        Sort::Acs => show(catalog, &catalog.acs, name, json, &["rdma_gpus", "nic_type"], |name| {
            catalog.acs.entry(name).or_else(|| catalog.acs.entries().find(|entry| entry.row.name == name))
        }),
    }
}

fn show<'a, R: Row + Serialize>(
    catalog: &Catalog,
    table: &'a Table<R>,
    name: Option<&str>,
    json: bool,
    columns: &[&str],
    find: impl Fn(&str) -> Option<&'a Entry<R>>,
) -> Result<Exit, Failure> {
    let chosen = match name {
        None => None,
        Some(name) => Some(find(name).ok_or_else(|| unknown(table, name))?),
    };
    match (chosen, json) {
        (None, false) => out::print(&rows(table, columns)),
        (None, true) => out::print(&document::text(&document::CatalogDocument::of(R::KEY, table.entries().map(|entry| &entry.row)))),
        (Some(entry), false) => out::print(&row(&entry.row, &catalog.place(entry))),
        (Some(entry), true) => out::print(&document::text(&document::CatalogDocument::of(R::KEY, [&entry.row]))),
    }
    Ok(Exit::Done)
}

fn unknown<R: Row>(table: &Table<R>, name: &str) -> Diagnostic {
    let near: Vec<String> = table.near(name).iter().map(|name| format!("`{name}`")).collect();
    let diagnostic = Diagnostic::error("RW1031", format!("the catalogue has no {} `{}`", R::KEY, one_line(name, 60)));
    if near.is_empty() {
        return diagnostic.next(format!("see what is known: railwright catalog {}", R::KEY));
    }
    diagnostic.next(format!("did you mean {}?", near.join(" or ")))
}
