//! `dcb` of iproute2 and `ethtool`: what they say, decoded, and the commands that set it.

use super::settings::{Ets, Settings};
use crate::Reading;
use crate::json_fields::read_flag_field;
use crate::rights::RootAccessNeed;
use crate::sections::{SHELL, Section, find_section};
use railwright_base::quote::{quote_for_shell, sh_words};
use railwright_base::text::one_line;
use serde_json::Value;
use std::collections::BTreeMap;

/// One section per question; `mlnx_qos` only where `dcb` is not there, lldpad's will only where
/// lldpad runs, which a /proc with hidepid (proc(5)) would not show a user without rights.
pub fn read_script(netdev: &str) -> String {
    format!(
        r#"{SHELL}n={netdev}; [ -d "$R/sys/class/net/$n" ] || exit 1
[ -e "$R/sys/class/net/$n/device/physfn" ] && printf '\n== virtual-function\n'
if command -v dcb >/dev/null 2>&1; then
for o in pfc ets app dcbx; do said "$o" dcb -j -N "$o" show dev "$n"; done
elif command -v mlnx_qos >/dev/null 2>&1; then said mlnx_qos mlnx_qos -i "$n"; fi
command -v ethtool >/dev/null 2>&1 && said pause ethtool -a "$n"
[ -z "${{RAILWRIGHT_READ_ONLY-}}" ] || ! command -v lldptool >/dev/null 2>&1 || [ -r "$R/proc/1/comm" ] || lack reads /proc/1/comm
for c in "$R"/proc/[0-9]*/comm; do w=; {{ read -r w <"$c"; }} 2>/dev/null; [ "$w" = lldpad ] || continue
said lldpad lldptool -t -i "$n" -V PFC -c willing; said lldpad-pfc lldptool -t -i "$n" -V PFC -c enabled; break; done
exit 0
"#,
        netdev = quote_for_shell(netdev)
    )
}

/// The kernel answers anybody (`dcb_doit` and `dev_ethtool` ask for CAP_NET_ADMIN on a change
/// only); `mlnx_qos` and lldpad may not.
pub fn list_qos_access_needs(netdev: &str) -> Vec<RootAccessNeed> {
    let mut needs = Vec::new();
    for object in ["pfc", "ets", "app", "dcbx"] {
        needs.push(need_program(
            DCB,
            &["-j", "-N", object, "show", "dev", netdev],
        ));
    }
    for word in ["willing", "enabled"] {
        let words = ["-t", "-i", netdev, "-V", "PFC", "-c", word];
        needs.push(need_program(LLDPTOOL, &words));
    }
    needs.push(need_program(MLNX_QOS, &["-i", netdev]));
    needs.push(need_program(ETHTOOL, &["-a", netdev]));
    needs
}

fn need_program(paths: &'static [&'static str], words: &[&str]) -> RootAccessNeed {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    RootAccessNeed::Program(paths, words)
}

const DCB: &[&str] = &["/opt/mellanox/iproute2/sbin/dcb", "/usr/sbin/dcb"];
const LLDPTOOL: &[&str] = &["/usr/sbin/lldptool"];
const MLNX_QOS: &[&str] = &["/usr/bin/mlnx_qos"];
const ETHTOOL: &[&str] = &["/opt/mellanox/ethtool/sbin/ethtool", "/usr/sbin/ethtool"];

