//! The cabling file: which port of which switch each NIC is plugged into, as a table
//! `host,nic,switch,port`. A line is a cable, or several that node-sets fold.
//!
//! `table` (bytes to fields with their places) -> `unfold` (a line to its cables) -> `check` (who
//! is named, and what is plugged in twice) -> `rails` (what is allowed and looks wrong). `write` is
//! the way back.

mod check;
mod rails;
mod table;
mod unfold;
pub mod write;

use super::load::{LoadedSpec, Problems};
use super::source::{SourceFile, SourceText};
use super::switches::take_ports;
use railwright_base::{Diagnostic, Severity};
use std::sync::Arc;

/// The most bytes of a cabling file.
pub const BYTES_MAX: u64 = 16 << 20;
/// The most cables: four times those of 10,000 hosts with eight rails.
const CABLES_MAX: usize = 320_000;
/// Beyond so many errors of one file the rest is not looked at: it is another file, or another
/// cluster's.
const ERRORS_MAX: usize = 100;

/// The header of the table.
pub const COLUMNS: [&str; 4] = ["host", "nic", "switch", "port"];

/// One end of a cable.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, schemars::JsonSchema,
)]
pub struct CableEnd {
    /// A host or a switch.
    pub device: String,
    /// The netdev of a host's NIC, or the port of a switch.
    pub port: String,
}

impl CableEnd {
    /// Of a device and a port.
    pub fn new(device: impl Into<String>, port: impl Into<String>) -> Self {
        CableEnd {
            device: device.into(),
            port: port.into(),
        }
    }
}

impl std::fmt::Display for CableEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.device, self.port)
    }
}

/// A cable, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cable {
    /// A host's NIC, or a port of a switch where the cable is between two switches.
    pub from: CableEnd,
    /// The port of the switch.
    pub to: CableEnd,
    /// The line of the file, from 1.
    pub line: u32,
}

/// The cables of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cabling {
    /// The file, as diagnostics call it.
    pub file: String,
    /// Its cables, in the order of the file.
    pub cables: Vec<Cable>,
}

/// The spec with the cabling file that it names; what is wrong with the file makes the spec wrong.
pub fn load_cabling(mut loaded: LoadedSpec, file: SourceFile) -> Result<LoadedSpec, Problems> {
    let source = Arc::new(SourceText::new(file));
    loaded.sources.add(Arc::clone(&source));
    let mut errors = Errors::default();
    let rows = table::parse_table_rows(&source, &mut errors);
    let lines = unfold::expand_cabling_rows(&source, &rows, &mut errors);
    let cables = check::check_cables(&loaded, &source, lines, &mut errors);
    if !errors.found.is_empty() {
        return Err(new_sorted_problems(loaded, errors.found));
    }
    let cabling = Cabling {
        file: source.name().to_owned(),
        cables,
    };
    let warnings = rails::find_cabling_warnings(&loaded, &source, &cabling.cables);
    loaded.warnings.extend(warnings);
    take_ports(&mut loaded.switches, &loaded.spec, &cabling);
    loaded.cabling = Some(cabling);
    Ok(loaded)
}

/// The file that the spec names could not be read at all.
pub fn report_unreadable_cabling(loaded: LoadedSpec, why: &str, next: &str) -> Problems {
    let named =
        railwright_base::text::one_line(loaded.spec.cabling.as_deref().unwrap_or_default(), 120);
    let finding = Diagnostic::error("RW0148", format!("the cabling file {named} {why}"))
        .effect("nobody can tell which NIC belongs in which port of a switch")
        .next(next);
    let finding = match loaded.label("cabling", "named here") {
        Some(label) => finding.labelled(label),
        None => finding,
    };
    new_sorted_problems(loaded, vec![finding])
}

/// In the order of the file.
fn new_sorted_problems(loaded: LoadedSpec, mut errors: Vec<Diagnostic>) -> Problems {
    errors.sort_by_key(|error| {
        error
            .labels
            .first()
            .map(|label| (label.file.clone(), label.span.start))
    });
    Problems {
        diagnostics: errors.into_iter().chain(loaded.warnings).collect(),
        sources: loaded.sources,
    }
}

/// Errors of one file, up to a limit.
#[derive(Debug, Default)]
struct Errors {
    found: Vec<Diagnostic>,
}

impl Errors {
    /// Adds one; the last says that there are more.
    fn add(&mut self, error: Diagnostic) {
        debug_assert_eq!(error.severity, Severity::Error);
        if self.found.len() < ERRORS_MAX {
            self.found.push(error);
        } else if self.found.len() == ERRORS_MAX {
            let label = error.labels.into_iter().next();
            let more = Diagnostic::error(
                "RW0149",
                format!("the file has more than {ERRORS_MAX} errors"),
            )
            .effect("what follows was not looked at")
            .next("fix the first of them; most have one cause");
            self.found.push(match label {
                Some(label) => more.labelled(railwright_base::Label {
                    text: "and so on from here".to_owned(),
                    ..label
                }),
                None => more,
            });
        }
    }

    /// No more can be added.
    fn is_full(&self) -> bool {
        self.found.len() > ERRORS_MAX
    }
}

#[cfg(test)]
mod tests;
