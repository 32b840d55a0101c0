//! Parts of a JSON text that somebody else owns: Terway's configuration, with a DaemonSet that
//! reads it at its start. Planned, applied, drifted, edited by two at a time, and undone on a
//! real API server whose controllers renew the pods.

use crate::cluster::Cluster;
use crate::meanwhile::Meanwhile;
use crate::rig::ControlPlane;
use serde_json::{Value, json};

const INV: &str = "inv";

/// As Alibaba's documentation shows the text ("Customize Terway configuration parameters"), with
/// what a person would add.
const CONF: &str = r#"{
  "version": "1",
  "max_pool_size": 5,
  "min_pool_size": 0,
  "eni_cap_ratio": 1.0,
  "backoff": 0.10000000000000000555,
  "credential_path": "/var/addon/token-config",
  "enable_eni_trunking": true,
  "vswitches": {"cn-hangzhou-j":["vsw-foo"],"cn-hangzhou-k":["vsw-foo"]},
  "eni_tags": {"ack.aliyun.com":"c7c3cfoo"},
  "service_cidr": "192.168.0.0/16",
  "ip_stack": "ipv4"
}
"#;

/// The ConfigMap by kubectl, and a DaemonSet beside it.
fn terway(plane: &ControlPlane) {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "eni-config", "namespace": "kube-system" },
                      "data": { "eni_conf": CONF, "disable_network_policy": "false" } });
    plane.apply(&map.to_string());
    let template = json!({ "metadata": { "labels": { "app": "terway-eniip" } },
                           "spec": { "containers": [{ "name": "terway", "image": "example.invalid/terway:1" }] } });
    let set = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "terway-eniip", "namespace": "kube-system" },
                      "spec": { "selector": { "matchLabels": { "app": "terway-eniip" } }, "template": template } });
    plane.nodes(&["ecs01", "ecs02"], &[]);
    plane.apply(&set.to_string());
    rolled_out(plane);
}

fn rolled_out(plane: &ControlPlane) {
    plane.kubectl(&[
        "-n",
        "kube-system",
        "rollout",
        "status",
        "daemonset/terway-eniip",
        "--timeout=120s",
    ]);
}

fn text(plane: &ControlPlane) -> String {
    plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "configmap",
        "eni-config",
        "-o",
        "jsonpath={.data.eni_conf}",
    ])
}

/// Somebody else writes the text.
fn write(plane: &ControlPlane, text: &str) {
    let patch = json!({ "data": { "eni_conf": text } }).to_string();
    plane.kubectl(&[
        "-n",
        "kube-system",
        "patch",
        "configmap",
        "eni-config",
        "--field-manager=kubectl-edit",
        "-p",
        &patch,
    ]);
}

fn pods(plane: &ControlPlane) -> String {
    plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "pods",
        "-l",
        "app=terway-eniip",
        "-o",
        "jsonpath={.items[*].metadata.uid}",
    ])
}

fn of(value: &str, field: &str) -> Value {
    serde_json::from_str::<Value>(value).unwrap()[field].clone()
}

const WHITELIST: &str = "  - id: whitelist
    json_in_configmap:
      namespace: kube-system
      name: eni-config
      key: eni_conf
      edits:
        - { pointer: /eni_tag_filter/creator, value: terway }
        - { pointer: /max_pool_size, value: 10 }
        - { pointer: /eni_cap_ratio, value: 1 }
        - { pointer: /backoff, value: 2 }
        - { pointer: /eni_tag_block_list, contains: { key: managed-by, value: own } }
      restarts: { kind: DaemonSet, name: terway-eniip }
";

