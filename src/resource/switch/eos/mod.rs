//! Arista EOS: its configuration is a text of commands, indented where they stand in a section;
//! only what is not so from the start is in it. Commands, in the order of weight: "the guide" below
//! is the RoCEv2 guide of EOS 4.36 that quotes Arista's AI Network Fabric Deployment Guide
//! (https://www.arista.com/assets/data/pdf/AI-Network-Fabric_Deployment_Guide.pdf) and the EOS
//! manual, chapters Quality of Service and DCBX and Flow Control
//! (https://www.arista.com/en/um-eos/eos-quality-of-service); "AVD" is aristanetworks/avd, the
//! templates and intended configurations of `eos_cli_config_gen`.
//!
//! `config` reads the text, `port_view` what it says of a port, `key` names the settings;
//! `plan_edits` plans what is missing as values (`edit`), `script` sends them.
//!
//! A port gets its own settings, in a configure session of ours that is checked before it is
//! committed (`script`, `eos.py`). What a QoS profile (`service-profile`) says of a port counts,
//! and is never edited: profiles are of many ports. Maps of the whole switch are set where nobody
//! set them, and blocked where somebody did.
//!
//! `commit timer` is not the automatic rollback: it rolls back all of the configuration
//! (SUNET/cnaas-nms#395: it replaces the running configuration by a checkpoint), what others
//! committed since included, and it is shown in other words from EOS 4.32 on
//! (napalm-automation/napalm#2166). Ours is the one of the other systems: it keeps what runs before
//! anything is committed.
//!
//! The user of the login needs bash (`username NAME shell /bin/bash`) or `sudo` to root from there:
//! rollback, record and lock are files of the Linux below EOS. They lie in memory there, and are
//! gone with a reload, which takes what was not saved along.

mod config;
mod configuration;
mod counters;
pub mod edit;
mod edit_lines;
mod key;
mod lldp;
mod os;
mod plan_edits;
mod port_view;
pub mod script;

pub use config::EosConfig;
pub use os::Eos;

#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod tests;
