//! Why a command could not do its work: what is wrong, and the exit code.

use super::Exit;
use railwright_base::Diagnostic;
use railwright_knowledge::module::ModuleProblems;
use railwright_knowledge::spec::{Problems, Sources};
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::out;
use railwright_session::SessionError;

/// A command that ended early.
#[derive(Debug)]
pub struct CommandFailure {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong.
    pub error: SessionError,
}

impl CommandFailure {
    /// Refused before anything was changed.
    pub fn refused(diagnostics: Vec<Diagnostic>) -> Self {
        SessionError::refused(diagnostics).into()
    }

    /// Ended with this exit code.
    pub fn with_exit(exit: Exit, diagnostic: Diagnostic) -> Self {
        CommandFailure {
            exit,
            error: diagnostic.into(),
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
        self.error = self.error.with_sources(sources);
        self
    }

    /// Wrong files of the inventory, with what carets point into.
    pub fn of_input(diagnostics: Vec<Diagnostic>, sources: &Sources) -> Self {
        SessionError::of_input(diagnostics, sources).into()
    }

    /// Puts another failure before it.
    pub fn after(mut self, other: CommandFailure) -> Self {
        self.error = self
            .error
            .after(other.error.diagnostics, &other.error.sources);
        self
    }

    /// Shows it on stderr; the exit code comes back.
    pub fn show(&self) -> Exit {
        let error = &self.error;
        for diagnostics in [&error.warnings, &error.diagnostics] {
            print_diagnostics(diagnostics, &error.sources);
        }
        if error.is_input {
            out::print_note(
                "\n\
                 No host was asked or changed. `railwright explain CODE` tells more, `railwright \
                 validate` checks the files alone.",
            );
        }
        self.exit
    }
}

impl From<SessionError> for CommandFailure {
    fn from(error: SessionError) -> Self {
        let exit = if error.is_refused {
            Exit::Refused
        } else {
            Exit::Failed
        };
        CommandFailure { exit, error }
    }
}

impl From<Vec<Diagnostic>> for CommandFailure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        SessionError::from(diagnostics).into()
    }
}

impl From<Diagnostic> for CommandFailure {
    fn from(diagnostic: Diagnostic) -> Self {
        SessionError::from(diagnostic).into()
    }
}

impl From<Problems> for CommandFailure {
    fn from(problems: Problems) -> Self {
        SessionError::from(problems).into()
    }
}

impl From<ModuleProblems> for CommandFailure {
    fn from(problems: ModuleProblems) -> Self {
        SessionError::from(problems).into()
    }
}
