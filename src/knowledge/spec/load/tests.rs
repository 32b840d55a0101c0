//! From bytes to errors with places: YAML, decoding, joining, paths. One file of text in,
//! `line:column code message` out.

use super::*;
use crate::spec::HostSsh;
use proptest::prelude::*;

fn file(name: &str, text: &str) -> SourceFile {
    SourceFile {
        name: name.into(),
        text: text.into(),
    }
}

fn outcome(files: &[(&str, &str)]) -> String {
    match load_spec(files.iter().map(|(name, text)| file(name, text)).collect()) {
        Ok(loaded) => format!("valid: {} hosts", loaded.hosts.len()),
        Err(problems) => problems
            .diagnostics
            .iter()
            .map(|d| line(d, &problems.sources))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn line(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let place = |label: &Label| {
        let (line, column) = sources
            .get(&label.file)
            .unwrap()
            .line_column(label.span.start);
        format!("{line}:{column} ({})", label.text)
    };
    let places: Vec<String> = diagnostic.labels.iter().map(place).collect();
    format!(
        "{} {} {}",
        diagnostic.code,
        diagnostic.message,
        places.join(" ")
    )
}

fn one(text: &str) -> String {
    outcome(&[("a.yaml", text)])
}

#[test]
fn what_yaml_allows_and_a_spec_does_not() {
    for (text, expected) in [
        (
            "cluster: a\ncluster: b\n",
            "RW0102 the key `cluster` comes twice 2:1 (again here) 1:1 (first here)",
        ),
        (
            "cluster: !!str a",
            "RW0103 tags are not used in a spec 1:10 (a tag)",
        ),
        (
            "cluster: a\n---\nb: c\n",
            "RW0103 a spec file holds one document 2:1 (a second one starts here)",
        ),
        (
            "cluster: a\n? [x]\n: y\n",
            "RW0103 a key is plain text 2:3 (this is no text)",
        ),
        (
            "cluster: a\n? *b\n: y\n",
            "RW0101 this is not valid YAML 2:3 (nothing above is named so with `&`; text that \
             begins with `*` needs quotes)",
        ),
        (
            "cluster: a\nmodules: &m { x: *m }",
            "RW0103 the alias stands inside of what it names 2:18 (it would never end)",
        ),
        (
            "cluster: a\nssh: { <<: [1] }",
            "RW0103 `<<` merges mappings only 2:12 (this is none)",
        ),
        (
            "cluster: \"a\\eb\"",
            "RW0101 the text holds a control character 1:10 (by an escape in here)\nRW0121 \
             `a\u{fffd}b` cannot be a cluster's name 1:10 (not a name)",
        ),
        (
            "cluster: a # \u{1b}[31m",
            "RW0101 the file holds the control character U+001B 1:14 (here)",
        ),
        (
            "- a\n",
            "RW0106 a spec file is a mapping (`key: value`) 1:1 (this is none)",
        ),
        ("", "RW0107 the key `cluster` is missing in all files "),
        ("cluster: a\n", "valid: 0 hosts"),
        (
            "\u{feff}cluster: a\r\nnodes:\r\n  - name: n[1-3]\r\n",
            "valid: 3 hosts",
        ),
    ] {
        assert_eq!(one(text), expected, "{text:?}");
    }
    assert!(one("cluster: [a").starts_with("RW0101 this is not valid YAML 1:"));
}

#[test]
fn bombs_are_refused() {
    let mut aliases =
        "cluster: a\nmodules:\n  m0: &m0 { parameters: { a: [x,x,x,x,x,x,x,x,x,x] } }\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        aliases.push_str(&format!(
            "  m{level}: &m{level} {{ parameters: {{ a: \
             [*m{before},*m{before},*m{before},*m{before},*m{before},*m{before}] }} }}\n"
        ));
    }
    let mut merges = "cluster: a\nmodules:\n  m0: &m0 { k: x }\n".to_owned();
    for level in 1..40 {
        merges.push_str(&format!(
            "  m{level}: &m{level} {{ <<: [*m{0}, *m{0}] }}\n",
            level - 1
        ));
    }
    let deep = format!("cluster: a\nmodules: {}", "[".repeat(100_000));
    let chain = (1..200).fold(
        "cluster: a\nmodules:\n  m0: &m0 { a: b }\n".to_owned(),
        |s, n| s + &format!("  m{n}: &m{n} {{ a: *m{} }}\n", n - 1),
    );
    for (text, message) in [
        (aliases, "values, aliases unfolded"),
        (merges, "aliases unfolded"),
        (chain, "levels, aliases unfolded"),
        (deep, "not valid YAML"),
    ] {
        let outcome = one(&text);
        assert!(
            outcome.lines().next().unwrap().contains(message),
            "{}",
            &outcome[..outcome.len().min(300)]
        );
    }
}

