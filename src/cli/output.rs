//! Where a command writes its result: looked at before anybody is asked, and another place where
//! that one fails after all.

use super::CommandFailure;
use railwright_base::Diagnostic;
use railwright_report as report;
use railwright_session::describe_file_error;
use railwright_system::files;
use std::io;
use std::path::{Path, PathBuf};

/// Refuses files that cannot be written, before the work whose result they are to hold.
pub fn can_be_written<'f>(
    all: impl IntoIterator<Item = &'f PathBuf>,
) -> Result<(), CommandFailure> {
    for file in all {
        files::can_write(file).map_err(|error| report_unwritable_place(file, &error))?;
    }
    Ok(())
}

fn report_unwritable_place(file: &Path, error: &io::Error) -> Diagnostic {
    let state = "no host was contacted, and nothing was written";
    match error.kind() {
        io::ErrorKind::IsADirectory => {
            Diagnostic::error("RW1010", format!("{} is a folder", file.display()))
                .state(state)
                .next(format!(
                    "name a file in it: {}",
                    file.join("NAME").display()
                ))
        }
        _ => Diagnostic::error("RW1010", format!("{}: {error}", file.display()))
            .effect("what takes its time to find out would have no place")
            .state(state)
            .next("name a file in a folder that is there and may be written to"),
    }
}

/// Writes it. Where that fails after all it is kept in a folder of its own for temporary files, or
/// printed where there is none, so that what was found out is not lost.
pub fn write_output(file: &Path, text: &str, mode: u32) -> Result<(), CommandFailure> {
    let Err(error) = files::write_given(file, text.as_bytes(), mode) else {
        return Ok(());
    };
    let problem = describe_file_error(file, &error);
    let name = file.file_name().unwrap_or_default();
    let kept = files::temporary_folder("railwright-result").map(|folder| folder.join(name));
    let kept =
        kept.and_then(|kept| files::write_atomic(&kept, text.as_bytes(), mode).map(|()| kept));
    Err(match kept {
        Ok(kept) => problem.effect(format!(
            "what it was to hold is in {} instead",
            kept.display()
        )),
        Err(_) => {
            report::out::print_result(text);
            problem.effect("what it was to hold was printed instead")
        }
    }
    .into())
}
