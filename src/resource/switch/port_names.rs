//! How a system names the ports of its front panel.

use super::SwitchSystem;

/// A number of a port or a lane: digits, four at most.
fn is_port_number(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl SwitchSystem {
    /// Whether a port of the front panel can have this name: `Ethernet0`
    /// (sonic-net/sonic-buildimage, port_config.ini of every device), `swp1` and `swp1s0` of a port
    /// that is divided (CumulusNetworks/docs, content/cumulus-linux-512, Switch Port Attributes),
    /// `Ethernet1`, `Ethernet1/1` of a port with lanes, `Ethernet3/1/1` of a line card (the EOS
    /// manual, Ethernet Ports).
    pub fn has_port_named(self, port: &str) -> bool {
        let prefix = match self {
            SwitchSystem::Sonic | SwitchSystem::Eos => "Ethernet",
            SwitchSystem::Cumulus => "swp",
        };
        let Some(rest) = port.strip_prefix(prefix) else {
            return false;
        };
        match self {
            SwitchSystem::Sonic => is_port_number(rest),
            SwitchSystem::Cumulus => {
                let (port, lane) = rest.split_once('s').unwrap_or((rest, "0"));
                is_port_number(port) && is_port_number(lane)
            }
            SwitchSystem::Eos => {
                rest.split('/').all(is_port_number) && rest.split('/').count() <= 3
            }
        }
    }

    /// Names of ports as an example in a sentence.
    pub fn port_name_examples(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "`Ethernet0`, `Ethernet4`",
            SwitchSystem::Cumulus => "`swp1`, or `swp1s0` where it is divided",
            SwitchSystem::Eos => "`Ethernet1`, `Ethernet1/1` or `Ethernet3/1/1`",
        }
    }

    /// A node-set of ports as an example.
    pub fn port_set_example(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "Ethernet[0-60/4]",
            SwitchSystem::Cumulus => "swp[1-32]",
            SwitchSystem::Eos => "Ethernet[1-32]/1",
        }
    }

    /// The command on the switch that lists its ports.
    pub fn port_list_command(self) -> &'static str {
        match self {
            SwitchSystem::Sonic | SwitchSystem::Eos => "show interfaces status",
            SwitchSystem::Cumulus => "nv show interface",
        }
    }
}
