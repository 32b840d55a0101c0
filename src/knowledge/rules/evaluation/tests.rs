//! Every shipped rule by its own two cases, waivers, and rules of a user's own.

use super::*;
use crate::catalog;
use crate::rules::{self, RuleSet};
use serde_json::Value;

fn spec(value: &Value) -> LoadedSpec {
    crate::spec::load_case_spec(value).unwrap_or_else(|why| panic!("{value}\n{why}"))
}

fn evaluated(case: &Value, catalog: &Catalog, rules: &RuleSet) -> (LoadedSpec, RulesReport) {
    let (loaded, job) = crate::rules::job_subject::parse_rule_case(case)
        .unwrap_or_else(|why| panic!("{case}\n{why}"));
    let evaluation = match &job {
        Some(job) => evaluate_job(
            &loaded,
            "2026-01-01",
            asked_of_job(&loaded, catalog, rules, job, true),
        ),
        None => evaluate_rules(&loaded, catalog, rules, "2026-01-01"),
    };
    (loaded, evaluation)
}

fn shipped() -> (Catalog, RuleSet) {
    let catalog = catalog::load_catalog("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    (
        catalog,
        rules::load_rules("", [])
            .map_err(|problems| problems.diagnostics)
            .unwrap(),
    )
}

fn codes(evaluation: &RulesReport) -> Vec<&str> {
    evaluation
        .findings
        .iter()
        .map(|finding| &*finding.diagnostic.code)
        .collect()
}

