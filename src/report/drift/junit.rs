//! The report as JUnit XML: a target is a suite, a resource a case. There is no standard of it; what most readers take is
//! written down by Jenkins (https://github.com/jenkinsci/xunit-plugin, junit-10.xsd).

use super::words::{acceptance, meaning, reason as named, said, since};
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
enum Verdict {
    Passed,
    /// Other than wished, and accepted.
    Skipped,
    /// Could not be found out.
    Errored,
    Failed,
}

impl Verdict {
    /// The element below the case.
    fn element(self) -> Option<&'static str> {
        match self {
            Verdict::Passed => None,
            Verdict::Skipped => Some("skipped"),
            Verdict::Errored => Some("error"),
            Verdict::Failed => Some("failure"),
        }
    }
}

/// One resource; its lines are what was found.
struct Case {
    name: String,
    verdict: Verdict,
    kind: &'static str,
    lines: Vec<String>,
}

/// The whole document.
pub fn document(report: &DriftReport) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, report).expect("memory takes every write");
    let mut text = String::from_utf8(writer.into_inner()).expect("it was made of text");
    text.push('\n');
    text
}

fn write(writer: &mut Writer<Vec<u8>>, report: &DriftReport) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = suites(report);
    let name = format!("railwright drift {}", xml(&report.inventory.path));
    let counts = counts(suites.values().flatten());
    writer
        .create_element("testsuites")
        .with_attribute(("name", name.as_str()))
        .with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())))
        .write_inner_content(|writer| suites.iter().try_for_each(|(target, cases)| suite(writer, report, target, cases)))?;
    Ok(())
}

/// The attributes that say how many cases ended how.
fn counts<'a>(cases: impl Iterator<Item = &'a Case> + Clone) -> [(&'static str, String); 4] {
    let of = |verdict: Verdict| cases.clone().filter(|case| case.verdict == verdict).count().to_string();
    [
        ("tests", cases.clone().count().to_string()),
        ("errors", of(Verdict::Errored)),
        ("failures", of(Verdict::Failed)),
        ("skipped", of(Verdict::Skipped)),
    ]
}

fn suite(writer: &mut Writer<Vec<u8>>, report: &DriftReport, target: &Target, cases: &[Case]) -> io::Result<()> {
    let target = xml(&target.to_string());
    let counts = counts(cases.iter());
    // Ant, from which this format comes, writes the time without a zone.
    let at = xml(report.checked_at.trim_end_matches('Z'));
    writer
        .create_element("testsuite")
        .with_attribute(("name", target.as_str()))
        .with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())))
        .with_attribute(("timestamp", at.as_str()))
        .write_inner_content(|writer| cases.iter().try_for_each(|one| case(writer, &target, one)))?;
    Ok(())
}

fn case(writer: &mut Writer<Vec<u8>>, target: &str, case: &Case) -> io::Result<()> {
    let element = writer.create_element("testcase").with_attributes([("classname", target), ("name", case.name.as_str())]);
    let Some(inner) = case.verdict.element() else {
        element.write_empty()?;
        return Ok(());
    };
    let message = case.lines.first().map_or("", String::as_str);
    element.write_inner_content(|writer| {
        let inner = writer.create_element(inner).with_attributes([("type", case.kind), ("message", message)]);
        inner.write_text_content(BytesText::new(&case.lines.join("\n"))).map(|_| ())
    })?;
    Ok(())
}

fn suites(report: &DriftReport) -> BTreeMap<Target, Vec<Case>> {
    let mut found: BTreeMap<(&Target, &[String]), Vec<&DriftFinding>> = BTreeMap::new();
    for finding in &report.findings {
        found.entry((&finding.address.target, &finding.address.path[..])).or_default().push(finding);
    }
    let mut suites: BTreeMap<Target, Vec<Case>> = report.targets.iter().map(|target| (target.clone(), Vec::new())).collect();
    let mut add = |target: &Target, case: Case| suites.entry(target.clone()).or_default().push(case);
    for address in &report.judged {
        let findings = found.get(&(&address.target, &address.path[..])).map_or(&[][..], Vec::as_slice);
        add(&address.target, of_resource(address, findings));
    }
    for address in &report.no_longer_wished {
        let lines = vec!["applied, and no longer in the spec".to_owned()];
        add(&address.target, Case { name: xml(&address.within_target()), verdict: Verdict::Failed, kind: "no_longer_in_the_spec", lines });
    }
    for unread in &report.not_judged {
        let Some((target, resource)) = unread.about() else { continue };
        let name = resource.map_or_else(|| "the whole target".to_owned(), |address| xml(&address.within_target()));
        add(&target, Case { name, verdict: Verdict::Errored, kind: "not_judged", lines: vec![xml(&unread.reason)] });
    }
    suites
}

