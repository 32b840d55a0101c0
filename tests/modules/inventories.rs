//! The inventories that come with railwright: sound, with the editor's line, and with the resources
//! that are kept for each in `plans/NAME/desired.txt`. With RAILWRIGHT_UPDATE=1 in the environment
//! those are written anew; read the difference.

use crate::{catalog, compare, folders, name, say};
use railwright_base::{Address, TargetKind, nodeset};
use railwright_knowledge::catalog::unknown_models;
use railwright_knowledge::module::{self, DesiredState, ModuleFiles, Modules};
use railwright_knowledge::rules::{self, Beyond, RuleSet, RulesReport};
use railwright_knowledge::solve::SolverAnswers;
use railwright_knowledge::spec::{self, LoadedSpec, SourceFile, cabling};
use railwright_workload::{JobRenderInputs, Templates, Workloads};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The day by which waivers are evaluated.
const TODAY: &str = "2026-11-22";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn loaded(inventory: &str) -> LoadedSpec {
    let file = repository()
        .join("inventories")
        .join(inventory)
        .join("cluster.yaml");
    let text =
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let loaded = spec::load_spec(vec![SourceFile {
        name: "cluster.yaml".into(),
        text,
    }]);
    let cabled = |loaded: LoadedSpec| match &loaded.spec.cabling {
        Some(name) => {
            let text = fs::read_to_string(file.with_file_name(name))
                .unwrap_or_else(|error| panic!("{inventory}: {name}: {error}"));
            let file = SourceFile {
                name: name.clone(),
                text,
            };
            cabling::load_cabling(loaded, file)
        }
        None => Ok(loaded),
    };
    loaded.and_then(cabled).unwrap_or_else(|problems| {
        panic!(
            "{inventory}: {}",
            say::all(&problems.diagnostics, &[&problems.sources])
        )
    })
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match fs::read_to_string(&path) {
            Ok(text) => BTreeMap::from([(name(&path), text)]),
            Err(_) => files(&path)
                .into_iter()
                .map(|(below, text)| (format!("{}/{below}", name(&path)), text))
                .collect(),
        })
        .collect()
}

/// The shipped modules, and those that an inventory has of its own.
fn modules_of(inventory: &str) -> Modules {
    let folder = repository()
        .join("inventories")
        .join(inventory)
        .join("modules");
    let own = if folder.is_dir() {
        ModuleFiles::below("modules", files(&folder))
    } else {
        Vec::new()
    };
    let loaded = module::load_modules(
        module::collect_shipped_modules()
            .into_iter()
            .chain(own)
            .collect(),
    );
    loaded.unwrap_or_else(|problems| {
        panic!(
            "{inventory}: {}",
            say::all(&problems.diagnostics, &[&problems.sources])
        )
    })
}

fn desired(inventory: &str) -> DesiredState {
    let (loaded, modules) = (loaded(inventory), modules_of(inventory));
    // Signing keys are fetched by whoever takes an inventory as their own, and the lab's is made;
    // any will do here.
    let key = include_str!("../../modules/package-repositories/tests/no-os/key.asc");
    let texts = module::context::list_referenced_files(&loaded)
        .into_iter()
        .map(|(path, _)| (path, key.to_owned()))
        .collect();
    let desired = module::compute_desired_state(
        &loaded,
        &catalog(),
        &SolverAnswers::new(&loaded, &catalog()),
        &modules,
        &texts,
    );
    let desired = desired.and_then(|mut desired| {
        workloads(&loaded)
            .resource(&loaded, &mut desired)
            .map(|()| desired)
    });
    desired.unwrap_or_else(|errors| {
        panic!(
            "{inventory}: {}",
            say::all(&errors, &[&loaded.sources, &modules.sources])
        )
    })
}

fn shipped_rules() -> RuleSet {
    rules::load_rules("", []).unwrap_or_else(|problems| {
        panic!("{}", say::all(&problems.diagnostics, &[&problems.sources]))
    })
}

/// By the shipped templates: no inventory has its own.
fn workloads(loaded: &LoadedSpec) -> Workloads {
    let templates = Templates::load("", [])
        .unwrap_or_else(|(problems, sources)| panic!("{}", say::all(&problems, &[&sources])));
    let (catalog, rules) = (catalog(), shipped_rules());
    let inputs = JobRenderInputs {
        loaded,
        catalog: &catalog,
        rules: &rules,
        templates: &templates,
        today: TODAY,
        derives: true,
    };
    let (workloads, errors) = Workloads::of(inputs);
    assert!(
        errors.is_empty(),
        "{}",
        say::all(&errors, &[&loaded.sources])
    );
    workloads
}

