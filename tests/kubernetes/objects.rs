//! Objects of an operator's own module: planned, applied, drifted, fixed, taken over and taken
//! back on a real API server.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

const INV: &str = "inv";

/// A ConfigMap with this text.
fn config_map(name: &str, text: &str) -> String {
    format!(
        "  - id: {name}\n    kubernetes_object:\n      manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, namespace: \
         default }}, data: {{ text: \"{text}\" }} }}\n"
    )
}

/// Everything in the cluster with its resource version, but for what the control plane itself
/// writes all the time.
fn versions(plane: &ControlPlane) -> String {
    let kinds = "configmaps,secrets,daemonsets,deployments,namespaces,serviceaccounts,services,clusterroles,customresourcedefinitions";
    let format = "jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} \
                  {.metadata.resourceVersion}{\"\\n\"}{end}";
    plane.kubectl(&["get", kinds, "-A", "-o", format])
}

/// The objects once the controllers of a young cluster have made what is theirs.
fn settled(plane: &ControlPlane) -> String {
    for _ in 0..60 {
        let before = versions(plane);
        std::thread::sleep(std::time::Duration::from_secs(2));
        if versions(plane) == before && before.contains("ConfigMap/default/kube-root-ca.crt") {
            return before;
        }
    }
    panic!("the cluster does not come to rest");
}

fn text_of(plane: &ControlPlane, name: &str) -> String {
    plane.kubectl(&["get", "configmap", name, "-o", "jsonpath={.data.text}"])
}

/// How many labels and annotations of ours it has.
fn marks_on(plane: &ControlPlane, name: &str) -> usize {
    let object: Value =
        serde_json::from_str(&plane.kubectl(&["get", "configmap", name, "-o", "json"])).unwrap();
    let keys = ["labels", "annotations"].into_iter().flat_map(|of| {
        object["metadata"][of]
            .as_object()
            .cloned()
            .unwrap_or_default()
    });
    keys.filter(|(key, _)| key.starts_with("railwright.io/") || key.starts_with("applyset."))
        .count()
}

pub fn an_object_is_planned_applied_and_stays(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("made", "one"));
    let before = settled(plane);
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(plan.contains("ConfigMap default/made"), "{plan}");
    assert_eq!(versions(plane), before, "a plan changes nothing");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane, "made"), "one");
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    let after = versions(plane);
    cluster.told(0, &["drift", INV]);
    assert_eq!(versions(plane), after, "nor does drift");

    plane.kubectl(&[
        "patch",
        "configmap",
        "made",
        "--field-manager=kubectl-edit",
        "-p",
        r#"{"data":{"text":"two"}}"#,
    ]);
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("data.text") && drift.contains("kubectl-edit"),
        "{drift}"
    );
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(plan.contains("set by kubectl-edit at "), "{plan}");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane, "made"), "one");

    cluster.resources(&config_map("made", "two"));
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("actual one, desired two (applied one)") && drift.contains("SPEC NEWER"),
        "{drift}"
    );

    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(plan.contains("ConfigMap default/made"), "{plan}");
    cluster.told(0, &["apply", INV, "--yes"]);
    let left = plane.kubectl(&[
        "get",
        "configmap",
        "made",
        "--ignore-not-found",
        "-o",
        "name",
    ]);
    assert_eq!(left, "");
}

