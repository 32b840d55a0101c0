//! An amount of a resource in the words of Kubernetes: `8`, `128`, `512Gi`, `1600G`, `500m`.

use schemars::JsonSchema;
use serde::Serialize;

/// An amount of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount {
    /// A whole number.
    Count(u64),
    /// A number with a unit, or with a fraction.
    Text(String),
}

/// Units of Kubernetes' quantities (apimachinery: pkg/api/resource, `Quantity`).
const UNITS: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

impl Amount {
    /// Reads one; nothing where it is none.
    pub fn parse(text: &str) -> Option<Amount> {
        if let Some(count) = text
            .parse()
            .ok()
            .filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
        {
            return Some(Amount::Count(count));
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let is_number = number.len() < 20
            && number.starts_with(|c: char| c.is_ascii_digit())
            && number.matches('.').count() < 2;
        (is_number && !number.ends_with('.') && UNITS.contains(&unit))
            .then(|| Amount::Text(text.to_owned()))
    }

    /// The whole number, where it is one.
    pub fn count(&self) -> Option<u64> {
        match self {
            Amount::Count(count) => Some(*count),
            Amount::Text(_) => None,
        }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::Count(count) => write!(f, "{count}"),
            Amount::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn amounts_are_read_as_kubernetes_does() {
        for text in ["8", "128", "512Gi", "1600G", "500m", "1.5", "0.5Gi"] {
            assert_eq!(
                Amount::parse(text)
                    .map(|amount| amount.to_string())
                    .as_deref(),
                Some(text),
                "{text}"
            );
        }
        for text in [
            "",
            "8 ",
            "-1",
            "GB",
            "512GB",
            "1.",
            "1.5.2",
            ".5",
            "8;",
            "1e400",
            "99999999999999999999999999999",
        ] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }
}
