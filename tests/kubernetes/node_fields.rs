//! Labels and taints of nodes, by the spec's own fields and the shipped module: set beside those of
//! others, drifted, fixed, moved with the groups of the spec, contested, and undone, on a real
//! API server.

use crate::cluster::Cluster;
use crate::meanwhile::Meanwhile;
use crate::rig::ControlPlane;
use serde_json::Value;

const INV: &str = "inv";

/// A group of one node for each of these, with what it says of it.
fn spec(cluster: &Cluster<'_>, identity: &str, groups: &[(&str, &str)], modules: &str) {
    let group = |(name, more): &(&str, &str)| {
        format!(
            "  - {{ name: \"{name}\", ssh: {{ address: \"127.0.0.{{index}}\", port: 1 }}{more} }}\n"
        )
    };
    let nodes: String = groups.iter().map(group).collect();
    cluster.file("inv/known_hosts", "");
    cluster.spec(
        identity,
        &format!(
            "ssh: {{ user: root, host_keys: known_hosts }}\n\
             nodes:\n\
             {nodes}modules: {{ {modules} }}\n"
        ),
    );
}

fn node(plane: &ControlPlane, name: &str) -> Value {
    serde_json::from_str(&plane.kubectl(&["get", "node", name, "-o", "json"])).unwrap()
}

fn label(plane: &ControlPlane, name: &str, key: &str) -> Option<String> {
    node(plane, name)["metadata"]["labels"][key]
        .as_str()
        .map(str::to_owned)
}

/// The node's taints as kubectl writes them.
fn taints(plane: &ControlPlane, name: &str) -> Vec<String> {
    let node = node(plane, name);
    let all = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|taint| {
            format!(
                "{}={}:{}",
                text(taint, "key"),
                text(taint, "value"),
                text(taint, "effect")
            )
        })
        .collect()
}

fn marks(plane: &ControlPlane, name: &str) -> usize {
    node(plane, name)["metadata"]["annotations"]
        .as_object()
        .map_or(0, |all| {
            all.keys()
                .filter(|key| key.starts_with("railwright.io/"))
                .count()
        })
}

const KUBE: [&str; 4] = ["--target", "kube/prod", "--yes", INV];

fn apply(cluster: &Cluster<'_>, code: i32) -> String {
    cluster.flat(code, &[&["apply"], &KUBE[..]].concat())
}

fn plan(cluster: &Cluster<'_>, code: i32) -> String {
    cluster.flat(code, &["plan", INV, "--target", "kube/prod"])
}

fn nothing_to_do(cluster: &Cluster<'_>) {
    let said = cluster.told(
        0,
        &["plan", INV, "--target", "kube/prod", "--detailed-exitcode"],
    );
    assert!(said.contains("No changes."), "{said}");
}

