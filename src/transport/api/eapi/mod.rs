//! Arista EOS over eAPI (`management api http-commands`): a shell of the Linux below it, behind the
//! same trait as SSH.
//!
//! `rpc` is the JSON-RPC, `relay` how a script gets through it and its end back, `shell` both
//! together. eAPI asks for user and password with each request; `bash` is a command of the CLI that
//! takes `enable`, and the rights to it by the user's role.

mod relay;
mod rpc;
mod shell;

use super::https::SwitchApiServer;
use crate::link::ShellLink;
use crate::{HostLink, TransportError};
use std::sync::Arc;

/// A new connection to a switch that is reached over eAPI.
pub(super) async fn open_eapi_link(
    server: SwitchApiServer,
    read_only: bool,
) -> Result<Arc<dyn HostLink>, TransportError> {
    let shell = shell::EapiShell::open(server, read_only).await?;
    Ok(Arc::new(ShellLink::new(shell)))
}