pub fn what_others_made_is_taken_over_only_when_asked(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    plane.kubectl(&[
        "create",
        "configmap",
        "theirs",
        "--from-literal=text=theirs",
    ]);
    cluster.resources(&config_map("theirs", "ours"));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("it was never ours") && plan.contains("data.text (kubectl-create)"),
        "{plan}"
    );
    let applied = cluster.told(3, &["apply", INV, "--yes"]);
    assert!(
        applied.contains(
            "incomplete: nothing was done; 1 blocked\n\
             next: fix what is said above, then railwright plan"
        ),
        "{applied}"
    );
    assert_eq!(text_of(plane, "theirs"), "theirs");
    cluster.resources(
        &config_map("theirs", "ours")
            .replace("      manifest:", "      adopt: true\n      manifest:"),
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane, "theirs"), "ours");
    // Without the word it stays taken over.
    cluster.resources(&config_map("theirs", "ours"));
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.told(0, &["drift", INV]);
    cluster.resources(&config_map("theirs", "again"));
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        (text_of(plane, "theirs").as_str(), marks_on(plane, "theirs")),
        ("again", 2)
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    let says = "removed from spec: it stays, and is ours no longer leaves ConfigMap.core \
                default/theirs stays as it is: it was there before us";
    assert!(
        plan.contains(says) && plan.contains("marks (persisted) ours -> absent"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        (text_of(plane, "theirs").as_str(), marks_on(plane, "theirs")),
        ("again", 0)
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    plane.kubectl(&["delete", "configmap", "theirs"]);
}

/// A controller that owns the field, too: the step ends, and says who it is.
pub fn who_sets_it_back_is_named_and_not_fought_for_ever(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("contested", "ours"));
    cluster.told(0, &["apply", INV, "--yes"]);
    let set_back = || {
        plane.kubectl(&[
            "patch",
            "configmap",
            "contested",
            "--type",
            "merge",
            "-p",
            r#"{"data":{"text":"theirs"}}"#,
        ])
    };
    set_back();
    let over = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                set_back();
            }
        });
        let said = cluster.flat(1, &["apply", INV, "--yes"]);
        over.store(true, Ordering::Relaxed);
        said
    });
    assert!(
        said.contains("RW0653") && said.contains("set by kubectl-patch at"),
        "{said}"
    );
    assert_eq!(text_of(plane, "contested"), "theirs");
    // With nobody there any more, the run goes on where it was.
    cluster.told(0, &["resume", INV]);
    assert_eq!(text_of(plane, "contested"), "ours");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

pub fn a_kind_of_its_own_comes_first(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let definition = "  - id: kind
    kubernetes_object:
      manifest:
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: { name: rails.example.org }
        spec:
          group: example.org
          scope: Namespaced
          names: { plural: rails, singular: rail, kind: Rail }
          versions:
            - name: v1
              served: true
              storage: true
              schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { mtu: { type: integer } } } } } }
";
    let rail = "  - id: rail
    after: [kind]
    kubernetes_object:
      manifest: { apiVersion: example.org/v1, kind: Rail, metadata: { name: a, namespace: default }, spec: { mtu: 9000 } }
";
    cluster.resources(&format!("{definition}{rail}"));
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["get", "rail.example.org", "a", "-o", "jsonpath={.spec.mtu}"]),
        "9000"
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources(&format!("{definition}{}", rail.replace("9000", "high")));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("the API server does not take Rail.example.org default/a"),
        "{plan}"
    );
    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(plan.contains("what lies below it would go along"), "{plan}");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["get", "rail.example.org", "-A", "-o", "name"]),
        ""
    );
    plane.kubectl(&["delete", "crd", "rails.example.org"]);
}

