//! What a chart brings besides objects that stay as they are: hooks, definitions, words that vary,
//! and what others set meanwhile.

use crate::helm::{Story, helm_well};
use crate::rig::ControlPlane;

const INV: &str = "inv";
const CHART: &str = "inv/charts/rails";

/// A file of the story's chart.
fn file(story: &Story<'_>, path: &str, text: &str) {
    story.cluster.file(&format!("{CHART}/{path}"), text);
}

fn without(story: &Story<'_>, path: &str) {
    std::fs::remove_file(story.cluster.folder().join(CHART).join(path)).unwrap();
}

fn config(name: &str, annotations: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: ConfigMap\n\
         metadata: {{ name: {name}, annotations: {{ {annotations} }} }}\n\
         data: {{ {data} }}\n"
    )
}

fn field(plane: &ControlPlane, name: &str, key: &str) -> String {
    plane.kubectl(&[
        "get",
        "configmap",
        name,
        "-o",
        &format!("jsonpath={{.data.{key}}}"),
    ])
}

fn set(plane: &ControlPlane, name: &str, key: &str, word: &str) {
    plane.kubectl(&[
        "patch",
        "configmap",
        name,
        "-p",
        &format!("{{\"data\":{{\"{key}\":\"{word}\"}}}}"),
    ]);
}

/// A revision overwrites it, and a removal deletes it: both are told, and no plan of before does
/// so.
pub fn what_others_set_meanwhile_is_seen(plane: &ControlPlane) {
    let story = Story::new(plane);
    let stale = |plan: &str| {
        assert!(
            story.told(3, &["apply", plan, "--yes"]).contains("RW0610"),
            "{plan}"
        )
    };
    file(
        &story,
        "templates/changes.yaml",
        &config("changes", "", "a: VISIBLE1"),
    );
    file(&story, "templates/goes.yaml", &config("goes", "", "a: one"));
    story.wish("agent: { driver: compat }", "");
    story.apply();

    file(
        &story,
        "templates/changes.yaml",
        &config("changes", "", "a: VISIBLE2"),
    );
    without(&story, "templates/goes.yaml");
    story.told(0, &["plan", INV, "-o", "a.plan"]);
    set(plane, "changes", "a", "HOTFIX");
    stale("a.plan");
    assert_eq!(field(plane, "changes", "a"), "HOTFIX");
    let plan = story.told(0, &["plan", INV, "-o", "b.plan"]);
    assert!(
        plan.contains("HOTFIX -> VISIBLE2")
            && plan.contains("kubectl-patch")
            && !plan.contains("nobody changed the target"),
        "{plan}"
    );
    let drift = story.told(2, &["drift", INV]);
    assert!(
        drift.contains("HOTFIX") && drift.contains("CHANGED OUTSIDE"),
        "{drift}"
    );

    set(plane, "goes", "a", "USERDATA");
    stale("b.plan");
    assert_eq!(field(plane, "goes", "a"), "USERDATA");
    story.apply();
    assert_eq!(field(plane, "changes", "a"), "VISIBLE2");

    story.nothing();
    story.told(0, &["plan", INV, "-o", "c.plan"]);
    set(plane, "changes", "a", "USERDATA");
    stale("c.plan");
    assert_eq!(helm_well(plane, &["list", "--short"]), "rails\n");
    assert!(story.plan(0).contains("USERDATA"));
    story.apply();
}

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: extras.example.org }
spec:
  group: example.org
  scope: Cluster
  names: { plural: extras, singular: extra, kind: Extra }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
";

/// They run with the operator's rights: a plan shows them, and is carried out with no others.
pub fn hooks_and_definitions_stand_in_the_plan(plane: &ControlPlane) {
    let story = Story::new(plane);
    let hook = |word: &str| {
        file(
            &story,
            "templates/hook.yaml",
            &config("hook", "helm.sh/hook: pre-upgrade", &format!("a: {word}")),
        )
    };
    let stale = |plan: &str| {
        assert!(
            story.told(3, &["apply", plan, "--yes"]).contains("RW0610"),
            "{plan}"
        )
    };
    story.wish("agent: { driver: compat }", "");
    story.told(0, &["plan", INV, "-o", "a.plan"]);
    hook("one");
    file(&story, "crds/extra.yaml", DEFINITION);
    stale("a.plan");
    assert_eq!(
        plane.kubectl(&[
            "get",
            "crd",
            "extras.example.org",
            "--ignore-not-found",
            "-o",
            "name"
        ]),
        ""
    );
    let plan = story.plan(0);
    for said in [
        "hook ConfigMap.core default/hook (pre-upgrade) made",
        "CustomResourceDefinition.apiextensions.k8s.io extras.example.org made",
    ] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    story.apply();

    hook("two");
    let plan = story.told(0, &["plan", INV, "-o", "b.plan"]);
    assert!(
        plan.contains(
            "hook ConfigMap.core default/hook (pre-upgrade): data.a (persisted) one -> two"
        ),
        "{plan}"
    );
    hook("EVIL");
    stale("b.plan");
    story.apply();
    assert_eq!(field(plane, "hook", "a"), "EVIL");
    story.nothing();
    let plan = story.plan(0);
    assert!(
        plan.contains("what hook ConfigMap.core default/hook (pre-upgrade) made stays"),
        "{plan}"
    );
    story.apply();
    assert_eq!(field(plane, "hook", "a"), "EVIL");
    plane.kubectl(&["delete", "configmap/hook", "crd/extras.example.org"]);
}

/// Names and words that are others with every revision keep no release from being as wished, and
/// hide no change of its chart.
pub fn what_varies_is_installed_once_and_told(plane: &ControlPlane) {
    let story = Story::new(plane);
    let steady = r#"rev: "{{ .Release.Revision }}", up: "{{ .Release.IsUpgrade }}", first: "{{ .Release.IsInstall }}""#;
    file(
        &story,
        "templates/words.yaml",
        &config("words", steady, r#"on: "1", image: good"#),
    );
    file(
        &story,
        "templates/random.yaml",
        &config("m-{{ randAlphaNum 5 | lower }}", "", ""),
    );
    file(
        &story,
        "templates/numbered.yaml",
        &config("n-{{ .Release.Revision }}", "", ""),
    );
    story.wish("agent: { driver: compat }", "");
    let plan = story.told(0, &["plan", INV, "-o", "a.plan"]);
    assert!(
        plan.contains("ConfigMap.core default/(another name with every revision) made"),
        "{plan}"
    );
    story.told(0, &["apply", "a.plan", "--yes"]);
    assert!(
        story
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );

    file(
        &story,
        "templates/words.yaml",
        &config(
            "words",
            steady,
            r#"on: "1", image: "evil:{{ randNumeric 4 }}""#,
        ),
    );
    let plan = story.plan(0);
    assert!(
        plan.contains("data.image (persisted) good -> (another with every revision)"),
        "{plan}"
    );
    story.apply();
    assert!(field(plane, "words", "image").starts_with("evil:"));
    story.wish("agent: { driver: ofed }", "");
    let plan = story.plan(0);
    assert!(
        plan.contains("-> (another with every revision)") && plan.contains("compat -> ofed"),
        "{plan}"
    );
    story.apply();
    story.nothing();
    story.apply();
}
