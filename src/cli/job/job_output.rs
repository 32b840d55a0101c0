//! The output of `job run` as hosts send it: read for its proof, kept in a file, and printed.

use super::run::Common;
use super::run_end::{report_present_output, report_unwritten_output};
use crate::cli::CommandFailure;
use railwright_base::text::clean_line;
use railwright_report::out;
use railwright_system::append_file::AppendFile;
use railwright_system::files;
use railwright_verify::nccl::NcclLogDecoder;
use std::io;

/// The output of a job as it comes: read for its proof, kept in a file and printed, where either is
/// asked for.
pub(super) struct JobOutput<'a> {
    common: &'a Common,
    file: Option<AppendFile>,
    pub(super) decoder: NcclLogDecoder,
    /// The first error of writing the file, after which nothing more is written.
    pub(super) kept: io::Result<()>,
}

impl<'a> JobOutput<'a> {
    /// Refuses a file that is there: it may be the output of another day, or no file at all.
    pub(super) fn open(common: &'a Common) -> Result<Self, CommandFailure> {
        let mut file = None;
        if let Some(path) = &common.output {
            if files::is_present(path) {
                return Err(report_present_output(path).into());
            }
            let opened = AppendFile::open(path, Some(0));
            file = Some(opened.map_err(|error| report_unwritten_output(common, &error))?);
        }
        Ok(JobOutput {
            common,
            file,
            decoder: NcclLogDecoder::default(),
            kept: Ok(()),
        })
    }

    pub(super) fn take(&mut self, host: &str, text: &str) {
        self.decoder.feed(text.as_bytes());
        if let (Some(file), Ok(())) = (&mut self.file, &self.kept) {
            self.kept = file.append(text.as_bytes());
        }
        if !self.common.json {
            for line in text.lines() {
                out::print_result(&format!("{host} | {}\n", clean_line(line)));
            }
        }
    }
}

/// A file without a line is in the way of the same command, given again.
pub(super) fn remove_empty_output(common: &Common) -> Result<(), CommandFailure> {
    if let Some(path) = &common.output
        && files::is_empty(path)
    {
        files::remove_path(path).map_err(|error| report_unwritten_output(common, &error))?;
    }
    Ok(())
}
