//! What is ours on a cluster and who knows it: of steps that did not come through, of marks and
//! records that others change.

use crate::cluster::Cluster;
use crate::meanwhile::Meanwhile;
use crate::raced::through;
use crate::rig::{ControlPlane, ESTABLISHED};
use serde_json::json;

const INV: &str = "inv";

/// A ConfigMap with this text.
fn config_map(name: &str, text: &str) -> String {
    format!(
        "  - id: {name}\n    kubernetes_object:\n      manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, namespace: \
         default }}, data: {{ text: \"{text}\" }} }}\n"
    )
}

/// A DaemonSet that waits for nodes that are not there.
fn waiting(name: &str) -> String {
    let labels = format!("{{ app: {name} }}");
    format!(
        "  - id: {name}\n    kubernetes_object:\n      ready: {{ nodes: 3, within_s: 1 }}\n      manifest:\n        apiVersion: apps/v1\n        kind: DaemonSet\n        metadata: {{ name: {name}, namespace: default }}\n        spec: {{ selector: {{ matchLabels: {labels} }}, template: {{ metadata: {{ labels: \
         {labels} }}, spec: {{ containers: [{{ name: a, image: \"example.invalid/a:1\" }}] }} }} \
         }}\n"
    )
}

fn there(plane: &ControlPlane, what: &str) -> bool {
    !plane
        .kubectl(&["get", what, "--ignore-not-found", "-o", "name"])
        .is_empty()
}

/// Whether its step came through, a new run found it in sync, or nobody was there to see it end.
pub fn what_did_not_come_through_is_taken_back(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&waiting("never"));
    cluster.told(1, &["apply", INV, "--yes"]);
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("NOT READY") && !drift.contains("CHANGED OUTSIDE"),
        "{drift}"
    );
    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("- kube/prod DaemonSet.apps default/never")
            && plan.contains("removed from spec"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "daemonset/never"));

    // Another run, not a resumed one, finds what the first one made.
    cluster.resources(&waiting("later"));
    cluster.told(1, &["apply", INV, "--yes"]);
    plane.nodes(&["gpu1", "gpu2", "gpu3"], &[]);
    plane.kubectl(&["rollout", "status", "daemonset/later", "--timeout=120s"]);
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "daemonset/later"));

    // Nothing is remembered of it at all: its marks say whose it is.
    cluster.resources(&config_map("marked", "a"));
    cluster.told(0, &["apply", INV, "--yes"]);
    std::fs::remove_dir_all(cluster.folder().join("inv/.railwright")).unwrap();
    plane.kubectl(&["-n", "kube-system", "delete", "secret", "railwright-train"]);
    cluster.told(0, &["apply", INV, "--yes"]);
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "configmap/marked"));
}

pub fn a_mark_that_was_taken_away_is_drift(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("stripped", "a"));
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["label", "configmap", "stripped", "railwright.io/part-of-"]);
    assert!(
        cluster
            .flat(2, &["drift", INV])
            .contains(r#"metadata.labels."railwright.io/part-of""#)
    );
    cluster.resources(&config_map("stripped", "b"));
    cluster.told(0, &["apply", INV, "--yes"]);
    let label = plane.kubectl(&[
        "get",
        "configmap",
        "stripped",
        "-o",
        r"jsonpath={.metadata.labels.railwright\.io/part-of}",
    ]);
    assert_eq!(label, "train");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "configmap/stripped"));
}

/// The kubeconfig leads to another cluster, in which somebody else has the same.
pub fn a_cluster_that_was_made_anew_gets_nothing_of_the_one_before(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    plane.apply(
        "apiVersion: v1\n\
         kind: ConfigMap\n\
         metadata: { name: app, namespace: default }\n\
         data: { text: old }\n",
    );
    cluster.resources(&(config_map("app", "new") + "      adopt: true\n"));
    cluster.told(0, &["apply", INV, "--yes"]);
    let other = r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"0a1b2c3d-0000-4000-8000-0123456789ab"}}"#;
    let way = Meanwhile::answer(plane, 200, other, |line| {
        line.starts_with("GET /api/v1/namespaces/kube-system HTTP")
    });
    through(&cluster, &way);
    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("prod another machine-id than at the last apply")
            && !plan.contains("removed from spec"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    let text = plane.kubectl(&["get", "configmap", "app", "-o", "jsonpath={.data.text}"]);
    assert_eq!(
        text, "new",
        "what stood in the other cluster is not put back"
    );
    plane.kubectl(&["delete", "configmap", "app"]);
}

pub fn names_that_are_nearly_the_same_own_nothing_of_each_other(plane: &ControlPlane) {
    let (one, other) = (Cluster::new(plane, "admin"), Cluster::new(plane, "admin"));
    one.resources(&config_map("shared", "one"));
    one.told(0, &["apply", INV, "--yes"]);
    let spec = std::fs::read_to_string(other.folder().join("inv/cluster.yaml")).unwrap();
    other.file(
        "inv/cluster.yaml",
        &spec.replace("cluster: train", "cluster: train-"),
    );
    other.resources(&config_map("shared", "other"));
    assert!(other.flat(3, &["plan", INV]).contains("it was never ours"));
    one.resources("  []\n");
    one.told(0, &["apply", INV, "--yes"]);
    other.told(0, &["apply", INV, "--yes"]);
    other.resources("  []\n");
    other.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "configmap/shared"));
}

