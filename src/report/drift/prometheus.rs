//! The report as metrics, in the text format of Prometheus
//! (https://prometheus.io/docs/instrumenting/exposition_formats/), for the textfile collector of
//! the node exporter. That one refuses samples with a timestamp of their own
//! (https://github.com/prometheus/node_exporter/pull/769), so the time of the check is a metric: an
//! alert on its age tells that nobody has looked.

use railwright_base::{Target, TargetKind};
use railwright_drift::{DriftFinding, DriftReport};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Labels and value of one sample.
type Sample = (Vec<(&'static str, String)>, String);

/// A family of samples, by its name without the prefix.
struct Metric {
    name: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// The whole document; `duration_s` is how long the look took.
pub fn render_prometheus_document(report: &DriftReport, duration_s: f64) -> String {
    let mut metrics = collect_finding_metrics(report);
    metrics.extend(collect_coverage_metrics(report));
    if let Ok(at) = report.checked_at.parse::<jiff::Timestamp>() {
        metrics.push(Metric {
            name: "last_check_timestamp_seconds",
            help: "When the hosts were looked at, in seconds since 1970.",
            samples: vec![build_sample(report, Vec::new(), at.as_second())],
        });
    }
    metrics.push(Metric {
        name: "check_duration_seconds",
        help: "How long the look took.",
        samples: vec![build_sample(report, Vec::new(), format!("{duration_s:.3}"))],
    });
    metrics.into_iter().map(render_metric_family).collect()
}

/// A sample with the cluster's label and these.
fn build_sample(
    report: &DriftReport,
    labels: Vec<(&'static str, String)>,
    value: impl Display,
) -> Sample {
    (
        [build_cluster_label(report), labels].concat(),
        value.to_string(),
    )
}

/// What differs from the spec, or from most of its class.
fn collect_finding_metrics(report: &DriftReport) -> Vec<Metric> {
    let findings = report.findings.iter();
    let drift = findings.clone().filter(|finding| finding.is_drift());
    let unknown = findings.clone().filter(|finding| finding.is_unknown());
    let accepted = findings.filter(|finding| finding.is_accepted());
    let expired = drift.clone().filter(|finding| finding.accepted.is_some());
    vec![
        Metric {
            name: "findings",
            help: "Attributes that differ from the spec, by host, resource kind and plane.",
            samples: count_by_place(report, drift),
        },
        Metric {
            name: "unknown_attributes",
            help: "Attributes that could not be found out, of hosts that answered.",
            samples: count_by_place(report, unknown),
        },
        Metric {
            name: "accepted_findings",
            help: "Attributes that differ from the spec, which the spec accepts for now.",
            samples: count_by_place(report, accepted),
        },
        Metric {
            name: "acceptances_expired",
            help: "Findings whose acceptance is over.",
            samples: vec![build_sample(report, Vec::new(), expired.count())],
        },
        Metric {
            name: "oldest_finding_seconds",
            help: "Since when the oldest finding of a host is there; hosts without one are left out.",
            samples: collect_oldest_age_samples(report),
        },
        Metric {
            name: "outliers",
            help: "Hosts that differ from most of their class in what is not managed.",
            samples: collect_outlier_samples(report),
        },
    ]
}

/// How much was looked at, and which hosts gave an answer.
fn collect_coverage_metrics(report: &DriftReport) -> Vec<Metric> {
    vec![
        Metric {
            name: "resources_compared",
            help: "Resources that were compared.",
            samples: vec![build_sample(report, Vec::new(), report.resources)],
        },
        Metric {
            name: "resources_no_longer_in_spec",
            help: "Resources that were applied and left the spec.",
            samples: vec![build_sample(
                report,
                Vec::new(),
                report.removed_from_spec.len(),
            )],
        },
        Metric {
            name: "host_answered",
            help: "1 when the host answered, 0 when its state is not known.",
            samples: collect_answered_samples(report),
        },
        Metric {
            name: "hosts_unknown",
            help: "Hosts that gave no answer.",
            samples: vec![build_sample(
                report,
                Vec::new(),
                collect_silent_targets(report).len(),
            )],
        },
    ]
}

fn collect_outlier_samples(report: &DriftReport) -> Vec<Sample> {
    let mut samples = Vec::new();
    for one in &report.outliers {
        let labels = vec![("class", one.class.clone()), ("what", one.what.clone())];
        let count: usize = one.others.iter().map(|held| held.count).sum();
        samples.push(build_sample(report, labels, count));
    }
    samples
}

fn build_cluster_label(report: &DriftReport) -> Vec<(&'static str, String)> {
    vec![("cluster", report.cluster.clone())]
}

fn collect_silent_targets(report: &DriftReport) -> BTreeSet<Target> {
    report
        .not_compared
        .iter()
        .filter_map(|unread| unread.subject.parse().ok())
        .collect()
}

fn collect_answered_samples(report: &DriftReport) -> Vec<Sample> {
    let silent = collect_silent_targets(report);
    let mut samples = Vec::new();
    for target in &report.targets {
        if target.kind == TargetKind::Host {
            let labels = vec![("host", target.name.to_string())];
            let answered = u8::from(!silent.contains(target));
            samples.push(build_sample(report, labels, answered));
        }
    }
    samples
}

/// By host; none where ages are not kept.
fn collect_oldest_age_samples(report: &DriftReport) -> Vec<Sample> {
    let mut oldest: BTreeMap<&str, u64> = BTreeMap::new();
    for finding in report.findings.iter().filter(|finding| finding.is_drift()) {
        let Some(seen) = &finding.seen else { continue };
        let age = oldest.entry(&finding.address.target.name).or_default();
        *age = seen.age_s.max(*age);
    }
    oldest
        .into_iter()
        .map(|(host, age)| build_sample(report, vec![("host", host.to_owned())], age))
        .collect()
}

fn count_by_place<'a>(
    report: &DriftReport,
    findings: impl Iterator<Item = &'a DriftFinding>,
) -> Vec<Sample> {
    let mut counts: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for finding in findings {
        *counts
            .entry((
                &finding.address.target.name,
                finding.address.kind(),
                format_plane_label(finding),
            ))
            .or_default() += 1;
    }
    let mut samples = Vec::new();
    for ((host, kind, plane), count) in counts {
        let place = vec![
            ("host", host.to_owned()),
            ("kind", kind.to_owned()),
            ("plane", plane.to_owned()),
        ];
        samples.push(build_sample(report, place, count));
    }
    samples
}

/// The plane without a blank, as in the JSON.
fn format_plane_label(finding: &DriftFinding) -> &'static str {
    match finding.plane {
        railwright_resource::Plane::Persisted => "persisted",
        railwright_resource::Plane::Running => "running",
        railwright_resource::Plane::NextBoot => "next_boot",
    }
}

/// All lines of one metric, as one group; a metric without a sample says its type all the same.
fn render_metric_family(metric: Metric) -> String {
    let Metric {
        name,
        help,
        samples,
    } = metric;
    let mut out =
        format!("# HELP railwright_drift_{name} {help}\n# TYPE railwright_drift_{name} gauge\n");
    for (labels, value) in samples {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, text)| format!("{name}=\"{}\"", escape_label_value(text)))
            .collect();
        out.push_str(&format!(
            "railwright_drift_{name}{{{}}} {value}\n",
            labels.join(",")
        ));
    }
    out
}