/// The settings that run, as far as the sections show them.
pub fn parse_dcb_settings(sections: &[Section<'_>]) -> Settings {
    let pfc = parse_section_json(sections, "pfc");
    let ets = parse_section_json(sections, "ets");
    let app = parse_section_json(sections, "app");
    Settings {
        pfc: pfc.as_ref().and_then(parse_pfc_priorities),
        ets: ets.as_ref().and_then(parse_ets_settings),
        dscp: app.as_ref().and_then(parse_dscp_map),
        pause: parse_pause_state(sections),
        cable_length_m: pfc.as_ref().and_then(parse_cable_length),
    }
}

/// What a command that succeeded printed, as JSON.
fn parse_section_json(sections: &[Section<'_>], word: &str) -> Option<Value> {
    let section = find_section(sections, word)?;
    if section.code() != Some(0) {
        return None;
    }
    serde_json::from_str(&section.text()).ok()
}

/// `{"prio_pfc":[false,false,false,true,...]}`.
fn parse_pfc_priorities(value: &Value) -> Option<std::collections::BTreeSet<u8>> {
    let flags = value.get("prio_pfc")?.as_array()?;
    let is_on = |priority: &u8| flags.get(usize::from(*priority)) == Some(&Value::Bool(true));
    Some((0u8..8).filter(is_on).collect())
}

/// `{"delay":7,...}`: mlx5 shows and takes the metres of cable there, whatever dcb-pfc(8) calls it;
/// another driver's number is none.
fn parse_cable_length(value: &Value) -> Option<u16> {
    u16::try_from(value.get("delay")?.as_u64()?).ok()
}

/// `{"tc_bw":[50,...],"tc_tsa":["ets",...],"prio_tc":[0,...]}`.
fn parse_ets_settings(value: &Value) -> Option<Ets> {
    let mut words = Vec::new();
    for entry in value.get("tc_tsa")?.as_array()? {
        words.push(entry.as_str()?.to_owned());
    }
    Some(Ets {
        prio_tc: parse_eight_numbers(value.get("prio_tc")?)?,
        tsa: words.try_into().ok()?,
        bandwidth: parse_eight_numbers(value.get("tc_bw")?)?,
    })
}

fn parse_eight_numbers(list: &Value) -> Option<[u8; 8]> {
    let numbers: Option<Vec<u8>> = list.as_array()?.iter().map(parse_byte).collect();
    numbers?.try_into().ok()
}

fn parse_byte(value: &Value) -> Option<u8> {
    u8::try_from(value.as_u64()?).ok()
}

/// `{"dscp_prio":[[26,3],[48,6]]}`; without entries the key is not there.
fn parse_dscp_map(value: &Value) -> Option<BTreeMap<u8, u8>> {
    let mut priorities = BTreeMap::new();
    let Some(list) = value.as_object()?.get("dscp_prio") else {
        return Some(priorities);
    };
    for entry in list.as_array()? {
        priorities.insert(parse_byte(entry.get(0)?)?, parse_byte(entry.get(1)?)?);
    }
    Some(priorities)
}

/// `RX:\t\ton`. mlx5 always calls autonegotiation off, so only the two directions count.
fn parse_pause_state(sections: &[Section<'_>]) -> Option<bool> {
    let section = find_section(sections, "pause").filter(|section| section.code() == Some(0))?;
    Some(is_direction_paused(section, "RX:")? || is_direction_paused(section, "TX:")?)
}

/// Why `ethtool` showed no pause: that the driver has none counts as an answer, anything else
/// leaves it unknown.
pub fn explain_missing_pause(sections: &[Section<'_>]) -> Reading {
    let Some(section) = find_section(sections, "pause") else {
        let why = "the host has no `ethtool`, which alone shows and sets global pause: install it";
        return Reading::Unknown(why.into());
    };
    let said = section.text();
    if said.contains("Operation not supported") {
        return Reading::NotApplicable("the driver has no pause setting".into());
    }
    Reading::Unknown(
        format!(
            "ethtool did not show global pause: {}",
            one_line(&said, 120)
        )
        .into(),
    )
}

fn is_direction_paused(section: &Section<'_>, direction: &str) -> Option<bool> {
    let mut lines = section.lines.iter();
    let value = lines.find_map(|line| line.strip_prefix(direction))?;
    Some(value.trim() == "on")
}

/// lldpad runs: whether it keeps PFC as desired. It does so only where it is set to the same and
/// takes nothing from the switch; seen at a boot: one without settings switches PFC off half a
/// minute after our unit switched it on.
pub fn lldpad_agrees(sections: &[Section<'_>], desired: &Settings) -> Option<bool> {
    find_section(sections, "lldpad")?;
    if desired.pfc.is_none() {
        return Some(true);
    }
    // a mask of bits: 8 is priority 3 (lldpad 1.1)
    let mask = find_assigned_value(sections, "lldpad-pfc").and_then(|text| text.parse::<u8>().ok());
    let enabled = mask.map(|mask| {
        (0u8..8)
            .filter(|priority| mask >> priority & 1 == 1)
            .collect()
    });
    Some(find_assigned_value(sections, "lldpad") == Some("no") && desired.pfc == enabled)
}

/// The value of the first line `NAME=VALUE` of a section.
fn find_assigned_value<'t>(sections: &[Section<'t>], word: &str) -> Option<&'t str> {
    let mut lines = find_section(sections, word)?.lines.iter();
    let (_, value) = lines.find_map(|line| line.split_once('='))?;
    Some(value.trim())
}

/// Firmware or an LLDP agent owns DCBX where the kernel's `host` mode is off.
pub fn foreign_dcbx(sections: &[Section<'_>]) -> Option<bool> {
    let value = parse_section_json(sections, "dcbx")?;
    let is_host = read_flag_field(&value, "host") == Some(true);
    let is_firmware = read_flag_field(&value, "lld_managed") == Some(true);
    (is_host || is_firmware).then_some(!is_host)
}

/// The commands that bring `now` to `desired`: classes before the map, the map before PFC, so that
/// no packet is marked for a class that is not lossless yet. The DSCP map is exact: code points
/// that are not declared go.
pub fn build_dcb_commands(netdev: &str, desired: &Settings, now: &Settings) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    if let Some(ets) = &desired.ets
        && now.ets.as_ref() != Some(ets)
    {
        commands.push(build_dcb_command("ets", "set", netdev, ets_words(ets)));
    }
    if let Some(dscp) = &desired.dscp
        && now.dscp.as_ref() != Some(dscp)
    {
        let nothing = BTreeMap::new();
        let actual = now.dscp.as_ref().unwrap_or(&nothing);
        let set = dscp
            .iter()
            .filter(|(code, priority)| actual.get(code) != Some(priority));
        let gone = actual.iter().filter(|(code, _)| !dscp.contains_key(code));
        // what is new first: when the last entry goes, mlx5 falls back to trusting the VLAN tag
        for (verb, words) in [("replace", dscp_words(set)), ("del", dscp_words(gone))] {
            if !words.is_empty() {
                commands.push(build_dcb_command("app", verb, netdev, words));
            }
        }
    }
    if let Some(pfc) = &desired.pfc
        && now.pfc.as_ref() != Some(pfc)
    {
        let mut words = vec!["prio-pfc".to_owned(), "all:off".to_owned()];
        words.extend(pfc.iter().map(|priority| format!("{priority}:on")));
        commands.push(build_dcb_command("pfc", "set", netdev, words));
    }
    if let Some(metres) = desired.cable_length_m
        && now.cable_length_m != Some(metres)
    {
        let words = vec!["delay".to_owned(), metres.to_string()];
        commands.push(build_dcb_command("pfc", "set", netdev, words));
    }
    commands
}

fn build_dcb_command(object: &str, verb: &str, netdev: &str, words: Vec<String>) -> Vec<String> {
    let mut command = [object, verb, "dev", netdev].map(str::to_owned).to_vec();
    command.extend(words);
    command
}

/// `dscp-prio 26:3 48:6`; nothing for a map without entries.
fn dscp_words<'a>(map: impl Iterator<Item = (&'a u8, &'a u8)>) -> Vec<String> {
    let mut words: Vec<String> = map
        .map(|(code, priority)| format!("{code}:{priority}"))
        .collect();
    if !words.is_empty() {
        words.insert(0, "dscp-prio".to_owned());
    }
    words
}

fn ets_words(ets: &Ets) -> Vec<String> {
    let mut words = Vec::new();
    push_numbered_words(&mut words, "prio-tc", &ets.prio_tc);
    push_numbered_words(&mut words, "tc-tsa", &ets.tsa);
    push_numbered_words(&mut words, "tc-bw", &ets.bandwidth);
    words
}

/// `prio-tc 0:0 1:0 ...`.
fn push_numbered_words(words: &mut Vec<String>, name: &str, values: &[impl std::fmt::Display]) {
    words.push(name.to_owned());
    for (at, value) in values.iter().enumerate() {
        words.push(format!("{at}:{value}"));
    }
}

/// dcb numbers its requests by the second and leaves the kernel's acknowledgement of one unread;
/// where the next is sent in another second, libmnl takes that for a reply out of sequence and says
/// EPROTO (iproute2: lib/mnl_utils.c, `mnlu_msg_prepare`; libmnl: src/callback.c,
/// `mnl_nlmsg_seq_ok`). Seen on a busy machine of the lab; the same words again are no harm.
const AGAIN: &str = "dcb() {
    said=$(command dcb \"$@\" 2>&1) && return
    case $said in
    *'Protocol error'*) command dcb \"$@\" ;;
    *) echo \"$said\" >&2; return 1 ;;
    esac
}
";

