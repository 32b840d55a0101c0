//! One port of SONiC in the fabric's words: what its bindings come to, not how they are called.

use super::config_db::ConfigDb;
use crate::switch::configuration::SwitchPortSettings;
use crate::switch::unreadable::{
    ANY, MTUS, PERCENT, build_unreadable_fact, parse_bounded_number, parse_priority_list,
};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
use crate::{Fact, Reading};
use std::collections::BTreeSet;
use std::ops::Bound;

/// A port of a configuration.
#[derive(Clone, Copy)]
pub struct SonicPortView<'a> {
    db: &'a ConfigDb,
    port: &'a str,
}

/// The MTU of a port that says none (sonic-net/sonic-swss: orchagent/portsorch.cpp, `DEFAULT_MTU`).
const MTU: u64 = 9100;

impl<'a> SonicPortView<'a> {
    /// The port of this name, if the switch has it.
    pub fn of(db: &'a ConfigDb, port: &'a str) -> Option<Self> {
        db.row("PORT", port).map(|_| SonicPortView { db, port })
    }

    fn own(&self, field: &str) -> Option<&'a str> {
        self.db.field("PORT", self.port, field)
    }

    /// Mbit/s.
    pub fn speed_mbps(&self) -> Option<u64> {
        self.own("speed")?.parse().ok()
    }

    /// The key of a map that it is bound to.
    pub fn bound(&self, field: &str) -> Option<&'a str> {
        self.db.reference("PORT_QOS_MAP", self.port, field)
    }

    fn mapped(&self, field: &str, table: &str, from: u64) -> Fact<u64> {
        let Some(map) = self.bound(field) else {
            return Fact::Absent;
        };
        parse_bounded_number(
            format_args!("{table}|{map} {from}"),
            self.db.field(table, map, &from.to_string()),
            ANY,
        )
    }

    fn set(&self, field: &str) -> Fact<BTreeSet<u64>> {
        parse_priority_list(field, self.db.field("PORT_QOS_MAP", self.port, field))
    }

    /// The key of the row of `QUEUE` that a queue is in, which may be of several (`Ethernet0|3-4`).
    pub fn queue_row(&self, queue: u64) -> Option<&'a str> {
        rows_of(self.db, "QUEUE", self.port)
            .find(|(_, first, last)| (*first..=*last).contains(&queue))
            .map(|(key, ..)| key)
    }

    /// The buffer of a priority group that does not drop: of a profile with room above its
    /// threshold (`xoff`), or one that the switch works out by itself (`NULL`, of the dynamic
    /// buffer model). A profile that the switch made is named by the cable that it is for
    /// (sonic-net/sonic-swss: cfgmgr/buffermgr.cpp); for a length that it has no row for, it leaves
    /// the one before.
    fn lossless(&self, group: u64) -> Fact<LosslessBuffer<'a>> {
        let row = rows_of(self.db, "BUFFER_PG", self.port)
            .find(|(_, first, last)| (*first..=*last).contains(&group));
        match row.and_then(|(key, ..)| self.db.reference("BUFFER_PG", key, "profile")) {
            None => Fact::Absent,
            Some("NULL") => Fact::Is(LosslessBuffer::WorkedOut),
            Some(profile) => {
                let made = profile
                    .strip_prefix("pg_lossless_")
                    .and_then(|rest| rest.strip_suffix("_profile"));
                let cable = made.and_then(|rest| rest.rsplit('_').next());
                let xoff = parse_bounded_number(
                    format_args!("BUFFER_PROFILE|{profile} xoff"),
                    self.db.field("BUFFER_PROFILE", profile, "xoff"),
                    ANY,
                );
                xoff.map(|_| cable.map_or(LosslessBuffer::OfSomebody, LosslessBuffer::ForCable))
            }
        }
    }
}

