//! The screen of `drift`: grouped by why, folded by node-set; per attribute and plane what is
//! desired, what was applied last and what is actual. Text without colour.

use super::words::{
    collect_undeclared_resources, describe_acceptance, describe_drift_reason,
    describe_drift_values, describe_last_applied, describe_outlier, explain_drift_reason,
    format_age, format_drift_summary, format_finding_ages, format_finding_target,
};
use crate::knowledge::render_waived_rules;
use crate::value::{WIDE, differ_unseen, format_reading};
use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use crate::{out_of_service, unread};
use indexmap::IndexMap;
use railwright_base::text::{clean_line, format_count};
use railwright_base::{Address, nodeset};
use railwright_drift::age::compute_seconds_between;
use railwright_drift::{DriftFinding, DriftReason, DriftReport};
use std::collections::BTreeSet;

/// The most characters of a value in a row.
const VALUE: usize = 44;

/// More attributes than this of targets where nothing was applied yet are counted instead of
/// listed.
const LISTED: usize = 12;

/// The whole screen.
pub fn render_drift_screen(report: &DriftReport) -> String {
    let inventory = report.inventory.word();
    let targets = format_count(report.targets.len(), "target");
    let mut out = format!(
        "drift {inventory}   {} on {targets}   {}\n",
        format_count(report.resources, "resource"),
        report.inventory.words()
    );
    out.push_str(&render_finding_sections(report));
    out.push_str(&render_undeclared_section(report));
    out.push_str(&out_of_service::render_out_of_service_section(
        &report.out_of_service,
    ));
    if !report.not_compared.is_empty() {
        out.push_str(&render_heading("NOT COMPARED"));
        out.push_str(&unread::render_unknown_findings(&report.not_compared));
    }
    if !report.last_known.is_empty() {
        out.push_str(&render_heading(
            "LAST KNOWN of what could not be compared now",
        ));
        out.push_str(&render_last_known(report));
    }
    out.push_str(&render_side_notes(report));
    out.push_str(&render_waived_rules(&report.waived));
    out.push_str(&render_drift_conclusion(report, &inventory));
    out
}

/// The findings: those that count by their reason, then what was never applied, then what is
/// accepted.
fn render_finding_sections(report: &DriftReport) -> String {
    let mut out = String::new();
    let mut groups: IndexMap<DriftReason, Vec<&DriftFinding>> = IndexMap::new();
    let unapplied = report
        .findings
        .iter()
        .filter(|finding| is_never_applied(report, finding));
    let many = unapplied.count() > LISTED;
    let (first, later): (Vec<_>, Vec<_>) = report
        .findings
        .iter()
        .partition(|finding| many && is_never_applied(report, finding));
    let (accepted, counting): (Vec<_>, Vec<_>) =
        later.into_iter().partition(|finding| finding.is_accepted());
    for finding in counting {
        groups.entry(finding.reason).or_default().push(finding);
    }
    for (reason, findings) in &groups {
        out.push_str(&render_heading(&format_reason_title(*reason)));
        out.push_str(&render_drift_entries(findings));
    }
    if !first.is_empty() {
        out.push_str(&render_heading(
            "NEVER APPLIED: all that an apply has yet to do; a plan shows it",
        ));
        out.push_str(&render_unapplied_counts(&first));
    }
    if !accepted.is_empty() {
        out.push_str(&render_heading(
            "ACCEPTED: known, and no drift until the day is over",
        ));
        out.push_str(&render_drift_entries(&accepted));
    }
    out
}

/// Whether a finding is of a target that nothing was ever applied to.
fn is_never_applied(report: &DriftReport, finding: &DriftFinding) -> bool {
    finding.is_drift()
        && finding.reason != DriftReason::NotGivenBack
        && report.never_applied.contains(&finding.address.target)
}

/// What was applied and is no longer in the spec.
fn render_undeclared_section(report: &DriftReport) -> String {
    if report.removed_from_spec.is_empty() {
        return String::new();
    }
    let mut out =
        render_heading("NO LONGER IN THE SPEC: applied, and still there; a plan takes it back");
    for (resource, who) in collect_undeclared_resources(report) {
        out.push_str(&format!(
            " - {:<14} {}\n",
            nodeset::fold_node_set(&who),
            clean_line(&resource)
        ));
    }
    out
}

