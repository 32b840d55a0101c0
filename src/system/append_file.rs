//! A file that only grows: the journal's ground.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// An open file, 0600, written at its end.
#[derive(Debug)]
pub struct AppendFile(File);

impl AppendFile {
    /// Opens or creates the file; with `keep` it is first cut to that many bytes, so that a torn
    /// end goes away.
    pub fn open(path: &Path, keep: Option<u64>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        if let Some(length) = keep {
            file.set_len(length)?;
        }
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(AppendFile(file))
    }

    /// Writes at the end; not yet durable.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Makes all that was written durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