#[test]
fn what_the_aliases_of_all_files_stand_for_is_bounded() {
    let text = format!(
        "jobs:\n  environment:\n    a: &a {}\n{}",
        "x".repeat(1 << 20),
        (0..16)
            .map(|n| format!("    b{n}: *a\n"))
            .collect::<String>()
    );
    let names = |n: usize| {
        format!(
            "modules:\n  m{n}: {{ parameters: {{ a: &a [{}], b: [{}] }} }}\n",
            "x,".repeat(1000),
            "*a,".repeat(999)
        )
    };
    let (first, second, third) = (names(1), names(2), names(3));
    let outcome_of =
        |files: &[(&str, &str)]| outcome(files).lines().next().unwrap_or_default().to_owned();
    assert_eq!(
        outcome_of(&[("a.yaml", "cluster: a"), ("b.yaml", &text)]),
        "valid: 0 hosts"
    );
    assert_eq!(
        outcome_of(&[
            ("a.yaml", "cluster: a"),
            ("b.yaml", &first),
            ("c.yaml", &second)
        ]),
        "valid: 0 hosts"
    );
    let said = outcome_of(&[
        ("a.yaml", "cluster: a"),
        ("b.yaml", &first),
        ("c.yaml", &second),
        ("d.yaml", &third),
    ]);
    assert!(
        said.starts_with("RW0104 the files hold more than 2000000 values, aliases unfolded"),
        "{said}"
    );
    let said = outcome_of(&[
        ("a.yaml", "cluster: a"),
        ("b.yaml", &format!("{text}    c: *a\n")),
    ]);
    assert!(
        said.starts_with("RW0104 the files hold more than 16 MiB of text, aliases unfolded"),
        "{said}"
    );
}

#[test]
fn a_case_has_few_hosts() {
    let case = |name: &str| {
        load_case_spec(&serde_json::json!({ "nodes": [{ "name": "a[1-1600]" }, { "name": name }] }))
            .map(|_| ())
    };
    assert_eq!(
        (case("b[1-400]"), case("b[1-401]")),
        (Ok(()), Err("it has more than 2000 hosts".to_owned()))
    );
}

#[test]
fn wrong_values_are_pointed_at() {
    for (text, expected) in [
        (
            "fabric: 3",
            "RW0106 `fabric` wants a mapping (`key: value`) 2:9 (found `3`)",
        ),
        (
            "fabric:",
            "RW0106 `fabric` has no value 2:1 (wants a mapping (`key: value`))",
        ),
        ("nodes: {}", "RW0106 `nodes` wants a list 2:1 (of this key)"),
        (
            "fabric: { mtu: 9k }",
            "RW0106 `mtu` wants a whole number, not negative 2:16 (found `9k`)",
        ),
        (
            "fabric: { mtu: \"9000\" }",
            "RW0106 `mtu` wants a whole number, not negative 2:16 (found the text \"9000\")",
        ),
        (
            "fabric: { mtu: -1 }",
            "RW0106 `mtu` wants a whole number, not negative 2:16 (found `-1`)",
        ),
        (
            "fabric: { mtu: ~ }",
            "RW0106 `mtu` has no value 2:16 (wants a whole number, not negative)",
        ),
        (
            "fabric: { mtu: [1] }",
            "RW0106 `mtu` wants a whole number, not negative 2:16 (found a list)",
        ),
        (
            "ssh: { port: 65536 }",
            "RW0106 `port` wants a whole number from 0 to 65535 2:14 (found `65536`)",
        ),
        (
            "ssh: { config: on }",
            "RW0106 `config` wants `true` or `false` 2:16 (found `on`)",
        ),
        (
            "ssh: { config: \"true\" }",
            "RW0106 `config` wants `true` or `false` 2:16 (found the text \"true\")",
        ),
        (
            "ssh: { identities: [a, ~] }",
            "RW0106 `identities` has no value 2:24 (wants text)",
        ),
        (
            "ssh: { user: { a: b } }",
            "RW0106 `user` wants text 2:14 (found a mapping)",
        ),
        (
            "fabric: { knid: rocev2 }",
            "RW0105 unknown key `knid` 2:11 (did you mean `kind`?)",
        ),
        (
            "fabric: { kind: roce }",
            "RW0108 `roce` is no value for `kind` 2:17 (not a known word)",
        ),
        (
            "fabric: { kind: rocev3 }",
            "RW0108 `rocev3` is no value for `kind` 2:17 (did you mean `rocev2`?)",
        ),
        (
            "fabric: { kind: rocev2, lossless: { priority: 3 } }",
            "RW0107 the key `dscp` is missing 2:35 (in this mapping)",
        ),
        (
            "fabric:\n  lossless:\n    priority: 3\n",
            "RW0107 the key `dscp` is missing 4:5 (in this mapping)",
        ),
        (
            "cabling: []",
            "RW0106 `cabling` wants text 2:10 (found a list)",
        ),
        (
            "Nodes: []",
            "RW0105 unknown key `Nodes` 2:1 (did you mean `nodes`?)",
        ),
    ] {
        assert_eq!(one(&format!("cluster: a\n{text}")), expected, "{text}");
    }
}

