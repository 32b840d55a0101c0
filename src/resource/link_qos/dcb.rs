//! `dcb` of iproute2 and `ethtool`: what they say, decoded, and the commands that set it.

use super::settings::{Ets, Settings};
use crate::rights::RootAccessNeed;
use crate::sections::{SHELL, Section, find_section};
use railwright_base::quote::{quote_for_shell, sh_words};
use serde_json::Value;
use std::collections::BTreeMap;

/// One section per question; `mlnx_qos` only where `dcb` is not there, lldpad's will only where
/// lldpad runs, which a /proc with hidepid (proc(5)) would not tell a user without rights.
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
    let words = |all: &[&str]| {
        all.iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let dcb = ["pfc", "ets", "app", "dcbx"].map(|object| {
        RootAccessNeed::Program(DCB, words(&["-j", "-N", object, "show", "dev", netdev]))
    });
    let lldp = ["willing", "enabled"].map(|word| {
        RootAccessNeed::Program(
            LLDPTOOL,
            words(&["-t", "-i", netdev, "-V", "PFC", "-c", word]),
        )
    });
    let rest = [
        RootAccessNeed::Program(MLNX_QOS, words(&["-i", netdev])),
        RootAccessNeed::Program(ETHTOOL, words(&["-a", netdev])),
    ];
    dcb.into_iter().chain(lldp).chain(rest).collect()
}

const DCB: &[&str] = &["/opt/mellanox/iproute2/sbin/dcb", "/usr/sbin/dcb"];
const LLDPTOOL: &[&str] = &["/usr/sbin/lldptool"];
const MLNX_QOS: &[&str] = &["/usr/bin/mlnx_qos"];
const ETHTOOL: &[&str] = &["/opt/mellanox/ethtool/sbin/ethtool", "/usr/sbin/ethtool"];

