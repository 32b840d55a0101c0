//! What a netdev is made of: the members of a bond, the parent of a VLAN. As the kernel has it, and
//! as the manager that owns the netdev or one below it will make it at the next boot.

use super::networkd;
use super::owner::{Owner, owner_in};
use super::persisted_layers::{
    LowerNetdevs, read_connection_settings, read_ifupdown_settings, read_netplan_settings,
    read_networkd_settings,
};
use crate::action::NetworkManagerKind;
use crate::rights::RootAccessNeed;
use crate::sections::{self, SHELL, Section, find_section};
use crate::{Attribute, Plane, Read, ReadResults, Reading, ResourceDiff};
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Settings by the words of the kinds `bond` and `vlan`.
pub type Settings = BTreeMap<String, Value>;

/// The words of a bond's settings: ours, sysfs, systemd.netdev(5), netplan, NetworkManager's
/// `bond.options`, ifupdown.
pub(super) const BOND: [[&str; 6]; 5] = [
    ["mode", "mode", "Mode", "mode", "mode", "bond-mode"],
    [
        "miimon",
        "miimon",
        "MIIMonitorSec",
        "mii-monitor-interval",
        "miimon",
        "bond-miimon",
    ],
    [
        "lacp_rate",
        "lacp_rate",
        "LACPTransmitRate",
        "lacp-rate",
        "lacp_rate",
        "bond-lacp-rate",
    ],
    [
        "xmit_hash_policy",
        "xmit_hash_policy",
        "TransmitHashPolicy",
        "transmit-hash-policy",
        "xmit_hash_policy",
        "bond-xmit-hash-policy",
    ],
    [
        "primary",
        "primary",
        "",
        "primary",
        "primary",
        "bond-primary",
    ],
];

/// A netdev of layers as it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningLinkLayers {
    /// `bond`, `vlan`; nothing for a plain NIC.
    pub kind: Option<String>,
    /// Its settings.
    pub settings: Settings,
    /// False where `ip` gave no details of a VLAN.
    pub is_told: bool,
}

/// All of it; exit 1 when there is no such netdev. `/proc/net/vlan` is root's alone, so the VLAN's
/// number is asked of `ip`.
pub fn read_script(netdev: &str) -> String {
    format!(
        r#"{SHELL}n={netdev}; d="$R/sys/class/net/$n"; b="$d/bonding"
if [ -d "$d" ]; then printf '\n== netdev 0\n'
{{ while read -r v; do case $v in DEVTYPE=*) printf '|kind=%s\n' "${{v#*=}}" ;; esac; done <"$d/uevent"; }} 2>/dev/null
for o in "$d"/lower_*; do [ -e "$o" ] && printf '|lower=%s\n' "${{o##*/lower_}}"; done
for a in mode miimon lacp_rate xmit_hash_policy primary; do v=; {{ read -r v <"$b/$a"; }} 2>/dev/null; [ -z "$v" ] || printf '|%s=%s\n' "$a" "$v"; done
v=$(ip -d -o link show dev "$n" 2>/dev/null)
case $v in *' vlan protocol '*) v=${{v##* vlan protocol }}; v=${{v#* id }}; printf '|id=%s\n' "${{v%% *}}" ;; esac
fi
for D in /etc /run /usr/local/lib /usr/lib /lib; do ls "$R$D/systemd/network" 2>/dev/null; done | grep '\.netdev$' | sort -u | while IFS= read -r k; do
for D in /etc /run /usr/local/lib /usr/lib /lib; do f="$R$D/systemd/network/$k"; [ -e "$f" ] || [ -L "$f" ] || continue
sed -n 's/^Name[[:space:]]*=[[:space:]]*//p' "$f" 2>/dev/null | grep -qxF -e "$n" && text netdev-file "$f"; break; done
done
exit 0
"#,
        netdev = quote_for_shell(netdev)
    )
}

/// What netplan renders is 0640.
pub fn list_layer_access_needs(netdev: &str) -> Vec<RootAccessNeed> {
    vec![RootAccessNeed::Content(format!(
        "/run/systemd/network/10-netplan-{netdev}.netdev"
    ))]
}

/// What is read about a netdev and those below it.
pub fn build_layer_reads(netdev: &str, lower: &[String]) -> Vec<Read> {
    let mut all = vec![Read::LinkLayers {
        netdev: netdev.to_owned(),
    }];
    let names = std::iter::once(netdev).chain(lower.iter().map(String::as_str));
    all.extend(names.map(|name| Read::LinkManager {
        netdev: name.to_owned(),
    }));
    all
}

fn parse_read_sections<'a>(
    answers: &'a ReadResults,
    read: &Read,
) -> Result<Vec<Section<'a>>, Reason> {
    answers
        .output(read)
        .map(|(_, out)| sections::parse_sections(out))
}

/// The netdev as it runs; nothing when it is not there.
pub fn decode_running_layers(
    answers: &ReadResults,
    netdev: &str,
) -> Result<Option<RunningLinkLayers>, Reason> {
    let parts = parse_read_sections(
        answers,
        &Read::LinkLayers {
            netdev: netdev.to_owned(),
        },
    )?;
    let Some(found) = find_section(&parts, "netdev") else {
        return Ok(None);
    };
    let lower: Vec<&str> = found
        .lines
        .iter()
        .filter_map(|line| line.strip_prefix("lower="))
        .collect();
    let mut settings = Settings::new();
    let kind = found.value("kind").map(str::to_owned);
    match kind.as_deref() {
        Some("bond") => {
            for [word, key, ..] in BOND {
                // `802.3ad 4`: the word, then the number
                let value = found
                    .value(key)
                    .and_then(|text| text.split_whitespace().next());
                settings
                    .extend(value.map(|text| (word.to_owned(), parse_setting_value(word, text))));
            }
            settings.insert(
                "members".to_owned(),
                build_sorted_name_list(lower.iter().map(|name| (*name).to_owned())),
            );
        }
        Some("vlan") => {
            let parent = lower.first().map(|parent| (*parent).to_owned());
            settings = build_vlan_settings(found.value("id").and_then(parse_vlan_id), parent);
        }
        _ => {}
    }
    let is_told = kind.as_deref() != Some("vlan") || settings.contains_key("id");
    Ok(Some(RunningLinkLayers {
        kind,
        settings,
        is_told,
    }))
}

