//! In what two switches differ, as far as it is compared: switches of a fabric have descriptions,
//! aliases and neighbours of their own, and the same classes on every port.

use super::config_db::{ConfigDb, Row, Table};
use super::plan_edits::OURS;
use std::collections::BTreeSet;

/// What is compared of a row of `PORT`.
const OF_PORT: [&str; 3] = ["mtu", "admin_status", "speed"];

/// Tables whose rows are each of one port: the key is the port, or begins with it.
const OF_PORTS: [&str; 5] = ["PORT", "PORT_QOS_MAP", "PFC_WD", "QUEUE", "BUFFER_PG"];

/// The row of `PFC_WD` that is of the whole switch, whatever its ports are called.
const OF_ALL: &str = "GLOBAL";

/// The ports whose compared settings differ between the two; nothing where more than single ports
/// differs.
pub fn list_differing_sonic_ports(a: &ConfigDb, b: &ConfigDb) -> Option<BTreeSet<String>> {
    let ports: BTreeSet<&str> = a.port_names().into_iter().collect();
    if !ports.iter().copied().eq(b.port_names()) {
        return None;
    }
    let mut unlike = BTreeSet::new();
    let tables: BTreeSet<&str> = a.tables().chain(b.tables()).collect();
    for name in tables {
        let (rows, others) = match (a.table(name), b.table(name)) {
            (Some(rows), Some(others)) => (rows, others),
            (None, None) => continue,
            _ => return None,
        };
        if rows == others {
            continue;
        }
        if name == "PORT_QOS_MAP" && list_shared_maps(a) != list_shared_maps(b) {
            return None;
        }
        let differing = if name == "CABLE_LENGTH" {
            list_differing_fields(rows, others)?
        } else {
            list_differing_rows(name, rows, others)?
        };
        if !differing
            .iter()
            .all(|port| ports.contains(port) && *port != OF_ALL)
        {
            return None;
        }
        unlike.extend(differing.into_iter().map(str::to_owned));
    }
    Some(unlike)
}

/// The maps of ours that ports are bound to, with the fields that bind them: what a further port
/// gets depends on whether others have it.
fn list_shared_maps(db: &ConfigDb) -> BTreeSet<(&str, &str)> {
    let mut shared = BTreeSet::new();
    for (port, row) in db.table("PORT_QOS_MAP").into_iter().flatten() {
        for field in row.keys() {
            let map = db.reference("PORT_QOS_MAP", port, field);
            shared.extend(
                map.filter(|map| map.starts_with(OURS))
                    .map(|map| (field.as_str(), map)),
            );
        }
    }
    shared
}

/// Each row is of one port.
fn list_differing_rows<'a>(
    table: &str,
    rows: &'a Table,
    others: &'a Table,
) -> Option<BTreeSet<&'a str>> {
    if !OF_PORTS.contains(&table) {
        return None;
    }
    let mut ports = BTreeSet::new();
    for (rows, others) in [(rows, others), (others, rows)] {
        for (key, row) in rows {
            let is_same = others
                .get(key)
                .is_some_and(|other| row == other || (table == "PORT" && is_same_port(row, other)));
            if !is_same {
                ports.extend(key.split('|').next());
            }
        }
    }
    Some(ports)
}

/// Each field of a row is of one port. Whoever takes the last field away takes the row with it, so
/// that of a row with one field or none the others count too.
fn list_differing_fields<'a>(rows: &'a Table, others: &'a Table) -> Option<BTreeSet<&'a str>> {
    let mut both = rows.values().chain(others.values());
    if rows.len() != others.len() || both.any(|row| row.len() <= 1) {
        return None;
    }
    let mut ports = BTreeSet::new();
    for ((key, row), (other_key, other)) in rows.iter().zip(others) {
        if key != other_key {
            return None;
        }
        for (row, other) in [(row, other), (other, row)] {
            let differing = row
                .iter()
                .filter(|(field, value)| other.get(*field) != Some(value));
            ports.extend(differing.map(|(field, _)| field.as_str()));
        }
    }
    Some(ports)
}

