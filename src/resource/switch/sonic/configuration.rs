//! CONFIG_DB as one configuration among those of other systems: which edits a desired setting
//! comes to, and what is put back.

use super::config_db::ConfigDb;
use super::edit::SonicEditBuilder;
use super::plan_edits;
use super::port_view::SonicPortView;
use super::unlike::list_differing_sonic_ports;
use crate::Reading;
use crate::switch::SwitchError;
use crate::switch::body::Qos;
use crate::switch::configuration::{
    DesiredPortSetting, RestorableSetting, SwitchConfiguration, SwitchPortSettings,
};
use crate::switch::edit::SwitchEdit;
use serde::Deserialize;
use serde_json::Value;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

/// A table, the key of a row that is of one port alone, and fields of it.
type AffectedRow<'a> = (&'a str, String, Vec<&'a str>);

/// The fields of a port's own row that may come to be changed.
const BINDINGS: &[&str] = &[
    "dscp_to_tc_map",
    "tc_to_queue_map",
    "tc_to_pg_map",
    "pfc_to_queue_map",
    "pfc_to_pg_map",
    "pfc_enable",
    "pfcwd_sw_enable",
];

impl SwitchConfiguration for ConfigDb {
    fn ports(&self) -> Vec<&str> {
        self.port_names()
    }

    fn port<'a>(&'a self, name: &'a str) -> Option<Box<dyn SwitchPortSettings + 'a>> {
        SonicPortView::of(self, name).map(|view| Box::new(view) as Box<dyn SwitchPortSettings>)
    }

    fn edits(
        &self,
        port: &str,
        desired: &DesiredPortSetting,
    ) -> Result<Vec<SwitchEdit>, SwitchError> {
        let edits = match desired {
            DesiredPortSetting::Port { mtu, up } => {
                plan_edits::plan_sonic_port_edits(self, port, *mtu, *up)
            }
            DesiredPortSetting::Qos(desired) => {
                plan_edits::plan_sonic_qos_edits(self, port, desired)?
            }
            DesiredPortSetting::Marking { queue, thresholds } => {
                plan_edits::plan_sonic_marking_edits(self, port, *queue, *thresholds)?
            }
            DesiredPortSetting::Cable { metres } => {
                plan_edits::plan_sonic_cable_edits(self, port, *metres)
            }
        };
        Ok(edits.into_iter().map(SwitchEdit::Sonic).collect())
    }

    fn before(&self, port: &str, desired: &DesiredPortSetting) -> Value {
        let mut before = PriorRows::new();
        for (table, key, fields) in list_affected_rows(self, port, desired) {
            let mut row = BTreeMap::new();
            for field in fields {
                let value = self.reference(table, &key, field);
                row.insert(field.to_owned(), value.map(str::to_owned));
            }
            before.insert(format!("{table}|{key}"), row);
        }
        serde_json::to_value(before).unwrap_or_default()
    }

    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting> {
        let mut settings = Vec::new();
        let rows = read_prior_rows(before).unwrap_or_default();
        for (table, key, field, was) in list_before_fields(&rows) {
            let is = self.reference(table, key, field);
            settings.push(RestorableSetting {
                called: describe_row_field(port, key, field),
                was: was.map_or(Reading::Absent, Reading::is),
                is: is.map_or(Reading::Absent, Reading::is),
            });
        }
        settings
    }

    fn put_back(&self, _port: &str, before: &Value) -> Vec<SwitchEdit> {
        let mut edits = SonicEditBuilder::of(self);
        let rows = read_prior_rows(before).unwrap_or_default();
        for (table, key, field, was) in list_before_fields(&rows) {
            match was {
                Some(was) => edits.set(table, key, field, was),
                None => edits.unset(table, key, field),
            }
        }
        // Rows that came with us and have nothing left go.
        for (row, fields) in &rows {
            let Some((table, key)) = row.split_once('|') else {
                continue;
            };
            if let Some(row) = self.row(table, key)
                && !row.is_empty()
                && row
                    .keys()
                    .all(|name| fields.get(name).is_some_and(Option::is_none))
            {
                edits.remove(table, key);
            }
        }
        let edits = edits.finish().into_iter();
        edits.map(SwitchEdit::Sonic).collect()
    }

    /// Maps and profiles of ours stay, and nothing uses them.
    fn stays(&self, _before: &Value) -> Vec<String> {
        Vec::new()
    }

    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>> {
        list_differing_sonic_ports(self, (other as &dyn Any).downcast_ref()?)
    }
}

fn list_affected_rows<'a>(
    db: &ConfigDb,
    port: &'a str,
    desired: &DesiredPortSetting,
) -> Vec<AffectedRow<'a>> {
    match desired {
        // A port that we brought up is never taken down again: others may have come to use it.
        DesiredPortSetting::Port { mtu, .. } => {
            vec![("PORT", port.to_owned(), mtu.iter().map(|_| "mtu").collect())]
        }
        DesiredPortSetting::Qos(desired) => list_class_rows(port, desired),
        DesiredPortSetting::Marking { queue, .. } => {
            vec![("QUEUE", format!("{port}|{queue}"), vec!["wred_profile"])]
        }
        DesiredPortSetting::Cable { .. } => vec![(
            "CABLE_LENGTH",
            plan_edits::cable_row(db, port).to_owned(),
            vec![port],
        )],
    }
}

fn list_class_rows<'a>(port: &str, desired: &Qos) -> Vec<AffectedRow<'a>> {
    let mut rows = vec![("PORT_QOS_MAP", port.to_owned(), BINDINGS.to_vec())];
    if desired.watchdog.is_some() {
        rows.push((
            "PFC_WD",
            port.to_owned(),
            vec!["action", "detection_time", "restoration_time"],
        ));
    }
    for queue in desired.strict_queues() {
        rows.push(("QUEUE", format!("{port}|{queue}"), vec!["scheduler"]));
    }
    rows
}

/// Fields with what stood there, by the table and key of their row (`PORT|Ethernet0`), which is of
/// one port alone.
type PriorRows = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// The rows that `before` has; none where this version does not know its form.
pub fn read_prior_rows(before: &Value) -> Option<PriorRows> {
    let rows = PriorRows::deserialize(before).ok()?;
    rows.keys().all(|row| row.contains('|')).then_some(rows)
}

/// Table, key, field, and what stood there.
type FieldBefore<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

fn list_before_fields(rows: &PriorRows) -> Vec<FieldBefore<'_>> {
    let mut all = Vec::new();
    for (row, fields) in rows {
        let Some((table, key)) = row.split_once('|') else {
            continue;
        };
        for (name, was) in fields {
            all.push((table, key, name.as_str(), was.as_deref()));
        }
    }
    all
}

/// What a field of a port's own row is called, identical for all ports.
fn describe_row_field(port: &str, key: &str, field: &str) -> String {
    match key
        .strip_prefix(port)
        .map(|rest| rest.trim_start_matches('|'))
    {
        Some("") => field.to_owned(),
        Some(queue) => format!("queue {queue} {field}"),
        None => "cable_length".to_owned(),
    }
}