pub fn a_label_is_set_drifts_is_mended_and_goes(plane: &ControlPlane) {
    plane.nodes(&["gpu1", "gpu2", "gpu3"], &[]);
    let cluster = Cluster::new(plane, "admin");
    let rdma = ", kubernetes_labels: { railwright.io/rdma: \"true\", pool: train }";
    spec(&cluster, "admin", &[("gpu[1-3]", rdma)], "");
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains("+ kube/prod node_label railwright.io/rdma gpu[1-3] true"),
        "{planned}"
    );
    assert_eq!(label(plane, "gpu1", "pool"), None, "a plan changes nothing");
    apply(&cluster, 0);
    for name in ["gpu1", "gpu2", "gpu3"] {
        assert_eq!(
            (
                label(plane, name, "railwright.io/rdma").as_deref(),
                label(plane, name, "pool").as_deref()
            ),
            (Some("true"), Some("train"))
        );
        assert_eq!(
            label(plane, name, "kubernetes.io/hostname").as_deref(),
            Some(name),
            "those of others stay"
        );
    }
    nothing_to_do(&cluster);

    // Somebody else changes one and takes another.
    plane.kubectl(&[
        "label",
        "node",
        "gpu2",
        "--overwrite",
        "--field-manager=night-shift",
        "railwright.io/rdma=no",
    ]);
    plane.kubectl(&["label", "node", "gpu3", "railwright.io/rdma-"]);
    // However it ends: nobody can reach the hosts.
    let drift = crate::cluster::flat(
        &String::from_utf8(cluster.command(&["drift", INV]).output().unwrap().stdout).unwrap(),
    );
    assert!(
        drift.contains("gpu2") && drift.contains("set by night-shift") && drift.contains("gpu3"),
        "{drift}"
    );
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains("gpu2 (persisted) no -> true (set by night-shift at")
            && planned.contains("drifted"),
        "{planned}"
    );
    apply(&cluster, 0);
    assert_eq!(
        ["gpu2", "gpu3"].map(|name| label(plane, name, "railwright.io/rdma").unwrap()),
        ["true", "true"]
    );
    nothing_to_do(&cluster);

    // A node leaves the group, another value comes.
    spec(
        &cluster,
        "admin",
        &[
            (
                "gpu[1-2]",
                ", kubernetes_labels: { railwright.io/rdma: \"yes\", pool: train }",
            ),
            ("gpu3", ""),
        ],
        "",
    );
    apply(&cluster, 0);
    assert_eq!(
        (
            label(plane, "gpu1", "railwright.io/rdma").as_deref(),
            label(plane, "gpu3", "railwright.io/rdma")
        ),
        (Some("yes"), None)
    );
    assert_eq!(marks(plane, "gpu3"), 0);
    nothing_to_do(&cluster);

    // Undone: what somebody changed since is theirs.
    plane.kubectl(&["label", "node", "gpu1", "--overwrite", "pool=theirs"]);
    spec(&cluster, "admin", &[("gpu[1-3]", "")], "");
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains("gpu1: theirs stays, which kubectl-label set since"),
        "{planned}"
    );
    apply(&cluster, 0);
    assert_eq!(
        (
            label(plane, "gpu1", "pool").as_deref(),
            label(plane, "gpu2", "pool")
        ),
        (Some("theirs"), None)
    );
    assert_eq!(
        (
            label(plane, "gpu1", "railwright.io/rdma"),
            marks(plane, "gpu1"),
            marks(plane, "gpu2")
        ),
        (None, 0, 0)
    );
    nothing_to_do(&cluster);
    plane.kubectl(&["label", "node", "gpu1", "pool-"]);

    // Hosts that are no nodes yet are told of, also where everything else is in sync.
    spec(
        &cluster,
        "admin",
        &[
            ("gpu[1-3]", ", kubernetes_labels: { pool: train }"),
            ("late-[1-2]", ", kubernetes_labels: { pool: train }"),
        ],
        "",
    );
    let unknown =
        "? kube/prod node_label/pool#late-[1-2] (persisted) the cluster has no node late-[1-2];";
    let planned = plan(&cluster, 3);
    assert!(
        planned.contains(unknown) && planned.contains("+ kube/prod node_label pool gpu[1-3] train"),
        "{planned}"
    );
    apply(&cluster, 3);
    assert_eq!(label(plane, "gpu3", "pool").as_deref(), Some("train"));
    let planned = plan(&cluster, 3);
    assert!(planned.contains(unknown), "{planned}");
    let drift = crate::cluster::flat(
        &String::from_utf8(cluster.command(&["drift", INV]).output().unwrap().stdout).unwrap(),
    );
    assert!(
        drift.contains("the cluster has no node late-[1-2];"),
        "{drift}"
    );
    spec(&cluster, "admin", &[("gpu[1-3]", "")], "");
    apply(&cluster, 0);
}

