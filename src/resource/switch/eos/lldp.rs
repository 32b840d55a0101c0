//! Neighbours as EOS reports them, which has an LLDP agent of its own: `show lldp neighbors detail`
//! and `show interfaces description` as JSON. Members of the first: napalm-automation/napalm,
//! napalm/eos/eos.py (`get_lldp_neighbors_detail`), where port names have quotes around them; of
//! the second: aristanetworks/anta, anta/tests/interfaces.py (`VerifyInterfacesStatus`).

use crate::json_fields::read_text_field;
use crate::lldp::{self, LENGTH_MAX, Lldp, LldpNeighbour, NEIGHBOURS_MAX, Silence};
use crate::sections::{self, SHELL};
use railwright_base::text::one_line;
use serde_json::Value;
use std::collections::BTreeMap;

/// The script: what both commands print.
pub fn render_eos_lldp_script() -> String {
    format!(
        "{SHELL}if ! command -v FastCli >/dev/null 2>&1; then printf '\\n== lldpctl 127\\n'; else\n\
         {}{}fi\n\
         echo; echo '== end'\n",
        render_eos_query("interfaces", "show interfaces description"),
        render_eos_query("neighbors", "show lldp neighbors detail"),
    )
}

fn render_eos_query(word: &str, command: &str) -> String {
    format!(
        "o=$(as FastCli -p 15 -c '{command} | json' </dev/null 2>&1); printf '\\n== {word} \
         %s\\n' $?\n\
         printf '%s\\n' \"$o\" | sed 's/^/|/'\n"
    )
}

/// What both commands printed. Where the program is not there, that is reported as lldpctl's
/// absence is.
pub fn parse_eos_lldp_answer(out: &str) -> Result<Lldp, Silence> {
    let mut links = BTreeMap::new();
    for section in sections::parse_sections(out) {
        match section.word {
            "interfaces" => links = parse_eos_link_states(&section.text()),
            "neighbors" => {
                let text = section.text();
                return match parse_eos_neighbours(&text) {
                    Some(neighbours) => Ok(Lldp { links, neighbours }),
                    None => Err(Silence::NoAnswer(one_line(&text, 160).into())),
                };
            }
            _ => {}
        }
    }
    lldp::parse_lldpctl_answer(out)
}

/// Whether ports have a link; nothing where they are down and nobody can tell.
fn parse_eos_link_states(text: &str) -> BTreeMap<String, Option<bool>> {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let mut links = BTreeMap::new();
    let Some(Value::Object(members)) = json.get("interfaceDescriptions") else {
        return links;
    };
    for (name, member) in members.iter().take(NEIGHBOURS_MAX) {
        let is_down_by_hand = read_text_field(member, "interfaceStatus") == Some("adminDown");
        let has_link = read_text_field(member, "lineProtocolStatus") == Some("up");
        let link = (!is_down_by_hand).then_some(has_link);
        links.insert(one_line(name, LENGTH_MAX), link);
    }
    links
}

/// Neighbours by port; nothing where that is no answer.
fn parse_eos_neighbours(text: &str) -> Option<BTreeMap<String, Vec<LldpNeighbour>>> {
    let json: Value = serde_json::from_str(text).ok()?;
    let mut ports = BTreeMap::new();
    for (name, member) in json.get("lldpNeighbors")?.as_object()? {
        let Some(Value::Array(heard)) = member.get("lldpNeighborInfo") else {
            continue;
        };
        if !heard.is_empty() {
            let heard = heard.iter().take(NEIGHBOURS_MAX);
            let neighbours = heard.map(parse_eos_neighbour).collect();
            ports.insert(one_line(name, LENGTH_MAX), neighbours);
        }
    }
    Some(ports)
}

fn parse_eos_neighbour(heard: &Value) -> LldpNeighbour {
    let port = heard.get("neighborInterfaceInfo").unwrap_or(&Value::Null);
    LldpNeighbour {
        system: read_eos_text(heard, "systemName"),
        chassis: read_eos_text(heard, "chassisId"),
        port: read_eos_text(port, "interfaceId"),
        port_is_mac: read_text_field(port, "interfaceIdType") == Some("macAddress"),
        description: read_eos_text(port, "interfaceDescription"),
    }
}

fn read_eos_text(from: &Value, key: &str) -> String {
    let text = read_text_field(from, key).unwrap_or_default();
    one_line(text.trim_matches('"'), LENGTH_MAX)
}