fn of_resource(address: &Address, findings: &[&DriftFinding]) -> Case {
    let verdict = |finding: &DriftFinding| match (finding.is_unknown(), finding.is_accepted()) {
        (true, _) => Verdict::Errored,
        (false, true) => Verdict::Skipped,
        (false, false) => Verdict::Failed,
    };
    let mut sorted = findings.to_vec();
    sorted.sort_by_key(|finding| std::cmp::Reverse(verdict(finding)));
    let line = |finding: &&DriftFinding| {
        let why = format!("{}: {}", named(finding.reason).1.to_lowercase(), meaning(finding.reason));
        let since = since(&[*finding]).map_or(String::new(), |since| format!("; {since}"));
        let accepted = acceptance(finding).map_or(String::new(), |words| format!("; {words}"));
        xml(&format!("{}, {}: {}; {why}{since}{accepted}", finding.attribute, finding.plane.word(), said(finding, VALUE)))
    };
    let worst = sorted.first();
    Case {
        name: xml(&address.within_target()),
        verdict: worst.map_or(Verdict::Passed, |finding| verdict(finding)),
        kind: named(worst.map_or(DriftReason::Unknown, |finding| finding.reason)).0,
        lines: sorted.iter().map(line).collect(),
    }
}

/// One line without what XML 1.0 cannot hold at all, not even escaped: control characters and U+FFFE, U+FFFF
/// (https://www.w3.org/TR/xml/#charsets).
fn xml(text: &str) -> String {
    clean_line(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{accepted, hostile, report};
    use super::*;

    #[test]
    fn a_target_is_a_suite_and_a_resource_a_case() {
        let text = document(&report());
        let xml = roxmltree::Document::parse(&text).unwrap();
        let root = xml.root_element();
        let counts =
            |node: &roxmltree::Node<'_, '_>| ["name", "tests", "failures", "errors"].map(|name| node.attribute(name).unwrap().to_owned());
        assert_eq!(
            (root.tag_name().name(), counts(&root)),
            ("testsuites", ["railwright drift inventories/lab", "10", "4", "2"].map(str::to_owned))
        );
        let suites: Vec<_> = root.children().filter(|node| node.is_element()).map(|node| counts(&node).join(" ")).collect();
        assert_eq!(suites, ["host/n1 3 1 0", "host/n2 3 2 1", "host/n3 3 1 0", "host/n9 1 0 1"]);
        let failure = xml.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("type"), Some("changed_outside"));
        let said = "mtu, running: found 1500, wanted 9000 (as applied); changed outside: somebody else changed it since it was applied";
        assert_eq!((failure.attribute("message"), failure.text()), (Some(said), Some(said)));
        let of = |name: &str| xml.descendants().filter(|node| node.attribute("name") == Some(name)).collect::<Vec<_>>();
        assert_eq!(of("link/ens4").len(), 3);
        assert_eq!(of("the whole target")[0].first_element_child().unwrap().tag_name().name(), "error");
    }

    #[test]
    fn what_is_accepted_is_skipped_until_its_day_is_over() {
        for (expired, skipped, failures) in [(false, "3", "1"), (true, "0", "4")] {
            let text = document(&accepted(expired));
            let xml = roxmltree::Document::parse(&text).unwrap();
            let root = xml.root_element();
            assert_eq!((root.attribute("skipped"), root.attribute("failures")), (Some(skipped), Some(failures)));
            assert_eq!(xml.descendants().filter(|node| node.has_tag_name("skipped")).count().to_string(), skipped);
        }
    }

    #[test]
    fn whatever_a_host_says_the_document_is_xml() {
        let report = hostile();
        let text = document(&report);
        let xml = roxmltree::Document::parse(&text).unwrap();
        let messages: Vec<_> = xml.descendants().filter_map(|node| node.attribute("message")).collect();
        assert!(messages.iter().any(|message| message.contains("<script>&amp;\"'\\ \u{fffd}[31m")), "{messages:?}");
        assert!(!text.contains("<script>") && !text.contains('\u{1b}'), "{text}");
    }
}
