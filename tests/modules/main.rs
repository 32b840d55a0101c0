//! Data cases of modules: `modules/<name>/tests/<case>/`. A new case needs no code.
//!
//! A case holds `spec.yaml`, further files that the spec names (a signing key), and `facts.json`,
//! the answers of its hosts as in an observation file. What the module under test must make of them
//! lies beside it: `desired.txt` (its resources and checks), `diff.txt` (what its kinds make of
//! the facts) and `plan.txt` (the plan of it, with its reasons), or `errors.txt`. Where the case
//! also holds `applied.json`, what the same hosts said after that plan was applied, the next
//! plan must be empty. With RAILWRIGHT_UPDATE=1 in the environment the expectations are written
//! anew; read the difference before you commit it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod inventories;
mod lint;
mod planned;
mod rdma_names;
mod say;
mod together;

use railwright_base::Target;
use railwright_knowledge::module::{self, DesiredState, Modules};
use railwright_knowledge::solve::SolverAnswers;
use railwright_knowledge::spec::{self, SourceFile};
use railwright_resource::observation::{FORMAT_VERSION, TargetObservation};
use railwright_resource::{Observation, ResourceDiff, kind_named, program};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The shipped catalogue.
fn catalog() -> railwright_knowledge::catalog::Catalog {
    railwright_knowledge::catalog::load_catalog("", []).unwrap_or_else(|problems| {
        panic!("{}", say::all(&problems.diagnostics, &[&problems.sources]))
    })
}

fn modules() -> Modules {
    module::load_modules(module::collect_shipped_modules()).unwrap_or_else(|problems| {
        panic!("{}", say::all(&problems.diagnostics, &[&problems.sources]))
    })
}

