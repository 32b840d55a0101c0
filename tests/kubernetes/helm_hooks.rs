//! What Helm deletes to make a hook, and what it makes of `crds/`: a plan tells both as Helm does
//! it.

use crate::helm::Story;
use crate::helm_charts::{DEFINITION, config, field, file};
use crate::rig::{ControlPlane, ESTABLISHED};

const INV: &str = "inv";

/// Whichever call runs the hook, and whether the hook is new or not.
pub fn what_has_the_name_of_a_hook_is_told(plane: &ControlPlane) {
    let story = Story::new(plane);
    let base = |word: &str| {
        let text = config("base", "", &format!("a: {word}"));
        file(&story, "templates/base.yaml", &text);
    };
    let hook = |name: &str, events: &str, policy: &str| {
        let annotations = format!(
            "helm.sh/hook: \"{events}\", \
             helm.sh/hook-delete-policy: \"before-hook-creation{policy}\""
        );
        config(name, &annotations, "a: one")
    };
    base("one");
    let later = hook("later", "pre-upgrade", "");
    let later = format!("{{{{ if .Release.IsUpgrade }}}}\n{later}{{{{ end }}}}\n");
    file(&story, "templates/later.yaml", &later);
    let often = hook("often", "pre-install,pre-upgrade", ",hook-succeeded");
    file(&story, "templates/often.yaml", &often);
    let last = hook("last", "pre-delete", "");
    file(&story, "templates/last.yaml", &last);
    story.resource("agent: { driver: compat }", "");
    story.apply();

    base("two");
    story.told(0, &["plan", INV, "-o", "a.plan"]);
    for name in ["later", "often", "last"] {
        plane.apply(&config(name, "", "a: USERDATA"));
    }
    let stale = story.told(3, &["apply", "a.plan", "--yes"]);
    assert!(stale.contains("RW0610"), "{stale}");
    let deleted = |name: &str| {
        format!("ConfigMap.core default/{name} is there already, and is deleted to make the hook")
    };
    let plan = story.plan(0);
    for (name, is_told) in [("later", true), ("often", true), ("last", false)] {
        assert_eq!(plan.contains(&deleted(name)), is_told, "{name}: {plan}");
        assert_eq!(field(plane, name, "a"), "USERDATA");
    }
    story.apply();
    assert_eq!(field(plane, "later", "a"), "one");

    base("three");
    let plan = story.plan(0);
    assert!(!plan.contains("is there already"), "its own: {plan}");
    story.apply();
    story.nothing();
    let plan = story.plan(0);
    assert!(plan.contains(&deleted("last")), "{plan}");
    assert_eq!(field(plane, "last", "a"), "USERDATA");
    story.apply();
    plane.kubectl(&["delete", "configmap/later", "configmap/last"]);
}

/// Helm 4 would write into what has the name of a hook or of a definition, and Helm 3 fails there
/// or leaves it.
pub fn what_is_somebody_elses_is_neither_a_hook_nor_a_definition(plane: &ControlPlane) {
    let definition = |fields: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\n\
             kind: CustomResourceDefinition\n\
             metadata: {{ name: things.example.org }}\n\
             spec:\n  group: example.org\n  scope: Cluster\n\
             \u{20} names: {{ plural: things, singular: thing, kind: Thing }}\n\
             \u{20} versions: [{{ name: v1, served: true, storage: true, schema: {{ openAPIV3Schema: \
             {{ type: object, properties: {{ spec: {{ type: object, properties: {{ {fields} }} }} }} }} }} }}]\n"
        )
    };
    plane.apply(&definition("a: { type: string }, theirs: { type: string }"));
    plane.kubectl(&["wait", "crd/things.example.org", ESTABLISHED]);
    plane.apply("apiVersion: example.org/v1\nkind: Thing\nmetadata: { name: t }\nspec: { theirs: USERDATA }\n");
    let story = Story::new(plane);
    file(
        &story,
        "crds/things.yaml",
        &definition("a: { type: string }"),
    );
    for (name, event) in [("first", "pre-install"), ("last", "pre-delete")] {
        let annotations =
            format!("helm.sh/hook: {event}, helm.sh/hook-delete-policy: hook-succeeded");
        file(
            &story,
            &format!("templates/{name}.yaml"),
            &config(name, &annotations, "a: one"),
        );
    }
    let is_held = |name: &str| {
        plane.apply(&config(name, "", "a: USERDATA"));
        let plan = story.plan(3);
        let said = format!("ConfigMap.core default/{name} is there already, and the hook");
        assert!(plan.contains(&said), "{plan}");
        story.told(3, &["apply", INV, "--yes"]);
        assert_eq!(field(plane, name, "a"), "USERDATA");
        plane.kubectl(&["delete", &format!("configmap/{name}")]);
    };
    story.resource("agent: { driver: compat }", "");
    is_held("first");
    story.apply();
    let kept = plane.kubectl(&["get", "thing", "t", "-o", "jsonpath={.spec.theirs}"]);
    assert_eq!(kept, "USERDATA");
    story.nothing();
    is_held("last");
    story.apply();
    plane.kubectl(&["delete", "crd/things.example.org"]);
}

