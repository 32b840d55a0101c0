//! CONFIG_DB as `sonic-cfggen -d --print-data` prints it: a map of tables, of rows, of fields, all
//! text.

use crate::switch::SwitchError;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of a row.
pub type Row = BTreeMap<String, String>;

/// The rows of a table, by their keys.
pub type Table = BTreeMap<String, Row>;

/// One configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigDb {
    tables: BTreeMap<String, Table>,
}

impl ConfigDb {
    /// The configuration in a text; the error fits after "unknown:".
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        let Ok(Value::Object(all)) = serde_json::from_str(text) else {
            return Err(SwitchError::unreadable_configuration());
        };
        let mut tables = BTreeMap::new();
        for (name, rows) in all {
            // `bgpraw` and the like are no tables.
            let Value::Object(rows) = rows else { continue };
            let rows = rows.into_iter();
            let table = rows.filter_map(|(key, row)| Some((key, parse_row_fields(row)?)));
            tables.insert(name, table.collect());
        }
        Ok(ConfigDb { tables })
    }

    /// The names of its tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// A table; nothing where it has no row.
    pub fn table(&self, table: &str) -> Option<&Table> {
        self.tables.get(table).filter(|rows| !rows.is_empty())
    }

    /// A row.
    pub fn row(&self, table: &str, key: &str) -> Option<&Row> {
        self.tables.get(table)?.get(key)
    }

    /// A field, without blanks around it: shipped templates have some (`" 166912"`).
    pub fn field(&self, table: &str, key: &str, field: &str) -> Option<&str> {
        self.row(table, key)?.get(field).map(|value| value.trim())
    }

    /// What a field of a row refers to. Up to schema 3.0.1 a reference was
    /// `[SCHEDULER|scheduler.0]`, from 3.0.3 on it is the key alone (sonic-net/sonic-utilities:
    /// scripts/db_migrator.py).
    pub fn reference(&self, table: &str, key: &str, field: &str) -> Option<&str> {
        let value = self.field(table, key, field)?;
        let bracketed = value
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let key = match bracketed.and_then(|reference| reference.split_once('|')) {
            Some((_, key)) => key,
            None => value,
        };
        (!key.is_empty()).then_some(key)
    }

    /// The row of cable lengths that has the port, with its key.
    pub fn cable_row(&self, port: &str) -> Option<(&str, &Row)> {
        let mut rows = self.table("CABLE_LENGTH").into_iter().flatten();
        rows.find(|(_, row)| row.contains_key(port))
            .map(|(key, row)| (key.as_str(), row))
    }

    /// The names of the ports.
    pub fn port_names(&self) -> Vec<&str> {
        let ports = self.table("PORT").into_iter().flat_map(BTreeMap::keys);
        ports.map(String::as_str).collect()
    }
}

/// Lists are joined by commas, as fields hold them elsewhere; a row without fields is kept as
/// `NULL`. What is neither is kept as it was printed: a field that makes no sense is not one that
/// is absent.
fn parse_row_fields(row: Value) -> Option<Row> {
    let Value::Object(fields) = row else {
        return None;
    };
    let mut row = Row::new();
    for (name, value) in fields {
        if name != "NULL" {
            row.insert(name, format_field(value));
        }
    }
    Some(row)
}

fn format_field(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(items) => {
            let texts = items.into_iter().map(|item| match item {
                Value::String(text) => text,
                other => other.to_string(),
            });
            Vec::from_iter(texts).join(",")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_both_schemas_blanks_and_rows_without_fields() {
        let text = r#"{ "QUEUE": { "Ethernet0|3": { "scheduler": "[SCHEDULER|scheduler.1]", "wred_profile": "AZURE" } },
            "BUFFER_POOL": { "p": { "size": " 166912" } }, "PORT": { "Ethernet4": { "NULL": "NULL" }, "Ethernet0": { "members": ["a", "b"], "mtu": null } },
            "FLEX": {}, "bgpraw": "x" }"#;
        let db = ConfigDb::parse(text).unwrap();
        assert_eq!(
            db.reference("QUEUE", "Ethernet0|3", "scheduler"),
            Some("scheduler.1")
        );
        assert_eq!(
            db.reference("QUEUE", "Ethernet0|3", "wred_profile"),
            Some("AZURE")
        );
        assert_eq!(db.field("BUFFER_POOL", "p", "size"), Some("166912"));
        assert_eq!(
            (db.port_names(), db.field("PORT", "Ethernet0", "members")),
            (vec!["Ethernet0", "Ethernet4"], Some("a,b"))
        );
        assert_eq!(db.field("PORT", "Ethernet0", "mtu"), Some("null"));
        assert_eq!(
            (db.row("PORT", "Ethernet4"), db.table("FLEX")),
            (Some(&Row::new()), None)
        );
        assert!(ConfigDb::parse("[]").is_err() && ConfigDb::parse("{").is_err());
    }
}
