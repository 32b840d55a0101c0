//! What was asked for, as a text with the place of each word: carets of what does not stand in a file point here.

use crate::base::{Diagnostic, Label};
use crate::spec::{Source, SourceFile};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A line with the places of what it says, by path: `job.image`, `jobs.environment.NCCL_IB_TC`.
#[derive(Debug, Clone)]
pub struct Asked {
    source: Arc<Source>,
    places: BTreeMap<String, Range<usize>>,
}

impl Asked {
    /// A line that somebody wrote.
    pub(super) fn of_line(name: &str, line: &str, places: BTreeMap<String, Range<usize>>) -> Asked {
        Asked { source: source(name, line.to_owned()), places }
    }

    /// A command line, put together of its options: what each is about, and the words of it.
    pub fn of_options<'a>(command: &str, options: impl IntoIterator<Item = (&'a str, String)>) -> Asked {
        let (mut text, mut places) = (command.to_owned(), BTreeMap::new());
        for (path, option) in options {
            text.push(' ');
            let start = text.len();
            text.push_str(&crate::base::text::clean_line(&option));
            places.insert(path.to_owned(), start..text.len());
        }
        Asked { source: source("command line", text), places }
    }

    /// The line, for diagnostics that point into it.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// A caret at what is said of a path; nothing where nothing is.
    pub fn label(&self, path: &str, text: &str) -> Option<Label> {
        let span = self.places.get(path)?.clone();
        Some(Label { file: self.source.name().to_owned(), span, text: text.to_owned() })
    }

    /// A diagnostic with a caret at a path, as far as something is said of it.
    pub(super) fn at(&self, diagnostic: Diagnostic, path: &str, text: &str) -> Diagnostic {
        self.label(path, text).into_iter().fold(diagnostic, Diagnostic::labelled)
    }

    /// All places, as carets.
    pub(super) fn labels(&self) -> BTreeMap<String, Label> {
        self.places.keys().filter_map(|path| Some((path.clone(), self.label(path, "")?))).collect()
    }
}

fn source(name: &str, text: String) -> Arc<Source> {
    Arc::new(Source::new(SourceFile { name: name.to_owned(), text }))
}
