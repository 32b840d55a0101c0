//! What the spec wishes of the parts of a group of hosts, and what it leaves to be chosen.

use super::book::{Book, Fact};
use super::value::{Value, line, one_of};
use crate::catalog::Catalog;
use crate::catalog::release::Part;
use crate::spec::Loaded;
use crate::spec::model::{GpuDirectPath, GpuModules, NodeGroup, RdmaFlavour};
use pubgrub::Ranges;
use std::collections::BTreeSet;

/// One field of the spec that fixes parts of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Its path in the spec.
    pub path: String,
    /// The field and its value: `gpu.driver: 535`.
    pub said: String,
    /// What it fixes.
    pub parts: Vec<(Part, Ranges<Value>)>,
    /// A part that it fixes without naming it, and in which words.
    pub implied: Option<(Part, String)>,
}

/// What a group of hosts is asked about.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// What the spec fixes.
    pub wishes: Vec<Wish>,
    /// What is to be chosen.
    pub asked: Vec<Part>,
    /// The package manager of the system, where it is known.
    pub packages: Option<String>,
}

impl Question {
    /// Of a group of the spec, by its index.
    pub fn of(loaded: &Loaded, group: usize, catalog: &Catalog) -> Question {
        let node = &loaded.spec.nodes[group];
        let mut question = Question::default();
        let at = |key: &str| format!("nodes[{group}].{key}");
        question.system(node, catalog, &at);
        question.stack(node, catalog, &at);
        question.gpu(node, catalog, &at);
        if let Some(text) = &node.containerd {
            question.wish(at("containerd"), "containerd", text, [(Part::Containerd, line(Part::Containerd, text))]);
        }
        if let Some(text) = &loaded.spec.jobs.nccl
            && node.gpu.is_some()
        {
            question.wish("jobs.nccl".to_owned(), "jobs.nccl", text, [(Part::Nccl, line(Part::Nccl, text))]);
        }
        question
    }

    /// A wish; parts whose release cannot be read are left out, nothing can be said of them.
    fn wish<const N: usize>(&mut self, path: String, key: &str, value: &str, parts: [(Part, Option<Ranges<Value>>); N]) {
        let parts: Vec<_> = parts.into_iter().filter_map(|(part, range)| Some((part, range?))).collect();
        if !parts.is_empty() {
            let said = format!("{key}: {}", railwright_base::text::one_line(value, 60));
            self.wishes.push(Wish { path, said, parts, implied: None });
        }
    }

    /// Notes what the last wish stands for besides.
    fn implies(&mut self, so: bool, part: Part, text: impl Fn() -> String) {
        if let Some(wish) = self.wishes.last_mut().filter(|_| so) {
            wish.implied = Some((part, text()));
        }
    }

    fn system(&mut self, node: &NodeGroup, catalog: &Catalog, at: &dyn Fn(&str) -> String) {
        let row = node.os.as_deref().and_then(|os| catalog.system(os));
        self.packages = row.map(|row| row.package_manager.clone());
        if let (Some(os), Some(row)) = (&node.os, row) {
            // the system's first kernel, unless the spec names another
            let kernel = node.kernel.is_none().then(|| line(Part::Kernel, &row.kernel)).flatten();
            let named = kernel.is_some();
            self.wish(at("os"), "os", os, [(Part::Os, Some(one_of([row.name.as_str()]))), (Part::Kernel, kernel)]);
            self.implies(named, Part::Kernel, || format!("its first kernel is {}", row.kernel));
        }
        if let Some(kernel) = &node.kernel {
            self.wish(at("kernel"), "kernel", kernel, [(Part::Kernel, line(Part::Kernel, kernel))]);
        }
        if let Some((nics, row)) = node.nics.as_ref().and_then(|nics| Some((nics, catalog.nic.get(&nics.model)?))) {
            self.wish(at("nics.model"), "nics.model", &nics.model, [(Part::Nic, Some(one_of([row.name.as_str()])))]);
        }
    }

    fn stack(&mut self, node: &NodeGroup, catalog: &Catalog, at: &dyn Fn(&str) -> String) {
        let Some(stack) = &node.rdma_stack else { return };
        let row = node.os.as_deref().and_then(|os| catalog.system(os));
        let (word, part, listed) = match stack.flavour {
            RdmaFlavour::Inbox => ("inbox", None, false),
            RdmaFlavour::Doca => ("doca", Some(Part::Doca), row.is_some_and(|row| row.doca_min.is_some())),
            RdmaFlavour::MlnxOfed => ("mlnx-ofed", Some(Part::MlnxOfed), row.is_some_and(|row| row.mlnx_ofed_max.is_some())),
        };
        self.wish(at("rdma_stack.flavour"), "rdma_stack.flavour", word, [(Part::Stack, Some(one_of([word])))]);
        match (part, &stack.version) {
            (Some(part), Some(version)) => {
                self.wish(at("rdma_stack.version"), "rdma_stack.version", version, [(part, line(part, version))]);
            }
            // which release a system can have is known of those that its row is about alone
            (Some(part), None) if listed => self.asked.push(part),
            _ => {}
        }
    }

