//! What modules make has an end: resources, their order, and the keys that they name. A test uses
//! most of an allowance up before it begins.

use super::*;
use crate::catalog;
use crate::solve::SolverAnswers;
use crate::spec::{self, SourceFile};
use crate::template::engine;

/// The least allowance, of which so many bytes are left.
fn left(bytes: usize) -> engine::SharedAllowance {
    let shared = engine::share_allowance(0);
    assert!(engine::take_kept_bytes((64 << 20) - bytes));
    shared
}

fn resources(spec: &str, module: &str, texts: &Texts) -> Result<DesiredState, String> {
    let text = format!("cluster: c\nnodes: [{{ name: n1, os: debian-12 }}]\n{spec}");
    let loaded = spec::load_spec(vec![SourceFile {
        name: "spec.yaml".into(),
        text,
    }])
    .map_err(|problems| problems.diagnostics)
    .unwrap();
    let files = ModuleFiles::below(
        "modules",
        [(
            "m/module.yaml".to_owned(),
            format!("module: m\nsummary: x\n{module}"),
        )],
    );
    made(&loaded, files, texts)
}

fn made(
    loaded: &spec::LoadedSpec,
    files: Vec<ModuleFiles>,
    texts: &Texts,
) -> Result<DesiredState, String> {
    let catalog = catalog::load_catalog("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let modules = load_modules(files)
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let said = |error: &railwright_base::Diagnostic| {
        let labels: Vec<&str> = error
            .labels
            .iter()
            .map(|label| label.text.as_str())
            .collect();
        format!("{} {} ({})", error.code, error.message, labels.join(", "))
    };
    compute_desired_state(
        loaded,
        &catalog,
        &SolverAnswers::new(loaded, &catalog),
        &modules,
        texts,
    )
    .map_err(|errors| errors.iter().map(said).collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_order_of_resources_is_not_squared() {
    let module = |list: &str, after: &str| {
        format!(
            "resources:\n\
             - {{ id: a, for: i in range(end=40), package: {{ name: \"a{{{{ i }}}}\" }} }}\n\
             - {{ id: b, for: \"i in {list}\", after: {after}, package: {{ name: \"b{{{{ i }}}}\" \
             }} }}\n"
        )
    };
    let made = |text: &str| resources("", text, &Texts::new());
    let edges = |text: &str| {
        made(text)
            .unwrap()
            .resources
            .iter()
            .map(|resource| resource.after.len())
            .sum::<usize>()
    };
    assert_eq!(
        edges(&module("range(start=0, end=40)", "[a]")),
        1600,
        "any two lists"
    );
    let shared = left(120_000);
    assert_eq!(
        edges(&module("range(end=40)", "[a, a]")),
        40,
        "turn by turn"
    );
    drop(shared);
    let _shared = left(120_000);
    let said = made(&module("range(start=0, end=40)", "[a]"))
        .map(|_| ())
        .unwrap_err();
    let desired = "RW0217 modules make too much (with this, more comes after each other than in all \
                  modules may together)";
    assert_eq!(said, desired);
}

/// Without the words that were looked at, each level would double them.
#[test]
fn resources_that_are_not_declared_do_not_double_the_order() {
    let level = |n: usize| {
        format!(
            "- {{ id: r{n}, when: 1 > 2, after: [r{0}, r{0}], package: {{ name: r{n} }} }}\n",
            n - 1
        )
    };
    let levels: String = (1..60).map(level).collect();
    let text = format!(
        "resources:\n\
         - {{ id: r0, package: {{ name: a }} }}\n\
         {levels}- {{ id: last, after: [r59, r59], package: {{ name: b }} }}\n"
    );
    let desired = resources("", &text, &Texts::new()).unwrap();
    assert_eq!(
        desired
            .resources
            .iter()
            .map(|resource| resource.after.len())
            .collect::<Vec<_>>(),
        [0, 1]
    );
}

#[test]
fn what_modules_make_is_charged_together() {
    let file = |content: &str| {
        format!(
            "resources:\n\
             - {{ id: a, for: i in range(end=20), file: {{ path: \"/etc/{{{{ i }}}}\", mode: \
             '0644', content: \"{content}\" }} }}\n"
        )
    };
    let (constant, made) = (
        "x".repeat(20_000),
        "{{ 'x' | indent(width=1000, first=true) }}".repeat(20),
    );
    let check = format!("verify:\n- {{ id: a, for: i in range(end=20), run: \"{constant}\" }}\n");
    for text in [file(&constant), file(&made), check] {
        assert!(resources("", &text, &Texts::new()).is_ok());
        let _shared = left(200_000);
        let said = resources("", &text, &Texts::new()).map(|_| ()).unwrap_err();
        let desired = "RW0217 a template makes too much (with this, the modules make more than all \
                      of them may make together)";
        assert_eq!(said, desired);
    }
}

#[test]
fn the_keys_of_all_repositories_are_bounded_together() {
    let repository = |n: usize| {
        format!("- {{ name: r{n}, url: \"https://x.example/\", suite: ./, key: k.asc }}\n")
    };
    let spec = |n: usize| {
        format!(
            "repositories:\n{}",
            (0..n).map(repository).collect::<String>()
        )
    };
    let texts = Texts::from([("k.asc".to_owned(), "k".repeat(1 << 20))]);
    assert!(resources(&spec(4), "", &texts).is_ok());
    let said = resources(&spec(9), "", &texts).map(|_| ()).unwrap_err();
    assert_eq!(
        said,
        "RW0104 the signing keys have more than 4 MiB together (the limit is passed here)"
    );
}

#[test]
fn of_unknown_modules_so_many_are_told() {
    let names: String = (0..300)
        .map(|n| format!("nosuch{n}: {{ enabled: true }}, "))
        .collect();
    let said = resources(&format!("modules: {{ {names} }}\n"), "", &Texts::new())
        .map(|_| ())
        .unwrap_err();
    assert_eq!(said.matches("RW0212").count(), 100);
}

/// A host may take 1 MiB of what is kept.
#[test]
fn a_real_host_takes_a_small_part_of_the_allowance() {
    let text = std::fs::read_to_string("../../inventories/roce-h100-rail/cluster.yaml").unwrap();
    let loaded = spec::load_spec(vec![SourceFile {
        name: "cluster.yaml".into(),
        text,
    }])
    .map_err(|problems| problems.diagnostics)
    .unwrap();
    let key = include_str!("../../../modules/package-repositories/tests/no-os/key.asc");
    let texts: Texts = context::list_referenced_files(&loaded)
        .into_iter()
        .map(|(named, _)| (named, key.to_owned()))
        .collect();
    let _shared = left(64 << 20);
    made(&loaded, collect_shipped_modules(), &texts).unwrap_or_else(|said| panic!("{said}"));
    let left = std::iter::repeat_n(10_000, 10_000)
        .take_while(|bytes| engine::take_kept_bytes(*bytes))
        .sum::<usize>();
    let bytes_a_host = ((64 << 20) - left) / loaded.hosts.len();
    assert!((10_000..250_000).contains(&bytes_a_host), "{bytes_a_host}");
}
