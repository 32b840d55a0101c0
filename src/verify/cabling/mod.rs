//! Cables as they are, from what devices hear of each other (LLDP), compared with the spec's. Pure:
//! views in, findings out. A view is what one device says of its ports, whichever side of a cable
//! it is on; the more devices are asked, the more is known.
//!
//! `view` (what a device hears) -> `names` (whom it means) -> `plugs` (which port is in which) ->
//! `compare` (what differs) -> `moves` (what to change by hand). `discover` makes cables of what
//! was heard, where no file says anything.

mod compare;
pub mod discover;
mod moves;
mod names;
mod plugs;
#[cfg(test)]
mod tests;
mod view;

pub use compare::{CablingScope, compare_cabling};
pub use names::CablingNames;
pub use view::{DeviceLldpView, PortLldpState, Silent, Views};

use super::CheckVerdict;
use railwright_knowledge::spec::cabling::CableEnd;
use serde::Serialize;

/// What a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CablingFindingKind {
    /// Cables that are in each other's ports: two, or more in a round.
    Swapped,
    /// A cable in a port of another one, or of none.
    WrongPort,
    /// A cable to a device that the spec does not have.
    UnknownDevice,
    /// A NIC without a link: its cable is not there, or ends in nothing.
    NoLink,
    /// A NIC that the file has no cable for, and that is in a port of the fabric.
    NotInFile,
    /// A NIC of which nobody can tell.
    Unknown,
    /// A device that reported nothing at all.
    Silent,
}

impl CablingFindingKind {
    /// The code of its page.
    pub fn code(self) -> &'static str {
        match self {
            CablingFindingKind::Swapped => "RW0830",
            CablingFindingKind::WrongPort => "RW0831",
            CablingFindingKind::UnknownDevice => "RW0832",
            CablingFindingKind::NoLink => "RW0833",
            CablingFindingKind::NotInFile => "RW0834",
            CablingFindingKind::Unknown => "RW0835",
            CablingFindingKind::Silent => "RW0836",
        }
    }

    /// Whether it is known to be wrong.
    pub fn verdict(self) -> CheckVerdict {
        match self {
            CablingFindingKind::Unknown | CablingFindingKind::Silent => CheckVerdict::Unknown,
            CablingFindingKind::Swapped
            | CablingFindingKind::WrongPort
            | CablingFindingKind::UnknownDevice
            | CablingFindingKind::NoLink
            | CablingFindingKind::NotInFile => CheckVerdict::Failed,
        }
    }
}

/// One end of a cable, where it belongs and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct Plug {
    /// The NIC; of a cable between switches the port that the file names first.
    pub end: CableEnd,
    /// The port that it belongs in.
    pub desired: Option<CableEnd>,
    /// The port that it is in.
    pub actual: Option<CableEnd>,
    /// The NIC that belongs in the port that it is in.
    pub owner: Option<CableEnd>,
    /// The line of the file.
    pub line: Option<u32>,
}

/// Something that is not as the file has it, or that nobody can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CablingFinding {
    /// What it is.
    pub kind: CablingFindingKind,
    /// The cables; of a round in the order in which each is in the port of the next.
    pub plugs: Vec<Plug>,
    /// Why nobody can tell; nothing where it is known.
    pub why: Option<UnknownCableReason>,
}

/// Why nobody can tell where a cable is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownCableReason {
    /// The port is not there.
    Absent,
    /// The port is down.
    Down,
    /// The port that it belongs in has another cable in it: of this port.
    Taken(CableEnd),
    /// It has a link, and hears nobody.
    HearsNobody,
    /// It hears a device of the spec that names its port otherwise than the file does, or not at
    /// all.
    Unclear { device: String, said: String },
    /// It hears somebody who says no name, but this chassis.
    Nameless(String),
    /// The device reported nothing.
    Silent(Silent),
}

/// How many cables are how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CablingCounts {
    /// Cables of the file that were looked at or should have been.
    pub cables: usize,
    /// As the file has them.
    pub right: usize,
    /// Not as the file has them; NICs that it does not know are not counted here.
    pub wrong: usize,
    /// Nobody can tell.
    pub unknown: usize,
    /// Of devices that are not asked: switches, hosts without SSH, hosts that were not named.
    pub not_asked: usize,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CablingComparison {
    /// What differs or is unknown.
    pub findings: Vec<CablingFinding>,
    /// How many.
    pub counts: CablingCounts,
}

impl CablingComparison {
    /// The worst of all.
    pub fn verdict(&self) -> CheckVerdict {
        self.findings
            .iter()
            .map(|finding| finding.kind.verdict())
            .min()
            .unwrap_or(CheckVerdict::Passed)
    }
}
