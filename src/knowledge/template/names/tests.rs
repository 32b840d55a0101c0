//! Which names are found, and which are errors.

use super::*;

fn shape() -> ContextShape {
    let rail = ContextShape::map([
        ("netdev", ContextShape::Scalar),
        ("address", ContextShape::Scalar),
    ]);
    ContextShape::map([
        (
            "fabric",
            ContextShape::map([
                (
                    "kind",
                    ContextShape::Choice(vec!["rocev2".into(), "none".into()]),
                ),
                ("mtu", ContextShape::Scalar),
            ]),
        ),
        (
            "host",
            ContextShape::map([
                ("rails", ContextShape::List(Box::new(rail))),
                ("labels", ContextShape::Open(Box::new(ContextShape::Scalar))),
            ]),
        ),
    ])
}

fn lint(text: &str) -> String {
    let (uses, problems) = check_template_names(text, &shape(), &[]);
    let uses = uses
        .iter()
        .map(|one| one.path.join("."))
        .collect::<Vec<_>>()
        .join(" ");
    let problems = problems.iter().map(|p| {
        format!(
            " ! {} {:?}: {} ({})",
            p.code,
            &text[p.span.clone()],
            p.message,
            p.fix.as_deref().unwrap_or("-")
        )
    });
    format!("{uses}{}", problems.collect::<String>())
}

#[test]
fn names_are_resolved_through_loops_and_sets() {
    for (text, found) in [
        ("{{ fabric.mtu }}", "fabric.mtu"),
        (
            "{% for r in host.rails %}{{ loop.index }} {{ r.netdev }}{% endfor %}",
            "host.rails host.rails.*.netdev",
        ),
        (
            "{% set f = fabric %}{{ f.mtu | default(value=1) }}",
            "fabric fabric.mtu",
        ),
        ("{{ host.rails[0].netdev }}", "host.rails.*.netdev"),
        (
            "{{ host.labels['rack'] }}{{ host.labels.leaf }}",
            "host.labels.leaf host.labels.rack",
        ),
        (
            "{{ 1 if fabric.kind == 'rocev2' and fabric?.mtu is defined else null }}",
            "fabric.kind fabric.mtu",
        ),
        ("{% raw %}{{ anything }}{% endraw %}{# {{ too }} #}", ""),
        ("{% for i in range(end=3) %}{{ i }}{% endfor %}", ""),
        ("{{ {'a': fabric.mtu} | json }}", "fabric.mtu"),
    ] {
        assert_eq!(lint(text), found, "{text}");
    }
}

#[test]
fn what_would_silently_be_false_is_an_error() {
    let text: Vec<String> = [
        "{% if fabric.kid %}x{% endif %}",
        "{% if fabrik %}x{% endif %}",
        "{{ fabric.mtu.bytes }}",
        "{% if fabric.kind == 'rocev3' %}x{% endif %}",
        "{% if fabric.kind not in ['none', 'ib'] %}x{% endif %}",
        "{% for r in host.rails %}{{ r.netdevice }}{% endfor %}{{ r }}",
        "{{ fabric.mtu | safe }}{{ fabric.mtu | jsn }}",
        "{% if fabric.mtu is defnd %}{{ now() }}{% endif %}",
        "{% include 'x' %}",
        "{{ [x for x in host.rails] }}",
    ]
    .map(lint)
    .to_vec();
    insta::assert_snapshot!(text.join("\n"), @r#"
     ! RW0203 "kid": `fabric` has no `kid` (did you mean `kind`?)
     ! RW0203 "fabrik": there is no `fabrik` here (did you mean `fabric`?)
     ! RW0203 "bytes": `fabric.mtu` is a plain value: nothing is below it (-)
    fabric.kind ! RW0203 "'rocev3'": this is never `rocev3` (did you mean `rocev2`?)
    fabric.kind ! RW0203 "'ib'": this is never `ib` (it is one of: rocev2, none)
    host.rails ! RW0203 "netdevice": `r` has no `netdevice` (did you mean `netdev`?) ! RW0203 "r": there is no `r` here (there are: fabric, host)
    fabric.mtu ! RW0205 "safe": `safe` would let a value reach a shell unquoted, so modules cannot use it (-) ! RW0205 "jsn": there is no filter `jsn` in the language of modules (did you mean `json`?)
    fabric.mtu ! RW0205 "defnd": there is no test `defnd` in the language of modules (-) ! RW0205 "now": there is no function `now` in the language of modules (-)
     ! RW0205 "{% include 'x' %}": `include` is not in the language of modules (output, if, for, set and raw are)
     ! RW0203 "x": there is no `x` here (there are: fabric, host) ! RW0205 "for": a list comprehension is not in the language of modules (use {% for %})
    "#);
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(\\{\\{|\\}\\}|\\{%|%\\}|if|for|in|is|not|set|x|fabric|kind|\\.|\\[|\\]|\\(|\\||'a'|=| \
                               ){0,24}") {
        let _ = check_template_names(&text, &shape(), &[]);
    }
}
