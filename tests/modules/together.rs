//! Several modules on one host: equal resources are one, different ones are a conflict, and a
//! user's module takes the place of the shipped one with its name.

use crate::say;
use railwright_knowledge::module::{self, DesiredState, ModuleFiles};
use railwright_knowledge::solve::SolverAnswers;
use railwright_knowledge::spec::{self, SourceFile};
use std::collections::BTreeMap;

const SPEC: &str = "cluster: c\n\
                    secrets: { token: { env: TOKEN } }\n\
                    nodes:\n  - { name: \"n[1-2]\", os: debian-12, nics: \
                    { model: soft-roce, netdev: eth1 } }\n";

fn desired(spec: &str, shipped: bool, own: &[(&str, &str)]) -> Result<DesiredState, String> {
    let loaded = spec::load_spec(vec![SourceFile {
        name: "spec.yaml".into(),
        text: spec.to_owned(),
    }]);
    let loaded =
        loaded.map_err(|problems| say::all(&problems.diagnostics, &[&problems.sources]))?;
    let own = own
        .iter()
        .map(|(name, text)| (format!("{name}/module.yaml"), (*text).to_owned()));
    let mut files: Vec<ModuleFiles> = if shipped {
        module::collect_shipped_modules()
    } else {
        Vec::new()
    };
    files.extend(ModuleFiles::below("inventory/modules", own));
    let modules = module::load_modules(files)
        .map_err(|problems| say::all(&problems.diagnostics, &[&problems.sources]))?;
    module::compute_desired_state(
        &loaded,
        &crate::catalog(),
        &SolverAnswers::new(&loaded, &crate::catalog()),
        &modules,
        &BTreeMap::new(),
    )
    .map_err(|errors| say::all(&errors, &[&loaded.sources, &modules.sources]))
}

fn order(desired: &DesiredState) -> String {
    let on_first = desired
        .resources
        .iter()
        .filter(|resource| &*resource.address.target.name == "n1");
    let line = |resource: &railwright_resource::DesiredResource| {
        let after: Vec<String> = resource
            .after
            .iter()
            .map(|before| before.name().to_owned())
            .collect();
        let by: Vec<&str> = desired.why[&resource.address]
            .iter()
            .map(|why| why.module.as_str())
            .collect();
        format!(
            "{} after [{}] by {}\n",
            resource.address.name(),
            after.join(" "),
            by.join(" ")
        )
    };
    on_first.map(line).collect()
}

