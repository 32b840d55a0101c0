//! From bytes to errors with places: YAML, decoding, joining. One file of text in,
//! `line:column code message` out.

use super::*;
use proptest::prelude::*;

pub(super) fn file(name: &str, text: &str) -> SourceFile {
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

/// A kubeconfig, a secret: what lies beside the spec by mistake.
#[test]
fn a_file_without_a_key_of_a_spec_is_not_quoted() {
    for other in [
        "apiVersion: v1\nclusters: [c]\nusers: [{ token: hunter2 }]\n",
        "password: hunter2\n",
        "hunter2\n",
    ] {
        let files = [("a.yaml", "cluster: a\n"), ("b.yaml", other)];
        let files = files.map(|(name, text)| file(name, text)).to_vec();
        let problems = load_spec(files).unwrap_err().diagnostics;
        assert!(
            problems.len() == 1 && problems[0].labels.is_empty(),
            "{other}: {problems:?}"
        );
    }
    assert!(one("clutser: a\n").contains("did you mean `cluster`?"));
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
            "RW0101 the text holds a control character 1:10 (by an escape in here)\n\
             RW0121 `a\u{fffd}b` cannot be a cluster's name 1:10 (not a name)",
        ),
        (
            "cluster: a # \u{1b}[31m",
            "RW0101 the file holds the control character U+001B 1:14 (here)",
        ),
        ("- a\n", "RW0106 a spec file is a mapping (`key: value`) "),
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
        (Ok(()), Err("it has more than 2000 hosts".into()))
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
    let a = "cluster: lab\n\
             fabric: { mtu: x, knid: none, lossless: { dscp: 26, cnp: { priorty: 6, dscp: no } } \
             }\n\
             nodes:\n  - name: n1\n    oss: debian-12\n    gpu: { count: many }\n  - os: debian-12\n";
    let b = "cluster: other\n\
             modules: { x: { enabled: yes, parameters: { any: yes, thing: [1, 0644, 1.5, true] } } \
             }\n\
             nodes:\n  - 3\n";
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
    let text = "cluster: a\n\
                nodes:\n  - &base\n    name: n1\n    nics: &nics { model: C, netdev: e0, rails: x }\n  - { name: n2, nics: *nics }\n  - <<: *base\n    name: n3\n";
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
        for text in [noise, text.clone(), format!("cluster: a\n\
                                                   nodes:\n  - name: n[1-2]\n    {text}")] {
            if let Err(problems) = load_spec(vec![file("a.yaml", &text)]) {
                prop_assert!(!problems.diagnostics.is_empty());
                for label in problems.diagnostics.iter().flat_map(|d| &d.labels) {
                    prop_assert!(text.get(label.span.clone()).is_some(), "{:?} of {:?}", label, text);
                }
            }
        }
    }
}
