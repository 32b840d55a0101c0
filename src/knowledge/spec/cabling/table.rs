//! From the text of the file to its lines, each with four fields and where they stand. The CSV
//! itself (RFC 4180) is read by `csv-core`, a line at a time: no name has a line end in it, so a
//! quote that is left open costs its own line only.

use super::{COLUMNS, Errors};
use crate::spec::source::SourceText;
use csv_core::ReadFieldResult;
use railwright_base::Diagnostic;
use railwright_base::text::format_count;
use std::ops::Range;

/// One field of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CablingField {
    /// Its bytes in the file, with its quotes.
    pub span: Range<usize>,
    /// What it says, without quotes and blanks around it.
    pub text: String,
}

/// A line with a cable or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CablingRow {
    /// Its number, from 1.
    pub line: u32,
    /// `host`, `nic`, `switch`, `port`.
    pub fields: [CablingField; 4],
}

/// What a file begins with that a spreadsheet has written.
const MARK: char = '\u{feff}';

/// The lines below the header; empty lines and those that begin with `#` are left out.
pub fn parse_table_rows(source: &SourceText, errors: &mut Errors) -> Vec<CablingRow> {
    let mut rows = Vec::new();
    let mut header = false;
    for number in 0..source.line_count() {
        let mut span = source.line_span(number);
        if number == 0 && source.text()[span.clone()].starts_with(MARK) {
            span.start += MARK.len_utf8();
        }
        let line = &source.text()[span.clone()];
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if errors.is_full() {
            return rows;
        }
        let fields = parse_line_fields(line, span.start);
        match is_header(&fields) {
            false if !header => {
                errors.add(new_missing_header_error(source, span, line));
                return rows;
            }
            _ if !header => header = true,
            _ => match build_table_row(source, number, &span, fields) {
                Ok(row) => rows.push(row),
                Err(error) => errors.add(*error),
            },
        }
    }
    if !header {
        errors.add(new_missing_header_error(source, 0..0, ""));
    }
    rows
}

fn is_header(fields: &[CablingField]) -> bool {
    fields.iter().map(|field| field.text.as_str()).eq(COLUMNS)
}

fn new_missing_header_error(source: &SourceText, span: Range<usize>, line: &str) -> Diagnostic {
    let label = match () {
        () if line.is_empty() => "the file has no line of a table",
        () if line.contains(';') || line.contains('\t') => "fields are parted by commas",
        () => "not this header",
    };
    Diagnostic::error(
        "RW0149",
        "the table does not begin with `host,nic,switch,port`",
    )
    .at(source.name(), span, label)
    .effect("which field is the host and which the switch would be guessed")
    .next(
        "write the header `host,nic,switch,port` in a line of its own; lines that begin with `#` \
         are comments",
    )
}

fn build_table_row(
    source: &SourceText,
    number: usize,
    span: &Range<usize>,
    fields: Vec<CablingField>,
) -> Result<CablingRow, Box<Diagnostic>> {
    let line = &source.text()[span.clone()];
    let mut characters = line.char_indices();
    if let Some((at, c)) = characters.find(|(_, c)| c.is_control() && *c != '\t') {
        let at = span.start + at;
        let message = "a line has a control character";
        let error =
            Diagnostic::error("RW0149", message).at(source.name(), at..at + c.len_utf8(), "here");
        return Err(with_line_effect(error, "save the file as plain text"));
    }
    if let Some(field) = fields.iter().find(|field| has_open_quote(source, field)) {
        let error = Diagnostic::error("RW0149", "a quote is not closed").at(
            source.name(),
            field.span.clone(),
            "opened here",
        );
        return Err(with_line_effect(error, "close it, in the same line"));
    }
    let count = fields.len();
    let Ok(fields) = <[CablingField; 4]>::try_from(fields) else {
        return Err(new_field_count_error(source, span, count));
    };
    let mut named_fields = COLUMNS.iter().zip(&fields);
    if let Some((name, field)) = named_fields.find(|(_, field)| field.text.is_empty()) {
        let error = Diagnostic::error("RW0149", format!("the {name} is empty")).at(
            source.name(),
            field.span.clone(),
            "nothing stands here",
        );
        return Err(with_line_effect(error, "write it, or remove the line"));
    }
    Ok(CablingRow {
        line: number as u32 + 1,
        fields,
    })
}

fn has_open_quote(source: &SourceText, field: &CablingField) -> bool {
    let raw = &source.text()[field.span.clone()];
    raw.starts_with('"') && (raw.len() < 2 || !raw.ends_with('"'))
}

fn new_field_count_error(
    source: &SourceText,
    span: &Range<usize>,
    count: usize,
) -> Box<Diagnostic> {
    let line = &source.text()[span.clone()];
    let next = if line.contains('[') && !line.contains('"') {
        "a field with a comma in its brackets has quotes: \
         \"gpu[01,03]\",ens0f0np0,leaf1,\"Ethernet[0,8]\""
    } else {
        "write host, NIC, switch and port"
    };
    let message = format!("the line has {} and not 4", format_count(count, "field"));
    let error = Diagnostic::error("RW0149", message);
    with_line_effect(error.at(source.name(), span.clone(), "this line"), next)
}

fn with_line_effect(error: Diagnostic, next: &str) -> Box<Diagnostic> {
    let error = error.effect("this line says of no NIC where it is plugged in");
    Box::new(error.next(next))
}

/// The fields of a line that begins at this byte of the file.
fn parse_line_fields(line: &str, begin: usize) -> Vec<CablingField> {
    let mut reader = csv_core::Reader::new();
    let mut text = vec![0; line.len() + 1];
    let mut fields = Vec::new();
    let (mut read, mut field_begin, mut written) = (0, 0, 0);
    loop {
        let (result, taken, put) =
            reader.read_field(&line.as_bytes()[read..], &mut text[written..]);
        (read, written) = (read + taken, written + put);
        match result {
            // Asked once more, with nothing left to read: that ends the field.
            ReadFieldResult::InputEmpty => {}
            ReadFieldResult::Field { record_end } => {
                let end = if record_end { read } else { read - 1 };
                fields.push(build_trimmed_field(
                    line,
                    begin,
                    field_begin..end,
                    &text[..written],
                ));
                (field_begin, written) = (read, 0);
                if record_end {
                    return fields;
                }
            }
            ReadFieldResult::OutputFull | ReadFieldResult::End => return fields,
        }
    }
}

fn build_trimmed_field(line: &str, begin: usize, range: Range<usize>, text: &[u8]) -> CablingField {
    let raw = &line[range.clone()];
    let start = range.start + (raw.len() - raw.trim_start().len());
    let end = (start + raw.trim().len()).max(start);
    CablingField {
        span: begin + start..begin + end,
        text: String::from_utf8_lossy(text).trim().to_owned(),
    }
}
