//! Compares wishes, what was applied last, and what the targets say. Pure.
//!
//! What was applied last is shown per attribute by judging the last wish against the same answers:
//! its *wanted* side is what we left behind then. Since every apply ends with a reading that
//! matched, a difference from it was made by somebody else, unless it still waits for its restart.

use super::finding::{DriftFinding, DriftReason, DriftReport, FORMAT_VERSION, Occasion};
use railwright_base::{Address, Reason, Target};
use railwright_plan::{LastApplied, UnknownFinding};
use railwright_resource::readability::{UNREADABLE_BODY, is_readable};
use railwright_resource::{
    Assessment, Attribute, DesiredResource, Plane, Provenance, Reading, kind_named,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a kind makes of a wish with the answers of its target; an error says why it cannot be
/// judged.
pub type Assess<'a> = &'a dyn Fn(&DesiredResource) -> Result<Assessment, Reason>;

/// What a kind makes of what was applied last, where this is its wish now.
pub type AssessLeft<'a> =
    &'a dyn Fn(&DesiredResource, &DesiredResource) -> Result<Assessment, Reason>;

/// How wishes are judged.
#[derive(Clone, Copy)]
pub struct DiffFunctions<'a> {
    /// The wishes of now.
    pub assess: Assess<'a>,
    /// What was applied last, with the wish of now: what it left behind.
    pub left: AssessLeft<'a>,
}

/// All findings for the wishes of an inventory; `silent` are the targets that gave no answer, with
/// the reason.
pub fn compute_drift(
    occasion: &Occasion,
    wishes: &[DesiredResource],
    silent: &BTreeMap<Target, UnknownFinding>,
    judge: DiffFunctions<'_>,
    last: &LastApplied,
) -> DriftReport {
    let mut targets: BTreeSet<Target> = silent.keys().cloned().collect();
    targets.extend(wishes.iter().map(|wish| wish.address.target.clone()));
    let applied: BTreeSet<&Target> = last
        .resources
        .keys()
        .map(|address| &address.target)
        .collect();
    let mut report = DriftReport {
        format_version: FORMAT_VERSION,
        cluster: occasion.cluster.clone(),
        checked_at: occasion.checked_at.clone(),
        inventory: occasion.inventory.clone(),
        never_applied: targets
            .iter()
            .filter(|target| !applied.contains(target))
            .cloned()
            .collect(),
        no_longer_wished: no_longer_wished(wishes, silent, last),
        not_judged: silent.values().cloned().collect(),
        targets: targets.into_iter().collect(),
        ..DriftReport::default()
    };
    for wish in wishes
        .iter()
        .filter(|wish| !silent.contains_key(&wish.address.target))
    {
        report_resource(&mut report, wish, judge, last);
    }
    in_order(&mut report.findings);
    report
}

/// Adds the findings on one resource to the report, or why it has none.
fn report_resource(
    report: &mut DriftReport,
    wish: &DesiredResource,
    judge: DiffFunctions<'_>,
    last: &LastApplied,
) {
    let assessment = match (judge.assess)(wish) {
        Ok(_) if !is_applied_readable(wish, last) => {
            let not_judged = UnknownFinding::new(wish.address.to_string(), UNREADABLE_BODY);
            report.not_judged.push(not_judged);
            return;
        }
        Ok(assessment) => assessment,
        Err(reason) => {
            report
                .not_judged
                .push(UnknownFinding::new(wish.address.to_string(), reason));
            return;
        }
    };
    if let Some(step) = &assessment.known_after {
        let reason = format!("cannot be judged before {step} is there");
        report
            .not_judged
            .push(UnknownFinding::new(wish.address.to_string(), reason));
        return;
    }
    report.resources += 1;
    report.judged.push(wish.address.clone());
    let applied = last_applied(wish, judge.left, last);
    report
        .findings
        .extend(of_resource(wish, &assessment, applied.as_ref()));
}

/// Reasons first, then addresses.
pub(super) fn in_order(findings: &mut [DriftFinding]) {
    findings.sort_by(|a, b| (a.reason, &a.address, a.plane).cmp(&(b.reason, &b.address, b.plane)));
}

