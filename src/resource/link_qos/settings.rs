//! The settings of a lossless class as one value: what a body wishes for, what runs, what our
//! script would set.

use crate::body::read_flag_field;
use crate::fields::Fields;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// mlx5 takes no longer one, and none of no length (the Linux kernel:
/// drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c, `MLX5E_MAX_CABLE_LENGTH`).
pub const CABLE_LENGTH_MAX_M: u64 = 999;

/// Enhanced transmission selection: eight traffic classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ets {
    /// The traffic class of each priority.
    pub prio_tc: [u8; 8],
    /// The algorithm of each traffic class: `strict`, `ets`, `cbs`, `vendor`.
    pub tsa: [String; 8],
    /// The share of each traffic class in percent; 0 where it is strict.
    pub bandwidth: [u8; 8],
}

/// PFC, ETS, DSCP map and pause of one netdev; `None` is not wished for, or not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Priorities with PFC on.
    pub pfc: Option<BTreeSet<u8>>,
    /// Traffic classes.
    pub ets: Option<Ets>,
    /// Priority by DSCP.
    pub dscp: Option<BTreeMap<u8, u8>>,
    /// Global pause, in any direction.
    pub pause: Option<bool>,
    /// Metres of cable, by which mlx5 sizes the buffers of the lossless priorities.
    pub cable_length_m: Option<u16>,
}

impl Settings {
    /// The settings of a body. PFC and global pause exclude each other, so that PFC switches pause
    /// off by itself.
    pub fn of(body: &Value) -> Self {
        let mut settings = Settings::default();
        if let Some(Value::Array(list)) = body.get("pfc") {
            let priorities = list.iter().filter_map(parse_small_number);
            settings.pfc = Some(priorities.collect());
        }
        if let Some(ets @ Value::Object(_)) = body.get("ets") {
            settings.ets = ets_of(ets).ok();
        }
        if let Some(Value::Object(map)) = body.get("dscp") {
            let mut priorities = BTreeMap::new();
            for (code, priority) in map {
                if let (Ok(code), Some(priority)) = (code.parse(), parse_small_number(priority)) {
                    priorities.insert(code, priority);
                }
            }
            settings.dscp = Some(priorities);
        }
        let is_lossless = settings.pfc.as_ref().is_some_and(|pfc| !pfc.is_empty());
        settings.pause = match read_flag_field(body, "pause") {
            None if is_lossless => Some(false),
            pause => pause,
        };
        let metres = body.get("cable_length_m").and_then(Value::as_u64);
        settings.cable_length_m = metres.and_then(|metres| u16::try_from(metres).ok());
        settings
    }

    /// Each setting that is there, by the name of its attribute.
    pub fn values(&self) -> BTreeMap<&'static str, Value> {
        let mut values = BTreeMap::new();
        if let Some(pfc) = &self.pfc {
            values.insert("pfc", Value::from_iter(pfc.iter().copied()));
        }
        if let Some(ets) = &self.ets
            && let Ok(ets) = serde_json::to_value(ets)
        {
            values.insert("ets", ets);
        }
        if let Some(dscp) = &self.dscp {
            let entries = dscp
                .iter()
                .map(|(code, priority)| (code.to_string(), Value::from(*priority)));
            values.insert("dscp", entries.collect());
        }
        if let Some(pause) = self.pause {
            values.insert("pause", Value::from(pause));
        }
        if let Some(metres) = self.cable_length_m {
            values.insert("cable_length_m", Value::from(metres));
        }
        values
    }
}

fn parse_small_number(value: &Value) -> Option<u8> {
    value.as_u64().and_then(|number| u8::try_from(number).ok())
}

