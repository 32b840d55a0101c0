//! The resource kinds against real programs: a small Debian root below an overlay, in namespaces of
//! its own, so that this machine is not changed. Each story reads, acts, reads again, and undoes;
//! the file tree must come back.
//!
//! Needs root, mmdebstrap, gpg, apt-ftparchive and, for dnf, rpmbuild and createrepo_c. Without
//! them a story is skipped by name, unless `RAILWRIGHT_REQUIRE_RIGS=1`.

#![allow(clippy::unwrap_used)] // a rig that cannot be built ends its story

#[path = "../hostile/bodies.rs"]
mod bodies;
mod builds;
mod dcb;
mod ecn;
mod files;
mod firmware;
mod hostile;
#[path = "../journeys/fixture/models.rs"]
#[allow(dead_code, reason = "the journeys use the rest of it")]
mod models;
mod names;
mod packages;
mod pci;
mod repositories;
mod rig;
#[path = "../journeys/fixture/tree.rs"]
mod tree;
mod unchanged;
