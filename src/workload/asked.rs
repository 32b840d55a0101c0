//! What was asked for, with the place of each word: in a line, which carets of what does not stand
//! in a file point into, or in the spec.

use railwright_base::{Diagnostic, Label};
use railwright_knowledge::spec::{LoadedSpec, SourceFile, SourceText};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The places of what was asked for, by path: `job.image`, `jobs.environment.NCCL_IB_TC`.
#[derive(Debug, Clone)]
pub struct RequestPlaces {
    /// The line; nothing where it stands in the spec, whose files are known anyway.
    line: Option<Arc<SourceText>>,
    places: BTreeMap<String, Label>,
}

/// What rules and checks look at of a workload, with the field of the spec that says it.
const FIELDS: [(&str, &str); 18] = [
    ("job.kind", "kind"),
    ("job.name", "name"),
    ("job.namespace", "namespace"),
    ("job.image", "image"),
    ("job.image_pull_policy", "image_pull_policy"),
    ("job.hosts", "hosts"),
    ("job.workers", "replicas"),
    ("job.cpu", "cpu"),
    ("job.memory", "memory"),
    ("job.gpus", "gpus"),
    ("job.gpu_resource", "gpu_resource"),
    ("job.rdma", "devices"),
    ("job.ray_version", "ray_version"),
    ("job.app", "app"),
    ("job.container", "container"),
    ("jobs.acs.model", "model"),
    ("jobs.acs.compute_class", "compute_class"),
    ("jobs.acs.gpus", "gpus"),
];

impl RequestPlaces {
    /// A line that somebody wrote.
    pub(super) fn of_line(
        name: &str,
        line: &str,
        places: BTreeMap<String, Range<usize>>,
    ) -> RequestPlaces {
        RequestPlaces::in_line(source_from_text(name, line.to_owned()), places)
    }

    /// A command line, put together of its options: what each is about, and the words of it.
    pub fn of_options<'a>(
        command: &str,
        options: impl IntoIterator<Item = (&'a str, String)>,
    ) -> RequestPlaces {
        let (mut text, mut places) = (command.to_owned(), BTreeMap::new());
        for (path, option) in options {
            text.push(' ');
            let start = text.len();
            text.push_str(&railwright_base::text::clean_line(&option));
            places.insert(path.to_owned(), start..text.len());
        }
        RequestPlaces::in_line(source_from_text("command line", text), places)
    }

    /// A workload of the spec. What it does not say itself is at its name, but for what the spec
    /// says of all pods on Container Compute Service.
    pub(super) fn of_spec(loaded: &LoadedSpec, index: usize) -> RequestPlaces {
        let workload = format!("workloads[{index}]");
        let mut places = BTreeMap::new();
        for (path, field) in FIELDS {
            let mut label = loaded.label(&format!("{workload}.{field}"), "");
            let is_of_all = path.starts_with("jobs.") && loaded.place(path).is_some();
            if label.is_none() && !is_of_all {
                label = loaded.label(&format!("{workload}.name"), "");
            }
            places.extend(label.map(|label| (path.to_owned(), label)));
        }
        if let Some(declared) = loaded.spec.workloads.get(index) {
            for name in declared.environment.keys() {
                let label = loaded.label(&format!("{workload}.environment[\"{name}\"]"), "");
                places.extend(label.map(|label| (format!("jobs.environment.{name}"), label)));
            }
        }
        RequestPlaces { line: None, places }
    }

    fn in_line(line: Arc<SourceText>, places: BTreeMap<String, Range<usize>>) -> RequestPlaces {
        let mut labels = BTreeMap::new();
        for (path, span) in places {
            let label = Label {
                file: line.name().to_owned(),
                span,
                text: String::new(),
            };
            labels.insert(path, label);
        }
        RequestPlaces {
            line: Some(line),
            places: labels,
        }
    }

    /// The line, for diagnostics that point into it; nothing where it stands in the spec.
    pub fn source(&self) -> Option<&Arc<SourceText>> {
        self.line.as_ref()
    }

    /// What to write, in the words of whoever asked: an option of the command line, or a field of
    /// the spec.
    pub(super) fn words<'w>(&self, option: &'w str, field: &'w str) -> &'w str {
        if self.line.is_some() { option } else { field }
    }

    /// An error for which nothing is made of a line; what is said of a spec has its own ending.
    pub(super) fn refused(&self, error: Diagnostic) -> Diagnostic {
        if self.line.is_some() {
            error.state("nothing was rendered")
        } else {
            error
        }
    }

    /// A caret at what is said of a path; nothing where nothing is.
    pub fn label(&self, path: &str, text: &str) -> Option<Label> {
        Some(Label {
            text: text.to_owned(),
            ..self.places.get(path)?.clone()
        })
    }

    /// A diagnostic with a caret at a path, as far as something is said of it.
    pub(super) fn at(&self, diagnostic: Diagnostic, path: &str, text: &str) -> Diagnostic {
        match self.label(path, text) {
            Some(label) => diagnostic.labelled(label),
            None => diagnostic,
        }
    }

    /// All places, as carets.
    pub(super) fn labels(&self) -> BTreeMap<String, Label> {
        self.places.clone()
    }
}

fn source_from_text(name: &str, text: String) -> Arc<SourceText> {
    Arc::new(SourceText::new(SourceFile {
        name: name.to_owned(),
        text,
    }))
}
