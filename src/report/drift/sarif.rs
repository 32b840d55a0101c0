//! The report as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html): a
//! finding points at the line of the spec that declares it. Types of our own for the small
//! part that is used here: the crate that has them all brings fourteen others. Identical findings
//! of many targets are one result, so that a review shows it once.

use super::words::{
    self, FoldedFindings, describe_drift_reason, describe_drift_values, explain_drift_reason,
    fold_equal_findings,
};
use crate::document;
use railwright_base::text::{clean_line, format_count};
use railwright_base::{Address, Digest, SourceLocation};
use railwright_drift::{DriftFinding, DriftReason, DriftReport};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version and the schema that the document says it follows.
const VERSION: &str = "2.1.0";
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The most targets that a result names one by one.
const TARGETS_MAX: usize = 100;
/// The most characters of a value.
const VALUE: usize = 200;
/// The rule of what left the spec, beside those of the reasons.
const GONE: &str = "no_longer_in_the_spec";
const REASONS: [DriftReason; 7] = [
    DriftReason::ChangedOutside,
    DriftReason::WillBeLostAtReboot,
    DriftReason::PendingRestart,
    DriftReason::NotReady,
    DriftReason::NotGivenBack,
    DriftReason::SpecNewer,
    DriftReason::Unknown,
];

#[derive(Serialize)]
struct SarifLog {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun; 1],
}

#[derive(Serialize)]
struct SarifRun {
    tool: SarifTool,
    invocations: [Invocation; 1],
    results: Vec<SarifResult>,
}

#[derive(Serialize)]
struct SarifTool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<SarifRule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: &'static str,
    short_description: Message,
    default_configuration: SarifRuleConfiguration,
}

#[derive(Serialize)]
struct SarifRuleConfiguration {
    level: &'static str,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    end_time_utc: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
}

/// A `result` object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: Vec<SarifLocation>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    occurrence_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
}

/// Accepted by the spec: code scanning does not alarm.
#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    status: &'static str,
    justification: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    kind: &'static str,
}

/// The whole document.
pub fn render_sarif_document(report: &DriftReport) -> String {
    let invocation = Invocation {
        execution_successful: report.not_compared.is_empty(),
        end_time_utc: report.checked_at.clone(),
        tool_execution_notifications: report
            .not_compared
            .iter()
            .map(|unread| Notification {
                level: "error",
                message: Message {
                    text: clean_line(&format!("{}: {}", unread.subject, unread.reason)),
                },
            })
            .collect(),
    };
    let results = fold_equal_findings(&report.findings)
        .iter()
        .map(build_finding_result)
        .chain(build_undeclared_result(report))
        .collect();
    let driver = Driver {
        name: "railwright",
        version: env!("CARGO_PKG_VERSION"),
        rules: list_sarif_rules(),
    };
    document::render_json_document(&SarifLog {
        schema: SCHEMA,
        version: VERSION,
        runs: [SarifRun {
            tool: SarifTool { driver },
            invocations: [invocation],
            results,
        }],
    })
}

fn select_sarif_level(reason: DriftReason) -> &'static str {
    match reason {
        DriftReason::ChangedOutside | DriftReason::NotReady | DriftReason::NotGivenBack => "error",
        DriftReason::WillBeLostAtReboot | DriftReason::PendingRestart => "warning",
        DriftReason::SpecNewer | DriftReason::Unknown => "note",
    }
}

fn list_sarif_rules() -> Vec<SarifRule> {
    let mut rules = Vec::new();
    for reason in &REASONS {
        let (id, headline) = describe_drift_reason(*reason);
        let text = format!("{headline}: {}", explain_drift_reason(*reason));
        rules.push(build_sarif_rule(id, text, select_sarif_level(*reason)));
    }
    let gone = "No longer in the spec: applied, and still there";
    rules.push(build_sarif_rule(GONE, gone.to_owned(), "warning"));
    rules
}