/// What is no drift and yet worth a look: outliers, and hosts without SSH.
fn render_side_notes(report: &DriftReport) -> String {
    let mut out = String::new();
    if !report.outliers.is_empty() {
        out.push_str(&render_heading(
            "OUTLIERS: a few hosts of a class differ in what is not managed; no drift",
        ));
        for outlier in &report.outliers {
            out.push_str(&wrap_labelled_text(" . ", &describe_outlier(outlier), 100));
        }
    }
    if !report.no_ssh.is_empty() {
        out.push_str(&render_heading(
            "NO SSH, by the spec: these hosts were not asked",
        ));
        out.push_str(&format!(" . {}\n", clean_line(&report.no_ssh)));
    }
    out
}

fn format_reason_title(reason: DriftReason) -> String {
    format!(
        "{}: {}",
        describe_drift_reason(reason).1.to_uppercase(),
        explain_drift_reason(reason)
    )
}

/// How much of which kind differs from the spec on targets where nothing was applied: a line a
/// kind, folded over them.
fn render_unapplied_counts(findings: &[&DriftFinding]) -> String {
    let mut counts: IndexMap<String, IndexMap<&str, BTreeSet<&str>>> = IndexMap::new();
    for finding in findings {
        counts
            .entry(format_finding_target(finding))
            .or_default()
            .entry(finding.address.kind())
            .or_default()
            .insert(finding.address.name());
    }
    let mut folded: IndexMap<String, Vec<String>> = IndexMap::new();
    for (who, kinds) in counts {
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(kind, names)| format!("{} ({})", clean_line(kind), names.len()))
            .collect();
        folded.entry(kinds.join(", ")).or_default().push(who);
    }
    folded
        .into_iter()
        .map(|(kinds, who)| {
            wrap_labelled_text(
                &format!(" + {:<14} ", nodeset::fold_node_set(&who)),
                &kinds,
                COLUMNS,
            )
        })
        .collect()
}

/// A resource without its target; as people say it where its name has characters that addresses
/// write otherwise (`Ethernet1/1`).
fn format_resource(resource: &Address) -> String {
    let address = resource.within_target();
    if address.contains('%') {
        resource.words()
    } else {
        address
    }
}

/// A target and its findings of one resource.
type Member<'a> = (String, Vec<&'a DriftFinding>);

/// One resource is one entry, its attributes are rows; hosts with the same rows share an entry.
fn render_drift_entries(findings: &[&DriftFinding]) -> String {
    let mut by_resource: IndexMap<(String, String), Vec<&DriftFinding>> = IndexMap::new();
    for finding in findings {
        let who = format_finding_target(finding);
        let mut resource = finding.address.clone();
        resource.attribute = None;
        by_resource
            .entry((who, format_resource(&resource)))
            .or_default()
            .push(finding);
    }
    // Rows are compared without their ages: what is the same since another time is still the same.
    let mut folded: IndexMap<(String, String), Vec<Member<'_>>> = IndexMap::new();
    for ((who, resource), members) in by_resource {
        let rows: String = members
            .iter()
            .map(|finding| render_drift_row(finding, None))
            .collect();
        folded
            .entry((resource, rows))
            .or_default()
            .push((who, members));
    }
    let mark = if findings.iter().all(|finding| finding.is_unknown()) {
        '?'
    } else {
        '~'
    };
    let mut out = String::new();
    for ((resource, _), identical) in &folded {
        out.push_str(&render_drift_entry(mark, resource, identical));
    }
    out
}

