//! The screen of `drift`: grouped by why, folded by node-set; per attribute and plane what is wanted, what was applied
//! last and what is found. Text without colour, and JSON.

use super::document::{self, DriftDocument};
use super::unread;
use super::value::{differ_unseen, reading};
use super::wrap::rule;
use crate::base::text::{clean_line, counted};
use crate::base::{TargetKind, nodeset};
use crate::drift::{DriftFinding, DriftReason, DriftReport};
use indexmap::IndexMap;

/// The whole screen.
pub fn screen(report: &DriftReport) -> String {
    let inventory = &report.inventory.path;
    let targets = counted(report.targets.len(), "target");
    let mut out = format!("drift {inventory}   {} resources on {targets}   {}\n", report.resources, report.inventory.words());
    let mut groups: IndexMap<DriftReason, Vec<&DriftFinding>> = IndexMap::new();
    for finding in &report.findings {
        groups.entry(finding.reason).or_default().push(finding);
    }
    for (reason, findings) in &groups {
        out.push_str(&rule(title(*reason)));
        out.push_str(&entries(findings));
    }
    if !report.no_longer_wished.is_empty() {
        out.push_str(&rule("NO LONGER IN THE SPEC: applied, and still there; a plan takes it back"));
        let mut folded: IndexMap<String, Vec<&str>> = IndexMap::new();
        for address in &report.no_longer_wished {
            folded.entry(address.within_target()).or_default().push(&address.target.name);
        }
        out.extend(folded.into_iter().map(|(resource, who)| format!(" - {:<14} {}\n", nodeset::fold(&who), clean_line(&resource))));
    }
    if !report.not_judged.is_empty() {
        out.push_str(&rule("NOT JUDGED"));
        out.push_str(&unread::entries(&report.not_judged));
    }
    out.push_str(&conclusion(report, inventory));
    out
}

/// The same as JSON.
pub fn json(report: &DriftReport) -> String {
    document::text(&DriftDocument::of(report))
}

fn title(reason: DriftReason) -> &'static str {
    match reason {
        DriftReason::ChangedOutside => "CHANGED OUTSIDE: somebody else changed it since it was applied",
        DriftReason::WillBeLostAtReboot => "WILL BE LOST AT REBOOT: in effect, but no longer written down",
        DriftReason::OwedRestart => "OWED RESTART: written down, but not in effect yet",
        DriftReason::SpecNewer => "SPEC NEWER THAN APPLIED: no drift of the target, apply was not run",
        DriftReason::Unknown => "UNKNOWN: could not be found out",
    }
}

/// One resource is one entry, its attributes are rows; hosts with the same rows share an entry.
fn entries(findings: &[&DriftFinding]) -> String {
    let mut by_resource: IndexMap<(String, String), Vec<&DriftFinding>> = IndexMap::new();
    for finding in findings {
        let target = &finding.address.target;
        let who = if target.kind == TargetKind::Host { target.name.clone() } else { target.to_string() };
        let mut resource = finding.address.clone();
        resource.attribute = None;
        by_resource.entry((who, resource.within_target())).or_default().push(finding);
    }
    let mut folded: IndexMap<(String, String), Vec<String>> = IndexMap::new();
    for ((who, resource), members) in by_resource {
        let rows: String = members.iter().map(|finding| row(finding)).collect();
        folded.entry((resource, rows)).or_default().push(who);
    }
    let mark = if findings.iter().all(|f| f.reason == DriftReason::Unknown) { '?' } else { '~' };
    folded.into_iter().map(|((resource, rows), who)| format!(" {mark} {:<14} {resource}\n{rows}", nodeset::fold(&who))).collect()
}

/// `mtu, running: found 1500, applied 9000, wanted 9000`; what is equal is said once, long values get lines of their own.
fn row(finding: &DriftFinding) -> String {
    let found = reading(&finding.found, 44);
    let wanted = reading(&finding.wanted, 44);
    let last = match &finding.last_applied {
        None => "never applied".to_owned(),
        Some(last) if *last == finding.wanted => "as applied".to_owned(),
        Some(last) if differ_unseen(last, &finding.wanted) => "another was applied".to_owned(),
        Some(last) => format!("applied {}", reading(last, 44)),
    };
    let place = finding.places.first().map_or(String::new(), |p| format!("   {p}"));
    let head = format!("       {}, {}: ", finding.attribute, finding.plane.word());
    if differ_unseen(&finding.found, &finding.wanted) {
        return format!("{head}differs ({}; {last}){place}\n", crate::base::seal::VEIL);
    }
    let tail = format!("found {found}, wanted {wanted} ({last}){place}");
    if (head.chars().count() + tail.chars().count()) <= 100 {
        return format!("{head}{tail}\n");
    }
    format!("{}\n         found   {found}\n         wanted  {wanted}\n         ({last}){place}\n", head.trim_end())
}

