//! What a chart brings besides objects that stay as they are: hooks, definitions, words that vary,
//! and what others set meanwhile.

use crate::helm::{Story, helm_well};
use crate::rig::ControlPlane;

const INV: &str = "inv";
const CHART: &str = "inv/charts/rails";

/// A file of the story's chart.
pub fn file(story: &Story<'_>, path: &str, text: &str) {
    story.cluster.file(&format!("{CHART}/{path}"), text);
}

fn without(story: &Story<'_>, path: &str) {
    std::fs::remove_file(story.cluster.folder().join(CHART).join(path)).unwrap();
}

pub fn config(name: &str, annotations: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: ConfigMap\n\
         metadata: {{ name: {name}, annotations: {{ {annotations} }} }}\n\
         data: {{ {data} }}\n"
    )
}

pub fn field(plane: &ControlPlane, name: &str, key: &str) -> String {
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
    story.resource("agent: { driver: compat }", "");
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

pub const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: extras.example.org }
spec:
  group: example.org
  scope: Cluster
  names: { plural: extras, singular: extra, kind: Extra }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
";

/// They run with the operator's rights: a plan shows them, and is applied with no others.
pub fn hooks_and_definitions_fake_the_plan(plane: &ControlPlane) {
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
    story.resource("agent: { driver: compat }", "");
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

/// Names and words that are others with every revision keep no release from being in sync, and
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
    story.resource("agent: { driver: compat }", "");
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
    story.resource("agent: { driver: ofed }", "");
    let plan = story.plan(0);
    assert!(
        plan.contains("-> (another with every revision)") && plan.contains("compat -> ofed"),
        "{plan}"
    );
    story.apply();
    story.nothing();
    story.apply();
}

/// Helm makes `crds/` first and renders then: what a chart makes of it is blocked until a plan
/// shows it.
pub fn what_comes_of_the_kinds_of_a_chart_is_blocked(plane: &ControlPlane) {
    let story = Story::new(plane);
    file(&story, "crds/extra.yaml", DEFINITION);
    let when = |condition: &str, name: &str| {
        let text = format!(
            "{{{{ if {condition} }}}}\n{}{{{{ end }}}}\n",
            config(name, "", "")
        );
        file(&story, &format!("templates/{name}.yaml"), &text);
    };
    when(
        r#"lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "extras.example.org""#,
        "looked-up",
    );
    when(
        r#".Capabilities.APIVersions.Has "example.org/v1/Extra""#,
        "capable",
    );
    let role = r#"role: '{{ if .Capabilities.APIVersions.Has "example.org/v1" }}all{{ else }}one{{ end }}'"#;
    let random = config("v-{{ randAlphaNum 5 | lower }}", "", role);
    file(&story, "templates/random.yaml", &random);
    story.resource("agent: { driver: compat }", "");
    let plan = story.told(0, &["plan", INV, "-o", "a.plan"]);
    assert!(!plan.contains("default/looked-up"), "{plan}");
    let blocked = story.told(3, &["apply", "a.plan", "--yes"]);
    for said in [
        "RW0610",
        "extras.example.org from crds/ is made as the plan shows",
        "ConfigMap.core default/looked-up",
        "ConfigMap.core default/(another name with every revision)",
    ] {
        assert!(blocked.contains(said), "{said}: {blocked}");
    }
    assert_eq!(helm_well(plane, &["list", "--short"]), "");
    let plan = story.plan(0);
    for name in ["looked-up", "capable"] {
        let made = format!("ConfigMap.core default/{name} made");
        assert!(plan.contains(&made), "{made}: {plan}");
    }
    story.apply();
    story.nothing();
    story.apply();
    plane.kubectl(&["delete", "crd/extras.example.org"]);
}

/// Helm deletes what has the name of a hook, and takes over what bears the marks of the release.
pub fn what_is_there_already_is_told(plane: &ControlPlane) {
    let story = Story::new(plane);
    plane.apply(&config("foreign", "", "a: USERDATA"));
    let (hook, keep) = ("helm.sh/hook: pre-install", "helm.sh/resource-policy: keep");
    file(
        &story,
        "templates/hook.yaml",
        &config("foreign", hook, "a: one"),
    );
    file(
        &story,
        "templates/kept.yaml",
        &config("kept", keep, "a: one"),
    );
    story.resource("agent: { driver: compat }", "");
    let plan = story.plan(0);
    assert!(
        plan.contains("ConfigMap.core default/foreign is there already, and is deleted"),
        "{plan}"
    );
    story.apply();
    story.nothing();
    story.apply();
    set(plane, "kept", "a", "USERDATA");
    story.resource("agent: { driver: compat }", "");
    let plan = story.told(0, &["plan", INV, "-o", "a.plan"]);
    assert!(plan.contains("USERDATA -> one"), "{plan}");
    set(plane, "kept", "a", "MORE");
    assert!(
        story
            .told(3, &["apply", "a.plan", "--yes"])
            .contains("RW0610")
    );
    assert_eq!(field(plane, "kept", "a"), "MORE");
    plane.kubectl(&["delete", "configmap/foreign", "configmap/kept"]);
}

/// Helm asks the object on the cluster whether it stays, and after a failure goes by the last
/// revision that was deployed.
pub fn what_a_revision_deletes_is_what_helm_deletes(plane: &ControlPlane) {
    let story = Story::new(plane);
    let keep = "helm.sh/resource-policy: keep";
    file(&story, "templates/goes.yaml", &config("goes", "", "a: one"));
    file(&story, "templates/kept.yaml", &config("kept", keep, ""));
    file(&story, "templates/unkept.yaml", &config("unkept", keep, ""));
    story.resource("agent: { driver: compat }", "");
    story.apply();
    plane.kubectl(&[
        "annotate",
        "configmap",
        "unkept",
        "helm.sh/resource-policy-",
    ]);
    without(&story, "templates/kept.yaml");
    without(&story, "templates/unkept.yaml");
    without(&story, "templates/goes.yaml");
    let hook = config("bad", "helm.sh/hook: pre-upgrade", "");
    file(
        &story,
        "templates/bad.yaml",
        &hook.replace("name: bad,", "name: bad, labels: { a: \"bad value!\" },"),
    );
    story.told(1, &["apply", INV, "--yes"]);
    without(&story, "templates/bad.yaml");
    let plan = story.plan(0);
    for gone in ["default/goes", "default/unkept"] {
        assert!(plan.contains(gone), "{gone}: {plan}");
    }
    assert!(!plan.contains("default/kept"), "{plan}");
    story.apply();
    let left = plane.kubectl(&["get", "configmap", "-o", "name"]);
    assert!(
        left.contains("configmap/kept")
            && !left.contains("configmap/goes")
            && !left.contains("configmap/unkept"),
        "{left}"
    );
    story.nothing();
    story.apply();
    plane.kubectl(&["delete", "configmap/kept"]);
}
