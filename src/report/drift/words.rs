//! Words of findings that all documents share.

use crate::value::{differ_unseen, format_reading};
use indexmap::IndexMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::{clean_line, format_count};
use railwright_base::{TargetKind, seal};
use railwright_drift::outliers::{Outlier, OutlierValue};
use railwright_drift::{DriftFinding, DriftReason, DriftReport};

/// A node-set longer than this is shown by its count.
const HOSTS: usize = 200;
/// The most characters of a value, and the most values, of an outlier.
const VALUE: usize = 60;
const VALUES: usize = 5;

/// The reason as a word for programs, and its headline.
pub fn describe_drift_reason(reason: DriftReason) -> (&'static str, &'static str) {
    match reason {
        DriftReason::ChangedOutside => ("changed_outside", "Changed outside"),
        DriftReason::WillBeLostAtReboot => ("will_be_lost_at_reboot", "Will be lost at reboot"),
        DriftReason::PendingRestart => ("pending_restart", "Restart pending"),
        DriftReason::NotReady => ("not_ready", "Not ready"),
        DriftReason::NotGivenBack => ("not_given_back", "Not given back"),
        DriftReason::SpecNewer => ("spec_newer", "Spec newer than applied"),
        DriftReason::Unknown => ("unknown", "Unknown"),
    }
}

/// What a reason means, after its headline.
pub fn explain_drift_reason(reason: DriftReason) -> &'static str {
    match reason {
        DriftReason::ChangedOutside => "somebody else changed it since it was applied",
        DriftReason::WillBeLostAtReboot => "in effect, but no longer written down",
        DriftReason::PendingRestart => "written down, but not in effect yet",
        DriftReason::NotReady => "what becomes ready by itself, and is not ready",
        DriftReason::NotGivenBack => {
            "a run of ours took it out of service, and no run has given it back"
        }
        DriftReason::SpecNewer => "no drift of the target, apply was not run",
        DriftReason::Unknown => "could not be found out",
    }
}

/// What was applied last, in words that stand in brackets.
pub fn describe_last_applied(finding: &DriftFinding, width: usize) -> String {
    let applied = match &finding.last_applied {
        None if finding.reason == DriftReason::NotReady => "no run has seen it so".to_owned(),
        None => "never applied".to_owned(),
        Some(last) if *last == finding.desired => "as applied".to_owned(),
        Some(last) if differ_unseen(last, &finding.desired) => "another was applied".to_owned(),
        Some(last) => format!("applied {}", format_reading(last, width)),
    };
    match &finding.by {
        Some(by) => format!("{applied}; {}", clean_line(by.words())),
        None => applied,
    }
}

/// `actual 1500, desired 9000 (as applied)`, each value cut at `width` characters; secrets are not
/// shown.
pub fn describe_drift_values(finding: &DriftFinding, width: usize) -> String {
    let applied = describe_last_applied(finding, width);
    if differ_unseen(&finding.actual, &finding.desired) {
        return format!("differs ({}; {applied})", seal::VEIL);
    }
    format!(
        "actual {}, desired {} ({applied})",
        format_reading(&finding.actual, width),
        format_reading(&finding.desired, width)
    )
}

/// `since 3 h`, `since 3 h to 2 d` where they differ, `new` for what was seen now for the first
/// time; nothing where that is not kept.
pub fn format_finding_ages(members: &[&DriftFinding]) -> Option<String> {
    let ages = members
        .iter()
        .filter_map(|member| Some(member.seen.as_ref()?.age_s));
    let (youngest, oldest) = (ages.clone().min()?, ages.max()?);
    let (youngest, oldest) = (format_age(youngest), format_age(oldest));
    Some(match youngest == oldest {
        true if oldest == "0 min" => "new".to_owned(),
        true => format!("since {oldest}"),
        false => format!("since {youngest} to {oldest}"),
    })
}

/// Seconds as people say them.
pub fn format_age(seconds: u64) -> String {
    match seconds / 60 {
        minutes @ 0..=119 => format!("{minutes} min"),
        minutes @ 120..=2879 => format!("{} h", minutes / 60),
        minutes => format!("{} d", minutes / 1440),
    }
}

