//! Edits of CONFIG_DB as values, and as the RFC 6902 patch that `config apply-patch` takes.

use super::config_db::{ConfigDb, Row};
use crate::Disruption;
use crate::switch::edit::Disturbance;
use railwright_base::json_pointer::escape_step;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What of a field's place was there when the edit was made: a patch adds a table or a row as a
/// whole.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum There {
    /// Not even the table.
    Nothing,
    /// The table, without the row.
    Table,
    /// The row, without the field.
    Row,
    /// The field.
    Field,
}

/// One field that gets another value.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct SonicEdit {
    /// The table.
    pub table: String,
    /// The row's key.
    pub key: String,
    /// The field; empty for the row as a whole, which is taken away.
    pub field: String,
    /// What was there.
    pub there: There,
    /// The value; nothing takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl SonicEdit {
    /// The ports that it is about: a row is of one or of some, or a field of it is; a map is of
    /// none.
    pub fn ports(&self) -> Vec<String> {
        let names = match self.table.as_str() {
            "PORT" | "PORT_QOS_MAP" | "QUEUE" | "BUFFER_PG" | "PFC_WD" => {
                self.key.split('|').next().unwrap_or_default()
            }
            "CABLE_LENGTH" => &self.field,
            _ => "",
        };
        names
            .split(',')
            .filter(|name| !name.is_empty() && *name != "GLOBAL")
            .map(str::to_owned)
            .collect()
    }
}

/// Collects edits against one configuration; what is so already is no edit.
pub struct SonicEditBuilder<'a> {
    db: &'a ConfigDb,
    edits: Vec<SonicEdit>,
}

impl<'a> SonicEditBuilder<'a> {
    /// None yet.
    pub fn of(db: &'a ConfigDb) -> Self {
        SonicEditBuilder {
            db,
            edits: Vec::new(),
        }
    }

    /// Sets a field.
    pub fn set(&mut self, table: &str, key: &str, field: &str, value: &str) {
        if self.db.reference(table, key, field) != Some(value) {
            self.push(table, key, field, Some(value));
        }
    }

    /// Takes a field away.
    pub fn unset(&mut self, table: &str, key: &str, field: &str) {
        if self.db.field(table, key, field).is_some() {
            self.push(table, key, field, None);
        }
    }

    /// Takes a row away.
    pub fn remove(&mut self, table: &str, key: &str) {
        if self.db.row(table, key).is_some() {
            self.push(table, key, "", None);
        }
    }

    fn push(&mut self, table: &str, key: &str, field: &str, value: Option<&str>) {
        let there = match (self.db.table(table), self.db.row(table, key)) {
            (None, _) => There::Nothing,
            (_, None) => There::Table,
            (_, Some(row)) if row.contains_key(field) || field.is_empty() => There::Field,
            _ => There::Row,
        };
        let text = str::to_owned;
        self.edits.push(SonicEdit {
            table: text(table),
            key: text(key),
            field: text(field),
            there,
            value: value.map(text),
        });
    }

    /// The edits, each once.
    pub fn finish(mut self) -> Vec<SonicEdit> {
        self.edits.sort();
        self.edits.dedup();
        self.edits
    }
}

/// Tables in an order in which nothing is referred to before it is there. `config apply-patch`
/// sorts by itself; whoever reads a plan is helped by it.
const ORDER: [&str; 11] = [
    "PORT",
    "CABLE_LENGTH",
    "DSCP_TO_TC_MAP",
    "TC_TO_QUEUE_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "SCHEDULER",
    "WRED_PROFILE",
    "QUEUE",
    "PORT_QOS_MAP",
];

/// The patch of all edits of a step.
pub fn build_json_patch(edits: &[SonicEdit]) -> Value {
    let mut tables: BTreeMap<(usize, &str), BTreeMap<&str, Vec<&SonicEdit>>> = BTreeMap::new();
    for edit in edits {
        let place = ORDER
            .iter()
            .position(|table| *table == edit.table)
            .unwrap_or(ORDER.len());
        tables
            .entry((place, &edit.table))
            .or_default()
            .entry(&edit.key)
            .or_default()
            .push(edit);
    }
    let mut out = Vec::new();
    for ((_, table), rows) in tables {
        let mut edits = rows.values().flatten();
        if edits.all(|edit| edit.there == There::Nothing) {
            let mut value = Map::new();
            for (key, edits) in rows {
                value.insert(key.to_owned(), build_row_value(&edits));
            }
            out.push(json!({ "op": "add", "path": format_json_pointer(&[table]), "value": value }));
            continue;
        }
        for (key, edits) in rows {
            add_row_operations(&mut out, table, key, &edits);
        }
    }
    Value::Array(out)
}

fn add_row_operations(out: &mut Vec<Value>, table: &str, key: &str, edits: &[&SonicEdit]) {
    let path = format_json_pointer(&[table, key]);
    if edits.iter().any(|edit| edit.field.is_empty()) {
        out.push(json!({ "op": "remove", "path": path }));
    } else if edits.iter().all(|edit| edit.there <= There::Table) {
        out.push(json!({ "op": "add", "path": path, "value": build_row_value(edits) }));
    } else {
        out.extend(
            edits
                .iter()
                .map(|edit| build_field_operation(table, key, edit)),
        );
    }
}