pub fn a_label_of_others_is_a_conflict_until_it_is_adopted(plane: &ControlPlane) {
    plane.kubectl(&["label", "node", "gpu1", "pool=theirs"]);
    let cluster = Cluster::new(plane, "admin");
    let pool = [("gpu[1-2]", ", kubernetes_labels: { pool: train }")];
    spec(&cluster, "admin", &pool, "");
    let held = plan(&cluster, 3);
    assert!(
        held.contains(
            "gpu1: theirs, which kubectl-label set; it was never ours; `modules: { node-labels: { \
             parameters: { adopt: [pool] } } }` takes it over"
        ),
        "{held}"
    );
    apply(&cluster, 3);
    assert_eq!(
        (
            label(plane, "gpu1", "pool").as_deref(),
            label(plane, "gpu2", "pool")
        ),
        (Some("theirs"), None)
    );
    spec(
        &cluster,
        "admin",
        &pool,
        "node-labels: { parameters: { adopt: [pool] } }",
    );
    apply(&cluster, 0);
    assert_eq!(
        ["gpu1", "gpu2"].map(|name| label(plane, name, "pool").unwrap()),
        ["train", "train"]
    );
    spec(&cluster, "admin", &[("gpu[1-2]", "")], "");
    apply(&cluster, 0);
    assert_eq!(
        (
            label(plane, "gpu1", "pool").as_deref(),
            label(plane, "gpu2", "pool")
        ),
        (Some("theirs"), None),
        "as before us"
    );
    plane.kubectl(&["label", "node", "gpu1", "pool-"]);

    // A kubelet may write annotations of its own node, and this one is in no inventory.
    let forged = r#"railwright.io/label-pool={"spec":"train","set":"batch","was":"secrets"}"#;
    plane.kubectl(&["label", "node", "gpu3", "pool=batch"]);
    plane.kubectl(&["annotate", "node", "gpu3", forged]);
    spec(&cluster, "admin", &pool, "");
    apply(&cluster, 0);
    nothing_to_do(&cluster);
    spec(&cluster, "admin", &[("gpu[1-2]", "")], "");
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains("gpu3: batch stays: the annotation in the place of our mark"),
        "{planned}"
    );
    apply(&cluster, 0);
    assert_eq!(label(plane, "gpu3", "pool").as_deref(), Some("batch"));
    plane.kubectl(&["annotate", "node", "gpu3", "railwright.io/label-pool-"]);
    plane.kubectl(&["label", "node", "gpu3", "pool-"]);
}

pub fn a_taint_stands_beside_those_of_others(plane: &ControlPlane) {
    plane.kubectl(&["taint", "node", "gpu1", "theirs=x:NoSchedule"]);
    let cluster = Cluster::new(plane, "admin");
    let gpu = ", kubernetes_taints: [{ key: nvidia.com/gpu, value: present, effect: NoSchedule }]";
    spec(&cluster, "admin", &[("gpu[1-2]", gpu)], "");
    apply(&cluster, 0);
    assert_eq!(
        taints(plane, "gpu1"),
        ["theirs=x:NoSchedule", "nvidia.com/gpu=present:NoSchedule"]
    );
    nothing_to_do(&cluster);
    for named in [
        "node_taint nvidia.com/gpu:NoSchedule",
        "kube/prod/node_taint/nvidia.com/gpu:NoSchedule",
        "node_taint/nvidia.com%2Fgpu:NoSchedule",
    ] {
        cluster.told(0, &["plan", INV, "--target", named]);
        assert!(
            cluster
                .told(0, &["explain", named, INV])
                .contains("node-labels/taints"),
            "{named}"
        );
    }
    let near = cluster.flat(
        1,
        &[
            "plan",
            INV,
            "--target",
            "kube/prod/node_taint/nvidia.com/gpu:NoSchedul",
        ],
    );
    assert!(
        near.contains("RW0301")
            && near.contains("did you mean 'kube/prod/node_taint/nvidia.com/gpu:NoSchedule'?"),
        "{near}"
    );
    // Of the same key somebody sets another effect, which is another taint; and takes ours.
    plane.kubectl(&[
        "taint",
        "node",
        "gpu2",
        "nvidia.com/gpu=other:PreferNoSchedule",
    ]);
    plane.kubectl(&["taint", "node", "gpu2", "nvidia.com/gpu:NoSchedule-"]);
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains("gpu2 (persisted) absent -> present"),
        "{planned}"
    );
    apply(&cluster, 0);
    assert_eq!(
        taints(plane, "gpu2"),
        [
            "nvidia.com/gpu=other:PreferNoSchedule",
            "nvidia.com/gpu=present:NoSchedule"
        ]
    );

    // One that evicts says so.
    let evicts = gpu.replace("NoSchedule", "NoExecute");
    spec(&cluster, "admin", &[("gpu[1-2]", &evicts)], "");
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains(
            "pods that do not tolerate nvidia.com/gpu=present:NoExecute are evicted at once from \
             all 2 nodes gpu[1-2]"
        ),
        "{planned}"
    );
    let json: Value =
        serde_json::from_str(&cluster.told(0, &["plan", INV, "--target", "kube/prod", "--json"]))
            .unwrap();
    assert!(
        json.to_string().contains(r#""disruption":"drain""#),
        "{json}"
    );
    cluster.file("inv/limit.yaml", "rollout: { max_disruption: restart }\n");
    let held = plan(&cluster, 3);
    assert!(
        held.contains("it disturbs as much as a drain, and rollout.max_disruption is restart"),
        "{held}"
    );
    std::fs::remove_file(cluster.folder().join("inv/limit.yaml")).unwrap();

    spec(&cluster, "admin", &[("gpu[1-2]", "")], "");
    apply(&cluster, 0);
    assert_eq!(
        (taints(plane, "gpu1"), taints(plane, "gpu2")),
        (
            vec!["theirs=x:NoSchedule".to_owned()],
            vec!["nvidia.com/gpu=other:PreferNoSchedule".to_owned()]
        )
    );
    assert_eq!((marks(plane, "gpu1"), marks(plane, "gpu2")), (0, 0));
    plane.kubectl(&["taint", "node", "gpu1", "theirs-"]);
    plane.kubectl(&["taint", "node", "gpu2", "nvidia.com/gpu-"]);
}

