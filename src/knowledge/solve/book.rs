//! What the catalogue says of releases, ready to be asked: the facts of its entries, and which
//! releases are known.

use super::value::{
    Value, build_range_between, compute_allowed_range, list_range_ends, one_of, parse_release_line,
};
use crate::catalog::entries::{GpuModelEntry, NicModelEntry, OperatingSystemEntry};
use crate::catalog::release::{HostComponent, ReleaseEntry};
use crate::catalog::{Catalog, CatalogEntry, CategoryEntry};
use crate::spec::model::GpuModules;
use pubgrub::Ranges;
use std::collections::{BTreeMap, BTreeSet};

/// What one release needs of another part, as an entry says it.
#[derive(Debug, Clone)]
pub struct ReleaseConstraint {
    /// The part that needs it.
    pub of: HostComponent,
    /// Its releases that do.
    pub at: Ranges<Value>,
    /// The other part.
    pub on: HostComponent,
    /// What will do of it.
    pub allowed: Ranges<Value>,
    /// False where it may work all the same.
    pub certain: bool,
    /// Nothing is said of systems with this package manager.
    pub except_packages: Option<String>,
    /// In words: `CUDA 12 needs the GPU driver 525.60.13 or newer`.
    pub says: String,
    /// What would fix it: `take the GPU driver 525.60.13 or newer`.
    pub fix: String,
    /// The rules that say the same.
    pub rules: Vec<String>,
    /// The entry: file and line.
    pub place: String,
    /// Where it is said.
    pub source: String,
}

/// A release that an entry is about.
#[derive(Debug, Clone)]
pub struct KnownRelease {
    /// The release.
    pub value: Value,
    /// As the entry writes it.
    pub release: String,
    /// What it brings of other parts.
    pub brings: BTreeMap<HostComponent, String>,
    /// The entry: file and line.
    pub place: String,
    /// Where it is said.
    pub source: String,
}

/// The facts of all entries.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// In the order of the entries.
    pub facts: Vec<ReleaseConstraint>,
    /// By part, the one that is taken first in front.
    pub known: BTreeMap<HostComponent, Vec<KnownRelease>>,
    /// By part, sorted: every release at which some fact begins or ends, and every known one.
    pub marks: BTreeMap<HostComponent, Vec<Value>>,
}

impl Book {
    /// Of a catalogue.
    pub fn of(catalog: &Catalog) -> Book {
        let mut book = Book::default();
        for entry in catalog.release.entries() {
            book.release(&entry.content, &catalog.place(entry));
        }
        for entry in catalog.gpu.entries() {
            let limits = list_gpu_limits(&entry.content);
            book.limits(catalog, entry, HostComponent::Gpu, limits);
        }
        for entry in catalog.os.entries() {
            let limits = list_os_limits(&entry.content);
            book.limits(catalog, entry, HostComponent::Os, limits);
        }
        for entry in catalog.nic.entries() {
            let limits = list_nic_limits(&entry.content);
            book.limits(catalog, entry, HostComponent::Nic, limits);
        }
        for (part, known) in &mut book.known {
            // the newest first; names stay in the order of the file
            if part.is_numbered() {
                known.sort_by(|one, other| other.value.cmp(&one.value));
            }
        }
        let mut marks: BTreeMap<HostComponent, BTreeSet<Value>> = BTreeMap::new();
        for fact in &book.facts {
            let of = marks.entry(fact.of).or_default();
            of.extend(list_range_ends(&fact.at));
            let on = marks.entry(fact.on).or_default();
            on.extend(list_range_ends(&fact.allowed));
        }
        for (part, known) in &book.known {
            let values = known.iter().map(|known| known.value.clone());
            marks.entry(*part).or_default().extend(values);
        }
        for (part, marks) in marks {
            book.marks.insert(part, marks.into_iter().collect());
        }
        book
    }

