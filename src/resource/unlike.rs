//! In what two targets' answers to one question differ, where many wishes are judged by the same
//! answer.

use super::{AnswerStatus, Read, ReadResult, ReadResults};
use crate::switch;
use std::collections::BTreeSet;

/// In what they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlike {
    /// In something that every wish may be judged by.
    Whole,
    /// In what is said of these parts (ports of a switch), if any: wishes of all others are judged
    /// by the same (`Kind::part`).
    Parts(BTreeSet<String>),
}

impl Unlike {
    /// In what the answers to a question differ.
    pub fn of(read: &Read, a: &ReadResults, b: &ReadResults) -> Self {
        match (read, a.get(read), b.get(read)) {
            (_, one, other) if one == other => Unlike::Parts(BTreeSet::new()),
            (Read::Switch { system, of }, Some(one), Some(other)) if ended_alike(one, other) => {
                switch::list_differing_ports(*system, *of, a, b)
                    .map_or(Unlike::Whole, Unlike::Parts)
            }
            _ => Unlike::Whole,
        }
    }

    /// True where a wish about this part is judged by the same.
    pub fn spares(&self, part: Option<&str>) -> bool {
        match self {
            Unlike::Whole => false,
            Unlike::Parts(parts) => {
                parts.is_empty() || part.is_some_and(|part| !parts.contains(part))
            }
        }
    }
}

fn ended_alike(a: &ReadResult, b: &ReadResult) -> bool {
    a.status == AnswerStatus::Exit(0) && a.status == b.status
}