#[test]
fn every_case_gives_what_it_must() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("modules");
    let modules = modules();
    let mut wrong = Vec::new();
    for folder in folders(&root).iter().filter(|folder| {
        !["catalog", "jobs", "rules", "translations"].contains(&name(folder).as_str())
    }) {
        let cases = folders(&folder.join("tests"));
        if cases.len() < 2 {
            wrong.push(format!("{}: a module has at least two cases", name(folder)));
        }
        for case in cases {
            for (file, made) in outcome(&modules, &name(folder), &case, &mut wrong) {
                wrong.extend(compare(&case.join(file), made));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// A file of the case and what it must hold; `None` is no such file.
fn outcome(
    modules: &Modules,
    module: &str,
    case: &Path,
    wrong: &mut Vec<String>,
) -> Vec<(&'static str, Option<String>)> {
    let text = fs::read_to_string(case.join("spec.yaml"))
        .unwrap_or_else(|error| panic!("{}/spec.yaml: {error}", case.display()));
    let loaded = spec::load_spec(vec![SourceFile {
        name: "spec.yaml".into(),
        text,
    }]);
    let loaded = loaded.unwrap_or_else(|problems| {
        panic!(
            "{}: {}",
            case.display(),
            say::all(&problems.diagnostics, &[&problems.sources])
        )
    });
    let keys = module::context::list_referenced_files(&loaded)
        .into_iter()
        .map(|(path, _)| path);
    let texts: BTreeMap<String, String> = keys
        .filter_map(|path| Some((path.clone(), fs::read_to_string(case.join(path)).ok()?)))
        .collect();
    match module::compute_desired_state(
        &loaded,
        &catalog(),
        &SolverAnswers::new(&loaded, &catalog()),
        modules,
        &texts,
    ) {
        Err(errors) => vec![
            ("desired.txt", None),
            (
                "errors.txt",
                Some(say::all(&errors, &[&loaded.sources, &modules.sources])),
            ),
        ],
        Ok(desired) => {
            let read = |file: &str| {
                fs::read_to_string(case.join(file))
                    .ok()
                    .map(|text| serde_json::from_str(&text).unwrap())
            };
            let facts: Option<Observation> = read("facts.json");
            let build_diff = facts
                .as_ref()
                .map(|facts| build_diff(&desired, module, facts));
            let plan = facts
                .as_ref()
                .map(|facts| planned::plan(&loaded, &desired, module, facts));
            if let (Some(facts), Some(applied)) = (&facts, &read("applied.json")) {
                wrong.extend(
                    planned::second(&loaded, &desired, module, facts, applied)
                        .map(|what| format!("{}: {what}", case.display())),
                );
            }
            let screen = plan.as_ref().map(planned::screen);
            vec![
                ("errors.txt", None),
                ("desired.txt", Some(resources(&desired, module))),
                ("diff.txt", build_diff),
                ("plan.txt", screen),
            ]
        }
    }
}

fn is_of(module: &str, name: &str) -> bool {
    name.split('/').next() == Some(module)
}

/// Facts of a lab machine for the hosts of a case: `RAILWRIGHT_RECORD=memlock/soft-roce
/// RAILWRIGHT_RECORD_ON="target/debug/railwright lab ssh node1 -- sh -s" cargo test --test
/// modules`; several cases with commas between. Without RAILWRIGHT_RECORD_ON it is this machine.
/// Look through the file before you commit it: it says what the machine is.
#[test]
fn facts_are_recorded_on_demand() {
    let Ok(desired) = std::env::var("RAILWRIGHT_RECORD") else {
        return;
    };
    let on = std::env::var("RAILWRIGHT_RECORD_ON").unwrap_or_else(|_| "sh -s".to_owned());
    let words: Vec<&str> = on.split_whitespace().collect();
    desired.split(',').for_each(|case| record(case, &words));
}

fn record(case: &str, words: &[&str]) {
    let (module, case) = case
        .split_once('/')
        .expect("RAILWRIGHT_RECORD is MODULE/CASE");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("modules")
        .join(module)
        .join("tests")
        .join(case);
    let text = fs::read_to_string(folder.join("spec.yaml")).unwrap();
    let loaded = spec::load_spec(vec![SourceFile {
        name: "spec.yaml".into(),
        text,
    }])
    .unwrap();
    let desired = module::compute_desired_state(
        &loaded,
        &catalog(),
        &SolverAnswers::new(&loaded, &catalog()),
        &modules(),
        &BTreeMap::new(),
    )
    .unwrap();
    let mut targets = BTreeMap::new();
    for host in &loaded.hosts {
        let of_module = desired.resources.iter().filter(|resource| {
            *resource.address.target.name == *host.name && is_of(module, &resource.module)
        });
        let mut reads: Vec<_> = of_module
            .flat_map(|resource| kind_named(&resource.kind).unwrap().reads(resource))
            .collect();
        reads.sort();
        reads.dedup();
        let script = program::render_read_program(&reads, "", "c0ffee");
        let mut shell = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        shell
            .stdin
            .take()
            .unwrap()
            .write_all(script.as_bytes())
            .unwrap();
        let answers = program::parse_program_answers(
            &reads,
            "c0ffee",
            &shell.wait_with_output().unwrap().stdout,
        );
        targets.insert(
            Target::host(&host.name),
            TargetObservation {
                problem: None,
                answers,
            },
        );
    }
    let (format_version, recorded_at) =
        (FORMAT_VERSION.to_owned(), "2026-01-01T00:00:00Z".to_owned());
    let observation = Observation {
        format_version,
        recorded_at,
        texts: BTreeMap::new(),
        targets,
    };
    fs::write(
        folder.join("facts.json"),
        serde_json::to_string_pretty(&observation).unwrap() + "\n",
    )
    .unwrap();
}

/// The resources and checks of one module, readable: what comes first, where the spec says so, why.
fn resources(desired: &DesiredState, module: &str) -> String {
    let mut out = String::new();
    for resource in &desired.resources {
        let why = &desired.why[&resource.address];
        if !why.iter().any(|why| is_of(module, &why.module)) {
            continue;
        }
        out.push_str(&format!("{}\n  {}\n", resource.address, resource.body));
        out.extend(
            resource
                .after
                .iter()
                .map(|before| format!("  after {}\n", before.within_target())),
        );
        out.extend(
            resource
                .places
                .iter()
                .map(|place| format!("  from {place} {}\n", place.path)),
        );
        for why in why {
            let facts: Vec<String> = why
                .facts
                .iter()
                .map(|(path, value)| format!("{path} = {value}"))
                .collect();
            out.push_str(&format!(
                "  by {} because {} ({})\n",
                why.module,
                why.conditions.join("; "),
                facts.join(", ")
            ));
        }
    }
    for check in desired
        .checks
        .iter()
        .filter(|check| is_of(module, &check.name))
    {
        let expects = check
            .expect
            .as_ref()
            .map_or("exit 0".to_owned(), |text| format!("{text:?}"));
        out.push_str(&format!(
            "check {} on {}, {} s\n  {}\n  expects {expects}\n",
            check.name, check.host, check.limit_s, check.run
        ));
    }
    if out.is_empty() {
        "nothing\n".to_owned()
    } else {
        out
    }
}

/// What the kinds make of the facts, one line for each attribute and plane that is not as desired.
fn build_diff(desired: &DesiredState, module: &str, observation: &Observation) -> String {
    let mut out = String::new();
    for resource in desired.resources.iter().filter(|resource| {
        desired.why[&resource.address]
            .iter()
            .any(|why| is_of(module, &why.module))
    }) {
        let kind = kind_named(&resource.kind).unwrap();
        let answers = observation
            .targets
            .get(&resource.address.target)
            .map(|target| target.answers.clone())
            .unwrap_or_default();
        let diff = kind.diff(resource, &answers);
        out.push_str(&format!("{}{}\n", resource.address, summary(&diff)));
        for (name, attribute) in &diff.attributes {
            for (plane, desired, actual) in attribute.differences() {
                let text = |reading| serde_json::to_string(reading).unwrap();
                let line = format!(
                    "  {name} ({}): desired {}, actual {}",
                    plane.word(),
                    text(desired),
                    text(actual)
                );
                out.push_str(&railwright_base::text::one_line(&line, 180).replacen(
                    name,
                    &format!("  {name}"),
                    1,
                ));
                out.push('\n');
            }
        }
        for action in &diff.actions {
            out.push_str(&format!("  -> {}\n", action.word()));
        }
    }
    out
}

fn summary(diff: &ResourceDiff) -> String {
    let mut words = Vec::new();
    words.extend(
        diff.refusal
            .as_ref()
            .map(|reason| format!("refused: {reason}")),
    );
    words.extend(
        diff.known_after
            .as_ref()
            .map(|step| format!("known after {step}")),
    );
    words.extend(diff.needs_reboot.then(|| "needs a reboot".to_owned()));
    words.extend(diff.is_met().then(|| "in sync".to_owned()));
    if words.is_empty() {
        String::new()
    } else {
        format!(": {}", words.join(", "))
    }
}

fn compare(file: &Path, made: Option<String>) -> Option<String> {
    let there = fs::read_to_string(file).ok();
    if made == there {
        return None;
    }
    if std::env::var_os("RAILWRIGHT_UPDATE").is_some() {
        match &made {
            Some(text) => fs::write(file, text).unwrap(),
            None => fs::remove_file(file).unwrap(),
        }
        return None;
    }
    let (there, made) = (there.unwrap_or_default(), made.unwrap_or_default());
    let difference = similar::TextDiff::from_lines(&there, &made)
        .unified_diff()
        .header("expected", "made")
        .to_string();
    Some(format!("{}\n{difference}", file.display()))
}
