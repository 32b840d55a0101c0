//! SONiC: its configuration is CONFIG_DB, tables of rows of text fields; the one that runs is in
//! Redis, the saved one in `/etc/sonic/config_db.json`. Names of tables and fields:
//! sonic-net/sonic-buildimage, src/sonic-yang-models/yang-models.
//!
//! It is changed by one RFC 6902 patch for all that a step changes, through `config apply-patch`,
//! which checks it and puts its parts in order; it takes a port down to change what of it the
//! hardware does not take from a port that is up. Maps and profiles that others brought (`AZURE`)
//! are never edited: ours stand beside them, and the port is bound to ours, so that going back is
//! binding it again.

pub mod config_db;
mod configuration;
mod counters;
pub mod edit;
mod edit_lines;
mod os;
pub mod plan_edits;
pub mod port_view;
pub mod script;
mod unlike;

pub use os::Sonic;
