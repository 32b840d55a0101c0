//! A file of this machine that one process at a time can hold. The kernel lets go of it when the process dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct LockFile(File);

/// The lock, or what its holder wrote into it.
#[derive(Debug)]
pub enum Tried {
    /// It is ours.
    Taken(LockFile),
    /// Another process holds it; this is the text that it wrote, at most 4096 bytes.
    Held(String),
}

/// By which a holder finds out whether its lock is still the one that others meet.
#[derive(Debug, Clone)]
pub struct LockToken {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl LockToken {
    /// False once the lock was taken over, or somebody removed its file.
    pub fn holds(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode))
    }
}

impl LockFile {
    /// What tells whether this lock, taken at this path, still holds.
    pub fn token(&self, path: &Path) -> io::Result<LockToken> {
        let metadata = self.0.metadata()?;
        Ok(LockToken { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// Puts a new file in the place of the lock's: its holder keeps the old one, which nobody else meets any more.
    pub fn take_away(path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    /// Takes the lock without waiting and writes the holder's text into the file.
    pub fn try_take(path: &Path, holder: &str) -> io::Result<Tried> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(holder.as_bytes())?;
                file.sync_data()?;
                Ok(Tried::Taken(LockFile(file)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                file.take(4096).read_to_end(&mut text)?;
                Ok(Tried::Held(String::from_utf8_lossy(&text).into_owned()))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether some process holds the lock. The kernel cannot be asked that without taking it: it is shared for a moment,
    /// so this is for those alone who have a reason to ask.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}
