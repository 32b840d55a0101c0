//! Entries of one category, found by name or alias.

use super::entries::{
    BandwidthEntry, ComputeClassEntry, GpuModelEntry, InstanceEntry, NicModelEntry,
    OperatingSystemEntry,
};
use railwright_base::Label;
use railwright_base::suggest::find_nearest_word;
use std::collections::HashMap;

/// What the entries of every category have in common.
pub trait CategoryEntry {
    /// The key of the category in the files.
    const KEY: &'static str;
    /// The name, as messages show it.
    fn name(&self) -> &str;
    /// What no other entry of the category has.
    fn identity(&self) -> String {
        self.name().to_owned()
    }
    /// Other names of the same thing.
    fn aliases(&self) -> &[String] {
        &[]
    }
    /// Where the entry was taken from.
    fn source(&self) -> &str;
    /// A field in words, where it is more than a value or a list of them.
    fn in_words(&self, _field: &str) -> Option<String> {
        None
    }
    /// What cannot be in it, beyond what its fields say.
    fn find_fault(&self) -> Option<String> {
        None
    }
}

macro_rules! named_entry {
    ($entry:ty, $key:literal) => {
        impl CategoryEntry for $entry {
            const KEY: &'static str = $key;
            fn name(&self) -> &str {
                &self.name
            }
            fn aliases(&self) -> &[String] {
                &self.aliases
            }
            fn source(&self) -> &str {
                &self.source
            }
        }
    };
}

named_entry!(GpuModelEntry, "gpu");
named_entry!(NicModelEntry, "nic");
named_entry!(InstanceEntry, "instance");
named_entry!(OperatingSystemEntry, "os");

impl CategoryEntry for BandwidthEntry {
    const KEY: &'static str = "bandwidth";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn find_fault(&self) -> Option<String> {
        let mut bandwidths = [self.least_gbps, self.seen_gbps].into_iter().flatten();
        if !bandwidths.all(|gbps| gbps > 0.0 && gbps <= 10_000.0) {
            return Some("a bandwidth is more than 0 and at most 10000 Gb/s".to_owned());
        }
        // The largest message of perftest is 8 MiB; with no message, or no queue pair, nothing
        // would be sent.
        let possible =
            (1..=8 << 20).contains(&self.message_bytes) && (1..=64).contains(&self.queue_pairs);
        (!possible)
            .then(|| "a run has messages of 1 to 8388608 bytes and 1 to 64 queue pairs".to_owned())
    }
}

impl CategoryEntry for ComputeClassEntry {
    const KEY: &'static str = "acs";
    fn name(&self) -> &str {
        &self.name
    }
    fn identity(&self) -> String {
        format!("{} in class {}", self.name, self.compute_class)
    }
    fn source(&self) -> &str {
        &self.source
    }
}

/// An entry and where it stands.
#[derive(Debug, Clone)]
pub struct CatalogEntry<R> {
    /// The entry.
    pub content: R,
    /// A caret at it.
    pub label: Label,
    /// True for an entry of the user's own.
    pub own: bool,
}

/// All entries of a category, in the order of the files.
#[derive(Debug, Clone)]
pub struct CatalogTable<R> {
    entries: Vec<CatalogEntry<R>>,
    by_identity: HashMap<String, usize>,
    by_alias: HashMap<String, usize>,
}

impl<R> Default for CatalogTable<R> {
    fn default() -> Self {
        CatalogTable {
            entries: Vec::new(),
            by_identity: HashMap::new(),
            by_alias: HashMap::new(),
        }
    }
}

impl<R: CategoryEntry> CatalogTable<R> {
    /// Adds an entry, in the place of one that is the same; that one comes back.
    pub(super) fn put(&mut self, entry: CatalogEntry<R>) -> Option<CatalogEntry<R>> {
        match self.by_identity.get(&entry.content.identity()) {
            Some(at) => Some(std::mem::replace(&mut self.entries[*at], entry)),
            None => {
                self.by_identity
                    .insert(entry.content.identity(), self.entries.len());
                self.entries.push(entry);
                None
            }
        }
    }

    /// Makes the entries findable by their aliases, once all are there; a name goes before an
    /// alias.
    pub(super) fn index(&mut self) {
        for (at, entry) in self.entries.iter().enumerate() {
            for alias in entry.content.aliases() {
                self.by_alias.entry(alias.clone()).or_insert(at);
            }
        }
    }

    /// The entry of this name or alias.
    pub fn get(&self, name: &str) -> Option<&R> {
        self.entry(name).map(|entry| &entry.content)
    }

    /// The entry of this name or alias, with its place in the files.
    pub fn entry(&self, name: &str) -> Option<&CatalogEntry<R>> {
        self.by_identity
            .get(name)
            .or_else(|| self.by_alias.get(name))
            .map(|at| &self.entries[*at])
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = &CatalogEntry<R>> {
        self.entries.iter()
    }

    /// How many entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Up to three names that look like this one: mistyped, without its case, or as a part of it.
    pub fn near(&self, name: &str) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        for entry in &self.entries {
            names.push(entry.content.name());
            names.extend(entry.content.aliases().iter().map(String::as_str));
        }
        let mut near: Vec<String> = Vec::new();
        if let Some(nearest) = find_nearest_word(name, names.iter().copied()) {
            near.push(nearest.to_owned());
        }
        let plain_name = simplify_name(name);
        if plain_name.len() < 2 {
            return near;
        }
        for known in names {
            let plain_known = simplify_name(known);
            let is_part = plain_known.contains(&plain_name) || plain_name.contains(&plain_known);
            if is_part && near.len() < 3 && !near.iter().any(|other| other == known) {
                near.push(known.to_owned());
            }
        }
        near
    }
}

/// A name without its case and without all but letters and digits.
fn simplify_name(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_lowercase()
}