/// One resource of hosts with the same rows.
fn render_drift_entry(mark: char, resource: &str, identical: &[Member<'_>]) -> String {
    let who: Vec<&str> = identical.iter().map(|(who, _)| who.as_str()).collect();
    let mut out = format!(" {mark} {:<14} {resource}\n", nodeset::fold_node_set(&who));
    let Some((_, first)) = identical.first() else {
        return out;
    };
    for (at, finding) in first.iter().enumerate() {
        let members: Vec<&DriftFinding> = identical
            .iter()
            .filter_map(|(_, members)| members.get(at).copied())
            .collect();
        out.push_str(&render_drift_row(finding, format_finding_ages(&members)));
    }
    out
}

/// What was found before on targets that are silent now, folded over them.
fn render_last_known(report: &DriftReport) -> String {
    let mut folded: IndexMap<String, Vec<&str>> = IndexMap::new();
    for known in &report.last_known {
        let (first, last) = (
            compute_seconds_between(&known.first, &report.checked_at),
            compute_seconds_between(&known.last, &report.checked_at),
        );
        let words = format!(
            "{}, {}   since {}, last seen {} ago",
            known.address.within_target(),
            known.plane.word(),
            format_age(first),
            format_age(last)
        );
        folded
            .entry(words)
            .or_default()
            .push(&known.address.target.name);
    }
    folded
        .into_iter()
        .map(|(words, who)| {
            format!(
                " ? {:<14} {}\n",
                nodeset::fold_node_set(&who),
                clean_line(&words)
            )
        })
        .collect()
}

/// `mtu, running: actual 1500, desired 9000 (as applied)`; long values get lines of their own.
fn render_drift_row(finding: &DriftFinding, since: Option<String>) -> String {
    let mut place = String::new();
    if let Some(first) = finding.places.first() {
        place.push_str(&format!("   {first}"));
    }
    if let Some(since) = since {
        place.push_str(&format!("   {since}"));
    }
    let head = format!(
        "       {}, {}: ",
        clean_line(&finding.attribute),
        finding.plane.word()
    );
    let tail = format!("{}{place}", describe_drift_values(finding, VALUE));
    let accepted = describe_acceptance(finding).map_or(String::new(), |words| {
        wrap_labelled_text("         ", &words, 100)
    });
    let words = format_reading(&finding.actual, WIDE);
    // What is unknown, and what is waited for, has words that say what to do: they are not cut.
    let in_full = matches!(finding.reason, DriftReason::Unknown | DriftReason::NotReady)
        && words != format_reading(&finding.actual, VALUE);
    if differ_unseen(&finding.actual, &finding.desired)
        || (!in_full && (head.chars().count() + tail.chars().count()) <= 100)
    {
        return format!("{head}{tail}\n{accepted}");
    }
    if in_full {
        let (actual, desired) = (
            wrap_labelled_text("         actual  ", &words, COLUMNS),
            format_reading(&finding.desired, VALUE),
        );
        let last = describe_last_applied(finding, VALUE);
        return format!(
            "{}\n{actual}         desired {desired} ({last}){place}\n{accepted}",
            head.trim_end()
        );
    }
    let (actual, desired) = (
        format_reading(&finding.actual, VALUE),
        format_reading(&finding.desired, VALUE),
    );
    let last = describe_last_applied(finding, VALUE);
    format!(
        "{}\n         actual  {actual}\n         desired {desired}\n         ({last}){place}\n\
         {accepted}",
        head.trim_end()
    )
}

fn render_drift_conclusion(report: &DriftReport, inventory: &str) -> String {
    let next = match (report.has_drift(), report.is_partly_unread()) {
        (true, _) => format!("next: railwright plan {inventory}\n"),
        (false, false) if !report.out_of_service.is_empty() => {
            format!(
                "next: railwright apply {inventory}, whose first gate verifies what is out of \
                 service\n"
            )
        }
        (false, true) => {
            format!("next: fix what could not be read, then railwright drift {inventory}\n")
        }
        (false, false) => String::new(),
    };
    format!("\n{}\n{next}", format_drift_summary(report))
}

#[cfg(test)]
mod tests {
    use super::super::sample_for_tests::{accepted, outlier, report};
    use super::*;
    use railwright_drift::{FindingAge, LastKnown};
    use railwright_resource::Plane;

    #[test]
    fn folded_and_grouped_within_100_columns() {
        let text = render_drift_screen(&report());
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        insta::assert_snapshot!(text, @r"
        drift inventories/lab   41 resources on 4 targets   not under version control

        CHANGED OUTSIDE: somebody else changed it since it was applied ----------------------------------
         ~ n[1-3]         link/ens4
               mtu, running: actual 1500, desired 9000 (as applied)

        WILL BE LOST AT REBOOT: in effect, but no longer written down -----------------------------------
         ~ n2             file /etc/x
               content, persisted: actual absent, desired 9000 (as applied)

        UNKNOWN: could not be found out -----------------------------------------------------------------
         ? n2             sysctl/a.b
               value, running: actual unknown (the read ran past its time limit), desired 9000 (as applied)

        NOT COMPARED ------------------------------------------------------------------------------------
         ? n9 the whole target
               n9 is not reachable at 192.0.2.9: connection refused

        4 attributes differ from the spec.
        next: railwright plan inventories/lab
        ");
    }

    #[test]
    fn what_is_accepted_stands_apart_and_what_was_counts_again() {
        let text = render_drift_screen(&accepted(false));
        insta::assert_snapshot!(&text[text.find("ACCEPTED").unwrap()..text.find("NOT COMPARED").unwrap()], @r"
        ACCEPTED: known, and no drift until the day is over ---------------------------------------------
         ~ n[1-3]         link/ens4
               mtu, running: actual 1500, desired 9000 (as applied)
                 accepted by ops until 2026-12-31: new cables
        ");
        assert!(
            text.contains("\n1 attribute differs from the spec. 3 attributes accepted.\n"),
            "{text}"
        );
        let over = render_drift_screen(&accepted(true));
        assert!(
            !over.contains("ACCEPTED")
                && over.contains("until 2026-12-31, which is over: new cables"),
            "{over}"
        );
    }

    /// The names of fields come from the cluster as they are.
    #[test]
    fn the_name_of_an_attribute_begins_no_line_and_moves_no_cursor() {
        let mut report = report();
        let hostile = "data.\u{1b}[2J\n::error::x\r\u{9b}";
        report.findings[0].attribute = hostile.to_owned();
        report.findings[0].address.attribute = Some(hostile.to_owned());
        report.last_known = vec![LastKnown {
            address: report.findings[0].address.clone(),
            plane: Plane::Running,
            first: String::new(),
            last: String::new(),
        }];
        let text = render_drift_screen(&report);
        assert!(
            text.contains("::error::x") && !text.lines().any(|line| line.starts_with("::")),
            "{text}"
        );
        assert!(!text.contains(['\u{1b}', '\r', '\u{9b}']), "{text:?}");
    }

    #[test]
    fn ages_are_told_and_do_not_part_what_is_identical() {
        let mut report = report();
        for (finding, hours) in report.findings.iter_mut().zip([0, 3, 50, 3]) {
            finding.seen = Some(FindingAge {
                first: String::new(),
                last: String::new(),
                age_s: hours * 3600,
            });
        }
        report.last_known = vec![LastKnown {
            address: "host/n9/link/ens4#mtu".parse().unwrap(),
            plane: Plane::Running,
            first: "2025-12-30T00:00:00Z".into(),
            last: "2025-12-31T21:00:00Z".into(),
        }];
        let text = render_drift_screen(&report);
        let lines = |word: &str| {
            text.lines()
                .filter(|line| line.contains(word))
                .map(str::trim)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lines("mtu, running: "),
            ["mtu, running: actual 1500, desired 9000 (as applied)   since 0 min to 2 d"]
        );
        assert_eq!(
            lines("content, persisted"),
            ["content, persisted: actual absent, desired 9000 (as applied)   since 3 h"]
        );
        assert_eq!(
            lines("last seen"),
            ["? n9             link/ens4#mtu, running   since 2 d, last seen 3 h ago"]
        );
    }

    #[test]
    fn outliers_are_told_and_are_no_drift() {
        let report = DriftReport {
            findings: vec![],
            not_compared: vec![],
            outliers: vec![outlier()],
            ..report()
        };
        assert!(
            render_drift_screen(&report)
                .contains("\n . kernel: 6.1.0-18 on gpu[01-15], 6.1.0-17 on gpu16\n\nNo drift.\n"),
            "{}",
            render_drift_screen(&report)
        );
        assert!(!report.has_drift());
    }

    #[test]
    fn nothing_found_is_one_line_and_json_says_whether_it_drifted() {
        let none = DriftReport {
            findings: vec![],
            not_compared: vec![],
            ..report()
        };
        assert!(render_drift_screen(&none).ends_with("\nNo drift.\n"));
        let value: serde_json::Value =
            serde_json::from_str(&crate::drift::render_drift_json(&report())).unwrap();
        assert_eq!(
            (value["drift"].as_bool(), value["incomplete"].as_bool()),
            (Some(true), Some(true))
        );
        assert_eq!(value["findings"][0]["actual"]["is"], 1500);
    }
}
