//! Compares what is desired, what was applied last, and what was read from the targets. Pure.
//!
//! What was applied last is shown per attribute by comparing the resource that was applied last
//! with the same answers: its *desired* side is what we left behind then. Since every apply ends
//! with a reading that matched, a difference from it was made by somebody else, unless it still
//! waits for its restart.

use super::finding::{DriftFinding, DriftReason, DriftReport, FORMAT_VERSION, Occasion};
use railwright_base::{Address, Reason, Target};
use railwright_plan::{LastApplied, UnknownFinding};
use railwright_resource::readability::{UNREADABLE_BODY, is_readable};
use railwright_resource::{
    Attribute, DesiredResource, Plane, Provenance, Reading, ResourceDiff, kind_named,
};
use std::collections::{BTreeMap, BTreeSet};

/// How a kind compares a resource with the answers of its target; an error says why it cannot.
pub type DiffResource<'a> = &'a dyn Fn(&DesiredResource) -> Result<ResourceDiff, Reason>;

/// How a kind compares what was applied last, where this is the resource now.
pub type DiffLeft<'a> =
    &'a dyn Fn(&DesiredResource, &DesiredResource) -> Result<ResourceDiff, Reason>;

/// How resources are compared.
#[derive(Clone, Copy)]
pub struct DiffFunctions<'a> {
    /// The resources of now.
    pub diff: DiffResource<'a>,
    /// What was applied last, with the resource of now: what it left behind.
    pub left: DiffLeft<'a>,
}

/// All findings for the resources of an inventory; `silent` are the targets that gave no answer,
/// with the reason.
pub fn compute_drift(
    occasion: &Occasion,
    resources: &[DesiredResource],
    silent: &BTreeMap<Target, UnknownFinding>,
    functions: DiffFunctions<'_>,
    last: &LastApplied,
) -> DriftReport {
    let mut targets: BTreeSet<Target> = silent.keys().cloned().collect();
    targets.extend(
        resources
            .iter()
            .map(|resource| resource.address.target.clone()),
    );
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
        removed_from_spec: removed_from_spec(resources, silent, last),
        not_compared: silent.values().cloned().collect(),
        targets: targets.into_iter().collect(),
        ..DriftReport::default()
    };
    for resource in resources
        .iter()
        .filter(|resource| !silent.contains_key(&resource.address.target))
    {
        report_resource(&mut report, resource, functions, last);
    }
    in_order(&mut report.findings);
    report
}

/// Adds the findings on one resource to the report, or why it has none.
fn report_resource(
    report: &mut DriftReport,
    resource: &DesiredResource,
    functions: DiffFunctions<'_>,
    last: &LastApplied,
) {
    let diff = match (functions.diff)(resource) {
        Ok(_) if !is_applied_readable(resource, last) => {
            let not_compared = UnknownFinding::new(resource.address.to_string(), UNREADABLE_BODY);
            report.not_compared.push(not_compared);
            return;
        }
        Ok(diff) => diff,
        Err(reason) => {
            report
                .not_compared
                .push(UnknownFinding::new(resource.address.to_string(), reason));
            return;
        }
    };
    if let Some(step) = &diff.known_after {
        let reason = format!("cannot be compared before {step} is there");
        report
            .not_compared
            .push(UnknownFinding::new(resource.address.to_string(), reason));
        return;
    }
    report.resources += 1;
    report.compared.push(resource.address.clone());
    let applied = last_applied(resource, functions.left, last);
    report
        .findings
        .extend(of_resource(resource, &diff, applied.as_ref()));
}

/// Reasons first, then addresses.
pub(super) fn in_order(findings: &mut [DriftFinding]) {
    findings.sort_by(|a, b| (a.reason, &a.address, a.plane).cmp(&(b.reason, &b.address, b.plane)));
}

/// Remembered resources that nobody declares any more, without those of targets that gave no
/// answer.
fn removed_from_spec(
    resources: &[DesiredResource],
    silent: &BTreeMap<Target, UnknownFinding>,
    last: &LastApplied,
) -> Vec<Address> {
    let gone = last
        .not_in_spec(resources)
        .map(|(address, _)| address)
        .filter(|address| !silent.contains_key(&address.target));
    gone.cloned().collect()
}

