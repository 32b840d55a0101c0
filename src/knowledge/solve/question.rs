//! What the spec requires of the parts of a group of hosts, and what it leaves to be chosen.

use super::book::{Book, ReleaseConstraint};
use super::value::{Value, one_of, parse_release_line};
use crate::catalog::Catalog;
use crate::catalog::entries::OperatingSystemEntry;
use crate::catalog::release::HostComponent;
use crate::spec::LoadedSpec;
use crate::spec::model::{GpuDirectPath, GpuModules, GpuSpec, NodeGroup, RdmaFlavour};
use pubgrub::Ranges;
use std::collections::BTreeSet;

/// One field of the spec that fixes parts of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecRequirement {
    /// Its path in the spec.
    pub path: String,
    /// The field and its value: `gpu.driver: 535`.
    pub said: String,
    /// What it fixes.
    pub parts: Vec<(HostComponent, Ranges<Value>)>,
    /// A part that it fixes without naming it, and in which words.
    pub implied: Option<(HostComponent, String)>,
}

/// What a group of hosts is asked about.
#[derive(Debug, Clone, Default)]
pub struct SolverQuestion {
    /// What the spec fixes.
    pub resources: Vec<SpecRequirement>,
    /// What is to be chosen.
    pub asked: Vec<HostComponent>,
    /// The package manager of the system, where it is known.
    pub packages: Option<String>,
}

impl SolverQuestion {
    /// Of a group of the spec, by its index.
    pub fn of(loaded: &LoadedSpec, group: usize, catalog: &Catalog) -> SolverQuestion {
        let node = &loaded.spec.nodes[group];
        let mut question = SolverQuestion::default();
        question.system(node, catalog, group);
        question.stack(node, catalog, group);
        question.gpu(node, catalog, group);
        if let Some(text) = &node.containerd {
            let key = "containerd";
            let path = node_path(group, key);
            question.require_release(path, key, HostComponent::Containerd, text);
        }
        if let Some(text) = &loaded.spec.jobs.nccl
            && node.gpu.is_some()
        {
            let key = "jobs.nccl";
            question.require_release(key.to_owned(), key, HostComponent::Nccl, text);
        }
        question
    }

    /// A requirement; parts whose release cannot be read are left out, nothing can be said of them.
    fn resource<const N: usize>(
        &mut self,
        path: String,
        key: &str,
        value: &str,
        parts: [(HostComponent, Option<Ranges<Value>>); N],
    ) {
        let parts: Vec<_> = parts
            .into_iter()
            .filter_map(|(part, range)| Some((part, range?)))
            .collect();
        if !parts.is_empty() {
            let said = format!("{key}: {}", railwright_base::text::one_line(value, 60));
            self.resources.push(SpecRequirement {
                path,
                said,
                parts,
                implied: None,
            });
        }
    }

    /// Fixes a part at a release or a line of releases, such as `535`.
    fn require_release(&mut self, path: String, key: &str, part: HostComponent, text: &str) {
        self.resource(path, key, text, [(part, parse_release_line(part, text))]);
    }

    /// Fixes a part that has names in place of releases, such as `open` kernel modules.
    fn require_name(&mut self, path: String, key: &str, part: HostComponent, name: &str) {
        self.resource(path, key, name, [(part, Some(one_of([name])))]);
    }

    /// Notes what the last requirement stands for besides.
    fn implies(&mut self, so: bool, part: HostComponent, text: impl Fn() -> String) {
        if let Some(resource) = self.resources.last_mut().filter(|_| so) {
            resource.implied = Some((part, text()));
        }
    }

