//! From the files of the catalogue to tables: every entry decoded strictly, with its place. A file
//! holds lists by category (`gpu:`, `nic:`, `switch:` and so on, see `CATEGORIES`).

use super::entries::{
    BandwidthEntry, ComputeClassEntry, GpuModelEntry, InstanceEntry, NicModelEntry,
    OperatingSystemEntry,
};
use super::job::{ArgumentEntry, ImageEntry, ProfilerEntry, VariableEntry};
use super::release::{CombinationEntry, ReleaseEntry};
use super::switch::{SwitchModelEntry, SwitchSystemEntry};
use super::table::{CatalogEntry, CatalogTable, CategoryEntry};
use super::user_space::{ExampleEntry, UserSpaceEntry};
use crate::shipped::yaml_files;
use crate::spec::decode::decode_or_report;
use crate::spec::source::{SourceFile, SourceText, Sources};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument, YamlNodeKind};
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Label, Severity};
use std::collections::HashMap;
use std::sync::Arc;

/// The folder below a folder of modules that holds the catalogue.
pub const CATALOG_FOLDER: &str = "catalog";

/// Reads the list below a key of a file into the table of that category.
type CategoryReader = fn(&mut CatalogLoader, &EntryList<'_>);

const CATEGORIES: [(&str, CategoryReader); 16] = [
    (GpuModelEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.gpu)
    }),
    (NicModelEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.nic)
    }),
    (InstanceEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.instance)
    }),
    (OperatingSystemEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.os)
    }),
    (ComputeClassEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.acs)
    }),
    (BandwidthEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.bandwidth)
    }),
    (ReleaseEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.release)
    }),
    (CombinationEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.combination)
    }),
    (SwitchModelEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.switch)
    }),
    (SwitchSystemEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.switch_system)
    }),
    (VariableEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.variable)
    }),
    (ArgumentEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.argument)
    }),
    (ImageEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.image)
    }),
    (ProfilerEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.profiler)
    }),
    (UserSpaceEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.user_space)
    }),
    (ExampleEntry::KEY, |loader, list| {
        loader.read_entries(list, |all| &mut all.example)
    }),
];

/// All tables.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// GPU models.
    pub gpu: CatalogTable<GpuModelEntry>,
    /// RDMA NICs.
    pub nic: CatalogTable<NicModelEntry>,
    /// Instances of clouds.
    pub instance: CatalogTable<InstanceEntry>,
    /// Operating systems.
    pub os: CatalogTable<OperatingSystemEntry>,
    /// What Alibaba Container Compute Service offers.
    pub acs: CatalogTable<ComputeClassEntry>,
    /// What pairs of ports deliver.
    pub bandwidth: CatalogTable<BandwidthEntry>,
    /// Releases of drivers, toolkits and stacks, and what each needs.
    pub release: CatalogTable<ReleaseEntry>,
    /// Combinations that are known to fit or not.
    pub combination: CatalogTable<CombinationEntry>,
    /// Switches.
    pub switch: CatalogTable<SwitchModelEntry>,
    /// The systems of switches.
    pub switch_system: CatalogTable<SwitchSystemEntry>,
    /// Environment variables of jobs.
    pub variable: CatalogTable<VariableEntry>,
    /// Arguments of the programs that start jobs.
    pub argument: CatalogTable<ArgumentEntry>,
    /// Images of which something has to be known.
    pub image: CatalogTable<ImageEntry>,
    /// Profilers of trainings.
    pub profiler: CatalogTable<ProfilerEntry>,
    /// What images need of RDMA, by kind of fabric.
    pub user_space: CatalogTable<UserSpaceEntry>,
    /// Examples that images can bring.
    pub example: CatalogTable<ExampleEntry>,
    /// The user's entries that stand over shipped ones.
    pub overrides: Vec<Override>,
    /// The files, for diagnostics that point into them.
    pub sources: Sources,
}

/// A user's entry in the place of a shipped one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Which: `gpu A100-SXM4-80GB`.
    pub what: String,
    /// The user's.
    pub own: Label,
    /// The shipped one.
    pub shipped: Label,
}

impl Override {
    /// As a warning with both places.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::warning(
            "RW0223",
            format!("an entry of your own replaces the shipped {}", self.what),
        )
        .labelled(self.own.clone())
        .labelled(self.shipped.clone())
        .effect("modules and rules use your entry")
        .next("remove it when the shipped entry says what you need")
    }
}

/// Why there is no catalogue.
#[derive(Debug, Clone)]
pub struct CatalogProblems {
    /// All that is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that it points into.
    pub sources: Sources,
}

