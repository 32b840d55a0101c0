//! Identifiers of clusters and machines: 128 bits as 32 hexadecimal digits.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// 128 bits in lower-case hexadecimal, not all of them zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
struct Hex128(String);

/// A text is no identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 32 hexadecimal digits, or all of them zero")]
pub struct NoIdentifier;

impl FromStr for Hex128 {
    type Err = NoIdentifier;

    fn from_str(text: &str) -> Result<Self, NoIdentifier> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_set = text.bytes().any(|byte| byte != b'0');
        if is_hex && is_set {
            Ok(Hex128(text.to_ascii_lowercase()))
        } else {
            Err(NoIdentifier)
        }
    }
}

impl<'de> Deserialize<'de> for Hex128 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The identity of a cluster: random, made once, and written wherever something of the cluster is
/// remembered.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct ClusterId(Hex128);

/// The identity of an installed operating system, as machine-id(5) has it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct MachineId(Hex128);

impl FromStr for ClusterId {
    type Err = NoIdentifier;

    fn from_str(text: &str) -> Result<Self, NoIdentifier> {
        text.parse().map(ClusterId)
    }
}

impl FromStr for MachineId {
    type Err = NoIdentifier;

    fn from_str(text: &str) -> Result<Self, NoIdentifier> {
        text.parse().map(MachineId)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_128_bits_are_an_identifier() {
        let text = "0123456789ABCDEF0123456789abcdef";
        assert_eq!(
            text.parse::<MachineId>().unwrap().to_string(),
            text.to_lowercase()
        );
        for wrong in [
            "",
            "uninitialized",
            "0123",
            &"0".repeat(32),
            &"g".repeat(32),
            &format!("{text}\n"),
        ] {
            assert_eq!(wrong.parse::<ClusterId>(), Err(NoIdentifier), "{wrong:?}");
            assert!(
                serde_json::from_value::<ClusterId>(wrong.into()).is_err(),
                "{wrong:?}"
            );
        }
    }
}
