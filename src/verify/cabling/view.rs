//! What one device hears on its ports.

use railwright_resource::lldp::{self, Lldp, LldpNeighbour};
use railwright_resource::observation::TargetReadFailure;
use railwright_resource::switch::SwitchSystem;
use std::collections::BTreeMap;

/// What a port says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortLldpState {
    /// It is up, and has no link.
    NoLink,
    /// It is down, so that nobody can be heard.
    Down,
    /// Whoever is heard; nobody where the list is empty.
    Neighbours(Vec<LldpNeighbour>),
}

/// The ports of a device, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceLldpView {
    /// What each says.
    pub ports: BTreeMap<String, PortLldpState>,
}

/// Why a device reported nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silent {
    /// It could not be reached or read.
    Unreached(Box<TargetReadFailure>),
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
    /// Words that are equal for all devices with one trouble.
    pub fn shared_message(&self) -> String {
        match self {
            Silent::Unreached(trouble) => trouble.shared_message.clone(),
            Silent::NoLldp => "lldpd is not installed".to_owned(),
            Silent::NoAnswer(words) => format!("lldpd does not answer: {words}"),
            Silent::Unread(why) => why.clone(),
            Silent::OfSwitch { said, .. } => format!("its LLDP does not answer: {said}"),
        }
    }

    /// Of a switch with this system.
    pub fn of_switch(silence: lldp::Silence, system: SwitchSystem) -> Silent {
        let said = match silence {
            lldp::Silence::Absent => "the program is not there".to_owned(),
            lldp::Silence::NoAnswer(words) => words.to_string(),
            lldp::Silence::Unread(why) => return Silent::Unread(why.to_string()),
        };
        Silent::OfSwitch {
            said,
            next: system.lldp_help().to_owned(),
        }
    }
}

/// Views by device; a device that is not among them was not asked.
pub type Views = BTreeMap<String, Result<DeviceLldpView, Silent>>;

impl DeviceLldpView {
    /// Of the answer of a host or a switch.
    pub fn of(lldp: Lldp) -> DeviceLldpView {
        let Lldp {
            links,
            mut neighbours,
        } = lldp;
        let mut ports: BTreeMap<String, PortLldpState> = BTreeMap::new();
        for (netdev, link) in links {
            let heard = match (neighbours.remove(&netdev), link) {
                (Some(all), _) => PortLldpState::Neighbours(all),
                (None, Some(true)) => PortLldpState::Neighbours(Vec::new()),
                (None, Some(false)) => PortLldpState::NoLink,
                (None, None) => PortLldpState::Down,
            };
            ports.insert(netdev, heard);
        }
        ports.extend(
            neighbours
                .into_iter()
                .map(|(netdev, all)| (netdev, PortLldpState::Neighbours(all))),
        );
        DeviceLldpView { ports }
    }
}

impl From<lldp::Silence> for Silent {
    fn from(silence: lldp::Silence) -> Self {
        match silence {
            lldp::Silence::Absent => Silent::NoLldp,
            lldp::Silence::NoAnswer(words) => Silent::NoAnswer(words.to_string()),
            lldp::Silence::Unread(why) => Silent::Unread(why.to_string()),
        }
    }
}