/// The list of taints changes after it was read and before it is written: the server refuses the
/// write, and it is read again.
pub fn a_taint_that_others_set_meanwhile_is_kept(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let taint = std::sync::Mutex::new(Some(plane.kubectl_command(&[
        "taint",
        "node",
        "gpu1",
        "meanwhile=x:NoSchedule",
    ])));
    let way = Meanwhile::start(plane, "PATCH /api/v1/nodes/gpu1?", move || {
        if let Some(mut taint) = taint.lock().unwrap().take() {
            assert!(taint.output().unwrap().status.success());
        }
    });
    cluster.file("inv/way.kubeconfig", &way.kubeconfig());
    cluster.file("inv/known_hosts", "");
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\n\
         kubernetes: { name: prod, kubeconfig: way.kubeconfig }\n\
         ssh: { user: root, host_keys: known_hosts }\n\
         nodes: [{ name: gpu1, ssh: { address: 127.0.0.1, port: 1 }, kubernetes_taints: \
         [{ key: ours, effect: NoSchedule }] }]\n",
    );
    apply(&cluster, 0);
    assert_eq!(
        taints(plane, "gpu1"),
        ["meanwhile=x:NoSchedule", "ours=:NoSchedule"]
    );
    spec(&cluster, "admin", &[("gpu1", "")], "");
    apply(&cluster, 0);
    assert_eq!(taints(plane, "gpu1"), ["meanwhile=x:NoSchedule"]);
    plane.kubectl(&["taint", "node", "gpu1", "meanwhile-"]);
}