/// `dcb` with each of these words, one call after the other; the first that fails ends it.
pub fn set_script(commands: &[Vec<String>]) -> String {
    let lines = commands
        .iter()
        .map(|words| format!("dcb {}\n", sh_words(words.iter().map(String::as_str))));
    std::iter::once("set -e\n".to_owned())
        .chain(lines)
        .collect()
}

/// The calls of `set_script` for the running system, where one that fails by a race is tried again.
pub fn set_now_script(commands: &[Vec<String>]) -> String {
    format!("{AGAIN}{}", set_script(commands))
}

/// `ethtool` says with its exit status that nothing had to change; what counts is read again.
pub fn pause_script(netdev: &str, on: bool) -> String {
    let word = if on { "on" } else { "off" };
    format!(
        "ethtool -A {} rx {word} tx {word} || :\n",
        quote_for_shell(netdev)
    )
}

/// The settings in a script of ours, so that a changed script shows what it would set.
pub fn decode_script(text: &str) -> Settings {
    let mut all = Settings::default();
    for line in text.lines() {
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_matches('\''))
            .collect();
        match words.get(..3) {
            Some(["dcb", "pfc", "set"]) if words.contains(&"delay") => {
                all.cable_length_m = words.last().and_then(|metres| metres.parse().ok());
            }
            Some(["dcb", "pfc", "set"]) => {
                let priorities = pairs_after(&words, "prio-pfc").into_iter();
                let on = priorities.filter(|(_, word)| *word == "on");
                all.pfc = Some(on.map(|(priority, _)| priority).collect());
            }
            Some(["dcb", "app", "replace"]) => {
                all.dscp = pairs_after(&words, "dscp-prio")
                    .into_iter()
                    .map(|(code, priority)| Some((code, priority.parse().ok()?)))
                    .collect();
            }
            Some(["dcb", "ets", "set"]) => all.ets = decode_ets(&words),
            Some(["ethtool", "-A", _]) => all.pause = Some(words.contains(&"on")),
            _ => {}
        }
    }
    all
}

/// The pairs `KEY:VALUE` after a word of a command, up to the next word that is none.
fn pairs_after<'a>(words: &[&'a str], from: &str) -> BTreeMap<u8, &'a str> {
    let rest = words.iter().skip_while(|word| **word != from).skip(1);
    rest.map_while(|word| word.split_once(':'))
        .filter_map(|(key, value)| Some((key.parse().ok()?, value)))
        .collect()
}

fn decode_ets(words: &[&str]) -> Option<Ets> {
    let tsa = pairs_after(words, "tc-tsa").into_values();
    let tsa: Vec<String> = tsa.map(str::to_owned).collect();
    Some(Ets {
        prio_tc: parse_numbers_after(words, "prio-tc")?,
        tsa: tsa.try_into().ok()?,
        bandwidth: parse_numbers_after(words, "tc-bw")?,
    })
}

fn parse_numbers_after(words: &[&str], name: &str) -> Option<[u8; 8]> {
    let values = pairs_after(words, name).into_values();
    let list: Option<Vec<u8>> = values.map(|value| value.parse().ok()).collect();
    list?.try_into().ok()
}
