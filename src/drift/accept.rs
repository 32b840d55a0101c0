//! Findings that the spec accepts for a while. They are reported, and count for nothing until the
//! day is over.

use super::finding::{DriftAcceptance, DriftFinding, DriftReport};
use railwright_base::Target;
use railwright_knowledge::spec::acceptance::AcceptancePattern;
use railwright_knowledge::spec::model::Acceptance;

/// Marks what is accepted; gives back the places in the list of acceptances that match no finding,
/// although all that they could match was compared.
pub fn apply_acceptances(report: &mut DriftReport, acceptances: &[Acceptance]) -> Vec<usize> {
    // Patterns were checked with the spec.
    let rules: Vec<Option<AcceptancePattern>> = acceptances
        .iter()
        .map(|acceptance| AcceptancePattern::of(acceptance).ok())
        .collect();
    let mut used = vec![false; rules.len()];
    // Both are days of UTC as ISO 8601 writes them, so that their order is that of their letters.
    let today = report.checked_at.get(..10).unwrap_or_default().to_owned();
    for finding in &mut report.findings {
        let mut best: Option<DriftAcceptance> = None;
        for (index, acceptance) in acceptances.iter().enumerate() {
            if !rules[index]
                .as_ref()
                .is_some_and(|pattern| is_accepted_by(pattern, acceptance, finding))
            {
                continue;
            }
            used[index] = true;
            let accepted = DriftAcceptance {
                reason: acceptance.reason.clone(),
                owner: acceptance.owner.clone(),
                until: acceptance.until.clone(),
                expired: acceptance.until < today,
            };
            if best.as_ref().is_none_or(|best| best.until < accepted.until) {
                best = Some(accepted);
            }
        }
        finding.accepted = best;
    }
    let unmatched = |index: &usize| {
        !used[*index]
            && rules[*index]
                .as_ref()
                .is_some_and(|pattern| !is_unread(report, pattern))
    };
    (0..rules.len()).filter(unmatched).collect()
}

fn is_accepted_by(
    pattern: &AcceptancePattern,
    acceptance: &Acceptance,
    finding: &DriftFinding,
) -> bool {
    let plane = acceptance.plane.is_none_or(|plane| plane == finding.plane);
    plane && finding.attribute == acceptance.attribute && pattern.covers(&finding.address)
}

/// True when something that the pattern is about could not be compared.
fn is_unread(report: &DriftReport, pattern: &AcceptancePattern) -> bool {
    report.not_compared.iter().any(|unread| {
        let target = unread
            .subject
            .parse::<Target>()
            .is_ok_and(|target| pattern.is_about(&target));
        target
            || unread
                .subject
                .parse()
                .is_ok_and(|address| pattern.covers(&address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::DiffFunctions;
    use crate::{DriftReason, Occasion, compute_drift};
    use railwright_plan::{LastApplied, UnknownFinding};
    use railwright_resource::{Plane, Reading};

    fn report(actual: &[(&str, Plane, DriftReason)]) -> DriftReport {
        let occasion = Occasion {
            checked_at: "2026-06-15T23:59:59Z".into(),
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
        report.findings = actual
            .iter()
            .map(|(address, plane, reason)| DriftFinding {
                address: address.parse().unwrap(),
                attribute: address.rsplit('#').next().unwrap().into(),
                plane: *plane,
                desired: Reading::is(1),
                last_applied: None,
                actual: Reading::is(2),
                reason: *reason,
                places: vec![],
                seen: None,
                accepted: None,
                by: None,
            })
            .collect();
        report
    }

    fn rule(address: &str, until: &str) -> Acceptance {
        let (address, attribute) = address.split_once('#').unwrap();
        Acceptance {
            address: Some(address.into()),
            attribute: attribute.into(),
            until: until.into(),
            reason: "being exchanged".into(),
            owner: "ops".into(),
            ..Acceptance::default()
        }
    }

    const MTU: (&str, Plane, DriftReason) = (
        "host/n1/link/ens4#mtu",
        Plane::Running,
        DriftReason::ChangedOutside,
    );

    #[test]
    fn an_acceptance_counts_to_the_end_of_its_day() {
        for (until, expired, drift) in [
            ("2026-06-15", false, false),
            ("2026-06-14", true, true),
            ("2027-01-01", false, false),
        ] {
            let mut report = report(&[MTU]);
            assert!(
                apply_acceptances(&mut report, &[rule("host/n1/link/*#mtu", until)]).is_empty()
            );
            let accepted = report.findings[0].accepted.clone().unwrap();
            assert_eq!(
                (accepted.expired, report.has_drift()),
                (expired, drift),
                "{until}"
            );
        }
    }

    #[test]
    fn of_two_the_one_that_lasts_longer_counts() {
        let mut report = report(&[MTU]);
        apply_acceptances(
            &mut report,
            &[
                rule("host/*/link/*#mtu", "2026-07-01"),
                rule("host/n1/link/ens4#mtu", "2026-01-01"),
            ],
        );
        assert!(!report.has_drift());
        assert_eq!(
            report.findings[0].accepted.as_ref().unwrap().until,
            "2026-07-01"
        );
    }

    #[test]
    fn attribute_and_plane_must_be_those() {
        for (address, plane, drift) in [
            ("host/n1/link/ens4#mtu", None, false),
            ("host/n1/link/ens4#mtu", Some(Plane::Running), false),
            ("host/n1/link/ens4#mtu", Some(Plane::Persisted), true),
            ("host/n1/link/ens4#up", None, true),
        ] {
            let mut report = report(&[MTU]);
            let unmatched = apply_acceptances(
                &mut report,
                &[Acceptance {
                    plane,
                    ..rule(address, "2026-12-31")
                }],
            );
            assert_eq!(
                (report.has_drift(), unmatched.len()),
                (drift, usize::from(drift)),
                "{address} {plane:?}"
            );
        }
    }

    #[test]
    fn what_could_not_be_found_out_is_never_accepted_away() {
        let mut report = report(&[(MTU.0, MTU.1, DriftReason::Unknown)]);
        assert!(
            apply_acceptances(&mut report, &[rule("host/n1/link/ens4#mtu", "2026-12-31")])
                .is_empty()
        );
        assert!(report.is_incomplete() && !report.has_drift() && !report.findings[0].is_accepted());
    }

    #[test]
    fn a_rule_is_not_blamed_for_what_was_not_evaluated() {
        for (subject, unmatched) in [
            ("host/n1", 0),
            ("host/n1/link/ens4", 0),
            ("host/n2", 1),
            ("host/n1/link/ens5", 1),
        ] {
            let mut report = report(&[]);
            report.not_compared = vec![UnknownFinding::new(subject, "why")];
            assert_eq!(
                apply_acceptances(&mut report, &[rule("host/n1/link/ens4#mtu", "2026-12-31")])
                    .len(),
                unmatched,
                "{subject}"
            );
        }
    }
}
