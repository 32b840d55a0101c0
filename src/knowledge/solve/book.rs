//! What the catalogue says of releases, ready to be asked: the facts of its rows, and which
//! releases are known.

use super::value::{
    Value, build_range_between, compute_allowed_range, list_range_ends, one_of, parse_release_line,
};
use crate::catalog::release::{HostComponent, ReleaseRow};
use crate::catalog::rows::{GpuRow, NicRow, OsRow};
use crate::catalog::{Catalog, CatalogEntry, CatalogRow};
use crate::spec::model::GpuModules;
use pubgrub::Ranges;
use std::collections::{BTreeMap, BTreeSet};

/// What one release needs of another part, as a row says it.
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
    /// What would mend it: `take the GPU driver 525.60.13 or newer`.
    pub mend: String,
    /// The rules that say the same.
    pub rules: Vec<String>,
    /// The row: file and line.
    pub place: String,
    /// Where it is said.
    pub source: String,
}

/// A release that a row is about.
#[derive(Debug, Clone)]
pub struct KnownRelease {
    /// The release.
    pub value: Value,
    /// As the row writes it.
    pub release: String,
    /// What it brings of other parts.
    pub brings: BTreeMap<HostComponent, String>,
    /// The row: file and line.
    pub place: String,
    /// Where it is said.
    pub source: String,
}

