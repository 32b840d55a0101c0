//! One port of SONiC in the fabric's words: what its bindings come to, not how they are called.

use super::config_db::ConfigDb;
use crate::switch::configuration::SwitchPortSettings;
use crate::switch::parse_values::{
    ANY, MTUS, PERCENT, build_unreadable_fact, parse_bounded_number, parse_digits,
    parse_priority_list,
};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
use crate::{Fact, Reading};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeInclusive};

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

    fn read_priorities(&self, field: &str) -> Fact<BTreeSet<u64>> {
        parse_priority_list(field, self.db.field("PORT_QOS_MAP", self.port, field))
    }

    /// The key of the row of `QUEUE` that a queue is in, which may be of several (`Ethernet0|3-4`).
    pub fn queue_row(&self, queue: u64) -> Option<&'a str> {
        self.find_row("QUEUE", queue)
    }

    fn find_row(&self, table: &str, number: u64) -> Option<&'a str> {
        let mut rows = list_numbered_rows(self.db, table, self.port);
        let (key, ..) = rows.find(|(_, first, last)| (*first..=*last).contains(&number))?;
        Some(key)
    }

    /// What a field refers to in the row of `QUEUE` or `BUFFER_PG` that has this number.
    fn row_reference(&self, table: &str, number: u64, field: &str) -> Option<&'a str> {
        let row = self.find_row(table, number)?;
        self.db.reference(table, row, field)
    }

    fn watchdog_time(&self, field: &str) -> Fact<u64> {
        parse_bounded_number(field, self.db.field("PFC_WD", self.port, field), ANY).or(0)
    }

    fn wred_number(&self, profile: &str, field: &str, bounds: RangeInclusive<u64>) -> Fact<u64> {
        parse_bounded_number(
            format_args!("WRED_PROFILE|{profile} {field}"),
            self.db.field("WRED_PROFILE", profile, field),
            bounds,
        )
    }

    /// The buffer of a priority group that does not drop: of a profile with room above its
    /// threshold (`xoff`), or one that the switch works out by itself (`NULL`, of the dynamic
    /// buffer model). A profile that the switch made is named by the cable that it is for
    /// (sonic-net/sonic-swss: cfgmgr/buffermgr.cpp); for a length that it has no row for, it leaves
    /// the one before.
    fn lossless(&self, group: u64) -> Fact<LosslessBuffer<'a>> {
        let profile = match self.row_reference("BUFFER_PG", group, "profile") {
            None => return Fact::Absent,
            Some("NULL") => return Fact::Is(LosslessBuffer::WorkedOut),
            Some(profile) => profile,
        };
        let made = profile
            .strip_prefix("pg_lossless_")
            .and_then(|rest| rest.strip_suffix("_profile"));
        let buffer = match made.and_then(|rest| rest.rsplit('_').next()) {
            Some(cable) => LosslessBuffer::ForCable(cable),
            None => LosslessBuffer::OfSomebody,
        };
        let xoff = self.db.field("BUFFER_PROFILE", profile, "xoff");
        let what = format!("BUFFER_PROFILE|{profile} xoff");
        parse_bounded_number(what, xoff, ANY).map(|_| buffer)
    }

    fn describe_missing_buffer(&self, priority: u64, cable_m: u64) -> String {
        let port = self.port;
        let speed = match self.speed_mbps() {
            Some(speed) => format!("{} Gb/s", speed / 1000),
            None => "its speed".to_owned(),
        };
        format!(
            "SONiC made no lossless buffer on {port}: it has no row for {speed} and {cable_m} m \
             (pg_profile_lookup.ini), or works buffers out only where \
             BUFFER_PG|{port}|{priority} says so"
        )
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
        self.read_priorities("pfc_enable")
    }

    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)> {
        if self.db.row("PFC_WD", self.port).is_none() {
            return Fact::Absent;
        }
        // sonic-net/sonic-swss: orchagent/pfcwdorch.cpp; without an action it drops, detection and
        // restoration have to be set.
        let action = self.db.field("PFC_WD", self.port, "action");
        let action = action.unwrap_or("drop");
        if !["drop", "forward", "alert"].contains(&action) {
            return build_unreadable_fact("action of the watchdog", action);
        }
        let settings = PfcWatchdogSettings::from_facts(
            self.watchdog_time("detection_time"),
            self.watchdog_time("restoration_time"),
            action,
        );
        settings.and_then(|settings| {
            self.read_priorities("pfcwd_sw_enable")
                .map(|on| (on, settings))
        })
    }

    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds> {
        let Some(profile) = self.row_reference("QUEUE", queue, "wred_profile") else {
            return Fact::Absent;
        };
        // Packets that ECN may mark are green ones (sonic-net/sonic-swss: orchagent/qosorch.cpp,
        // `ecn_map`).
        match self.db.field("WRED_PROFILE", profile, "ecn") {
            None | Some("ecn_none" | "ecn_yellow" | "ecn_red" | "ecn_yellow_red") => {
                return Fact::Absent;
            }
            Some("ecn_green" | "ecn_green_yellow" | "ecn_green_red" | "ecn_all") => {}
            Some(other) => {
                return build_unreadable_fact(format_args!("WRED_PROFILE|{profile} ecn"), other);
            }
        }
        EcnMarkingThresholds::from_facts(
            self.wred_number(profile, "green_min_threshold", ANY),
            self.wred_number(profile, "green_max_threshold", ANY),
            self.wred_number(profile, "green_drop_probability", PERCENT),
        )
    }

    fn is_strict(&self, queue: u64) -> Fact<bool> {
        let Some(scheduler) = self.row_reference("QUEUE", queue, "scheduler") else {
            return Fact::Is(false);
        };
        match self.db.field("SCHEDULER", scheduler, "type") {
            Some("STRICT") => Fact::Is(true),
            None | Some("DWRR" | "WRR") => Fact::Is(false),
            Some(other) => build_unreadable_fact(format_args!("SCHEDULER|{scheduler} type"), other),
        }
    }

    fn cable_m(&self) -> Fact<u64> {
        let row = self.db.cable_row(self.port);
        let Some(length) = row.and_then(|(_, row)| row.get(self.port)) else {
            return Fact::Absent;
        };
        let length = length.trim();
        let metres = length.strip_suffix('m');
        match metres.and_then(|metres| parse_digits(metres, ANY)) {
            Some(metres) => Fact::Is(metres),
            None => build_unreadable_fact("the length of the cable", length),
        }
    }

    /// It does so by itself, a moment after PFC and the cable were set, or not at all, which is
    /// reported once both are so.
    fn made_buffer(&self, priority: u64, cable_m: u64) -> (Reading, Option<String>) {
        if !self.is_up() {
            return (
                Reading::NotApplicable("the port is down, and has no buffer then".into()),
                None,
            );
        }
        let group = self.group(priority).or(priority);
        let found = match group.and_then(|group| self.lossless(group)) {
            Fact::Is(LosslessBuffer::ForCable(cable)) if cable != format!("{cable_m}m") => {
                Reading::is(format!("for a cable of {cable}"))
            }
            Fact::Is(_) => return (Reading::is("there"), None),
            Fact::Unknown(why) => return (Reading::Unknown(why), None),
            Fact::Absent | Fact::NotApplicable(_) => Reading::Absent,
        };
        let pfc = self.pfc();
        let is_paused = pfc.value().is_some_and(|pfc| pfc.contains(&priority));
        let never = (is_paused && self.cable_m() == Fact::Is(cable_m))
            .then(|| self.describe_missing_buffer(priority, cable_m));
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
fn list_numbered_rows<'a>(
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
