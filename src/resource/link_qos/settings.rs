//! The settings of a lossless class as one value: what a body declares, what runs, what our script
//! would set.

use crate::body::{Body, BodyErrors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// mlx5 takes no longer one, and none of no length (the Linux kernel:
/// drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c, `MLX5E_MAX_CABLE_LENGTH`).
pub const CABLE_LENGTH_MAX_M: u64 = 999;

/// Enhanced transmission selection: eight traffic classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ets {
    /// The traffic class of each priority.
    pub prio_tc: [u8; 8],
    /// The algorithm of each traffic class: `strict`, `ets`, `cbs`, `vendor`.
    pub tsa: [String; 8],
    /// The share of each traffic class in percent; 0 where it is strict.
    pub bandwidth: [u8; 8],
}

/// PFC, ETS, DSCP map and pause of one netdev; `None` is not declared, or not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

/// The desired state of a netdev.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkQosBody {
    pub(super) netdev: String,
    /// Priorities from 0 to 7, such as [3]; [] switches it off.
    pfc: Option<BTreeSet<u8>>,
    ets: Option<EtsBody>,
    /// Code points 0 to 63 and their priorities 0 to 7, such as { 26: 3, 48: 6 }.
    dscp: Option<BTreeMap<String, u8>>,
    pause: Option<bool>,
    /// Metres, 1 to 999.
    cable_length_m: Option<u16>,
    #[serde(default)]
    pub(super) optional: bool,
    pub(super) known_after: Option<String>,
}

impl Body for LinkQosBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.require(
            self.pfc.iter().flatten().all(|priority| *priority < 8),
            "/pfc",
            "`pfc` must be a list of priorities from 0 to 7",
            "such as [3]; [] switches it off",
        );
        errors.require(
            self.dscp.iter().flatten().all(|(code, priority)| {
                code.parse::<u8>().is_ok_and(|code| code < 64) && *priority < 8
            }),
            "/dscp",
            "`dscp` must map code points 0 to 63 to priorities 0 to 7",
            "such as { 26: 3, 48: 6 }",
        );
        if let Some(Err((pointer, message))) = self.ets.as_ref().map(EtsBody::build_ets) {
            errors.add(pointer, message, "");
        }
        errors.check_range(
            "cable_length_m",
            self.cable_length_m,
            1..=CABLE_LENGTH_MAX_M,
        );
        errors.require(
            !self.is_lossless() || self.pause != Some(true),
            "/pause",
            "PFC and global pause exclude each other",
            "leave `pause` out: PFC switches it off",
        );
        errors.check_known_after(self.known_after.as_deref());
        let settings = self.build_settings();
        errors.require(
            self.ets.is_some() || settings != Settings::default(),
            "",
            "no resource is declared for",
            "name at least one of pfc, ets, dscp, pause, cable_length_m",
        );
    }
}

impl LinkQosBody {
    fn is_lossless(&self) -> bool {
        self.pfc.as_ref().is_some_and(|pfc| !pfc.is_empty())
    }

    /// PFC and global pause exclude each other, so that PFC switches pause off by itself.
    pub(super) fn build_settings(&self) -> Settings {
        let priority = |(code, priority): (&String, &u8)| Some((code.parse().ok()?, *priority));
        Settings {
            pfc: self.pfc.clone(),
            ets: self.ets.as_ref().and_then(|ets| ets.build_ets().ok()),
            dscp: (self.dscp.as_ref()).map(|dscp| dscp.iter().filter_map(priority).collect()),
            pause: self.pause.or(self.is_lossless().then_some(false)),
            cable_length_m: self.cable_length_m,
        }
    }
}

/// The traffic classes of a body. A priority that a map leaves out is in class 0; without any map
/// each priority is in the class of its number.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EtsBody {
    /// Classes 0 to 7 for priorities 0 to 7, as a map or a list of eight.
    prio_tc: Option<Eight<u8>>,
    /// `strict` or `ets` for classes 0 to 7, as a map or a list of eight.
    tsa: Option<Eight<String>>,
    /// Percent for classes 0 to 7, as a map or a list of eight.
    bandwidth: Option<Eight<u8>>,
}

impl EtsBody {
    /// The traffic classes; else the pointer and what is wrong there.
    fn build_ets(&self) -> Result<Ets, (&'static str, String)> {
        let prio_tc = match &self.prio_tc {
            None => [0, 1, 2, 3, 4, 5, 6, 7],
            Some(classes) => classes.expand(0, |class| *class < 8).ok_or((
                "/ets/prio_tc",
                "must give classes 0 to 7 for priorities 0 to 7".to_owned(),
            ))?,
        };
        let tsa = match &self.tsa {
            None => std::array::from_fn(|_| "ets".to_owned()),
            Some(algorithms) => algorithms
                .expand("ets".to_owned(), |word| word == "ets" || word == "strict")
                .ok_or((
                    "/ets/tsa",
                    "must give `strict` or `ets` for classes 0 to 7".to_owned(),
                ))?,
        };
        let bandwidth = match &self.bandwidth {
            None => [0; 8],
            Some(shares) => shares.expand(0, |share| *share <= 100).ok_or((
                "/ets/bandwidth",
                "must give percent for classes 0 to 7".to_owned(),
            ))?,
        };
        let sum: u32 = bandwidth.iter().map(|share| u32::from(*share)).sum();
        if tsa.iter().any(|word| word == "ets") && sum != 100 {
            return Err((
                "/ets/bandwidth",
                format!("the shares add up to {sum}, not to 100"),
            ));
        }
        let mut shares = tsa.iter().zip(&bandwidth);
        if shares.any(|(word, share)| word == "strict" && *share > 0) {
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
}

/// A list of eight, or a map from `0` .. `7` to values with a default.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "not a map or list of eight such values")]
#[schemars(extend("type" = ["object", "array"]))]
enum Eight<T> {
    List([T; 8]),
    Map(BTreeMap<String, T>),
}

impl<T: Clone> Eight<T> {
    /// All eight values, where they are allowed.
    fn expand(&self, default: T, is_allowed: impl Fn(&T) -> bool) -> Option<[T; 8]> {
        let all = match self {
            Eight::List(all) => all.clone(),
            Eight::Map(some) => {
                let mut all = std::array::from_fn(|_| default.clone());
                for (key, value) in some {
                    *all.get_mut(key.parse::<usize>().ok()?)? = value.clone();
                }
                all
            }
        };
        all.iter().all(is_allowed).then_some(all)
    }
}
