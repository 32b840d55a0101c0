//! Cables as they are, from what devices hear of each other (LLDP), compared with the spec's. Pure: views in, findings out. A view is
//! what one device says of its ports, whichever side of a cable it is on; the more devices are asked, the more is known.
//!
//! `view` (what a device hears) -> `names` (whom it means) -> `plugs` (which port is in which) -> `compare` (what differs) -> `moves`
//! (what to change by hand). `discover` makes cables of what was heard, where no file says anything.

mod compare;
pub mod discover;
mod moves;
mod names;
mod plugs;
#[cfg(test)]
mod tests;
mod view;

pub use compare::{Scope, compare};
pub use names::Names;
pub use view::{Heard, Silent, View, Views};

use super::Verdict;
use railwright_knowledge::spec::cabling::End;
use serde::Serialize;

/// What a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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
    /// A device that told nothing at all.
    Silent,
}

impl Kind {
    /// The code of its page.
    pub fn code(self) -> &'static str {
        match self {
            Kind::Swapped => "RW0830",
            Kind::WrongPort => "RW0831",
            Kind::UnknownDevice => "RW0832",
            Kind::NoLink => "RW0833",
            Kind::NotInFile => "RW0834",
            Kind::Unknown => "RW0835",
            Kind::Silent => "RW0836",
        }
    }

    /// Whether it is known to be wrong.
    pub fn verdict(self) -> Verdict {
        match self {
            Kind::Unknown | Kind::Silent => Verdict::Unknown,
            Kind::Swapped | Kind::WrongPort | Kind::UnknownDevice | Kind::NoLink | Kind::NotInFile => Verdict::Failed,
        }
    }
}

/// One end of a cable, where it belongs and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct Plug {
    /// The NIC; of a cable between switches the port that the file names first.
    pub end: End,
    /// The port that it belongs in.
    pub wanted: Option<End>,
    /// The port that it is in.
    pub found: Option<End>,
    /// The NIC that belongs in the port that it is in.
    pub owner: Option<End>,
    /// The line of the file.
    pub line: Option<u32>,
}

/// Something that is not as the file has it, or that nobody can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// The cables; of a round in the order in which each is in the port of the next.
    pub plugs: Vec<Plug>,
    /// Why nobody can tell; nothing where it is known.
    pub why: Option<Why>,
}

/// Why nobody can tell where a cable is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The port is not there.
    Absent,
    /// The port is down.
    Down,
    /// The port that it belongs in has another cable in it: of this port.
    Taken(End),
    /// It has a link, and hears nobody.
    HearsNobody,
    /// It hears a device of the spec that names its port otherwise than the file does, or not at all.
    Unclear { device: String, said: String },
    /// It hears somebody who says no name, but this chassis.
    Nameless(String),
    /// The device told nothing.
    Silent(Silent),
}

/// How many cables are how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Counts {
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
pub struct Comparison {
    /// What differs or is unknown.
    pub findings: Vec<Finding>,
    /// How many.
    pub counts: Counts,
}

impl Comparison {
    /// The worst of all.
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.kind.verdict()).min().unwrap_or(Verdict::Passed)
    }
}