impl Catalog {
    /// The operating system of a spec; `rocky-9.4` is found as `rocky-9` where there is no entry of
    /// its own.
    pub fn system(&self, name: &str) -> Option<&OperatingSystemEntry> {
        self.os
            .get(name)
            .or_else(|| self.os.get(name.rsplit_once('.')?.0))
    }

    /// The instance of a spec; a type (`ecs.ebmgn8v.48xlarge`) is found by its family.
    pub fn instance_of(&self, name: &str) -> Option<&InstanceEntry> {
        let bare = name.strip_prefix("ecs.").unwrap_or(name);
        let family = bare.split('.').next().unwrap_or_default();
        [name, bare, family]
            .into_iter()
            .find_map(|name| self.instance.get(name))
    }

    /// What is offered of a GPU model in a compute class.
    pub fn acs_of(&self, model: &str, compute_class: &str) -> Option<&ComputeClassEntry> {
        self.acs
            .entries()
            .map(|entry| &entry.content)
            .find(|entry| entry.name == model && entry.compute_class == compute_class)
    }

    /// Where an entry stands: `modules/catalog/gpu.yaml:12`.
    pub fn place<R>(&self, entry: &CatalogEntry<R>) -> String {
        let line = self
            .sources
            .get(&entry.label.file)
            .map(|source| source.line_column(entry.label.span.start).0);
        format!(
            "{}{}",
            entry.label.file,
            line.map_or(String::new(), |line| format!(":{line}"))
        )
    }
}

/// The shipped catalogue with the user's files (`gpu.yaml` and text) over it; `folder` is what
/// messages call theirs.
pub fn load_catalog(
    folder: &str,
    own: impl IntoIterator<Item = (String, String)>,
) -> Result<Catalog, CatalogProblems> {
    let mut reading = CatalogLoader::default();
    for (name, text) in yaml_files(CATALOG_FOLDER) {
        reading.read_file(name, text, false);
    }
    for (path, text) in own.into_iter().filter(|(path, _)| path.ends_with(".yaml")) {
        reading.read_file(format!("{folder}/{path}"), text, true);
    }
    reading.finish()
}

/// The entries of one category in a file.
struct EntryList<'a> {
    document: &'a YamlDocument,
    node: NodeId,
    /// True in a file of the user's.
    own: bool,
}

#[derive(Default)]
struct CatalogLoader {
    aliases: AliasBudget,
    catalog: Catalog,
    problems: Vec<Diagnostic>,
    /// By category and name: who has it.
    names: HashMap<(&'static str, String), (String, Label, bool)>,
}

impl CatalogLoader {
    fn read_file(&mut self, name: String, text: String, own: bool) {
        let source = Arc::new(SourceText::new(SourceFile { name, text }));
        self.catalog.sources.add(Arc::clone(&source));
        let Some(document) = YamlDocument::parse(source, &mut self.aliases, &mut self.problems)
        else {
            return;
        };
        let Some(root) = document.root().filter(|root| !document.is_null(*root)) else {
            return;
        };
        if document.kind(root) != YamlNodeKind::Mapping {
            self.problems.push(new_catalog_error(
                &document,
                root,
                "a file of the catalogue is a mapping",
                "this is none",
            ));
            return;
        }
        for entry in document.entries(root) {
            let key = document.text(entry.key);
            let Some((_, read_entries)) = CATEGORIES.iter().find(|(known, _)| *known == key) else {
                self.problems
                    .push(new_unknown_category_error(&document, entry.key));
                continue;
            };
            let list = EntryList {
                document: &document,
                node: entry.value,
                own,
            };
            read_entries(self, &list);
        }
    }

    fn read_entries<R: CategoryEntry + serde::de::DeserializeOwned>(
        &mut self,
        list: &EntryList<'_>,
        table: impl Fn(&mut Catalog) -> &mut CatalogTable<R>,
    ) {
        let EntryList {
            document,
            node,
            own,
        } = *list;
        if document.kind(node) != YamlNodeKind::Sequence {
            let message = "the entries of a category are a list";
            self.problems
                .push(new_catalog_error(document, node, message, "this is none"));
            return;
        }
        for item in document.items(node) {
            let Some(entry) = decode_or_report::<R>(document, item, &mut self.problems) else {
                continue;
            };
            let name = document.entry(item, "name");
            let label = Label {
                file: document.source().name().to_owned(),
                span: document.caret(name.map_or(item, |entry| entry.value)),
                text: if own { "yours" } else { "shipped" }.to_owned(),
            };
            if let Some(problem) = check_catalog_entry(&entry, &label, table(&mut self.catalog)) {
                self.problems.push(problem);
                continue;
            }
            self.note_names(&entry, &label, own);
            let what = format!("{} {}", R::KEY, entry.identity());
            let entry = CatalogEntry {
                content: entry,
                label: label.clone(),
                own,
            };
            if let Some(old) = table(&mut self.catalog).put(entry)
                && own
                && !old.own
            {
                self.catalog.overrides.push(Override {
                    what,
                    own: label,
                    shipped: old.label,
                });
            }
        }
    }