pub fn a_part_is_edited_and_its_readers_restart(plane: &ControlPlane) {
    terway(plane);
    let (cluster, before) = (Cluster::new(plane, "admin"), pods(plane));
    cluster.resources(WHITELIST);
    let plan = cluster.flat(0, &["plan", INV]);
    for said in [
        "json_in_configmap kube-system/eni-config/eni_conf",
        "eni_tag_filter.creator (persisted) absent -> terway",
        "max_pool_size (persisted) 5 -> 10",
        "the text was set by kubectl-client-side-apply at",
        "pods of DaemonSet.apps kube-system/terway-eniip start anew, and read it then",
    ] {
        assert!(plan.contains(said), "{said}\n{plan}");
    }
    assert_eq!(text(plane), CONF, "a plan changes nothing");
    cluster.told(0, &["apply", INV, "--yes"]);
    let edited = text(plane);
    let expected = CONF
        .replace("\"max_pool_size\": 5", "\"max_pool_size\": 10")
        .replace("0.10000000000000000555", "2")
        .replace(
            "\"ipv4\"\n",
            "\"ipv4\",\n  \"eni_tag_filter\": {\"creator\":\"terway\"},\n  \"eni_tag_block_list\": [{\"key\":\"managed-by\",\"value\":\"own\"}]\n",
        );
    assert_eq!(edited, expected, "everything else keeps its bytes");
    rolled_out(plane);
    let after = pods(plane);
    assert!(
        before.split(' ').all(|pod| !after.contains(pod)),
        "{before} -> {after}"
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.told(0, &["drift", INV]);

    // Undone: the values are as they were, and the pods read them again.
    cluster.resources("  []\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(plan.contains("max_pool_size (persisted) 10 -> 5"), "{plan}");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text(plane), CONF);
    rolled_out(plane);
    let last = pods(plane);
    assert!(
        after.split(' ').all(|pod| !last.contains(pod)),
        "{after} -> {last}"
    );
    let marks = plane.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "configmap/eni-config",
        "daemonset/terway-eniip",
        "-o",
        "yaml",
    ]);
    assert!(!marks.contains("railwright.io/"), "{marks}");
}

