//! `mlnx_qos` of OFED, where the host has no `dcb` (Ubuntu 20.04's iproute2 5.5): its text, and its
//! commands. Its DSCP map always has all 64 code points, so only those wished for are compared.

use super::settings::{Ets, Settings};
use crate::sections::Section;
use railwright_base::quote::sh_words;
use std::collections::BTreeMap;

/// What `mlnx_qos -i NETDEV` said; `None` when it did not answer (it prints a traceback for NICs of
/// others).
pub fn parse_mlnx_qos_settings(section: &Section<'_>, wanted: &Settings) -> Option<Settings> {
    if section.code() != Some(0) {
        return None;
    }
    let mut settings = Settings::default();
    let mut map = BTreeMap::new();
    let mut trusts_dscp = false;
    let (mut prio_tc, mut tsa, mut bandwidth) = (
        [0u8; 8],
        std::array::from_fn(|_| "vendor".to_owned()),
        [0u8; 8],
    );
    let mut class = 0usize;
    for line in section.lines.iter().map(|line| line.trim()) {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "Cable" => {
                settings.cable_length_m = words.last().and_then(|metres| metres.parse().ok())
            }
            "Priority" => trusts_dscp = line.ends_with("dscp"),
            "enabled" => {
                settings.pfc = Some(
                    (0u8..8)
                        .zip(words)
                        .filter(|(_, flag)| *flag == "1")
                        .map(|(priority, _)| priority)
                        .collect(),
                )
            }
            "tc:" => {
                class = words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .filter(|class| *class < 8)?;
                tsa[class] = find_value_after(line, "tsa:")
                    .unwrap_or("vendor")
                    .to_owned();
                bandwidth[class] = find_value_after(line, "bw:")
                    .and_then(|share| share.trim_end_matches('%').parse().ok())
                    .unwrap_or(0);
            }
            "priority:" => {
                if let Some(priority) = words
                    .next()
                    .and_then(|word| word.parse::<usize>().ok())
                    .filter(|priority| *priority < 8)
                {
                    prio_tc[priority] = class as u8;
                }
            }
            word => map.extend(
                word.strip_prefix("prio:")
                    .and_then(|priority| priority.parse::<u8>().ok())
                    .into_iter()
                    .flat_map(|priority| parse_dscp_codes(line, priority)),
            ),
        }
    }
    settings.ets = Some(Ets {
        prio_tc,
        tsa,
        bandwidth,
    });
    // while the VLAN tag is trusted, the map has no effect
    let is_wanted = |code: &u8| {
        wanted
            .dscp
            .as_ref()
            .is_some_and(|dscp| dscp.contains_key(code))
    };
    settings.dscp = Some(if trusts_dscp {
        map.into_iter()
            .filter(|(code, _)| is_wanted(code))
            .collect()
    } else {
        BTreeMap::new()
    });
    Some(settings)
}

fn find_value_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_once(key)?.1.split(',').next().map(str::trim)
}

/// `prio:3 dscp:31,30,29,`.
fn parse_dscp_codes(line: &str, priority: u8) -> Vec<(u8, u8)> {
    let list = line.split_once("dscp:").map_or("", |(_, list)| list);
    list.split(',')
        .filter_map(|code| code.trim().parse::<u8>().ok())
        .map(|code| (code, priority))
        .collect()
}

/// The commands for what is wished; `--trust` and `--dscp2prio` cannot go in one call.
pub fn build_mlnx_qos_commands(
    netdev: &str,
    wanted: &Settings,
    now: &Settings,
) -> Vec<Vec<String>> {
    let join = |list: &mut dyn Iterator<Item = String>| list.collect::<Vec<_>>().join(",");
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| {
        all.push(
            ["-i", netdev]
                .iter()
                .chain(words)
                .map(|word| (*word).to_owned())
                .collect(),
        )
    };
    if let Some(ets) = wanted
        .ets
        .as_ref()
        .filter(|ets| now.ets.as_ref() != Some(ets))
    {
        let numbers = |list: &[u8; 8]| join(&mut list.iter().map(ToString::to_string));
        add(&[
            "-p",
            &numbers(&ets.prio_tc),
            "-s",
            &ets.tsa.join(","),
            "-t",
            &numbers(&ets.bandwidth),
        ]);
    }
    if let Some(dscp) = wanted
        .dscp
        .as_ref()
        .filter(|dscp| now.dscp.as_ref() != Some(dscp))
    {
        add(&["--trust", if dscp.is_empty() { "pcp" } else { "dscp" }]);
        for (code, priority) in dscp {
            add(&["--dscp2prio", &format!("set,{code},{priority}")]);
        }
    }
    // The length alone would switch PFC off; PFC alone sends a length of 0, which the driver takes
    // for none said.
    let cable = wanted
        .cable_length_m
        .filter(|metres| now.cable_length_m != Some(*metres));
    let pfc = wanted
        .pfc
        .as_ref()
        .filter(|pfc| now.pfc.as_ref() != Some(pfc) || cable.is_some())
        .or(now.pfc.as_ref().filter(|_| cable.is_some()));
    if let Some(pfc) = pfc {
        let list = join(&mut (0..8).map(|priority| u8::from(pfc.contains(&priority)).to_string()));
        match cable {
            Some(metres) => add(&["--pfc", &list, "--cable_len", &metres.to_string()]),
            None => add(&["--pfc", &list]),
        }
    }
    all
}

/// `mlnx_qos` with each of these words, one call after the other.
pub fn set_script(commands: &[Vec<String>]) -> String {
    let lines = commands
        .iter()
        .map(|words| format!("mlnx_qos {}\n", sh_words(words.iter().map(String::as_str))));
    std::iter::once("set -e\n".to_owned())
        .chain(lines)
        .collect()
}

/// The settings in a script of ours.
pub fn decode_script(text: &str) -> Settings {
    let mut all = Settings::default();
    for line in text.lines().filter(|line| line.starts_with("mlnx_qos ")) {
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_matches('\''))
            .collect();
        let behind = |flag: &str| {
            words
                .iter()
                .position(|word| *word == flag)
                .and_then(|at| words.get(at + 1))
                .copied()
        };
        let numbers = |flag: &str| {
            behind(flag)?
                .split(',')
                .map(|v| v.parse().ok())
                .collect::<Option<Vec<u8>>>()?
                .try_into()
                .ok()
        };
        if let Some(list) = behind("--pfc") {
            all.pfc = Some(
                (0u8..8)
                    .zip(list.split(','))
                    .filter(|(_, on)| *on == "1")
                    .map(|(priority, _)| priority)
                    .collect(),
            );
        }
        if let Some(metres) = behind("--cable_len") {
            all.cable_length_m = metres.parse().ok();
        }
        if let Some([code, priority]) = behind("--dscp2prio")
            .and_then(|list| list.strip_prefix("set,"))
            .and_then(|pair| pair.split_once(','))
            .map(|(a, b)| [a, b])
            && let (Ok(code), Ok(priority)) = (code.parse(), priority.parse())
        {
            all.dscp.get_or_insert_default().insert(code, priority);
        }
        let tsa = behind("-s").and_then(|list| {
            list.split(',')
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .try_into()
                .ok()
        });
        if let (Some(prio_tc), Some(tsa), Some(bandwidth)) = (numbers("-p"), tsa, numbers("-t")) {
            all.ets = Some(Ets {
                prio_tc,
                tsa,
                bandwidth,
            });
        }
    }
    all.pause = super::dcb::decode_script(text).pause;
    all
}