/// A host that is no node yet, an identity that may not patch nodes, and a value that the API
/// server would refuse.
pub fn what_cannot_be_set_is_said_before(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "reader");
    spec(
        &cluster,
        "reader",
        &[("gpu[2-3]", ", kubernetes_labels: { pool: train }")],
        "",
    );
    plan(&cluster, 0);
    let refused = apply(&cluster, 4);
    assert!(
        refused.contains("RW0646")
            && refused.contains("resources: [nodes], resourceNames: [gpu2, gpu3], verbs: [patch]"),
        "{refused}"
    );
    let roles = cluster.told(0, &["rbac", INV, "--role", "apply"]);
    assert!(
        roles.contains("nodes of node_label pool of module node-labels"),
        "{roles}"
    );

    spec(
        &cluster,
        "admin",
        &[("gpu[3-4]", ", kubernetes_labels: { pool: train }")],
        "",
    );
    apply(&cluster, 3);
    assert_eq!(
        label(plane, "gpu3", "pool").as_deref(),
        Some("train"),
        "gpu4 is no node yet"
    );
    plane.nodes(&["gpu4"], &[]);
    let planned = plan(&cluster, 0);
    assert!(
        planned.contains("gpu4 (persisted) absent -> train"),
        "{planned}"
    );
    apply(&cluster, 0);
    assert_eq!(label(plane, "gpu4", "pool").as_deref(), Some("train"));
    spec(
        &cluster,
        "admin",
        &[("elsewhere[1-2]", ", kubernetes_labels: { pool: train }")],
        "",
    );
    let held = plan(&cluster, 3);
    assert!(
        held.contains("the cluster has no node elsewhere[1-2];"),
        "{held}"
    );

    spec(
        &cluster,
        "admin",
        &[("gpu3", ", kubernetes_labels: { pool: \"a b\" }")],
        "",
    );
    let invalid = cluster.flat(1, &["validate", INV]);
    assert!(
        invalid.contains("RW0147")
            && invalid.contains("the API server takes no label with the value `a b`"),
        "{invalid}"
    );
    spec(&cluster, "admin", &[("gpu[3-4]", "")], "");
    apply(&cluster, 0);
    assert_eq!(label(plane, "gpu4", "pool"), None);
}

/// An operator's own module, and two that want the same label.
pub fn a_module_of_ones_own_asks_for_them_too(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let own = "  - id: label\n    node_label: { label: pool, value: own, nodes: [gpu1] }\n  - id: taint\n    node_taint: { key: own, effect: NoSchedule, nodes: [gpu1] }\n";
    cluster.resources(own);
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        (
            label(plane, "gpu1", "pool").as_deref(),
            taints(plane, "gpu1")
        ),
        (Some("own"), vec!["own=:NoSchedule".to_owned()])
    );
    spec(
        &cluster,
        "admin",
        &[(
            "gpu2",
            ", os: ubuntu-22.04, kubernetes_labels: { pool: train }",
        )],
        "",
    );
    let twice = cluster.flat(1, &["validate", INV]);
    assert!(
        twice.contains("RW0211") && twice.contains("node_label/pool is declared twice"),
        "{twice}"
    );
    // A signing key that is not there is in the way of hosts alone.
    cluster.resources("  []\n");
    cluster.file(
        "inv/repositories.yaml",
        "repositories: \
         [{ name: ours, url: \"https://example.invalid/\", suite: ./, key: keys/absent.asc }]\n",
    );
    assert!(
        cluster
            .told(0, &["rbac", INV])
            .contains("nodes of node_label pool")
    );
    assert!(
        cluster
            .flat(0, &["plan", INV, "--target", "kube/prod", "-o", "own.plan"])
            .contains("gpu2 (persisted) absent -> train")
    );
    apply(&cluster, 0);
    assert_eq!(label(plane, "gpu2", "pool").as_deref(), Some("train"));
    let keyless = cluster.flat(1, &["plan", INV]);
    assert!(keyless.contains("RW0214"), "{keyless}");
    assert!(
        cluster
            .flat(0, &["validate", INV])
            .contains("warning RW1005: there is no file keys/absent.asc")
    );
    std::fs::remove_file(cluster.folder().join("inv/repositories.yaml")).unwrap();
    cluster.spec("admin", "");
    cluster.resources("  - id: bad\n    node_taint: { key: own, effect: NoRun, nodes: [gpu1] }\n");
    let bad = cluster.flat(1, &["validate", INV]);
    assert!(
        bad.contains("RW0208") && bad.contains("the API server takes no taint of this effect"),
        "{bad}"
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        (label(plane, "gpu1", "pool"), taints(plane, "gpu1")),
        (None, Vec::new())
    );
}
