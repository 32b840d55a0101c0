//! The two streams: stdout carries the result, stderr everything else. A closed pipe is not an
//! error; a full disk is, and is remembered until the end of the command.

use railwright_system::{environment, terminal};
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

static FAILURE: OnceLock<String> = OnceLock::new();

/// Narrower than the first no text can be read, wider than the second no line.
const WIDTHS: (usize, usize) = (60, 120);

/// How a screen may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenStyle {
    /// With colours.
    pub color: bool,
    /// Columns that text is wrapped to.
    pub width: usize,
}

impl ScreenStyle {
    /// No colours, 100 columns: for files, pipes and tests.
    pub const PLAIN: ScreenStyle = ScreenStyle {
        color: false,
        width: 100,
    };

    /// For the result on stdout.
    pub fn of_stdout() -> ScreenStyle {
        ScreenStyle::on(io::stdout().is_terminal(), terminal::columns_of_stdout())
    }

    /// For everything else on stderr.
    pub fn of_stderr() -> ScreenStyle {
        ScreenStyle::on(io::stderr().is_terminal(), terminal::columns_of_stderr())
    }

    fn on(is_terminal: bool, columns: Option<usize>) -> ScreenStyle {
        let width = columns
            .filter(|_| is_terminal)
            .map_or(ScreenStyle::PLAIN.width, |columns| {
                columns.clamp(WIDTHS.0, WIDTHS.1)
            });
        ScreenStyle {
            color: may_color(is_terminal),
            width,
        }
    }
}

/// `NO_COLOR` set to anything but nothing turns colours off (no-color.org).
fn may_color(is_terminal: bool) -> bool {
    is_terminal
        && environment::read_variable("NO_COLOR").is_none()
        && environment::read_variable("TERM").as_deref() != Some("dumb")
}

/// Writes a part of the result to stdout and ends the line if the text does not.
pub fn print_result(text: &str) {
    write_terminated_text(&mut io::stdout().lock(), text);
}

/// Writes to stderr and ends the line if the text does not.
pub fn print_note(text: &str) {
    write_terminated_text(&mut io::stderr().lock(), text);
}

/// Writes to stderr as it is, without ending the line: for a line that is drawn again in place.
pub fn note_raw(text: &str) {
    let mut stream = io::stderr().lock();
    let _ = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
}

/// Why something could not be written, if so.
pub fn find_write_failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

fn write_terminated_text(stream: &mut impl Write, text: &str) {
    let end = if text.ends_with('\n') || text.is_empty() {
        ""
    } else {
        "\n"
    };
    let written = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.write_all(end.as_bytes()))
        .and_then(|()| stream.flush());
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // A second failure says nothing new.
        let _ = FAILURE.set(error.to_string());
    }
}