/// False where this version cannot read what was applied last: what it left behind is unknown.
fn is_applied_readable(resource: &DesiredResource, last: &LastApplied) -> bool {
    let Some(applied) = last.applied(&resource.address) else {
        return true;
    };
    kind_named(&applied.kind)
        .is_none_or(|kind| is_readable(kind, &applied.resource(&resource.address)))
}

/// What was left behind; nothing where it was asked otherwise then, so that the two answers cannot
/// be compared.
fn last_applied(
    resource: &DesiredResource,
    left: DiffLeft<'_>,
    last: &LastApplied,
) -> Option<ResourceDiff> {
    let applied = last.applied(&resource.address)?.resource(&resource.address);
    let has_identical_reads =
        kind_named(&resource.kind).is_none_or(|kind| kind.has_identical_reads(&applied, resource));
    has_identical_reads
        .then(|| left(&applied, resource).ok())
        .flatten()
}

fn of_resource(
    resource: &DesiredResource,
    diff: &ResourceDiff,
    applied: Option<&ResourceDiff>,
) -> Vec<DriftFinding> {
    let mut out = Vec::new();
    for (name, attribute) in diff.attributes.iter().chain(&diff.out_of_reach) {
        // What is not there yet, or is not as desired, is no matter of waiting.
        let is_early = |actual: &Reading| {
            attribute.settles && *actual == Reading::Absent && !diff.only_waits()
        };
        for (plane, desired, actual) in attribute
            .differences()
            .into_iter()
            .filter(|(.., actual)| !is_early(actual))
        {
            let left = applied
                .and_then(|a| a.attributes.get(name))
                .and_then(|a| a.desired.get(plane))
                .cloned();
            // As it was left is as it is, where only the resource's own input is another one.
            let last = if attribute.input.is_some() {
                applied.map(|_| actual.clone())
            } else {
                left
            };
            out.push(DriftFinding {
                address: resource.address.with_attribute(name),
                attribute: name.clone(),
                plane,
                reason: find_drift_reason(diff, attribute, plane, last.as_ref(), actual),
                desired: desired.clone(),
                last_applied: last,
                actual: actual.clone(),
                by: attribute.by.clone().or_else(|| {
                    let input = attribute.input.as_ref()?;
                    Some(Provenance::Note(format!("{input} is another one since")))
                }),
                places: resource.places.clone(),
                seen: None,
                accepted: None,
            });
        }
    }
    out
}

