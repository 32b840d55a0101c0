//! What changed from one look at a host to the next, a plain line each.

use super::words::{describe_acceptance, describe_drift_values, format_finding_target};
use railwright_base::text::{clean_line, one_line};
use railwright_base::{Address, Target};
use railwright_drift::{DriftFinding, DriftReport};
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of a value.
const VALUE: usize = 60;

/// What the looks so far reported, by host and by what each line is about.
#[derive(Debug, Default)]
pub struct DriftWatchHistory {
    reported: BTreeMap<Target, BTreeMap<String, DriftWatchLine>>,
}

/// One line, and the resource that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DriftWatchLine {
    resource: String,
    text: String,
}

impl DriftWatchHistory {
    /// Takes in a look at some targets; says what is new, what differs from before, and what is
    /// gone.
    pub fn take(&mut self, report: &DriftReport) -> Vec<String> {
        let mut now: BTreeMap<Target, BTreeMap<String, DriftWatchLine>> = report
            .targets
            .iter()
            .map(|target| (target.clone(), BTreeMap::new()))
            .collect();
        for (target, key, line) in collect_report_lines(report) {
            now.entry(target).or_default().insert(key, line);
        }
        let unread: BTreeSet<&str> = report
            .not_compared
            .iter()
            .map(|unread| unread.subject.as_str())
            .collect();
        let mut changes = Vec::new();
        for (target, mut now) in now {
            let before = self.reported.remove(&target).unwrap_or_default();
            let silent = unread.contains(target.to_string().as_str());
            for (key, line) in &now {
                match before.get(key) {
                    None => changes.push(format_change_line(report, "new ", line)),
                    Some(known) if known != line => {
                        changes.push(format_change_line(report, "now ", line))
                    }
                    Some(_) => {}
                }
            }
            for (key, line) in before {
                // What cannot be looked at is neither there nor gone.
                if silent || unread.contains(line.resource.as_str()) {
                    now.entry(key).or_insert(line);
                } else if !now.contains_key(&key) {
                    changes.push(format_change_line(report, "gone", &line));
                }
            }
            self.reported.insert(target, now);
        }
        changes
    }
}

fn format_change_line(report: &DriftReport, word: &str, line: &DriftWatchLine) -> String {
    format!("{} {word} {}", clean_line(&report.checked_at), line.text)
}

/// Every line of a report with its target and what it is about.
fn collect_report_lines(report: &DriftReport) -> Vec<(Target, String, DriftWatchLine)> {
    let mut out = Vec::new();
    for finding in &report.findings {
        out.push(build_finding_line(finding));
    }
    for address in &report.removed_from_spec {
        let text = clean_line(&format!(
            "{} {}: applied, and no longer in the spec",
            address.target.name,
            address.within_target()
        ));
        out.push((
            address.target.clone(),
            address.to_string(),
            DriftWatchLine {
                resource: address.to_string(),
                text,
            },
        ));
    }
    for unread in &report.not_compared {
        let Some((target, resource)) = unread.about() else {
            continue;
        };
        let what = resource.map_or_else(
            || target.name.to_string(),
            |address| format!("{} {}", target.name, address.within_target()),
        );
        let text = format!(
            "{}: not compared: {}",
            clean_line(&what),
            one_line(&unread.reason, 200)
        );
        // Being silent is gone as soon as something is read.
        out.push((
            target,
            format!("not compared {}", unread.subject),
            DriftWatchLine {
                resource: String::new(),
                text,
            },
        ));
    }
    out
}

fn build_finding_line(finding: &DriftFinding) -> (Target, String, DriftWatchLine) {
    let resource = Address {
        attribute: None,
        ..finding.address.clone()
    }
    .to_string();
    let accepted = describe_acceptance(finding).map_or(String::new(), |words| format!("; {words}"));
    let what = format!(
        "{} {}, {}",
        format_finding_target(finding),
        finding.address.within_target(),
        finding.plane.word()
    );
    let text = clean_line(&format!(
        "{what}: {}{accepted}",
        describe_drift_values(finding, VALUE)
    ));
    (
        finding.address.target.clone(),
        format!("{} {}", finding.address, finding.plane.word()),
        DriftWatchLine { resource, text },
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{finding, hostile, report};
    use super::*;
    use railwright_drift::DriftReason;
    use railwright_plan::UnknownFinding;
    use railwright_resource::{Plane, Reading};

    /// A look at n1 that found these MTUs, or nothing because of this.
    fn look(mtus: &[u32], unread: Option<&str>) -> DriftReport {
        let mtu = |mtu: &u32| {
            finding(
                "host/n1/link/ens4#mtu",
                Plane::Running,
                DriftReason::ChangedOutside,
                Reading::is(*mtu),
            )
        };
        let not_compared = unread
            .map(|subject| UnknownFinding::new(subject, "no answer"))
            .into_iter()
            .collect();
        let findings: Vec<DriftFinding> = mtus.iter().map(mtu).collect();
        DriftReport {
            findings,
            not_compared,
            targets: vec![Target::host("n1")],
            ..report()
        }
    }

    #[test]
    fn only_what_changed_is_told() {
        let mut lines = DriftWatchHistory::default();
        let told: Vec<Vec<String>> = [
            look(&[1500], None),
            look(&[1500], None),
            look(&[4200], None),
            look(&[], Some("host/n1")),
            look(&[], Some("host/n1")),
            look(&[4200], None),
            look(&[], Some("host/n1/link/ens4")),
            look(&[], None),
        ]
        .iter()
        .map(|report| {
            lines
                .take(report)
                .iter()
                .map(|line| line.replace("2026-01-01T00:00:00Z ", ""))
                .collect()
        })
        .collect();
        let mtu = |word: &str, mtu: u32| {
            format!("{word} n1 link/ens4#mtu, running: actual {mtu}, desired 9000 (as applied)")
        };
        assert_eq!(
            told,
            [
                vec![mtu("new ", 1500)],
                vec![],
                vec![mtu("now ", 4200)],
                vec!["new  n1: not compared: no answer".to_owned()],
                vec![],
                vec!["gone n1: not compared: no answer".to_owned()],
                vec!["new  n1 link/ens4: not compared: no answer".to_owned()],
                vec![
                    mtu("gone", 4200),
                    "gone n1 link/ens4: not compared: no answer".to_owned()
                ],
            ]
        );
    }

    #[test]
    fn hosts_do_not_speak_for_each_other_and_nothing_begins_a_line_of_its_own() {
        let mut lines = DriftWatchHistory::default();
        assert_eq!(lines.take(&look(&[1500], None)).len(), 1);
        let other = DriftReport {
            findings: vec![],
            not_compared: vec![],
            targets: vec![Target::host("n2")],
            ..report()
        };
        assert_eq!(lines.take(&other), Vec::<String>::new());
        assert!(
            DriftWatchHistory::default()
                .take(&hostile())
                .iter()
                .all(|line| line.lines().count() == 1 && !line.contains('\u{1b}'))
        );
    }
}
