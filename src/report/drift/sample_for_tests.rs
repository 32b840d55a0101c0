//! One report with something of everything, for the tests of all documents.

use railwright_base::{Address, SourceLocation, Target};
use railwright_drift::finding::FORMAT_VERSION;
use railwright_drift::outliers::{Outlier, OutlierValue};
use railwright_drift::{DriftAcceptance, DriftFinding, DriftReason, DriftReport};
use railwright_plan::{InventoryOrigin, UnknownFinding};
use railwright_resource::{Plane, Reading};

/// A finding; desired is 9000, and it was applied unless the spec is newer.
pub fn finding(address: &str, plane: Plane, reason: DriftReason, actual: Reading) -> DriftFinding {
    let address: Address = address.parse().unwrap();
    DriftFinding {
        attribute: address.attribute.clone().unwrap(),
        address,
        plane,
        desired: Reading::is(9000),
        last_applied: if reason == DriftReason::SpecNewer {
            None
        } else {
            Some(Reading::is(9000))
        },
        actual,
        reason,
        places: vec![],
        seen: None,
        accepted: None,
        by: None,
    }
}

/// Three identical, one of another plane, one unknown, one target that is silent.
pub fn report() -> DriftReport {
    let mut findings: Vec<DriftFinding> = (1..=3)
        .map(|i| {
            finding(
                &format!("host/n{i}/link/ens4#mtu"),
                Plane::Running,
                DriftReason::ChangedOutside,
                Reading::is(1500),
            )
        })
        .collect();
    findings.push(finding(
        "host/n2/file/%2Fetc%2Fx#content",
        Plane::Persisted,
        DriftReason::WillBeLostAtReboot,
        Reading::Absent,
    ));
    let unknown = Reading::Unknown("the read ran past its time limit".into());
    findings.push(finding(
        "host/n2/sysctl/a.b#value",
        Plane::Running,
        DriftReason::Unknown,
        unknown,
    ));
    DriftReport {
        format_version: FORMAT_VERSION,
        cluster: "lab".into(),
        checked_at: "2026-01-01T00:00:00Z".into(),
        inventory: InventoryOrigin {
            path: "inventories/lab".into(),
            ..InventoryOrigin::default()
        },
        last_known: vec![],
        outliers: vec![],
        waived: vec![],
        no_ssh: String::new(),
        out_of_service: vec![],
        removed_from_spec: vec![],
        never_applied: vec![],
        compared: ["link/ens4", "file/%2Fetc%2Fx", "sysctl/a.b"]
            .iter()
            .flat_map(|resource| {
                (1..=3).map(move |i| format!("host/n{i}/{resource}").parse().unwrap())
            })
            .collect(),
        findings,
        not_compared: vec![UnknownFinding::new(
            "host/n9",
            "n9 is not reachable at 192.0.2.9: connection refused",
        )],
        targets: ["n1", "n2", "n3", "n9"].map(Target::host).into(),
        resources: 41,
    }
}

/// The sample report with the MTU of all hosts accepted, until a day that may be over.
pub fn accepted(expired: bool) -> DriftReport {
    let mut report = report();
    for finding in &mut report.findings[..3] {
        finding.accepted = Some(DriftAcceptance {
            reason: "new cables".into(),
            owner: "ops".into(),
            until: "2026-12-31".into(),
            expired,
        });
    }
    report
}

/// One host of sixteen with another kernel.
pub fn outlier() -> Outlier {
    let held = |value: &str, hosts: &str, count| OutlierValue {
        value: Reading::is(value),
        hosts: hosts.into(),
        count,
    };
    let (usual, other) = (
        held("6.1.0-18", "gpu[01-15]", 15),
        held("6.1.0-17", "gpu16", 1),
    );
    Outlier {
        class: "gpu[01-16]".into(),
        what: "kernel".into(),
        usual,
        others: vec![other],
    }
}

/// The sample report with what a hostile host, file name or spec may hold: markup of every document, quotes,
/// control characters.
pub fn hostile() -> DriftReport {
    const NASTY: &str =
        "a|b `c` ``d`` <script>&amp;\"'\\ \u{1b}[31m\n# e\u{ffff} ]]> @f --> \u{202e}\t<!--";
    let mut report = report();
    for finding in &mut report.findings {
        // On a line of its own, as a value of several lines is shown by their number alone.
        finding.actual = Reading::is(NASTY.replace('\n', " "));
        std::sync::Arc::make_mut(&mut finding.address.path)[1] = NASTY.to_owned();
        finding.places = vec![SourceLocation {
            file: format!("inv entory/{NASTY}.yaml"),
            line: 7,
            column: 3,
            path: NASTY.into(),
        }];
    }
    report.not_compared[0].reason = NASTY.to_owned();
    report.outliers = vec![Outlier {
        usual: OutlierValue {
            value: Reading::is(NASTY),
            ..outlier().usual
        },
        ..outlier()
    }];
    report.removed_from_spec = vec![Address::host("n1", "file", NASTY)];
    report
}