/// Remembered resources that no wish is about; of a target that gave no answer nothing is said.
fn no_longer_wished(
    wishes: &[DesiredResource],
    silent: &BTreeMap<Target, UnknownFinding>,
    last: &LastApplied,
) -> Vec<Address> {
    let gone = last
        .not_wished(wishes)
        .map(|(address, _)| address)
        .filter(|address| !silent.contains_key(&address.target));
    gone.cloned().collect()
}

/// False where this version cannot read what was applied last: what it left behind is unknown.
fn is_applied_readable(wish: &DesiredResource, last: &LastApplied) -> bool {
    let Some(applied) = last.applied(&wish.address) else {
        return true;
    };
    kind_named(&applied.kind).is_none_or(|kind| is_readable(kind, &applied.wish(&wish.address)))
}

/// What was left behind; nothing where it was asked otherwise then, so that the two answers cannot
/// be compared.
fn last_applied(
    wish: &DesiredResource,
    left: AssessLeft<'_>,
    last: &LastApplied,
) -> Option<Assessment> {
    let applied = last.applied(&wish.address)?.wish(&wish.address);
    let asks_alike = kind_named(&wish.kind).is_none_or(|kind| kind.asks_alike(&applied, wish));
    asks_alike.then(|| left(&applied, wish).ok()).flatten()
}

fn of_resource(
    wish: &DesiredResource,
    assessment: &Assessment,
    applied: Option<&Assessment>,
) -> Vec<DriftFinding> {
    let mut out = Vec::new();
    for (name, attribute) in assessment.attributes.iter().chain(&assessment.out_of_reach) {
        // What is not there yet, or is other than wished, is no matter of waiting.
        let is_early = |found: &Reading| {
            attribute.settles && *found == Reading::Absent && !assessment.only_waits()
        };
        for (plane, wanted, found) in attribute
            .differences()
            .into_iter()
            .filter(|(.., found)| !is_early(found))
        {
            let left = applied
                .and_then(|a| a.attributes.get(name))
                .and_then(|a| a.wanted.get(plane))
                .cloned();
            // As it was left is as it is, where only the wish's own input is another one.
            let last = if attribute.input.is_some() {
                applied.map(|_| found.clone())
            } else {
                left
            };
            out.push(DriftFinding {
                address: wish.address.with_attribute(name),
                attribute: name.clone(),
                plane,
                reason: find_drift_reason(assessment, attribute, plane, last.as_ref(), found),
                wanted: wanted.clone(),
                last_applied: last,
                found: found.clone(),
                by: attribute.by.clone().or_else(|| {
                    let input = attribute.input.as_ref()?;
                    Some(Provenance::Note(format!("{input} is another one since")))
                }),
                places: wish.places.clone(),
                seen: None,
                accepted: None,
            });
        }
    }
    out
}