    /// A name or alias stands for one entry; a user's entry may take a shipped one's.
    fn note_names<R: CategoryEntry>(&mut self, entry: &R, label: &Label, own: bool) {
        let identity = entry.identity();
        for name in std::iter::once(&identity).chain(entry.aliases()) {
            let before = self.names.insert(
                (R::KEY, name.clone()),
                (identity.clone(), label.clone(), own),
            );
            // An entry of the inventory takes the place of a shipped one by its name alone: an
            // alias of another entry stays that entry's.
            if let Some((other, first, first_own)) = before
                && (first_own == own || other != identity)
            {
                let message = format!(
                    "two entries of `{}` are called `{}`",
                    R::KEY,
                    one_line(name, 60)
                );
                let again = Label {
                    text: "again here".to_owned(),
                    ..label.clone()
                };
                let problem = Diagnostic::error("RW0221", message)
                    .labelled(again)
                    .labelled(Label {
                        text: "first here".to_owned(),
                        ..first
                    });
                self.problems.push(problem.next("keep one of them"));
            }
        }
    }

    fn finish(self) -> Result<Catalog, CatalogProblems> {
        let CatalogLoader {
            mut catalog,
            problems,
            ..
        } = self;
        catalog.gpu.index();
        catalog.nic.index();
        catalog.instance.index();
        catalog.os.index();
        catalog.switch.index();
        catalog.user_space.index();
        if problems
            .iter()
            .any(|problem| problem.severity == Severity::Error)
        {
            return Err(CatalogProblems {
                diagnostics: problems,
                sources: catalog.sources,
            });
        }
        Ok(catalog)
    }
}

/// The most characters of a name.
const NAME_MAX: usize = 96;

/// An entry without a name or a source is none: what nobody can look up is not known.
fn check_catalog_entry<R: CategoryEntry>(
    entry: &R,
    label: &Label,
    others: &CatalogTable<R>,
) -> Option<Diagnostic> {
    let aliases = entry.aliases().iter().map(String::as_str);
    for name in std::iter::once(entry.name()).chain(aliases) {
        if name.is_empty() || is_plain_name(name) {
            continue;
        }
        let shown = one_line(name, NAME_MAX);
        let message = format!("`{shown}` cannot be a name of `{}`", R::KEY);
        let problem = Diagnostic::error("RW0220", message).labelled(label.clone());
        return Some(problem.next(format!(
            "write one line of at most {NAME_MAX} characters that can be seen"
        )));
    }
    for (key, text) in [("name", entry.name()), ("source", entry.source())] {
        if text.trim().is_empty() {
            let message = format!("an entry of `{}` has an empty `{key}`", R::KEY);
            let problem = Diagnostic::error("RW0220", message).labelled(label.clone());
            return Some(problem.next("every entry has a name, and says where it was taken from"));
        }
    }
    let message = format!(
        "the entry `{}` of `{}` cannot be: {}",
        entry.name(),
        R::KEY,
        entry.find_fault()?
    );
    let problem = Diagnostic::error("RW0220", message).labelled(label.clone());
    let others = others.entries().map(|other| other.content.name());
    let nearest =
        others.min_by_key(|other| std::cmp::Reverse(count_common_start(entry.name(), other)));
    Some(match nearest {
        Some(name) => problem.next(format!(
            "`railwright catalog {} {name}` shows one in full",
            R::KEY
        )),
        None => problem,
    })
}

fn is_plain_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= NAME_MAX && one_line(name, NAME_MAX) == name
}

/// How many characters two names have in common from their beginning.
fn count_common_start(name: &str, other: &str) -> usize {
    let pairs = name.chars().zip(other.chars());
    pairs.take_while(|(own, other)| own == other).count()
}

fn new_unknown_category_error(document: &YamlDocument, key: NodeId) -> Diagnostic {
    let known = CATEGORIES.map(|(key, _)| key);
    let label = match find_nearest_word(document.text(key), known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "no such category".to_owned(),
    };
    let message = "the catalogue has no entries of this category";
    new_catalog_error(document, key, message, label)
        .next(format!("write one of {}", known.join(", ")))
}

