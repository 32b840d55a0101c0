//! Everything that is printed as JSON, checked against the schema that is published for it.

use crate::support::Place;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const DOCUMENTS: [&str; 26] = [
    "refused-job",
    "spec",
    "plan",
    "observation",
    "drift",
    "verify",
    "cabling",
    "fabric",
    "job-proof",
    "diagnosis",
    "run",
    "rollout",
    "state",
    "validation",
    "explanation",
    "rbac",
    "translation",
    "job",
    "image",
    "jobs",
    "watched-job",
    "job-pair",
    "ray-proof",
    "job-comparison",
    "traffic",
    "ladder",
];

fn kept(document: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{document}.schema.json"))
}

fn repository(path: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// What the published schema says against a document, if anything.
fn fault(document: &str, value: &Value) -> Option<String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let schema: Value = serde_json::from_slice(&fs::read(kept(document)).unwrap()).unwrap();
    compiler.add_resource("document", schema).unwrap();
    let index = compiler.compile("document", &mut schemas).unwrap();
    schemas
        .validate(value, index)
        .err()
        .map(|error| format!("{error:#}"))
}

fn json(place: &Place, words: &[&str], exit: i32) -> Value {
    let output = place.command(words).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(exit),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn holds(document: &str, value: &Value) {
    assert_eq!(fault(document, value), None);
    // A schema that takes anything proves nothing.
    assert!(
        fault(document, &Value::Object(Default::default())).is_some(),
        "{document}: an empty object passes"
    );
    let mut other = value.clone();
    other["format_version"] = Value::from(1);
    assert!(
        fault(document, &other).is_some(),
        "{document}: a version that is no text passes"
    );
}

#[test]
fn the_schemas_in_the_repository_are_those_printed() {
    let place = Place::new();
    for document in DOCUMENTS {
        let printed = place
            .command(&["schema", document])
            .output()
            .unwrap()
            .stdout;
        assert!(
            printed == fs::read(kept(document)).unwrap(),
            "cargo run -- schema {document} > docs/schema/{document}.schema.json"
        );
        let schema: Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(schema["$id"], format!("urn:railwright:{document}"));
    }
    insta::assert_snapshot!(place.run(&["schema", "plam"]), @r"
    $ railwright schema plam
    --- stderr ---
    error RW1017: there is no document `plam`; did you mean `plan`?
      next:   railwright schema NAME, where NAME is one of: spec, plan, observation, drift, verify,
              cabling, ladder, traffic, fabric, jobs, job-pair, ray-proof, job-comparison, watched-job,
              job-proof, diagnosis, run, rollout, state, validation, catalog, rules, version,
              explanation, rbac, translation, job, refused-job, image
    --- exit 1 ---
    ");
}

#[test]
fn what_is_printed_without_a_host_is_as_the_schemas_say() {
    let place = Place::new();
    place.write(
        "inventories/lab/cluster.yaml",
        repository("inventories/lab/cluster.yaml"),
    );
    place.write("fresh.json", repository("plans/lab/fresh.json"));
    let recorded = ["inventories/lab", "--observations", "fresh.json", "--json"];
    holds(
        "plan",
        &json(&place, &[&["plan"], &recorded[..]].concat(), 0),
    );
    holds(
        "drift",
        &json(&place, &[&["drift"], &recorded[..]].concat(), 2),
    );
    holds(
        "observation",
        &serde_json::from_slice(&repository("plans/lab/fresh.json")).unwrap(),
    );
    holds(
        "validation",
        &json(&place, &["validate", "inventories/lab", "--json"], 0),
    );
    place.write("wrong/cluster.yaml", "cluster: a\nnods: []\n");
    holds(
        "validation",
        &json(&place, &["validate", "wrong", "--json"], 1),
    );
    place.write("none/cluster.yaml", "cluster: a\n");
    holds(
        "state",
        &json(&place, &["state", "list", "none", "--json"], 0),
    );
    holds(
        "run",
        &json(&place, &["apply", "none", "--yes", "--json"], 0),
    );
    place.write(
        "kube/cluster.yaml",
        "cluster: a\nkubernetes: { name: prod }\n",
    );
    holds("rbac", &json(&place, &["rbac", "kube", "--json"], 0));
    holds(
        "explanation",
        &json(&place, &["explain", "kube/prod", "kube", "--json"], 0),
    );
    holds(
        "translation",
        &json(&place, &["translate", "reboot; frobnicate", "--json"], 3),
    );
    holds(
        "translation",
        &json(&place, &["translate", "apt-get install mofed", "--json"], 0),
    );
}

#[test]
fn a_host_that_is_down_is_told_as_the_schemas_say() {
    let place = Place::new();
    // Nobody listens on port 1 of loopback.
    place.write(
        "down/cluster.yaml",
        "cluster: a\n\
         ssh: { address: 127.0.0.1, port: 1, host_keys: keys }\n\
         nodes: [{ name: n1 }]\n",
    );
    place.write("down/keys", "");
    holds("observation", &json(&place, &["facts", "down"], 3));
    holds("plan", &json(&place, &["plan", "down", "--json"], 3));
    holds("drift", &json(&place, &["drift", "down", "--json"], 3));
    holds("verify", &json(&place, &["verify", "down", "--json"], 3));
}