/// `accepted by ops until 2026-12-31: why`; says so where the day is over.
pub fn describe_acceptance(finding: &DriftFinding) -> Option<String> {
    let accepted = finding
        .accepted
        .as_ref()
        .filter(|_| !finding.is_unknown())?;
    let over = if accepted.expired {
        ", which is over"
    } else {
        ""
    };
    Some(clean_line(&format!(
        "accepted by {} until {}{over}: {}",
        accepted.owner, accepted.until, accepted.reason
    )))
}

/// `kernel: 6.1.0-18 on gpu[01-15], 6.1.0-17 on gpu16`.
pub fn describe_outlier(outlier: &Outlier) -> String {
    let all: Vec<String> = std::iter::once(&outlier.usual)
        .chain(&outlier.others)
        .take(VALUES)
        .map(describe_outlier_value)
        .collect();
    let more = if outlier.others.len() >= VALUES {
        ", and more"
    } else {
        ""
    };
    clean_line(&format!("{}: {}{more}", outlier.what, all.join(", ")))
}

fn describe_outlier_value(held: &OutlierValue) -> String {
    let hosts = if held.hosts.len() <= HOSTS {
        held.hosts.clone()
    } else {
        format_count(held.count, "host")
    };
    format!("{} on {hosts}", format_reading(&held.value, VALUE))
}

/// A target's name on a screen: hosts by their name alone.
pub fn format_finding_target(finding: &DriftFinding) -> String {
    let target = &finding.address.target;
    if target.kind == TargetKind::Host {
        target.name.to_string()
    } else {
        target.to_string()
    }
}

/// The findings of many targets that say the same: shown once.
pub struct FoldedFindings<'a> {
    /// One of them.
    pub finding: &'a DriftFinding,
    /// All of them.
    pub members: Vec<&'a DriftFinding>,
}

impl FoldedFindings<'_> {
    /// The targets as a node-set.
    pub fn targets(&self) -> String {
        fold_node_set(
            &self
                .members
                .iter()
                .map(|member| format_finding_target(member))
                .collect::<Vec<_>>(),
        )
    }
}

/// Findings folded over targets, in the order of their first members.
pub fn fold_equal_findings(findings: &[DriftFinding]) -> Vec<FoldedFindings<'_>> {
    let mut folded: IndexMap<String, FoldedFindings<'_>> = IndexMap::new();
    for finding in findings {
        // Values are compared in full, not as a screen cuts them.
        let values = serde_json::to_string(&(
            &finding.actual,
            &finding.desired,
            &finding.last_applied,
            &finding.accepted,
        ))
        .unwrap_or_default();
        let key = format!(
            "{:?} {} {} {values}",
            finding.reason,
            finding.address.within_target(),
            finding.plane.word()
        );
        folded
            .entry(key)
            .or_insert(FoldedFindings {
                finding,
                members: Vec::new(),
            })
            .members
            .push(finding);
    }
    folded.into_values().collect()
}

/// What left the spec, with the targets that have it.
pub fn collect_undeclared_resources(report: &DriftReport) -> IndexMap<String, Vec<&str>> {
    let mut folded: IndexMap<String, Vec<&str>> = IndexMap::new();
    for address in &report.removed_from_spec {
        folded
            .entry(address.within_target())
            .or_default()
            .push(&address.target.name);
    }
    folded
}

/// The one line that says how it stands.
pub fn format_drift_summary(report: &DriftReport) -> String {
    let drifted = report
        .findings
        .iter()
        .filter(|finding| finding.is_drift())
        .count();
    let gone = report.removed_from_spec.len();
    let accepted = match report
        .findings
        .iter()
        .filter(|finding| finding.is_accepted())
        .count()
    {
        0 => String::new(),
        count => format!(" {} accepted.", format_count(count, "attribute")),
    };
    let stands = match (drifted, gone, report.is_partly_unread()) {
        (0, 0, false) => "No drift.".to_owned(),
        (0, 0, true) => "No drift in what could be read.".to_owned(),
        (0, gone, _) => format!(
            "{} no longer in the spec.",
            format_count(gone, "applied resource")
        ),
        (1, ..) => "1 attribute differs from the spec.".to_owned(),
        (count, ..) => format!("{count} attributes differ from the spec."),
    };
    format!("{stands}{accepted}")
}

/// What stands for itself there.
const OF_PATHS: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A path of this machine as a relative reference of RFC 3986: everything but unreserved characters
/// and `/` is encoded byte by byte.
pub fn encode_relative_uri(path: &str) -> String {
    utf8_percent_encode(path, &OF_PATHS).to_string()
}
