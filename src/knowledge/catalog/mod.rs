//! What the field knows of hardware and systems, as data with sources: GPUs, NICs, instances,
//! operating systems, what pairs of ports deliver, what Alibaba Container Compute Service offers,
//! switches and their systems, what jobs are run with, what images need. The entries are in
//! `modules/catalog/*.yaml`; a user's own in `<inventory>/modules/catalog` stand over them.
//!
//! `entries` says what an entry holds, `release` that of what comes in releases, `table` finds one
//! by its name, `load` reads the files, `unknown` tells of a spec that names what no entry is
//! about, `unknown_release` of one that names a release of which the catalogue says nothing, `job`
//! what it says of variables, arguments, images and profilers, `user_space` what images need of
//! RDMA, `switch` what an entry says of switches, `switch_numbers` chooses the numbers of one,
//! `headroom` is the formula of its buffers, `foreign_repository` tells of repositories of another
//! system than the nodes'.

pub mod entries;
mod foreign_repository;
pub mod headroom;
pub mod job;
mod load;
pub mod release;
pub mod switch;
mod switch_numbers;
mod table;
mod unknown;
mod unknown_release;
pub mod user_space;

pub use foreign_repository::foreign_repositories;
pub use load::{CATALOG_FOLDER, Catalog, CatalogProblems, Override, load_catalog};
pub use switch_numbers::{
    EcnNumbers, HeadroomNumbers, SwitchNumbers, model_of, switch_numbers, system_of,
};
pub use table::{CatalogEntry, CatalogTable, CategoryEntry};
pub use unknown::unknown_models;
pub use unknown_release::unknown_releases;

/// The NIC model that makes RDMA devices of plain Ethernet ones.
pub const SOFT_ROCE: &str = "soft-roce";