    fn system(&mut self, node: &NodeGroup, catalog: &Catalog, group: usize) {
        let entry = node.os.as_deref().and_then(|os| catalog.system(os));
        self.packages = entry.map(|entry| entry.package_manager.clone());
        if let (Some(os), Some(entry)) = (&node.os, entry) {
            // the system's first kernel, unless the spec names another
            let kernel = match node.kernel {
                Some(_) => None,
                None => parse_release_line(HostComponent::Kernel, &entry.kernel),
            };
            let named = kernel.is_some();
            self.resource(
                node_path(group, "os"),
                "os",
                os,
                [
                    (HostComponent::Os, Some(one_of([entry.name.as_str()]))),
                    (HostComponent::Kernel, kernel),
                ],
            );
            self.implies(named, HostComponent::Kernel, || {
                format!("its first kernel is {}", entry.kernel)
            });
        }
        if let Some(kernel) = &node.kernel {
            self.require_release(
                node_path(group, "kernel"),
                "kernel",
                HostComponent::Kernel,
                kernel,
            );
        }
        if let Some(nics) = &node.nics
            && let Some(entry) = catalog.nic.get(&nics.model)
        {
            self.resource(
                node_path(group, "nics.model"),
                "nics.model",
                &nics.model,
                [(HostComponent::Nic, Some(one_of([entry.name.as_str()])))],
            );
        }
    }

    fn stack(&mut self, node: &NodeGroup, catalog: &Catalog, group: usize) {
        let Some(stack) = &node.rdma_stack else {
            return;
        };
        let entry = node.os.as_deref().and_then(|os| catalog.system(os));
        let (word, part, listed) = match stack.flavour {
            RdmaFlavour::Inbox => ("inbox", None, false),
            RdmaFlavour::Doca => (
                "doca",
                Some(HostComponent::Doca),
                entry.is_some_and(|entry| entry.doca_min.is_some()),
            ),
            RdmaFlavour::MlnxOfed => (
                "mlnx-ofed",
                Some(HostComponent::MlnxOfed),
                entry.is_some_and(|entry| entry.mlnx_ofed_max.is_some()),
            ),
        };
        let key = "rdma_stack.flavour";
        self.require_name(node_path(group, key), key, HostComponent::Stack, word);
        match (part, &stack.version) {
            (Some(part), Some(version)) => {
                let key = "rdma_stack.version";
                self.require_release(node_path(group, key), key, part, version);
            }
            // which release a system can have is known of those that its entry is about alone
            (Some(part), None) if listed => self.asked.push(part),
            _ => {}
        }
    }

    fn gpu(&mut self, node: &NodeGroup, catalog: &Catalog, group: usize) {
        let Some(gpu) = &node.gpu else { return };
        let Some(entry) = catalog.gpu.get(&gpu.model) else {
            return;
        };
        if entry.vendor != "nvidia" {
            return;
        }
        let architecture = Some(one_of([entry.architecture.as_str()]));
        let model = Some(one_of([entry.name.as_str()]));
        self.resource(
            node_path(group, "gpu.model"),
            "gpu.model",
            &gpu.model,
            [
                (HostComponent::Gpu, model),
                (HostComponent::Architecture, architecture),
            ],
        );
        self.gpu_driver(gpu, group);
        if let Some(cuda) = &gpu.cuda {
            self.require_release(
                node_path(group, "gpu.cuda"),
                "gpu.cuda",
                HostComponent::Cuda,
                cuda,
            );
        }
        if let Some(direct) = &gpu.direct {
            let path = match direct.path {
                GpuDirectPath::Dmabuf => "dmabuf",
                GpuDirectPath::Peermem => "peermem",
                GpuDirectPath::NvPeerMem => "nv-peer-mem",
            };
            let key = "gpu.direct.path";
            self.require_name(node_path(group, key), key, HostComponent::Direct, path);
        }
        let system = node.os.as_deref().and_then(|os| catalog.system(os));
        let to_choose = self.list_gpu_parts_to_choose(gpu, system);
        self.asked.extend(to_choose);
    }

    fn gpu_driver(&mut self, gpu: &GpuSpec, group: usize) {
        if let Some(driver) = &gpu.driver {
            // without a word of the spec a driver is installed with the proprietary modules
            let modules = gpu.modules.is_none().then(|| one_of(["proprietary"]));
            let named = modules.is_some();
            let release = parse_release_line(HostComponent::Driver, driver);
            self.resource(
                node_path(group, "gpu.driver"),
                "gpu.driver",
                driver,
                [
                    (HostComponent::Driver, release),
                    (HostComponent::Modules, modules),
                ],
            );
            self.implies(named, HostComponent::Modules, || {
                "without `modules` the proprietary ones are meant".to_owned()
            });
        }
        let modules = match gpu.modules {
            Some(GpuModules::Open) => "open",
            Some(GpuModules::Proprietary) => "proprietary",
            None => return,
        };
        self.require_name(
            node_path(group, "gpu.modules"),
            "gpu.modules",
            HostComponent::Modules,
            modules,
        );
    }