impl SwitchPortSettings for SonicPortView<'_> {
    fn mtu(&self) -> Fact<u64> {
        parse_bounded_number("mtu", self.own("mtu"), MTUS).or(MTU)
    }

    /// The YANG model's default is down.
    fn up(&self) -> Fact<bool> {
        match self.own("admin_status") {
            Some("up") => Fact::Is(true),
            None | Some("down") => Fact::Is(false),
            Some(other) => build_unreadable_fact("admin_status", other),
        }
    }

    fn priority(&self, dscp: u64) -> Fact<u64> {
        self.mapped("dscp_to_tc_map", "DSCP_TO_TC_MAP", dscp)
    }

    fn queue(&self, priority: u64) -> Fact<u64> {
        self.mapped("tc_to_queue_map", "TC_TO_QUEUE_MAP", priority)
    }

    /// Without a map of its own it is the one of the same number.
    fn paused_queue(&self, priority: u64) -> Fact<u64> {
        match self.bound("pfc_to_queue_map") {
            Some(_) => self.mapped("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", priority),
            None => Fact::Is(priority),
        }
    }

    fn group(&self, priority: u64) -> Fact<u64> {
        self.mapped("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", priority)
    }

    fn pfc(&self) -> Fact<BTreeSet<u64>> {
        self.set("pfc_enable")
    }

    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)> {
        let field = |field: &str| self.db.field("PFC_WD", self.port, field);
        if self.db.row("PFC_WD", self.port).is_none() {
            return Fact::Absent;
        }
        // sonic-net/sonic-swss: orchagent/pfcwdorch.cpp; without an action it drops, detection and
        // restoration have to be said.
        let action = match field("action").unwrap_or("drop") {
            action @ ("drop" | "forward" | "alert") => action.to_owned(),
            other => return build_unreadable_fact("action of the watchdog", other),
        };
        let time = |name: &str| parse_bounded_number(name, field(name), ANY).or(0);
        time("detection_time").and_then(|detection_ms| {
            time("restoration_time").and_then(|restoration_ms| {
                self.set("pfcwd_sw_enable").map(|on| {
                    (
                        on,
                        PfcWatchdogSettings {
                            detection_ms,
                            restoration_ms,
                            action,
                        },
                    )
                })
            })
        })
    }

    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds> {
        let Some(profile) = self
            .queue_row(queue)
            .and_then(|row| self.db.reference("QUEUE", row, "wred_profile"))
        else {
            return Fact::Absent;
        };
        let field = |name: &str| self.db.field("WRED_PROFILE", profile, name);
        // Packets that ECN may mark are green ones (sonic-net/sonic-swss: orchagent/qosorch.cpp,
        // `ecn_map`).
        match field("ecn") {
            None | Some("ecn_none" | "ecn_yellow" | "ecn_red" | "ecn_yellow_red") => {
                return Fact::Absent;
            }
            Some("ecn_green" | "ecn_green_yellow" | "ecn_green_red" | "ecn_all") => {}
            Some(other) => {
                return build_unreadable_fact(format_args!("WRED_PROFILE|{profile} ecn"), other);
            }
        }
        let of = |name: &str, bounds| {
            parse_bounded_number(
                format_args!("WRED_PROFILE|{profile} {name}"),
                field(name),
                bounds,
            )
        };
        of("green_min_threshold", ANY).and_then(|min_bytes| {
            of("green_max_threshold", ANY).and_then(|max_bytes| {
                let probability = of("green_drop_probability", PERCENT);
                probability.map(|probability_percent| EcnMarkingThresholds {
                    min_bytes,
                    max_bytes,
                    probability_percent,
                })
            })
        })
    }

    fn is_strict(&self, queue: u64) -> Fact<bool> {
        let scheduler = self
            .queue_row(queue)
            .and_then(|row| self.db.reference("QUEUE", row, "scheduler"));
        match scheduler
            .and_then(|scheduler| Some((scheduler, self.db.field("SCHEDULER", scheduler, "type")?)))
        {
            Some((_, "STRICT")) => Fact::Is(true),
            None | Some((_, "DWRR" | "WRR")) => Fact::Is(false),
            Some((scheduler, other)) => {
                build_unreadable_fact(format_args!("SCHEDULER|{scheduler} type"), other)
            }
        }
    }

    fn cable_m(&self) -> Fact<u64> {
        let Some(said) = self
            .db
            .cable_row(self.port)
            .and_then(|(_, row)| row.get(self.port))
            .map(|said| said.trim())
        else {
            return Fact::Absent;
        };
        let metres = parse_bounded_number("", said.strip_suffix('m'), ANY);
        metres.value().map_or_else(
            || build_unreadable_fact("the length of the cable", said),
            |metres| Fact::Is(*metres),
        )
    }

    /// SONiC sets buffers aside port by port.
    fn has_lossless_pool(&self) -> Fact<bool> {
        Fact::Is(true)
    }

    /// It does so by itself, a moment after it was told of PFC and the cable, or not at all, which
    /// is told once both are so.
    fn made_buffer(&self, priority: u64, cable_m: u64) -> (Reading, Option<String>) {
        if !self.is_up() {
            return (
                Reading::NotApplicable("the port is down, and has no buffer then".to_owned()),
                None,
            );
        }
        let found = match self
            .group(priority)
            .or(priority)
            .and_then(|group| self.lossless(group))
        {
            Fact::Is(LosslessBuffer::ForCable(cable)) if cable != format!("{cable_m}m") => {
                Reading::is(format!("for a cable of {cable}"))
            }
            Fact::Is(_) => return (Reading::is("there"), None),
            Fact::Unknown(why) => return (Reading::Unknown(why), None),
            Fact::Absent | Fact::NotApplicable(_) => Reading::Absent,
        };
        let is_paused = self
            .pfc()
            .value()
            .is_some_and(|pfc| pfc.contains(&priority));
        let never = (is_paused && self.cable_m() == Fact::Is(cable_m)).then(|| {
            let speed = self.speed_mbps().map_or_else(
                || "its speed".to_owned(),
                |speed| format!("{} Gb/s", speed / 1000),
            );
            let port = self.port;
            format!(
                "SONiC made no lossless buffer on {port}: it has no row for {speed} and {cable_m} \
                 m (pg_profile_lookup.ini), or works buffers out only where \
                 BUFFER_PG|{port}|{priority} says so"
            )
        });
        (found, never)
    }
}

/// What a buffer that does not drop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LosslessBuffer<'a> {
    /// The switch works out how large it is.
    WorkedOut,
    /// The switch took it from its table, for a cable of this length (`40m`).
    ForCable(&'a str),
    /// Somebody's own.
    OfSomebody,
}

/// The rows of a port, with the first and the last number of each: `Ethernet0|3-4`. On a chassis
/// the key is longer, and is no row of the port alone. They stand together in a table of all ports.
fn rows_of<'a>(
    db: &'a ConfigDb,
    table: &str,
    port: &str,
) -> impl Iterator<Item = (&'a str, u64, u64)> {
    let prefix = format!("{port}|");
    let rows = db
        .table(table)
        .map(|rows| rows.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded)));
    let of_port = rows
        .into_iter()
        .flatten()
        .map_while(move |(key, _)| Some((key, key.strip_prefix(prefix.as_str())?)));
    of_port.filter_map(|(key, numbers)| {
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        Some((key.as_str(), first.parse().ok()?, last.parse().ok()?))
    })
}