fn build_sarif_rule(id: &'static str, text: String, level: &'static str) -> SarifRule {
    SarifRule {
        id,
        short_description: Message { text },
        default_configuration: SarifRuleConfiguration { level },
    }
}

fn build_finding_result(identical: &FoldedFindings<'_>) -> SarifResult {
    let finding = identical.finding;
    let what = format!(
        "{}, {}",
        finding.address.within_target(),
        finding.plane.word()
    );
    let addresses: Vec<String> = identical
        .members
        .iter()
        .map(|member| member.address.to_string())
        .collect();
    // The targets may come and go: the alert stays the same one.
    let identity = Digest::of(&(
        describe_drift_reason(finding.reason).0,
        finding.address.within_target(),
        finding.plane,
    ));
    SarifResult {
        rule_id: describe_drift_reason(finding.reason).0,
        rule_index: REASONS
            .iter()
            .position(|reason| *reason == finding.reason)
            .unwrap_or_default(),
        level: select_sarif_level(finding.reason),
        message: Message {
            text: clean_line(&format!(
                "{}: {what}: {}",
                identical.targets(),
                describe_drift_values(finding, VALUE)
            )),
        },
        locations: vec![build_location(finding.places.first(), &addresses)],
        partial_fingerprints: [("railwright/v1", identity.as_str().to_owned())].into(),
        occurrence_count: addresses.len(),
        suppressions: build_suppression(finding).into_iter().collect(),
    }
}

/// An acceptance whose day is over is not one any more.
fn build_suppression(finding: &DriftFinding) -> Option<Suppression> {
    let justification = words::describe_acceptance(finding).filter(|_| finding.is_accepted())?;
    Some(Suppression {
        kind: "external",
        status: "accepted",
        justification,
    })
}

fn build_undeclared_result(report: &DriftReport) -> Option<SarifResult> {
    let addresses: Vec<String> = report
        .removed_from_spec
        .iter()
        .map(Address::to_string)
        .collect();
    (!addresses.is_empty()).then(|| SarifResult {
        rule_id: GONE,
        rule_index: REASONS.len(),
        level: "warning",
        message: Message {
            text: format!(
                "{} no longer in the spec, and still there",
                format_count(addresses.len(), "applied resource")
            ),
        },
        locations: vec![build_location(None, &addresses)],
        partial_fingerprints: [("railwright/v1", Digest::of(&GONE).as_str().to_owned())].into(),
        occurrence_count: addresses.len(),
        suppressions: Vec::new(),
    })
}

