//! Why an inventory did not get further: diagnostics with the files that they point into.

use railwright_base::Diagnostic;
use railwright_knowledge::module::ModuleProblems;
use railwright_knowledge::spec::{Problems, Sources};
use std::path::Path;

/// Work that ended early. Nothing was changed on any target.
#[derive(Debug, Clone, Default)]
pub struct SessionError {
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that carets point into.
    pub sources: Sources,
    /// What else looks wrong, to be shown before it.
    pub warnings: Vec<Diagnostic>,
    /// The inventory's own files are wrong.
    pub is_input: bool,
    /// Refused by a rule of ours; the input is right.
    pub is_refused: bool,
}

impl SessionError {
    /// Refused before anything was changed.
    pub fn refused(diagnostics: Vec<Diagnostic>) -> Self {
        SessionError {
            is_refused: true,
            ..SessionError::from(diagnostics)
        }
    }

    /// Wrong files of the inventory, with what carets point into.
    pub fn of_input(diagnostics: Vec<Diagnostic>, sources: &Sources) -> Self {
        SessionError {
            is_input: true,
            ..SessionError::from(diagnostics).with_sources(sources)
        }
    }

    /// Adds the files that carets of its diagnostics point into.
    pub fn with_sources(mut self, sources: &Sources) -> Self {
        self.sources = sources.clone();
        self
    }

    /// Puts other errors, which may be the cause, before its own.
    pub fn after(mut self, others: Vec<Diagnostic>, sources: &Sources) -> Self {
        self.diagnostics.splice(0..0, others);
        self.sources.join(sources);
        self
    }
}

impl From<Vec<Diagnostic>> for SessionError {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        SessionError {
            diagnostics,
            ..SessionError::default()
        }
    }
}

impl From<Diagnostic> for SessionError {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic].into()
    }
}

impl From<Problems> for SessionError {
    fn from(problems: Problems) -> Self {
        SessionError::of_input(problems.diagnostics, &problems.sources)
    }
}

impl From<ModuleProblems> for SessionError {
    fn from(problems: ModuleProblems) -> Self {
        SessionError::of_input(problems.diagnostics, &problems.sources)
    }
}

/// A file of this machine that cannot be read or written.
pub fn describe_file_error(file: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("RW1010", format!("{}: {error}", file.display()))
        .state("no target was changed")
        .next("check the path and its permissions")
}