/// The shipped module: its pods run on every node, and start anew with another pool.
pub fn the_shared_device_plugin_is_rolled_out(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    plane.nodes(
        &["gpu01", "gpu02"],
        &[("rdma/rdma_a", "1000"), ("rdma/rdma_b", "1000")],
    );
    let hosts = "fabric: { kind: rocev2 }\n\
                 nodes: [{ name: \"gpu0[1-2]\", ssh: { address: \"127.0.0.{index}\", port: 1 }, \
                 nics: { model: ConnectX-6, rails: 2, netdev: \"ens{rail}\" } }]\n";
    let config = |pools: &str| {
        let text = std::fs::read_to_string(cluster.folder().join("inv/cluster.yaml")).unwrap();
        let access = text
            .lines()
            .find(|line| line.starts_with("kubernetes:"))
            .unwrap();
        let access = format!(
            "{}, rdma: {{ resources: {{ {pools} }} }} }}",
            access
                .split(", rdma:")
                .next()
                .unwrap()
                .trim_end_matches(" }")
        );
        cluster.file(
            "inv/cluster.yaml",
            &format!("cluster: train\n{access}\n{hosts}"),
        );
    };
    config("rdma_a: rail 0, rdma_b: rail 1");
    // No host answers here, and none is asked to change.
    let plan = cluster.flat(0, &["plan", INV, "--target", "kube/prod"]);
    assert!(
        plan.contains("DaemonSet.apps kube-system/rdma-shared-dp-ds"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes", "--target", "kube/prod"]);
    let configured = plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "configmap",
        "rdma-devices",
        "-o",
        "jsonpath={.data.config\\.json}",
    ]);
    let configured: Value = serde_json::from_str(&configured).unwrap();
    assert_eq!(
        configured["configList"][1]["selectors"]["ifNames"],
        serde_json::json!(["ens1"])
    );
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    let image = plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "daemonset",
        "rdma-shared-dp-ds",
        "-o",
        image,
    ]);
    assert_eq!(image, "ghcr.io/mellanox/k8s-rdma-shared-dev-plugin:v1.5.3");
    config("rdma_a: rail 0-1");
    let plan = cluster.flat(0, &["plan", INV, "--target", "kube/prod"]);
    assert!(
        plan.contains("pods of DaemonSet.apps kube-system/rdma-shared-dp-ds start anew"),
        "{plan}"
    );
    cluster.spec("admin", "");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["-n", "kube-system", "get", "daemonsets", "-o", "name"]),
        ""
    );
}

/// Whoever may only read sees what would change, compared field by field, and changes nothing.
pub fn a_reader_sees_and_changes_nothing(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("seen", "one"));
    cluster.told(0, &["apply", INV, "--yes"]);
    cluster.spec("reader", "");
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources(&config_map("seen", "two"));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("one -> two") && plan.contains("not previewed"),
        "{plan}"
    );
    let before = versions(plane);
    let refused = cluster.flat(4, &["apply", INV, "--yes"]);
    assert!(
        refused.contains("nothing was changed") && refused.contains("leases"),
        "{refused}"
    );
    assert_eq!(versions(plane), before);
    cluster.spec("nobody", "");
    let blind = cluster.flat(3, &["plan", INV]);
    assert!(
        blind.contains("no role of ours allows it") && blind.contains("configmaps"),
        "{blind}"
    );
    cluster.spec("admin", "");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// A server that is away is said so, and nothing is lost.
pub fn a_server_that_is_away_is_said_so(plane: &mut ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("away", "one"));
    cluster.told(0, &["plan", INV, "-o", "a.plan"]);
    let folder = cluster.into_folder();
    plane.stop_api_server();
    let cluster = Cluster::again(plane, folder);
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("RW0413") && !plan.contains("No changes"),
        "{plan}"
    );
    let refused = cluster.flat(4, &["apply", "a.plan", "--yes"]);
    assert!(
        refused.contains("RW0413") && refused.contains("nothing was changed"),
        "{refused}"
    );
    let folder = cluster.into_folder();
    plane.start_api_server();
    let cluster = Cluster::again(plane, folder);
    cluster.told(0, &["apply", "a.plan", "--yes"]);
    assert_eq!(text_of(plane, "away"), "one");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// Two inventories on one cluster know nothing of each other, and a fresh checkout knows what an