/// Nobody can look for what has the name: the plan says so.
pub fn a_hook_of_an_unknown_name_says_what_it_deletes(plane: &ControlPlane) {
    let story = Story::new(plane);
    let hook = config(
        "h-NAME",
        "helm.sh/hook: \"pre-install,pre-upgrade\"",
        "a: one",
    );
    let by_chance = hook.replace("NAME", "{{ randAlphaNum 12 | lower }}");
    file(&story, "templates/chance.yaml", &by_chance);
    let by_revision = hook.replace("NAME", "{{ .Release.Revision }}");
    file(&story, "templates/revision.yaml", &by_revision);
    story.resource("agent: { driver: compat }", "");
    let said = "made; deletes any of its name";
    let first = story.plan(0);
    assert_eq!(first.matches(said).count(), 1, "{first}");
    story.apply();
    file(&story, "templates/base.yaml", &config("base", "", "a: one"));
    let next = story.plan(0);
    assert_eq!(next.matches(said).count(), 1, "{next}");
    assert!(!next.contains("is there already"), "{next}");
    story.apply();
    story.nothing();
    story.apply();
    let names = plane.kubectl(&["get", "configmap", "-o", "name"]);
    for name in names.lines().filter(|name| name.contains("/h-")) {
        plane.kubectl(&["delete", name]);
    }
}

fn about(name: &str, more: &str) -> String {
    format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n{more}")
}

/// Whatever the names of its files hold, whatever its templates ask of the cluster and of secrets,
/// and also where a subchart comes twice.
pub fn usual_charts_with_definitions_are_installed(plane: &ControlPlane) {
    let story = Story::new(plane);
    let hidden = config("hidden", "", "a: one");
    file(&story, "crds/a\nitems: []\n#.yaml", &hidden);
    let schema = "{ \"properties\": { \"word\": { \"pattern\": \"^s3cr3t\" } } }\n";
    file(&story, "values.schema.json", schema);
    let asks = "{{ if not (.Capabilities.APIVersions.Has \"apiregistration.k8s.io/v1\") }}\
                {{ fail \"no aggregation\" }}{{ end }}\n";
    file(&story, "templates/asks.yaml", asks);
    let values = "agent: { driver: compat }, word: \"{{ secrets.token }}\"";
    story.resource(values, "");
    let plan = story.plan(0);
    assert!(
        plan.contains("ConfigMap.core default/hidden made"),
        "{plan}"
    );
    story.apply();
    story.nothing();
    story.apply();
    plane.kubectl(&["delete", "configmap/hidden"]);

    let story = Story::new(plane);
    file(&story, "templates/asks.yaml", asks);
    file(&story, "charts/part/Chart.yaml", &about("part", ""));
    file(&story, "charts/part/crds/c.yaml", &config("shared", "", ""));
    let twice = "dependencies: [{ name: part, version: 0.1.0, alias: one }, \
                 { name: part, version: 0.1.0, alias: two }]\n";
    file(&story, "Chart.yaml", &about("rails", twice));
    story.resource(values, "");
    let plan = story.plan(0);
    assert!(
        plan.contains("ConfigMap.core default/shared made"),
        "{plan}"
    );
    file(&story, "charts/part/crds/a\nitems: []\n#.yaml", &hidden);
    let refused = story.plan(3);
    assert!(refused.contains("control characters"), "{refused}");
}

/// File by file, whatever stands in them, and none of a subchart that the values switch off.
pub fn definitions_are_those_that_helm_makes(plane: &ControlPlane) {
    let story = Story::new(plane);
    let first = config("first", "", "").replace("data: {  }", "data:\n  text: |");
    assert!(first.ends_with("text: |\n"), "{first}");
    file(&story, "crds/a.yaml", &first);
    let second = config("second", "", "");
    let inside: String = second.lines().map(|line| format!("    {line}\n")).collect();
    file(&story, "crds/b.yaml", &inside);
    file(&story, "crds/extra.yaml", DEFINITION);
    file(&story, "charts/part/Chart.yaml", &about("part", ""));
    file(&story, "charts/part/crds/c.yaml", &config("third", "", ""));
    let part = "dependencies: [{ name: part, version: 0.1.0, condition: part.enabled }]\n";
    file(&story, "Chart.yaml", &about("rails", part));
    story.resource("agent: { driver: compat }, part: { enabled: false }", "");
    let plan = story.plan(0);
    for said in [
        "ConfigMap.core default/first made",
        "ConfigMap.core default/second made",
        "extras.example.org made",
    ] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    assert!(!plan.contains("default/third"), "{plan}");
    story.apply();
    let there = plane.kubectl(&["get", "configmap", "-o", "name"]);
    assert!(
        there.contains("configmap/second") && !there.contains("configmap/third"),
        "{there}"
    );
    story.nothing();
    story.apply();
    plane.kubectl(&["delete", "configmap/first", "configmap/second"]);
    plane.kubectl(&["delete", "crd/extras.example.org"]);
}