#[test]
fn every_rule_is_broken_by_its_failing_case_and_kept_by_its_passing_one() {
    let (catalog, rules) = shipped();
    let mut wrong = Vec::new();
    for (code, rule) in &rules.rules {
        for (name, case, broken) in [
            ("fails", &rule.fails, true),
            ("passes", &rule.passes, false),
        ] {
            let (loaded, evaluation) = evaluated(case, &catalog, &rules);
            if codes(&evaluation).contains(&code.as_str()) != broken {
                wrong.push(format!("{code} {name}: found {:?}", codes(&evaluation)));
            }
            let unknown = catalog::unknown_models(&loaded, &catalog);
            wrong.extend(
                unknown
                    .iter()
                    .map(|one| format!("{code} {name}: {}", one.message)),
            );
            wrong.extend(
                evaluation
                    .findings
                    .iter()
                    .filter(|f| !rules.rules.contains_key(&*f.diagnostic.code))
                    .map(|f| format!("{code} {name}: {:?}", f.diagnostic)),
            );
            // what is found has its place, its effect, a fix and a source; a job of a case stands
            // nowhere
            for finding in &evaluation.findings {
                let d = &finding.diagnostic;
                let placed = !d.labels.is_empty() || rules.rules[&*d.code].scope == RuleScope::Job;
                let whole = placed
                    && d.effect.is_some()
                    && d.next.iter().all(|next| !next.is_empty())
                    && d.source.is_some();
                if !whole || d.message.contains("{{") || d.message.is_empty() {
                    wrong.push(format!("{code} {name}: {d:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const ERDMA: &str = r#"{ "fabric": { "kind": "erdma", "mtu": 8500 }, "nodes": [
    { "name": "a[1-2]", "os": "alinux-3", "nics": { "model": "eRDMA", "netdev": "eth1" }, "erdma": { "mode": "compat", "route_metric": 250 } },
    { "name": "b[1-3]", "os": "alinux-3", "nics": { "model": "eRDMA", "netdev": "eth1" }, "erdma": { "mode": "compat", "route_metric": 250 } } ] }"#;

fn with_waiver(waiver: &str) -> RulesReport {
    let (catalog, rules) = shipped();
    let mut value: Value = serde_json::from_str(ERDMA).unwrap();
    value["rules"] = serde_json::from_str(&format!("{{ \"waive\": [{waiver}] }}")).unwrap();
    evaluate_rules(&spec(&value), &catalog, &rules, "2026-06-15")
}

fn waiver(code: &str, more: &str) -> String {
    format!("{{ \"code\": \"{code}\", \"reason\": \"r\", \"owner\": \"o\"{more} }}")
}

#[test]
fn identical_hosts_are_one_finding() {
    let (catalog, rules) = shipped();
    let evaluation = evaluate_rules(
        &spec(&serde_json::from_str(ERDMA).unwrap()),
        &catalog,
        &rules,
        "2026-06-15",
    );
    assert_eq!(codes(&evaluation), ["RW2204"]);
    assert_eq!(
        evaluation.findings[0].diagnostic.subject.as_deref(),
        Some("a[1-2],b[1-3]")
    );
}

/// Many hosts that are identical to a rule are one finding, and more sorts than can be
/// paired are reported.
#[test]
fn a_large_spec_is_compared_by_sorts_of_hosts() {
    let (catalog, rules) = shipped();
    let node = |n: usize| {
        let mode = if n == 0 { "default" } else { "compat" };
        serde_json::json!({ "name": format!("n{n}"), "os": "alinux-3", "kernel": format!("5.10.{n}"), "nics": { "model": "eRDMA", "netdev": "eth1" }, "erdma": { "mode": mode } })
    };
    let nodes: Vec<Value> = (0..PAIRED_MAX + 2).map(node).collect();
    let loaded =
        spec(&serde_json::json!({ "fabric": { "kind": "erdma", "mtu": 8500 }, "nodes": nodes }));
    let evaluation = evaluate_rules(&loaded, &catalog, &rules, "2026-06-15");
    let islands = evaluation
        .findings
        .iter()
        .find(|finding| finding.diagnostic.code == "RW2205")
        .unwrap();
    assert_eq!(
        islands.diagnostic.subject,
        Some(format!("n[0-{}]", PAIRED_MAX + 1))
    );
    assert!(
        !codes(&evaluation).contains(&"RW0225"),
        "{:?}",
        codes(&evaluation)
    );
    // a rule that looks at what differs everywhere cannot be asked of each two
    let text = "family: site\n\
                summary: ours\n\
                rules:\n\
                - { code: ZZ0002, title: t, severity: error, each: pair, when: 'host.kernel == \
                \"x\" and other.kernel == \"y\"', at: host.kernel, says: s, means: m, fix: n, \
                source: s, passes: {}, fails: {} }\n";
    let own = rules::load_rules("own", [("site.yaml".to_owned(), text.to_owned())])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    assert!(codes(&evaluate_rules(&loaded, &catalog, &own, "2026-06-15")).contains(&"RW0225"));
}

#[test]
fn a_waiver_covers_what_it_names_until_its_last_day() {
    let told = |evaluation: &RulesReport| {
        let waived: Vec<_> = evaluation
            .waived
            .iter()
            .map(|one| format!("{} {:?}", one.code, one.nodes))
            .collect();
        let found: Vec<_> = evaluation
            .findings
            .iter()
            .map(|f| format!("{} {:?}", f.diagnostic.code, f.diagnostic.subject))
            .collect();
        let notes: Vec<_> = evaluation
            .notes
            .iter()
            .map(|note| note.message.clone())
            .collect();
        format!("waived {waived:?} found {found:?} notes {notes:?}")
    };
    let cases = [
        (
            waiver("RW2204", ", \"until\": \"2026-06-15\""),
            r#"waived ["RW2204 Some(\"a[1-2],b[1-3]\")"] found [] notes []"#,
        ),
        (
            waiver(
                "RW2204",
                ", \"until\": \"2026-12-31\", \"nodes\": \"b[1-2]\"",
            ),
            r#"waived ["RW2204 Some(\"b[1-2]\")"] found ["RW2204 Some(\"a[1-2],b3\")"] notes []"#,
        ),
        (
            waiver(
                "RW2204",
                ", \"until\": \"2026-06-14\", \"nodes\": \"b[1-2]\"",
            ),
            r#"waived [] found ["RW2204 Some(\"a[1-2],b[1-3]\")"] notes ["the waiver of RW2204 ended on 2026-06-14"]"#,
        ),
        (
            waiver("RW2201", ", \"until\": \"2026-12-31\""),
            r#"waived [] found ["RW2204 Some(\"a[1-2],b[1-3]\")"] notes ["the waiver of RW2201 waives nothing"]"#,
        ),
        (
            waiver("RW2999", ", \"until\": \"2026-12-31\""),
            r#"waived [] found ["RW2204 Some(\"a[1-2],b[1-3]\")"] notes ["there is no rule `RW2999` to waive"]"#,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(told(&with_waiver(&text)), expected, "{text}");
    }
}

#[test]
fn rules_of_ones_own_are_checked_like_shipped_ones() {
    let rule = |more: &str| {
        format!(
            "family: site\n\
             summary: ours\n\
             rules:\n\
             - {{ code: ZZ0001, title: t, severity: error, when: 'fabric.mtu is defined and \
             fabric.mtu < 4200', at: fabric.mtu, says: 'mtu {{{{ fabric.mtu }}}}', means: m, fix: \
             n, source: s, passes: {{}}, fails: {{}}{more} }}\n"
        )
    };
    let load = |text: String| {
        rules::load_rules("own", [("site.yaml".to_owned(), text)])
            .map(|set| set.rules.contains_key("ZZ0001"))
            .map_err(|problems| {
                problems
                    .diagnostics
                    .iter()
                    .map(|d| format!("{} {}", d.code, d.message))
                    .collect::<Vec<_>>()
            })
    };
    assert_eq!(load(rule("")), Ok(true));
    for (from, to, said) in [
        ("fabric.mtu <", "fabric.mtuu <", "RW0203"),
        (
            "at: fabric.mtu",
            "at: fabric.mtuu",
            "RW0224 the spec has no `fabric.mtuu`",
        ),
        ("ZZ0001", "ZZ1", "RW0224 `ZZ1` is no code of a rule"),
        (
            "ZZ0001",
            "RW9999",
            "RW0224 there is no shipped rule RW9999 to stand over",
        ),
        (
            "means: m",
            "means: ''",
            "RW0224 the rule ZZ0001 says nothing for `means`",
        ),
        (
            "severity: error",
            "severity: fatal",
            "RW0108 `fatal` is no value for `severity`",
        ),
        ("says: 'mtu", "says: 'mtu {{ host.os }}", "RW0203"),
    ] {
        let problems = load(rule("").replace(from, to)).unwrap_err();
        assert!(
            problems.iter().any(|problem| problem.starts_with(said)),
            "{from} -> {to}: {problems:?}"
        );
    }
    // a shipped rule is stood over with both places
    let over = rules::load_rules(
        "own",
        [("site.yaml".to_owned(), rule("").replace("ZZ0001", "RW2201"))],
    )
    .map_err(|problems| problems.diagnostics)
    .unwrap();
    assert!(
        over.rules["RW2201"].own && over.overrides[0].labels.len() == 2,
        "{:?}",
        over.overrides
    );
}

/// An allowance for each case would be one for each 300 bytes of rules.
#[test]
fn the_cases_of_all_own_rules_share_an_allowance() {
    let catalog = catalog::load_catalog("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let rule = |n: usize| {
        format!(
            "  - code: XA{n:04}\n    title: t\n    severity: warning\n    when: fabric.mtu == 1500\n    at: fabric.mtu\n    says: 'a {{{{ range(end=20000) | sort | length }}}}'\n    means: m\n    fix: 'b {{{{ range(end=20000) | sort | length }}}}'\n    source: s\n    passes: {{ fabric: {{ mtu: 9000 }} }}\n    fails: {{ fabric: {{ mtu: 1500 }} }}\n"
        )
    };
    let text = format!(
        "family: a\nsummary: b\nrules:\n{}",
        (0..16).map(rule).collect::<String>()
    );
    let rules = rules::load_rules("", [("a.yaml".to_owned(), text)])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let untrue = || {
        rules::check_rule_cases(&rules, &catalog)
            .into_iter()
            .map(|problem| problem.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(untrue(), Vec::<String>::new());
    let _shared = engine::share_allowance(0);
    assert!(engine::take_shared((16 << 20) - 200_000));
    let said = untrue();
    assert!(
        said.len() == 1 && said[0].contains("all of them may take together"),
        "{said:?}"
    );
}
