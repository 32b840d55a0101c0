//! The report as JUnit XML: a target is a suite, a resource a case. There is no standard of it;
//! what most readers take is written down by Jenkins (https://github.com/jenkinsci/xunit-plugin,
//! junit-10.xsd).

use super::words::{
    describe_acceptance, describe_drift_reason, describe_drift_values, explain_drift_reason,
    format_finding_ages,
};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use railwright_base::text::clean_line;
use railwright_base::{Address, Target};
use railwright_drift::{DriftFinding, DriftReason, DriftReport};
use std::collections::BTreeMap;
use std::io;

/// The most characters of a value.
const VALUE: usize = 200;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JunitVerdict {
    Passed,
    /// Differs from the spec, and accepted.
    Skipped,
    /// Could not be found out.
    Errored,
    Failed,
}

impl JunitVerdict {
    /// The element below the case.
    fn element(self) -> Option<&'static str> {
        match self {
            JunitVerdict::Passed => None,
            JunitVerdict::Skipped => Some("skipped"),
            JunitVerdict::Errored => Some("error"),
            JunitVerdict::Failed => Some("failure"),
        }
    }
}

/// One resource; its lines are what was found.
struct JunitCase {
    name: String,
    verdict: JunitVerdict,
    kind: &'static str,
    lines: Vec<String>,
}

/// The whole document.
pub fn render_junit_document(report: &DriftReport) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write_test_suites(&mut writer, report).expect("memory takes every write");
    let mut text = String::from_utf8(writer.into_inner()).expect("it was made of text");
    text.push('\n');
    text
}

fn write_test_suites(writer: &mut Writer<Vec<u8>>, report: &DriftReport) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = collect_test_suites(report);
    let name = format!(
        "railwright drift {}",
        clean_xml_text(&report.inventory.path)
    );
    let counts = count_verdicts(suites.values().flatten());
    writer
        .create_element("testsuites")
        .with_attribute(("name", name.as_str()))
        .with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())))
        .write_inner_content(|writer| {
            suites
                .iter()
                .try_for_each(|(target, cases)| write_test_suite(writer, report, target, cases))
        })?;
    Ok(())
}

/// The attributes that say how many cases ended how.
fn count_verdicts<'a>(cases: impl Iterator<Item = &'a JunitCase>) -> [(&'static str, String); 4] {
    let (mut tests, mut errors, mut failures, mut skipped) = (0, 0, 0, 0);
    for case in cases {
        tests += 1;
        match case.verdict {
            JunitVerdict::Errored => errors += 1,
            JunitVerdict::Failed => failures += 1,
            JunitVerdict::Skipped => skipped += 1,
            JunitVerdict::Passed => {}
        }
    }
    [
        ("tests", tests.to_string()),
        ("errors", errors.to_string()),
        ("failures", failures.to_string()),
        ("skipped", skipped.to_string()),
    ]
}

fn write_test_suite(
    writer: &mut Writer<Vec<u8>>,
    report: &DriftReport,
    target: &Target,
    cases: &[JunitCase],
) -> io::Result<()> {
    let target = clean_xml_text(&target.to_string());
    let counts = count_verdicts(cases.iter());
    // Ant, from which this format comes, writes the time without a zone.
    let at = clean_xml_text(report.checked_at.trim_end_matches('Z'));
    writer
        .create_element("testsuite")
        .with_attribute(("name", target.as_str()))
        .with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())))
        .with_attribute(("timestamp", at.as_str()))
        .write_inner_content(|writer| {
            cases
                .iter()
                .try_for_each(|one| write_test_case(writer, &target, one))
        })?;
    Ok(())
}

fn write_test_case(writer: &mut Writer<Vec<u8>>, target: &str, case: &JunitCase) -> io::Result<()> {
    let element = writer
        .create_element("testcase")
        .with_attributes([("classname", target), ("name", case.name.as_str())]);
    let Some(inner) = case.verdict.element() else {
        element.write_empty()?;
        return Ok(());
    };
    let message = case.lines.first().map_or("", String::as_str);
    element.write_inner_content(|writer| {
        let inner = writer
            .create_element(inner)
            .with_attributes([("type", case.kind), ("message", message)]);
        inner
            .write_text_content(BytesText::new(&case.lines.join("\n")))
            .map(|_| ())
    })?;
    Ok(())
}

fn collect_test_suites(report: &DriftReport) -> BTreeMap<Target, Vec<JunitCase>> {
    let mut found: BTreeMap<(&Target, &[String]), Vec<&DriftFinding>> = BTreeMap::new();
    for finding in &report.findings {
        found
            .entry((&finding.address.target, &finding.address.path[..]))
            .or_default()
            .push(finding);
    }
    let mut suites: BTreeMap<Target, Vec<JunitCase>> = BTreeMap::new();
    for target in &report.targets {
        suites.insert(target.clone(), Vec::new());
    }
    for address in &report.compared {
        let findings = found
            .get(&(&address.target, &address.path[..]))
            .map_or(&[][..], Vec::as_slice);
        let cases = suites.entry(address.target.clone()).or_default();
        cases.push(build_resource_case(address, findings));
    }
    for address in &report.removed_from_spec {
        let cases = suites.entry(address.target.clone()).or_default();
        cases.push(JunitCase {
            name: clean_xml_text(&address.within_target()),
            verdict: JunitVerdict::Failed,
            kind: "no_longer_in_the_spec",
            lines: vec!["applied, and no longer in the spec".to_owned()],
        });
    }
    for unread in &report.not_compared {
        let Some((target, resource)) = unread.about() else {
            continue;
        };
        let name = match resource {
            Some(address) => clean_xml_text(&address.within_target()),
            None => "the whole target".to_owned(),
        };
        suites.entry(target).or_default().push(JunitCase {
            name,
            verdict: JunitVerdict::Errored,
            kind: "not_compared",
            lines: vec![clean_xml_text(&unread.reason)],
        });
    }
    suites
}