/// The settings that run, as far as the sections tell them.
pub fn parse_dcb_settings(sections: &[Section<'_>]) -> Settings {
    let json = |word: &str| -> Option<Value> {
        serde_json::from_str(
            &find_section(sections, word)
                .filter(|s| s.code() == Some(0))?
                .text(),
        )
        .ok()
    };
    Settings {
        pfc: json("pfc").as_ref().and_then(parse_pfc_priorities),
        ets: json("ets").as_ref().and_then(parse_ets_settings),
        dscp: json("app").as_ref().and_then(parse_dscp_map),
        pause: parse_pause_state(sections),
        cable_length_m: json("pfc").as_ref().and_then(cable_length),
    }
}

/// `{"prio_pfc":[false,false,false,true,...]}`.
fn parse_pfc_priorities(value: &Value) -> Option<std::collections::BTreeSet<u8>> {
    let flags = value.get("prio_pfc")?.as_array()?;
    Some(
        (0u8..8)
            .zip(flags)
            .filter(|(_, flag)| flag.as_bool() == Some(true))
            .map(|(priority, _)| priority)
            .collect(),
    )
}

/// `{"delay":7,...}`: mlx5 tells and takes the metres of cable there, whatever dcb-pfc(8) calls it;
/// another driver's number is none.
fn cable_length(value: &Value) -> Option<u16> {
    value
        .get("delay")?
        .as_u64()
        .and_then(|metres| u16::try_from(metres).ok())
}

/// `{"tc_bw":[50,...],"tc_tsa":["ets",...],"prio_tc":[0,...]}`.
fn parse_ets_settings(value: &Value) -> Option<Ets> {
    let numbers = |key: &str| -> Option<[u8; 8]> {
        let list = value
            .get(key)?
            .as_array()?
            .iter()
            .map(|entry| entry.as_u64().and_then(|n| u8::try_from(n).ok()))
            .collect::<Option<Vec<u8>>>()?;
        list.try_into().ok()
    };
    let words = value
        .get("tc_tsa")?
        .as_array()?
        .iter()
        .map(|entry| entry.as_str().map(str::to_owned))
        .collect::<Option<Vec<String>>>()?;
    Some(Ets {
        prio_tc: numbers("prio_tc")?,
        tsa: words.try_into().ok()?,
        bandwidth: numbers("tc_bw")?,
    })
}

/// `{"dscp_prio":[[26,3],[48,6]]}`; without entries the key is not there.
fn parse_dscp_map(value: &Value) -> Option<BTreeMap<u8, u8>> {
    let empty = Vec::new();
    let list = value
        .as_object()?
        .get("dscp_prio")
        .map_or(Some(&empty), Value::as_array)?;
    let pair = |entry: &Value| {
        Some((
            u8::try_from(entry.get(0)?.as_u64()?).ok()?,
            u8::try_from(entry.get(1)?.as_u64()?).ok()?,
        ))
    };
    list.iter().map(pair).collect()
}

/// `RX:\t\ton`. mlx5 always calls autonegotiation off, so only the two directions count.
fn parse_pause_state(sections: &[Section<'_>]) -> Option<bool> {
    let section = find_section(sections, "pause").filter(|section| section.code() == Some(0))?;
    let direction = |name: &str| {
        section
            .lines
            .iter()
            .find_map(|line| line.strip_prefix(name))
            .map(|value| value.trim() == "on")
    };
    Some(direction("RX:")? || direction("TX:")?)
}

/// lldpad runs: whether it keeps PFC as wished. It does so only where it was told the same and
/// takes nothing from the switch; seen at a boot: one that was told nothing switches PFC off half a
/// minute after our unit switched it on.
pub fn lldpad_agrees(sections: &[Section<'_>], wanted: &Settings) -> Option<bool> {
    let value = |word: &str| -> Option<String> {
        find_section(sections, word)?
            .lines
            .iter()
            .find_map(|line| line.split_once('='))
            .map(|(_, value)| value.trim().to_owned())
    };
    find_section(sections, "lldpad")?;
    // a mask of bits: 8 is priority 3 (lldpad 1.1)
    let mask = value("lldpad-pfc").and_then(|text| text.parse::<u8>().ok());
    let enabled = mask.map(|mask| {
        (0u8..8)
            .filter(|priority| mask >> priority & 1 == 1)
            .collect()
    });
    Some(
        wanted.pfc.is_none() || (value("lldpad").as_deref() == Some("no") && wanted.pfc == enabled),
    )
}

/// Firmware or an LLDP agent owns DCBX where the kernel's `host` mode is off.
pub fn foreign_dcbx(sections: &[Section<'_>]) -> Option<bool> {
    let section = find_section(sections, "dcbx").filter(|section| section.code() == Some(0))?;
    let value: Value = serde_json::from_str(&section.text()).ok()?;
    let is_on = |key: &str| value.get(key).and_then(Value::as_bool) == Some(true);
    (is_on("host") || is_on("lld_managed")).then(|| !is_on("host"))
}

/// The commands that bring `now` to `wanted`: classes before the map, the map before PFC, so that
/// no packet is marked for a class that is not lossless yet. The DSCP map is exact: code points
/// that are not wished for go.
pub fn build_dcb_commands(netdev: &str, wanted: &Settings, now: &Settings) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut add = |object: &str, verb: &str, words: Vec<String>| {
        let head = [object, verb, "dev", netdev].map(str::to_owned);
        all.push(head.into_iter().chain(words).collect());
    };
    if let Some(ets) = &wanted.ets
        && now.ets.as_ref() != Some(ets)
    {
        add("ets", "set", ets_words(ets));
    }
    if let Some(dscp) = &wanted.dscp
        && now.dscp.as_ref() != Some(dscp)
    {
        let nothing = BTreeMap::new();
        let found = now.dscp.as_ref().unwrap_or(&nothing);
        let set = dscp
            .iter()
            .filter(|(code, priority)| found.get(code) != Some(priority));
        let gone = found.iter().filter(|(code, _)| !dscp.contains_key(code));
        // what is new first: when the last entry goes, mlx5 falls back to trusting the VLAN tag
        for (verb, words) in [("replace", dscp_words(set)), ("del", dscp_words(gone))] {
            if !words.is_empty() {
                add("app", verb, words);
            }
        }
    }
    if let Some(pfc) = &wanted.pfc
        && now.pfc.as_ref() != Some(pfc)
    {
        let mut words = vec!["prio-pfc".to_owned(), "all:off".to_owned()];
        words.extend(pfc.iter().map(|priority| format!("{priority}:on")));
        add("pfc", "set", words);
    }
    if let Some(metres) = wanted.cable_length_m
        && now.cable_length_m != Some(metres)
    {
        add("pfc", "set", vec!["delay".to_owned(), metres.to_string()]);
    }
    all
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
    let row = |name: &str, list: Vec<String>| {
        std::iter::once(name.to_owned())
            .chain(
                list.into_iter()
                    .enumerate()
                    .map(|(at, value)| format!("{at}:{value}")),
            )
            .collect::<Vec<_>>()
    };
    let texts = |list: &[u8; 8]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    [
        row("prio-tc", texts(&ets.prio_tc)),
        row("tc-tsa", ets.tsa.to_vec()),
        row("tc-bw", texts(&ets.bandwidth)),
    ]
    .concat()
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
    let numbers = |name: &str| -> Option<[u8; 8]> {
        let values = pairs_after(words, name).into_values();
        let list: Option<Vec<u8>> = values.map(|value| value.parse().ok()).collect();
        list?.try_into().ok()
    };
    let tsa = pairs_after(words, "tc-tsa").into_values();
    let tsa: Vec<String> = tsa.map(str::to_owned).collect();
    Some(Ets {
        prio_tc: numbers("prio-tc")?,
        tsa: tsa.try_into().ok()?,
        bandwidth: numbers("tc-bw")?,
    })
}
