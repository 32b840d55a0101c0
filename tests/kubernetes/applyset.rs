//! What is ours as a set of applied objects, with kubectl's own command for such sets as the second
//! opinion.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use serde_json::Value;

const INV: &str = "inv";
const PARENT: [&str; 5] = ["get", "secret", "railwright-train", "-n", "kube-system"];

fn config_map(name: &str, more: &str) -> String {
    format!(
        "  - id: {name}\n    kubernetes_object: {{ {more} manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: \
         {{ name: {name}, namespace: default }}, data: {{ text: one }} }} }}\n"
    )
}

fn quota(name: &str) -> String {
    format!(
        "  - id: {name}\n    kubernetes_object:\n      manifest: {{ apiVersion: v1, kind: ResourceQuota, metadata: {{ name: {name}, \
         namespace: kube-public }}, spec: {{ hard: {{ pods: \"5\" }} }} }}\n"
    )
}

/// kubectl's `apply --prune` of a set with our Secret as its parent.
fn pruned(plane: &ControlPlane, documents: &str) -> std::process::Output {
    let words = [
        "apply",
        "--prune",
        "--applyset=secrets/railwright-train",
        "-n",
        "kube-system",
        "-f",
        "-",
    ];
    let file = plane.work().join("applyset.yaml");
    std::fs::write(&file, documents).unwrap();
    let words: Vec<&str> = words
        .iter()
        .map(|word| {
            if *word == "-" {
                file.to_str().unwrap()
            } else {
                word
            }
        })
        .collect();
    plane
        .kubectl_command(&words)
        .env("KUBECTL_APPLYSET", "true")
        .output()
        .unwrap()
}

fn parent(plane: &ControlPlane) -> (String, String, String, String) {
    let secret: Value =
        serde_json::from_str(&plane.kubectl(&[&PARENT[..], &["-o", "json"]].concat())).unwrap();
    let said = |of: &str, name: &str| {
        secret["metadata"][of][format!("applyset.kubernetes.io/{name}")]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let notes = |name: &str| said("annotations", name);
    (
        said("labels", "id"),
        notes("tooling"),
        notes("contains-group-kinds"),
        notes("additional-namespaces"),
    )
}

fn members(plane: &ControlPlane, id: &str) -> String {
    let label = format!("--selector=applyset.kubernetes.io/part-of={id}");
    plane.kubectl(&[
        "get",
        "configmaps,resourcequotas",
        "-A",
        &label,
        "-o",
        "jsonpath={.items[*].metadata.name}",
    ])
}

pub fn what_is_ours_is_a_set_that_kubectl_knows(plane: &ControlPlane) {
    // Of the inventories of earlier stories.
    plane.kubectl(&[
        "delete",
        "secret",
        "railwright-train",
        "-n",
        "kube-system",
        "--ignore-not-found",
    ]);
    let document =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: theirs, namespace: kube-system }\n";
    let made = pruned(plane, document);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let (id, tooling, ..) = parent(plane);
    assert!(tooling.starts_with("kubectl/"), "{tooling}");
    plane.kubectl(&["delete", "secret", "railwright-train", "-n", "kube-system"]);
    plane.kubectl(&["delete", "configmap", "theirs", "-n", "kube-system"]);

    plane.kubectl(&["create", "configmap", "adopted", "--from-literal=text=zero"]);
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(
        &[
            config_map("mine", ""),
            config_map("adopted", "adopt: true,"),
            quota("room"),
        ]
        .concat(),
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    let ours = (
        id.clone(),
        concat!("railwright/", env!("CARGO_PKG_VERSION")).to_owned(),
    );
    let (found, tooling, kinds, namespaces) = parent(plane);
    assert_eq!(
        (found, tooling),
        ours,
        "kubectl makes the same id of the same parent"
    );
    assert_eq!(
        (kinds.as_str(), namespaces.as_str()),
        ("ConfigMap,ResourceQuota", "default,kube-public")
    );
    assert_eq!(
        members(plane, &id),
        "mine room",
        "what stood there before is nobody's to delete"
    );

    // Another tool leaves the set alone.
    let refused = pruned(plane, document);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("railwright"),
        "{said}"
    );
    assert_eq!(members(plane, &id), "mine room");
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );

    // What was removed is no longer named.
    cluster.resources(&config_map("mine", ""));
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        (parent(plane).2.as_str(), parent(plane).3.as_str()),
        ("ConfigMap", "default")
    );
    plane.kubectl(&["delete", "configmap", "adopted", "mine"]);
}
