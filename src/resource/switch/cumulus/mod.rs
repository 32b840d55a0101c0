//! NVIDIA Cumulus Linux: its configuration is a tree that NVUE keeps in revisions (`applied` runs,
//! `startup` is what a boot begins with); only what somebody set is in it. Names of its places:
//! CumulusNetworks/docs, content/nvue-reference/Set-and-Unset-Commands, and
//! content/cumulus-linux-512/Layer-1-and-Switch-Ports/Quality-of-Service/_index.md, which is "the
//! manual" below.
//!
//! A port has profiles (`config`, `profile`), which come to classes, PFC and marking (`port_view`);
//! what a desired setting takes is planned in `plan_edits` as values (`edit`) and patched into a
//! revision of our own, which is applied (`script`, `nvue.py`). Profiles of others,
//! `default-global` and `qos roce` are never edited: ours begin as a copy, and the port is bound to
//! ours.

pub mod config;
mod configuration;
pub mod counters;
pub mod edit;
mod edit_lines;
mod os;
mod plan_edits;
mod port_view;
mod profile;
pub mod rest;
pub mod revision;
pub mod script;

pub use config::Nvue;
pub use os::Cumulus;

/// How often the watchdog looks where nothing sets it, in milliseconds (the manual, PFC Watchdog).
pub const POLLING_MS: u64 = 100;

/// How many looks it wants where nothing sets it (there).
const ROBUSTNESS: u64 = 3;

/// How the names of our profiles begin.
const OURS: &str = "railwright";

#[cfg(test)]
mod tests;
