//! Checks of a wish's body that kinds share, with messages for the one who writes a module.

use super::BodyError;
use ipnet::IpNet;
use serde_json::{Map, Value};

/// Collects all that is wrong with one body.
pub struct Fields<'a> {
    map: Option<&'a Map<String, Value>>,
    errors: Vec<BodyError>,
}

impl<'a> Fields<'a> {
    /// Starts with the body; a body that is no mapping, and every unknown field, is an error
    /// already.
    pub fn of(body: &'a Value, known: &[&str]) -> Self {
        let mut fields = Fields {
            map: body.as_object(),
            errors: Vec::new(),
        };
        match fields.map {
            None => fields.error("", "the body must be a mapping", None),
            Some(map) => {
                for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
                    fields.error(
                        &format!("/{key}"),
                        format!("`{key}` is not a field of this kind"),
                        Some(format!("known: {}", known.join(", "))),
                    );
                }
            }
        }
        fields
    }

    /// Notes an error.
    pub fn error(&mut self, pointer: &str, message: impl Into<String>, help: Option<String>) {
        self.errors.push(BodyError {
            pointer: pointer.to_owned(),
            message: message.into(),
            help,
        });
    }

    /// The value of a field, if it is there and not null.
    pub fn get(&self, field: &str) -> Option<&'a Value> {
        self.map
            .and_then(|map| map.get(field))
            .filter(|value| !value.is_null())
    }

    /// A text field.
    pub fn text(&mut self, field: &str, required: bool) -> Option<&'a str> {
        match self.get(field) {
            None if required => self.error("", format!("`{field}` is missing"), None),
            None => {}
            Some(Value::String(text)) if !text.is_empty() => return Some(text),
            Some(_) => self.error(
                &format!("/{field}"),
                format!("`{field}` must be a text that is not empty"),
                None,
            ),
        }
        None
    }

    /// A field that names a netdev.
    pub fn netdev(&mut self, required: bool) -> Option<&'a str> {
        let netdev = self.text("netdev", required)?;
        if is_netdev(netdev) {
            return Some(netdev);
        }
        self.error(
            "/netdev",
            format!("`{netdev}` cannot be the name of a netdev"),
            Some("1 to 15 of letters, digits, `.`, `_`, `-`, `@`".to_owned()),
        );
        None
    }

    /// A field that is true or false.
    pub fn flag(&mut self, field: &str) {
        if self.get(field).is_some_and(|value| !value.is_boolean()) {
            self.error(
                &format!("/{field}"),
                format!("`{field}` must be true or false"),
                None,
            );
        }
    }

    /// A whole number within bounds.
    pub fn number(&mut self, field: &str, bounds: std::ops::RangeInclusive<u64>) {
        let Some(value) = self.get(field) else { return };
        if !value
            .as_u64()
            .is_some_and(|number| bounds.contains(&number))
        {
            self.error(
                &format!("/{field}"),
                format!(
                    "`{field}` must be a whole number from {} to {}",
                    bounds.start(),
                    bounds.end()
                ),
                None,
            );
        }
    }

    /// A field that names another resource of the same target as `kind/name`.
    pub fn resource(&mut self, field: &str) {
        let Some(text) = self.text(field, false) else {
            return;
        };
        if !text
            .split_once('/')
            .is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty())
        {
            self.error(
                &format!("/{field}"),
                format!("`{text}` names no resource"),
                Some("write kind/name, such as kernel_module/mlx5_ib".to_owned()),
            );
        }
    }

    /// A list of addresses in CIDR form.
    pub fn addresses(&mut self, field: &str) {
        let Some(value) = self.get(field) else { return };
        let Some(list) = value.as_array() else {
            return self.error(
                &format!("/{field}"),
                format!("`{field}` must be a list of addresses"),
                None,
            );
        };
        for (index, entry) in list.iter().enumerate() {
            if entry
                .as_str()
                .is_none_or(|text| text.parse::<IpNet>().is_err())
            {
                let help = Some(
                    "write address and prefix, such as 192.0.2.7/24 or 2001:db8::7/64".to_owned(),
                );
                self.error(
                    &format!("/{field}/{index}"),
                    format!("{entry} is no address in CIDR form"),
                    help,
                );
            }
        }
    }

    /// All errors found.
    pub fn finish(self) -> Vec<BodyError> {
        self.errors
    }
}

/// What the kernel takes as an interface name (`IFNAMSIZ` is 16 with the end mark), less what no
/// shell, udev rule or file name of ours should have to carry.
pub fn is_netdev(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@'))
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_error_of_a_body_is_named_at_its_place() {
        let body = json!({ "netdev": "a b", "mtu": 1, "colour": 1, "addresses": ["10.0.0.1/24", "10.0.0.1", 7] });
        let mut fields = Fields::of(&body, &["netdev", "mtu", "addresses"]);
        fields.netdev(true);
        fields.number("mtu", 68..=9978);
        fields.addresses("addresses");
        let pointers: Vec<_> = fields
            .finish()
            .into_iter()
            .map(|error| error.pointer)
            .collect();
        assert_eq!(
            pointers,
            ["/colour", "/netdev", "/mtu", "/addresses/1", "/addresses/2"]
        );
    }
}
