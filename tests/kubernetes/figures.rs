//! What a plan of a large cluster costs the API server, and a second opinion on what it finds:
//! kubectl's own `diff`.

use crate::cluster::Cluster;
use crate::large::{NODES, OBJECTS, bare_nodes, config_map, resources};
use crate::meanwhile::Meanwhile;
use crate::rig::ControlPlane;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const INV: &str = "inv";
/// How often each sort of request was made since: its method and path, without names of objects.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<BTreeMap<String, usize>>>);

impl Requests {
    fn note(&self, head: &[u8]) {
        let head = String::from_utf8_lossy(head);
        let Some((method, rest)) = head
            .split_once(' ')
            .filter(|(method, _)| matches!(*method, "GET" | "PATCH" | "POST" | "PUT" | "DELETE"))
        else {
            return;
        };
        let (path, query) = rest
            .split(' ')
            .next()
            .unwrap()
            .split_once('?')
            .unwrap_or((rest.split(' ').next().unwrap(), ""));
        let sort = match path.rsplit_once('/') {
            Some((kind, _)) if kind.ends_with("/configmaps") => format!("{method} {kind}"),
            _ => format!("{method} {path}"),
        };
        let dry = if query.contains("dryRun=All") {
            ", a dry run"
        } else {
            ""
        };
        *self.0.lock().unwrap().entry(sort + dry).or_default() += 1;
    }

    fn taken(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut *self.0.lock().unwrap())
            .into_iter()
            .collect()
    }
}

/// One dry run and one look for each object, by its name; the nodes in pages; what is known of
/// kinds once for each group.
pub fn a_plan_asks_once_for_each_object(plane: &ControlPlane) {
    bare_nodes(plane);
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&resources());
    let requests = Requests::default();
    let seen = requests.clone();
    let way = Meanwhile::watch(plane, move |head| seen.note(head));
    cluster.file("inv/way.kubeconfig", &way.kubeconfig());
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
    );
    // Nothing was applied yet, which is a reason for `drift` to end with 2.
    for (code, words) in [(0, &["plan", INV][..]), (2, &["drift", INV])] {
        cluster.told(code, words);
        let taken: Vec<String> = requests
            .taken()
            .into_iter()
            .map(|(sort, count)| format!("{count} {sort}"))
            .collect();
        let desired = [
            "1 GET /api/v1".to_owned(),
            format!("{} GET /api/v1/namespaces/default/configmaps", OBJECTS - 1),
            "1 GET /api/v1/namespaces/kube-system".to_owned(),
            "1 GET /api/v1/namespaces/kube-system/secrets/railwright-train".to_owned(),
            format!("{} GET /api/v1/nodes", NODES / 500),
            "1 GET /version".to_owned(),
            format!(
                "{} PATCH /api/v1/namespaces/default/configmaps, a dry run",
                OBJECTS - 1
            ),
        ];
        assert_eq!(taken, desired, "{words:?}");
    }
}

/// Nothing that holds for all objects is asked for each: with every object changed, the server's
/// version and its kinds are asked as often as for one. What is asked as time goes by (heartbeats,
/// the record) is not counted.
pub fn an_apply_asks_once_what_holds_for_all(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let requests = Requests::default();
    let seen = requests.clone();
    let way = Meanwhile::watch(plane, move |head| seen.note(head));
    cluster.file("inv/way.kubeconfig", &way.kubeconfig());
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
    );
    let names: Vec<String> = (1..OBJECTS).map(|n| format!("counted-{n}")).collect();
    let all = |text: &str| {
        names
            .iter()
            .map(|name| config_map(name, text))
            .collect::<String>()
    };
    cluster.resources(&all("9000"));
    cluster.told(0, &["apply", INV, "--yes"]);
    requests.taken();
    cluster.resources(&all("9216"));
    cluster.told(0, &["apply", INV, "--yes"]);
    let taken: BTreeMap<String, usize> = requests.taken().into_iter().collect();
    let count = |sort: &str| taken.get(sort).copied().unwrap_or_default();
    let objects = "/api/v1/namespaces/default/configmaps";
    // Once for the plan, once for the run.
    assert_eq!(
        (count("GET /version"), count("GET /api/v1")),
        (2, 2),
        "{taken:#?}"
    );
    assert_eq!(
        count(&format!("PATCH {objects}")),
        names.len(),
        "{taken:#?}"
    );
    // By the plan, at the first step, before the step, in the write itself and after it.
    for sort in [
        format!("GET {objects}"),
        format!("PATCH {objects}, a dry run"),
    ] {
        assert!(count(&sort) <= 5 * names.len(), "{sort}: {taken:#?}");
    }
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// Objects that differ, by name, as railwright has them and as kubectl has them.
pub fn kubectl_finds_the_same_objects(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let names = ["same", "edited", "gone", "labelled", "longer", "foreign"];
    cluster.resources(&names.map(|name| config_map(name, "9000")).concat());
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&[
        "patch",
        "configmap",
        "edited",
        "-p",
        r#"{"data":{"text":"1500"}}"#,
    ]);
    plane.kubectl(&["delete", "configmap", "gone"]);
    plane.kubectl(&[
        "label",
        "configmap",
        "labelled",
        "role=other",
        "--overwrite",
    ]);
    plane.kubectl(&["label", "configmap", "foreign", "owner=them"]);
    cluster.resources(
        &names
            .map(|name| {
                config_map(
                    name,
                    if name == "longer" {
                        "9000 and more"
                    } else {
                        "9000"
                    },
                )
            })
            .concat(),
    );

    let plan: Value = serde_json::from_slice(
        &cluster
            .command(&["plan", INV, "--json"])
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap();
    let members = plan["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|node| node["members"].as_array().into_iter().flatten());
    let ours: BTreeSet<String> = members
        .map(|member| {
            member["resource"]["address"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();

    // These resources as kubectl takes them, with the marks that railwright adds, and what it notes
    // of who made it.
    let set = plane.kubectl(&[
        "get",
        "configmap",
        "same",
        "-o",
        "jsonpath={.metadata.labels.applyset\\.kubernetes\\.io/part-of}",
    ]);
    let manifest = |name: &str| {
        let labels = json!({ "role": "rails", "railwright.io/part-of": "train", "applyset.kubernetes.io/part-of": set });
        let noted = plane.kubectl(&[
            "get",
            "configmap",
            name,
            "--ignore-not-found",
            "-o",
            "jsonpath={.metadata.annotations.railwright\\.io/attempt}",
        ]);
        let text = if name == "longer" {
            "9000 and more"
        } else {
            "9000"
        };
        let metadata = json!({ "name": name, "namespace": "default", "labels": labels, "annotations": { "railwright.io/attempt": noted } });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "text": text } })
    };
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": names.map(manifest) });
    let words = [
        "diff",
        "--server-side",
        "--force-conflicts",
        "--field-manager=railwright",
        "-f",
        "-",
    ];
    let diff = plane.kubectl_as("admin", &words, &list.to_string());
    assert_eq!(
        diff.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&diff.stderr)
    );
    let said = String::from_utf8(diff.stdout).unwrap();
    let heads = said.lines().filter(|line| line.starts_with("diff "));
    let theirs: BTreeSet<String> = heads
        .map(|line| line.rsplit('.').next().unwrap().to_owned())
        .collect();
    assert_eq!(ours, theirs, "{said}");
    assert_eq!(
        ours,
        BTreeSet::from(["edited", "gone", "labelled", "longer"].map(str::to_owned))
    );
}
