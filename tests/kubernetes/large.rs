//! A large cluster: a thousand nodes and sixty resources.

use crate::rig::ControlPlane;
use serde_json::json;

pub const NODES: usize = 1000;
pub const OBJECTS: usize = 60;

pub fn config_map(name: &str, text: &str) -> String {
    format!(
        "  - id: {name}
    kubernetes_object:
      manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, namespace: default, labels: {{ role: rails }} }}, data: {{ text: \"{text}\" }} }}
"
    )
}

/// Nodes as objects alone: whoever plays kubelets is ended first, so that they cost nothing but
/// their places in lists.
pub fn bare_nodes(plane: &ControlPlane) {
    let kubelets = std::fs::read_to_string(plane.work().join("kwok.pid")).unwrap();
    assert!(
        std::process::Command::new("kill")
            .arg(kubelets.trim())
            .status()
            .unwrap()
            .success()
    );
    let node = |n: usize| {
        let gives = json!({ "cpu": "64", "memory": "1Ti", "pods": "110", "rdma/a": "63" });
        let name = format!("gpu{n:04}");
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
                "status": { "allocatable": gives, "capacity": gives } })
    };
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": (1..=NODES).map(node).collect::<Vec<_>>() });
    let made = plane.kubectl_as("admin", &["create", "-f", "-"], &list.to_string());
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

/// The ConfigMaps.
pub fn objects() -> String {
    (1..OBJECTS)
        .map(|n| config_map(&format!("rails-{n}"), "9000"))
        .collect()
}

/// The ConfigMaps, and what all nodes give.
pub fn resources() -> String {
    let amounts: Vec<String> = (1..=NODES).map(|n| format!("gpu{n:04}: 63")).collect();
    objects()
        + &format!(
            "  - id: allocatable\n    node_allocatable: {{ resource: rdma/a, amounts: {{ {} }} }}\n",
            amounts.join(", ")
        )
}