fn find_drift_reason(
    assessment: &Assessment,
    attribute: &Attribute,
    plane: Plane,
    last: Option<&Reading>,
    found: &Reading,
) -> DriftReason {
    if found.is_unknown() {
        return DriftReason::Unknown;
    }
    let met = |plane| {
        attribute.wanted.get(plane).is_some()
            && !attribute.differences().iter().any(|(p, ..)| *p == plane)
    };
    let wanted = attribute.wanted.get(plane);
    if plane == Plane::Running && (assessment.owed || met(Plane::NextBoot)) {
        return DriftReason::PendingRestart;
    }
    match last {
        _ if attribute.settles => DriftReason::NotReady,
        _ if attribute.input.is_some() => DriftReason::SpecNewer,
        None => DriftReason::SpecNewer,
        Some(last) if last == found && Some(last) != wanted => DriftReason::SpecNewer,
        Some(_) if plane != Plane::Running && met(Plane::Running) => {
            DriftReason::WillBeLostAtReboot
        }
        Some(_) => DriftReason::ChangedOutside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_plan::AppliedResource;
    use railwright_resource::Want;
    use serde_json::{Value, json};

    fn link(mtu: u32) -> DesiredResource {
        DesiredResource {
            address: Address::host("n1", "link", "ens4"),
            after: vec![],
            want: Want {
                kind: "link".to_owned(),
                body: json!({ "netdev": "ens4", "mtu": mtu }),
                module: "jumbo-mtu/link".into(),
                places: Vec::new(),
            }
            .into(),
        }
    }

    /// What was applied last is judged as what is wished now.
    fn found(
        wishes: &[DesiredResource],
        silent: &BTreeMap<Target, UnknownFinding>,
        assess: Assess<'_>,
        last: &LastApplied,
    ) -> DriftReport {
        let left = |applied: &DesiredResource, _: &DesiredResource| assess(applied);
        compute_drift(
            &Occasion::default(),
            wishes,
            silent,
            DiffFunctions {
                assess,
                left: &left,
            },
            last,
        )
    }

    fn applied(mtu: u32) -> LastApplied {
        let wish = link(mtu);
        let applied = AppliedResource {
            kind: wish.kind.clone(),
            body: wish.body.clone(),
            digest: wish.digest(),
            module: wish.module.clone(),
            places: vec![],
            after: vec![],
            before: Value::Null,
            adopted: false,
            unfinished: false,
            begun: vec![],
            run: "r1".into(),
            at: String::new(),
        };
        LastApplied {
            resources: [(wish.address, applied)].into(),
        }
    }

    #[test]
    fn what_another_version_applied_is_not_judged() {
        let met = |_: &DesiredResource| Ok(Assessment::default());
        let mut last = applied(9000);
        let of_resource = |last: &LastApplied| {
            let report = found(&[link(9000)], &BTreeMap::new(), &met, last);
            (report.resources, report.not_judged.len())
        };
        assert_eq!(of_resource(&last), (1, 0));
        let resource = last.resources.values_mut().next().unwrap();
        resource.body["of_a_later_version"] = json!(true);
        assert_eq!(of_resource(&last), (0, 1));
    }

    /// The one finding for wanted 9000, with these values on the target.
    fn one(
        last: &LastApplied,
        persisted: Reading,
        running: Reading,
        next_boot: Option<Reading>,
        owed: bool,
    ) -> Vec<(Plane, DriftReason)> {
        let assess = |wish: &DesiredResource| {
            let wanted = Reading::is(wish.body["mtu"].clone());
            let mut attribute = Attribute::in_plane(
                Plane::Persisted,
                wanted.clone(),
                persisted.clone(),
            )
            .and(Plane::Running, wanted.clone(), running.clone());
            if let Some(next) = &next_boot {
                attribute = attribute.and(Plane::NextBoot, wanted, next.clone());
            }
            Ok(Assessment {
                attributes: [("mtu".to_owned(), attribute)].into(),
                owed,
                ..Assessment::default()
            })
        };
        found(&[link(9000)], &BTreeMap::new(), &assess, last)
            .findings
            .into_iter()
            .map(|f| (f.plane, f.reason))
            .collect()
    }

    #[test]
    fn each_reason_is_told_from_the_others() {
        let is = |mtu: u32| Reading::is(mtu);
        let same = applied(9000);
        use DriftReason::*;
        assert_eq!(one(&same, is(9000), is(9000), None, false), []);
        assert_eq!(
            one(&same, is(9000), is(1500), None, false),
            [(Plane::Running, ChangedOutside)]
        );
        assert_eq!(
            one(&same, Reading::Absent, is(9000), None, false),
            [(Plane::Persisted, WillBeLostAtReboot)]
        );
        assert_eq!(
            one(&same, is(1500), is(1500), None, false),
            [
                (Plane::Persisted, ChangedOutside),
                (Plane::Running, ChangedOutside)
            ]
        );
        assert_eq!(
            one(&same, is(9000), is(1500), Some(is(9000)), false),
            [(Plane::Running, PendingRestart)]
        );
        assert_eq!(
            one(&same, is(9000), is(1500), None, true),
            [(Plane::Running, PendingRestart)]
        );
        assert_eq!(
            one(&applied(4200), is(4200), is(4200), None, false),
            [(Plane::Persisted, SpecNewer), (Plane::Running, SpecNewer)]
        );
        assert_eq!(
            one(&applied(4200), is(4200), is(1500), None, false),
            [
                (Plane::Running, ChangedOutside),
                (Plane::Persisted, SpecNewer)
            ]
        );
        assert_eq!(
            one(&LastApplied::default(), is(9000), is(1500), None, false),
            [(Plane::Running, SpecNewer)]
        );
        assert_eq!(
            one(
                &same,
                is(9000),
                Reading::Unknown("time-out".into()),
                None,
                false
            ),
            [(Plane::Running, Unknown)]
        );
    }

    #[test]
    fn another_question_or_chart_is_no_drift() {
        let wish = |probe: &str| {
            DesiredResource::of(
                Address::host("n1", "command", "a"),
                "command",
                json!({ "name": "a", "run": "x", "read": { "probe": probe } }),
            )
        };
        let reason = |asked_then: &str, input: Option<String>| {
            let before = wish(asked_then);
            let last = LastApplied {
                resources: [(
                    before.address.clone(),
                    AppliedResource::of(&before, Value::Null, false, "r1", String::new()),
                )]
                .into(),
            };
            let attribute = Attribute {
                input,
                ..Attribute::in_plane(Plane::Running, Reading::is("yes"), Reading::is("no"))
            };
            let assess = |_: &DesiredResource| {
                Ok(Assessment {
                    attributes: [("probe".to_owned(), attribute.clone())].into(),
                    ..Assessment::default()
                })
            };
            found(&[wish("now")], &BTreeMap::new(), &assess, &last).findings[0].reason
        };
        assert_eq!(reason("now", None), DriftReason::ChangedOutside);
        assert_eq!(reason("then", None), DriftReason::SpecNewer);
        assert_eq!(
            reason("now", Some("the chart x".to_owned())),
            DriftReason::SpecNewer
        );
    }

    #[test]
    fn a_host_that_does_not_answer_is_one_line_and_no_drift() {
        let silent = UnknownFinding::new("host/n1", "not reachable");
        let silent_targets = [(Target::host("n1"), silent.clone())].into();
        let wishes = [
            link(9000),
            DesiredResource {
                address: Address::host("n1", "sysctl", "a.b"),
                ..link(1)
            },
        ];
        for wishes in [&wishes[..], &[]] {
            let report = found(
                wishes,
                &silent_targets,
                &|_| panic!("it said nothing"),
                &applied(9000),
            );
            assert_eq!(
                (report.not_judged.as_slice(), report.targets.len()),
                (&[silent.clone()][..], 1)
            );
            assert!(!report.has_drift() && report.is_incomplete());
        }
    }

    #[test]
    fn what_is_no_longer_in_the_spec_is_drift_until_it_is_taken_back() {
        let report = found(
            &[],
            &BTreeMap::new(),
            &|_| panic!("nothing is wished"),
            &applied(9000),
        );
        assert_eq!(
            report.no_longer_wished,
            [Address::host("n1", "link", "ens4")]
        );
        assert!(report.has_drift() && !report.is_incomplete());
    }

    #[test]
    fn what_was_applied_last_stands_beside_what_is_wanted() {
        let assess = |wish: &DesiredResource| {
            let attribute = Attribute::in_plane(
                Plane::Running,
                Reading::is(wish.body["mtu"].clone()),
                Reading::is(1500),
            );
            Ok(Assessment {
                attributes: [("mtu".to_owned(), attribute)].into(),
                ..Assessment::default()
            })
        };
        let report = found(&[link(9000)], &BTreeMap::new(), &assess, &applied(4200));
        let finding = &report.findings[0];
        assert_eq!(
            (&finding.last_applied, &finding.wanted, &finding.found),
            (
                &Some(Reading::is(4200)),
                &Reading::is(9000),
                &Reading::is(1500)
            )
        );
        assert_eq!(finding.address.to_string(), "host/n1/link/ens4#mtu");
    }

    #[test]
    fn what_is_waited_for_is_told_once_all_else_is_there() {
        let one = |made: Reading| {
            let object =
                Attribute::in_plane(Plane::Persisted, Reading::is("present"), made.clone());
            let ready = Attribute::in_plane(Plane::Running, Reading::is("ready"), Reading::Absent)
                .that_settles();
            let attributes = [("object".to_owned(), object), ("ready".to_owned(), ready)].into();
            let assess = |_: &DesiredResource| {
                Ok(Assessment {
                    attributes: Clone::clone(&attributes),
                    ..Assessment::default()
                })
            };
            let report = found(
                &[link(1)],
                &BTreeMap::new(),
                &assess,
                &LastApplied::default(),
            );
            report
                .findings
                .into_iter()
                .map(|finding| (finding.attribute, finding.reason))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            one(Reading::Absent),
            [("object".to_owned(), DriftReason::SpecNewer)]
        );
        assert_eq!(
            one(Reading::is("present")),
            [("ready".to_owned(), DriftReason::NotReady)]
        );
    }
}
