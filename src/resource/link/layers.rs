//! What a netdev is made of: the members of a bond, the parent of a VLAN. As the kernel has it, and
//! as the manager that owns the netdev or one below it will make it at the next boot.

use super::netplan;
use super::networkd::{self, is_network_file, list_key_values};
use super::owner::{Owner, owner_in};
use crate::action::NetworkManagerKind;
use crate::rights::RootAccessNeed;
use crate::sections::{self, SHELL, Section, find_section};
use crate::{Assessment, Attribute, Plane, Read, ReadResults, Reading};
use railwright_base::quote::quote_for_shell;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Settings by the words of the kinds `bond` and `vlan`.
pub type Settings = BTreeMap<String, Value>;

/// The words of a bond's settings: ours, sysfs, systemd.netdev(5), netplan, NetworkManager's
/// `bond.options`, ifupdown.
const BOND: [[&str; 6]; 5] = [
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

/// What is asked about a netdev and those below it.
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
) -> Result<Vec<Section<'a>>, String> {
    answers
        .output(read)
        .map(|(_, out)| sections::parse_sections(out))
}

/// The netdev as it runs; nothing when it is not there.
pub fn decode_running_layers(
    answers: &ReadResults,
    netdev: &str,
) -> Result<Option<RunningLinkLayers>, String> {
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
            settings.extend(
                lower
                    .first()
                    .map(|parent| ("parent".to_owned(), json!(parent))),
            );
            settings.extend(
                found
                    .value("id")
                    .and_then(|id| id.parse::<u16>().ok())
                    .map(|id| ("id".to_owned(), json!(id))),
            );
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

fn build_sorted_name_list(names: impl Iterator<Item = String>) -> Value {
    let mut list: Vec<String> = names.collect();
    list.sort();
    list.dedup();
    json!(list)
}

/// A value as the wish has it: milliseconds as a number, the modes and rates by their words.
fn parse_setting_value(word: &str, text: &str) -> Value {
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
) -> Result<OnDisk, String> {
    let layers = parse_read_sections(
        answers,
        &Read::LinkLayers {
            netdev: netdev.to_owned(),
        },
    )?;
    let own = parse_read_sections(
        answers,
        &Read::LinkManager {
            netdev: netdev.to_owned(),
        },
    )?;
    let mut below = Vec::new();
    for name in lower {
        below.push((
            name.as_str(),
            parse_read_sections(
                answers,
                &Read::LinkManager {
                    netdev: name.clone(),
                },
            )?,
        ));
    }
    let managed = |parts: &[Section<'_>], name: &str| match owner_in(parts, name)? {
        Owner::Managed(view) => Ok(Some(view.manager)),
        Owner::Nobody { .. } => Ok::<_, String>(None),
    };
    let mut manager = managed(&own, netdev)?;
    for (name, parts) in &below {
        if manager.is_none() {
            manager = managed(parts, name)?;
        }
    }
    let first = below.first();
    let first_owner = match first {
        Some((name, parts)) => owner_in(parts, name)?,
        None => Owner::Nobody {
            able: None,
            left: None,
        },
    };
    let settings = match manager {
        Some(NetworkManagerKind::Networkd) | None => of_networkd(netdev, kind, &layers, &below),
        Some(NetworkManagerKind::Netplan) => of_netplan(netdev, kind, &own, &below)?,
        Some(NetworkManagerKind::NetworkManager) => of_network_manager(netdev, kind, &own, &below),
        Some(NetworkManagerKind::Ifupdown) => of_ifupdown(netdev, kind, &own),
    };
    let parts = first.map(|(_, parts)| parts.as_slice()).unwrap_or_default();
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

/// Each setting that is wanted beside what was found of it in both planes.
pub fn diff_layer_settings(
    wanted: &Settings,
    found: impl Fn(&str, Plane) -> Reading,
) -> Assessment {
    let mut assessment = Assessment::default();
    for (word, value) in wanted {
        let wanted = Reading::Is(value.clone());
        let attribute = Attribute::in_plane(
            Plane::Persisted,
            wanted.clone(),
            found(word, Plane::Persisted),
        )
        .and(Plane::Running, wanted, found(word, Plane::Running));
        assessment.attributes.insert(word.clone(), attribute);
    }
    assessment
}

type Below<'a> = [(&'a str, Vec<Section<'a>>)];

/// systemd.netdev(5) says what it is, and the files of those below which of them belong to it
/// (systemd.network(5)).
fn of_networkd(netdev: &str, kind: &str, layers: &[Section<'_>], below: &Below<'_>) -> Settings {
    let mut all = Settings::new();
    let Some(file) = find_section(layers, "netdev-file") else {
        return all;
    };
    let last = |heading: &str, key: &str| {
        list_key_values([file], heading, key)
            .last()
            .map(|text| (*text).to_owned())
    };
    if last("[NetDev]", "Kind").as_deref() != Some(kind) {
        return all;
    }
    let files = |parts: &'_ [Section<'_>], key: &str| {
        let network = parts.iter().filter(|part| is_network_file(part));
        list_key_values(network, "[Network]", key)
            .iter()
            .flat_map(|value| value.split_whitespace())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let joined = |key: &str| {
        below
            .iter()
            .filter(|(_, parts)| files(parts, key).iter().any(|name| name == netdev))
            .map(|(name, _)| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    if kind == "vlan" {
        all.extend(
            last("[VLAN]", "Id")
                .and_then(|id| id.parse::<u16>().ok())
                .map(|id| ("id".to_owned(), json!(id))),
        );
        all.extend(
            joined("VLAN")
                .first()
                .map(|parent| ("parent".to_owned(), json!(parent))),
        );
        return all;
    }
    for [word, _, key, ..] in BOND {
        let text = last("[Bond]", key).filter(|_| !key.is_empty());
        all.extend(text.map(|text| {
            (
                word.to_owned(),
                if word == "miimon" {
                    parse_systemd_milliseconds(&text)
                } else {
                    parse_setting_value(word, &text)
                },
            )
        }));
    }
    let members = joined("Bond");
    let primary = below.iter().find(|(name, parts)| {
        members.iter().any(|m| m == name)
            && files(parts, "PrimarySlave")
                .iter()
                .any(|v| v == "true" || v == "yes")
    });
    all.extend(primary.map(|(name, _)| ("primary".to_owned(), json!(name))));
    all.insert(
        "members".to_owned(),
        build_sorted_name_list(members.into_iter()),
    );
    all
}

/// A time span of systemd as milliseconds; a bare number is seconds (systemd.time(7)).
fn parse_systemd_milliseconds(text: &str) -> Value {
    let (digits, factor) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1000.0),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if (0.0..1e9).contains(&number) && (number * factor).fract() == 0.0 => {
            json!((number * factor) as u64)
        }
        _ => json!(text),
    }
}

/// netplan names those below by its own names of them.
fn of_netplan(
    netdev: &str,
    kind: &str,
    own: &[Section<'_>],
    below: &Below<'_>,
) -> Result<Settings, String> {
    let told = std::iter::once(own)
        .chain(below.iter().map(|(_, parts)| parts.as_slice()))
        .find_map(|parts| netplan::definitions_in(parts));
    let definitions =
        told.ok_or_else(|| "netplan owns it, but `netplan get` gave no answer".to_owned())??;
    let mut all = Settings::new();
    let Some(definition) = definitions
        .get(if kind == "vlan" { "vlans" } else { "bonds" })
        .and_then(|all| all.get(netdev))
    else {
        return Ok(all);
    };
    let named = |id: &str| {
        let found = below
            .iter()
            .find(|(_, parts)| networkd::rendered_by_netplan(parts).as_deref() == Some(id));
        found.map_or(id, |(name, _)| name).to_owned()
    };
    if kind == "vlan" {
        all.extend(
            definition
                .get("id")
                .filter(|id| id.is_u64())
                .map(|id| ("id".to_owned(), id.clone())),
        );
        all.extend(
            definition
                .get("link")
                .and_then(Value::as_str)
                .map(|id| ("parent".to_owned(), json!(named(id)))),
        );
        return Ok(all);
    }
    for [word, _, _, key, ..] in BOND {
        let found = definition
            .get("parameters")
            .and_then(|parameters| parameters.get(key));
        let text = found.and_then(|value| {
            value
                .as_str()
                .map(str::to_owned)
                .or_else(|| value.as_u64().map(|number| number.to_string()))
        });
        let value = text.map(|text| match word {
            "primary" => json!(named(&text)),
            // a bare number is milliseconds (netplan(5))
            "miimon" if text.ends_with('s') => parse_systemd_milliseconds(&text),
            _ => parse_setting_value(word, &text),
        });
        all.extend(value.map(|value| (word.to_owned(), value)));
    }
    let members = definition
        .get("interfaces")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(named);
    all.insert("members".to_owned(), build_sorted_name_list(members));
    Ok(all)
}

/// The connection that is active on the netdev, and those of its members.
fn of_network_manager(
    netdev: &str,
    kind: &str,
    own: &[Section<'_>],
    below: &Below<'_>,
) -> Settings {
    let line = |parts: &[Section<'_>], key: &str| {
        let section =
            find_section(parts, "nm-connection").filter(|section| section.code() == Some(0));
        section.and_then(|section| {
            section
                .lines
                .iter()
                .find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.to_owned()))
        })
    };
    let mut all = Settings::new();
    if line(own, "connection.type").as_deref() != Some(kind) {
        return all;
    }
    if kind == "vlan" {
        all.extend(
            line(own, "vlan.id")
                .and_then(|id| id.parse::<u16>().ok())
                .map(|id| ("id".to_owned(), json!(id))),
        );
        let uuid_of = |parent: &str| {
            below
                .iter()
                .find(|(_, parts)| line(parts, "connection.uuid").as_deref() == Some(parent))
        };
        all.extend(line(own, "vlan.parent").map(|parent| {
            (
                "parent".to_owned(),
                json!(uuid_of(&parent).map_or(parent.as_str(), |(name, _)| name)),
            )
        }));
        return all;
    }
    let options = line(own, "bond.options").unwrap_or_default();
    for [word, _, _, _, key, _] in BOND {
        let text = options.split(',').find_map(|option| {
            option
                .split_once('=')
                .filter(|(name, _)| *name == key)
                .map(|(_, value)| value)
        });
        all.extend(text.map(|text| (word.to_owned(), parse_setting_value(word, text))));
    }
    let uuid = line(own, "connection.uuid");
    let belongs = |parts: &[Section<'_>]| {
        line(parts, "connection.master")
            .is_some_and(|master| master == netdev || Some(&master) == uuid.as_ref())
    };
    all.insert(
        "members".to_owned(),
        build_sorted_name_list(
            below
                .iter()
                .filter(|(_, parts)| belongs(parts))
                .map(|(name, _)| (*name).to_owned()),
        ),
    );
    all
}

/// The options of ifenslave and of the vlan package, which take `_` for `-`; a VLAN's number stands
/// in its name unless said.
fn of_ifupdown(netdev: &str, kind: &str, own: &[Section<'_>]) -> Settings {
    let query = find_section(own, "ifquery").filter(|section| section.code() == Some(0));
    let option = |key: &str| {
        let lines = query.iter().flat_map(|section| &section.lines);
        lines
            .filter_map(|line| line.split_once(": "))
            .filter(|(name, _)| name.replace('_', "-") == key)
            .map(|(_, value)| value.trim())
            .next_back()
    };
    let mut all = Settings::new();
    if kind == "vlan" {
        let (parent, number) = netdev
            .rsplit_once('.')
            .map_or((None, None), |(parent, number)| {
                (Some(parent), Some(number))
            });
        let number =
            option("vlan-id").or_else(|| query.and(number.or_else(|| netdev.strip_prefix("vlan"))));
        all.extend(
            number
                .and_then(|id| id.trim_start_matches('0').parse::<u16>().ok())
                .map(|id| ("id".to_owned(), json!(id))),
        );
        all.extend(
            option("vlan-raw-device")
                .or_else(|| query.and(parent))
                .map(|parent| ("parent".to_owned(), json!(parent))),
        );
        return all;
    }
    let Some(members) = option("bond-slaves").or_else(|| option("bond-ports")) else {
        return all;
    };
    for [word, _, _, _, _, key] in BOND {
        all.extend(option(key).map(|text| (word.to_owned(), parse_setting_value(word, text))));
    }
    all.insert(
        "members".to_owned(),
        build_sorted_name_list(members.split_whitespace().map(str::to_owned)),
    );
    all
}