#[test]
fn all_errors_of_all_files_come_at_once() {
    let a = "cluster: lab\nfabric: { mtu: x, knid: none, lossless: { dscp: 26, cnp: \
             { priorty: 6, dscp: no } } }\nnodes:\n  - name: n1\n    oss: debian-12\n    gpu: \
             { count: many }\n  - os: debian-12\n";
    let b = "cluster: other\nmodules: { x: { enabled: yes, parameters: \
             { any: yes, thing: [1, 0644, 1.5, true] } } }\nnodes:\n  - 3\n";
    insta::assert_snapshot!(outcome(&[("b.yaml", b), ("a.yaml", a), ("c.yaml", "cluster: [")]), @r#"
    RW0106 `mtu` wants a whole number, not negative 2:16 (found `x`)
    RW0105 unknown key `knid` 2:19 (did you mean `kind`?)
    RW0107 the key `priority` is missing 2:41 (in this mapping)
    RW0105 unknown key `priorty` 2:60 (did you mean `priority`?)
    RW0106 `dscp` wants a whole number from 0 to 255 2:78 (found `no`)
    RW0105 unknown key `oss` 5:5 (did you mean `os`?)
    RW0107 the key `model` is missing 6:10 (in this mapping)
    RW0106 `count` wants a whole number, not negative 6:19 (found `many`)
    RW0107 the key `name` is missing 7:5 (in this mapping)
    RW0109 `cluster` stands in two files 1:1 (again here) 1:1 (first here)
    RW0106 `enabled` wants `true` or `false` 2:26 (found `yes`)
    RW0106 this value wants a mapping (`key: value`) 4:5 (found `3`)
    RW0101 this is not valid YAML 1:10 (`[` is opened and not closed)
    "#);
}

#[test]
fn aliases_and_merge_keys_keep_their_places() {
    let text = "cluster: a\nnodes:\n  - &base\n    name: n1\n    nics: &nics \
                { model: C, netdev: e0, rails: x }\n  - { name: n2, nics: *nics }\n  - <<: *base\n    \
                name: n3\n";
    insta::assert_snapshot!(one(text), @r#"
    RW0106 `rails` wants a whole number, not negative 5:48 (found `x`)
    "#);
    let good = load_spec(vec![file("a.yaml", &text.replace("rails: x", "rails: 1"))]).unwrap();
    let names: Vec<String> = good
        .hosts
        .iter()
        .map(|host| format!("{}:{}", host.name, host.netdevs[0].netdev))
        .collect();
    assert_eq!(names, ["n1:e0", "n2:e0", "n3:e0"]);
}

#[test]
fn files_are_joined_by_top_level_key() {
    let loaded = load_spec(vec![
        file(
            "inv/b.yaml",
            "nodes: [{ name: 'b[1-2]' }]\nmodules: { y: { enabled: true } }\nfabric: \
             { kind: rocev2 }\n",
        ),
        file(
            "inv/a.yaml",
            "cluster: lab\nnodes:\n  - name: a1\n    labels: { rack: 1, \"a.b\": x }\nmodules: { \
             x: { enabled: false } }\n",
        ),
    ])
    .unwrap();
    assert_eq!(
        loaded
            .hosts
            .iter()
            .map(|host| (host.name.as_str(), host.index, host.group))
            .collect::<Vec<_>>(),
        [("a1", 1, 0), ("b1", 2, 1), ("b2", 3, 1)]
    );
    let place = |path: &str| {
        loaded
            .place(path)
            .map(|place| format!("{place}:{}", place.column))
    };
    for (path, expected) in [
        ("cluster", Some("inv/a.yaml:1:10")),
        ("nodes[0].name", Some("inv/a.yaml:3:11")),
        ("nodes[1].name", Some("inv/b.yaml:1:17")),
        ("nodes[0].labels", Some("inv/a.yaml:4:5")),
        ("nodes[0].labels[\"a.b\"]", Some("inv/a.yaml:4:31")),
        ("modules.y.enabled", Some("inv/b.yaml:2:26")),
        ("fabric.kind", Some("inv/b.yaml:3:17")),
        ("fabric.mtu", None),
        ("nodes[2].name", None),
        ("", None),
        ("nodes[x", None),
    ] {
        assert_eq!(place(path).as_deref(), expected, "{path}");
    }
    assert_eq!(
        loaded.nearest_place("fabric.mtu").unwrap().to_string(),
        "inv/b.yaml:3"
    );
    assert_eq!(loaded.host("b2").unwrap().index, 3);
    assert_eq!(loaded.group_of(&loaded.hosts[1]).name, "b[1-2]");
}

#[test]
fn a_host_is_the_node_that_its_kubelet_makes_of_its_name() {
    let loaded = load_spec(vec![file(
        "a.yaml",
        "cluster: lab\nnodes: [{ name: 'GPU-[1-2].Rack' }, { name: N3, kubernetes_node: cn-3 }]\n",
    )])
    .unwrap();
    let nodes: Vec<&str> = loaded.hosts.iter().map(|host| host.node.as_str()).collect();
    assert_eq!(nodes, ["gpu-1.rack", "gpu-2.rack", "cn-3"]);
}

#[test]
fn hosts_get_their_rails_and_their_way_of_access() {
    let loaded = load_spec(vec![file(
        "a.yaml",
        "cluster: lab\nssh: \
         { user: deploy, host_keys: keys, identities: [id], jump: [j] }\nnodes:\n  - name: \
         n[1-2]\n    nics: { model: C, rails: 2, netdev: 'e{rail}', address: \
         '10.{rail}.0.{index}/24' }\n    kubernetes_node: 'cn-{name}.{index}'\n    ssh: { port: \
         2222, address: '{name}.mgmt', identities: [own] }\n  - { name: login }\n",
    )])
    .unwrap();
    insta::assert_debug_snapshot!((&loaded.hosts[1], &loaded.hosts[2].ssh), @r#"
    (
        Host {
            name: "n2",
            index: 2,
            group: 0,
            netdevs: [
                Rail {
                    rail: 0,
                    netdev: "e0",
                    port: "e0",
                    vlan: None,
                    address: Some(
                        "10.0.0.2/24",
                    ),
                    model: "C",
                    firmware: None,
                    device: None,
                },
                Rail {
                    rail: 1,
                    netdev: "e1",
                    port: "e1",
                    vlan: None,
                    address: Some(
                        "10.1.0.2/24",
                    ),
                    model: "C",
                    firmware: None,
                    device: None,
                },
            ],
            node: "cn-n2.2",
            ssh: Some(
                HostSsh {
                    user: Some(
                        "deploy",
                    ),
                    port: Some(
                        2222,
                    ),
                    address: "n2.mgmt",
                    host_keys: Some(
                        "keys",
                    ),
                    identities: [
                        "own",
                    ],
                    jump: [
                        "j",
                    ],
                    config: false,
                    read_only: false,
                },
            ),
        },
        Some(
            HostSsh {
                user: Some(
                    "deploy",
                ),
                port: None,
                address: "login",
                host_keys: Some(
                    "keys",
                ),
                identities: [
                    "id",
                ],
                jump: [
                    "j",
                ],
                config: false,
                read_only: false,
            },
        ),
    )
    "#);
}

#[test]
fn what_a_group_says_is_kept_once_for_all_its_names() {
    let loaded = load_spec(vec![file(
        "a.yaml",
        "cluster: lab\nssh: { user: root, identities: [i], jump: [j] }\nnodes:\n  - name: n[1-2]\n    \
         nics: { model: C, rails: 2, netdev: 'e{rail}', firmware: { settings: { SRIOV_EN: 1 } } \
         }\nswitches: [{ name: 'leaf[1-2]', os: sonic, ports: 'Ethernet[0-4/4]', ssh: {} }]\n",
    )])
    .unwrap();
    let of_hosts: Vec<&HostSsh> = loaded
        .hosts
        .iter()
        .filter_map(|host| host.ssh.as_ref())
        .collect();
    let of_switches = loaded
        .switches
        .iter()
        .filter_map(|switch| match &switch.reach {
            Some(SwitchReach::Ssh(ssh)) => Some(ssh),
            _ => None,
        });
    for ssh in [of_hosts, of_switches.collect()] {
        let [first, second] = ssh[..] else {
            panic!("two names: {ssh:?}")
        };
        assert_eq!(
            (&*first.identities, &*first.jump),
            (&["i".to_owned()][..], &["j".to_owned()][..])
        );
        assert!(
            Arc::ptr_eq(&first.identities, &second.identities)
                && Arc::ptr_eq(&first.jump, &second.jump)
        );
    }
    let firmware: Vec<_> = loaded
        .hosts
        .iter()
        .flat_map(|host| &host.netdevs)
        .map(|rail| rail.firmware.as_ref().unwrap())
        .collect();
    assert!(firmware.len() == 4 && firmware.iter().all(|other| Arc::ptr_eq(other, firmware[0])));
    let [leaf1, leaf2] = &loaded.switches[..] else {
        panic!("two switches: {:?}", loaded.switches)
    };
    assert!(leaf1.ports.len() == 2 && Arc::ptr_eq(&leaf1.ports, &leaf2.ports));
}

#[test]
fn the_budget_rounds_down() {
    let spec = |rollout: &str| {
        load_spec(vec![file(
            "a.yaml",
            &format!("cluster: a\nrollout: {{ {rollout} }}"),
        )])
        .unwrap()
        .spec
    };
    assert_eq!(spec("max_unavailable: 10%").rollout.max_unavailable(19), 1);
    assert_eq!(spec("max_unavailable: 3").rollout.max_unavailable(1), 3);
    assert_eq!(spec("canary: 2").rollout.max_unavailable(100), 1);
    assert_eq!(
        (
            spec("canary: 2").rollout.canary(),
            spec("").rollout.canary()
        ),
        (2, 1)
    );
    assert_eq!(
        spec("").rollout.max_disruption(),
        railwright_resource::Disruption::Reboot
    );
}

#[test]
fn the_digest_depends_on_names_and_bytes_only() {
    let digest = |files: &[(&str, &str)]| {
        load_spec(files.iter().map(|(n, t)| file(n, t)).collect())
            .unwrap()
            .digest
    };
    let there = digest(&[("inv/a.yaml", "cluster: a"), ("inv/b.yaml", "nodes: []")]);
    assert_eq!(
        there,
        digest(&[
            ("/x/inv/b.yaml", "nodes: []"),
            ("/x/inv/a.yaml", "cluster: a")
        ])
    );
    assert_ne!(
        there,
        digest(&[("inv/a.yaml", "cluster: a"), ("inv/b.yaml", "nodes:  []")])
    );
    assert_ne!(
        there,
        digest(&[("inv/a.yaml", "cluster: a"), ("inv/c.yaml", "nodes: []")])
    );
}

/// Texts that are nearly specs: more of them come past the parser than of plain noise.
fn nearly_a_spec() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("cluster"),
        Just("nodes"),
        Just("name"),
        Just("fabric"),
        Just("mtu"),
        Just("n[1-3]"),
        Just("ssh"),
        Just("<<"),
        Just("*a"),
        Just("&a"),
        Just("~"),
        Just("10.{rail}.{index}/8"),
        Just("9000"),
        Just("50%"),
        Just("secrets"),
        Just("modules"),
        Just("\"\\u00e9\""),
        Just("\u{4e2d}"),
        Just("max_unavailable"),
        Just("rollout"),
        Just("nics"),
        Just("rails"),
        Just("repositories"),
        Just("'"),
        Just("|\n  x"),
    ];
    let glue = prop_oneof![
        Just(": "),
        Just("\n"),
        Just("\n  "),
        Just("\n  - "),
        Just("{ "),
        Just(" }"),
        Just("[ "),
        Just(" ]"),
        Just(", "),
        Just("? "),
        Just("\r\n")
    ];
    proptest::collection::vec((word, glue), 0..30)
        .prop_map(|parts| parts.into_iter().map(|(a, b)| format!("{a}{b}")).collect())
}

proptest! {
    #[test]
    fn no_text_panics(noise in ".{0,60}", text in nearly_a_spec()) {
        for text in [noise, text.clone(), format!("cluster: a\nnodes:\n  - name: n[1-2]\n    \
                                                   {text}")] {
            if let Err(problems) = load_spec(vec![file("a.yaml", &text)]) {
                prop_assert!(!problems.diagnostics.is_empty());
                for label in problems.diagnostics.iter().flat_map(|d| &d.labels) {
                    prop_assert!(text.get(label.span.clone()).is_some(), "{:?} of {:?}", label, text);
                }
            }
        }
    }
}
