//! The tree of NVUE, as `nvue.py` prints what of it is judged: `{"ports": [...], "set": {...}}`.

use serde_json::Value;

/// One revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nvue {
    /// The front panel's ports; nothing where only the configuration was read.
    ports: Option<Vec<String>>,
    set: Value,
}

impl Nvue {
    /// The revision in a text; the error fits after "unknown:".
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || "the configuration makes no sense".to_owned();
        let mut said: Value = serde_json::from_str(text).map_err(|_| bad())?;
        let ports = said.get("ports").and_then(Value::as_array);
        let ports = ports.map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        match said.get_mut("set").map(Value::take) {
            Some(set @ Value::Object(_)) => Ok(Nvue { ports, set }),
            _ => Err(bad()),
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
    pub fn number(&self, path: &[&str]) -> Option<u64> {
        number(self.at(path)?)
    }

    /// True where the switch has the port, as far as it said.
    pub fn has_port(&self, port: &str) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.iter().any(|known| known == port))
    }

    /// The ports that it has.
    pub fn port_names(&self) -> Vec<&str> {
        self.ports.iter().flatten().map(String::as_str).collect()
    }
}

/// Numbers are numbers, and texts where a release has them so.
pub fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// True for the words by which releases switch something off: `off` up to 5.8, `disable`, `disabled` (CumulusNetworks/docs:
/// content/nvue-reference/Set-and-Unset-Commands/QoS.md).
pub fn is_off(value: Option<&Value>) -> bool {
    matches!(value.and_then(Value::as_str), Some("off" | "disable" | "disabled")) || value.and_then(Value::as_bool) == Some(false)
}

/// The numbers that are keys of a collection.
pub fn keys(value: Option<&Value>) -> impl Iterator<Item = u64> {
    value.and_then(Value::as_object).into_iter().flatten().filter_map(|(key, _)| key.parse().ok())
}
