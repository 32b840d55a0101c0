//! A file of this machine that one process at a time can hold. The kernel lets go of it when the
//! process dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct LockFile(File);

/// The lock, or what its holder wrote into it.
#[derive(Debug)]
pub enum LockAttempt {
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
        std::fs::metadata(&self.path)
            .is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode))
    }
}

impl LockFile {
    /// What tells whether this lock, taken at this path, still holds.
    pub fn token(&self, path: &Path) -> io::Result<LockToken> {
        let metadata = self.0.metadata()?;
        Ok(LockToken {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Takes the lock from the holder of this text: a new file in the place of the old one, which
    /// the old holder keeps and nobody else meets any more. Of two that do so at once one has it.
    pub fn take_over(path: &Path, holder: &str, from: &str) -> io::Result<LockAttempt> {
        let with = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let open = |path: &Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)
        };
        let mutex = open(&with(".mutex"))?;
        mutex.lock()?;
        let now = read_lock_text(&open(path)?)?;
        if now != from {
            return Ok(LockAttempt::Held(now));
        }
        let fresh = with(".new");
        let file = open(&fresh)?;
        file.lock()?;
        let lock = LockFile(file).of(holder)?;
        std::fs::rename(&fresh, path)?;
        Ok(LockAttempt::Taken(lock))
    }

    /// Takes the lock without waiting and writes the holder's text into the file.
    pub fn try_take(path: &Path, holder: &str) -> io::Result<LockAttempt> {
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            match file.try_lock() {
                Ok(()) => {
                    let lock = LockFile(file);
                    // Between opening and locking it another file may have come into its place.
                    if lock.token(path)?.holds() {
                        return lock.of(holder).map(LockAttempt::Taken);
                    }
                }
                Err(TryLockError::WouldBlock) => {
                    return Ok(LockAttempt::Held(read_lock_text(&file)?));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn of(mut self, holder: &str) -> io::Result<Self> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(holder.as_bytes())?;
        self.0.sync_data()?;
        Ok(self)
    }

    /// Whether some process holds the lock. The kernel cannot be asked that without taking it: it
    /// is shared for a moment, so this is for those alone who have a reason to ask.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match super::files::open_ordinary(path) {
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

fn read_lock_text(file: &File) -> io::Result<String> {
    let mut text = Vec::new();
    file.take(4096).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}
