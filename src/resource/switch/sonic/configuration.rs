//! CONFIG_DB as one configuration among those of other systems: which edits a wish comes to, and
//! what is put back.

use super::config_db::ConfigDb;
use super::edit::{SonicEdit, SonicEditBuilder};
use super::plan_edits;
use super::port_view::SonicPortView;
use super::unlike::list_differing_sonic_ports;
use crate::Reading;
use crate::switch::body::Qos;
use crate::switch::configuration::{
    DesiredPortSetting, RestorableSetting, SwitchConfiguration, SwitchPortSettings,
};
use crate::switch::edit::SwitchEdit;
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::BTreeSet;

/// A table, the key of a row that is of one port alone, and fields of it.
type Touched<'a> = (&'a str, String, Vec<&'a str>);

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

    fn edits(&self, port: &str, wanted: &DesiredPortSetting) -> Result<Vec<SwitchEdit>, String> {
        let edits = match wanted {
            DesiredPortSetting::Port { mtu, up } => {
                plan_edits::plan_sonic_port_edits(self, port, *mtu, *up)
            }
            DesiredPortSetting::Qos(wanted) => {
                plan_edits::plan_sonic_qos_edits(self, port, wanted)?
            }
            DesiredPortSetting::Marking { queue, thresholds } => {
                plan_edits::plan_sonic_marking_edits(self, port, *queue, *thresholds)?
            }
            DesiredPortSetting::Cable { metres } => {
                plan_edits::plan_sonic_cable_edits(self, port, *metres)
            }
        };
        Ok(wrap_sonic_edits(edits))
    }

    fn before(&self, port: &str, wanted: &DesiredPortSetting) -> Value {
        let field = |table: &str, key: &str, field: &str| {
            self.reference(table, key, field)
                .map_or(Value::Null, Value::from)
        };
        let row = |(table, key, fields): Touched| {
            let fields: Map<String, Value> = fields
                .iter()
                .map(|name| ((*name).to_owned(), field(table, &key, name)))
                .collect();
            (format!("{table}|{key}"), Value::Object(fields))
        };
        Value::Object(
            list_affected_rows(self, port, wanted)
                .into_iter()
                .map(row)
                .collect(),
        )
    }

    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting> {
        let kept = |(table, key, field, was): (&str, &str, &str, Option<&str>)| RestorableSetting {
            called: describe_row_field(port, key, field),
            was: was.map_or(Reading::Absent, Reading::is),
            is: self
                .reference(table, key, field)
                .map_or(Reading::Absent, Reading::is),
        };
        fields_of(before).map(kept).collect()
    }

    fn put_back(&self, _port: &str, before: &Value) -> Vec<SwitchEdit> {
        let mut edits = SonicEditBuilder::of(self);
        for (table, key, field, was) in fields_of(before) {
            match was {
                Some(was) => edits.set(table, key, field, was),
                None => edits.unset(table, key, field),
            }
        }
        // Rows that came with us and have nothing left go.
        for (row, fields) in before.as_object().into_iter().flatten() {
            let Some((table, key)) = row.split_once('|') else {
                continue;
            };
            let goes = |name: &String| fields.get(name).is_some_and(|was| was.as_str().is_none());
            if self
                .row(table, key)
                .is_some_and(|row| !row.is_empty() && row.keys().all(goes))
            {
                edits.remove(table, key);
            }
        }
        wrap_sonic_edits(edits.finish())
    }

    /// Maps and profiles of ours stay, and nothing uses them.
    fn stays(&self, _before: &Value) -> Vec<String> {
        Vec::new()
    }

    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>> {
        list_differing_sonic_ports(self, (other as &dyn Any).downcast_ref()?)
    }
}

fn wrap_sonic_edits(edits: Vec<SonicEdit>) -> Vec<SwitchEdit> {
    edits.into_iter().map(SwitchEdit::Sonic).collect()
}

fn list_affected_rows<'a>(
    db: &ConfigDb,
    port: &'a str,
    wanted: &DesiredPortSetting,
) -> Vec<Touched<'a>> {
    match wanted {
        // A port that we brought up is never taken down again: others may have come to use it.
        DesiredPortSetting::Port { mtu, .. } => {
            vec![("PORT", port.to_owned(), mtu.iter().map(|_| "mtu").collect())]
        }
        DesiredPortSetting::Qos(wanted) => of_classes(port, wanted),
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

fn of_classes<'a>(port: &str, wanted: &Qos) -> Vec<Touched<'a>> {
    let mut touched: Vec<Touched> = vec![("PORT_QOS_MAP", port.to_owned(), BINDINGS.to_vec())];
    if wanted.watchdog.is_some() {
        touched.push((
            "PFC_WD",
            port.to_owned(),
            vec!["action", "detection_time", "restoration_time"],
        ));
    }
    for class in wanted.classes.iter().filter(|class| class.strict) {
        touched.push((
            "QUEUE",
            format!("{port}|{}", class.priority),
            vec!["scheduler"],
        ));
    }
    touched
}

/// Table, key, field, and what stood there.
fn fields_of(before: &Value) -> impl Iterator<Item = (&str, &str, &str, Option<&str>)> {
    let rows = before
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(row, fields)| Some((row.split_once('|')?, fields.as_object()?)));
    rows.flat_map(|((table, key), fields)| {
        fields
            .iter()
            .map(move |(name, was)| (table, key, name.as_str(), was.as_str()))
    })
}

/// What a field of a port's own row is called, alike for all ports.
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