fn build_resource_case(address: &Address, findings: &[&DriftFinding]) -> JunitCase {
    let mut sorted = findings.to_vec();
    sorted.sort_by_key(|finding| std::cmp::Reverse(select_junit_verdict(finding)));
    let (verdict, reason) = match sorted.first() {
        Some(worst) => (select_junit_verdict(worst), worst.reason),
        None => (JunitVerdict::Passed, DriftReason::Unknown),
    };
    JunitCase {
        name: clean_xml_text(&address.within_target()),
        verdict,
        kind: describe_drift_reason(reason).0,
        lines: sorted
            .iter()
            .map(|finding| describe_finding(finding))
            .collect(),
    }
}

fn select_junit_verdict(finding: &DriftFinding) -> JunitVerdict {
    match (finding.is_unknown(), finding.is_accepted()) {
        (true, _) => JunitVerdict::Errored,
        (false, true) => JunitVerdict::Skipped,
        (false, false) => JunitVerdict::Failed,
    }
}

fn describe_finding(finding: &DriftFinding) -> String {
    let why = format!(
        "{}: {}",
        describe_drift_reason(finding.reason).1.to_lowercase(),
        explain_drift_reason(finding.reason)
    );
    let mut text = format!(
        "{}, {}: {}; {why}",
        finding.attribute,
        finding.plane.word(),
        describe_drift_values(finding, VALUE)
    );
    let notes = [
        format_finding_ages(&[finding]),
        describe_acceptance(finding),
    ];
    for note in notes.into_iter().flatten() {
        text.push_str(&format!("; {note}"));
    }
    clean_xml_text(&text)
}

/// One line without what XML 1.0 cannot hold at all, not even escaped: control characters and
/// U+FFFE, U+FFFF (https://www.w3.org/TR/xml/#charsets).
fn clean_xml_text(text: &str) -> String {
    clean_line(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{accepted, hostile, report};
    use super::*;

    #[test]
    fn a_target_is_a_suite_and_a_resource_a_case() {
        let text = render_junit_document(&report());
        let xml = roxmltree::Document::parse(&text).unwrap();
        let root = xml.root_element();
        let counts = |node: &roxmltree::Node<'_, '_>| {
            ["name", "tests", "failures", "errors"]
                .map(|name| node.attribute(name).unwrap().to_owned())
        };
        assert_eq!(
            (root.tag_name().name(), counts(&root)),
            (
                "testsuites",
                ["railwright drift inventories/lab", "10", "4", "2"].map(str::to_owned)
            )
        );
        let suites: Vec<_> = root
            .children()
            .filter(|node| node.is_element())
            .map(|node| counts(&node).join(" "))
            .collect();
        assert_eq!(
            suites,
            [
                "host/n1 3 1 0",
                "host/n2 3 2 1",
                "host/n3 3 1 0",
                "host/n9 1 0 1"
            ]
        );
        let failure = xml
            .descendants()
            .find(|node| node.has_tag_name("failure"))
            .unwrap();
        assert_eq!(failure.attribute("type"), Some("changed_outside"));
        let said = "mtu, running: actual 1500, desired 9000 (as applied); changed outside: somebody \
                    else changed it since it was applied";
        assert_eq!(
            (failure.attribute("message"), failure.text()),
            (Some(said), Some(said))
        );
        let of = |name: &str| {
            xml.descendants()
                .filter(|node| node.attribute("name") == Some(name))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("link/ens4").len(), 3);
        assert_eq!(
            of("the whole target")[0]
                .first_element_child()
                .unwrap()
                .tag_name()
                .name(),
            "error"
        );
    }

    #[test]
    fn what_is_accepted_is_skipped_until_its_day_is_over() {
        for (expired, skipped, failures) in [(false, "3", "1"), (true, "0", "4")] {
            let text = render_junit_document(&accepted(expired));
            let xml = roxmltree::Document::parse(&text).unwrap();
            let root = xml.root_element();
            assert_eq!(
                (root.attribute("skipped"), root.attribute("failures")),
                (Some(skipped), Some(failures))
            );
            assert_eq!(
                xml.descendants()
                    .filter(|node| node.has_tag_name("skipped"))
                    .count()
                    .to_string(),
                skipped
            );
        }
    }

    #[test]
    fn whatever_a_host_says_the_document_is_xml() {
        let report = hostile();
        let text = render_junit_document(&report);
        let xml = roxmltree::Document::parse(&text).unwrap();
        let messages: Vec<_> = xml
            .descendants()
            .filter_map(|node| node.attribute("message"))
            .collect();
        assert!(
            messages
                .iter()
                .any(|message| message.contains("<script>&amp;\"'\\ \u{fffd}[31m")),
            "{messages:?}"
        );
        assert!(
            !text.contains("<script>") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