fn find_drift_reason(
    diff: &ResourceDiff,
    attribute: &Attribute,
    plane: Plane,
    last: Option<&Reading>,
    actual: &Reading,
) -> DriftReason {
    if actual.is_unknown() {
        return DriftReason::Unknown;
    }
    let met = |plane| {
        attribute.desired.get(plane).is_some()
            && !attribute.differences().iter().any(|(p, ..)| *p == plane)
    };
    let desired = attribute.desired.get(plane);
    if plane == Plane::Running && (diff.pending || met(Plane::NextBoot)) {
        return DriftReason::PendingRestart;
    }
    match last {
        _ if attribute.settles => DriftReason::NotReady,
        _ if attribute.input.is_some() => DriftReason::SpecNewer,
        None => DriftReason::SpecNewer,
        Some(last) if last == actual && Some(last) != desired => DriftReason::SpecNewer,
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
    use railwright_resource::ResourceDeclaration;
    use serde_json::{Value, json};

    fn link(mtu: u32) -> DesiredResource {
        DesiredResource {
            address: Address::host("n1", "link", "ens4"),
            after: vec![],
            declaration: ResourceDeclaration {
                kind: "link".to_owned(),
                body: json!({ "netdev": "ens4", "mtu": mtu }),
                module: "jumbo-mtu/link".into(),
                places: Vec::new(),
            }
            .into(),
        }
    }

    /// What was applied last is compared as what is desired now.
    fn found(
        resources: &[DesiredResource],
        silent: &BTreeMap<Target, UnknownFinding>,
        diff: DiffResource<'_>,
        last: &LastApplied,
    ) -> DriftReport {
        let left = |applied: &DesiredResource, _: &DesiredResource| diff(applied);
        compute_drift(
            &Occasion::default(),
            resources,
            silent,
            DiffFunctions { diff, left: &left },
            last,
        )
    }

    fn applied(mtu: u32) -> LastApplied {
        let resource = link(mtu);
        let applied = AppliedResource {
            kind: resource.kind.clone(),
            body: resource.body.clone(),
            digest: resource.digest(),
            module: resource.module.clone(),
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
            resources: [(resource.address, applied)].into(),
        }
    }

    #[test]
    fn what_another_version_applied_is_not_compared() {
        let met = |_: &DesiredResource| Ok(ResourceDiff::default());
        let mut last = applied(9000);
        let of_resource = |last: &LastApplied| {
            let report = found(&[link(9000)], &BTreeMap::new(), &met, last);
            (report.resources, report.not_compared.len())
        };
        assert_eq!(of_resource(&last), (1, 0));
        let resource = last.resources.values_mut().next().unwrap();
        resource.body["of_a_later_version"] = json!(true);
        assert_eq!(of_resource(&last), (0, 1));
    }

    /// The one finding for desired 9000, with these values on the target.
    fn one(
        last: &LastApplied,
        persisted: Reading,
        running: Reading,
        next_boot: Option<Reading>,
        pending: bool,
    ) -> Vec<(Plane, DriftReason)> {
        let diff = |resource: &DesiredResource| {
            let desired = Reading::is(resource.body["mtu"].clone());
            let mut attribute = Attribute::in_plane(
                Plane::Persisted,
                desired.clone(),
                persisted.clone(),
            )
            .and(Plane::Running, desired.clone(), running.clone());
            if let Some(next) = &next_boot {
                attribute = attribute.and(Plane::NextBoot, desired, next.clone());
            }
            Ok(ResourceDiff {
                attributes: [("mtu".to_owned(), attribute)].into(),
                pending,
                ..ResourceDiff::default()
            })
        };
        found(&[link(9000)], &BTreeMap::new(), &diff, last)
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
        let resource = |probe: &str| {
            DesiredResource::of(
                Address::host("n1", "command", "a"),
                "command",
                json!({ "name": "a", "run": "x", "read": { "probe": probe } }),
            )
        };
        let reason = |asked_then: &str, input: Option<String>| {
            let before = resource(asked_then);
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
            let diff = |_: &DesiredResource| {
                Ok(ResourceDiff {
                    attributes: [("probe".to_owned(), attribute.clone())].into(),
                    ..ResourceDiff::default()
                })
            };
            found(&[resource("now")], &BTreeMap::new(), &diff, &last).findings[0].reason
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
        let resources = [
            link(9000),
            DesiredResource {
                address: Address::host("n1", "sysctl", "a.b"),
                ..link(1)
            },
        ];
        for resources in [&resources[..], &[]] {
            let report = found(
                resources,
                &silent_targets,
                &|_| panic!("it said nothing"),
                &applied(9000),
            );
            assert_eq!(
                (report.not_compared.as_slice(), report.targets.len()),
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
            &|_| panic!("nothing is desired"),
            &applied(9000),
        );
        assert_eq!(
            report.removed_from_spec,
            [Address::host("n1", "link", "ens4")]
        );
        assert!(report.has_drift() && !report.is_incomplete());
    }

    #[test]
    fn what_was_applied_last_stands_beside_what_is_desired() {
        let diff = |resource: &DesiredResource| {
            let attribute = Attribute::in_plane(
                Plane::Running,
                Reading::is(resource.body["mtu"].clone()),
                Reading::is(1500),
            );
            Ok(ResourceDiff {
                attributes: [("mtu".to_owned(), attribute)].into(),
                ..ResourceDiff::default()
            })
        };
        let report = found(&[link(9000)], &BTreeMap::new(), &diff, &applied(4200));
        let finding = &report.findings[0];
        assert_eq!(
            (&finding.last_applied, &finding.desired, &finding.actual),
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
            let diff = |_: &DesiredResource| {
                Ok(ResourceDiff {
                    attributes: Clone::clone(&attributes),
                    ..ResourceDiff::default()
                })
            };
            let report = found(&[link(1)], &BTreeMap::new(), &diff, &LastApplied::default());
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