/// What is no longer declared is known from it alone.
pub fn a_record_that_cannot_be_read_is_not_taken_for_none(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&(config_map("kept", "a") + &config_map("gone", "a")));
    cluster.told(0, &["apply", INV, "--yes"]);
    std::fs::remove_dir_all(cluster.folder().join("inv/.railwright")).unwrap();
    cluster.resources(&config_map("kept", "a"));
    let secret = [
        "-n",
        "kube-system",
        "get",
        "secret",
        "railwright-train",
        "-o",
        r"jsonpath={.data.record\.json}",
    ];
    let record = plane.kubectl(&secret);
    let set = |record: &str| {
        let patch = json!({ "data": { "record.json": record } }).to_string();
        plane.kubectl(&[
            "-n",
            "kube-system",
            "patch",
            "secret",
            "railwright-train",
            "-p",
            &patch,
        ]);
    };
    set("Z2FyYmFnZQ==");
    for words in [["plan", INV].as_slice(), &["drift", INV]] {
        let said = cluster.flat(3, words);
        assert!(
            said.contains("RW0416")
                && said.contains("kubectl -n kube-system get secret railwright-train"),
            "{said}"
        );
    }
    let refused = cluster.flat(3, &["apply", INV, "--yes"]);
    assert!(refused.contains("the record of our changes"), "{refused}");
    assert_eq!(plane.kubectl(&secret), "Z2FyYmFnZQ==");
    // What is no record of any cluster: `[]` in gzip.
    set("H4sIAAAAAAAAA4uOBQApu0wNAgAAAA==");
    let refused = cluster.flat(4, &["plan", INV]);
    assert!(
        refused.contains("RW0736") && refused.contains("kubectl -n kube-system get secret "),
        "{refused}"
    );
    set(&record);
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("- kube/prod ConfigMap default/gone"),
        "{plan}"
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "configmap/gone") && !there(plane, "configmap/kept"));
}

/// The rest of the cluster goes on.
pub fn a_removal_that_nobody_can_compare_stops_nothing(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "sleepers.y.example.org" },
        "spec": { "group": "y.example.org", "scope": "Namespaced", "names": { "kind": "Sleeper", "plural": "sleepers" },
                  "versions": [{ "name": "v1", "served": true, "storage": true,
                                 "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] } });
    plane.apply(&definition.to_string());
    plane.kubectl(&["wait", ESTABLISHED, "crd/sleepers.y.example.org"]);
    let sleeper = "  - id: sleeper\n    kubernetes_object:\n      manifest: { apiVersion: y.example.org/v1, kind: Sleeper, metadata: \
                   { name: s, namespace: default } }\n";
    cluster.resources(&(sleeper.to_owned() + &config_map("goes-on", "a")));
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["delete", "crd", "sleepers.y.example.org"]);
    cluster.resources(&config_map("goes-on", "b"));
    let applied = cluster.flat(3, &["apply", INV, "--yes"]);
    assert!(applied.contains("railwright state forget"), "{applied}");
    assert_eq!(
        plane.kubectl(&["get", "configmap", "goes-on", "-o", "jsonpath={.data.text}"]),
        "b"
    );
    cluster.told(
        0,
        &[
            "state",
            "forget",
            INV,
            "kube/prod/Sleeper.y.example.org/default/s",
        ],
    );
    assert!(cluster.told(0, &["plan", INV]).contains("No changes."));
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// The spec has the same name, and is another cluster's: a record of that name is not its own.
pub fn another_clusters_record_is_left_alone_until_it_is_taken_over(plane: &ControlPlane) {
    let (first, other) = (Cluster::new(plane, "admin"), Cluster::new(plane, "admin"));
    first.resources(&config_map("theirs", "a"));
    first.told(0, &["apply", INV, "--yes"]);
    let spec = std::fs::read_to_string(other.folder().join("inv/cluster.yaml")).unwrap();
    other.file(
        "inv/cluster.yaml",
        &spec.replace("cluster: train", "cluster: other"),
    );
    for resources in [&config_map("own", "a"), "  []\n"] {
        other.resources(resources);
        other.told(0, &["apply", INV, "--yes"]);
    }
    other.file("inv/cluster.yaml", &spec);
    let refused = other.flat(4, &["plan", INV]);
    assert!(
        refused.contains("kube/prod the whole target RW0720")
            && refused.contains("belongs to the cluster `train`"),
        "{refused}"
    );
    assert!(
        refused.contains("railwright state take-over inv 'kube/prod' --reason TEXT"),
        "{refused}"
    );
    assert!(
        other.flat(4, &["apply", INV, "--yes"]).contains("RW0720")
            && there(plane, "configmap/theirs")
    );
    let own = first.flat(
        4,
        &["state", "take-over", INV, "kube/prod", "--reason", "x"],
    );
    assert!(own.contains("RW0728"), "{own}");

    let taken = other.flat(
        0,
        &[
            "state",
            "take-over",
            INV,
            "kube/prod",
            "--reason",
            "the first one is no more",
        ],
    );
    assert!(
        taken.contains("kube/prod taken over from the cluster `train`"),
        "{taken}"
    );
    assert!(
        taken
            .contains("1 resource of it not managed here: kube/prod/ConfigMap.core/default/theirs"),
        "{taken}"
    );
    assert!(
        other.told(0, &["plan", INV]).contains("No changes.") && there(plane, "configmap/theirs")
    );
    let listed = other.flat(0, &["state", "list", INV]);
    assert!(
        listed.contains("the first one is no more 1 resource of it not managed here"),
        "{listed}"
    );
    assert!(
        first.flat(4, &["plan", INV]).contains("RW0720"),
        "it is refused from then on"
    );
    first.told(
        0,
        &["state", "take-over", INV, "kube/prod", "--reason", "back"],
    );
    assert!(
        first.flat(0, &["plan", INV]).contains("No changes."),
        "it remembers what it brought"
    );
    first.resources("  []\n");
    first.told(0, &["apply", INV, "--yes"]);
    assert!(!there(plane, "configmap/theirs"));
}