fn inventories() -> Vec<String> {
    folders(&repository().join("inventories"))
        .iter()
        .map(|folder| name(folder))
        .collect()
}

#[test]
fn every_inventory_gives_resources_for_all_its_hosts_that_are_reached() {
    for inventory in inventories() {
        let (loaded, desired) = (loaded(&inventory), desired(&inventory));
        for host in loaded.reached() {
            assert!(
                desired
                    .resources
                    .iter()
                    .any(|resource| *resource.address.target.name == *host.name),
                "{inventory}: {}",
                host.name
            );
        }
    }
}

#[test]
fn every_inventory_has_the_editors_line_and_says_what_it_shows() {
    for inventory in inventories() {
        let text = fs::read_to_string(
            repository()
                .join("inventories")
                .join(&inventory)
                .join("cluster.yaml"),
        )
        .unwrap();
        assert!(
            text.starts_with(
                "# yaml-language-server: $schema=../../docs/schema/spec.schema.json\n# "
            ),
            "{inventory}"
        );
    }
}

/// Errors and warnings: an example has none but for key files, which are not a matter of
/// rules.
#[test]
fn no_inventory_breaks_a_rule_or_names_what_the_catalogue_does_not_know() {
    let rules = shipped_rules();
    for inventory in inventories() {
        let loaded = loaded(&inventory);
        let unknown = unknown_models(&loaded, &catalog());
        assert!(
            unknown.is_empty(),
            "{inventory}: {}",
            say::all(&unknown, &[&loaded.sources])
        );
        let workloads = workloads(&loaded);
        let beyond = Beyond {
            codes: &[],
            is_partial: workloads.is_partial,
            found: |_: &RulesReport| workloads.found(),
        };
        let said = rules::evaluate_with(&loaded, &catalog(), &rules, TODAY, beyond).diagnostics();
        let said: Vec<_> = said.into_iter().chain(workloads.notes()).collect();
        assert!(
            said.is_empty(),
            "{inventory}: {}",
            say::all(&said, &[&loaded.sources])
        );
    }
}

#[test]
fn infiniband_has_no_settings_of_roce() {
    let desired = desired("ib-h800");
    for resource in &desired.resources {
        assert_ne!(resource.kind, "link_qos", "{}", resource.address);
        for why in &desired.why[&resource.address] {
            assert!(
                !why.module.starts_with("roce-"),
                "{} by {}",
                resource.address,
                why.module
            );
        }
        assert!(
            !resource.body.to_string().contains("pfc"),
            "{}: {}",
            resource.address,
            resource.body
        );
    }
    assert!(
        desired
            .digests
            .keys()
            .all(|module| !module.starts_with("roce-")),
        "{:?}",
        desired.digests.keys()
    );
}

#[test]
fn container_compute_service_has_workloads_and_nothing_to_set_up() {
    let desired = desired("acs");
    assert!(
        desired.checks.is_empty() && desired.digests.keys().eq(["jobs/acs"]),
        "{:?}",
        desired.digests
    );
    let addresses: Vec<String> = desired
        .resources
        .iter()
        .map(|resource| resource.address.to_string())
        .collect();
    assert_eq!(
        addresses,
        [
            "kube/acs/Deployment.apps/default/dep-demo-hpn-gpu",
            "kube/acs/Deployment.apps/default/p16en"
        ]
    );
}

/// What must be done before a resource, by whatever way.
fn before<'a>(desired: &'a DesiredState, address: &Address) -> BTreeSet<&'a Address> {
    let after: BTreeMap<&Address, &Vec<Address>> = desired
        .resources
        .iter()
        .map(|resource| (&resource.address, &resource.after))
        .collect();
    let mut found = BTreeSet::new();
    let mut open: Vec<&Address> = after[address].iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(after.get(next).into_iter().flat_map(|more| more.iter()));
        }
    }
    found
}

