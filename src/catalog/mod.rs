//! What the field knows of hardware and systems, as data with sources: GPUs, NICs, instances, operating systems, what pairs of
//! ports deliver, and what Alibaba Container Compute Service offers. The rows are in `modules/catalog/*.yaml`; a user's own in
//! `<inventory>/modules/catalog` stand over them.
//!
//! `rows` says what a row holds, `release` the same of what comes in releases, `table` finds one by its name, `load` reads the
//! files, `unknown` tells of a spec that names what no row is about, `unknown_release` of one that names a release of which
//! the catalogue says nothing, `foreign_repository` of repositories of another system than the nodes'.

mod foreign_repository;
mod load;
pub mod release;
pub mod rows;
mod table;
mod unknown;
mod unknown_release;

pub use foreign_repository::foreign_repositories;
pub use load::{CATALOG_FOLDER, Catalog, CatalogProblems, Override, load};
pub use table::{Entry, Row, Table};
pub use unknown::unknown_models;
pub use unknown_release::unknown_releases;

/// The NIC model that makes RDMA devices of plain Ethernet ones.
pub const SOFT_ROCE: &str = "soft-roce";
