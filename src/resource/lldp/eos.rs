//! Neighbours as EOS tells them, which has an LLDP agent of its own: `show lldp neighbors detail`
//! and `show interfaces description` as JSON. Members of the first: napalm-automation/napalm,
//! napalm/eos/eos.py (`get_lldp_neighbors_detail`), where port names have quotes around them; of
//! the second: aristanetworks/anta, anta/tests/interfaces.py (`VerifyInterfacesStatus`).

use super::{LENGTH_MAX, LldpNeighbour, NEIGHBOURS_MAX};
use crate::sections::SHELL;
use railwright_base::text::one_line;
use serde_json::Value;
use std::collections::BTreeMap;

/// The script: what both commands print.
pub fn render_eos_lldp_script() -> String {
    let ask = |word: &str, command: &str| {
        format!(
            "o=$(as FastCli -p 15 -c '{command} | json' </dev/null 2>&1); printf '\\n== {word} \
             %s\\n' $?\n\
             printf '%s\\n' \"$o\" | sed 's/^/|/'\n"
        )
    };
    format!(
        "{SHELL}if ! command -v FastCli >/dev/null 2>&1; then printf '\\n== lldpctl 127\\n'; else\n\
         {}{}fi\n\
         echo; echo '== end'\n",
        ask("interfaces", "show interfaces description"),
        ask("neighbors", "show lldp neighbors detail"),
    )
}

/// Whether ports have a link; nothing where they are down and nobody can tell.
pub fn parse_eos_link_states(text: &str) -> BTreeMap<String, Option<bool>> {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let members = json
        .get("interfaceDescriptions")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let link = |(name, member): (&String, &Value)| {
        let word = |key: &str| member.get(key).and_then(Value::as_str);
        let link = (word("interfaceStatus") != Some("adminDown"))
            .then(|| word("lineProtocolStatus") == Some("up"));
        (one_line(name, LENGTH_MAX), link)
    };
    members.take(NEIGHBOURS_MAX).map(link).collect()
}

/// Neighbours by port; nothing where that is no answer.
pub fn parse_eos_neighbours(text: &str) -> Option<BTreeMap<String, Vec<LldpNeighbour>>> {
    let json: Value = serde_json::from_str(text).ok()?;
    let of_port = |(name, member): (&String, &Value)| {
        let heard = member
            .get("lldpNeighborInfo")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        (
            one_line(name, LENGTH_MAX),
            heard
                .take(NEIGHBOURS_MAX)
                .map(parse_eos_neighbour)
                .collect::<Vec<_>>(),
        )
    };
    let ports = json.get("lldpNeighbors")?.as_object()?;
    Some(
        ports
            .iter()
            .map(of_port)
            .filter(|(_, heard)| !heard.is_empty())
            .collect(),
    )
}

fn parse_eos_neighbour(heard: &Value) -> LldpNeighbour {
    let word = |from: &Value, key: &str| {
        let text = from.get(key).and_then(Value::as_str).unwrap_or_default();
        one_line(text.trim_matches('"'), LENGTH_MAX)
    };
    let port = heard.get("neighborInterfaceInfo").unwrap_or(&Value::Null);
    LldpNeighbour {
        system: word(heard, "systemName"),
        chassis: word(heard, "chassisId"),
        port: word(port, "interfaceId"),
        port_is_mac: port.get("interfaceIdType").and_then(Value::as_str) == Some("macAddress"),
        description: word(port, "interfaceDescription"),
    }
}
