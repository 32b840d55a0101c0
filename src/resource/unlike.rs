//! In what two targets' answers to one read differ, where many resources are compared with one
//! answer.

use super::{AnswerStatus, Read, ReadResult, ReadResults};
use crate::switch;
use std::collections::BTreeSet;

/// In what they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlike {
    /// In something that every resource may be compared with.
    Whole,
    /// In what is said of these parts (ports of a switch), if any: resources of all others are
    /// compared with equal answers (`ResourceKind::part`).
    Parts(BTreeSet<String>),
}

impl Unlike {
    /// In what the answers to one read differ.
    pub fn of(read: &Read, a: &ReadResults, b: &ReadResults) -> Self {
        match (read, a.get(read), b.get(read)) {
            (_, one, other) if one == other => Unlike::Parts(BTreeSet::new()),
            (Read::Switch { system, of }, Some(one), Some(other))
                if ended_identically(one, other) =>
            {
                switch::list_differing_ports(*system, *of, a, b)
                    .map_or(Unlike::Whole, Unlike::Parts)
            }
            _ => Unlike::Whole,
        }
    }

    /// True where a resource about this part is compared with equal answers.
    pub fn spares(&self, part: Option<&str>) -> bool {
        match self {
            Unlike::Whole => false,
            Unlike::Parts(parts) => {
                parts.is_empty() || part.is_some_and(|part| !parts.contains(part))
            }
        }
    }
}

fn ended_identically(a: &ReadResult, b: &ReadResult) -> bool {
    a.status == AnswerStatus::Exit(0) && a.status == b.status
}
