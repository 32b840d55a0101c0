//! Screens as they are.

use super::*;
use railwright_knowledge::spec::{SourceFile, SourceText};
use std::sync::Arc;

fn sources(text: &str) -> Sources {
    let mut sources = Sources::default();
    sources.add(Arc::new(SourceText::new(SourceFile {
        name: "a.yaml".into(),
        text: text.into(),
    })));
    sources
}

fn screen(diagnostics: &[Diagnostic], text_of_file: &str) -> String {
    render_diagnostics(diagnostics, &sources(text_of_file), ScreenStyle::PLAIN)
}

#[test]
fn everything_that_a_finding_can_say() {
    let finding = Diagnostic::error("RW0102", "the key `mtu` comes twice")
        .at("a.yaml", 22..25, "again here")
        .at("a.yaml", 10..13, "first here")
        .at("b.yaml", 3..4, "in another file")
        .on("host/gpu-001, step link")
        .effect(
            "readers of YAML disagree on which of the two counts, and one half of the fabric may \
             end up with another MTU than the other",
        )
        .state("nothing was changed")
        .next("keep one")
        .next("railwright validate inventories/lab");
    insta::assert_snapshot!(screen(&[finding], "fabric:\n  mtu: 9000\n  mtu: 1500\n"), @r#"
    error RW0102: the key `mtu` comes twice
       ╭─[a.yaml:3:3]
     1 │ fabric:
     2 │   mtu: 9000
       ·   ─┬─
       ·    ╰── first here
     3 │   mtu: 1500
       ·   ─┬─
       ·    ╰── again here
       ╰────
      also:   b.yaml: in another file
      on:     host/gpu-001, step link
      effect: readers of YAML disagree on which of the two counts, and one half of the fabric may end up
              with another MTU than the other
      state:  nothing was changed
      next:   keep one
      next:   railwright validate inventories/lab
    "#);
}

#[test]
fn what_a_message_quotes_begins_no_line() {
    let finding = Diagnostic::error(
        "RW0102",
        "`x\n\n##vso[task.setvariable variable=X]y\n::add-mask::e` is no name",
    );
    let screen = screen(&[finding], "");
    assert!(
        screen
            .lines()
            .skip(1)
            .all(|line| line.is_empty() || line.starts_with("   ")),
        "{screen}"
    );
}

#[test]
fn far_labels_and_long_lines_are_bounded() {
    let far = format!("a: 1\n{}a: 2\n", "# filler\n".repeat(40));
    let finding = Diagnostic::error("RW0102", "the key `a` comes twice")
        .at("a.yaml", far.len() - 5..far.len() - 4, "again here")
        .at("a.yaml", 0..1, "first here");
    insta::assert_snapshot!(screen(&[finding], &far), @r#"
    error RW0102: the key `a` comes twice
        ╭─[a.yaml:42:1]
     41 │ # filler
     42 │ a: 2
        · ┬
        · ╰── again here
        ╰────
      also:   a.yaml:1:1: first here
    "#);
    let long = format!("a: [{}]\n", "1234567, ".repeat(100_000));
    let finding = Diagnostic::warning("RW0106", "wants text").at(
        "a.yaml",
        450_004..450_011,
        "found a number",
    );
    insta::assert_snapshot!(screen(&[finding], &long), @r#"
    warning RW0106: wants text
       ╭─[a.yaml:1:450005]
     1 │ 67, 1234567, 1234567, 1234567, 1234567, 1234567, 1234567, 1234567, 1234567, 1234
       ·                                         ───┬───
       ·                                            ╰── found a number
       ╰────
    "#);
}

#[test]
fn nothing_that_a_terminal_obeys_is_shown() {
    let finding = Diagnostic::error("RW0101", "bad \u{1b}[31m")
        .at("a.yaml", 3..4, "here \u{1b}")
        .next("x\u{202e}y");
    let shown = screen(&[finding], "\u{e9}\u{1b}[31m\u{202e}\u{9b}\r\nb\r\n");
    assert!(
        shown.chars().all(|c| c == '\n' || !c.is_control()) && !shown.contains('\u{202e}'),
        "{shown:?}"
    );
    assert!(shown.contains("a.yaml:1:3"), "{shown}");
}

#[test]
fn a_quoted_line_gives_no_orders_to_a_pipeline_and_keeps_its_carets() {
    let line = "name##vso[task.prependpath]/tmp/evil: 1 # ##[add-mask]e";
    let shown = screen(
        &[Diagnostic::error("RW0105", "unknown key").at("a.yaml", 37..38, "here")],
        line,
    );
    assert!(
        shown.contains("name#?vso[task.prependpath]/tmp/evil: 1 # #?[add-mask]e"),
        "{shown}"
    );
    assert!(shown.contains("a.yaml:1:38"), "{shown}");
}

#[test]
fn identical_findings_are_one_with_their_hosts_folded() {
    let down = |host: &str| {
        Diagnostic::error("RW0401", format!("{host} is not reachable"))
            .on(format!("host/{host}"))
            .next(format!("ssh {host} true"))
    };
    let other = Diagnostic::error("RW0401", "gpu-9 is not reachable at all").on("host/gpu-9");
    let unrelated = Diagnostic::warning("RW0105", "no host");
    let diagnostics = [
        down("gpu-1"),
        unrelated.clone(),
        down("gpu-10"),
        other,
        down("gpu-2"),
        unrelated,
    ];
    insta::assert_snapshot!(screen(&diagnostics, ""), @r#"
    error RW0401: gpu-[1-2,10] is not reachable
      on:     host/gpu-[1-2,10]
      next:   ssh gpu-[1-2,10] true

    warning RW0105: no host

    error RW0401: gpu-9 is not reachable at all
      on:     host/gpu-9

    warning RW0105: no host
    "#);
}

#[test]
fn a_screen_holds_twenty() {
    let many: Vec<Diagnostic> = (0..45)
        .map(|n| Diagnostic::error("RW0105", format!("number {n}")))
        .collect();
    let shown = screen(&many, "");
    assert!(
        shown.contains("number 19\n")
            && !shown.contains("number 20\n")
            && shown.ends_with("and 25 more\n"),
        "{shown}"
    );
}

#[test]
fn colours_only_where_asked_for() {
    let finding = [Diagnostic::error("RW0105", "unknown key")
        .at("a.yaml", 0..1, "here")
        .next("remove it")];
    let file = sources("a: 1\n");
    assert!(
        render_diagnostics(
            &finding,
            &file,
            ScreenStyle {
                color: true,
                ..ScreenStyle::PLAIN
            }
        )
        .contains("\u{1b}[")
    );
    assert!(!render_diagnostics(&finding, &file, ScreenStyle::PLAIN).contains('\u{1b}'));
}

#[test]
fn json_has_lines_and_columns() {
    let finding = Diagnostic::error("RW0112", "out of range")
        .at("a.yaml", 15..20, "68 to 9978")
        .on("host/n1")
        .next("write 9000");
    insta::assert_snapshot!(serde_json::to_value(build_diagnostic_documents(&[finding], &sources("fabric:\n  mtu: 90000\n"))).map(|value| format!("{value:#}")).unwrap(), @r#"
    [
      {
        "code": "RW0112",
        "column": 8,
        "effect": null,
        "file": "a.yaml",
        "labels": [
          {
            "column": 8,
            "end_column": 13,
            "end_line": 2,
            "file": "a.yaml",
            "line": 2,
            "text": "68 to 9978"
          }
        ],
        "line": 2,
        "message": "out of range",
        "next": [
          "write 9000"
        ],
        "severity": "error",
        "source": null,
        "state": null,
        "subject": "host/n1"
      }
    ]
    "#);
}

proptest::proptest! {
    #[test]
    fn every_error_of_every_text_can_be_shown(text in "(cluster|nodes|- \
                                                       name|fabric|[{}\\[\\]:,*&~'\"|>] ?|\n {0,4}|\r\n\
                                                       |\u{1b}|\u{e9}|[0-9a-z ]){0,40}") {
        if let Err(problems) = railwright_knowledge::spec::load_spec(vec![SourceFile { name: "a.yaml".into(), text }]) {
            let shown = super::render_diagnostics(&problems.diagnostics, &problems.sources, ScreenStyle::PLAIN);
            proptest::prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
        }
    }
}
