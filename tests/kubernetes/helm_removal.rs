//! Releases that go: what Helm may not delete is said before, and what it left half gone is gone on
//! with.

use crate::helm::{Story, helm_well};
use crate::rig::ControlPlane;
use std::time::Duration;

const INV: &str = "inv";

/// A plan names no object of a release that goes, and all of them are asked about.
pub fn what_helm_may_not_delete_is_found_first(plane: &ControlPlane) {
    let story = Story::new(plane);
    story.resource("agent: { driver: compat }", "");
    let as_one = |identity: &str| {
        story
            .cluster
            .spec(identity, "secrets: { token: { env: RAILS_TOKEN } }\n")
    };
    as_one("admin");
    story.apply();
    as_one("reader");
    story.nothing();
    let refused = story.told(4, &["apply", INV, "--yes"]);
    for said in [
        "RW0646",
        "resources: [daemonsets], resourceNames: [rails-agent], verbs: [delete] }",
        "resources: [customresourcedefinitions]",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    assert!(helm_well(plane, &["status", "rails"]).contains("STATUS: deployed"));
    as_one("admin");
    story.apply();
}

/// Nobody listens there, and without it no ConfigMap of Helm's is deleted.
const KEEPS: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: keeps }
webhooks:
  - name: keeps.example.org
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: { url: 'https://127.0.0.1:1/' }
    objectSelector: { matchLabels: { app.kubernetes.io/managed-by: Helm } }
    rules: [{ apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [configmaps] }]
";

/// Helm leaves it half gone, says why in its log alone, and goes on with it when it is asked again.
pub fn a_removal_that_was_stopped_half_way_is_gone_on_with(plane: &ControlPlane) {
    let story = Story::new(plane);
    story.resource("agent: { driver: compat }", "");
    story.apply();
    plane.apply(KEEPS);
    let kept = || {
        !plane
            .kubectl_as(
                "admin",
                &["delete", "configmap", "rails", "--dry-run=server"],
                "",
            )
            .status
            .success()
    };
    // A server takes a second to hear of it.
    let until = |is: &dyn Fn() -> bool| {
        assert!((0..50).any(|_| is() || {
            std::thread::sleep(Duration::from_millis(200));
            false
        }));
    };
    until(&kept);
    story.nothing();
    let failed = story.told(1, &["apply", INV, "--yes"]);
    assert!(
        failed.contains("RW0612")
            && failed.contains("failed calling webhook \"keeps.example.org\""),
        "{failed}"
    );
    assert!(failed.contains("railwright state forget "), "{failed}");
    assert!(
        failed.contains("may be half done") && !failed.contains("[debug]"),
        "{failed}"
    );
    let plan = story.plan(0);
    assert!(plan.contains("status (persisted) uninstalling"), "{plan}");
    plane.kubectl(&["delete", "validatingwebhookconfiguration", "keeps"]);
    until(&|| !kept());
    story.told(0, &["resume", INV]);
    assert_eq!(helm_well(plane, &["list", "--short", "--uninstalling"]), "");
    assert!(
        story
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
}
