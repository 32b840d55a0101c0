//! `mlnx_qos` of OFED, where the host has no `dcb` (Ubuntu 20.04's iproute2 5.5): its text, and its
//! commands. Its DSCP map always has all 64 code points, so only the declared ones are compared.

use super::settings::{Ets, Settings};
use crate::sections::Section;
use railwright_base::quote::sh_words;
use std::collections::{BTreeMap, BTreeSet};

/// What `mlnx_qos -i NETDEV` printed; `None` where it failed (it prints a traceback for NICs of
/// others).
pub fn parse_mlnx_qos_settings(section: &Section<'_>, desired: &Settings) -> Option<Settings> {
    if section.code() != Some(0) {
        return None;
    }
    let mut answer = MlnxQosAnswer::default();
    for line in &section.lines {
        answer.read_line(line.trim())?;
    }
    let MlnxQosAnswer {
        mut settings,
        ets,
        mut dscp,
        trusts_dscp,
        ..
    } = answer;
    settings.ets = Some(ets);
    // while the VLAN tag is trusted, the map has no effect
    let in_spec = desired.dscp.as_ref().filter(|_| trusts_dscp);
    dscp.retain(|code, _| in_spec.is_some_and(|in_spec| in_spec.contains_key(code)));
    settings.dscp = Some(dscp);
    Some(settings)
}

/// The answer of `mlnx_qos`, while it is read line by line.
struct MlnxQosAnswer {
    settings: Settings,
    ets: Ets,
    dscp: BTreeMap<u8, u8>,
    trusts_dscp: bool,
    /// The traffic class that the lines are about.
    class: u8,
}

impl Default for MlnxQosAnswer {
    fn default() -> Self {
        MlnxQosAnswer {
            settings: Settings::default(),
            ets: Ets {
                prio_tc: [0; 8],
                tsa: std::array::from_fn(|_| "vendor".to_owned()),
                bandwidth: [0; 8],
            },
            dscp: BTreeMap::new(),
            trusts_dscp: false,
            class: 0,
        }
    }
}

impl MlnxQosAnswer {
    /// `None` where a line names a traffic class that there is none of.
    fn read_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "Cable" => {
                self.settings.cable_length_m = words.last().and_then(|metres| metres.parse().ok());
            }
            "Priority" => self.trusts_dscp = line.ends_with("dscp"),
            "enabled" => self.settings.pfc = Some(list_enabled_priorities(words)),
            "tc:" => {
                let class = words
                    .next()
                    .and_then(|word| word.parse::<u8>().ok())
                    .filter(|class| *class < 8)?;
                self.class = class;
                self.ets.tsa[usize::from(class)] = find_value_after(line, "tsa:")
                    .unwrap_or("vendor")
                    .to_owned();
                self.ets.bandwidth[usize::from(class)] = find_value_after(line, "bw:")
                    .and_then(|share| share.trim_end_matches('%').parse().ok())
                    .unwrap_or(0);
            }
            "priority:" => {
                let priority = words.next().and_then(|word| word.parse::<usize>().ok());
                if let Some(place) = priority.and_then(|at| self.ets.prio_tc.get_mut(at)) {
                    *place = self.class;
                }
            }
            word => {
                let priority = word
                    .strip_prefix("prio:")
                    .and_then(|text| text.parse().ok());
                if let Some(priority) = priority {
                    self.dscp.extend(parse_dscp_codes(line, priority));
                }
            }
        }
        Some(())
    }
}

