//! What the ports of a switch hear by LLDP.

use super::SwitchSystem;
use crate::lldp::{Lldp, Silence};
use crate::{Read, ReadResults};

/// Decodes the answer of a switch with this system.
pub fn decode_switch_neighbours(
    system: SwitchSystem,
    answers: &ReadResults,
) -> Result<Lldp, Silence> {
    let read = Read::SwitchNeighbours { system };
    let (_, out) = answers.output(&read).map_err(Silence::Unread)?;
    system.neighbours(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::answered;

    /// SONiC's lldpd is in a container, that of Cumulus Linux is the switch's own.
    #[test]
    fn a_switch_is_asked_where_its_lldpd_is() {
        let script = |system| Read::SwitchNeighbours { system }.script();
        assert!(script(SwitchSystem::Sonic).contains("as docker exec lldp lldpctl -f json0"));
        assert!(script(SwitchSystem::Cumulus).contains("as \"$p\" -f json0"));
        let read = Read::SwitchNeighbours {
            system: SwitchSystem::Sonic,
        };
        let silent = "\n== netdev Ethernet0\n|carrier=1\n\n== lldpctl 127\n\n== end\n";
        let heard = decode_switch_neighbours(SwitchSystem::Sonic, &answered(&[(&read, 0, silent)]));
        assert_eq!(heard, Err(Silence::Absent));
    }

    /// EOS has an agent of its own, and says names of ports in quotes.
    #[test]
    fn eos_tells_of_its_ports_in_its_own_json() {
        let read = Read::SwitchNeighbours {
            system: SwitchSystem::Eos,
        };
        let heard_by =
            |out: &str| decode_switch_neighbours(SwitchSystem::Eos, &answered(&[(&read, 0, out)]));
        let interfaces = r#"{"interfaceDescriptions": {"Ethernet1": {"interfaceStatus": "up", "lineProtocolStatus": "up", "description": ""},
        "Ethernet2": {"interfaceStatus": "down", "lineProtocolStatus": "notPresent"}, "Ethernet3": {"interfaceStatus": "adminDown", "lineProtocolStatus": "down"}}}"#;
        let heard = r#"{"lldpNeighbors": {"Ethernet1": {"lldpNeighborInfo": [{"systemName": "gpu01", "chassisId": "6a1b.ee54.7bdc",
            "neighborInterfaceInfo": {"interfaceIdType": "macAddress", "interfaceId": "6a1b.ee54.7bdd", "interfaceDescription": "ens0f0np0"}}]},
        "Ethernet2": {"lldpNeighborInfo": []}}}"#;
        let lines = |text: &str| text.replace('\n', "\n|");
        let said = |of_neighbors: &str| {
            format!(
                "\n== interfaces 0\n|{}\n\n== neighbors 0\n|{}\n\n== end\n",
                lines(interfaces),
                lines(of_neighbors)
            )
        };
        let told = heard_by(&said(heard)).unwrap();
        assert_eq!(
            told.links.into_values().collect::<Vec<_>>(),
            [Some(true), Some(false), None]
        );
        let neighbour = &told.neighbours["Ethernet1"][0];
        assert_eq!(
            (
                neighbour.system.as_str(),
                neighbour.port_is_mac,
                neighbour.description.as_str()
            ),
            ("gpu01", true, "ens0f0np0")
        );
        assert_eq!(told.neighbours.len(), 1);
        let refused = heard_by(&said("% LLDP is not enabled"));
        assert_eq!(
            refused,
            Err(Silence::NoAnswer("% LLDP is not enabled".into()))
        );
        assert!(
            read.script()
                .contains("as FastCli -p 15 -c 'show lldp neighbors detail | json'")
        );
    }
}
