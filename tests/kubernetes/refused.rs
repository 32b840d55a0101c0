//! New objects that a real API server would not take, or cannot be asked about: a plan says so
//! before anything is changed.

use crate::begun::{begun, ended, until_said};
use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use std::process::Command;

const INV: &str = "inv";

/// A ConfigMap in this namespace, with more of its manifest.
fn config_map(name: &str, namespace: &str, more: &str) -> String {
    format!(
        "  - id: {name}\n    kubernetes_object:\n      manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, namespace: \
         {namespace}, labels: {{ story: {name} }} }}{more} }}\n"
    )
}

/// Nobody listens there, and what it would look at is not taken without it.
const WEBHOOK: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: silent }
webhooks:
  - name: silent.example.org
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: { url: 'https://127.0.0.1:1/' }
    objectSelector: { matchLabels: { story: watched } }
    rules: [{ apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps] }]
";

pub fn a_new_object_that_is_refused_is_held(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(
        &(config_map("misspelt", "default", ", datas: { a: b }")
            + &config_map("fine", "default", "")),
    );
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("the API server does not take ConfigMap.core default/misspelt")
            && plan.contains("datas"),
        "{plan}"
    );
    plane.apply(WEBHOOK);
    cluster.resources(&config_map("watched", "default", ""));
    // A server takes a second to hear of a webhook.
    let plan = (0..50)
        .map(|_| {
            crate::cluster::flat(
                &String::from_utf8(cluster.command(&["plan", INV]).output().unwrap().stdout)
                    .unwrap(),
            )
        })
        .find(|plan| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            plan.contains("BLOCKED")
        });
    let plan = plan.expect("the webhook is not heard of");
    assert!(
        plan.contains("whether the API server takes ConfigMap.core default/watched is not known"),
        "{plan}"
    );
    assert!(plan.contains("silent.example.org"), "{plan}");
    cluster.told(3, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["get", "configmap", "-l", "story", "-o", "name"]),
        ""
    );
    plane.kubectl(&["delete", "validatingwebhookconfiguration", "silent"]);
}

pub fn what_nothing_brings_is_held(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let inside = config_map("inside", "yard", "");
    cluster.resources(&inside);
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains(
            "namespace yard is not there (namespaces \"yard\" not found), and no step before it \
             brings it"
        ),
        "{plan}"
    );
    let space = "  - id: space\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: Namespace, metadata: { name: yard } }\n";
    cluster.resources(&(inside + space));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(
            "not previewed: namespace yard is not there yet, and may come with Namespace yard"
        ),
        "{plan}"
    );

    let strange = "  - id: strange\n    AFTERkubernetes_object:\n      manifest: { apiVersion: y.example.org/v1, kind: Strange, metadata: \
                   { name: a, namespace: default } }\n";
    cluster.resources(&strange.replace("AFTER", ""));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("kind Strange.y.example.org is not there") && plan.contains("by other means"),
        "{plan}"
    );
    cluster.told(3, &["apply", INV, "--yes"]);
    // An operator may define its kinds itself, once it runs.
    let operator = "  - id: operator\n    kubernetes_object:\n      ready: false\n      manifest: { apiVersion: apps/v1, kind: Deployment, metadata: \
                    { name: operator, namespace: default }, spec: { selector: { matchLabels: \
                    { app: o } }, template: { metadata: { labels: { app: o } }, spec: { \
                    containers: [{ name: o, image: 'example.invalid/o:1' }] } } } }\n";
    cluster.resources(&(operator.to_owned() + &strange.replace("AFTER", "")));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains(
            "Deployment.apps default/operator may bring it: let this one come `after` it"
        ),
        "{plan}"
    );
    cluster
        .resources(&(operator.to_owned() + &strange.replace("AFTER", "after: [operator]\n    ")));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("may come with Deployment.apps default/operator"),
        "{plan}"
    );
}

/// Its finalizer is named while it is waited for; whoever takes it away ends the wait.
pub fn what_holds_a_removal_is_named(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("held", "default", ""));
    cluster.told(0, &["apply", INV, "--yes"]);
    let finalizers = |list: &str| {
        plane.kubectl(&[
            "patch",
            "configmap",
            "held",
            "--type=merge",
            "-p",
            &format!("{{\"metadata\":{{\"finalizers\":{list}}}}}"),
        ]);
    };
    finalizers("[\"example.org/never\"]");
    cluster.resources("  []\n");
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(
        &mut run,
        "being deleted, held by its finalizer example.org/never (the controller of example.org \
         takes it away)",
    );
    assert!(
        Command::new("kill")
            .args(["-INT", &run.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let said = ended(run, 130);
    assert!(
        said.contains("RW0634") && said.contains("example.org/never"),
        "{said}"
    );
    // It goes on where it was, and a plan waits for what goes already.
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("waits until ConfigMap.core default/held is gone, for 2 min at most"),
        "{plan}"
    );
    let mut run = begun(&cluster, &["resume", INV]);
    until_said(&mut run, "held by its finalizer example.org/never");
    finalizers("null");
    ended(run, 0);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
}

/// Whoever may only read is told what the plan could not find out.
pub fn what_may_not_be_previewed_says_so(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "reader");
    cluster.resources(&config_map("unseen", "default", ", datas: { a: b }"));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("not previewed: no role of ours allows it: verb patch, resource configmaps"),
        "{plan}"
    );
}