/// Backslash, quote and line feed, as the format wants them; all else may stand as it is.
fn escape_label_value(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{accepted, hostile, report};
    use super::*;

    /// A reader of the format, written from its description: every sample by name and sorted
    /// labels.
    fn read(text: &str) -> BTreeMap<String, f64> {
        assert!(
            text.ends_with('\n'),
            "the last line must end with a line feed"
        );
        let (mut types, mut helps, mut order, mut samples) = (
            BTreeSet::new(),
            BTreeSet::new(),
            Vec::new(),
            BTreeMap::new(),
        );
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (word, name, rest) = (
                    words.next().unwrap(),
                    words.next().unwrap(),
                    words.next().unwrap(),
                );
                assert!(is_name(name), "{line}");
                match word {
                    "HELP" => assert!(helps.insert(name.to_owned()), "twice: {line}"),
                    "TYPE" => {
                        assert!(types.insert(name.to_owned()), "twice: {line}");
                        assert!(
                            ["counter", "gauge", "histogram", "summary", "untyped"].contains(&rest),
                            "{line}"
                        );
                    }
                    other => panic!("an unexpected comment: {other}"),
                }
                continue;
            }
            let end = line.find(['{', ' ']).unwrap();
            let name = &line[..end];
            assert!(
                is_name(name) && types.contains(name) && helps.contains(name),
                "the type comes first: {line}"
            );
            let (labels, rest) = labels(&line[end..]);
            if order.last().is_none_or(|last: &String| last != name) {
                assert!(
                    !order.contains(&name.to_owned()),
                    "one group a metric: {line}"
                );
                order.push(name.to_owned());
            }
            let mut rest = rest.split_whitespace();
            let value: f64 = rest.next().unwrap().parse().unwrap();
            assert_eq!(
                rest.next(),
                None,
                "the textfile collector takes no timestamps: {line}"
            );
            assert!(
                samples.insert(format!("{name}{labels:?}"), value).is_none(),
                "the same labels twice: {line}"
            );
        }
        samples
    }

    fn is_name(name: &str) -> bool {
        let good = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':');
        name.starts_with(good) && name.chars().all(|c| good(c) || c.is_ascii_digit())
    }

    /// The labels, unescaped, and what follows them.
    fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
        let mut out = BTreeMap::new();
        let Some(mut rest) = text.strip_prefix('{') else {
            return (out, text);
        };
        loop {
            if let Some(after) = rest.strip_prefix('}') {
                return (out, after);
            }
            let (name, after) = rest.split_once("=\"").unwrap();
            assert!(is_name(name) && !name.contains(':'), "{name}");
            let (mut value, mut characters) = (String::new(), after.char_indices());
            let end = loop {
                match characters.next().unwrap() {
                    (at, '"') => break at + 1,
                    (_, '\\') => value.push(match characters.next().unwrap().1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        other => panic!("no such escape: {other}"),
                    }),
                    (_, c) => value.push(c),
                }
            };
            assert!(
                out.insert(name.to_owned(), value).is_none(),
                "a label twice: {name}"
            );
            rest = after[end..].strip_prefix(',').unwrap_or(&after[end..]);
        }
    }

    #[test]
    fn findings_are_counted_by_host_kind_and_plane() {
        insta::assert_snapshot!(render_prometheus_document(&report(), 1.5), @r#"
        # HELP railwright_drift_findings Attributes that differ from the spec, by host, resource kind and plane.
        # TYPE railwright_drift_findings gauge
        railwright_drift_findings{cluster="lab",host="n1",kind="link",plane="running"} 1
        railwright_drift_findings{cluster="lab",host="n2",kind="file",plane="persisted"} 1
        railwright_drift_findings{cluster="lab",host="n2",kind="link",plane="running"} 1
        railwright_drift_findings{cluster="lab",host="n3",kind="link",plane="running"} 1
        # HELP railwright_drift_unknown_attributes Attributes that could not be found out, of hosts that answered.
        # TYPE railwright_drift_unknown_attributes gauge
        railwright_drift_unknown_attributes{cluster="lab",host="n2",kind="sysctl",plane="running"} 1
        # HELP railwright_drift_accepted_findings Attributes that differ from the spec, which the spec accepts for now.
        # TYPE railwright_drift_accepted_findings gauge
        # HELP railwright_drift_acceptances_expired Findings whose acceptance is over.
        # TYPE railwright_drift_acceptances_expired gauge
        railwright_drift_acceptances_expired{cluster="lab"} 0
        # HELP railwright_drift_oldest_finding_seconds Since when the oldest finding of a host is there; hosts without one are left out.
        # TYPE railwright_drift_oldest_finding_seconds gauge
        # HELP railwright_drift_outliers Hosts that differ from most of their class in what is not managed.
        # TYPE railwright_drift_outliers gauge
        # HELP railwright_drift_resources_compared Resources that were compared.
        # TYPE railwright_drift_resources_compared gauge
        railwright_drift_resources_compared{cluster="lab"} 41
        # HELP railwright_drift_resources_no_longer_in_spec Resources that were applied and left the spec.
        # TYPE railwright_drift_resources_no_longer_in_spec gauge
        railwright_drift_resources_no_longer_in_spec{cluster="lab"} 0
        # HELP railwright_drift_host_answered 1 when the host answered, 0 when its state is not known.
        # TYPE railwright_drift_host_answered gauge
        railwright_drift_host_answered{cluster="lab",host="n1"} 1
        railwright_drift_host_answered{cluster="lab",host="n2"} 1
        railwright_drift_host_answered{cluster="lab",host="n3"} 1
        railwright_drift_host_answered{cluster="lab",host="n9"} 0
        # HELP railwright_drift_hosts_unknown Hosts that gave no answer.
        # TYPE railwright_drift_hosts_unknown gauge
        railwright_drift_hosts_unknown{cluster="lab"} 1
        # HELP railwright_drift_last_check_timestamp_seconds When the hosts were looked at, in seconds since 1970.
        # TYPE railwright_drift_last_check_timestamp_seconds gauge
        railwright_drift_last_check_timestamp_seconds{cluster="lab"} 1767225600
        # HELP railwright_drift_check_duration_seconds How long the look took.
        # TYPE railwright_drift_check_duration_seconds gauge
        railwright_drift_check_duration_seconds{cluster="lab"} 1.500
        "#);
        let samples = read(&render_prometheus_document(&report(), 1.5));
        let sum = |name: &str| {
            samples
                .iter()
                .filter(|(key, _)| key.starts_with(name))
                .map(|(_, value)| value)
                .sum::<f64>()
        };
        assert_eq!(
            (
                sum("railwright_drift_findings{"),
                sum("railwright_drift_unknown_attributes{")
            ),
            (4.0, 1.0)
        );
    }

    #[test]
    fn what_is_accepted_is_counted_apart() {
        for (expired, counts) in [(false, [1.0, 3.0, 0.0]), (true, [4.0, 0.0, 3.0])] {
            let samples = read(&render_prometheus_document(&accepted(expired), 0.0));
            let sum = |name: &str| {
                samples
                    .iter()
                    .filter(|(key, _)| key.starts_with(name))
                    .map(|(_, value)| value)
                    .sum::<f64>()
            };
            let names = [
                "railwright_drift_findings{",
                "railwright_drift_accepted_findings{",
                "railwright_drift_acceptances_expired{",
            ];
            assert_eq!(names.map(sum), counts, "{expired}");
        }
    }

    #[test]
    fn the_oldest_finding_of_a_host_is_its_age() {
        let mut report = report();
        for (finding, age_s) in report.findings.iter_mut().zip([7, 3600, 5, 60, 9999]) {
            finding.seen = Some(railwright_drift::FindingAge {
                first: String::new(),
                last: String::new(),
                age_s,
            });
        }
        let samples = read(&render_prometheus_document(&report, 0.0));
        let ages: Vec<f64> = samples
            .iter()
            .filter(|(key, _)| key.contains("oldest_finding"))
            .map(|(_, age)| *age)
            .collect();
        assert_eq!(
            ages,
            [7.0, 3600.0, 5.0],
            "n1, n2 without what is unknown, n3"
        );
    }

    #[test]
    fn whatever_a_name_holds_the_format_is_kept() {
        let mut report = hostile();
        report.cluster = "a\\b\"c\nd{e}=,".to_owned();
        std::sync::Arc::make_mut(&mut report.findings[0].address.path)[0] = report.cluster.clone();
        let samples = read(&render_prometheus_document(&report, 0.0));
        let nasty = format!("{:?}", report.cluster);
        assert!(
            samples
                .keys()
                .any(|key| key.contains(&format!("\"kind\": {nasty}"))),
            "{samples:?}"
        );
        assert!(
            samples
                .keys()
                .all(|key| key.contains(&format!("\"cluster\": {nasty}"))),
            "{samples:?}"
        );
    }
}
