//! Manifests that are wrong: each gives an error with its place, before any host is looked at.

use crate::say;
use railwright_knowledge::module::{self, ModuleFiles};
use std::collections::BTreeMap;

/// A module of these files: `path` on a line of its own after `---`, then the text.
fn folder(name: &str, text: &str) -> ModuleFiles {
    let files = text.split("--- ").skip(1).map(|part| {
        let (path, text) = part.split_once('\n').unwrap();
        (path.trim().to_owned(), text.to_owned())
    });
    ModuleFiles {
        folder: format!("modules/{name}"),
        files: files.collect::<BTreeMap<_, _>>(),
    }
}

fn errors(modules: &[(&str, &str)]) -> String {
    match module::load_modules(
        modules
            .iter()
            .map(|(name, text)| folder(name, text))
            .collect(),
    ) {
        Ok(_) => "no error".to_owned(),
        Err(problems) => say::all(&problems.diagnostics, &[&problems.sources]),
    }
}

#[test]
fn a_name_that_the_spec_does_not_have() {
    let text = r#"--- module.yaml
module: bad
summary: x
when: fabric.kid == "rocev2" and fabric.kind != "rocev3"
parameters:
  mtu: { type: integer, from: fabric.mtuu, doc: x }
  host: { type: integer, default: text, doc: x }
resources:
  - id: a
    when: mtu > 1 and mut > 1
    for: rail in host.rails
    file: { path: "/etc/{{ rail.netdevice }}", template: a.tera }
--- templates/a.tera
line one
{% if host.soft_rose %}x{% endif %}
"#;
    insta::assert_snapshot!(errors(&[("bad", text)]), @r#"
    RW0201 a parameter cannot be named `host`
      modules/bad/module.yaml:6:3
      |   host: { type: integer, default: text, doc: x }
      |   ^^^^ templates know another thing by this name
    RW0203 there is no `mtuu` on the path of `mtu`
      modules/bad/module.yaml:5:31
      |   mtu: { type: integer, from: fabric.mtuu, doc: x }
      |                               ^^^^^^^^^^^ did you mean `mtu`?
    RW0203 `fabric` has no `kid`
      modules/bad/module.yaml:3:14
      | when: fabric.kid == "rocev2" and fabric.kind != "rocev3"
      |              ^^^ did you mean `kind`?
      effect: Tera would take it for false or stop in the middle, and a resource would be missing without a word
    RW0203 this is never `rocev3`
      modules/bad/module.yaml:3:49
      | when: fabric.kid == "rocev2" and fabric.kind != "rocev3"
      |                                                 ^^^^^^^^ did you mean `rocev2`?
      effect: Tera would take it for false or stop in the middle, and a resource would be missing without a word
    RW0203 there is no `mut` here
      modules/bad/module.yaml:9:23
      |     when: mtu > 1 and mut > 1
      |                       ^^^ did you mean `mtu`?
      effect: Tera would take it for false or stop in the middle, and a resource would be missing without a word
    RW0203 `rail` has no `netdevice`
      modules/bad/module.yaml:11:33
      |     file: { path: "/etc/{{ rail.netdevice }}", template: a.tera }
      |                                 ^^^^^^^^^ did you mean `netdev`?
      effect: Tera would take it for false or stop in the middle, and a resource would be missing without a word
    RW0203 `host` has no `soft_rose`
      modules/bad/templates/a.tera:2:12
      | {% if host.soft_rose %}x{% endif %}
      |            ^^^^^^^^^ did you mean `soft_roce`?
      effect: Tera would take it for false or stop in the middle, and a resource would be missing without a word
    "#);
}

#[test]
fn a_template_that_cannot_be_read_or_is_not_there() {
    let text = r#"--- module.yaml
module: bad
summary: x
resources:
  - id: a
    file: { path: /etc/a, template: b.tera }
  - id: b
    file: { path: "/etc/{{ host.name", content: "{{ host.name | sh | safe }}{% include 'x' %}" }
--- templates/a.tera
nobody uses this
"#;
    insta::assert_snapshot!(errors(&[("bad", text)]), @r#"
    RW0207 the template `b.tera` is not there
      modules/bad/module.yaml:5:37
      |     file: { path: /etc/a, template: b.tera }
      |                                     ^^^^^^ did you mean `a.tera`?
    RW0205 `safe` would let a value reach a shell unquoted, so modules cannot use it
      modules/bad/module.yaml:7:70
      |     file: { path: "/etc/{{ host.name", content: "{{ host.name | sh | safe }}{% include 'x' %}" }
      |                                                                      ^^^^ 
    RW0205 `include` is not in the language of modules
      modules/bad/module.yaml:7:77
      |     file: { path: "/etc/{{ host.name", content: "{{ host.name | sh | safe }}{% include 'x' %}" }
      |                                                                             ^^^^^^^^^^^^^^^^^ output, if, for, set and raw are
    RW0207 no resource uses the template `a.tera`
      modules/bad/templates/a.tera:1:1
      | nobody uses this
      | ^ this file
      next: name it in a resource with `template:`, or remove the file
    RW0204 a template cannot be read
      modules/bad/module.yaml:7:33
      |     file: { path: "/etc/{{ host.name", content: "{{ host.name | sh | safe }}{% include 'x' %}" }
      |                                 ^^^^ Unexpected end of input
    "#);
}

#[test]
fn a_value_where_a_shell_could_run_it() {
    let text = r#"--- module.yaml
module: bad
summary: x
resources:
  - id: a
    command:
      name: a
      run: |
        echo "{{ host.name }}"
        echo {{ host.name }}
      read: { probe: "cat '{{ host.name }}'" }
verify:
  - id: c
    run: "echo `{{ host.name }}`"
"#;
    insta::assert_snapshot!(errors(&[("bad", text)]), @r#"
    RW0206 a value stands where a shell could run it
      modules/bad/module.yaml:8:15
      |         echo "{{ host.name }}"
      |               ^^^^^^^^^^^^^^^ a value inside double quotes is not safe: it is quoted by itself, as one word
      next: write the value outside of quotes: `echo {{ name }}`, `--option={{ value }}`
    RW0206 a value stands where a shell could run it
      modules/bad/module.yaml:10:28
      |       read: { probe: "cat '{{ host.name }}'" }
      |                            ^^^^^^^^^^^^^^^ a value inside single quotes is not safe: it is quoted by itself, as one word
      next: write the value outside of quotes: `echo {{ name }}`, `--option={{ value }}`
    RW0206 a value stands where a shell could run it
      modules/bad/module.yaml:13:17
      |     run: "echo `{{ host.name }}`"
      |                 ^^^^^^^^^^^^^^^ a value inside backticks is not safe: it is quoted by itself, as one word
      next: write the value outside of quotes: `echo {{ name }}`, `--option={{ value }}`
    "#);
}

/// Whether it is for hosts or for a cluster is told by its kinds: where one is misspelt, nothing
/// else is said of it.
#[test]
fn a_kind_that_is_misspelt_is_all_that_is_wrong() {
    let text = "--- module.yaml\n\
                module: own\n\
                summary: x\n\
                when: kubernetes is defined\n\
                resources:\n  - id: a\n    kubernetes_objects: { manifest: { kind: \"{{ kubernetes.name }}\" } }\n";
    let said = errors(&[("own", text)]);
    assert!(
        said.starts_with("RW0202 there is no resource kind `kubernetes_objects`")
            && said.contains("did you mean `kubernetes_object`?"),
        "{said}"
    );
    assert_eq!(said.matches("RW0").count(), 1, "{said}");
}

#[test]
fn a_manifest_of_another_form() {
    let text = r#"--- module.yaml
module: other
sumary: x
resources:
  - id: a
    fiel: { path: /etc/a }
  - id: a
    whn: x
    file: { path: /etc/a }
  - file: { path: /etc/a }
  - id: c
    for: rails
    fiel: { path: /etc/a }
verify:
  - id: d
    runs: x
"#;
    let renamed = "--- module.yaml\n\
                   module: x\n\
                   summary: x\n\
                   resources:\n  - id: c\n    for: rails\n    fiel: { path: /etc/a }\n";
    insta::assert_snapshot!(errors(&[("bad", text), ("empty", "--- README.md\n"), ("list", "--- module.yaml\n- a\n"), ("worse", renamed)]), @r#"
    RW0105 unknown key `sumary`
      modules/bad/module.yaml:2:1
      | sumary: x
      | ^^^^^^ did you mean `summary`?
      next: keys that can stand here: module, summary, when, needs, parameters, resources, verify, after, provides
    RW0201 a resource has one kind
      modules/bad/module.yaml:7:5
      |     whn: x
      |     ^^^ did you mean `when`?
    RW0201 this resource has no `id`
      modules/bad/module.yaml:9:5
      |   - file: { path: /etc/a }
      |     ^^^^ add `id: name`: plans and errors name it so
    RW0201 unknown key `runs`
      modules/bad/module.yaml:15:5
      |     runs: x
      |     ^^^^ did you mean `run`?
    RW0201 this check has no `run`
      modules/bad/module.yaml:14:5
      |   - id: d
      |     ^^ add the command that it runs
    RW0201 modules/empty has no module.yaml
      next: write modules/empty/module.yaml, or remove the folder
    RW0201 a manifest is a mapping
      modules/list/module.yaml:1:1
      | - a
      | ^ nothing of the kind is here
    RW0201 a module has the name of its folder
      modules/worse/module.yaml:1:9
      | module: x
      |         ^ the folder is named `worse`
    RW0201 a `for` reads `name in list`
      modules/worse/module.yaml:5:10
      |     for: rails
      |          ^^^^^ such as `rail in host.rails`
    RW0202 there is no resource kind `fiel`
      modules/worse/module.yaml:6:5
      |     fiel: { path: /etc/a }
      |     ^^^^ did you mean `file`?
    "#);
}

#[test]
fn modules_that_wait_for_each_other() {
    let a = "--- module.yaml\nmodule: a\nsummary: x\nafter: [b]\nprovides: [cap]\nresources: []\n";
    let b = "--- module.yaml\nmodule: b\nsummary: x\nafter: [c, d, devices]\nresources: []\n";
    let c = "--- module.yaml\n\
             module: c\n\
             summary: x\n\
             resources:\n  - id: r\n    after: [cap]\n    file: { path: /etc/c, content: x }\n";
    let d = "--- module.yaml\n\
             module: d\n\
             summary: x\n\
             resources:\n  - id: r\n    after: [s]\n    file: { path: /etc/d, content: x }\n  - id: s\n    after: [r]\n    file: { path: /etc/s, content: x }\n";
    insta::assert_snapshot!(errors(&[("a", a), ("b", b), ("c", c), ("d", d)]), @r#"
    RW0209 no module, capability or resource is named `devices`
      modules/b/module.yaml:3:15
      | after: [c, d, devices]
      |               ^^^^^^^ nobody has this name
    RW0210 resources of `d` wait for each other
      modules/d/module.yaml:8:13
      |     after: [r]
      |             ^ `s` comes after `r`
      modules/d/module.yaml:5:13
      |     after: [s]
      |             ^ `r` comes after `s`
      next: remove one of these lines
    RW0210 modules wait for each other: b after c after a after b
      modules/b/module.yaml:3:9
      | after: [c, d, devices]
      |         ^ `b` comes after `c`
      modules/c/module.yaml:5:13
      |     after: [cap]
      |             ^^^ `c` comes after `a`
      modules/a/module.yaml:3:9
      | after: [b]
      |         ^ `a` comes after `b`
      next: remove one of these lines
    "#);
}