/// A row in which nothing but ours is left is taken away with it, so that it counts whether there
/// is more.
fn is_same_port(row: &Row, other: &Row) -> bool {
    OF_PORT
        .iter()
        .all(|field| row.get(*field) == other.get(*field))
        && has_more_fields(row) == has_more_fields(other)
}

fn has_more_fields(row: &Row) -> bool {
    row.keys().any(|field| !OF_PORT.contains(&field.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchSystem;
    use crate::switch::body::{PortTrafficClass, Qos};
    use crate::switch::configuration::DesiredPortSetting;
    use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const PORTS: [&str; 3] = ["Ethernet0", "Ethernet1", "Ethernet10"];

    fn leaf() -> Value {
        let row = |of: fn(&str) -> Value| -> Value {
            PORTS
                .map(|port| (port.to_owned(), of(port)))
                .into_iter()
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let queues = |bound: &str| json!({ "scheduler": bound, "wred_profile": "AZURE_LOSSLESS" });
        // One says neither its speed nor whether it is up: what we set of it may be all that it
        // has.
        let port = |port: &str| match port {
            "Ethernet10" => json!({ "mtu": "9100", "description": port }),
            port => {
                json!({ "speed": "400000", "mtu": "9100", "admin_status": "up", "description": port })
            }
        };
        json!({
            "PORT": row(port),
            "DSCP_TO_TC_MAP": { "AZURE": { "3": "3", "26": "1", "48": "6" } },
            "TC_TO_QUEUE_MAP": { "AZURE": { "3": "3", "6": "6" } },
            "TC_TO_PRIORITY_GROUP_MAP": { "AZURE": { "3": "3" } },
            "PORT_QOS_MAP": row(|_| json!({ "dscp_to_tc_map": "AZURE", "tc_to_queue_map": "AZURE", "tc_to_pg_map": "AZURE", "pfc_enable": "3,4" })),
            "SCHEDULER": { "scheduler.0": { "type": "DWRR" }, "scheduler.1": { "type": "STRICT" } },
            "QUEUE": { "Ethernet0|3": queues("scheduler.0"), "Ethernet1|3-4": queues("scheduler.0"), "Ethernet10|6": queues("scheduler.1") },
            "WRED_PROFILE": { "AZURE_LOSSLESS": { "ecn": "ecn_all", "green_min_threshold": "1", "green_max_threshold": "2", "green_drop_probability": "5" } },
            "CABLE_LENGTH": { "AZURE": { "Ethernet0": "300m", "Ethernet1": "40m" } },
            "PFC_WD": { "GLOBAL": { "POLL_INTERVAL": "200" }, "Ethernet1": { "action": "drop", "detection_time": "200", "restoration_time": "200" } },
            "BUFFER_PROFILE": { "pg_lossless_400000_40m_profile": { "xoff": "177152" } },
            "BUFFER_PG": { "Ethernet0|3-4": { "profile": "pg_lossless_400000_40m_profile" }, "Ethernet10|3": { "profile": "NULL" } },
        })
    }

    fn desired() -> Vec<DesiredPortSetting> {
        let class = |priority, dscp, pfc| PortTrafficClass {
            priority,
            dscp: vec![dscp],
            pfc,
            strict: !pfc,
        };
        let watchdog = Some(PfcWatchdogSettings {
            detection_ms: 300,
            restoration_ms: 300,
            action: "drop".to_owned(),
        });
        vec![
            DesiredPortSetting::Port {
                mtu: Some(9216),
                up: Some(true),
            },
            DesiredPortSetting::Qos(Qos {
                classes: vec![class(3, 26, true), class(6, 48, false)],
                watchdog,
            }),
            DesiredPortSetting::Marking {
                queue: 3,
                thresholds: EcnMarkingThresholds {
                    min_bytes: 1,
                    max_bytes: 2,
                    probability_percent: 5,
                },
            },
            DesiredPortSetting::Cable { metres: 40 },
        ]
    }

    /// All that a resource of a port is compared by, and all that it would do.
    fn compared(text: &Value, port: &str) -> String {
        let config = SwitchSystem::Sonic
            .configuration(&text.to_string())
            .unwrap();
        let view = config.port(port).map(|view| {
            let of_priorities = (0..8).map(|n| {
                format!(
                    "{:?} {:?} {:?} {:?} {:?}",
                    view.queue(n),
                    view.paused_queue(n),
                    view.group(n),
                    view.marking(n),
                    view.is_strict(n)
                )
            });
            let dscps: Vec<_> = (0..64).map(|dscp| view.priority(dscp)).collect();
            let buffer = view.made_buffer(3, 40);
            format!(
                "{:?} {:?} {:?} {:?} {:?} {dscps:?} {buffer:?} {}",
                view.mtu(),
                view.is_up(),
                view.pfc(),
                view.watchdog(),
                view.cable_m(),
                of_priorities.collect::<String>()
            )
        });
        let told = desired().into_iter().map(|desired| {
            let before = config.before(port, &desired);
            let kept: Vec<_> = config
                .kept(port, &before)
                .into_iter()
                .map(|kept| (kept.called, kept.was, kept.is))
                .collect();
            let of_nothing: Value = before
                .as_object()
                .into_iter()
                .flatten()
                .map(|(row, fields)| {
                    let none = fields
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| (name.clone(), Value::Null))
                        .collect::<serde_json::Map<_, _>>();
                    (row.clone(), Value::Object(none))
                })
                .collect::<serde_json::Map<_, _>>()
                .into();
            format!(
                "{:?} {before} {kept:?} {:?} {:?}",
                config.edits(port, &desired),
                config.put_back(port, &before),
                config.put_back(port, &of_nothing)
            )
        });
        format!("{view:?} {}", told.collect::<String>())
    }

    /// Every place of a field in it.
    fn places(config: &Value) -> Vec<(String, String, String)> {
        let mut places = Vec::new();
        for (table, rows) in config.as_object().into_iter().flatten() {
            for (key, row) in rows.as_object().into_iter().flatten() {
                let fields = row.as_object().into_iter().flatten();
                places.extend(fields.map(|(field, _)| (table.clone(), key.clone(), field.clone())));
            }
        }
        places
    }

    /// Mostly of what is there, and else of anything.
    fn a_change() -> impl Strategy<Value = (String, String, String, Option<&'static str>)> {
        let keys = [
            "Ethernet0",
            "Ethernet10|3",
            "GLOBAL",
            "global",
            "AZURE",
            "railwright",
            "lc|asic0|Ethernet0|3",
            "AAA",
        ];
        let fields = [
            "mtu",
            "alias",
            "pfcwd_sw_enable",
            "profile",
            "POLL_INTERVAL",
            "3",
            "26",
            "Ethernet10",
            "pfc_to_queue_map",
        ];
        let values = [
            "3",
            "26",
            "9216",
            "up",
            "down",
            "AZURE",
            "railwright",
            "NULL",
            "40m",
            "300m",
            "STRICT",
            "AZURE_LOSSLESS",
            "500",
        ];
        let there = places(&leaf());
        let tables = there
            .iter()
            .map(|(table, ..)| table.clone())
            .chain(["MAP_PFC_PRIORITY_TO_QUEUE".to_owned(), "OTHER".to_owned()]);
        let tables: Vec<String> = tables.collect::<BTreeSet<_>>().into_iter().collect();
        let owned = |texts: &[&str]| {
            proptest::sample::select(
                texts
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let anywhere = (
            proptest::sample::select(tables),
            owned(&keys),
            owned(&fields),
        );
        let place = prop_oneof![3 => proptest::sample::select(there), 1 => anywhere];
        let value = proptest::option::weighted(0.7, proptest::sample::select(values.to_vec()));
        (place, value).prop_map(|((table, key, field), value)| (table, key, field, value))
    }

    fn changed(config: &mut Value, (table, key, field, value): (&str, &str, &str, Option<&str>)) {
        match value {
            Some(value) => config[table][key][field] = value.into(),
            None => {
                let row = config
                    .pointer_mut(&format!("/{table}"))
                    .and_then(|rows| rows.get_mut(key))
                    .and_then(Value::as_object_mut);
                row.map(|row| row.remove(field));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        /// A port that is not named is compared, changed and put back by identical values.
        #[test]
        fn what_is_not_named_is_the_same(
            (common, own) in (proptest::collection::vec(a_change(), 0..4), proptest::collection::vec(a_change(), 1..4)),
            (added, first) in (any::<bool>(), any::<bool>()),
        ) {
            let mut one = leaf();
            common.iter().for_each(|(table, key, field, value)| changed(&mut one, (table, key, field, *value)));
            let mut other = one.clone();
            own.iter().for_each(|(table, key, field, value)| changed(&mut other, (table, key, field, *value)));
            if added {
                other["CABLE_LENGTH"]["AAA"]["Ethernet0"] = "5m".into();
            }
            let parse = |value: &Value| ConfigDb::parse(&value.to_string()).unwrap();
            let (a, b) = if first { (parse(&one), parse(&other)) } else { (parse(&other), parse(&one)) };
            let found = list_differing_sonic_ports(&a, &b);
            for port in PORTS.iter().chain(&["Ethernet99"]).filter(|port| found.as_ref().is_some_and(|found| !found.contains(**port))) {
                prop_assert_eq!(compared(&one, port), compared(&other, port), "{:?}", found);
            }
        }
    }

    /// What most fabrics differ in costs nothing, and what one port has of its own is of that port.
    #[test]
    fn descriptions_are_of_nobody_and_settings_of_their_port() {
        let told = |changes: &[(&str, &str, &str, &str)]| {
            let mut other = leaf();
            changes.iter().for_each(|(table, key, field, value)| {
                changed(&mut other, (table, key, field, Some(value)))
            });
            list_differing_sonic_ports(
                &ConfigDb::parse(&leaf().to_string()).unwrap(),
                &ConfigDb::parse(&other.to_string()).unwrap(),
            )
        };
        let ports = |names: &[&str]| {
            Some(
                names
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect::<BTreeSet<_>>(),
            )
        };
        assert_eq!(
            told(&[
                ("PORT", "Ethernet0", "description", "to gpu-001"),
                ("PORT", "Ethernet1", "alias", "etp2")
            ]),
            ports(&[])
        );
        assert_eq!(
            told(&[("PORT", "Ethernet0", "mtu", "9000")]),
            ports(&["Ethernet0"])
        );
        assert_eq!(
            told(&[
                ("QUEUE", "Ethernet1|3-4", "scheduler", "scheduler.1"),
                ("BUFFER_PG", "Ethernet10|6", "profile", "NULL")
            ]),
            ports(&["Ethernet1", "Ethernet10"])
        );
        assert_eq!(
            told(&[("CABLE_LENGTH", "AZURE", "Ethernet10", "40m")]),
            ports(&["Ethernet10"])
        );
        assert_eq!(told(&[("DSCP_TO_TC_MAP", "AZURE", "26", "3")]), None);
        assert_eq!(told(&[("PFC_WD", "GLOBAL", "POLL_INTERVAL", "400")]), None);
        assert_eq!(
            told(&[("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", "railwright")]),
            None,
            "what a further port gets depends on whether others have our map"
        );
        assert_eq!(told(&[("PORT", "Ethernet2", "mtu", "9000")]), None);
    }
}