/// The resources of a module for one host.
fn of<'a>(desired: &'a DesiredState, host: &str, module: &str) -> Vec<&'a Address> {
    let resources = desired
        .resources
        .iter()
        .map(|resource| &resource.address)
        .filter(|address| &*address.target.name == host);
    let found: Vec<_> = resources
        .filter(|address| {
            desired.why[address]
                .iter()
                .any(|why| crate::is_of(module, &why.module))
        })
        .collect();
    assert!(!found.is_empty(), "{module} declares nothing on {host}");
    found
}

#[test]
fn drivers_are_made_in_the_order_in_which_each_needs_the_one_before() {
    let desired = desired("roce-a100");
    let chain = [
        "package-repositories",
        "kernel-build",
        "doca-ofed",
        "openibd",
        "nvidia-driver",
        "nvidia-peermem",
    ];
    let pairs = chain
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .chain([("nvidia-driver", "fabric-manager")]);
    for (first, then) in pairs {
        for later in of(&desired, "gpu01", then) {
            let before = before(&desired, later);
            for earlier in of(&desired, "gpu01", first) {
                assert!(
                    before.contains(earlier),
                    "{later} does not come after {earlier}"
                );
            }
        }
    }
}

/// Else the one reboot of a host stands behind whatever comes between the two, such as the start of
/// openibd.
#[test]
fn what_needs_a_reboot_for_the_gpus_and_for_the_rdma_stack_can_share_one() {
    let desired = desired("roce-a100");
    let reboot = |name: &str| Address::host("gpu01", "command", name);
    for (one, other) in [("nouveau", "ofed-drivers"), ("ofed-drivers", "nouveau")] {
        assert!(
            !before(&desired, &reboot(one)).contains(&reboot(other)),
            "{one} comes after {other}"
        );
    }
    for name in ["nouveau", "ofed-drivers"] {
        assert!(
            before(&desired, &Address::host("gpu01", "kernel_module", "nvidia"))
                .contains(&reboot(name)),
            "{name}"
        );
    }
}

#[test]
fn the_class_of_a_rail_comes_after_its_link() {
    for inventory in [
        "roce-a100",
        "roce-h100-rail",
        "mixed",
        "roce-ubuntu20",
        "roce-rhel86",
    ] {
        let desired = desired(inventory);
        let classes: Vec<_> = desired
            .resources
            .iter()
            .filter(|resource| resource.kind == "link_qos")
            .collect();
        let rails: usize = loaded(inventory)
            .hosts
            .iter()
            .map(|host| host.netdevs.len())
            .sum();
        assert_eq!(classes.len(), rails, "{inventory}");
        for class in classes {
            let link = |address: &&Address| {
                address.kind() == "link" && address.name() == class.address.name()
            };
            assert!(
                before(&desired, &class.address)
                    .into_iter()
                    .any(|address| link(&address)),
                "{inventory}: {}",
                class.address
            );
        }
    }
}

#[test]
fn the_resources_of_every_inventory_are_the_ones_that_are_kept() {
    let wrong: Vec<String> = inventories()
        .iter()
        .filter_map(|inventory| {
            let folder = repository().join("plans").join(inventory);
            fs::create_dir_all(&folder).unwrap();
            compare(&folder.join("desired.txt"), Some(kept(&desired(inventory))))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// One line a resource, identical targets folded: what is declared and by which modules; below it
/// what it comes right after.
fn kept(desired: &DesiredState) -> String {
    let mut targets: BTreeMap<(TargetKind, String, String, String), Vec<&str>> = BTreeMap::new();
    for resource in &desired.resources {
        let by: Vec<&str> = desired.why[&resource.address]
            .iter()
            .map(|why| why.module.as_str())
            .collect();
        let after: Vec<String> = resource.after.iter().map(Address::within_target).collect();
        let target = &resource.address.target;
        targets
            .entry((
                target.kind,
                resource.address.within_target(),
                by.join(" "),
                after.join(" "),
            ))
            .or_default()
            .push(&target.name);
    }
    let lines = targets.iter().map(|((kind, address, by, after), names)| {
        let after = if after.is_empty() {
            String::new()
        } else {
            format!("  after {after}\n")
        };
        format!(
            "{}/{}/{address} by {by}\n{after}",
            kind.word(),
            nodeset::fold_node_set(names)
        )
    });
    let out: String = lines.collect();
    if out.is_empty() {
        "nothing\n".to_owned()
    } else {
        out
    }
}
