//! The tree of NVUE, as `nvue.py` prints what of it is compared: `{"ports": [...], "set": {...}}`.

use crate::Fact;
use crate::switch::SwitchError;
use crate::switch::parse_values::{
    PRIORITIES, build_unreadable_fact, parse_bounded_number, parse_digits,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// One revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nvue {
    /// The front panel's ports; nothing where only the configuration was read.
    ports: Option<Vec<String>>,
    set: Value,
}

impl Nvue {
    /// The revision in a text; the error fits after "unknown:".
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        let mut answer: Value =
            serde_json::from_str(text).map_err(|_| SwitchError::unreadable_configuration())?;
        let ports = answer.get("ports").and_then(Value::as_array).map(|names| {
            let names = names.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        });
        match answer.get_mut("set").map(Value::take) {
            Some(set @ Value::Object(_)) => Ok(Nvue { ports, set }),
            _ => Err(SwitchError::unreadable_configuration()),
        }
    }

    /// What is set at a place.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.set, |tree, word| tree.get(word))
    }

    /// A text that is set at a place.
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// A number that is set at a place.
    pub fn number(&self, path: &[&str], bounds: RangeInclusive<u64>) -> Fact<u64> {
        parse_number_value(path.join(" "), self.at(path), bounds)
    }

    /// True where the switch has the port, as far as that is known.
    pub fn has_port(&self, port: &str) -> bool {
        match &self.ports {
            Some(ports) => ports.iter().any(|known| known == port),
            None => true,
        }
    }

    /// The ports that it has.
    pub fn port_names(&self) -> Vec<&str> {
        self.ports.iter().flatten().map(String::as_str).collect()
    }
}

/// Numbers are numbers, and texts where a release has them so.
pub fn parse_number_value(
    what: impl Display,
    value: Option<&Value>,
    bounds: RangeInclusive<u64>,
) -> Fact<u64> {
    match value {
        Some(Value::String(text)) => parse_bounded_number(what, Some(text.trim()), bounds),
        value => parse_bounded_number(what, value.map(Value::to_string).as_deref(), bounds),
    }
}

/// A word or an entry that makes no sense is shown as JSON.
pub fn build_unreadable_value<T>(what: impl Display, value: &Value) -> Fact<T> {
    match value {
        Value::String(word) => build_unreadable_fact(what, word),
        value => build_unreadable_fact(what, &value.to_string()),
    }
}

/// True for the words by which releases switch something off: `off` up to 5.8, `disable`,
/// `disabled` (CumulusNetworks/docs: content/nvue-reference/Set-and-Unset-Commands/QoS.md).
pub fn is_off(value: Option<&Value>) -> bool {
    match value {
        Some(Value::String(word)) => ["off", "disable", "disabled"].contains(&word.as_str()),
        value => value == Some(&Value::Bool(false)),
    }
}

/// Whether something is on, by the words of all releases; what nobody says is on once its place is
/// there.
pub fn is_on(what: impl Display, value: Option<&Value>) -> Fact<bool> {
    match value {
        None | Some(Value::Bool(true)) => Fact::Is(true),
        value if is_off(value) => Fact::Is(false),
        Some(Value::String(word)) if ["on", "enable", "enabled"].contains(&word.as_str()) => {
            Fact::Is(true)
        }
        Some(other) => build_unreadable_value(what, other),
    }
}

/// The priorities that are keys of a collection, where all of them are.
pub fn parse_priority_keys(what: impl Display, value: Option<&Value>) -> Fact<BTreeSet<u64>> {
    let all = match value {
        None => return Fact::Is(BTreeSet::new()),
        Some(Value::Object(all)) => all,
        Some(other) => return build_unreadable_value(what, other),
    };
    let mut priorities = BTreeSet::new();
    for key in all.keys() {
        let Some(priority) = parse_digits(key, PRIORITIES) else {
            return build_unreadable_fact(what, key);
        };
        priorities.insert(priority);
    }
    Fact::Is(priorities)
}