/// The traffic classes of a body: each list has eight entries, or is a mapping from class (or
/// priority) to value. A priority that a mapping leaves out is in class 0; without any mapping each
/// priority is in the class of its number.
pub fn ets_of(body: &Value) -> Result<Ets, (&'static str, String)> {
    let prio_tc = match body.get("prio_tc") {
        None | Some(Value::Null) => [0, 1, 2, 3, 4, 5, 6, 7],
        Some(value) => {
            parse_eight_values(value, 0, |entry| parse_number_up_to(entry, 7)).ok_or((
                "/ets/prio_tc",
                "must give classes 0 to 7 for priorities 0 to 7".to_owned(),
            ))?
        }
    };
    let tsa = match body.get("tsa") {
        None | Some(Value::Null) => std::array::from_fn(|_| "ets".to_owned()),
        Some(value) => parse_eight_values(value, "ets".to_owned(), parse_algorithm).ok_or((
            "/ets/tsa",
            "must give `strict` or `ets` for classes 0 to 7".to_owned(),
        ))?,
    };
    let bandwidth = match body.get("bandwidth") {
        None | Some(Value::Null) => [0; 8],
        Some(value) => {
            parse_eight_values(value, 0, |entry| parse_number_up_to(entry, 100)).ok_or((
                "/ets/bandwidth",
                "must give percent for classes 0 to 7".to_owned(),
            ))?
        }
    };
    let sum: u32 = bandwidth.iter().map(|share| u32::from(*share)).sum();
    if tsa.iter().any(|word| word == "ets") && sum != 100 {
        return Err((
            "/ets/bandwidth",
            format!("the shares add up to {sum}, not to 100"),
        ));
    }
    if tsa
        .iter()
        .zip(&bandwidth)
        .any(|(word, share)| word == "strict" && *share > 0)
    {
        return Err((
            "/ets/bandwidth",
            "a strict class has no share: it goes first".to_owned(),
        ));
    }
    Ok(Ets {
        prio_tc,
        tsa,
        bandwidth,
    })
}

fn parse_number_up_to(entry: &Value, most: u8) -> Option<u8> {
    parse_small_number(entry).filter(|number| *number <= most)
}

fn parse_algorithm(entry: &Value) -> Option<String> {
    match entry.as_str()? {
        word @ ("strict" | "ets") => Some(word.to_owned()),
        _ => None,
    }
}

/// A list of eight, or a mapping from `0` .. `7` to values with a default.
fn parse_eight_values<T: Clone>(
    value: &Value,
    default: T,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<[T; 8]> {
    let mut list = vec![default; 8];
    match value {
        Value::Array(entries) if entries.len() == 8 => {
            list = entries.iter().map(&read).collect::<Option<_>>()?
        }
        Value::Object(map) => {
            for (key, entry) in map {
                *list.get_mut(key.parse::<usize>().ok()?)? = read(entry)?;
            }
        }
        _ => return None,
    }
    list.try_into().ok()
}

/// Adds all that is wrong with the settings of a body.
pub fn check_qos_settings(fields: &mut Fields<'_>) {
    let pfc = fields.get("pfc");
    if pfc.is_some_and(|pfc| !is_priority_list(pfc)) {
        fields.error(
            "/pfc",
            "`pfc` must be a list of priorities from 0 to 7",
            Some("such as [3]; [] switches it off".to_owned()),
        );
    }
    if fields.get("dscp").is_some_and(|dscp| !is_dscp_map(dscp)) {
        fields.error(
            "/dscp",
            "`dscp` must map code points 0 to 63 to priorities 0 to 7",
            Some("such as { 26: 3, 48: 6 }".to_owned()),
        );
    }
    check_ets(fields);
    fields.flag("pause");
    fields.number("cable_length_m", 1..=CABLE_LENGTH_MAX_M);
    let any_pfc = pfc
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());
    if any_pfc && fields.get("pause") == Some(&Value::Bool(true)) {
        fields.error(
            "/pause",
            "PFC and global pause exclude each other",
            Some("leave `pause` out: PFC switches it off".to_owned()),
        );
    }
}

fn is_priority(value: &Value) -> bool {
    value.as_u64().is_some_and(|number| number <= 7)
}

fn is_priority_list(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().all(is_priority))
}

fn is_dscp_map(value: &Value) -> bool {
    let Value::Object(map) = value else {
        return false;
    };
    map.iter().all(|(code, priority)| {
        code.parse::<u8>().is_ok_and(|code| code < 64) && is_priority(priority)
    })
}

fn check_ets(fields: &mut Fields<'_>) {
    let help = "known: prio_tc, tsa, bandwidth";
    let Some(ets) = fields.get("ets") else {
        return;
    };
    let Some(map) = ets.as_object() else {
        fields.error("/ets", "`ets` must be a mapping", Some(help.to_owned()));
        return;
    };
    for key in map.keys() {
        if !matches!(key.as_str(), "prio_tc" | "tsa" | "bandwidth") {
            fields.error(
                &format!("/ets/{key}"),
                format!("`{key}` is not a field of ets"),
                Some(help.to_owned()),
            );
        }
    }
    if let Err((pointer, message)) = ets_of(ets) {
        fields.error(pointer, message, None);
    }
}
