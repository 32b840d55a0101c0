//! `verify fabric --json`.

use super::{FabricSubject, words};
use railwright_base::text::one_line;
use railwright_verify::CheckVerdict;
use railwright_verify::fabric::{FabricFinding, LinkProblemKind, LinkReport};
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const FORMAT_VERSION: &str = "1.0";

/// `verify fabric --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FabricDocument<'a> {
    format_version: &'static str,
    /// The inventory, as it was named.
    inventory: &'a str,
    /// When what is checked was recorded, where no host was contacted.
    recorded_at: Option<&'a str>,
    /// The worst of all: `failed` where something is known to be wrong, `unknown` where nobody can
    /// tell, else `passed`.
    verdict: CheckVerdict,
    /// The shortest time between two readings of a device, in seconds; nothing where counters were
    /// not looked at.
    seconds: Option<f64>,
    /// What is wrong or unknown, identical ones folded, worst first.
    findings: Vec<FabricFindingDocument<'a>>,
    /// Every link, in the order of the cabling file.
    links: Vec<LinkDocument<'a>>,
}

/// One thing that is wrong or unknown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FabricFindingDocument<'a> {
    kind: LinkProblemKind,
    /// `failed` or `unknown`.
    verdict: CheckVerdict,
    /// A code of `railwright explain`.
    code: &'static str,
    /// What was found.
    says: String,
    /// How many packets or events, on all links together; nothing where none are counted.
    count: Option<u64>,
    /// What it means for the fabric.
    means: String,
    /// What to do.
    next: Vec<String>,
    /// The links, by their place in `links`, from 0.
    links: &'a [usize],
}

/// A link with its verdict.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LinkDocument<'a> {
    verdict: CheckVerdict,
    #[serde(flatten)]
    report: &'a LinkReport,
}

impl<'a> FabricDocument<'a> {
    /// Of a report.
    pub fn of(subject: &FabricSubject<'a>) -> Self {
        let report = subject.report;
        FabricDocument {
            format_version: FORMAT_VERSION,
            inventory: subject.inventory,
            recorded_at: subject.recorded.map(|(_, at)| at),
            verdict: report.verdict(),
            seconds: report.seconds,
            findings: report
                .findings
                .iter()
                .map(|finding| build_finding_document(subject, finding))
                .collect(),
            links: report
                .links
                .iter()
                .map(|report| LinkDocument {
                    verdict: report.verdict(),
                    report,
                })
                .collect(),
        }
    }
}

fn build_finding_document<'a>(
    subject: &FabricSubject<'a>,
    finding: &'a FabricFinding,
) -> FabricFindingDocument<'a> {
    let texts = words::describe_fabric_finding(finding, subject);
    FabricFindingDocument {
        kind: finding.kind,
        verdict: finding.kind.verdict(),
        code: finding.kind.code(),
        says: one_line(&finding.said, 1000),
        count: finding.count,
        means: texts.means,
        next: texts.next,
        links: &finding.links,
    }
}
