//! The shipped entries, tried by their combinations, by specs at random and by what they must not
//! say.

use super::book::{Book, ReleaseConstraint};
use super::cases::explain_failed_combination;
use super::conflict::{SolverQuery, enumerate_subsets};
use super::search::SolverOutcome;
use super::{
    Hosts, SolverAnswers, SolverQuestion, collect_conflict_findings, solve_question,
    solve_with_waivers,
};
use crate::catalog::{self, Catalog};
use crate::spec::{self, LoadedSpec};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::OnceLock;

fn shipped() -> &'static Catalog {
    static SHIPPED: OnceLock<Catalog> = OnceLock::new();
    SHIPPED.get_or_init(|| {
        catalog::load_catalog("", [])
            .map_err(|problems| format!("{:?}", problems.diagnostics))
            .unwrap()
    })
}

fn with(text: &str) -> Catalog {
    catalog::load_catalog("own", [("x.yaml".to_owned(), text.to_owned())])
        .map_err(|problems| format!("{:?}", problems.diagnostics))
        .unwrap()
}

fn node(node: Value) -> LoadedSpec {
    spec::load_case_spec(&json!({ "fabric": { "kind": "rocev2" }, "nodes": [node] })).unwrap()
}

/// `requirement | requirement: fact; fact`, a line a conflict, then what is chosen.
fn said(loaded: &LoadedSpec, catalog: &Catalog) -> String {
    let answers = SolverAnswers::new(loaded, catalog);
    let (question, answer) = (&answers.questions[0], answers.group(0).unwrap());
    let mut lines: Vec<String> = Vec::new();
    for conflict in &answer.conflicts {
        let resources: Vec<&str> = conflict
            .resources
            .iter()
            .map(|at| question.resources[*at].said.as_str())
            .collect();
        let facts: Vec<&str> = conflict
            .facts
            .iter()
            .map(|fact| fact.says.as_str())
            .collect();
        lines.push(format!(
            "{}{}: {}",
            if conflict.certain { "" } else { "perhaps " },
            resources.join(" | "),
            facts.join("; ")
        ));
    }
    lines.extend(
        answer
            .choices
            .iter()
            .map(|choice| format!("{} {}", choice.part.key(), choice.known.release)),
    );
    lines.join("\n")
}

#[test]
fn shipped_combinations_hold() {
    let catalog = shipped();
    let wrong = |entry: &catalog::CatalogEntry<catalog::release::CombinationEntry>| {
        Some(format!(
            "{}: {}",
            entry.content.name,
            explain_failed_combination(&entry.content, catalog)?
        ))
    };
    let wrong: Vec<String> = catalog.combination.entries().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(catalog.combination.len() >= 8);
}

#[test]
fn rules_that_say_the_same_are_there_and_brought_releases_have_entries() {
    // rules are a room above; their files are read here as text
    let text: String = crate::shipped::yaml_files("rules")
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let book = Book::of(shipped());
    for fact in &book.facts {
        for rule in &fact.rules {
            assert!(
                text.contains(&format!("code: {rule}\n")),
                "{}: no rule {rule}",
                fact.says
            );
        }
        assert!(
            !fact.source.is_empty() && fact.place.contains(".yaml:"),
            "{fact:?}"
        );
    }
    let cuda = &book.known[&catalog::release::HostComponent::Cuda];
    let drivers: BTreeSet<&str> = book.known[&catalog::release::HostComponent::Driver]
        .iter()
        .map(|known| known.release.as_str())
        .collect();
    for known in cuda {
        let brought = known.brings.get(&catalog::release::HostComponent::Driver);
        assert!(
            brought.is_some_and(|driver| drivers.contains(driver.as_str())),
            "{known:?}"
        );
    }
    // the newest is taken first
    assert!(cuda.windows(2).all(|two| two[0].value > two[1].value));
}

