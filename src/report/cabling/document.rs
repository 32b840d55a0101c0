//! `verify cabling --json`.

use super::fold::{code, single};
use super::words::told;
use railwright_base::text::one_line;
use railwright_knowledge::spec::cabling::End;
use railwright_verify::Verdict;
use railwright_verify::cabling::{Comparison, Counts, Finding, Kind, Plug};
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const FORMAT_VERSION: &str = "1.0";

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
    /// The worst of all: `failed` where a cable is known to be wrong, `unknown` where nobody can tell, else `passed`.
    verdict: Verdict,
    /// How many cables are how.
    counts: Counts,
    /// What is not as the file has it, or unknown: one by one.
    findings: Vec<FindingDocument<'a>>,
}

/// One thing that is not as the file has it, or unknown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingDocument<'a> {
    kind: Kind,
    /// `failed` or `unknown`.
    verdict: Verdict,
    /// A code of `railwright explain`.
    code: &'a str,
    /// What is how, in words.
    says: String,
    /// What was found, in words.
    found: String,
    /// What to do.
    next: Vec<String>,
    /// The cables; of a round in the order in which each is in the port of the next. A device that told nothing and has no cable stands
    /// here with an empty port.
    cables: &'a [Plug],
}

impl<'a> CablingDocument<'a> {
    /// Of a comparison.
    pub fn of(subject: &super::Subject<'a>, comparison: &'a Comparison) -> Self {
        let finding = |finding: &'a Finding| {
            let told = told(&single(finding), subject.inventory, subject.file);
            FindingDocument {
                kind: finding.kind,
                verdict: finding.kind.verdict(),
                code: code(finding),
                says: one_line(&told.says, 1000),
                found: one_line(&told.found, 1000),
                next: told.next,
                cables: &finding.plugs,
            }
        };
        CablingDocument {
            format_version: FORMAT_VERSION,
            inventory: subject.inventory,
            file: subject.file,
            hosts: subject.hosts,
            switches: subject.switches,
            verdict: comparison.verdict(),
            counts: comparison.counts,
            findings: comparison.findings.iter().map(finding).collect(),
        }
    }
}

/// What a discovery could not see, a line each for `discover cabling`.
pub fn unseen(nics: &[(End, String)]) -> Vec<String> {
    let mut alike: indexmap::IndexMap<(&str, &str), Vec<&str>> = indexmap::IndexMap::new();
    for (nic, why) in nics {
        alike.entry((why, &nic.port)).or_default().push(&nic.device);
    }
    let mut by_hosts: indexmap::IndexMap<(&str, Vec<&str>), Vec<&str>> = indexmap::IndexMap::new();
    for ((why, nic), hosts) in alike {
        by_hosts.entry((why, hosts)).or_default().push(nic);
    }
    let line = |((why, hosts), nics): ((&str, Vec<&str>), Vec<&str>)| {
        format!("{} {}: {why}", railwright_base::nodeset::fold(&hosts), railwright_base::nodeset::fold(&nics))
    };
    by_hosts.into_iter().map(line).collect()
}