/// earlier one applied.
pub fn inventories_leave_each_other_alone(plane: &ControlPlane) {
    let (one, other) = (Cluster::new(plane, "admin"), Cluster::new(plane, "admin"));
    let spec = std::fs::read_to_string(other.folder().join("inv/cluster.yaml")).unwrap();
    other.file(
        "inv/cluster.yaml",
        &spec.replace("cluster: train", "cluster: serve"),
    );
    one.resources(&config_map("of-one", "1"));
    other.resources(&config_map("of-other", "2"));
    for _ in 0..2 {
        one.told(0, &["apply", INV, "--yes"]);
        other.told(0, &["apply", INV, "--yes"]);
    }
    assert_eq!(
        (text_of(plane, "of-one"), text_of(plane, "of-other")),
        ("1".to_owned(), "2".to_owned())
    );
    let fresh = Cluster::new(plane, "admin");
    fresh.resources("  []\n");
    let plan = fresh.flat(0, &["plan", INV]);
    assert!(
        plan.contains("ConfigMap default/of-one") && !plan.contains("of-other"),
        "{plan}"
    );
    fresh.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&[
            "get",
            "configmap",
            "of-one",
            "--ignore-not-found",
            "-o",
            "name"
        ]),
        ""
    );
    other.resources("  []\n");
    other.told(0, &["apply", INV, "--yes"]);
}

/// Nothing else says in which order they are made; what is of the whole cluster has no namespace.
pub fn a_namespace_comes_before_what_is_in_it(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let space = "  - id: space\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: Namespace, metadata: { name: zone } }\n";
    let inside = config_map("inside", "x").replace("namespace: default", "namespace: zone");
    cluster.resources(&format!("{inside}{space}"));
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    let role = "  - id: role\n    kubernetes_object:\n      manifest: { apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, \
                metadata: { name: r, namespace: zone }, rules: [] }\n";
    cluster.resources(&format!("{inside}{space}{role}"));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(plan.contains("of the whole cluster"), "{plan}");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["delete", "namespace", "zone", "--wait=false"]);
}

