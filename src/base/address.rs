//! The one name of every thing that can be desired, observed or changed.
//!
//! `host/gpu-001/link/ens4`, `kube/prod/DaemonSet.apps/kube-system/rdma-ds`,
//! `switch/leaf1/port/Ethernet1%2F1`, each optionally with `#attribute`. One parser, one printer;
//! they are inverse to each other (a property test).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What kind of thing a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    /// A Linux machine, reached over SSH or locally.
    Host,
    /// A Kubernetes cluster, reached over its API.
    Kube,
    /// A network switch.
    Switch,
}

impl TargetKind {
    /// The first segment of an address.
    pub fn word(self) -> &'static str {
        match self {
            TargetKind::Host => "host",
            TargetKind::Kube => "kube",
            TargetKind::Switch => "switch",
        }
    }

    /// What it is called in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            TargetKind::Host => "host",
            TargetKind::Kube => "cluster",
            TargetKind::Switch => "switch",
        }
    }
}

/// One thing that can be changed: a host, a Kubernetes cluster, a switch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Host, Kubernetes cluster or switch.
    pub kind: TargetKind,
    /// Its name in the spec; all that is on the target holds the same one.
    pub name: Arc<str>,
}

impl Target {
    /// A host by its name in the spec.
    pub fn host(name: impl AsRef<str>) -> Self {
        Target {
            kind: TargetKind::Host,
            name: name.as_ref().into(),
        }
    }

    /// A switch by its name in the spec.
    pub fn switch(name: impl AsRef<str>) -> Self {
        Target {
            kind: TargetKind::Switch,
            name: name.as_ref().into(),
        }
    }

    /// A Kubernetes cluster by its name in the spec.
    pub fn kube(name: impl AsRef<str>) -> Self {
        Target {
            kind: TargetKind::Kube,
            name: name.as_ref().into(),
        }
    }
}

/// A resource on a target, and optionally one attribute of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The target that holds the resource.
    pub target: Target,
    /// The segments after the target: for a host the kind and the name, for Kubernetes the
    /// `Kind.group`, the namespace (`-` for none) and the name.
    pub path: Arc<[String]>,
    /// One attribute of the resource, after `#`.
    pub attribute: Option<String>,
}

impl Address {
    /// The address of a resource on a host.
    pub fn host(host: &str, kind: &str, name: &str) -> Self {
        Address {
            target: Target::host(host),
            path: Arc::new([kind.to_owned(), name.to_owned()]),
            attribute: None,
        }
    }

    /// The resource of this name beside it, of the same kind on the same target.
    pub fn renamed(&self, name: &str) -> Self {
        let path: Vec<String> = self
            .path
            .iter()
            .rev()
            .skip(1)
            .rev()
            .cloned()
            .chain([name.to_owned()])
            .collect();
        Address {
            path: path.into(),
            ..self.clone()
        }
    }

    /// The address of one attribute of the resource.
    pub fn with_attribute(&self, attribute: &str) -> Self {
        Address {
            attribute: Some(attribute.to_owned()),
            ..self.clone()
        }
    }