    fn release(&mut self, entry: &ReleaseEntry, place: &str) {
        let Some(at) = parse_release_line(entry.part, &entry.release) else {
            return;
        };
        for need in &entry.needs {
            let desired = need.desired();
            let verb = if entry.part == HostComponent::Modules {
                "need"
            } else {
                "needs"
            };
            let mut says = format!("{} {verb} {desired}", entry.part.with(&entry.release));
            if let Some(why) = &need.because {
                says += &format!(": {why}");
            }
            self.facts.push(ReleaseConstraint {
                of: entry.part,
                at: at.clone(),
                on: need.part,
                allowed: compute_allowed_range(need),
                certain: need.certain,
                except_packages: need.except_packages.clone(),
                says,
                fix: format!("take {desired}"),
                rules: need.rule.iter().cloned().collect(),
                place: place.to_owned(),
                source: entry.source.clone(),
            });
        }
        if let Some(value) = Value::of(entry.part, &entry.release).filter(|_| !entry.line) {
            let (release, brings) = (entry.release.clone(), entry.brings.clone());
            let known = KnownRelease {
                value,
                release,
                brings,
                place: place.to_owned(),
                source: entry.source.clone(),
            };
            self.known.entry(entry.part).or_default().push(known);
        }
    }

    /// Adds what an entry of the category `of` says of other parts.
    fn limits<R: CategoryEntry>(
        &mut self,
        catalog: &Catalog,
        entry: &CatalogEntry<R>,
        of: HostComponent,
        limits: Vec<Limit>,
    ) {
        for limit in limits {
            let says = format!("{} needs {}", of.with(entry.content.name()), limit.desired);
            self.facts.push(ReleaseConstraint {
                of,
                at: one_of([entry.content.name()]),
                on: limit.on,
                allowed: limit.allowed,
                certain: limit.certain,
                except_packages: None,
                says: limit.says.unwrap_or(says),
                fix: format!("take {}", limit.desired),
                rules: limit.rules.iter().map(|rule| (*rule).to_owned()).collect(),
                place: catalog.place(entry),
                source: entry.content.source().to_owned(),
            });
        }
    }
}

fn list_gpu_limits(entry: &GpuModelEntry) -> Vec<Limit> {
    let mut limits = Vec::new();
    if let Some(min) = entry.driver_branch_min {
        let limit = Limit::from(HostComponent::Driver, &min.to_string());
        limits.push(limit.with_rule("RW2401"));
    }
    if let Some(max) = entry.driver_branch_max {
        let limit = Limit::to(HostComponent::Driver, &max.to_string());
        limits.push(limit.with_rule("RW2402"));
    }
    if let Some(min) = &entry.cuda_min {
        let limit = Limit::from(HostComponent::Cuda, min).with_text(format!(
            "{} needs CUDA {min} or newer: the compiler before makes no code for it",
            entry.name
        ));
        limits.push(limit.uncertain());
    }
    if !entry.modules.is_empty() {
        let words = entry.modules.iter().map(|modules| match modules {
            GpuModules::Open => "open",
            GpuModules::Proprietary => "proprietary",
        });
        let words: Vec<&str> = words.collect();
        let desired = HostComponent::Modules.with(&words.join(" or "));
        limits.push(Limit {
            rules: vec!["RW2403", "RW2404"],
            ..Limit::of(HostComponent::Modules, one_of(words), desired)
        });
    }
    limits
}