fn conclusion(report: &DriftReport, inventory: &str) -> String {
    let drifted = report.findings.iter().filter(|f| f.reason != DriftReason::Unknown).count();
    let gone = report.no_longer_wished.len();
    if gone > 0 && drifted == 0 {
        return format!("\n{} no longer in the spec.\nnext: railwright plan {inventory}\n", counted(gone, "applied resource"));
    }
    match (drifted, report.is_incomplete()) {
        (0, false) => "\nNo drift.\n".to_owned(),
        (0, true) => format!("\nNo drift in what could be read.\nnext: mend what could not be read, then railwright drift {inventory}\n"),
        (count, _) => format!("\n{} not as the spec wants.\nnext: railwright plan {inventory}\n", counted(count, "attribute")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Address;
    use crate::drift::finding::FORMAT_VERSION;
    use crate::plan::{InventoryOrigin, UnknownFinding};
    use crate::resource::{Plane, Reading};

    fn finding(host: &str, kind: &str, name: &str, attribute: &str, plane: Plane, reason: DriftReason, found: Reading) -> DriftFinding {
        DriftFinding {
            address: Address::host(host, kind, name).with_attribute(attribute),
            attribute: attribute.into(),
            plane,
            wanted: Reading::is(9000),
            last_applied: if reason == DriftReason::SpecNewer { None } else { Some(Reading::is(9000)) },
            found,
            reason,
            places: vec![],
        }
    }

    fn report() -> DriftReport {
        let mut findings: Vec<DriftFinding> = (1..=3)
            .map(|i| finding(&format!("n{i}"), "link", "ens4", "mtu", Plane::Running, DriftReason::ChangedOutside, Reading::is(1500)))
            .collect();
        findings.push(finding("n2", "file", "/etc/x", "content", Plane::Persisted, DriftReason::WillBeLostAtReboot, Reading::Absent));
        findings.push(finding(
            "n2",
            "sysctl",
            "a.b",
            "value",
            Plane::Running,
            DriftReason::Unknown,
            Reading::Unknown("the read ran past its time limit".into()),
        ));
        let not_judged = vec![UnknownFinding::new("host/n9", "n9 is not reachable at 192.0.2.9: connection refused")];
        let targets = ["n1", "n2", "n3", "n9"].map(crate::base::Target::host).into();
        let inventory = InventoryOrigin { path: "inventories/lab".into(), ..InventoryOrigin::default() };
        DriftReport { format_version: FORMAT_VERSION, inventory, no_longer_wished: vec![], findings, not_judged, targets, resources: 41 }
    }

    #[test]
    fn folded_and_grouped_within_100_columns() {
        let text = screen(&report());
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        insta::assert_snapshot!(text, @r"
        drift inventories/lab   41 resources on 4 targets   not under version control

        CHANGED OUTSIDE: somebody else changed it since it was applied ----------------------------------
         ~ n[1-3]         link/ens4
               mtu, running: found 1500, wanted 9000 (as applied)

        WILL BE LOST AT REBOOT: in effect, but no longer written down -----------------------------------
         ~ n2             file/%2Fetc%2Fx
               content, persisted: found absent, wanted 9000 (as applied)

        UNKNOWN: could not be found out -----------------------------------------------------------------
         ? n2             sysctl/a.b
               value, running: found unknown (the read ran past its time limit), wanted 9000 (as applied)

        NOT JUDGED --------------------------------------------------------------------------------------
         ? n9 the whole target
               n9 is not reachable at 192.0.2.9: connection refused

        4 attributes not as the spec wants.
        next: railwright plan inventories/lab
        ");
    }

    #[test]
    fn nothing_found_is_one_line_and_json_says_whether_it_drifted() {
        let none = DriftReport { findings: vec![], not_judged: vec![], ..report() };
        assert!(screen(&none).ends_with("\nNo drift.\n"));
        let value: serde_json::Value = serde_json::from_str(&json(&report())).unwrap();
        assert_eq!((value["drift"].as_bool(), value["incomplete"].as_bool()), (Some(true), Some(true)));
        assert_eq!(value["findings"][0]["found"]["is"], 1500);
    }
}
