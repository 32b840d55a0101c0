//! Why a command could not do its work: diagnostics with the files that they point into, and the exit code.

use super::Exit;
use railwright_base::Diagnostic;
use railwright_knowledge::module::ModuleProblems;
use railwright_knowledge::spec::{Problems, Sources};
use railwright_report::diagnostic;
use railwright_report::out::{self, Look};

/// A command that ended early.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that carets point into.
    pub sources: Sources,
    /// The inventory's own files are wrong.
    pub input: bool,
}

impl Failure {
    /// Refused before anything was changed.
    pub fn refused(diagnostics: Vec<Diagnostic>) -> Self {
        Failure { exit: Exit::Refused, diagnostics, sources: Sources::default(), input: false }
    }

    /// Somebody was to agree, and did not.
    pub fn nobody_said_yes() -> Self {
        Failure::refused(vec![
            Diagnostic::error("RW1013", "nobody said yes")
                .state("nothing was changed")
                .next("answer `yes` at a terminal, or give --yes where there is none"),
        ])
    }

    /// The same with files to point into.
    pub fn with_sources(mut self, sources: &Sources) -> Self {
        self.sources = sources.clone();
        self
    }

    /// Wrong files of the inventory, with what carets point into.
    pub fn of_input(diagnostics: Vec<Diagnostic>, sources: &Sources) -> Self {
        Failure { input: true, ..Failure::from(diagnostics).with_sources(sources) }
    }

    /// The same below other errors, which may be why.
    pub fn after(mut self, others: Vec<Diagnostic>, sources: &Sources) -> Self {
        self.diagnostics.splice(0..0, others);
        self.sources.join(sources);
        self
    }

    /// Shows it on stderr; the exit code comes back.
    pub fn show(&self) -> Exit {
        out::note(&diagnostic::text(&self.diagnostics, &self.sources, Look::of_stderr()));
        if self.input {
            out::note(
                "\nNo host was asked or changed. `railwright explain CODE` tells more, `railwright validate` checks the files alone.",
            );
        }
        self.exit
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Failure { exit: Exit::Failed, diagnostics, sources: Sources::default(), input: false }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic].into()
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Failure { exit: Exit::Failed, diagnostics: problems.diagnostics, sources: problems.sources, input: true }
    }
}

impl From<ModuleProblems> for Failure {
    fn from(problems: ModuleProblems) -> Self {
        Failure { exit: Exit::Failed, diagnostics: problems.diagnostics, sources: problems.sources, input: true }
    }
}
