//! Since when a finding is there: kept from look to look. What is seen again keeps its first time;
//! what is gone is forgotten; what could not be looked at this time is neither.

use super::finding::{DriftReport, FindingAge, LastKnown};
use railwright_base::{Address, Target};
use railwright_state::sightings::{Sighting, Sightings};
use std::collections::BTreeSet;

/// Puts ages on the findings of a report; what comes back is to be remembered.
pub fn set_finding_ages(report: &mut DriftReport, known: &Sightings) -> Sightings {
    let mut next = keep_unread_sightings(report, known);
    report.last_known = next
        .by_attribute
        .iter()
        .map(|((address, plane), sighting)| last_known(address, *plane, sighting))
        .collect();
    let now = report.checked_at.clone();
    for finding in &mut report.findings {
        let key = (finding.address.clone(), finding.plane);
        let first_seen = known
            .by_attribute
            .get(&key)
            .map_or_else(|| now.clone(), |sighting| sighting.first_seen.clone());
        let sighting = Sighting {
            first_seen,
            last_seen: now.clone(),
        };
        finding.seen = Some(FindingAge {
            first: sighting.first_seen.clone(),
            last: now.clone(),
            age_s: compute_seconds_between(&sighting.first_seen, &now),
        });
        next.by_attribute.insert(key, sighting);
    }
    next
}

/// What is remembered of targets that gave no answer and of resources that could not be compared.
fn keep_unread_sightings(report: &DriftReport, known: &Sightings) -> Sightings {
    let subjects: BTreeSet<&str> = report
        .not_compared
        .iter()
        .map(|unread| unread.subject.as_str())
        .collect();
    let silent: BTreeSet<Target> = subjects
        .iter()
        .filter_map(|subject| subject.parse().ok())
        .collect();
    let unread = |address: &Address| {
        let resource = Address {
            attribute: None,
            ..address.clone()
        };
        silent.contains(&address.target) || subjects.contains(resource.to_string().as_str())
    };
    let kept = known
        .by_attribute
        .iter()
        .filter(|((address, _), _)| unread(address));
    Sightings {
        by_attribute: kept
            .map(|(key, sighting)| (key.clone(), sighting.clone()))
            .collect(),
    }
}

fn last_known(
    address: &Address,
    plane: railwright_resource::Plane,
    sighting: &Sighting,
) -> LastKnown {
    LastKnown {
        address: address.clone(),
        plane,
        first: sighting.first_seen.clone(),
        last: sighting.last_seen.clone(),
    }
}

/// From one time to a later one; 0 when the clock went back, or a time is none.
pub fn compute_seconds_between(from: &str, to: &str) -> u64 {
    let at = |text: &str| {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_second)
    };
    match (at(from), at(to)) {
        (Some(from), Some(to)) => u64::try_from(to.saturating_sub(from)).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::DiffFunctions;
    use crate::{DriftFinding, DriftReason, Occasion, compute_drift};
    use railwright_plan::{LastApplied, UnknownFinding};
    use railwright_resource::{Plane, Reading};

    /// A look at this hour that found these attributes of host n1 and n2, and could not compare
    /// these subjects.
    fn look(hour: u32, actual: &[&str], unread: &[&str]) -> DriftReport {
        let occasion = Occasion {
            checked_at: format!("2026-01-01T{hour:02}:00:00Z"),
            ..Occasion::default()
        };
        let mut report = compute_drift(
            &occasion,
            &[],
            &Default::default(),
            DiffFunctions {
                diff: &|_| panic!("no resources"),
                left: &|_, _| panic!("no resources"),
            },
            &LastApplied::default(),
        );
        report.not_compared = unread
            .iter()
            .map(|subject| UnknownFinding::new(*subject, "why"))
            .collect();
        report.findings = actual
            .iter()
            .map(|address| DriftFinding {
                address: address.parse().unwrap(),
                attribute: "value".into(),
                plane: Plane::Running,
                desired: Reading::is(1),
                last_applied: None,
                actual: Reading::is(hour),
                reason: DriftReason::ChangedOutside,
                places: vec![],
                seen: None,
                accepted: None,
                by: None,
            })
            .collect();
        report
    }

    fn ages(report: &DriftReport) -> Vec<u64> {
        report
            .findings
            .iter()
            .map(|finding| finding.seen.as_ref().unwrap().age_s / 3600)
            .collect()
    }

    const A: &str = "host/n1/sysctl/a#value";
    const B: &str = "host/n2/sysctl/b#value";

    #[test]
    fn what_stays_grows_old_and_what_goes_away_is_forgotten() {
        let mut known = Sightings::default();
        let mut told = Vec::new();
        for mut report in [
            look(1, &[A], &[]),
            look(4, &[A, B], &[]),
            look(5, &[B], &[]),
            look(6, &[A, B], &[]),
        ] {
            known = set_finding_ages(&mut report, &known);
            told.push(ages(&report));
        }
        assert_eq!(told, [vec![0], vec![3, 0], vec![1], vec![0, 2]]);
    }

    #[test]
    fn what_could_not_be_looked_at_is_neither_gone_nor_seen() {
        for unread in ["host/n2", "host/n2/sysctl/b"] {
            let mut known = set_finding_ages(&mut look(1, &[A, B], &[]), &Sightings::default());
            let mut silent = look(2, &[A], &[unread]);
            known = set_finding_ages(&mut silent, &known);
            assert_eq!(
                (silent.last_known.len(), silent.last_known[0].last.as_str()),
                (1, "2026-01-01T01:00:00Z"),
                "{unread}"
            );
            let mut again = look(5, &[A, B], &[]);
            let known = set_finding_ages(&mut again, &known);
            assert_eq!(
                (
                    ages(&again),
                    again.last_known.len(),
                    known.by_attribute.len()
                ),
                (vec![4, 4], 0, 2),
                "{unread}"
            );
        }
    }

    #[test]
    fn a_clock_that_went_back_gives_no_age() {
        let known = set_finding_ages(&mut look(5, &[A], &[]), &Sightings::default());
        let mut earlier = look(1, &[A], &[]);
        set_finding_ages(&mut earlier, &known);
        assert_eq!(earlier.findings[0].seen.as_ref().unwrap().age_s, 0);
        assert_eq!(compute_seconds_between("never", "2026-01-01T00:00:00Z"), 0);
    }
}
