//! What the spec wishes of the parts of a group of hosts, and what it leaves to be chosen.

use super::book::{Book, ReleaseConstraint};
use super::value::{Value, one_of, parse_release_line};
use crate::catalog::Catalog;
use crate::catalog::release::HostComponent;
use crate::spec::LoadedSpec;
use crate::spec::model::{GpuDirectPath, GpuModules, NodeGroup, RdmaFlavour};
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
    pub wishes: Vec<SpecRequirement>,
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
        let at = |key: &str| format!("nodes[{group}].{key}");
        question.system(node, catalog, &at);
        question.stack(node, catalog, &at);
        question.gpu(node, catalog, &at);
        if let Some(text) = &node.containerd {
            question.wish(
                at("containerd"),
                "containerd",
                text,
                [(
                    HostComponent::Containerd,
                    parse_release_line(HostComponent::Containerd, text),
                )],
            );
        }
        if let Some(text) = &loaded.spec.jobs.nccl
            && node.gpu.is_some()
        {
            question.wish(
                "jobs.nccl".to_owned(),
                "jobs.nccl",
                text,
                [(
                    HostComponent::Nccl,
                    parse_release_line(HostComponent::Nccl, text),
                )],
            );
        }
        question
    }

    /// A wish; parts whose release cannot be read are left out, nothing can be said of them.
    fn wish<const N: usize>(
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
            self.wishes.push(SpecRequirement {
                path,
                said,
                parts,
                implied: None,
            });
        }
    }

    /// Notes what the last wish stands for besides.
    fn implies(&mut self, so: bool, part: HostComponent, text: impl Fn() -> String) {
        if let Some(wish) = self.wishes.last_mut().filter(|_| so) {
            wish.implied = Some((part, text()));
        }
    }

    fn system(&mut self, node: &NodeGroup, catalog: &Catalog, at: &dyn Fn(&str) -> String) {
        let row = node.os.as_deref().and_then(|os| catalog.system(os));
        self.packages = row.map(|row| row.package_manager.clone());
        if let (Some(os), Some(row)) = (&node.os, row) {
            // the system's first kernel, unless the spec names another
            let kernel = node
                .kernel
                .is_none()
                .then(|| parse_release_line(HostComponent::Kernel, &row.kernel))
                .flatten();
            let named = kernel.is_some();
            self.wish(
                at("os"),
                "os",
                os,
                [
                    (HostComponent::Os, Some(one_of([row.name.as_str()]))),
                    (HostComponent::Kernel, kernel),
                ],
            );
            self.implies(named, HostComponent::Kernel, || {
                format!("its first kernel is {}", row.kernel)
            });
        }
        if let Some(kernel) = &node.kernel {
            self.wish(
                at("kernel"),
                "kernel",
                kernel,
                [(
                    HostComponent::Kernel,
                    parse_release_line(HostComponent::Kernel, kernel),
                )],
            );
        }
        if let Some((nics, row)) = node
            .nics
            .as_ref()
            .and_then(|nics| Some((nics, catalog.nic.get(&nics.model)?)))
        {
            self.wish(
                at("nics.model"),
                "nics.model",
                &nics.model,
                [(HostComponent::Nic, Some(one_of([row.name.as_str()])))],
            );
        }
    }

    fn stack(&mut self, node: &NodeGroup, catalog: &Catalog, at: &dyn Fn(&str) -> String) {
        let Some(stack) = &node.rdma_stack else {
            return;
        };
        let row = node.os.as_deref().and_then(|os| catalog.system(os));
        let (word, part, listed) = match stack.flavour {
            RdmaFlavour::Inbox => ("inbox", None, false),
            RdmaFlavour::Doca => (
                "doca",
                Some(HostComponent::Doca),
                row.is_some_and(|row| row.doca_min.is_some()),
            ),
            RdmaFlavour::MlnxOfed => (
                "mlnx-ofed",
                Some(HostComponent::MlnxOfed),
                row.is_some_and(|row| row.mlnx_ofed_max.is_some()),
            ),
        };
        self.wish(
            at("rdma_stack.flavour"),
            "rdma_stack.flavour",
            word,
            [(HostComponent::Stack, Some(one_of([word])))],
        );
        match (part, &stack.version) {
            (Some(part), Some(version)) => {
                self.wish(
                    at("rdma_stack.version"),
                    "rdma_stack.version",
                    version,
                    [(part, parse_release_line(part, version))],
                );
            }
            // which release a system can have is known of those that its row is about alone
            (Some(part), None) if listed => self.asked.push(part),
            _ => {}
        }
    }

    fn gpu(&mut self, node: &NodeGroup, catalog: &Catalog, at: &dyn Fn(&str) -> String) {
        let Some(gpu) = &node.gpu else { return };
        let Some(row) = catalog
            .gpu
            .get(&gpu.model)
            .filter(|row| row.vendor == "nvidia")
        else {
            return;
        };
        let architecture = Some(one_of([row.architecture.as_str()]));
        let model = Some(one_of([row.name.as_str()]));
        self.wish(
            at("gpu.model"),
            "gpu.model",
            &gpu.model,
            [
                (HostComponent::Gpu, model),
                (HostComponent::Architecture, architecture),
            ],
        );
        let word = |modules: GpuModules| match modules {
            GpuModules::Open => "open",
            GpuModules::Proprietary => "proprietary",
        };
        if let Some(driver) = &gpu.driver {
            // without a word of the spec a driver is installed with the proprietary modules
            let modules = gpu.modules.is_none().then(|| one_of(["proprietary"]));
            let named = modules.is_some();
            self.wish(
                at("gpu.driver"),
                "gpu.driver",
                driver,
                [
                    (
                        HostComponent::Driver,
                        parse_release_line(HostComponent::Driver, driver),
                    ),
                    (HostComponent::Modules, modules),
                ],
            );
            self.implies(named, HostComponent::Modules, || {
                "without `modules` the proprietary ones are meant".to_owned()
            });
        }
        if let Some(modules) = gpu.modules.map(word) {
            self.wish(
                at("gpu.modules"),
                "gpu.modules",
                modules,
                [(HostComponent::Modules, Some(one_of([modules])))],
            );
        }
        if let Some(cuda) = &gpu.cuda {
            self.wish(
                at("gpu.cuda"),
                "gpu.cuda",
                cuda,
                [(
                    HostComponent::Cuda,
                    parse_release_line(HostComponent::Cuda, cuda),
                )],
            );
        }
        if let Some(direct) = &gpu.direct {
            let path = match direct.path {
                GpuDirectPath::Dmabuf => "dmabuf",
                GpuDirectPath::Peermem => "peermem",
                GpuDirectPath::NvPeerMem => "nv-peer-mem",
            };
            self.wish(
                at("gpu.direct.path"),
                "gpu.direct.path",
                path,
                [(HostComponent::Direct, Some(one_of([path])))],
            );
        }
        // a release that cannot be read is fixed all the same
        let said = [
            (HostComponent::Driver, gpu.driver.is_some()),
            (HostComponent::Modules, gpu.driver.is_some()),
            (HostComponent::Cuda, gpu.cuda.is_some()),
        ];
        let said = said
            .into_iter()
            .filter(|(_, said)| *said)
            .map(|(part, _)| part);
        let fixed: BTreeSet<HostComponent> = self.parts().chain(said).collect();
        // for a system whose packages of CUDA nobody knows none is chosen
        let system = node.os.as_deref().and_then(|os| catalog.system(os));
        let known = |part: &HostComponent| {
            *part != HostComponent::Cuda || system.is_none_or(|row| row.cuda_min.is_some())
        };
        self.asked.extend(
            [
                HostComponent::Driver,
                HostComponent::Modules,
                HostComponent::Cuda,
            ]
            .into_iter()
            .filter(|part| !fixed.contains(part) && known(part)),
        );
    }

    /// All parts that a wish fixes.
    fn parts(&self) -> impl Iterator<Item = HostComponent> + '_ {
        self.wishes
            .iter()
            .flat_map(|wish| wish.parts.iter().map(|(part, _)| *part))
    }

    /// The facts that bear on it, and those that would if more were known: a part that the spec
    /// neither fixes nor leaves to be chosen is not known.
    pub(super) fn facts<'b>(
        &self,
        book: &'b Book,
    ) -> (Vec<&'b ReleaseConstraint>, Vec<&'b ReleaseConstraint>) {
        let known: BTreeSet<HostComponent> =
            self.parts().chain(self.asked.iter().copied()).collect();
        // of a system that nobody knows it is not known either whether it is an exception
        let holds = |fact: &&ReleaseConstraint| {
            fact.except_packages.is_none()
                || self.packages.is_some() && fact.except_packages != self.packages
        };
        // what a row says of another model or system than the one that is wished for bears on
        // nothing here
        let other = |fact: &ReleaseConstraint| {
            let mut wished = self.wishes.iter().flat_map(|wish| &wish.parts);
            wished.any(|(part, range)| *part == fact.of && range.is_disjoint(&fact.at))
        };
        let of = book
            .facts
            .iter()
            .filter(holds)
            .filter(|fact| known.contains(&fact.of) && !other(fact));
        of.partition(|fact| known.contains(&fact.on))
    }

    /// What tells it from others, as far as the facts can: a release by its place among all that
    /// some fact speaks of.
    pub(super) fn key(&self, book: &Book) -> String {
        use std::fmt::Write as _;
        let mut key = format!("{:?} {:?}", self.packages, self.asked);
        for wish in &self.wishes {
            let field = wish
                .path
                .rsplit_once("].")
                .map_or(wish.path.as_str(), |(_, field)| field);
            _ = write!(key, " {field}");
            for (part, range) in &wish.parts {
                let marks = book.marks.get(part).map_or(&[][..], Vec::as_slice);
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
    let inside = range
        .contains_many(marks.iter())
        .filter(|inside| *inside)
        .count();
    let first = super::value::list_range_ends(range).next();
    (
        first.map_or(0, |first| marks.partition_point(|mark| *mark < first)),
        inside,
    )
}
