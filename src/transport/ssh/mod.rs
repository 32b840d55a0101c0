//! SSH over russh. No type of russh leaves this folder: its versions break every few weeks.
//!
//! The way of a connection: `destination` (inventory, then `ssh -G`) -> `jump` (shared hops) ->
//! `connect` (socket, key exchange; `known_hosts` collects the lines of a server, `host_key_check` compares its key with them) -> `auth` (agent, key files) -> `run` (one
//! `/bin/sh -s` a script).

mod auth;
mod config;
mod connect;
mod destination;
mod host_key_check;
mod identity;
mod jump;
mod known_hosts;
mod run;
mod signer;

use super::link::ShellLink;
use super::{HostLink, SshAccess, TransportError};
use std::sync::Arc;

/// Opens SSH connections: a new one for each call, over jump connections that many targets share.
#[derive(Default)]
pub struct SshConnector {
    config: config::Aliases,
    jumps: jump::Jumps,
    pins: known_hosts::Files,
}

impl SshConnector {
    /// With nothing open yet.
    pub fn new() -> Self {
        SshConnector::default()
    }

    /// `ssh -G` reads this file instead of the user's and the system's configuration.
    pub fn with_ssh_config(file: std::path::PathBuf) -> Self {
        SshConnector {
            config: config::Aliases::of_file(file),
            ..SshConnector::default()
        }
    }

    /// A link to the host or switch that the spec calls by this name.
    pub async fn connect(
        &self,
        name: &str,
        access: &SshAccess,
    ) -> Result<Arc<dyn HostLink>, TransportError> {
        let route = destination::resolve_ssh_route(name, access, &self.config).await?;
        let through = self.jumps.reach(&route.hops, &self.pins).await?;
        let connection = connect::open_ssh_connection(&route.target, through, &self.pins).await?;
        Ok(Arc::new(ShellLink::new(connection)))
    }
}