    fn list_gpu_parts_to_choose(
        &self,
        gpu: &GpuSpec,
        system: Option<&OperatingSystemEntry>,
    ) -> Vec<HostComponent> {
        let mut settled: BTreeSet<HostComponent> = self.parts().collect();
        // a release that cannot be read is fixed all the same
        if gpu.driver.is_some() {
            settled.extend([HostComponent::Driver, HostComponent::Modules]);
        }
        // for a system whose packages of CUDA nobody knows none is chosen
        if gpu.cuda.is_some() || system.is_some_and(|entry| entry.cuda_min.is_none()) {
            settled.insert(HostComponent::Cuda);
        }
        let mut to_choose = vec![
            HostComponent::Driver,
            HostComponent::Modules,
            HostComponent::Cuda,
        ];
        to_choose.retain(|part| !settled.contains(part));
        to_choose
    }

    /// All parts that a requirement fixes.
    fn parts(&self) -> impl Iterator<Item = HostComponent> + '_ {
        self.resources
            .iter()
            .flat_map(|resource| resource.parts.iter().map(|(part, _)| *part))
    }

    /// The facts that bear on it, and those that would if more were known: a part that the spec
    /// neither fixes nor leaves to be chosen is not known.
    pub(super) fn facts<'b>(
        &self,
        book: &'b Book,
    ) -> (Vec<&'b ReleaseConstraint>, Vec<&'b ReleaseConstraint>) {
        let mut known: BTreeSet<HostComponent> = self.parts().collect();
        known.extend(&self.asked);
        let (mut facts, mut unknown) = (Vec::new(), Vec::new());
        for fact in &book.facts {
            if !known.contains(&fact.of) || !self.may_concern(fact) {
                continue;
            }
            if known.contains(&fact.on) {
                facts.push(fact);
            } else {
                unknown.push(fact);
            }
        }
        (facts, unknown)
    }

    fn may_concern(&self, fact: &ReleaseConstraint) -> bool {
        // of a system that nobody knows it is not known either whether it is an exception
        if fact.except_packages.is_some()
            && (self.packages.is_none() || fact.except_packages == self.packages)
        {
            return false;
        }
        // what an entry says of another model or system than the one that is required bears on
        // nothing here
        let mut required = self.resources.iter().flat_map(|resource| &resource.parts);
        !required.any(|(part, range)| *part == fact.of && range.is_disjoint(&fact.at))
    }

    /// What tells it from others, as far as the facts can: a release by its place among all that
    /// some fact speaks of.
    pub(super) fn key(&self, book: &Book) -> String {
        use std::fmt::Write as _;
        let mut key = format!("{:?} {:?}", self.packages, self.asked);
        for resource in &self.resources {
            let field = match resource.path.rsplit_once("].") {
                Some((_, field)) => field,
                None => resource.path.as_str(),
            };
            _ = write!(key, " {field}");
            for (part, range) in &resource.parts {
                let marks: &[Value] = match book.marks.get(part) {
                    Some(marks) => marks.as_slice(),
                    None => &[],
                };
                match part.is_numbered() {
                    true => _ = write!(key, " {part:?} {:?}", locate_range(range, marks)),
                    false => _ = write!(key, " {part:?} {range}"),
                }
            }
        }
        key
    }
}

/// Where a range begins and ends among the marks: how many lie before it, and how many are in it.
fn locate_range(range: &Ranges<Value>, marks: &[Value]) -> (usize, usize) {
    let contained = range.contains_many(marks.iter());
    let inside = contained.filter(|inside| *inside).count();
    match super::value::list_range_ends(range).next() {
        Some(first) => (marks.partition_point(|mark| *mark < first), inside),
        None => (0, inside),
    }
}

/// The path in the spec of a field of a group of hosts.
fn node_path(group: usize, key: &str) -> String {
    format!("nodes[{group}].{key}")
}
