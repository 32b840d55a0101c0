//! From a line to its cables: fields that stand for several names count together, a field with one
//! name is the same for all.

use super::table::{CablingField, CablingRow};
use super::{CABLES_MAX, COLUMNS, Cable, CableEnd, Errors};
use crate::spec::source::SourceText;
use railwright_base::Diagnostic;
use railwright_base::nodeset::{self, NodeSetError};
use railwright_base::text::format_count;
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
                    errors.add(new_too_many_cables_error(source, row));
                    break;
                }
                lines.push(line);
            }
            Err(error) => errors.add(*error),
        }
    }
    lines
}

fn new_too_many_cables_error(source: &SourceText, row: &CablingRow) -> Diagnostic {
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
    let names = [
        expand_field(source, host, COLUMNS[0], nodeset::expand_node_set)?,
        expand_field(source, nic, COLUMNS[1], nodeset::expand_ports)?,
        expand_field(source, switch, COLUMNS[2], nodeset::expand_node_set)?,
        expand_field(source, port, COLUMNS[3], nodeset::expand_ports)?,
    ];
    let count = names.iter().map(Vec::len).max().unwrap_or(0);
    if names
        .iter()
        .any(|names| names.len() != 1 && names.len() != count)
    {
        return Err(Box::new(new_count_error(source, row, &names)));
    }
    let mut cables = Vec::with_capacity(count);
    for place in 0..count {
        let [host, nic, switch, port] = names
            .each_ref()
            .map(|names| names[if names.len() == 1 { 0 } else { place }].clone());
        cables.push(Cable {
            from: CableEnd {
                device: host,
                port: nic,
            },
            to: CableEnd {
                device: switch,
                port,
            },
            line: row.line,
        });
    }
    Ok(CablingLine {
        number: row.line,
        cables,
        spans: row.fields.each_ref().map(|field| field.span.clone()),
    })
}

/// The names that a field stands for.
fn expand_field(
    source: &SourceText,
    field: &CablingField,
    column: &str,
    expand: fn(&str) -> Result<Vec<String>, NodeSetError>,
) -> Result<Vec<String>, Box<Diagnostic>> {
    let names = expand(&field.text);
    names.map_err(|problem| Box::new(new_expansion_error(source, field, column, problem)))
}

fn new_expansion_error(
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
fn new_count_error(source: &SourceText, row: &CablingRow, names: &[Vec<String>; 4]) -> Diagnostic {
    let mut error = Diagnostic::error("RW0151", "the fields of a line stand for different counts")
        .effect("nobody can tell which NIC belongs in which port")
        .next(
            "give them the same count, or write a line for each cable; a field with one name is \
             the same for all",
        );
    for (field, names) in row.fields.iter().zip(names) {
        if names.len() > 1 {
            let count = format_count(names.len(), "name");
            error = error.at(source.name(), field.span.clone(), count);
        }
    }
    error
}