fn build_field_operation(table: &str, key: &str, edit: &SonicEdit) -> Value {
    let path = format_json_pointer(&[table, key, &edit.field]);
    match &edit.value {
        None => json!({ "op": "remove", "path": path }),
        Some(value) if edit.there == There::Field => {
            json!({ "op": "replace", "path": path, "value": value })
        }
        Some(value) => json!({ "op": "add", "path": path, "value": value }),
    }
}

fn build_row_value(edits: &[&SonicEdit]) -> Value {
    let row: Row = edits
        .iter()
        .filter_map(|edit| Some((edit.field.clone(), edit.value.clone()?)))
        .collect();
    json!(row)
}

/// A JSON pointer (RFC 6901).
fn format_json_pointer(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("/{}", escape_step(word)))
        .collect()
}

/// What is done with the ports that a change of these tables is about while they are up: they go
/// down and come back (sonic-net/sonic-utilities: generic_config_updater/patch_sorter.py,
/// `RequiredValueIdentifier`).
const DOWN_TABLES: [&str; 6] = [
    "PORT_QOS_MAP",
    "QUEUE",
    "BUFFER_PG",
    "BUFFER_QUEUE",
    "BUFFER_PORT_INGRESS_PROFILE_LIST",
    "BUFFER_PORT_EGRESS_PROFILE_LIST",
];

/// True when the edit takes its port down for a moment.
pub fn takes_port_down(edit: &SonicEdit) -> bool {
    DOWN_TABLES.contains(&edit.table.as_str())
}

/// What edits do to a port.
pub fn compute_sonic_disruption(edits: &[SonicEdit], port: &str, is_up: bool) -> Disturbance {
    let mut tables: Vec<&str> = edits
        .iter()
        .filter(|edit| takes_port_down(edit))
        .map(|edit| edit.table.as_str())
        .collect();
    tables.sort_unstable();
    tables.dedup();
    if !is_up || tables.is_empty() {
        return Disturbance {
            disruption: Disruption::Reload,
            interrupts: Vec::new(),
        };
    }
    let why = format!(
        "{port} goes down and comes back: SONiC changes {} of a port that is down",
        tables.join(" and ")
    );
    Disturbance {
        disruption: Disruption::LinkBlip,
        interrupts: vec![why],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_a_map_is_of_no_port() {
        for (table, key, field, ports) in [
            ("PORT", "Ethernet0", "mtu", &["Ethernet0"][..]),
            (
                "QUEUE",
                "Ethernet0,Ethernet4|3",
                "scheduler",
                &["Ethernet0", "Ethernet4"],
            ),
            ("CABLE_LENGTH", "AZURE", "Ethernet8", &["Ethernet8"]),
            ("DSCP_TO_TC_MAP", "AZURE", "26", &[]),
            ("PFC_WD", "GLOBAL", "POLL_INTERVAL", &[]),
            // Its own row of the whole switch comes back as one of a port does.
            ("PORT_QOS_MAP", "global", "dscp_to_tc_map", &["global"]),
        ] {
            let edit = SonicEdit {
                table: table.into(),
                key: key.into(),
                field: field.into(),
                there: There::Field,
                value: None,
            };
            assert_eq!(edit.ports(), ports, "{table}");
        }
    }

    #[test]
    fn a_patch_adds_whole_tables_and_rows_where_they_are_not_there() {
        let db = ConfigDb::parse(
            r#"{ "PORT": { "Ethernet0": { "mtu": "9100" } }, "PORT_QOS_MAP": { "Ethernet0": { "pfc_enable": "3,4", "scheduler": "x" } },
                "PFC_WD": { "GLOBAL": { "POLL_INTERVAL": "200" }, "Ethernet0": { "action": "drop" } } }"#,
        )
        .unwrap();
        let mut edits = SonicEditBuilder::of(&db);
        edits.set("PORT", "Ethernet0", "mtu", "9216");
        edits.set("PORT", "Ethernet0", "mtu", "9216");
        edits.set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3");
        edits.set("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", "railwright");
        edits.unset("PORT_QOS_MAP", "Ethernet0", "scheduler");
        edits.unset("PORT_QOS_MAP", "Ethernet0", "not there");
        edits.set("PORT_QOS_MAP", "Ethernet1/2", "pfc_enable", "3");
        edits.set("DSCP_TO_TC_MAP", "railwright", "26", "3");
        edits.set("DSCP_TO_TC_MAP", "railwright", "48", "6");
        edits.remove("PFC_WD", "Ethernet0");
        edits.set("PFC_WD", "GLOBAL", "POLL_INTERVAL", "200");
        let expected = json!([
            { "op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216" },
            { "op": "add", "path": "/DSCP_TO_TC_MAP", "value": { "railwright": { "26": "3", "48": "6" } } },
            { "op": "add", "path": "/PORT_QOS_MAP/Ethernet0/dscp_to_tc_map", "value": "railwright" },
            { "op": "replace", "path": "/PORT_QOS_MAP/Ethernet0/pfc_enable", "value": "3" },
            { "op": "remove", "path": "/PORT_QOS_MAP/Ethernet0/scheduler" },
            { "op": "add", "path": "/PORT_QOS_MAP/Ethernet1~12", "value": { "pfc_enable": "3" } },
            { "op": "remove", "path": "/PFC_WD/Ethernet0" },
        ]);
        assert_eq!(build_json_patch(&edits.finish()), expected);
    }
}
