//! Switches over their own APIs, which are HTTPS with a user and a password.
//!
//! The way of a connection: `pin` (whose certificate is taken) -> `https` (socket, TLS, one request
//! after the other) -> `eapi` (the shell of Arista EOS behind its JSON-RPC) or `nvue` (the REST API
//! of Cumulus Linux). Where no pin is, or another certificate is shown, nothing is sent: the
//! password least of all.

mod diagnose;
mod eapi;
mod https;
mod nvue;
mod pin;

pub use diagnose::diagnose_api_error;
pub use pin::CertificatePin;

use super::{HostLink, TransportError};
use railwright_base::secret::{self, UnknownSecret};
use railwright_knowledge::spec::model::ApiKind;
use std::fmt;
use std::sync::Arc;

/// How the API of a switch is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAccess {
    /// Which API.
    pub kind: ApiKind,
    /// What to connect to: a name or an address.
    pub address: String,
    /// The TCP port.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// Whose certificate is taken.
    pub pin: CertificatePin,
    /// The password of the user.
    pub password: Password,
    /// Nothing is changed with it.
    pub read_only: bool,
}

/// A password, or the mark of one that is filled in where the connection is made. What it is stands
/// in no message.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The one that a secret of this name holds.
    pub fn named(name: &str) -> Self {
        Password(secret::new_secret_mark(name))
    }

    /// Filled in; the name of the secret that is missing as the error.
    pub fn filled(&self, find: impl Fn(&str) -> Option<String>) -> Result<Self, UnknownSecret> {
        secret::fill_secrets(&self.0, find).map(Password)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Opens links to switches over their APIs: a new connection for each call.
#[derive(Debug, Clone, Default)]
pub struct ApiConnector {
    /// What is only known on this side of changes that nobody has confirmed yet.
    rollbacks: nvue::NvueRollbacks,
}

impl ApiConnector {
    /// A link to the switch that the spec calls by this name.
    pub async fn connect(
        &self,
        name: &str,
        access: &ApiAccess,
    ) -> Result<Arc<dyn HostLink>, TransportError> {
        let server = https::SwitchApiServer::new(name, access)?;
        match access.kind {
            ApiKind::Eapi => eapi::open_eapi_link(server, access.read_only).await,
            ApiKind::Nvue => {
                nvue::open_nvue_link(server, access.read_only, self.rollbacks.clone()).await
            }
        }
    }
}
