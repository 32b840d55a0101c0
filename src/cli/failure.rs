//! Why a command could not do its work: diagnostics with the files that they point into, and the
//! exit code.

use super::Exit;
use railwright_base::Diagnostic;
use railwright_knowledge::module::ModuleProblems;
use railwright_knowledge::spec::{Problems, Sources};
use railwright_report::diagnostic;
use railwright_report::out::{self, ScreenStyle};

/// A command that ended early.
#[derive(Debug)]
pub struct CommandFailure {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that carets point into.
    pub sources: Sources,
    /// The inventory's own files are wrong.
    pub input: bool,
}

impl CommandFailure {
    /// Refused before anything was changed.
    pub fn refused(diagnostics: Vec<Diagnostic>) -> Self {
        CommandFailure {
            exit: Exit::Refused,
            diagnostics,
            sources: Sources::default(),
            input: false,
        }
    }

    /// Somebody was to agree, and did not.
    pub fn nobody_said_yes() -> Self {
        CommandFailure::refused(vec![
            Diagnostic::error("RW1013", "nobody said yes")
                .state("nothing was changed")
                .next("answer `yes` at a terminal, or give --yes where there is none"),
        ])
    }

    /// Adds the files that carets of its diagnostics point into.
    pub fn with_sources(mut self, sources: &Sources) -> Self {
        self.sources = sources.clone();
        self
    }

    /// Wrong files of the inventory, with what carets point into.
    pub fn of_input(diagnostics: Vec<Diagnostic>, sources: &Sources) -> Self {
        CommandFailure {
            input: true,
            ..CommandFailure::from(diagnostics).with_sources(sources)
        }
    }

    /// Puts other errors, which may be the cause, before its own.
    pub fn after(mut self, others: Vec<Diagnostic>, sources: &Sources) -> Self {
        self.diagnostics.splice(0..0, others);
        self.sources.join(sources);
        self
    }

    /// Shows it on stderr; the exit code comes back.
    pub fn show(&self) -> Exit {
        out::print_note(&diagnostic::render_diagnostics(
            &self.diagnostics,
            &self.sources,
            ScreenStyle::of_stderr(),
        ));
        if self.input {
            out::print_note(
                "\n\
                 No host was asked or changed. `railwright explain CODE` tells more, `railwright \
                 validate` checks the files alone.",
            );
        }
        self.exit
    }
}

impl From<Vec<Diagnostic>> for CommandFailure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        CommandFailure {
            exit: Exit::Failed,
            diagnostics,
            sources: Sources::default(),
            input: false,
        }
    }
}

impl From<Diagnostic> for CommandFailure {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic].into()
    }
}

impl From<Problems> for CommandFailure {
    fn from(problems: Problems) -> Self {
        CommandFailure {
            exit: Exit::Failed,
            diagnostics: problems.diagnostics,
            sources: problems.sources,
            input: true,
        }
    }
}

impl From<ModuleProblems> for CommandFailure {
    fn from(problems: ModuleProblems) -> Self {
        CommandFailure {
            exit: Exit::Failed,
            diagnostics: problems.diagnostics,
            sources: problems.sources,
            input: true,
        }
    }
}
