//! From a line to its cables: fields that stand for several names count together, a field with one
//! name is the same for all.

use super::table::{CablingField, CablingRow};
use super::{CABLES_MAX, COLUMNS, Cable, CableEnd, Errors};
use crate::spec::source::SourceText;
use railwright_base::nodeset::{self, NodeSetError};
use railwright_base::text::format_count;
use railwright_base::{Diagnostic, Label};
use std::ops::Range;

/// A line with its cables, and where its fields stand.
pub struct CablingLine {
    /// Its number, from 1.
    pub number: u32,
    /// The cables.
    pub cables: Vec<Cable>,
    /// `host`, `nic`, `switch`, `port`.
    pub spans: [Range<usize>; 4],
}

/// The lines with their cables; what cannot be unfolded is left out.
pub fn expand_cabling_rows(
    source: &SourceText,
    rows: &[CablingRow],
    errors: &mut Errors,
) -> Vec<CablingLine> {
    let mut lines: Vec<CablingLine> = Vec::new();
    let mut cables = 0;
    for row in rows {
        if errors.is_full() {
            break;
        }
        match expand_cabling_row(source, row) {
            Ok(line) => {
                cables += line.cables.len();
                if cables > CABLES_MAX {
                    errors.add(too_many(source, row));
                    break;
                }
                lines.push(line);
            }
            Err(error) => errors.add(*error),
        }
    }
    lines
}

fn too_many(source: &SourceText, row: &CablingRow) -> Diagnostic {
    Diagnostic::error(
        "RW0149",
        format!("the file has more than {CABLES_MAX} cables"),
    )
    .at(
        source.name(),
        row.fields[0].span.clone(),
        "the limit is passed here",
    )
    .effect("cabling of this size was never tried")
    .next("split the cluster into several inventories")
}

fn expand_cabling_row(
    source: &SourceText,
    row: &CablingRow,
) -> Result<CablingLine, Box<Diagnostic>> {
    let [host, nic, switch, port] = &row.fields;
    let named = |field: &CablingField,
                 column: &str,
                 expand: fn(&str) -> Result<Vec<String>, NodeSetError>| {
        expand(&field.text).map_err(|problem| Box::new(no_names(source, field, column, problem)))
    };
    let names = [
        named(host, COLUMNS[0], nodeset::expand_node_set)?,
        named(nic, COLUMNS[1], nodeset::expand_ports)?,
        named(switch, COLUMNS[2], nodeset::expand_node_set)?,
        named(port, COLUMNS[3], nodeset::expand_ports)?,
    ];
    let count = names.iter().map(Vec::len).max().unwrap_or(0);
    if names
        .iter()
        .any(|names| names.len() != 1 && names.len() != count)
    {
        return Err(Box::new(no_count(source, row, &names)));
    }
    let at = |column: usize, place: usize| {
        names[column][if names[column].len() == 1 { 0 } else { place }].clone()
    };
    let cable = |place: usize| Cable {
        from: CableEnd {
            device: at(0, place),
            port: at(1, place),
        },
        to: CableEnd {
            device: at(2, place),
            port: at(3, place),
        },
        line: row.line,
    };
    Ok(CablingLine {
        number: row.line,
        cables: (0..count).map(cable).collect(),
        spans: row.fields.each_ref().map(|field| field.span.clone()),
    })
}

fn no_names(
    source: &SourceText,
    field: &CablingField,
    column: &str,
    problem: NodeSetError,
) -> Diagnostic {
    // Bytes of the text are bytes of the file only where no quote was taken out.
    let is_plain = source.text()[field.span.clone()] == field.text;
    let span = if is_plain {
        field.span.start + problem.span.start..field.span.start + problem.span.end
    } else {
        field.span.clone()
    };
    let fix = problem.fix.unwrap_or_else(|| {
        "a field is a name, or a node-set such as `gpu[01-16]` or `Ethernet[0-60/4]`".to_owned()
    });
    Diagnostic::error("RW0150", format!("the {column} cannot be unfolded"))
        .at(source.name(), span, problem.message)
        .effect("this line says of no NIC where it is plugged in")
        .next(fix)
}

/// Every field that stands for several names, with how many.
fn no_count(source: &SourceText, row: &CablingRow, names: &[Vec<String>; 4]) -> Diagnostic {
    let several = row
        .fields
        .iter()
        .zip(names)
        .filter(|(_, names)| names.len() > 1);
    let labels = several.map(|(field, names)| Label {
        file: source.name().to_owned(),
        span: field.span.clone(),
        text: format_count(names.len(), "name"),
    });
    let error = Diagnostic::error("RW0151", "the fields of a line do not count alike")
        .effect("nobody can tell which NIC belongs in which port")
        .next(
            "give them the same count, or write a line for each cable; a field with one name is \
             the same for all",
        );
    labels.fold(error, Diagnostic::labelled)
}
