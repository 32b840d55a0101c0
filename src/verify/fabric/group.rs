//! Links with the same trouble are one finding: a leaf of which all ports have another MTU is one
//! sentence.

use super::{FabricFinding, LinkReport};
use crate::fabric::LinkProblemKind;
use indexmap::IndexMap;

/// The findings of all links, worst first.
pub fn group_link_findings(links: &[LinkReport]) -> Vec<FabricFinding> {
    let mut identical: IndexMap<(LinkProblemKind, &str), FabricFinding> = IndexMap::new();
    for (place, report) in links.iter().enumerate() {
        for trouble in &report.troubles {
            let finding = identical
                .entry((trouble.kind, trouble.said.as_str()))
                .or_insert_with(|| FabricFinding {
                    kind: trouble.kind,
                    said: trouble.said.clone(),
                    matter: trouble.matter,
                    count: None,
                    links: Vec::new(),
                });
            finding.count = match (finding.count, trouble.count) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            };
            finding.links.push(place);
        }
    }
    let mut all: Vec<FabricFinding> = identical.into_values().collect();
    all.sort_by_key(|finding| finding.kind);
    all
}