/// `0 0 0 1 0 0 0 0`: a flag for each priority.
fn list_enabled_priorities<'a>(flags: impl Iterator<Item = &'a str>) -> BTreeSet<u8> {
    (0u8..8)
        .zip(flags)
        .filter(|(_, flag)| *flag == "1")
        .map(|(priority, _)| priority)
        .collect()
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

/// The commands for the desired state; `--trust` and `--dscp2prio` cannot go in one call.
pub fn build_mlnx_qos_commands(
    netdev: &str,
    desired: &Settings,
    now: &Settings,
) -> Vec<Vec<String>> {
    let mut calls: Vec<Vec<String>> = Vec::new();
    if let Some(ets) = &desired.ets
        && now.ets.as_ref() != Some(ets)
    {
        let (classes, shares) = (join_numbers(&ets.prio_tc), join_numbers(&ets.bandwidth));
        let algorithms = ets.tsa.join(",");
        let words: [&str; 6] = ["-p", &classes, "-s", &algorithms, "-t", &shares];
        calls.push(build_call(netdev, &words));
    }
    if let Some(dscp) = &desired.dscp
        && now.dscp.as_ref() != Some(dscp)
    {
        let trust_mode = if dscp.is_empty() { "pcp" } else { "dscp" };
        calls.push(build_call(netdev, &["--trust", trust_mode]));
        for (code, priority) in dscp {
            let mapping = format!("set,{code},{priority}");
            calls.push(build_call(netdev, &["--dscp2prio", &mapping]));
        }
    }
    calls.extend(build_pfc_call(netdev, desired, now));
    calls
}

fn build_call(netdev: &str, words: &[&str]) -> Vec<String> {
    let mut call = vec!["-i".to_owned(), netdev.to_owned()];
    call.extend(words.iter().map(|word| (*word).to_owned()));
    call
}

/// PFC and the length of cable go together. The length alone would switch PFC off; PFC alone sends
/// a length of 0, which the driver takes for none set.
fn build_pfc_call(netdev: &str, desired: &Settings, now: &Settings) -> Option<Vec<String>> {
    let cable = desired
        .cable_length_m
        .filter(|metres| now.cable_length_m != Some(*metres));
    let pfc = match cable {
        Some(_) => desired.pfc.as_ref().or(now.pfc.as_ref())?,
        None => desired
            .pfc
            .as_ref()
            .filter(|pfc| now.pfc.as_ref() != Some(pfc))?,
    };
    let flags = [0, 1, 2, 3, 4, 5, 6, 7].map(|priority| u8::from(pfc.contains(&priority)));
    let mut call = build_call(netdev, &["--pfc", &join_numbers(&flags)]);
    if let Some(metres) = cable {
        call.extend(["--cable_len".to_owned(), metres.to_string()]);
    }
    Some(call)
}

fn join_numbers(list: &[u8; 8]) -> String {
    list.map(|number| number.to_string()).join(",")
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
        if let Some(list) = find_flag_value(&words, "--pfc") {
            all.pfc = Some(list_enabled_priorities(list.split(',')));
        }
        if let Some(metres) = find_flag_value(&words, "--cable_len") {
            all.cable_length_m = metres.parse().ok();
        }
        if let Some(mapping) = find_flag_value(&words, "--dscp2prio")
            && let Some((code, priority)) = parse_dscp_mapping(mapping)
        {
            all.dscp.get_or_insert_default().insert(code, priority);
        }
        if let Some(ets) = decode_ets(&words) {
            all.ets = Some(ets);
        }
    }
    all.pause = super::dcb::decode_script(text).pause;
    all
}

fn find_flag_value<'w>(words: &[&'w str], flag: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| *word == flag)?;
    words.get(at + 1).copied()
}

/// `set,26,3`.
fn parse_dscp_mapping(mapping: &str) -> Option<(u8, u8)> {
    let (code, priority) = mapping.strip_prefix("set,")?.split_once(',')?;
    Some((code.parse().ok()?, priority.parse().ok()?))
}

fn decode_ets(words: &[&str]) -> Option<Ets> {
    let tsa = find_flag_value(words, "-s")?.split(',').map(str::to_owned);
    let tsa: Vec<String> = tsa.collect();
    Some(Ets {
        prio_tc: parse_numbers(find_flag_value(words, "-p")?)?,
        tsa: tsa.try_into().ok()?,
        bandwidth: parse_numbers(find_flag_value(words, "-t")?)?,
    })
}

fn parse_numbers(list: &str) -> Option<[u8; 8]> {
    let numbers: Option<Vec<u8>> = list.split(',').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}
