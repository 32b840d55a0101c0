//! `railwright schema`: the JSON Schema of the spec, for editors, and of everything that is printed
//! as JSON.

use super::{CommandFailure, Exit};
use railwright_base::{Diagnostic, suggest};
use railwright_report::{document, out};

/// Print the JSON Schema of the spec, for editors, or of a document that is printed as JSON
#[derive(Debug, clap::Args)]
pub struct Schema {
    #[arg(default_value = "spec", help = list_schema_names().collect::<Vec<_>>().join(", "))]
    document: String,
}

/// Prints it.
pub fn run(arguments: &Schema) -> Result<Exit, CommandFailure> {
    let name = arguments.document.as_str();
    let schema = if name == "spec" {
        Some(railwright_knowledge::spec::schema::render_spec_schema())
    } else {
        document::find_document_schema(name)
    };
    match schema {
        Some(schema) => out::print_result(&schema),
        None => return Err(report_unknown_document(name).into()),
    }
    Ok(Exit::Done)
}

/// Every name, the spec's first.
fn list_schema_names() -> impl Iterator<Item = &'static str> {
    std::iter::once("spec").chain(document::list_document_names())
}

fn report_unknown_document(name: &str) -> Diagnostic {
    let near = suggest::find_nearest_word(name, list_schema_names())
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Diagnostic::error(
        "RW1017",
        format!(
            "there is no document `{}`{near}",
            railwright_base::text::one_line(name, 40)
        ),
    )
    .next(format!(
        "railwright schema NAME, where NAME is one of: {}",
        list_schema_names().collect::<Vec<_>>().join(", ")
    ))
}
