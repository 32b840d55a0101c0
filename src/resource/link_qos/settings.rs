//! The settings of a lossless class as one value: what a body wishes for, what runs, what our
//! script would set.

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
        let pfc = body.get("pfc").and_then(Value::as_array).map(|list| {
            list.iter()
                .filter_map(parse_small_number)
                .collect::<BTreeSet<u8>>()
        });
        let any = pfc.as_ref().is_some_and(|pfc| !pfc.is_empty());
        let pause = body
            .get("pause")
            .and_then(Value::as_bool)
            .or(any.then_some(false));
        let dscp = body.get("dscp").and_then(Value::as_object);
        let dscp = dscp.map(|map| {
            map.iter()
                .filter_map(|(code, priority)| {
                    Some((code.parse().ok()?, parse_small_number(priority)?))
                })
                .collect()
        });
        let cable_length_m = body
            .get("cable_length_m")
            .and_then(Value::as_u64)
            .and_then(|metres| u16::try_from(metres).ok());
        Settings {
            cable_length_m,
            pfc,
            ets: body
                .get("ets")
                .filter(|ets| ets.is_object())
                .and_then(|ets| ets_of(ets).ok()),
            dscp,
            pause,
        }
    }

    /// Each setting that is there, by the name of its attribute.
    pub fn values(&self) -> BTreeMap<&'static str, Value> {
        let mut values = BTreeMap::new();
        values.extend(
            self.pfc
                .as_ref()
                .map(|pfc| ("pfc", Value::from_iter(pfc.iter().copied()))),
        );
        values.extend(
            self.ets
                .as_ref()
                .and_then(|ets| Some(("ets", serde_json::to_value(ets).ok()?))),
        );
        values.extend(self.dscp.as_ref().map(|dscp| {
            (
                "dscp",
                dscp.iter()
                    .map(|(code, priority)| (code.to_string(), Value::from(*priority)))
                    .collect(),
            )
        }));
        values.extend(self.pause.map(|pause| ("pause", Value::from(pause))));
        values.extend(
            self.cable_length_m
                .map(|metres| ("cable_length_m", Value::from(metres))),
        );
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
    let prio_tc = match body.get("prio_tc").filter(|value| !value.is_null()) {
        None => [0, 1, 2, 3, 4, 5, 6, 7],
        Some(value) => parse_eight_values(value, 0, |entry| {
            parse_small_number(entry).filter(|class| *class < 8)
        })
        .ok_or((
            "/ets/prio_tc",
            "must give classes 0 to 7 for priorities 0 to 7".to_owned(),
        ))?,
    };
    let algorithm = |entry: &Value| {
        entry
            .as_str()
            .filter(|word| matches!(*word, "strict" | "ets"))
            .map(str::to_owned)
    };
    let tsa = match body.get("tsa").filter(|value| !value.is_null()) {
        None => std::array::from_fn(|_| "ets".to_owned()),
        Some(value) => parse_eight_values(value, "ets".to_owned(), algorithm).ok_or((
            "/ets/tsa",
            "must give `strict` or `ets` for classes 0 to 7".to_owned(),
        ))?,
    };
    let none = Value::Array(vec![Value::from(0); 8]);
    let bandwidth = parse_eight_values(
        body.get("bandwidth")
            .filter(|value| !value.is_null())
            .unwrap_or(&none),
        0,
        |entry| parse_small_number(entry).filter(|share| *share <= 100),
    );
    let bandwidth = bandwidth.ok_or((
        "/ets/bandwidth",
        "must give percent for classes 0 to 7".to_owned(),
    ))?;
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
    let is_entry = |(code, priority): (&String, &Value)| {
        code.parse::<u8>().is_ok_and(|code| code < 64) && is_priority(priority)
    };
    value
        .as_object()
        .is_some_and(|map| map.iter().all(is_entry))
}

fn check_ets(fields: &mut Fields<'_>) {
    let help = || Some("known: prio_tc, tsa, bandwidth".to_owned());
    let Some(ets) = fields.get("ets") else {
        return;
    };
    let Some(map) = ets.as_object() else {
        fields.error("/ets", "`ets` must be a mapping", help());
        return;
    };
    for key in map.keys() {
        if !matches!(key.as_str(), "prio_tc" | "tsa" | "bandwidth") {
            fields.error(
                &format!("/ets/{key}"),
                format!("`{key}` is not a field of ets"),
                help(),
            );
        }
    }
    if let Err((pointer, message)) = ets_of(ets) {
        fields.error(pointer, message, None);
    }
}