fn build_location(place: Option<&SourceLocation>, addresses: &[String]) -> SarifLocation {
    SarifLocation {
        physical_location: place.map(|place| PhysicalLocation {
            artifact_location: ArtifactLocation {
                uri: words::encode_relative_uri(&place.file),
            },
            region: Region {
                start_line: place.line.max(1),
                start_column: place.column.max(1),
            },
        }),
        logical_locations: addresses
            .iter()
            .take(TARGETS_MAX)
            .map(|name| LogicalLocation {
                fully_qualified_name: clean_line(name),
                kind: "resource",
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{accepted, hostile, report};
    use super::*;
    use serde_json::Value;

    fn parsed(report: &DriftReport) -> Value {
        serde_json::from_str(&render_sarif_document(report)).unwrap()
    }

    /// What the specification demands of the parts that are used here; the whole schema may be
    /// named by the environment (its licence is not one that could be shipped here).
    fn holds(log: &Value) {
        if let Some(file) = std::env::var_os("RAILWRIGHT_TEST_SARIF_SCHEMA") {
            let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
            compiler.enable_format_assertions();
            compiler.add_resource("sarif", schema).unwrap();
            let index = compiler.compile("sarif", &mut schemas).unwrap();
            schemas
                .validate(log, index)
                .unwrap_or_else(|error| panic!("{error:#}"));
        }
        assert_eq!(log["version"], "2.1.0", "3.13.2");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert!(
            run["invocations"][0]["executionSuccessful"].is_boolean(),
            "3.20.14 demands it"
        );
        for result in run["results"].as_array().unwrap() {
            let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
            assert_eq!(
                rule["id"], result["ruleId"],
                "3.27.6: the index is that of the rule"
            );
            assert!(
                ["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()),
                "3.27.10"
            );
            assert!(
                !result["message"]["text"].as_str().unwrap().is_empty(),
                "3.11.8"
            );
            assert!(result["occurrenceCount"].as_u64().unwrap() > 0, "3.27.18");
            let physical = &result["locations"][0]["physicalLocation"];
            if let Some(uri) = physical["artifactLocation"]["uri"].as_str() {
                assert!(
                    uri.bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)),
                    "RFC 3986: {uri}"
                );
                assert!(
                    physical["region"]["startLine"].as_u64().unwrap() > 0
                        && physical["region"]["startColumn"].as_u64().unwrap() > 0
                );
            }
        }
    }

    #[test]
    fn identical_findings_are_one_result_at_the_line_of_the_spec() {
        let mut report = report();
        for finding in &mut report.findings[..3] {
            finding.places = vec![SourceLocation {
                file: "inventories/lab/a b.yaml".into(),
                line: 7,
                column: 3,
                path: "fabric.mtu".into(),
            }];
        }
        let log = parsed(&report);
        holds(&log);
        let results = log["runs"][0]["results"].as_array().unwrap();
        let rules: Vec<_> = results
            .iter()
            .map(|result| result["ruleId"].as_str().unwrap())
            .collect();
        assert_eq!(
            rules,
            ["changed_outside", "will_be_lost_at_reboot", "unknown"]
        );
        assert_eq!(
            results[0]["message"]["text"],
            "n[1-3]: link/ens4#mtu, running: actual 1500, desired 9000 (as applied)"
        );
        assert_eq!(
            (
                results[0]["occurrenceCount"].as_u64(),
                results[0]["level"].as_str()
            ),
            (Some(3), Some("error"))
        );
        let location = &results[0]["locations"][0];
        assert_eq!(
            location["physicalLocation"]["artifactLocation"]["uri"],
            "inventories/lab/a%20b.yaml"
        );
        assert_eq!(location["physicalLocation"]["region"]["startLine"], 7);
        assert_eq!(
            location["logicalLocations"][2]["fullyQualifiedName"],
            "host/n3/link/ens4#mtu"
        );
        let invocation = &log["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        assert!(
            invocation["toolExecutionNotifications"][0]["message"]["text"]
                .as_str()
                .unwrap()
                .starts_with("host/n9: n9 is not")
        );
    }

    #[test]
    fn what_is_accepted_is_suppressed_until_its_day_is_over() {
        let log = parsed(&accepted(false));
        holds(&log);
        let suppressions = &log["runs"][0]["results"][0]["suppressions"];
        assert_eq!(
            suppressions[0]["justification"],
            "accepted by ops until 2026-12-31: new cables"
        );
        assert_eq!(
            parsed(&accepted(true))["runs"][0]["results"][0]["suppressions"],
            Value::Null
        );
    }

    #[test]
    fn an_alert_stays_the_same_when_targets_join_or_leave() {
        let fingerprints = |report: &DriftReport| {
            parsed(report)["runs"][0]["results"][0]["partialFingerprints"].clone()
        };
        let mut fewer = report();
        fewer.findings.remove(0);
        assert_eq!(fingerprints(&report()), fingerprints(&fewer));
        fewer.findings.retain(|finding| finding.attribute != "mtu");
        assert_ne!(fingerprints(&report()), fingerprints(&fewer));
    }

    #[test]
    fn what_left_the_spec_and_what_is_hostile_is_sound_too() {
        let log = parsed(&hostile());
        holds(&log);
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.last().unwrap()["ruleId"], "no_longer_in_the_spec");
        assert!(
            results[0]["message"]["text"]
                .as_str()
                .unwrap()
                .contains("<script>")
        );
        assert!(!render_sarif_document(&hostile()).contains("\\u001b"));
    }
}