pub(super) fn build_vlan_settings(id: Option<Value>, parent: Option<String>) -> Settings {
    let mut all = Settings::new();
    all.extend(id.map(|id| ("id".to_owned(), id)));
    all.extend(parent.map(|parent| ("parent".to_owned(), json!(parent))));
    all
}

pub(super) fn parse_vlan_id(text: &str) -> Option<Value> {
    text.parse::<u16>().ok().map(|id| json!(id))
}

pub(super) fn build_sorted_name_list(names: impl Iterator<Item = String>) -> Value {
    let mut list: Vec<String> = names.collect();
    list.sort();
    list.dedup();
    json!(list)
}

/// A value as it is declared: milliseconds as a number, the modes and rates by their words.
pub(super) fn parse_setting_value(word: &str, text: &str) -> Value {
    match word {
        "miimon" => text
            .parse::<u64>()
            .map_or_else(|_| json!(text), |number| json!(number)),
        "mode" => {
            json!(
                MODES
                    .iter()
                    .position(|mode| *mode == text)
                    .or_else(|| text.parse().ok())
                    .and_then(|at| MODES.get(at))
                    .unwrap_or(&text)
            )
        }
        "lacp_rate" => json!(match text {
            "0" => "slow",
            "1" => "fast",
            other => other,
        }),
        _ => json!(text),
    }
}

/// The modes of a bond by their numbers (the Linux kernel: Documentation/networking/bonding.rst).
pub const MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];

/// What the next boot makes, and who makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDisk {
    /// The manager of the netdev, or of the first one below it that has one; nothing where nobody
    /// manages any.
    pub manager: Option<NetworkManagerKind>,
    /// The owner of the first netdev below.
    pub below: Owner,
    /// What is written; empty where nothing is.
    pub settings: Settings,
    /// The name that netplan has for the first netdev below.
    pub netplan_id: Option<String>,
    /// The file that networkd applies to the first netdev below, by its bare name.
    pub network_file: Option<String>,
}

/// What is written about the netdev by the manager that would make it.
pub fn on_disk(
    answers: &ReadResults,
    netdev: &str,
    kind: &str,
    lower: &[String],
) -> Result<OnDisk, Reason> {
    let read = Read::LinkLayers {
        netdev: netdev.to_owned(),
    };
    let layers = parse_read_sections(answers, &read)?;
    let own = parse_manager_sections(answers, netdev)?;
    let mut below = Vec::new();
    for name in lower {
        below.push((name.as_str(), parse_manager_sections(answers, name)?));
    }
    let manager = find_layer_manager(netdev, &own, &below)?;
    let first_owner = match below.first() {
        Some((name, parts)) => owner_in(parts, name)?,
        None => Owner::Nobody {
            able: None,
            left: None,
        },
    };
    let settings = match manager {
        Some(NetworkManagerKind::Networkd) | None => {
            read_networkd_settings(netdev, kind, &layers, &below)
        }
        Some(NetworkManagerKind::Netplan) => read_netplan_settings(netdev, kind, &own, &below)?,
        Some(NetworkManagerKind::NetworkManager) => {
            read_connection_settings(netdev, kind, &own, &below)
        }
        Some(NetworkManagerKind::Ifupdown) => read_ifupdown_settings(netdev, kind, &own),
    };
    let parts = below
        .first()
        .map(|(_, parts)| parts.as_slice())
        .unwrap_or_default();
    let network_file = find_section(parts, "network-file")
        .and_then(|file| file.path().rsplit('/').next())
        .map(str::to_owned);
    Ok(OnDisk {
        manager,
        below: first_owner,
        settings,
        netplan_id: networkd::rendered_by_netplan(parts),
        network_file,
    })
}

fn parse_manager_sections<'a>(
    answers: &'a ReadResults,
    netdev: &str,
) -> Result<Vec<Section<'a>>, Reason> {
    let netdev = netdev.to_owned();
    parse_read_sections(answers, &Read::LinkManager { netdev })
}

/// The manager of the netdev, or of the first one below it that has one.
fn find_layer_manager(
    netdev: &str,
    own: &[Section<'_>],
    below: &LowerNetdevs<'_>,
) -> Result<Option<NetworkManagerKind>, Reason> {
    let lower = below.iter().map(|(name, parts)| (*name, parts.as_slice()));
    for (name, parts) in std::iter::once((netdev, own)).chain(lower) {
        if let Owner::Managed(view) = owner_in(parts, name)? {
            return Ok(Some(view.manager));
        }
    }
    Ok(None)
}

/// Each desired setting beside its actual values in both planes.
pub fn diff_layer_settings(
    desired: &Settings,
    actual: impl Fn(&str, Plane) -> Reading,
) -> ResourceDiff {
    let mut diff = ResourceDiff::default();
    for (word, value) in desired {
        let desired = Reading::Is(value.clone());
        let attribute = Attribute::in_plane(
            Plane::Persisted,
            desired.clone(),
            actual(word, Plane::Persisted),
        )
        .and(Plane::Running, desired, actual(word, Plane::Running));
        diff.attributes.insert(word.clone(), attribute);
    }
    diff
}
