//! What one device hears on its ports.

use railwright_resource::lldp::{self, Lldp, Neighbour};
use railwright_resource::observation::Trouble;
use railwright_resource::switch::System;
use std::collections::BTreeMap;

/// What a port says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It is up, and has no link.
    NoLink,
    /// It is down, so that nobody can be heard.
    Down,
    /// Whoever is heard; nobody where the list is empty.
    Neighbours(Vec<Neighbour>),
}

/// The ports of a device, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// What each says.
    pub ports: BTreeMap<String, Heard>,
}

/// Why a device told nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silent {
    /// It could not be reached or read.
    Unreached(Box<Trouble>),
    /// There is no lldpd.
    NoLldp,
    /// lldpd does not answer: its words.
    NoAnswer(String),
    /// The read did not come to its end: why.
    Unread(String),
    /// LLDP of a switch does not answer: its words, and the command that goes on.
    OfSwitch { said: String, next: String },
}

impl Silent {
    /// The same words for all devices with the same trouble.
    pub fn alike(&self) -> String {
        match self {
            Silent::Unreached(trouble) => trouble.alike.clone(),
            Silent::NoLldp => "lldpd is not installed".to_owned(),
            Silent::NoAnswer(words) => format!("lldpd does not answer: {words}"),
            Silent::Unread(why) => why.clone(),
            Silent::OfSwitch { said, .. } => format!("its LLDP does not answer: {said}"),
        }
    }

    /// Of a switch with this system.
    pub fn of_switch(silence: lldp::Silence, system: System) -> Silent {
        let said = match silence {
            lldp::Silence::Absent => "the program is not there".to_owned(),
            lldp::Silence::NoAnswer(words) => words,
            lldp::Silence::Unread(why) => return Silent::Unread(why),
        };
        let next = match system {
            System::Sonic => "on the switch: docker ps shows whether its container `lldp` runs; sudo config feature state lldp enabled",
            System::Cumulus => "on the switch: systemctl status lldpd",
            System::Eos => "on the switch: show lldp; lldp run switches it on",
        };
        Silent::OfSwitch { said, next: next.to_owned() }
    }
}

/// Views by device; a device that is not among them was not asked.
pub type Views = BTreeMap<String, Result<View, Silent>>;

impl View {
    /// Of the answer of a host or a switch.
    pub fn of(lldp: Lldp) -> View {
        let Lldp { links, mut neighbours } = lldp;
        let mut ports: BTreeMap<String, Heard> = BTreeMap::new();
        for (netdev, link) in links {
            let heard = match (neighbours.remove(&netdev), link) {
                (Some(all), _) => Heard::Neighbours(all),
                (None, Some(true)) => Heard::Neighbours(Vec::new()),
                (None, Some(false)) => Heard::NoLink,
                (None, None) => Heard::Down,
            };
            ports.insert(netdev, heard);
        }
        ports.extend(neighbours.into_iter().map(|(netdev, all)| (netdev, Heard::Neighbours(all))));
        View { ports }
    }
}

impl From<lldp::Silence> for Silent {
    fn from(silence: lldp::Silence) -> Self {
        match silence {
            lldp::Silence::Absent => Silent::NoLldp,
            lldp::Silence::NoAnswer(words) => Silent::NoAnswer(words),
            lldp::Silence::Unread(why) => Silent::Unread(why),
        }
    }
}
