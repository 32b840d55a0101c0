//! `railwright validate INVENTORY`: one line, or every error of the files with a caret.

use super::{Exit, inventory};
use crate::base::nodeset::fold;
use crate::base::{Diagnostic, Severity};
use crate::report::diagnostic;
use crate::report::out::{self, Look};
use crate::spec::Sources;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Check an inventory: one line, or every error of its files
#[derive(Debug, clap::Args)]
pub struct Validate {
    /// The folder that holds the spec
    inventory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads the inventory and says what is wrong with it.
pub fn run(arguments: &Validate) -> Exit {
    match inventory::read(&arguments.inventory) {
        Ok(read) => {
            if arguments.json {
                out::print(&json_text(&read.path, &read.warnings, &read.loaded.sources, summary_json(&read)));
            } else {
                if !read.warnings.is_empty() {
                    out::note(&diagnostic::text(&read.warnings, &read.loaded.sources, Look::of_stderr()));
                }
                out::print(&format!("{}: valid. {}", read.path, summary(&read)));
            }
            Exit::Done
        }
        Err(problems) => {
            let shown = arguments.inventory.display().to_string();
            if arguments.json {
                out::print(&json_text(&shown, &problems.diagnostics, &problems.sources, Value::Null));
            } else {
                out::print(&diagnostic::text(&problems.diagnostics, &problems.sources, Look::of_stdout()));
                out::print(&format!("\n{shown}: not valid. {}", count(&problems.diagnostics)));
            }
            Exit::Failed
        }
    }
}

fn summary(read: &inventory::Inventory) -> String {
    let loaded = &read.loaded;
    let names: Vec<&str> = loaded.hosts.iter().map(|host| host.name.as_str()).collect();
    let rails: usize = loaded.hosts.iter().map(|host| host.netdevs.len()).sum();
    let hosts = match names.len() {
        0 => "no hosts".to_owned(),
        count => format!("{} ({})", counted(count, "host"), crate::base::text::one_line(&fold(&names), 60)),
    };
    let fabric = serde_json::to_value(loaded.spec.fabric.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    format!("Cluster {}, fabric {fabric}, {hosts}, {}.", loaded.spec.cluster, counted(rails, "rail"))
}

fn summary_json(read: &inventory::Inventory) -> Value {
    json!({
        "cluster": read.loaded.spec.cluster,
        "hosts": read.loaded.hosts.iter().map(|host| &host.name).collect::<Vec<_>>(),
        "digest": read.loaded.digest,
        "origin": read.origin,
    })
}

fn json_text(inventory: &str, diagnostics: &[Diagnostic], sources: &Sources, spec: Value) -> String {
    let document = json!({
        "format_version": diagnostic::FORMAT_VERSION,
        "inventory": inventory,
        "valid": !spec.is_null(),
        "spec": spec,
        "diagnostics": diagnostic::json(diagnostics, sources),
    });
    format!("{document:#}")
}

fn count(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    let warnings = diagnostics.len() - errors;
    let warned = if warnings > 0 { format!(", {}", counted(warnings, "warning")) } else { String::new() };
    format!("{}{warned}. `railwright explain CODE` tells more.", counted(errors, "error"))
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