#[test]
fn the_same_resource_of_two_modules_is_one() {
    let base = "module: base\n\
                summary: x\n\
                resources:\n  - { id: a, package: { name: a } }\n  - { id: b, after: [a], package: { name: b } }\n";
    let top = "module: top\n\
               summary: x\n\
               after: [base]\n\
               resources:\n  - { id: a, package: { name: a } }\n  - { id: c, package: { name: c } }\n";
    let desired = desired(SPEC, false, &[("base", base), ("top", top)]).unwrap();
    insta::assert_snapshot!(order(&desired), @r#"
    a after [] by base/a top/a
    b after [a] by base/b
    c after [b] by top/c
    "#);
}

#[test]
fn an_order_through_a_resource_that_is_not_there_holds() {
    let text = "module: m\n\
                summary: x\n\
                resources:\n  - { id: a, package: { name: a } }\n  - { id: b, when: host.index > 1, after: [a], package: { name: b } }\n  - { id: c, after: [b], package: { name: c } }\n";
    insta::assert_snapshot!(order(&desired(SPEC, false, &[("m", text)]).unwrap()), @r#"
    a after [] by m/a
    c after [a] by m/c
    "#);
}

#[test]
fn different_resources_for_one_thing_are_a_conflict() {
    let mine = "module: mine\n\
                summary: x\n\
                resources:\n  - { id: motd, file: { path: /etc/motd, content: a } }\n";
    let yours = "module: yours\n\
                 summary: x\n\
                 resources:\n  - { id: greeting, file: { path: /etc/motd, content: \"{{ host.name }}\" } }\n";
    insta::assert_snapshot!(desired(SPEC, false, &[("mine", mine), ("yours", yours)]).unwrap_err(), @r#"
    RW0211 file/%2Fetc%2Fmotd is declared twice, differently
      inventory/modules/yours/module.yaml:4:11
      |   - { id: greeting, file: { path: /etc/motd, content: "{{ host.name }}" } }
      |           ^^^^^^^^ by yours/greeting
      inventory/modules/mine/module.yaml:4:11
      |   - { id: motd, file: { path: /etc/motd, content: a } }
      |           ^^^^ by mine/motd
      on: n[1-2]
      effect: each apply would undo the other half, so neither is planned
      next: leave one out: `modules: { yours: { enabled: false } }`
      next: or give both the same values by their parameters
    "#);
}

#[test]
fn a_body_that_its_kind_refuses_is_shown_in_the_manifest() {
    let text = "module: m\n\
                summary: x\n\
                resources:\n  - { id: a, file: { path: \"{{ host.name }}\", content: a, mode: 0644, ownr: root \
                } }\n";
    insta::assert_snapshot!(desired(SPEC, false, &[("m", text)]).unwrap_err(), @r#"
    RW0208 m/a: unknown field `ownr`
      inventory/modules/m/module.yaml:4:77
      |   - { id: a, file: { path: "{{ host.name }}", content: a, mode: 0644, ownr: root } }
      |                                                                             ^^^^ on n1 this is "root"
      on: n[1-2]
      next: did you mean `owner`?
    "#);
    let text = text.replace(", ownr: root", "");
    insta::assert_snapshot!(desired(SPEC, false, &[("m", &text)]).unwrap_err(), @r#"
    RW0208 m/a: the path must be absolute and without `..`
      inventory/modules/m/module.yaml:4:28
      |   - { id: a, file: { path: "{{ host.name }}", content: a, mode: 0644 } }
      |                            ^^^^^^^^^^^^^^^^^ on n1 this is "n1"
      on: n[1-2]
      next: write it as /etc/name.conf
    "#);
}

#[test]
fn a_users_module_takes_the_place_of_the_shipped_one() {
    let mine = "module: memlock\n\
                summary: x\n\
                resources:\n  - { id: motd, file: { path: /etc/motd, content: a } }\n";
    let desired = desired(SPEC, true, &[("memlock", mine)]).unwrap();
    assert!(
        desired
            .resources
            .iter()
            .any(|resource| resource.module == "memlock/motd")
    );
    assert!(
        !desired
            .resources
            .iter()
            .any(|resource| resource.module == "memlock/limits")
    );
}

#[test]
fn a_module_is_left_out_or_taken_by_the_spec() {
    let with = |modules: &str| {
        desired(&format!("{SPEC}modules: {modules}\n"), true, &[])
            .map(|desired| desired.digests.into_keys().collect::<Vec<_>>())
    };
    assert_eq!(with("{}").unwrap(), [] as [&str; 0]);
    assert_eq!(with("{ memlock: { enabled: true } }").unwrap(), ["memlock"]);
    // Taken against its condition, a module still needs its parameters.
    assert!(
        with("{ roce-qos: { enabled: true } }")
            .unwrap_err()
            .contains("needs `priority`")
    );
}

#[test]
fn a_secret_is_a_mark_and_nothing_else_can_be_one() {
    let text = "module: m\n\
                summary: x\n\
                resources:\n  - { id: a, file: { path: /etc/a, content: \"x={{ secrets.token }}\", mode: \
                \"0600\" } }\n  - { id: b, command: { name: b, run: \"login\", environment: { TOKEN: \"{{ \
                secrets.token }}\" }, input: \"{{ secrets.token }}\", read: { probe: \"true\" } } \
                }\n";
    let found = desired(SPEC, false, &[("m", text)]).unwrap();
    let body = |kind: &str| {
        found
            .resources
            .iter()
            .find(|resource| resource.kind == kind)
            .unwrap()
            .body
            .clone()
    };
    assert_eq!(body("file")["content"], "x=\u{E000}secret:token\u{E001}");
    assert_eq!(
        body("command")["environment"]["TOKEN"],
        "\u{E000}secret:token\u{E001}"
    );
    let forged = SPEC.replace(
        "os: debian-12",
        "os: debian-12, labels: { a: \"\u{E000}secret:token\u{E001}\" }",
    );
    let refused = desired(&forged, false, &[("m", text)]).unwrap_err();
    assert!(refused.contains("RW0215"), "{refused}");
    let forged = text.replace("x={{", "\u{E000}secret:token\u{E001}{{");
    assert!(
        desired(SPEC, false, &[("m", &forged)])
            .unwrap_err()
            .contains("RW0215")
    );
}

#[test]
fn a_secret_that_would_not_be_kept_is_refused_where_it_stands() {
    let refused = |resource: &str| {
        let text = format!("module: m\nsummary: x\nresources:\n  - {{ id: a, {resource} }}\n");
        desired(SPEC, false, &[("m", &text)])
            .map(|_| ())
            .unwrap_err()
    };
    insta::assert_snapshot!(refused(r#"command: { name: b, run: "login {{ secrets.token }}", read: { probe: "true" } }"#), @r#"
    RW0216 m/a: the secret `token` stands in `run`
      inventory/modules/m/module.yaml:4:39
      |   - { id: a, command: { name: b, run: "login {{ secrets.token }}", read: { probe: "true" } } }
      |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^ a `command` cannot keep it secret here
      on: n[1-2]
      effect: it would show in a plan, in a log or in the host's process list
      next: a secret may stand in the content of a `file`, in `environment` and `input` of a `command`, and in `values` of a `helm_release`
    "#);
    insta::assert_snapshot!(refused(r#"file: { path: /etc/a, content: "{{ secrets.token }}" }"#), @r#"
    RW0208 m/a: every user of the host could read the secret in this file
      inventory/modules/m/module.yaml:4:20
      |   - { id: a, file: { path: /etc/a, content: "{{ secrets.token }}" } }
      |                    ^ it is this part of the body, on n1
      on: n[1-2]
      next: give a mode without rights for others, such as "0600" or "0640"
    "#);
    insta::assert_snapshot!(refused(r#"file: { path: /etc/a, content: "{{ secrets.token | upper }}", mode: "0600" }"#), @r#"
    RW0216 m/a: a secret stands in `content`
      inventory/modules/m/module.yaml:4:45
      |   - { id: a, file: { path: /etc/a, content: "{{ secrets.token | upper }}", mode: "0600" } }
      |                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a filter has changed it here: use it as it is
      on: n[1-2]
      effect: it would show in a plan, in a log or in the host's process list
      next: a secret may stand in the content of a `file`, in `environment` and `input` of a `command`, and in `values` of a `helm_release`
    "#);
    for resource in [
        r#"file: { path: "/etc/{{ secrets.token }}", content: "x" }"#,
        r#"sysctl: { key: net.a, value: "{{ secrets.token }}" }"#,
        r#"command: { name: b, run: x, read: { probe: "echo {{ secrets.token }}" } }"#,
        r#"command: { name: b, run: x, read: { probe: "x", expect: "{{ secrets.token }}" } }"#,
        r#"command: { name: b, run: x, read: { probe: "x" }, environment: { "{{ secrets.token }}": x } }"#,
    ] {
        assert!(refused(resource).contains("RW02"), "{resource}");
    }
    for filter in ["json", "systemd"] {
        let resource = format!(
            r#"file: {{ path: /etc/a, content: "x {{{{ secrets.token | {filter} }}}}", mode: "0600" }}"#
        );
        assert!(
            refused(&resource).contains("a secret cannot go through this filter"),
            "{filter}: {}",
            refused(&resource)
        );
    }
    let long = r#"command: { name: b, run: x, read: { probe: "x" }, input: "{{ secrets.token }}", limit_s: 601 }"#;
    assert!(refused(long).contains("a command with a secret may not take so long"));
    let check = "module: m\n\
                 summary: x\n\
                 resources: []\n\
                 verify:\n  - { id: c, run: \"login {{ secrets.token }}\" }\n";
    insta::assert_snapshot!(desired(SPEC, false, &[("m", check)]).map(|_| ()).unwrap_err(), @r#"
    RW0216 m/c: the secret `token` stands in `verify`
      inventory/modules/m/module.yaml:5:19
      |   - { id: c, run: "login {{ secrets.token }}" }
      |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^ a check cannot keep it secret
      on: n[1-2]
      effect: it would show in the host's process list, and in a report
      next: a secret may stand in the content of a `file`, in `environment` and `input` of a `command`, and in `values` of a `helm_release`
    "#);
}

#[test]
fn a_secret_in_a_shell_template_is_filled_in_quoted() {
    use railwright_base::secret;
    let text = "module: m\n\
                summary: x\n\
                resources:\n  - { id: a, file: { path: /a, content: \"login {{ secrets.token | sh }}\", mode: \
                \"0700\" } }\n";
    let found = desired(SPEC, false, &[("m", text)]).unwrap();
    let filled = secret::fill_secrets(found.resources[0].text("content").unwrap(), |_| {
        Some("it's $(reboot)".to_owned())
    })
    .unwrap();
    assert_eq!(filled, r"login 'it'\''s $(reboot)'");
}

#[test]
fn a_template_that_fails_on_some_hosts_names_them() {
    let text = "module: m\n\
                summary: x\n\
                resources:\n  - { id: a, file: { path: /etc/a, content: \"{{ host.gpu.model }}\" } }\n";
    insta::assert_snapshot!(desired(SPEC, false, &[("m", text)]).unwrap_err(), @r#"
    RW0204 a template cannot be filled in
      inventory/modules/m/module.yaml:4:54
      |   - { id: a, file: { path: /etc/a, content: "{{ host.gpu.model }}" } }
      |                                                      ^^^ Field `gpu` is not defined. Available fields: catalogue, chosen, index, labels, name, named_nics, node, numa_pods, os, package_manager, rails, rdma_pods, soft_roce, tagged
      on: n[1-2]
    "#);
}
