//! `verify cabling --json`.

use super::fold::{build_single_entry, select_finding_code};
use super::words::describe_cabling_entry;
use railwright_base::text::one_line;
use railwright_knowledge::spec::cabling::CableEnd;
use railwright_verify::CheckVerdict;
use railwright_verify::cabling::{
    CablingComparison, CablingCounts, CablingFinding, CablingFindingKind, Plug,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const FORMAT_VERSION: &str = "2.0";

/// `verify cabling --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CablingDocument<'a> {
    format_version: &'static str,
    /// The inventory, as it was named.
    inventory: &'a str,
    /// The cabling file.
    file: &'a str,
    /// The hosts that were asked.
    hosts: &'a [String],
    /// The switches that were.
    switches: &'a [String],
    /// The worst of all: `failed` where a cable is known to be wrong, `unknown` where nobody can
    /// tell, else `passed`.
    verdict: CheckVerdict,
    /// How many cables are how.
    counts: CablingCounts,
    /// What is not as the file has it, or unknown: one by one.
    findings: Vec<CablingFindingDocument<'a>>,
}

/// One thing that is not as the file has it, or unknown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CablingFindingDocument<'a> {
    kind: CablingFindingKind,
    /// `failed` or `unknown`.
    verdict: CheckVerdict,
    /// A code of `railwright explain`.
    code: &'a str,
    /// What is how, in words.
    says: String,
    /// What is there, in words.
    actual: String,
    /// What to do.
    next: Vec<String>,
    /// The cables; of a round in the order in which each is in the port of the next. A device that
    /// reported nothing and has no cable stands here with an empty port.
    cables: &'a [Plug],
}

impl<'a> CablingDocument<'a> {
    /// Of a comparison.
    pub fn of(subject: &super::CablingSubject<'a>, comparison: &'a CablingComparison) -> Self {
        CablingDocument {
            format_version: FORMAT_VERSION,
            inventory: subject.inventory,
            file: subject.file,
            hosts: subject.hosts,
            switches: subject.switches,
            verdict: comparison.verdict(),
            counts: comparison.counts,
            findings: comparison
                .findings
                .iter()
                .map(|finding| build_finding_document(subject, finding))
                .collect(),
        }
    }
}

fn build_finding_document<'a>(
    subject: &super::CablingSubject<'a>,
    finding: &'a CablingFinding,
) -> CablingFindingDocument<'a> {
    let texts = describe_cabling_entry(
        &build_single_entry(finding),
        subject.inventory,
        subject.file,
    );
    CablingFindingDocument {
        kind: finding.kind,
        verdict: finding.kind.verdict(),
        code: select_finding_code(finding),
        says: one_line(&texts.says, 1000),
        actual: one_line(&texts.actual, 1000),
        next: texts.next,
        cables: &finding.plugs,
    }
}

/// What a discovery could not see, a line each for `discover cabling`.
pub fn describe_unseen_nics(nics: &[(CableEnd, String)]) -> Vec<String> {
    let mut identical: indexmap::IndexMap<(&str, &str), Vec<&str>> = indexmap::IndexMap::new();
    for (nic, why) in nics {
        identical
            .entry((why, &nic.port))
            .or_default()
            .push(&nic.device);
    }
    let mut by_hosts: indexmap::IndexMap<(&str, Vec<&str>), Vec<&str>> = indexmap::IndexMap::new();
    for ((why, nic), hosts) in identical {
        by_hosts.entry((why, hosts)).or_default().push(nic);
    }
    by_hosts
        .into_iter()
        .map(|((why, hosts), nics)| {
            format!(
                "{} {}: {why}",
                railwright_base::nodeset::fold_node_set(&hosts),
                railwright_base::nodeset::fold_node_set(&nics)
            )
        })
        .collect()
}
