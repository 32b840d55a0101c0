//! What went wrong, for the person on call at night: what, where, what it means for the fabric,
//! the state that things are in now, and what to run next. One value, many renderings (text, JSON).

use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing goes on until this is fixed.
    Error,
    /// Work goes on; somebody should know.
    Warning,
}

/// A stretch of a file that is shown with a caret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The file's name, a key of the sources that the renderer is given.
    pub file: String,
    /// Bytes from the start of the file.
    pub span: Range<usize>,
    /// What is to be said at the caret.
    pub text: String,
}

/// One finding about the input, a target or a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// A stable code of `docs/codes`, such as `RW0101`; `railwright explain CODE` tells the rest.
    pub code: Cow<'static, str>,
    /// Error or warning.
    pub severity: Severity,
    /// One sentence in lower case, without a full stop.
    pub message: String,
    /// Carets; the first is the primary one.
    pub labels: Vec<Label>,
    /// Target and step, where there is no file: `host/gpu-001, step reboot`.
    pub subject: Option<String>,
    /// What it means for the fabric.
    pub effect: Option<String>,
    /// The state that things are in now.
    pub state: Option<String>,
    /// Edits or commands that go on from here.
    pub next: Vec<String>,
    /// Where the fact behind it is said: a page, a thread, a file of somebody's repository.
    pub source: Option<String>,
}

impl Diagnostic {
    /// An error with nothing but its code and message yet.
    pub fn error(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Diagnostic {
            code: code.into(),
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            subject: None,
            effect: None,
            state: None,
            next: Vec::new(),
            source: None,
        }
    }

    /// A warning without a place, an effect or a next step yet.
    pub fn warning(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    /// Adds a caret.
    pub fn at(self, file: impl Into<String>, span: Range<usize>, text: impl Into<String>) -> Self {
        self.labelled(Label {
            file: file.into(),
            span,
            text: text.into(),
        })
    }

    /// Adds a caret that was made elsewhere.
    pub fn labelled(mut self, label: Label) -> Self {
        self.labels.push(label);
        self
    }

    /// Names the target and step.
    pub fn on(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Says what it means for the fabric.
    pub fn effect(mut self, text: impl Into<String>) -> Self {
        self.effect = Some(text.into());
        self
    }

    /// Says what state things are in now.
    pub fn state(mut self, text: impl Into<String>) -> Self {
        self.state = Some(text.into());
        self
    }

    /// Adds the next command or edit.
    pub fn next(mut self, text: impl Into<String>) -> Self {
        self.next.push(text.into());
        self
    }
}
