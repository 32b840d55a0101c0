//! How a switch is reached over its API. Field docs become the JSON Schema's descriptions.

use super::SecretReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKind {
    /// eAPI of Arista EOS.
    Eapi,
    /// The REST API of NVUE, of Cumulus Linux.
    Nvue,
}

impl ApiKind {
    /// The key of the spec.
    pub const fn key(self) -> &'static str {
        match self {
            ApiKind::Eapi => "eapi",
            ApiKind::Nvue => "nvue",
        }
    }

    /// As messages call it.
    pub const fn name(self) -> &'static str {
        match self {
            ApiKind::Eapi => "eAPI",
            ApiKind::Nvue => "NVUE API",
        }
    }

    /// The TCP port where nobody says another: the EOS manual, `management api http-commands`;
    /// CumulusNetworks/docs, NVUE-API.md.
    pub const fn port(self) -> u16 {
        match self {
            ApiKind::Eapi => 443,
            ApiKind::Nvue => 8765,
        }
    }
}

/// How a switch is reached over HTTPS, by its own API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// What to connect to; the switch's name unless said otherwise. `{name}` is its name, `{index}`
    /// its place among the switches from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The TCP port; the usual one of the API unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The user of the switch.
    pub user: String,
    /// Where the user's password is found; exactly one of the three.
    pub password: SecretReference,
    /// The certificate that the switch has to show: a PEM file of it, or of the authority that
    /// signed it, relative to the inventory or from `~/`, with `{name}` and `{index}`; or `sha256:`
    /// and the fingerprint of it. `certificates/{name}.pem` unless said otherwise. It is always
    /// checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}