    fn gpu(&mut self, node: &NodeGroup, catalog: &Catalog, at: &dyn Fn(&str) -> String) {
        let Some(gpu) = &node.gpu else { return };
        let Some(row) = catalog.gpu.get(&gpu.model).filter(|row| row.vendor == "nvidia") else { return };
        let architecture = Some(one_of([row.architecture.as_str()]));
        let model = Some(one_of([row.name.as_str()]));
        self.wish(at("gpu.model"), "gpu.model", &gpu.model, [(Part::Gpu, model), (Part::Architecture, architecture)]);
        let word = |modules: GpuModules| match modules {
            GpuModules::Open => "open",
            GpuModules::Proprietary => "proprietary",
        };
        if let Some(driver) = &gpu.driver {
            // without a word of the spec a driver is installed with the proprietary modules
            let modules = gpu.modules.is_none().then(|| one_of(["proprietary"]));
            let named = modules.is_some();
            self.wish(at("gpu.driver"), "gpu.driver", driver, [(Part::Driver, line(Part::Driver, driver)), (Part::Modules, modules)]);
            self.implies(named, Part::Modules, || "without `modules` the proprietary ones are meant".to_owned());
        }
        if let Some(modules) = gpu.modules.map(word) {
            self.wish(at("gpu.modules"), "gpu.modules", modules, [(Part::Modules, Some(one_of([modules])))]);
        }
        if let Some(cuda) = &gpu.cuda {
            self.wish(at("gpu.cuda"), "gpu.cuda", cuda, [(Part::Cuda, line(Part::Cuda, cuda))]);
        }
        if let Some(direct) = &gpu.direct {
            let path = match direct.path {
                GpuDirectPath::Dmabuf => "dmabuf",
                GpuDirectPath::Peermem => "peermem",
                GpuDirectPath::NvPeerMem => "nv-peer-mem",
            };
            self.wish(at("gpu.direct.path"), "gpu.direct.path", path, [(Part::Direct, Some(one_of([path])))]);
        }
        // a release that cannot be read is fixed all the same
        let said = [(Part::Driver, gpu.driver.is_some()), (Part::Modules, gpu.driver.is_some()), (Part::Cuda, gpu.cuda.is_some())];
        let said = said.into_iter().filter(|(_, said)| *said).map(|(part, _)| part);
        let fixed: BTreeSet<Part> = self.parts().chain(said).collect();
        // for a system whose packages of CUDA nobody knows none is chosen
        let system = node.os.as_deref().and_then(|os| catalog.system(os));
        let known = |part: &Part| *part != Part::Cuda || system.is_none_or(|row| row.cuda_min.is_some());
        self.asked.extend([Part::Driver, Part::Modules, Part::Cuda].into_iter().filter(|part| !fixed.contains(part) && known(part)));
    }

    /// All parts that a wish fixes.
    fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.wishes.iter().flat_map(|wish| wish.parts.iter().map(|(part, _)| *part))
    }

    /// The facts that bear on it, and those that would if more were known: a part that the spec neither fixes nor leaves to
    /// be chosen is not known.
    pub(super) fn facts<'b>(&self, book: &'b Book) -> (Vec<&'b Fact>, Vec<&'b Fact>) {
        let known: BTreeSet<Part> = self.parts().chain(self.asked.iter().copied()).collect();
        // of a system that nobody knows it is not known either whether it is an exception
        let holds = |fact: &&Fact| fact.except_packages.is_none() || self.packages.is_some() && fact.except_packages != self.packages;
        // what a row says of another model or system than the one that is wished for bears on nothing here
        let other = |fact: &Fact| {
            let mut wished = self.wishes.iter().flat_map(|wish| &wish.parts);
            wished.any(|(part, range)| *part == fact.of && range.is_disjoint(&fact.at))
        };
        let of = book.facts.iter().filter(holds).filter(|fact| known.contains(&fact.of) && !other(fact));
        of.partition(|fact| known.contains(&fact.on))
    }

    /// What tells it from others, as far as the facts can: a release by its place among all that some fact speaks of.
    pub(super) fn key(&self, book: &Book) -> String {
        use std::fmt::Write as _;
        let mut key = format!("{:?} {:?}", self.packages, self.asked);
        for wish in &self.wishes {
            let field = wish.path.rsplit_once("].").map_or(wish.path.as_str(), |(_, field)| field);
            _ = write!(key, " {field}");
            for (part, range) in &wish.parts {
                let marks = book.marks.get(part).map_or(&[][..], Vec::as_slice);
                match part.is_numbered() {
                    true => _ = write!(key, " {part:?} {:?}", place(range, marks)),
                    false => _ = write!(key, " {part:?} {range}"),
                }
            }
        }
        key
    }
}

/// Where a range begins and ends among the marks: how many lie before it, and how many are in it.
fn place(range: &Ranges<Value>, marks: &[Value]) -> (usize, usize) {
    let inside = range.contains_many(marks.iter()).filter(|inside| *inside).count();
    let first = super::value::ends(range).next();
    (first.map_or(0, |first| marks.partition_point(|mark| *mark < first)), inside)
}