    /// The resource kind: the first segment after the target (`link`, `DaemonSet.apps`, `port`).
    pub fn kind(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// The last segment: the resource's own name.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The kind as people say it: of an object of Kubernetes without the word for the core group.
    pub fn kind_word(&self) -> &str {
        match self.target.kind {
            TargetKind::Kube => self.kind().strip_suffix(".core").unwrap_or(self.kind()),
            TargetKind::Host | TargetKind::Switch => self.kind(),
        }
    }

    /// What follows the kind, as people say it: `ens4`, and `kube-system/rdma-devices` of an object
    /// of Kubernetes.
    pub fn name_words(&self) -> String {
        let names = self.path.get(1..).unwrap_or_default();
        match (self.target.kind, names) {
            (TargetKind::Kube, [namespace, rest @ ..]) if namespace == "-" => rest.join("/"),
            (TargetKind::Kube, names) => names.join("/"),
            _ => names.join(" "),
        }
    }

    /// Kind and name: `link ens4`, `ConfigMap kube-system/rdma-devices`.
    pub fn words(&self) -> String {
        format!("{} {}", self.kind_word(), self.name_words())
    }

    /// The address without its target, as it is folded over many hosts: `link/ens4`.
    pub fn within_target(&self) -> String {
        let mut out = self
            .path
            .iter()
            .map(|s| escape_segment(s))
            .collect::<Vec<_>>()
            .join("/");
        if let Some(attribute) = &self.attribute {
            out.push('#');
            out.push_str(&escape_segment(attribute));
        }
        out
    }
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The first segment is none of `host`, `kube`, `switch`.
    #[error("`{0}` is not a kind of target; use host, kube or switch")]
    TargetKind(String),
    /// A segment between slashes is empty.
    #[error("`{0}` has an empty segment")]
    Empty(String),
    /// A `%` that is not followed by two hexadecimal digits of UTF-8.
    #[error("`{0}` has a `%` that is not followed by two hexadecimal digits")]
    Escape(String),
    /// Fewer segments than target kind, target and resource.
    #[error("`{0}` is too short; an address looks like host/gpu-001/link/ens4")]
    Short(String),
}

/// What may have a shell run something: an address stands in commands as it is.
const OF_SHELLS: &str = "$`\\'\"();|&<>!";

/// `%`, `/`, `#`, white space, control characters and those of shells are written as `%XX`; the
/// rest stands as it is.
fn escape_segment(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for c in segment.chars() {
        let is_plain = !"%/#".contains(c) && !OF_SHELLS.contains(c);
        if !is_plain || c.is_whitespace() || c.is_control() {
            let mut buffer = [0u8; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn unescape_segment(segment: &str) -> Result<String, AddressError> {
    if segment.is_empty() {
        return Err(AddressError::Empty(segment.to_owned()));
    }
    let bad = || AddressError::Escape(segment.to_owned());
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let pair = tail.get(..2).ok_or_else(bad)?;
            let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
            if !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(bad());
            }
            bytes.push(u8::from_str_radix(pair, 16).map_err(|_| bad())?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.word(), escape_segment(&self.name))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.target, self.within_target())
    }
}

fn target_kind(word: &str) -> Result<TargetKind, AddressError> {
    match word {
        "host" => Ok(TargetKind::Host),
        "kube" => Ok(TargetKind::Kube),
        "switch" => Ok(TargetKind::Switch),
        other => Err(AddressError::TargetKind(other.to_owned())),
    }
}

impl FromStr for Target {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (kind, name) = text
            .split_once('/')
            .ok_or_else(|| AddressError::Short(text.to_owned()))?;
        Ok(Target {
            kind: target_kind(kind)?,
            name: unescape_segment(name)?.into(),
        })
    }
}

impl FromStr for Address {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (body, attribute) = match text.split_once('#') {
            Some((body, attribute)) => (body, Some(unescape_segment(attribute)?)),
            None => (text, None),
        };
        let mut segments = body.split('/');
        let kind = target_kind(segments.next().unwrap_or_default())?;
        let name = unescape_segment(
            segments
                .next()
                .ok_or_else(|| AddressError::Short(text.to_owned()))?,
        )?;
        let path = segments
            .map(unescape_segment)
            .collect::<Result<Vec<_>, _>>()?;
        if path.is_empty() {
            return Err(AddressError::Short(text.to_owned()));
        }
        Ok(Address {
            target: Target {
                kind,
                name: name.into(),
            },
            path: path.into(),
            attribute,
        })
    }
}

/// Serialised as the printed text, so that plans, journals and states can be read and searched by
/// people.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": "^(host|switch|kube)/" })
            }
        }
    };
}
serde_as_text!(Target);
serde_as_text!(Address);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_forms_of_the_design() {
        for text in [
            "host/gpu-001/link/ens4",
            "host/gpu-001/link/ens4#mtu",
            "kube/prod/DaemonSet.apps/kube-system/rdma-shared-dp-ds",
            "kube/prod/Namespace.core/-/rdma",
            "switch/leaf1/port/Ethernet1%2F1",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        // A command that names it runs nothing else.
        let named = Address::host("a", "command", "$(id);x");
        assert_eq!(named.to_string(), "host/a/command/%24%28id%29%3Bx");
        let port: Address = "switch/leaf1/port/Ethernet1%2F1".parse().unwrap();
        assert_eq!(port.name(), "Ethernet1/1");
    }

    #[test]
    fn people_say_kind_and_name() {
        let words = |text: &str| text.parse::<Address>().unwrap().words();
        assert_eq!(words("host/a/file/%2Fetc%2Fx"), "file /etc/x");
        assert_eq!(
            words("kube/prod/ConfigMap.core/kube-system/x"),
            "ConfigMap kube-system/x"
        );
        assert_eq!(words("kube/prod/DaemonSet.apps/a/x"), "DaemonSet.apps a/x");
        assert_eq!(words("kube/prod/Namespace.core/-/rdma"), "Namespace rdma");
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in [
            "",
            "host",
            "host/a",
            "host//link/x",
            "rack/1/x",
            "host/a/b%2",
            "host/a/%zz",
            "host/a/b/",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(
            name in ".{1,12}", path in proptest::collection::vec(".{1,12}", 1..4), attribute in proptest::option::of(".{1,8}")
        ) {
            let address = Address { target: Target::host(name), path: path.into(), attribute };
            let printed = address.to_string();
            prop_assert!(!printed.contains(|c| OF_SHELLS.contains(c)), "{}", printed);
            prop_assert_eq!(printed.parse::<Address>().unwrap(), address);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Address>();
        }
    }
}