/// Claims with their data, and a StatefulSet with which Kubernetes deletes the claims of its pods.
pub fn what_holds_data_stays(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let claim = "accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } }";
    cluster.resources(&format!(
        "  - id: claim
    kubernetes_object:
      ready: false
      manifest: {{ apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{ name: data, namespace: default }}, spec: {{ {claim} }} }}
  - id: db
    kubernetes_object:
      ready: false
      manifest:
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {{ name: db, namespace: default }}
        spec:
          serviceName: db
          selector: {{ matchLabels: {{ app: db }} }}
          persistentVolumeClaimRetentionPolicy: {{ whenDeleted: Delete }}
          volumeClaimTemplates: [{{ metadata: {{ name: d }}, spec: {{ {claim} }} }}]
          template:
            metadata: {{ labels: {{ app: db }} }}
            spec: {{ containers: [{{ name: main, image: \"example.invalid/a:1\" }}] }}
"
    ));
    cluster.told(0, &["apply", INV, "--yes"]);
    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("PersistentVolumeClaim.core default/data stays as it is: its data would go along")
            && plan.contains("StatefulSet.apps default/db stays as it is: the claims of its pods (d-db-N) would go along"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    let left = ["get", "pvc/data", "statefulset/db", "-o", "name"];
    assert_eq!(
        plane.kubectl(&left).trim(),
        "persistentvolumeclaim/data\nstatefulset.apps/db"
    );
    plane.kubectl(&["delete", "pvc/data", "statefulset/db", "--wait=false"]);
}

/// A field that the server never lets change: blocked with the way out, and recreated where the
/// resource allows it.
pub fn what_never_changes_is_made_anew_when_allowed(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let workload = |app: &str, port: u32, replace: &str| {
        format!(
            "  - id: picky
    kubernetes_object:
{replace}      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{ name: picky, namespace: default }}
        spec:
          replicas: 1
          selector: {{ matchLabels: {{ app: {app} }} }}
          template:
            metadata: {{ labels: {{ app: {app} }} }}
            spec: {{ containers: [{{ name: main, image: \"example.invalid/a:1\", ports: [{{ containerPort: {port} }}] }}] }}
"
        )
    };
    cluster.resources(&workload("one", 80, ""));
    cluster.told(0, &["apply", INV, "--yes"]);
    let uid = || {
        plane.kubectl(&[
            "get",
            "deployment",
            "picky",
            "-o",
            "jsonpath={.metadata.uid}",
        ])
    };
    let first = uid();
    cluster.resources(&workload("two", 80, ""));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains(
            "field is immutable; `replace: true` beside the manifest has it deleted and recreated"
        ),
        "{plan}"
    );
    cluster.told(3, &["apply", INV, "--yes"]);
    assert_eq!(uid(), first);
    // What the server would not take anew either stays.
    cluster.resources(&workload("two", 80000, "      replace: true\n"));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("containerPort: Invalid value: 80000"),
        "{plan}"
    );
    cluster.told(3, &["apply", INV, "--yes"]);
    assert_eq!(uid(), first);
    cluster.resources(&workload("two", 80, "      replace: true\n"));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(
            "is deleted, and its pods with it, and recreated: a field changes that never changes"
        ),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_ne!(uid(), first);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    let kinds = [
        "job",
        "clusterrolebinding",
        "priorityclass",
        "storageclass",
        "persistentvolume",
    ];
    let uids = || {
        kinds.map(|kind| plane.kubectl(&["get", kind, "picky", "-o", "jsonpath={.metadata.uid}"]))
    };
    cluster.resources(&picky_kinds("one", 1));
    cluster.told(0, &["apply", INV, "--yes"]);
    let first = uids();
    cluster.resources(&picky_kinds("two", 2));
    let plan = cluster.flat(0, &["plan", INV]);
    assert_eq!(
        plan.matches("recreated: a field changes that never changes")
            .count(),
        kinds.len(),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(first.iter().zip(uids()).all(|(first, now)| *first != now));
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    // Without leave the reason is told, however long the value is that stands before it.
    cluster.resources(&picky_kinds("three", 3).replace("      replace: true\n", ""));
    let plan = cluster.flat(3, &["plan", INV]);
    assert_eq!(
        plan.matches("; `replace: true` beside the manifest has it deleted and recreated")
            .count(),
        kinds.len(),
        "{plan}"
    );
    assert!(
        plan.contains("}: field is immutable; `replace: true`"),
        "{plan}"
    );
    // A key that reads like the reason is none.
    let key = |data: &str| {
        format!(
            "  - id: key\n    kubernetes_object:\n      replace: true\n      manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: picky-key, \
             namespace: default }}, data: {{ {data} }} }}\n"
        )
    };
    cluster.resources(&key("a: b"));
    cluster.told(0, &["apply", INV, "--yes"]);
    cluster.resources(&key("\"the field is immutable\": b"));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("does not take ConfigMap.core default/picky-key"),
        "{plan}"
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["delete", "persistentvolume", "picky", "--wait=false"]);
}

/// One of each kind of which a field never changes, with such a field in every one.
fn picky_kinds(word: &str, number: u32) -> String {
    let one = |n: usize, manifest: String| {
        format!(
            "  - id: picky-{n}\n    kubernetes_object:\n      replace: true\n      ready: false\n      manifest: {{ apiVersion: {manifest} }}\n"
        )
    };
    [
        format!(
            "batch/v1, kind: Job, metadata: {{ name: picky, namespace: default }}, spec: {{ \
             template: {{ spec: {{ restartPolicy: Never, containers: [{{ name: main, image: \
             'example.invalid/{word}:1' }}] }} }} }}"
        ),
        format!(
            "rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{ name: picky }}, \
             roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {word} }}, \
             subjects: []"
        ),
        format!(
            "scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{ name: picky }}, value: \
             {number}"
        ),
        format!(
            "storage.k8s.io/v1, kind: StorageClass, metadata: {{ name: picky }}, provisioner: \
             example.org/{word}"
        ),
        format!(
            "v1, kind: PersistentVolume, metadata: {{ name: picky }}, spec: {{ capacity: {{ \
             storage: 1Gi }}, accessModes: [ReadWriteOnce], hostPath: {{ path: /{word} }} }}"
        ),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, manifest)| one(n, manifest))
    .collect()
}