/// None of these is certain: packages of another system may do.
fn list_os_limits(entry: &OperatingSystemEntry) -> Vec<Limit> {
    let mut limits = Vec::new();
    if let Some(min) = &entry.doca_min {
        limits.push(Limit::from(HostComponent::Doca, min).with_rule("RW2407"));
    }
    if let Some(max) = &entry.doca_max {
        limits.push(Limit::to(HostComponent::Doca, max).with_rule("RW2406"));
    }
    if let Some(min) = &entry.cuda_min {
        let text = format!("packages of CUDA for {} begin with {min}", entry.name);
        limits.push(Limit::from(HostComponent::Cuda, min).with_text(text));
    }
    if let Some(max) = &entry.cuda_max {
        let text = format!("packages of CUDA for {} end with {max}", entry.name);
        limits.push(Limit::to(HostComponent::Cuda, max).with_text(text));
    }
    if entry.doca_min.is_none() {
        limits.push(exclude_stack(entry, "DOCA", ["inbox", "mlnx-ofed"]));
    }
    limits.push(match &entry.mlnx_ofed_max {
        Some(max) => Limit::to(HostComponent::MlnxOfed, max).with_rule("RW2408"),
        None => exclude_stack(entry, "MLNX_OFED", ["inbox", "doca"]).with_rule("RW2409"),
    });
    limits.into_iter().map(Limit::uncertain).collect()
}

/// The RDMA stack `named` is not known for a system; `others` are.
fn exclude_stack(entry: &OperatingSystemEntry, named: &str, others: [&str; 2]) -> Limit {
    let desired = HostComponent::Stack.with(&others.join(" or "));
    Limit::of(HostComponent::Stack, one_of(others), desired)
        .with_text(format!("no {named} is known for {}", entry.name))
}

fn list_nic_limits(entry: &NicModelEntry) -> Vec<Limit> {
    let mut limits = Vec::new();
    if let Some(min) = &entry.doca_min {
        limits.push(Limit::from(HostComponent::Doca, min).with_rule("RW2411"));
    }
    if let Some(max) = &entry.doca_max {
        let limit = Limit::to(HostComponent::Doca, max).with_rule("RW2410");
        limits.push(limit.uncertain());
    }
    match entry.mlnx_ofed_max.as_deref() {
        Some("0") => {
            let stacks = one_of(["inbox", "doca"]);
            let desired = "the RDMA stack inbox or doca".to_owned();
            let limit = Limit::of(HostComponent::Stack, stacks, desired).with_rule("RW2412");
            limits.push(limit.with_text(format!("no MLNX_OFED knows {}", entry.name)));
        }
        Some(max) => {
            let limit = Limit::to(HostComponent::MlnxOfed, max).with_rule("RW2412");
            limits.push(limit.uncertain());
        }
        None => {}
    }
    if !entry.works_with_ofed {
        let desired = "the RDMA stack inbox".to_owned();
        let limit = Limit::of(HostComponent::Stack, one_of(["inbox"]), desired);
        limits.push(limit.with_rule("RW2413"));
    }
    limits
}

/// What an entry of another category says of a part.
struct Limit {
    on: HostComponent,
    allowed: Ranges<Value>,
    certain: bool,
    desired: String,
    says: Option<String>,
    rules: Vec<&'static str>,
}

impl Limit {
    fn of(on: HostComponent, allowed: Ranges<Value>, desired: String) -> Limit {
        Limit {
            on,
            allowed,
            certain: true,
            desired,
            says: None,
            rules: Vec::new(),
        }
    }

    fn from(on: HostComponent, min: &str) -> Limit {
        Limit::of(
            on,
            build_range_between(Some(min), None),
            format!("{} or newer", on.with(min)),
        )
    }

    fn to(on: HostComponent, max: &str) -> Limit {
        Limit::of(
            on,
            build_range_between(None, Some(max)),
            format!("{} or older", on.with(max)),
        )
    }

    fn with_rule(self, rule: &'static str) -> Limit {
        Limit {
            rules: vec![rule],
            ..self
        }
    }

    /// Replaces the sentence that is made from the entry's name and the range.
    fn with_text(self, text: String) -> Limit {
        Limit {
            says: Some(text),
            ..self
        }
    }

    /// What breaks it may work all the same.
    fn uncertain(self) -> Limit {
        Limit {
            certain: false,
            ..self
        }
    }
}
