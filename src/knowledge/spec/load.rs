//! The whole way from files to a checked spec. All errors of all files come back in one go.

use super::cabling::Cabling;
use super::decode::{DecodeError, decode_value};
use super::hosts::{Host, hosts_of};
use super::model::{NodeGroup, Spec};
use super::rules;
use super::source::{SourceFile, Sources};
use super::switches::{SwitchNode, SwitchReach, switches_of};
use super::tree::{SpecLocation, SpecTree};
use railwright_base::{
    Diagnostic, Digest, Label, Reason, Severity, SourceLocation, Target, nodeset,
};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A spec that passed every check.
#[derive(Debug, Clone)]
pub struct LoadedSpec {
    /// The desired state of the cluster.
    pub spec: Spec,
    /// Its hosts, in the order of the spec.
    pub hosts: Vec<Host>,
    /// Its switches, in the order of the spec.
    pub switches: Vec<SwitchNode>,
    /// The files, for diagnostics that point into them.
    pub sources: Sources,
    /// Digest of the files' names and bytes.
    pub digest: Digest,
    /// What is allowed but looks wrong.
    pub warnings: Vec<Diagnostic>,
    /// Which NIC is plugged in where, once the file that the spec names was read
    /// (`spec::cabling::load_cabling`).
    pub cabling: Option<Cabling>,
    tree: Arc<SpecTree>,
    by_name: HashMap<String, usize>,
}

/// Why there is no spec.
#[derive(Debug, Clone)]
pub struct Problems {
    /// Errors, and warnings found on the way.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that they point into.
    pub sources: Sources,
}

impl LoadedSpec {
    /// The name of the Kubernetes cluster in addresses, where the spec has one.
    pub fn kubernetes_name(&self) -> Option<&str> {
        let kubernetes = self.spec.kubernetes.as_ref()?;
        Some(kubernetes.name.as_deref().unwrap_or(&self.spec.cluster))
    }

