//! What a template may make: so much and no more, also on the way. Filters that lengthen a text
//! look before they do; what is written goes into a buffer with an end. That no text is made longer
//! turn after turn is for `growth`.

use super::work;
use std::io::{self, Write};
use tera::{Error, Kwargs, State, TeraResult, Value};

/// The most bytes of one text, made or on the way: a file of a host is a thousandth of it.
pub const TEXT_MAX: usize = 8 << 20;

/// What is said of more; by these words the error is known again behind Tera's.
pub const TOO_MUCH: &str = "this makes more than 8 MiB of text";

/// The text, unless it is too long.
pub fn limit_text_length(text: String) -> TeraResult<String> {
    work::charge_text(&text)?;
    Ok(text)
}

fn not_longer(text: String) -> TeraResult<String> {
    if text.len() > TEXT_MAX {
        Err(Error::message(TOO_MUCH))
    } else {
        Ok(text)
    }
}

fn expect_text(value: &Value) -> TeraResult<&str> {
    value
        .as_str()
        .ok_or_else(|| Error::message("this filter takes text"))
}

/// Tera's `replace`, which would do it first and look at nothing.
pub fn replace_in_text(value: Value, arguments: Kwargs, _: &State) -> TeraResult<String> {
    let (value, from, to) = (
        expect_text(&value)?,
        arguments.must_get::<String>("from")?,
        arguments.must_get::<String>("to")?,
    );
    work::charge_text(&from)?;
    work::charge_text(&to)?;
    let longer = value
        .matches(from.as_str())
        .count()
        .saturating_mul(to.len().saturating_sub(from.len()));
    if value.len().saturating_add(longer) > TEXT_MAX {
        return Err(Error::message(TOO_MUCH));
    }
    work::charge_units((value.len() / 8) as u64)?;
    limit_text_length(value.replace(&from, &to))
}

/// Tera's `join`.
pub fn join_list_items(value: Value, arguments: Kwargs, _: &State) -> TeraResult<String> {
    let items = value
        .as_array()
        .ok_or_else(|| Error::message("this filter takes a list"))?;
    let between = arguments.get::<String>("sep")?.unwrap_or_default();
    work::charge_text(&between)?;
    let mut out = String::new();
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push_str(&between);
        }
        out.push_str(&item.to_string());
        out = not_longer(out)?;
    }
    limit_text_length(out)
}

/// Tera's `indent`: all lines but the first and the empty ones, unless it is told otherwise.
pub fn indent_text(value: Value, arguments: Kwargs, _: &State) -> TeraResult<String> {
    let (first, blank) = (
        arguments.get::<bool>("first")?.unwrap_or(false),
        arguments.get::<bool>("blank")?.unwrap_or(false),
    );
    let width = arguments.get::<usize>("width")?.unwrap_or(4).min(1000);
    let indentation = arguments
        .get::<String>("indentation")?
        .unwrap_or_else(|| " ".to_owned());
    if indentation.chars().count() != 1 {
        return Err(Error::message(
            "The `indentation` argument must contain exactly one character",
        ));
    }
    let (value, indentation) = (expect_text(&value)?, indentation.repeat(width));
    let mut out = String::new();
    for (n, line) in value.lines().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        if if n == 0 {
            first
        } else {
            blank || !line.is_empty()
        } {
            out.push_str(&indentation);
        }
        out.push_str(line);
        out = not_longer(out)?;
    }
    if value.ends_with('\n') {
        out.push('\n');
    }
    limit_text_length(out)
}

/// Where a template is written to.
#[derive(Debug, Default)]
pub struct TemplateOutputBuffer {
    bytes: Vec<u8>,
    /// There was more than a text may have.
    pub is_over: bool,
}

impl TemplateOutputBuffer {
    /// Charges for all that was written: an output without filter or operator is charged for
    /// nothing else.
    pub fn charge(&self) -> TeraResult<()> {
        work::charge_units(self.bytes.len() as u64 / work::BYTES_A_UNIT)
    }

    /// What was written.
    pub fn text(self) -> String {
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl Write for TemplateOutputBuffer {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > TEXT_MAX {
            self.is_over = true;
            return Err(io::Error::other(TOO_MUCH));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
