//! `railwright catalog SORT [NAME]`: what is known of GPUs, NICs, instances, operating systems,
//! releases, switches, what jobs are run with and what images need, with its sources.

use super::{CommandFailure, Exit};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::catalog::{Catalog, CatalogEntry, CatalogTable, CategoryEntry};
use railwright_report::knowledge::{render_catalog_entry, render_catalog_table};
use railwright_report::{document, out};
use railwright_session::{Knowledge, read_inventory};
use serde::Serialize;
use std::path::PathBuf;

/// What is known of GPUs, NICs, instances, operating systems, releases, switches and jobs, with
/// sources
#[derive(Debug, clap::Args)]
pub struct CatalogArguments {
    /// The category
    #[arg(value_enum)]
    sort: CatalogCategory,
    /// One entry in full, by its name or alias
    name: Option<String>,
    /// With the entries of this inventory over the shipped ones
    #[arg(long, value_name = "FOLDER")]
    inventory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The categories of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CatalogCategory {
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
    /// What pairs of ports deliver: the numbers that `verify` goes by
    Bandwidth,
    /// Releases of drivers, toolkits and stacks, and what each needs
    Release,
    /// Combinations of them that are known to fit or not
    Combination,
    /// Switches
    Switch,
    /// The systems of switches, and the numbers that they come with
    SwitchSystem,
    /// Environment variables of jobs: what they decide, their values and defaults, what pages
    /// advise
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

/// Prints a category of the catalogue, or one entry of it in full.
pub fn run(arguments: &CatalogArguments) -> Result<Exit, CommandFailure> {
    let knowledge = match &arguments.inventory {
        Some(path) => read_inventory(path)?.knowledge,
        None => Knowledge::read("", &[])?,
    };
    print_category(
        &knowledge.catalog,
        arguments.sort,
        arguments.name.as_deref(),
        arguments.json,
    )
}

const GPU_COLUMNS: [&str; 5] = [
    "architecture",
    "memory_gb",
    "nvswitch",
    "modules",
    "driver_branch_min",
];
const OS_COLUMNS: [&str; 6] = [
    "package_manager",
    "kernel",
    "rdma_core",
    "mlnx_ofed_max",
    "doca_min",
    "doca_max",
];
const SWITCH_COLUMNS: [&str; 5] = [
    "asic",
    "systems",
    "speeds_gbps",
    "buffer_model",
    "cell_bytes",
];

/// Prints all entries of a category with the columns that tell most, or one of them in full.
fn print_category(
    catalog: &Catalog,
    category: CatalogCategory,
    name: Option<&str>,
    json: bool,
) -> Result<Exit, CommandFailure> {
    macro_rules! print_table {
        ($table:ident, $fields:expr) => {
            print_table!($table, $fields, |name: &str| catalog.$table.entry(name))
        };
        ($table:ident, $fields:expr, $find:expr) => {
            print_catalog_entries(catalog, &catalog.$table, name, json, &$fields, $find)
        };
    }
    match category {
        CatalogCategory::Gpu => print_table!(gpu, GPU_COLUMNS),
        CatalogCategory::Nic => {
            print_table!(nic, ["driver", "speeds_gbps", "fabrics", "not_provisioned"])
        }
        CatalogCategory::Instance => {
            print_table!(instance, ["cloud", "gpu", "virtual", "erdma"], |name| {
                let entry = catalog.instance_of(name)?;
                catalog.instance.entry(&entry.name)
            })
        }
        CatalogCategory::Os => print_table!(os, OS_COLUMNS, |name| {
            let entry = catalog.system(name)?;
            catalog.os.entry(&entry.name)
        }),
        CatalogCategory::Bandwidth => {
            print_table!(bandwidth, ["rate_gbps", "least_gbps", "seen_gbps", "gpus"])
        }
        CatalogCategory::Release => print_table!(release, ["line", "brings", "needs"]),
        CatalogCategory::Combination => print_table!(combination, ["excludes", "unsure", "chosen"]),
        CatalogCategory::Switch => print_table!(switch, SWITCH_COLUMNS),
        CatalogCategory::SwitchSystem => {
            print_table!(switch_system, ["mtu_max", "trust", "dscp", "ecn"])
        }
        CatalogCategory::Variable => print_table!(variable, ["program", "values", "defaults"]),
        CatalogCategory::Argument => print_table!(argument, ["reason"]),
        CatalogCategory::Image => print_table!(image, ["demo", "ray"]),
        CatalogCategory::Profiler => print_table!(profiler, ["platform", "run"]),
        CatalogCategory::UserSpace => {
            print_table!(user_space, ["packages", "repository", "providers"])
        }
        CatalogCategory::Example => print_table!(example, ["folder", "code"]),
        CatalogCategory::Acs => print_table!(acs, ["rdma_gpus", "nic_type"], |name| {
            let mut entries = catalog.acs.entries();
            let entry = catalog.acs.entry(name);
            entry.or_else(|| entries.find(|entry| entry.content.name == name))
        }),
    }
}

fn print_catalog_entries<'a, R: CategoryEntry + Serialize>(
    catalog: &Catalog,
    table: &'a CatalogTable<R>,
    name: Option<&str>,
    json: bool,
    columns: &[&str],
    find: impl Fn(&str) -> Option<&'a CatalogEntry<R>>,
) -> Result<Exit, CommandFailure> {
    let chosen = match name {
        None => None,
        Some(name) => Some(find(name).ok_or_else(|| report_unknown_entry(table, name))?),
    };
    match (chosen, json) {
        (None, false) => out::print_result(&render_catalog_table(table, columns)),
        (None, true) => out::print_result(&document::render_json_document(
            &document::CatalogDocument::of(R::KEY, table.entries().map(|entry| &entry.content)),
        )),
        (Some(entry), false) => {
            out::print_result(&render_catalog_entry(&entry.content, &catalog.place(entry)))
        }
        (Some(entry), true) => out::print_result(&document::render_json_document(
            &document::CatalogDocument::of(R::KEY, [&entry.content]),
        )),
    }
    Ok(Exit::Done)
}

fn report_unknown_entry<R: CategoryEntry>(table: &CatalogTable<R>, name: &str) -> Diagnostic {
    let near: Vec<String> = table
        .near(name)
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let diagnostic = Diagnostic::error(
        "RW1031",
        format!("the catalogue has no {} `{}`", R::KEY, one_line(name, 60)),
    );
    if near.is_empty() {
        return diagnostic.next(format!("see what is known: railwright catalog {}", R::KEY));
    }
    diagnostic.next(format!("did you mean {}?", near.join(" or ")))
}
