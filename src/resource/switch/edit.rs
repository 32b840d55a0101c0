//! One edit of a switch, whatever its system, and what it disturbs.

use super::{cumulus, eos, sonic};
use crate::Disruption;
use serde::{Deserialize, Serialize};

/// An edit of a system's own.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(untagged)]
pub enum SwitchEdit {
    /// A field of SONiC's CONFIG_DB.
    Sonic(sonic::edit::SonicEdit),
    /// A place in the tree of NVUE.
    Cumulus(cumulus::edit::CumulusEdit),
    /// A command of EOS.
    Eos(eos::edit::EosEdit),
}

impl SwitchEdit {
    /// The ports that it is about; nothing for what is of the whole switch.
    pub fn ports(&self) -> Vec<String> {
        let port = match self {
            SwitchEdit::Sonic(edit) => return edit.ports(),
            SwitchEdit::Cumulus(edit) => edit.port(),
            SwitchEdit::Eos(edit) => edit.port(),
        };
        port.map(str::to_owned).into_iter().collect()
    }

    /// Those of SONiC.
    pub fn sonic(edits: &[SwitchEdit]) -> Vec<sonic::edit::SonicEdit> {
        let mut out = Vec::new();
        for edit in edits {
            if let SwitchEdit::Sonic(edit) = edit {
                out.push(edit.clone());
            }
        }
        out
    }

    /// Those of Cumulus Linux.
    pub fn cumulus(edits: &[SwitchEdit]) -> Vec<cumulus::edit::CumulusEdit> {
        let mut out = Vec::new();
        for edit in edits {
            if let SwitchEdit::Cumulus(edit) = edit {
                out.push(edit.clone());
            }
        }
        out
    }

    /// Those of EOS.
    pub fn eos(edits: &[SwitchEdit]) -> Vec<eos::edit::EosEdit> {
        let mut out = Vec::new();
        for edit in edits {
            if let SwitchEdit::Eos(edit) = edit {
                out.push(edit.clone());
            }
        }
        out
    }
}

/// What edits do to a port while they are made.
pub struct Disturbance {
    /// How much.
    pub disruption: Disruption,
    /// In words that begin with who is meant.
    pub interrupts: Vec<String>,
}