/// The facts of all rows.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// In the order of the rows.
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
            book.release(&entry.row, &catalog.place(entry));
        }
        catalog
            .gpu
            .entries()
            .for_each(|entry| book.gpu(catalog, entry));
        catalog
            .os
            .entries()
            .for_each(|entry| book.os(catalog, entry));
        catalog
            .nic
            .entries()
            .for_each(|entry| book.nic(catalog, entry));
        for (part, known) in &mut book.known {
            // the newest first; names stay in the order of the file
            if part.is_numbered() {
                known.sort_by(|one, other| other.value.cmp(&one.value));
            }
        }
        let mut marks: BTreeMap<HostComponent, BTreeSet<Value>> = BTreeMap::new();
        for fact in &book.facts {
            marks
                .entry(fact.of)
                .or_default()
                .extend(list_range_ends(&fact.at));
            marks
                .entry(fact.on)
                .or_default()
                .extend(list_range_ends(&fact.allowed));
        }
        for (part, known) in &book.known {
            marks
                .entry(*part)
                .or_default()
                .extend(known.iter().map(|known| known.value.clone()));
        }
        book.marks = marks
            .into_iter()
            .map(|(part, marks)| (part, marks.into_iter().collect()))
            .collect();
        book
    }

    fn release(&mut self, row: &ReleaseRow, place: &str) {
        let Some(at) = parse_release_line(row.part, &row.release) else {
            return;
        };
        for need in &row.needs {
            let wanted = need.wanted();
            self.facts.push(ReleaseConstraint {
                of: row.part,
                at: at.clone(),
                on: need.part,
                allowed: compute_allowed_range(need),
                certain: need.certain,
                except_packages: need.except_packages.clone(),
                says: format!(
                    "{} {} {wanted}{}",
                    row.part.with(&row.release),
                    if row.part == HostComponent::Modules {
                        "need"
                    } else {
                        "needs"
                    },
                    need.because
                        .as_deref()
                        .map_or(String::new(), |why| format!(": {why}"))
                ),
                mend: format!("take {wanted}"),
                rules: need.rule.iter().cloned().collect(),
                place: place.to_owned(),
                source: row.source.clone(),
            });
        }
        if let Some(value) = Value::of(row.part, &row.release).filter(|_| !row.line) {
            let (release, brings) = (row.release.clone(), row.brings.clone());
            let known = KnownRelease {
                value,
                release,
                brings,
                place: place.to_owned(),
                source: row.source.clone(),
            };
            self.known.entry(row.part).or_default().push(known);
        }
    }

    /// A fact of a row of another sort.
    fn row<R: CatalogRow>(
        &mut self,
        catalog: &Catalog,
        entry: &CatalogEntry<R>,
        of: HostComponent,
        fact: Limit,
    ) {
        let says = format!("{} needs {}", of.with(entry.row.name()), fact.wanted);
        self.facts.push(ReleaseConstraint {
            of,
            at: one_of([entry.row.name()]),
            on: fact.on,
            allowed: fact.allowed,
            certain: fact.certain,
            except_packages: None,
            says: fact.says.unwrap_or(says),
            mend: format!("take {}", fact.wanted),
            rules: fact.rules.iter().map(|rule| (*rule).to_owned()).collect(),
            place: catalog.place(entry),
            source: entry.row.source().to_owned(),
        });
    }

    fn gpu(&mut self, catalog: &Catalog, entry: &CatalogEntry<GpuRow>) {
        let (min, max) = (entry.row.driver_branch_min, entry.row.driver_branch_max);
        if let Some(min) = min.map(|min| min.to_string()) {
            self.row(
                catalog,
                entry,
                HostComponent::Gpu,
                Limit::from(HostComponent::Driver, &min).told_by("RW2401"),
            );
        }
        if let Some(max) = max.map(|max| max.to_string()) {
            self.row(
                catalog,
                entry,
                HostComponent::Gpu,
                Limit::to(HostComponent::Driver, &max).told_by("RW2402"),
            );
        }
        if let Some(min) = &entry.row.cuda_min {
            let says = Some(format!(
                "{} needs CUDA {min} or newer: the compiler before makes no code for it",
                entry.row.name
            ));
            let limit = Limit::from(HostComponent::Cuda, min);
            self.row(
                catalog,
                entry,
                HostComponent::Gpu,
                Limit {
                    certain: false,
                    says,
                    ..limit
                },
            );
        }
        if !entry.row.modules.is_empty() {
            let words = entry.row.modules.iter().map(|modules| match modules {
                GpuModules::Open => "open",
                GpuModules::Proprietary => "proprietary",
            });
            let words: Vec<&str> = words.collect();
            let wanted = HostComponent::Modules.with(&words.join(" or "));
            let allowed = one_of(words);
            self.row(
                catalog,
                entry,
                HostComponent::Gpu,
                Limit {
                    rules: vec!["RW2403", "RW2404"],
                    ..Limit::of(HostComponent::Modules, allowed, wanted)
                },
            );
        }
    }

    fn os(&mut self, catalog: &Catalog, entry: &CatalogEntry<OsRow>) {
        let unsure = |limit: Limit| Limit {
            certain: false,
            ..limit
        };
        if let Some(min) = &entry.row.doca_min {
            self.row(
                catalog,
                entry,
                HostComponent::Os,
                unsure(Limit::from(HostComponent::Doca, min).told_by("RW2407")),
            );
        }
        if let Some(max) = &entry.row.doca_max {
            self.row(
                catalog,
                entry,
                HostComponent::Os,
                unsure(Limit::to(HostComponent::Doca, max).told_by("RW2406")),
            );
        }
        if let Some(min) = &entry.row.cuda_min {
            let says = Some(format!(
                "packages of CUDA for {} begin with {min}",
                entry.row.name
            ));
            self.row(
                catalog,
                entry,
                HostComponent::Os,
                unsure(Limit {
                    says,
                    ..Limit::from(HostComponent::Cuda, min)
                }),
            );
        }
        if let Some(max) = &entry.row.cuda_max {
            let says = Some(format!(
                "packages of CUDA for {} end with {max}",
                entry.row.name
            ));
            self.row(
                catalog,
                entry,
                HostComponent::Os,
                unsure(Limit {
                    says,
                    ..Limit::to(HostComponent::Cuda, max)
                }),
            );
        }
        if entry.row.doca_min.is_none() {
            self.stack(catalog, entry, "DOCA", ["inbox", "mlnx-ofed"], &[]);
        }
        match &entry.row.mlnx_ofed_max {
            Some(max) => self.row(
                catalog,
                entry,
                HostComponent::Os,
                unsure(Limit::to(HostComponent::MlnxOfed, max).told_by("RW2408")),
            ),
            None => self.stack(catalog, entry, "MLNX_OFED", ["inbox", "doca"], &["RW2409"]),
        }
    }

    /// A system that some RDMA stack is not known for, and the others.
    fn stack(
        &mut self,
        catalog: &Catalog,
        entry: &CatalogEntry<OsRow>,
        named: &str,
        others: [&str; 2],
        rules: &[&'static str],
    ) {
        let says = Some(format!("no {named} is known for {}", entry.row.name));
        let limit = Limit::of(
            HostComponent::Stack,
            one_of(others),
            HostComponent::Stack.with(&others.join(" or ")),
        );
        self.row(
            catalog,
            entry,
            HostComponent::Os,
            Limit {
                says,
                certain: false,
                rules: rules.to_vec(),
                ..limit
            },
        );
    }

    fn nic(&mut self, catalog: &Catalog, entry: &CatalogEntry<NicRow>) {
        if let Some(min) = &entry.row.doca_min {
            self.row(
                catalog,
                entry,
                HostComponent::Nic,
                Limit::from(HostComponent::Doca, min).told_by("RW2411"),
            );
        }
        if let Some(max) = &entry.row.doca_max {
            let limit = Limit::to(HostComponent::Doca, max).told_by("RW2410");
            self.row(
                catalog,
                entry,
                HostComponent::Nic,
                Limit {
                    certain: false,
                    ..limit
                },
            );
        }
        if entry.row.mlnx_ofed_max.as_deref() == Some("0") {
            let says = Some(format!("no MLNX_OFED knows {}", entry.row.name));
            let limit = Limit::of(
                HostComponent::Stack,
                one_of(["inbox", "doca"]),
                "the RDMA stack inbox or doca".to_owned(),
            );
            self.row(
                catalog,
                entry,
                HostComponent::Nic,
                Limit {
                    says,
                    rules: vec!["RW2412"],
                    ..limit
                },
            );
        } else if let Some(max) = &entry.row.mlnx_ofed_max {
            let limit = Limit::to(HostComponent::MlnxOfed, max).told_by("RW2412");
            self.row(
                catalog,
                entry,
                HostComponent::Nic,
                Limit {
                    certain: false,
                    ..limit
                },
            );
        }
        if !entry.row.works_with_ofed {
            let limit = Limit::of(
                HostComponent::Stack,
                one_of(["inbox"]),
                "the RDMA stack inbox".to_owned(),
            );
            self.row(
                catalog,
                entry,
                HostComponent::Nic,
                Limit {
                    rules: vec!["RW2413"],
                    ..limit
                },
            );
        }
    }
}

/// What a row of another sort says of a part.
struct Limit {
    on: HostComponent,
    allowed: Ranges<Value>,
    certain: bool,
    wanted: String,
    says: Option<String>,
    rules: Vec<&'static str>,
}

impl Limit {
    fn of(on: HostComponent, allowed: Ranges<Value>, wanted: String) -> Limit {
        Limit {
            on,
            allowed,
            certain: true,
            wanted,
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

    fn told_by(self, rule: &'static str) -> Limit {
        Limit {
            rules: vec![rule],
            ..self
        }
    }
}