#[test]
fn what_is_left_open_is_chosen_and_what_is_not_known_is_not() {
    let gpu = |gpu: Value| {
        said(
            &node(json!({ "name": "n1", "os": "ubuntu-22.04", "gpu": gpu })),
            shipped(),
        )
    };
    insta::assert_snapshot!(gpu(json!({ "model": "A100", "count": 8, "driver": "525.105.17" })), @"cuda 12.9");
    insta::assert_snapshot!(gpu(json!({ "model": "A100", "count": 8, "driver": "515" })), @"cuda 11.8");
    insta::assert_snapshot!(gpu(json!({ "model": "V100-SXM2-32GB", "count": 8 })), @r"
    driver 580.95.05
    modules proprietary
    cuda 12.9
    ");
    insta::assert_snapshot!(gpu(json!({ "model": "B200", "count": 8, "cuda": "12.8" })), @r"
    driver 610.43.02
    modules open
    ");
    // a driver older than all that is known of CUDA, and a GPU of nobody: nothing
    insta::assert_snapshot!(gpu(json!({ "model": "none (lab)", "count": 1 })), @"");
    let stack = |os: &str| {
        said(
            &node(json!({ "name": "n1", "os": os, "rdma_stack": { "flavour": "doca" } })),
            shipped(),
        )
    };
    insta::assert_snapshot!(stack("ubuntu-20.04"), @"doca 2.9.1");
    insta::assert_snapshot!(stack("almalinux-9"), @r#"
    perhaps os: almalinux-9 | rdma_stack.flavour: doca: no DOCA is known for almalinux-9
    "#);
}

/// A toolkit that has no packages for the system is not chosen; one that is required may fail.
#[test]
fn cuda_is_chosen_by_what_the_system_has_packages_of() {
    let host = |os: &str, gpu: Value| {
        said(
            &node(json!({ "name": "n1", "os": os, "gpu": gpu })),
            shipped(),
        )
    };
    let open = |driver: &str| json!({ "model": "A100", "count": 8, "driver": driver });
    assert_eq!(host("ubuntu-20.04", open("580")), "cuda 12.9");
    assert_eq!(host("ubuntu-22.04", open("580")), "cuda 13.3");
    // nothing for Ubuntu 24.04 is old enough for this driver
    let said_of_24 = host("ubuntu-24.04", open("470"));
    assert!(
        said_of_24.starts_with("perhaps ") || said_of_24.is_empty(),
        "{said_of_24}"
    );
    // nobody knows packages for it
    assert_eq!(host("anolis-8.6", open("580")), "");
    insta::assert_snapshot!(host("ubuntu-24.04", json!({ "model": "A100", "count": 8, "driver": "545", "cuda": "12.3" })), @"perhaps os: ubuntu-24.04 | gpu.cuda: 12.3: packages of CUDA for ubuntu-24.04 begin with 12.5");
    // another doubt does not let go of it
    let gpu = json!({ "model": "A100", "count": 8, "driver": "580" });
    let stack = json!({ "flavour": "doca", "version": "3.5.0" });
    let both = node(json!({ "name": "n1", "os": "ubuntu-20.04", "gpu": gpu, "rdma_stack": stack }));
    insta::assert_snapshot!(said(&both, shipped()), @r"
    perhaps os: ubuntu-20.04 | rdma_stack.version: 3.5.0: ubuntu-20.04 needs DOCA 2.9 or older
    cuda 12.9
    ");
}

#[test]
fn a_system_without_doca_and_chips_within_an_architecture_are_told_apart() {
    let stack = |os: &str| {
        said(
            &node(
                json!({ "name": "n1", "os": os, "rdma_stack": { "flavour": "doca", "version": "3.5.0" } }),
            ),
            shipped(),
        )
    };
    insta::assert_snapshot!(stack("openEuler-22.03"), @"perhaps os: openEuler-22.03 | \
                                                        rdma_stack.flavour: doca: no DOCA is known \
                                                        for openEuler-22.03");
    assert_eq!(stack("ubuntu-24.04"), "");
    let cuda = |model: &str, driver: &str, cuda: &str| {
        said(
            &node(
                json!({ "name": "n1", "os": "rhel-8.10", "gpu": { "model": model, "count": 8, "driver": driver, "modules": "open", "cuda": cuda } }),
            ),
            shipped(),
        )
    };
    assert!(
        cuda("A10", "535", "11.0")
            .contains("perhaps gpu.model: A10 | gpu.cuda: 11.0: A10 needs CUDA 11.1 or newer")
    );
    assert!(!cuda("A30", "535", "11.0").contains("gpu.model"));
    assert!(
        cuda("B300", "580", "12.8")
            .contains("perhaps gpu.model: B300 | gpu.cuda: 12.8: B300 needs CUDA 12.9 or newer")
    );
    assert_eq!(cuda("B200", "580", "12.8"), "");
    assert_eq!(
        (
            cuda("H100-PCIE", "520.61.05", "11.8"),
            cuda("H100", "520.61.05", "11.8").contains("525")
        ),
        (String::new(), true)
    );
}

#[test]
fn the_fewest_resources_are_named_with_the_rows_that_say_why() {
    let gpu = json!({ "model": "V100-SXM2-32GB", "count": 8, "driver": "535", "cuda": "13.0", "direct": { "path": "dmabuf" } });
    insta::assert_snapshot!(said(&node(json!({ "name": "n1", "os": "ubuntu-20.04", "kernel": "5.4.0-1", "gpu": gpu })), shipped()), @r#"
    kernel: 5.4.0-1 | gpu.direct.path: dmabuf: dmabuf needs the kernel 5.12 or newer: the RDMA core registers GPU memory by DMA-BUF from there on
    gpu.model: V100-SXM2-32GB | gpu.cuda: 13.0: CUDA 13 needs another architecture than kepler, maxwell, pascal, volta: its compiler and libraries begin with Turing
    gpu.model: V100-SXM2-32GB | gpu.direct.path: dmabuf: dmabuf needs another architecture than kepler, maxwell, pascal, volta: no driver of an older GPU exports its memory
    gpu.driver: 535 | gpu.cuda: 13.0: CUDA 13 needs the GPU driver 580 or newer: the driver of another major release does not run its programs
    gpu.driver: 535 | gpu.direct.path: dmabuf: dmabuf needs the open kernel modules: the proprietary ones export no GPU memory
    perhaps os: ubuntu-20.04 | gpu.cuda: 13.0: packages of CUDA for ubuntu-20.04 end with 12.9
    "#);
    // Red Hat's kernels carry later code under older numbers
    let gpu = json!({ "model": "A100", "count": 8, "driver": "535", "modules": "open", "direct": { "path": "dmabuf" } });
    assert!(
        !said(
            &node(json!({ "name": "n1", "os": "rocky-8", "gpu": gpu })),
            shipped()
        )
        .contains("kernel")
    );
}

/// Each entry is about a driver that the spec does not name.
#[test]
fn resources_can_exclude_each_other_through_a_part_that_nobody_fixes() {
    let catalog = with(
        "release:
  - { name: nccl-90, part: nccl, release: '90', line: true, needs: [{ part: driver, from: '700' }], source: us }
  - { name: containerd-90, part: containerd, release: '90', line: true, needs: [{ part: driver, to: '700' }], source: us }
  - { name: cuda-90, part: cuda, release: '90', line: true, needs: [{ part: driver, from: '701' }], source: us }
",
    );
    let spec = |jobs: Value, gpu: Value| {
        let node = json!({ "name": "n1", "containerd": "90.1", "gpu": gpu });
        spec::load_case_spec(&json!({ "jobs": jobs, "nodes": [node] })).unwrap()
    };
    let a100 = json!({ "model": "A100", "count": 8 });
    assert_eq!(
        SolverAnswers::new(&spec(json!({ "nccl": "90" }), a100), &catalog)
            .group(0)
            .unwrap()
            .conflicts
            .len(),
        0
    );
    let fixed = json!({ "model": "A100", "count": 8, "cuda": "90.2" });
    let answers = SolverAnswers::new(&spec(json!({ "nccl": "90" }), fixed), &catalog);
    let conflict = &answers.group(0).unwrap().conflicts[0];
    assert_eq!(
        (
            conflict.resources.len(),
            conflict.facts.len(),
            conflict.certain
        ),
        (2, 2, true),
        "{conflict:?}"
    );
}

#[test]
fn what_a_rule_found_or_a_waiver_accepts_is_not_told_again() {
    let gpu = json!({ "model": "A100", "count": 8, "driver": "535", "cuda": "13.0" });
    let loaded = node(json!({ "name": "n[1-2]", "os": "ubuntu-22.04", "gpu": gpu }));
    let on = |hosts: &[&str]| {
        Hosts::from([(
            "RW2414".to_owned(),
            hosts.iter().map(|host| (*host).to_owned()).collect(),
        )])
    };
    let told = |found: &Hosts, waived: &Hosts| {
        collect_conflict_findings(
            &loaded,
            &solve_with_waivers(&loaded, shipped(), waived),
            found,
            waived,
        )
        .into_iter()
        .flat_map(|told| told.hosts)
        .collect::<Vec<_>>()
    };
    let none = Hosts::new();
    assert_eq!(told(&none, &none), ["n1", "n2"]);
    assert_eq!(told(&on(&["n1"]), &none), ["n2"]);
    assert!(told(&on(&["n1"]), &on(&["n2"])).is_empty());
    assert!(told(&none, &on(&["n1", "n2"])).is_empty());
}

#[test]
fn rows_that_cannot_be_are_refused() {
    let refused = |entry: &str| {
        let text = format!("release: [{{ name: {entry}, source: s }}]");
        let problems = catalog::load_catalog("own", [("x.yaml".to_owned(), text)])
            .map(|_| ())
            .unwrap_err();
        problems
            .diagnostics
            .into_iter()
            .map(|problem| format!("{} {}", problem.code, problem.message))
            .collect::<Vec<_>>()
            .join("; ")
    };
    for (entry, said) in [
        (
            "x, part: cuda, release: '9'",
            "RW0220 the entry `x` of `release` cannot be: its name is `cuda-9`",
        ),
        ("cuda-x, part: cuda, release: x", "`x` is no release"),
        (
            "gpu-x, part: gpu, release: x",
            "entries of `gpu` have a category of their own",
        ),
        (
            "cuda-9, part: cuda, release: '9', needs: [{ part: driver }]",
            "what it needs of `driver` is not said",
        ),
        (
            "cuda-9, part: cuda, release: '9', needs: [{ part: driver, only: [a] }]",
            "`driver` comes in numbers",
        ),
        (
            "cuda-9, part: cuda, release: '9', needs: [{ part: modules, from: '1' }]",
            "`modules` comes in names",
        ),
        (
            "cuda-9, part: cuda, release: '9', needs: [{ part: driver, from: new }]",
            "`new` is no release",
        ),
        (
            "cuda-9, part: cuda, release: '9', needs: [{ part: cuda, from: '1' }]",
            "it needs `cuda` of itself",
        ),
        (
            "modules-open, part: modules, release: open, line: true",
            "only numbers have a `line`",
        ),
        (
            "cuda-9, part: cuda, release: '9', needs: [{ part: driver, form: '1' }]",
            "RW0105",
        ),
    ] {
        assert!(refused(entry).contains(said), "{entry}: {}", refused(entry));
    }
}

fn pick(of: &'static [&'static str]) -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(prop::sample::select(of))
}

/// A host with any of the fields that the solver looks at.
fn any_host() -> impl Strategy<Value = LoadedSpec> {
    let models = &["A100", "H100-SXM5-80GB", "V100-SXM2-32GB", "B200", "T4"];
    let drivers = pick(&[
        "450",
        "470",
        "515",
        "525.53",
        "525.105.17",
        "535",
        "580",
        "580.65.06",
        "700",
    ]);
    let cuda = pick(&["11.0", "11.4", "11.8", "12.4", "12.9", "13.0", "14.0"]);
    let direct = pick(&["dmabuf", "peermem", "nv-peer-mem"]);
    let systems = pick(&[
        "ubuntu-20.04",
        "ubuntu-22.04",
        "ubuntu-26.04",
        "rocky-8",
        "alinux-3",
    ]);
    let kernels = pick(&["5.4.0-1", "5.15.0-1", "6.8.1"]);
    let stacks = pick(&[
        "inbox",
        "doca",
        "doca 2.9.1",
        "doca 3.5.0",
        "mlnx-ofed 4.9",
        "mlnx-ofed 24.10",
    ]);
    let nics = pick(&["ConnectX-4", "ConnectX-6", "ConnectX-8", "E810"]);
    let above = (pick(&["2.12", "2.21.5"]), pick(&["1.6.28"]));
    let gpu = (
        prop::sample::select(models),
        drivers,
        pick(&["open", "proprietary"]),
        cuda,
        direct,
    );
    (gpu, systems, kernels, stacks, nics, above).prop_map(|(gpu, os, kernel, stack, nic, (nccl, containerd))| {
        let (model, driver, modules, cuda, direct) = gpu;
        let mut of_gpu = json!({ "model": model, "count": 8, "driver": driver, "modules": modules, "cuda": cuda });
        if let Some(path) = direct {
            of_gpu["direct"] = json!({ "path": path });
            if path == "nv-peer-mem" {
                of_gpu["direct"]["source"] = json!("https://example.org/x.git#1.0-9");
            }
        }
        let stack = stack.map(|stack| {
            let (flavour, version) = stack.split_once(' ').map_or((stack, None), |(flavour, version)| (flavour, Some(version)));
            json!({ "flavour": flavour, "version": version })
        });
        let nics = nic.map(|model| json!({ "model": model, "netdev": "ens1" }));
        let mut host = json!({ "name": "n1", "os": os, "kernel": kernel, "gpu": of_gpu, "rdma_stack": stack, "nics": nics });
        host["containerd"] = json!(containerd);
        let mut whole = json!({ "fabric": { "kind": "rocev2" }, "nodes": [host], "jobs": { "nccl": nccl } });
        without_nulls(&mut whole);
        spec::load_case_spec(&whole).unwrap()
    })
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn kept(
    question: &SolverQuestion,
    resources: &[usize],
    facts: &[&ReleaseConstraint],
) -> SolverOutcome {
    SolverQuery::new(&Book::of(shipped()), question, facts).some(resources, facts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// What is found keeps every requirement and every need; what excludes each other cannot be
    /// kept, and each smaller choice can.
    #[test]
    fn what_is_chosen_keeps_all_and_what_excludes_each_other_is_the_fewest(loaded in any_host()) {
        let book = Book::of(shipped());
        let question = SolverQuestion::of(&loaded, 0, shipped());
        let (facts, _) = question.facts(&book);
        let (conflicts, left) = SolverQuery::new(&book, &question, &facts).conflicts(&facts, false);
        let all: Vec<usize> = (0..question.resources.len()).collect();
        let can = conflicts.iter().all(|conflict| !conflict.certain);
        match kept(&question, &all, &left) {
            SolverOutcome::All(found) => {
                for (part, range) in question.resources.iter().flat_map(|resource| &resource.parts) {
                    prop_assert!(range.contains(&found[part]), "{part:?}");
                }
                for fact in left.iter().filter(|fact| found.get(&fact.of).is_some_and(|value| fact.at.contains(value))) {
                    prop_assert!(found.get(&fact.on).is_some_and(|value| fact.allowed.contains(value)), "{fact:?} {found:?}");
                }
            }
            other => prop_assert!(!can, "{other:?}"),
        }
        let certain: Vec<&ReleaseConstraint> = facts.iter().copied().filter(|fact| fact.certain).collect();
        prop_assert_eq!(kept(&question, &all, &certain) == SolverOutcome::Nothing, !can);
        for conflict in &conflicts {
            let of: Vec<&ReleaseConstraint> = if conflict.certain { certain.clone() } else { facts.clone() };
            prop_assert_eq!(kept(&question, &conflict.resources, &of), SolverOutcome::Nothing);
            let own: Vec<&ReleaseConstraint> = conflict.facts.iter().collect();
            prop_assert_eq!(kept(&question, &conflict.resources, &own), SolverOutcome::Nothing);
            for size in 0..conflict.resources.len() {
                for fewer in enumerate_subsets(conflict.resources.len(), size) {
                    let fewer: Vec<usize> = fewer.into_iter().map(|at| conflict.resources[at]).collect();
                    prop_assert!(matches!(kept(&question, &fewer, &of), SolverOutcome::All(_)), "{fewer:?} of {conflict:?}");
                }
            }
        }
        let asked = SolverQuery::new(&book, &question, &facts);
        for resources in (1..=2).flat_map(|size| enumerate_subsets(question.resources.len(), size)) {
            // what is settled without a search is what a search finds
            prop_assert_eq!(asked.excluded(&resources, &facts), asked.some(&resources, &facts) == SolverOutcome::Nothing, "{:?}", resources);
        }
        // the same question has the same answer, whatever it is called by
        let one = solve_question(&book, &question, &BTreeSet::new());
        let other = solve_question(&book, &question, &BTreeSet::new());
        prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
}

/// Ten thousand hosts, each with releases of its own: as many questions, few answers.
#[test]
fn questions_that_the_facts_cannot_tell_apart_are_answered_once() {
    let host = |n: usize| {
        let gpu = json!({ "model": "A100", "count": 8, "driver": format!("535.{}", 200 + n), "cuda": format!("12.{}", n % 10) });
        json!({ "name": format!("n{n}"), "os": "ubuntu-22.04", "kernel": format!("5.15.0-{n}"), "gpu": gpu })
    };
    let loaded =
        spec::load_case_spec(&json!({ "nodes": (0..2_000).map(host).collect::<Vec<_>>() }))
            .unwrap();
    let answers = SolverAnswers::new(&loaded, shipped());
    assert_eq!(
        (answers.questions.len(), answers.answers.len()),
        (2_000, 10)
    );
}
