//! One port of SONiC in the fabric's words: what its bindings come to, not how they are called.

use super::config_db::ConfigDb;
use crate::resource::switch::{Thresholds, Watchdog};
use std::collections::BTreeSet;

/// A port of a configuration.
#[derive(Clone, Copy)]
pub struct PortView<'a> {
    db: &'a ConfigDb,
    port: &'a str,
}

/// The MTU of a port that says none (sonic-net/sonic-swss: orchagent/portsorch.cpp, `DEFAULT_MTU`).
const MTU: u64 = 9100;

impl<'a> PortView<'a> {
    /// The port of this name, if the switch has it.
    pub fn of(db: &'a ConfigDb, port: &'a str) -> Option<Self> {
        db.row("PORT", port).map(|_| PortView { db, port })
    }

    fn own(&self, field: &str) -> Option<&'a str> {
        self.db.field("PORT", self.port, field)
    }

    /// Bytes of an IP packet.
    pub fn mtu(&self) -> u64 {
        self.own("mtu").and_then(|mtu| mtu.parse().ok()).unwrap_or(MTU)
    }

    /// True when it is to be up; the YANG model's default is down.
    pub fn is_up(&self) -> bool {
        self.own("admin_status") == Some("up")
    }

    /// Mbit/s.
    pub fn speed_mbps(&self) -> Option<u64> {
        self.own("speed")?.parse().ok()
    }

    /// The key of a map that it is bound to.
    pub fn bound(&self, field: &str) -> Option<&'a str> {
        self.db.reference("PORT_QOS_MAP", self.port, field)
    }

    fn mapped(&self, field: &str, table: &str, from: u64) -> Option<u64> {
        self.db.field(table, self.bound(field)?, &from.to_string())?.parse().ok()
    }

    /// The priority that packets of a DSCP get; none where the port looks at no DSCP.
    pub fn priority(&self, dscp: u64) -> Option<u64> {
        self.mapped("dscp_to_tc_map", "DSCP_TO_TC_MAP", dscp)
    }

    /// The queue that packets of a priority leave by.
    pub fn queue(&self, priority: u64) -> Option<u64> {
        self.mapped("tc_to_queue_map", "TC_TO_QUEUE_MAP", priority)
    }

    /// The queue that a pause frame of a priority stops; without a map of its own it is the one of the same number.
    pub fn paused_queue(&self, priority: u64) -> Option<u64> {
        match self.bound("pfc_to_queue_map") {
            Some(_) => self.mapped("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", priority),
            None => Some(priority),
        }
    }

    /// The priority group that packets of a priority are held in when they come.
    pub fn group(&self, priority: u64) -> Option<u64> {
        self.mapped("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", priority)
    }

    fn set(&self, field: &str) -> BTreeSet<u64> {
        let text = self.db.field("PORT_QOS_MAP", self.port, field).unwrap_or_default();
        text.split(',').filter_map(|number| number.trim().parse().ok()).collect()
    }

    /// The priorities with PFC.
    pub fn pfc(&self) -> BTreeSet<u64> {
        self.set("pfc_enable")
    }

    /// The priorities that the watchdog looks at, with what it does.
    pub fn watchdog(&self) -> Option<(BTreeSet<u64>, Watchdog)> {
        let field = |field| self.db.field("PFC_WD", self.port, field);
        let number = |name, default| field(name).map_or(Some(default), |text| text.parse().ok());
        // sonic-net/sonic-swss: orchagent/pfcwdorch.cpp; without an action it drops, detection and restoration have to be said.
        let watchdog = Watchdog {
            detection_ms: number("detection_time", 0)?,
            restoration_ms: number("restoration_time", 0)?,
            action: field("action").unwrap_or("drop").to_owned(),
        };
        self.db.row("PFC_WD", self.port).map(|_| (self.set("pfcwd_sw_enable"), watchdog))
    }

    /// The key of the row of `QUEUE` that a queue is in, which may be of several (`Ethernet0|3-4`).
    pub fn queue_row(&self, queue: u64) -> Option<&'a str> {
        rows_of(self.db, "QUEUE", self.port).find(|(_, first, last)| (*first..=*last).contains(&queue)).map(|(key, ..)| key)
    }

    /// Where packets of a queue are marked; none where they are not.
    pub fn marking(&self, queue: u64) -> Option<Thresholds> {
        let profile = self.db.reference("QUEUE", self.queue_row(queue)?, "wred_profile")?;
        let field = |name: &str| self.db.field("WRED_PROFILE", profile, name);
        // Packets that ECN may mark are green ones (sonic-net/sonic-swss: orchagent/qosorch.cpp, `ecn_map`).
        let marks = matches!(field("ecn"), Some("ecn_green" | "ecn_green_yellow" | "ecn_green_red" | "ecn_all"));
        let number = |name: &str| field(name)?.parse().ok();
        let thresholds = Thresholds {
            min_bytes: number("green_min_threshold")?,
            max_bytes: number("green_max_threshold")?,
            probability_percent: number("green_drop_probability")?,
        };
        marks.then_some(thresholds)
    }

    /// True when a queue goes before all others.
    pub fn is_strict(&self, queue: u64) -> bool {
        let scheduler = self.queue_row(queue).and_then(|row| self.db.reference("QUEUE", row, "scheduler"));
        scheduler.and_then(|scheduler| self.db.field("SCHEDULER", scheduler, "type")) == Some("STRICT")
    }

    /// Metres; none where it says none.
    pub fn cable_m(&self) -> Option<u64> {
        let (_, row) = self.db.cable_row(self.port)?;
        row.get(self.port)?.trim().strip_suffix('m')?.parse().ok()
    }

    /// The buffer of a priority group that does not drop: of a profile with room above its threshold (`xoff`), or one that the switch works
    /// out by itself (`NULL`, of the dynamic buffer model). A profile that the switch made is named by the cable that it is for
    /// (sonic-net/sonic-swss: cfgmgr/buffermgr.cpp); for a length that it has no row for, it leaves the one before.
    pub fn lossless(&self, group: u64) -> Option<LosslessBuffer<'a>> {
        let (key, ..) = rows_of(self.db, "BUFFER_PG", self.port).find(|(_, first, last)| (*first..=*last).contains(&group))?;
        match self.db.reference("BUFFER_PG", key, "profile")? {
            "NULL" => Some(LosslessBuffer::WorkedOut),
            profile => {
                let made = profile.strip_prefix("pg_lossless_").and_then(|rest| rest.strip_suffix("_profile"));
                let cable = made.and_then(|rest| rest.rsplit('_').next());
                self.db.field("BUFFER_PROFILE", profile, "xoff")?;
                Some(cable.map_or(LosslessBuffer::OfSomebody, LosslessBuffer::ForCable))
            }
        }
    }
}

/// What a buffer that does not drop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LosslessBuffer<'a> {
    /// The switch works out how large it is.
    WorkedOut,
    /// The switch took it from its table, for a cable of this length (`40m`).
    ForCable(&'a str),
    /// Somebody's own.
    OfSomebody,
}

/// The rows of a port, with the first and the last number of each: `Ethernet0|3-4`. On a chassis the key is longer, and is no row of
/// the port alone.
pub fn rows_of<'a>(db: &'a ConfigDb, table: &str, port: &'a str) -> impl Iterator<Item = (&'a str, u64, u64)> {
    db.table(table).into_iter().flatten().filter_map(move |(key, _)| {
        let numbers = key.strip_prefix(port)?.strip_prefix('|')?;
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        Some((key.as_str(), first.parse().ok()?, last.parse().ok()?))
    })
}