fn new_catalog_error(
    document: &YamlDocument,
    node: NodeId,
    message: &str,
    label: impl Into<String>,
) -> Diagnostic {
    Diagnostic::error("RW0220", message).at(document.source().name(), document.caret(node), label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> Result<Catalog, Vec<String>> {
        let files = [("gpu.yaml".to_owned(), text.to_owned())];
        load_catalog("own", files).map_err(|problems| {
            problems
                .diagnostics
                .iter()
                .map(|problem| format!("{} {}", problem.code, problem.message))
                .collect()
        })
    }

    #[test]
    fn the_shipped_rows_are_sound() {
        let catalog = load_catalog("", [])
            .map_err(|problems| problems.diagnostics)
            .unwrap();
        assert!(
            catalog.gpu.len() > 5
                && catalog.nic.len() > 5
                && catalog.os.len() > 5
                && !catalog.acs.is_empty()
        );
        // what an instance says of its GPU is a GPU of the catalogue; fabrics are those of the spec
        for entry in catalog.instance.entries() {
            assert!(
                entry
                    .content
                    .gpu
                    .as_deref()
                    .is_none_or(|gpu| catalog.gpu.get(gpu).is_some()),
                "{:?}",
                entry.content
            );
        }
        for entry in catalog.nic.entries() {
            for fabric in &entry.content.fabrics {
                let known: Result<crate::spec::model::FabricKind, _> =
                    serde_json::from_value(serde_json::json!(fabric));
                assert!(known.is_ok(), "{:?}", entry.content);
            }
        }
        // a switch of the spec may have any of these systems, and each has its entry
        for os in ["sonic", "cumulus", "eos"] {
            assert!(catalog.switch_system.get(os).is_some(), "{os}");
        }
        assert_eq!(
            catalog
                .switch
                .get("MSN2700")
                .map(|entry| entry.asic.as_str()),
            Some("Spectrum-1")
        );
        assert_eq!(
            catalog.system("rocky-9.4").map(|entry| entry.name.as_str()),
            Some("rocky-9")
        );
        assert_eq!(
            catalog
                .instance_of("ecs.ebmgn8v.48xlarge")
                .map(|entry| entry.name.as_str()),
            Some("ebmgn8v")
        );
    }

    #[test]
    fn an_entry_of_ones_own_stands_over_the_shipped_one() {
        let entry = |name: &str, more: &str| {
            format!(
                "gpu: [{{ name: {name}, vendor: nvidia, architecture: mine, source: me{more} }}]\n"
            )
        };
        let catalog = own(&entry("A100-SXM4-80GB", "")).unwrap();
        assert_eq!(
            catalog.gpu.get("A100-SXM4-80GB").unwrap().architecture,
            "mine"
        );
        assert_eq!(catalog.overrides.len(), 1);
        assert!(
            own(&entry("X1", ", aliases: [Y1]"))
                .unwrap()
                .gpu
                .get("Y1")
                .is_some()
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, said) in [
            (
                "gpus: []",
                "RW0220 the catalogue has no entries of this category",
            ),
            ("[]", "RW0220 a file of the catalogue is a mapping"),
            ("gpu: {}", "RW0220 the entries of a category are a list"),
            (
                "gpu: [{ name: A, vendor: v, architecture: a, source: '' }]",
                "RW0220 an entry of `gpu` has an empty `source`",
            ),
            (
                "gpu: [{ name: A, vendor: v, architecture: a, source: s, speed: 3 }]",
                "RW0105 unknown key `speed`",
            ),
            (
                "gpu: [{ name: A, vendor: v, architecture: a }]",
                "RW0107 the key `source` is missing",
            ),
            (
                "switch: [{ name: A, vendor: v, asic: a, systems: [], cell_bytes: 0, source: s }]",
                "RW0220 the entry `A` of `switch` cannot be: a cell is at most 1024 bytes, what is \
                 in the chip at most 1024 KiB, and of ports and lanes it has at least one",
            ),
            (
                "switch: [{ name: A, vendor: v, asic: a, systems: [], ecn: [{ thresholds: \
                 { min_bytes: 2, max_bytes: 2, probability_percent: 1 } }], source: s }]",
                "RW0220 the entry `A` of `switch` cannot be: the lower threshold is below the \
                 upper one, and a share is at most 100 %",
            ),
            (
                "switch: [{ name: A, vendor: v, asic: a, systems: [sonik], source: s }]",
                "RW0108 `sonik` is no value for `systems`",
            ),
            (
                "gpu: [{ name: A, vendor: v, architecture: a, source: s }, \
                 { name: A, vendor: v, architecture: a, source: s }]",
                "RW0221 two entries of `gpu` are called `A`",
            ),
        ] {
            assert_eq!(own(text).map(|_| ()).unwrap_err(), [said], "{text}");
        }
    }
}