/// Its owner or a person writes the text again, and says nothing of our parts.
pub fn drift_is_named_and_mended(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(WHITELIST);
    cluster.told(0, &["apply", INV, "--yes"]);
    rolled_out(plane);
    let before = pods(plane);
    write(plane, &CONF.replace("192.168", "172.16"));
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("eni_tag_filter.creator") && drift.contains("kubectl-edit"),
        "{drift}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    let fixed = text(plane);
    assert_eq!(
        (of(&fixed, "eni_tag_filter"), of(&fixed, "service_cidr")),
        (json!({ "creator": "terway" }), json!("172.16.0.0/16"))
    );
    rolled_out(plane);
    assert_ne!(
        pods(plane),
        before,
        "pods that started in between have read the other text"
    );

    // A template without the mark owes the restart, whoever took it away.
    let name = "railwright.io~1kube-system.eni-config_eni_conf";
    let patch =
        format!(r#"[{{"op":"remove","path":"/spec/template/metadata/annotations/{name}"}}]"#);
    plane.kubectl(&[
        "-n",
        "kube-system",
        "patch",
        "daemonset",
        "terway-eniip",
        "--type=json",
        "-p",
        &patch,
    ]);
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(
            "restart of DaemonSet.apps kube-system/terway-eniip (running) absent -> since edit"
        ),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
}

/// What others write between plan and apply is kept; where it is one of our parts, the step is
/// stale and nothing is written.
pub fn edits_of_others_are_not_lost(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    write(plane, CONF);
    cluster.resources(&WHITELIST.replace("value: 10", "value: 20"));
    cluster.told(0, &["plan", INV, "-o", "a.plan"]);
    write(
        plane,
        &CONF.replace("\"ip_stack\": \"ipv4\"", "\"ip_stack\": \"dual\""),
    );
    cluster.told(0, &["apply", "a.plan", "--yes"]);
    let merged = text(plane);
    assert_eq!(
        (of(&merged, "ip_stack"), of(&merged, "max_pool_size")),
        (json!("dual"), json!(20))
    );
    write(plane, &merged.replace("20", "21"));
    cluster.told(0, &["plan", INV, "-o", "a.plan"]);
    let theirs = merged.replace("20", "22");
    write(plane, &theirs);
    let stale = cluster.flat(3, &["apply", "a.plan", "--yes"]);
    assert!(
        stale.contains("RW0610") && stale.contains("max_pool_size"),
        "{stale}"
    );
    assert_eq!(text(plane), theirs);
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// The text changes after it was read for the edit, and before the edit is written: the server
/// refuses the write, and it is read again.
pub fn edits_of_others_between_read_and_write_are_kept(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    for (theirs, code) in [("\"ip_stack\": \"dual\"", 0), ("\"max_pool_size\": 7", 3)] {
        write(plane, CONF);
        let ours = if code == 0 {
            "\"ip_stack\": \"ipv4\""
        } else {
            "\"max_pool_size\": 5"
        };
        let new = CONF.replace(ours, theirs);
        let mut patch = plane.kubectl_command(&[
            "-n",
            "kube-system",
            "patch",
            "configmap",
            "eni-config",
            "--field-manager=kubectl-edit",
            "-p",
        ]);
        patch.arg(json!({ "data": { "eni_conf": new } }).to_string());
        let patch = std::sync::Mutex::new(Some(patch));
        let way = Meanwhile::start(
            plane,
            "PATCH /api/v1/namespaces/kube-system/configmaps/eni-config?",
            move || {
                if let Some(mut patch) = patch.lock().unwrap().take() {
                    assert!(patch.output().unwrap().status.success());
                }
            },
        );
        cluster.file("inv/way.kubeconfig", &way.kubeconfig());
        cluster.file(
            "inv/cluster.yaml",
            "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
        );
        cluster.resources(WHITELIST);
        let said = cluster.flat(code, &["apply", INV, "--yes"]);
        let now = text(plane);
        if code == 0 {
            assert_eq!(
                (of(&now, "ip_stack"), of(&now, "max_pool_size")),
                (json!("dual"), json!(10)),
                "{said}"
            );
        } else {
            assert!(
                said.contains("RW0610") && said.contains("max_pool_size is 7 by now"),
                "{said}"
            );
            assert_eq!(now, new, "nothing was written");
        }
    }
    cluster.spec("admin", "");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// Somebody else's text and somebody else's workload, made in the place of those that were looked
/// at right before we write.
pub fn what_was_made_anew_meanwhile_is_left_alone(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    write(plane, CONF);
    let places = [
        (
            "configmap",
            "eni-config",
            "/api/v1/namespaces/kube-system/configmaps/eni-config?",
        ),
        (
            "daemonset",
            "terway-eniip",
            "/apis/apps/v1/namespaces/kube-system/daemonsets/terway-eniip?",
        ),
    ];
    for (kind, name, path) in places {
        let theirs = plane.kubectl(&["-n", "kube-system", "get", kind, name, "-o", "json"]);
        let mut theirs: Value = serde_json::from_str(&theirs).unwrap();
        theirs["metadata"] = json!({ "name": name, "namespace": "kube-system", "labels": { "of": "somebody-else" } });
        let file = plane.work().join(format!("{kind}.json"));
        std::fs::write(&file, theirs.to_string()).unwrap();
        let remake = [
            plane.kubectl_command(&["-n", "kube-system", "delete", kind, name]),
            plane.kubectl_command(&["create", "-f", file.to_str().unwrap()]),
        ];
        let remake = std::sync::Mutex::new(Vec::from(remake));
        let way = Meanwhile::watch(plane, move |head| {
            if head.starts_with(format!("PATCH {path}").as_bytes()) {
                for mut command in remake.lock().unwrap().drain(..) {
                    assert!(command.output().unwrap().status.success());
                }
            }
        });
        cluster.file("inv/way.kubeconfig", &way.kubeconfig());
        cluster.file(
            "inv/cluster.yaml",
            "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
        );
        cluster.resources(WHITELIST);
        let code = if kind == "configmap" { 3 } else { 1 };
        let said = cluster.flat(code, &["apply", INV, "--yes"]);
        let desired =
            format!("kube-system/{name} is another object of that name by now, and is left alone");
        assert!(said.contains(&desired), "{said}");
        let stands = plane.kubectl(&["-n", "kube-system", "get", kind, name, "-o", "json"]);
        let stands: Value = serde_json::from_str(&stands).unwrap();
        assert_eq!(
            (&stands["data"], &stands["spec"]["template"]),
            (&theirs["data"], &theirs["spec"]["template"]),
            "nothing of it was written"
        );
    }
    cluster.spec("admin", "");
    write(plane, CONF);
    cluster.told(0, &["apply", INV, "--yes"]);
    rolled_out(plane);
}

/// A ConfigMap that somebody makes once another object is there: the plan says when its parts are
/// known, and the run goes on.
pub fn what_comes_with_another_step_is_edited_after_it(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let made = "  - id: maker\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: ConfigMap, metadata: \
                { name: maker, namespace: default } }\n";
    let edited = "  - id: later
    after: [maker]
    json_in_configmap:
      namespace: default
      name: later
      key: conf
      edits: [{ pointer: /a, value: 2 }]
      known_after: ConfigMap.core/default/maker
";
    let mut create = plane.kubectl_command(&[
        "create",
        "configmap",
        "later",
        "--from-literal=conf={\"a\": 1}",
    ]);
    create.stdout(std::process::Stdio::null());
    let create = std::sync::Mutex::new(create);
    // Not the preview, which has more to say behind it.
    let request = "PATCH \
                   /api/v1/namespaces/default/configmaps/maker?fieldManager=railwright&force=true&fieldValidation=Strict \
                   HTTP";
    let way = Meanwhile::start(plane, request, move || {
        assert!(create.lock().unwrap().status().unwrap().success())
    });
    cluster.file("inv/way.kubeconfig", &way.kubeconfig());
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
    );
    cluster.resources(&format!("{made}{edited}"));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("known after") && plan.contains("default/maker"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    let conf = "jsonpath={.data.conf}";
    assert_eq!(
        plane.kubectl(&["get", "configmap", "later", "-o", conf]),
        "{\"a\": 2}"
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["get", "configmap", "later", "-o", conf]),
        "{\"a\": 1}"
    );
    plane.kubectl(&["delete", "configmap", "later"]);
}

/// A text that is no JSON, or not there, is left alone; so is everything beside what must not stand
/// there.
pub fn what_cannot_be_edited_is_left_alone(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(WHITELIST);
    for (theirs, said) in [
        ("# by hand\n{}", "it is no JSON"),
        (r#"{"eni_tag_filter":""}"#, "`eni_tag_filter` is no map"),
    ] {
        write(plane, theirs);
        let plan = cluster.flat(3, &["plan", INV]);
        assert!(
            plan.contains(said) && plan.contains("nothing of it is touched"),
            "{plan}"
        );
        cluster.told(3, &["apply", INV, "--yes"]);
        assert_eq!(text(plane), theirs);
    }
    write(plane, CONF);
    cluster.resources(&WHITELIST.replace("key: eni_conf", "key: absent"));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(plan.contains("has no text `absent`"), "{plan}");
    cluster.resources(WHITELIST);
    cluster.spec("reader", "");
    cluster.told(0, &["plan", INV]);
    let refused = cluster.flat(4, &["apply", INV, "--yes"]);
    assert!(refused.contains("nothing was changed"), "{refused}");
    assert_eq!(text(plane), CONF);
    cluster.spec("admin", "");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// The shipped module: what the plan says, the refusal beside Terway's own eRDMA, and two owners of
/// one text.
pub fn terway_is_kept_away_from_erdma(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let kubeconfig = plane.kubeconfig("admin");
    let spec = |terway: &str| {
        let kubernetes = format!(
            "kubernetes: {{ name: prod, kubeconfig: {}, platform: ack-managed, terway: {{ {terway} \
             }} }}\n",
            kubeconfig.display()
        );
        cluster.file(
            "inv/cluster.yaml",
            &format!("cluster: train\nfabric: {{ kind: erdma }}\n{kubernetes}"),
        );
    };
    write(
        plane,
        &CONF.replace("\"ip_stack\"", "\"enable_erdma\": true,\n  \"ip_stack\""),
    );
    spec("");
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("Terway serves eRDMA itself")
            && plan.contains("enable_erdma (persisted) yes -> absent"),
        "{plan}"
    );
    spec("whitelist: built-in");
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(plan.contains("Terway serves eRDMA itself"), "{plan}");
    write(plane, CONF);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    spec("");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        of(&text(plane), "eni_tag_filter"),
        json!({ "creator": "terway" })
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );

    cluster.resources(
        "  - id: whole\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: ConfigMap, metadata: \
         { name: eni-config, namespace: kube-system }, data: { eni_conf: \"{}\" } }\n",
    );
    let twice = cluster.flat(1, &["validate", INV]);
    assert!(
        twice.contains("RW0211")
            && twice.contains("edits a text that `own/whole` writes as a whole"),
        "{twice}"
    );
    cluster.resources(
        "  - id: bad\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: a, namespace: \
         default, labels: { rail: -0 } } }\n",
    );
    let bad = cluster.flat(1, &["validate", INV]);
    assert!(
        bad.contains("RW0208") && bad.contains("the API server takes no label rail"),
        "{bad}"
    );
    cluster.resources("  []\n");
    cluster.spec("admin", "");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text(plane), CONF);
}
