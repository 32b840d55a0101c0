//! How hosts are reached: over SSH, or not at all. Field docs become the JSON Schema's
//! descriptions.

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// How hosts are reached: a mapping says how over SSH, `none` that nobody may log in to them, as
/// with the node pools of a managed Kubernetes cluster. A host without SSH has no steps of its own
/// and is asked nothing; what is known of it is what its cluster tells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Reach {
    /// Over SSH.
    Ssh(Ssh),
    /// Not at all.
    Not(NoSshKeyword),
}

/// The word for hosts that are not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum NoSshKeyword {
    /// Nobody logs in to them.
    #[serde(rename = "none")]
    None,
}

impl Default for Reach {
    fn default() -> Self {
        Reach::Ssh(Ssh::default())
    }
}

impl Reach {
    /// What is said of SSH, where there is any.
    pub fn ssh(&self) -> Option<&Ssh> {
        match self {
            Reach::Ssh(ssh) => Some(ssh),
            Reach::Not(NoSshKeyword::None) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Reach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm)
    }
}

/// By hand, because an untagged enum would tell no more than that neither form fits, without the
/// place of what is wrong.
struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = Reach;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`none`, or a mapping (`user: root`)")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Reach, E> {
        if word == "none" {
            Ok(Reach::Not(NoSshKeyword::None))
        } else {
            Err(E::invalid_value(Unexpected::Str(word), &self))
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Reach, E> {
        Err(E::invalid_type(Unexpected::Other("nothing"), &self))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Reach, M::Error> {
        Ssh::deserialize(MapAccessDeserializer::new(map)).map(Reach::Ssh)
    }
}

/// How hosts are reached over SSH.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// The remote user; `root` unless said otherwise. Others act through `sudo -n`, unless they are
    /// `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The TCP port; 22 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What to connect to; the node's name unless said otherwise. `{name}` is the node's name,
    /// `{index}` its place in the cluster from 1. `local` is this machine itself, without SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The known_hosts file with the pinned host keys, relative to the inventory. Host keys are
    /// always checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_keys: Option<String>,
    /// Private key files, relative to the inventory or from `~/`; the agent is asked first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<String>,
    /// Jump hosts, first hop first, each `[user@]host[:port]`; their keys are checked like any
    /// other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jump: Vec<String>,
    /// Ask `ssh -G` for what is left open here (`~/.ssh/config`); what this file says wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<bool>,
    /// The user has no rights but those that `railwright sudoers` prints: `plan`, `drift` and
    /// `facts` read what the world may read and what those lines allow, the rest is unknown;
    /// whatever would change a host is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}
