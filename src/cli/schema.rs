//! `railwright schema`: the JSON Schema of the spec, for editors, and of everything that is printed as JSON.

use super::{Exit, Failure};
use railwright_base::{Diagnostic, suggest};
use railwright_report::{document, out};

/// Print the JSON Schema of the spec, for editors, or of a document that is printed as JSON
#[derive(Debug, clap::Args)]
pub struct Schema {
    #[arg(default_value = "spec", help = names().collect::<Vec<_>>().join(", "))]
    document: String,
}

/// Prints it.
pub fn run(arguments: &Schema) -> Result<Exit, Failure> {
    let name = arguments.document.as_str();
    let schema = if name == "spec" { Some(railwright_knowledge::spec::schema::schema()) } else { document::schema(name) };
    match schema {
        Some(schema) => out::print(&schema),
        None => return Err(unknown(name).into()),
    }
    Ok(Exit::Done)
}

/// Every name, the spec's first.
fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("spec").chain(document::names())
}

fn unknown(name: &str) -> Diagnostic {
    let near = suggest::nearest(name, names()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Diagnostic::error("RW1017", format!("there is no document `{}`{near}", railwright_base::text::one_line(name, 40)))
        .next(format!("railwright schema NAME, where NAME is one of: {}", names().collect::<Vec<_>>().join(", ")))
}