    /// Every target, in the spec's order: the hosts that are reached, the switches that are, then
    /// the Kubernetes cluster.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        let hosts = self.reached().map(|host| Target::host(&host.name));
        let switches = self.managed_switches();
        let switches = switches.map(|switch| Target::switch(&switch.name));
        let kubernetes = self.kubernetes_name().map(Target::kube);
        hosts.chain(switches).chain(kubernetes)
    }

    /// The switches that are read and changed.
    pub fn managed_switches(&self) -> impl Iterator<Item = &SwitchNode> {
        self.switches.iter().filter(|switch| switch.is_managed())
    }

    /// What the passwords are called with which switches are reached.
    pub fn passwords(&self) -> impl Iterator<Item = String> {
        self.managed_switches()
            .filter_map(|switch| match switch.reach.as_ref()? {
                SwitchReach::Api(api) => Some(api.password.clone()),
                SwitchReach::Ssh(_) => None,
            })
    }

    /// The hosts that are reached. The others (`ssh: none`) are known as nodes of their cluster,
    /// and by nothing else.
    pub fn reached(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.ssh.is_some())
    }

    /// The names of the hosts that are not reached.
    pub fn without_ssh(&self) -> Vec<&str> {
        self.hosts
            .iter()
            .filter(|host| host.ssh.is_none())
            .map(|host| host.name.as_str())
            .collect()
    }

    /// Where a value stands, by its path (`fabric.mtu`, `nodes[0].iommu`,
    /// `modules["a.b"].enabled`); nothing where the files leave it to the default.
    pub fn place(&self, path: &str) -> Option<SourceLocation> {
        self.tree.place(path)
    }

    /// Where a value stands, by its path; where the files do not hold it, the closest mapping
    /// around it.
    pub fn nearest_place(&self, path: &str) -> Option<SourceLocation> {
        let mut path = path;
        loop {
            if let Some(place) = self.place(path) {
                return Some(place);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// A caret at a path, for a diagnostic.
    pub fn label(&self, path: &str, text: &str) -> Option<Label> {
        self.tree
            .find(path)
            .map(|location| self.tree.label(location, text))
    }

    /// A caret at the key of a path.
    pub fn key_label(&self, path: &str, text: &str) -> Option<Label> {
        self.tree
            .find(path)
            .map(|location| self.tree.key_label(location, text))
    }

    /// A caret at a path, or at the nearest value around it that the files hold.
    pub fn label_around(&self, path: &str, text: &str) -> Option<Label> {
        let mut around = std::iter::successors(Some(path), |path| {
            path.rfind(['.', '[']).map(|at| &path[..at])
        });
        around.find_map(|path| self.label(path, text))
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.by_name.get(name).map(|index| &self.hosts[*index])
    }

    /// A copy with this host alone; without hosts where there is none of this name.
    pub fn only(&self, name: &str) -> LoadedSpec {
        let hosts: Vec<Host> = self.host(name).into_iter().cloned().collect();
        let by_name = hosts.iter().map(|host| (host.name.clone(), 0)).collect();
        LoadedSpec {
            hosts,
            by_name,
            switches: Vec::new(),
            ..self.clone()
        }
    }

    /// The group that a host belongs to.
    pub fn group_of(&self, host: &Host) -> &NodeGroup {
        &self.spec.nodes[host.group]
    }
}

/// Reads, joins, decodes and checks the files; the order of `files` does not matter.
pub fn load_spec(files: Vec<SourceFile>) -> Result<LoadedSpec, Problems> {
    parse_spec_files(files, true)
}

/// The most hosts of such a spec: it is about a few, and there may be thousands of them.
const CASE_HOSTS_MAX: usize = 2000;

/// A small spec without `cluster`, as rules and combinations bring them along.
pub fn load_case_spec(case: &serde_json::Value) -> Result<LoadedSpec, Reason> {
    let serde_json::Value::Object(fields) = case else {
        return Err("it is no spec".into());
    };
    if let Some(serde_json::Value::Array(groups)) = fields.get("nodes") {
        let mut hosts = 0;
        for name in groups
            .iter()
            .filter_map(|group| group.get("name")?.as_str())
        {
            hosts += nodeset::expand_node_set(name).map_or(0, |names| names.len());
            if hosts > CASE_HOSTS_MAX {
                return Err(format!("it has more than {CASE_HOSTS_MAX} hosts").into());
            }
        }
    }
    let mut fields = fields.clone();
    fields.insert("cluster".to_owned(), "case".into());
    // JSON is YAML, and our own reader is the stricter of the two.
    let text = serde_json::Value::Object(fields).to_string();
    load_spec(vec![SourceFile {
        name: "case".to_owned(),
        text,
    }])
    .map_err(|problems| {
        let first = problems.diagnostics.first();
        first
            .map_or_else(String::new, |problem| problem.message.clone())
            .into()
    })
}

/// What is wrong with these files, when others of the inventory could not be opened at all: nothing
/// is called missing.
pub fn problems_of_rest(files: Vec<SourceFile>) -> Problems {
    match parse_spec_files(files, false) {
        Ok(loaded) => Problems {
            diagnostics: loaded.warnings,
            sources: loaded.sources,
        },
        Err(problems) => problems,
    }
}

fn parse_spec_files(mut files: Vec<SourceFile>, all_there: bool) -> Result<LoadedSpec, Problems> {
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let digest = compute_files_digest(&files);
    let mut sources = Sources::default();
    let mut problems = Vec::new();
    let mut tree = SpecTree::read(files, &mut sources, &mut problems);
    tree.unreadable |= !all_there;
    let mut reading = SpecLoader { tree, problems };
    let spec = reading.spec();
    let complete = reading.problems.is_empty() && all_there;
    let SpecLoader { tree, mut problems } = reading;
    let hosts = collect_hosts(&spec, &tree, &mut problems);
    problems.extend(rules::check_spec_rules(&spec, &hosts, &tree, complete));
    problems.sort_by_key(|problem| {
        problem
            .labels
            .first()
            .map(|label| (label.file.clone(), label.span.start))
    });
    // What an anchor holds is decoded wherever it is used; its errors are said once.
    problems.dedup_by(|next, first| is_same_problem(next, first));
    if problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
    {
        return Err(Problems {
            diagnostics: problems,
            sources,
        });
    }
    let names = hosts.iter().map(|host| host.name.clone());
    let by_name = names.zip(0..).collect();
    let switches = switches_of(&spec);
    Ok(LoadedSpec {
        spec,
        hosts,
        switches,
        sources,
        digest,
        warnings: problems,
        cabling: None,
        tree: Arc::new(tree),
        by_name,
    })
}

/// Whether two problems say the same of one place.
fn is_same_problem(next: &Diagnostic, first: &Diagnostic) -> bool {
    next.code == first.code
        && next.message == first.message
        && next.labels.first() == first.labels.first()
        && !first.labels.is_empty()
}

/// The names without their folder, because the same inventory may be named by several paths.
fn compute_files_digest(files: &[SourceFile]) -> Digest {
    let mut parts: Vec<(&str, Digest)> = Vec::new();
    for file in files {
        let base_name = file.name.rsplit('/').next().unwrap_or_default();
        parts.push((base_name, Digest::of_bytes(file.text.as_bytes())));
    }
    Digest::of(&parts)
}

struct SpecLoader {
    tree: SpecTree,
    problems: Vec<Diagnostic>,
}

impl SpecLoader {
    fn spec(&mut self) -> Spec {
        if self.tree.sections("cluster").is_empty() && !self.tree.unreadable {
            let missing = Diagnostic::error("RW0107", "the key `cluster` is missing in all files")
                .effect("plan, state and locks are kept under the cluster's name")
                .next("add `cluster: NAME`");
            self.problems.push(self.tree.at_first_file(missing));
        }
        Spec {
            cluster: self.single("cluster"),
            fabric: self.single("fabric"),
            ssh: self.single("ssh"),
            nodes: self.list("nodes"),
            repositories: self.list("repositories"),
            switches: self.list("switches"),
            cabling: self.single("cabling"),
            kubernetes: self.single("kubernetes"),
            jobs: self.single("jobs"),
            workloads: self.list("workloads"),
            rules: self.single("rules"),
            rollout: self.single("rollout"),
            verify: self.single("verify"),
            drift: self.single("drift"),
            secrets: self.map("secrets"),
            modules: self.map("modules"),
        }
    }

    fn decode<T: DeserializeOwned>(&mut self, location: SpecLocation) -> Option<T> {
        let (document, node) = self.tree.document(location);
        let mut failures: Vec<DecodeError> = Vec::new();
        let value = decode_value(document, location.key(), node, &mut failures);
        self.problems
            .extend(failures.iter().map(|failure| failure.diagnostic(document)));
        value
    }

    fn single<T: DeserializeOwned + Default>(&mut self, key: &str) -> T {
        let section = self.tree.sections(key).first().copied();
        section
            .and_then(|section| self.decode(section))
            .unwrap_or_default()
    }

    fn list<T: DeserializeOwned>(&mut self, key: &'static str) -> Vec<T> {
        let mut out = Vec::new();
        for section in self.tree.sections(key).to_vec() {
            if !self.is(section, key, super::yaml::YamlNodeKind::Sequence, "a list") {
                continue;
            }
            for item in self.tree.items(section) {
                if let Some(value) = self.decode(item) {
                    out.push(value);
                    self.tree.note_item(key, item);
                }
            }
        }
        out
    }

    fn map<T: DeserializeOwned>(&mut self, key: &str) -> BTreeMap<String, T> {
        let mut out = BTreeMap::new();
        let mut seen: BTreeMap<String, SpecLocation> = BTreeMap::new();
        for section in self.tree.sections(key).to_vec() {
            if !self.is(
                section,
                key,
                super::yaml::YamlNodeKind::Mapping,
                "a mapping (`name: value`)",
            ) {
                continue;
            }
            for (name, entry) in self.tree.entries(section) {
                if let Some(first) = seen.get(&name) {
                    self.problems.push(self.twice(key, &name, entry, *first));
                    continue;
                }
                if let Some(value) = self.decode(entry) {
                    out.insert(name.clone(), value);
                }
                seen.insert(name, entry);
            }
        }
        out
    }

    fn twice(&self, key: &str, name: &str, again: SpecLocation, first: SpecLocation) -> Diagnostic {
        Diagnostic::error(
            "RW0109",
            format!(
                "`{key}.{}` stands in two files",
                railwright_base::text::one_line(name, 60)
            ),
        )
        .labelled(self.tree.key_label(again, "again here"))
        .labelled(self.tree.key_label(first, "first here"))
        .next("keep one of them")
    }

    fn is(
        &mut self,
        section: SpecLocation,
        key: &str,
        kind: super::yaml::YamlNodeKind,
        expected: &str,
    ) -> bool {
        let (document, node) = self.tree.document(section);
        let is = document.kind(node) == kind;
        if !is {
            let diagnostic = Diagnostic::error("RW0106", format!("`{key}` wants {expected}"))
                .labelled(self.tree.key_label(section, "of this key"))
                .next("write the value, or remove the key");
            self.problems.push(diagnostic);
        }
        is
    }
}

/// All hosts; impossible node-sets are noted.
fn collect_hosts(spec: &Spec, tree: &SpecTree, problems: &mut Vec<Diagnostic>) -> Vec<Host> {
    let mut hosts: Vec<Host> = Vec::new();
    for (index, group) in spec.nodes.iter().enumerate() {
        match hosts_of(group, index, hosts.len() + 1, &spec.ssh) {
            Ok(more) if hosts.len() + more.len() <= railwright_base::nodeset::NAMES_MAX => {
                hosts.extend(more)
            }
            Ok(_) => {
                problems.push(rules::too_many_hosts(tree, index));
                break;
            }
            Err(error) => problems.push(rules::bad_node_set(tree, index, error)),
        }
    }
    hosts
}

#[cfg(test)]
mod loaded_spec_tests;
#[cfg(test)]
mod tests;
