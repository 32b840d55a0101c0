//! The systems of switches that railwright reaches.

use super::cumulus::Cumulus;
use super::eos::Eos;
use super::os::SwitchOs;
use super::sonic::Sonic;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// The system of a switch that railwright reaches.
#[derive(
    Debug,
    Default,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SwitchSystem {
    /// SONiC, configured in CONFIG_DB.
    #[default]
    Sonic,
    /// NVIDIA Cumulus Linux, configured by NVUE.
    Cumulus,
    /// Arista EOS.
    Eos,
}

impl SwitchSystem {
    /// All of them.
    pub const ALL: [SwitchSystem; 3] = [
        SwitchSystem::Sonic,
        SwitchSystem::Cumulus,
        SwitchSystem::Eos,
    ];
}

// What a system has of its own it is asked as a `SwitchOs`.
impl Deref for SwitchSystem {
    type Target = dyn SwitchOs;

    fn deref(&self) -> &Self::Target {
        match self {
            SwitchSystem::Sonic => &Sonic,
            SwitchSystem::Cumulus => &Cumulus,
            SwitchSystem::Eos => &Eos,
        }
    }
}
