//! Whose drift an acceptance is about: an address pattern, or a node-set.

use super::model::Acceptance;
use railwright_base::nodeset::{NodeSetError, expand_node_set};
use railwright_base::{Address, Target, TargetKind};
use std::collections::BTreeSet;

/// What stands for any name.
const ANY: &str = "*";

/// The resources that an acceptance is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptancePattern {
    /// The hosts; none stands for all of them.
    pub hosts: Option<BTreeSet<String>>,
    /// Kind and name below the host; nothing stands for all of them.
    path: Vec<String>,
}

/// Why there is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// Neither `address` nor `nodes`, or both.
    Both,
    /// `nodes` is no node-set.
    Nodes(NodeSetError),
    /// `address` is none; in words.
    Address(String),
}

impl AcceptancePattern {
    /// Of an acceptance of the spec.
    pub fn of(acceptance: &Acceptance) -> Result<AcceptancePattern, PatternError> {
        match (&acceptance.address, &acceptance.nodes) {
            (Some(address), None) => parse_address_pattern(address),
            (None, Some(nodes)) => Ok(AcceptancePattern {
                hosts: expand_host_pattern(nodes).map_err(PatternError::Nodes)?,
                path: Vec::new(),
            }),
            _ => Err(PatternError::Both),
        }
    }

    /// True for a host that it is about.
    pub fn is_about(&self, target: &Target) -> bool {
        target.kind == TargetKind::Host
            && self
                .hosts
                .as_ref()
                .is_none_or(|hosts| hosts.contains(&*target.name))
    }

    /// True for a resource that it is about, whatever the attribute.
    pub fn covers(&self, address: &Address) -> bool {
        if !self.is_about(&address.target) {
            return false;
        }
        let mut segments = self.path.iter().zip(&*address.path);
        self.path.is_empty()
            || (self.path.len() == address.path.len()
                && segments.all(|(own, other)| own == ANY || own == other))
    }
}

fn expand_host_pattern(nodes: &str) -> Result<Option<BTreeSet<String>>, NodeSetError> {
    if nodes == ANY {
        Ok(None)
    } else {
        expand_node_set(nodes).map(|names| Some(names.into_iter().collect()))
    }
}

/// `host/NODES/KIND/NAME`.
fn parse_address_pattern(text: &str) -> Result<AcceptancePattern, PatternError> {
    let mut parts = text.splitn(3, '/');
    let (Some("host"), Some(nodes), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        let why = "it is not of the form host/NODES/KIND/NAME";
        return Err(PatternError::Address(why.to_owned()));
    };
    let hosts =
        expand_host_pattern(nodes).map_err(|error| PatternError::Address(error.to_string()))?;
    // Any host will do: what is below it is read as in every address.
    let address = format!("host/x/{rest}")
        .parse::<Address>()
        .map_err(|error| PatternError::Address(error.to_string()))?;
    if address.attribute.is_some() {
        let why = "the attribute goes to `attribute`";
        return Err(PatternError::Address(why.to_owned()));
    }
    if address.path.len() != 2 {
        let why = "below the host stand KIND/NAME; a `/` of the name is %2F";
        return Err(PatternError::Address(why.to_owned()));
    }
    Ok(AcceptancePattern {
        hosts,
        path: address.path.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(
        address: Option<&str>,
        nodes: Option<&str>,
    ) -> Result<AcceptancePattern, PatternError> {
        AcceptancePattern::of(&Acceptance {
            address: address.map(Into::into),
            nodes: nodes.map(Into::into),
            ..Acceptance::default()
        })
    }

    #[test]
    fn what_a_pattern_covers() {
        let link = "host/n2/link/ens4#mtu";
        for (address, nodes, other, covered) in [
            (Some("host/n[1-3]/link/ens4"), None, link, true),
            (Some("host/*/link/*"), None, link, true),
            (Some("host/n[1-3]/link/ens5"), None, link, false),
            (Some("host/n1/link/ens4"), None, link, false),
            (
                Some("host/n2/file/%2Fetc%2Fx"),
                None,
                "host/n2/file/%2Fetc%2Fx#content",
                true,
            ),
            (None, Some("n[1-3]"), link, true),
            (None, Some("n[3-4]"), link, false),
            (None, Some("*"), "switch/n2/port/x#mtu", false),
        ] {
            assert_eq!(
                pattern(address, nodes)
                    .unwrap()
                    .covers(&other.parse().unwrap()),
                covered,
                "{address:?} {nodes:?}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern() {
        assert_eq!(pattern(None, None), Err(PatternError::Both));
        assert_eq!(
            pattern(Some("host/a/link/x"), Some("a")),
            Err(PatternError::Both)
        );
        assert!(matches!(
            pattern(None, Some("n[")),
            Err(PatternError::Nodes(_))
        ));
        for text in [
            "",
            "host/a",
            "host/a/link",
            "host/a/link/x/y",
            "switch/a/port/x",
            "host/a/link/x#mtu",
            "host/[/link/x",
            "host/a/link/%",
        ] {
            assert!(
                matches!(pattern(Some(text), None), Err(PatternError::Address(_))),
                "{text}"
            );
        }
    }
}
