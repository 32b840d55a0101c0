//! A file of this machine that one process at a time can hold. The kernel lets go of it when the
//! process dies.

use super::clock;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a lock is not taken over while its holder writes, in looks and milliseconds between two
/// of them. A write takes a moment, unless the process is stopped in the middle of it.
const WRITE_LOOKS: u32 = 100;
const WRITE_LOOK_MS: u64 = 50;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    is_released: Arc<AtomicBool>,
}

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
    is_released: Arc<AtomicBool>,
}

impl LockToken {
    /// False once the lock was let go or taken over, or somebody removed its file.
    fn holds(&self) -> bool {
        !self.is_released.load(Ordering::Acquire)
            && std::fs::metadata(&self.path)
                .is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode))
    }

    /// Writes while the lock holds: nobody takes it over before the end of it. Nothing is written,
    /// and nothing returned, where it does not hold any more.
    ///
    /// # Errors
    ///
    /// When it could not be made sure of.
    pub fn while_held<T>(&self, write: impl FnOnce() -> T) -> io::Result<Option<T>> {
        // Another folder that was put into the place of ours stays as it is.
        if !self.holds() {
            return Ok(None);
        }
        let mutex = open_file(&beside(&self.path, ".mutex"))?;
        mutex.lock_shared()?;
        Ok(self.holds().then(write))
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

impl LockFile {
    fn new(file: File) -> Self {
        LockFile {
            file,
            is_released: Arc::default(),
        }
    }

    /// What tells whether this lock, taken at this path, still holds.
    pub fn token(&self, path: &Path) -> io::Result<LockToken> {
        let metadata = self.file.metadata()?;
        Ok(LockToken {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            is_released: self.is_released.clone(),
        })
    }

    /// Takes the lock from the holder of this text: a new file in the place of the old one, which
    /// the old holder keeps and nobody else meets any more. Of two that do so at once one has it. A
    /// holder that is in the middle of a write, stopped there for seconds, keeps it.
    pub fn take_over(path: &Path, holder: &str, from: &str) -> io::Result<LockAttempt> {
        let mutex = open_file(&beside(path, ".mutex"))?;
        let is_ours = lock_patiently(&mutex)?;
        let now = read_lock_text(&open_file(path)?)?;
        if !is_ours || now != from {
            return Ok(LockAttempt::Held(now));
        }
        let fresh = beside(path, ".new");
        let file = open_file(&fresh)?;
        file.lock()?;
        let lock = LockFile::new(file).of(holder)?;
        std::fs::rename(&fresh, path)?;
        Ok(LockAttempt::Taken(lock))
    }

    /// Takes the lock without waiting and writes the holder's text into the file.
    pub fn try_take(path: &Path, holder: &str) -> io::Result<LockAttempt> {
        loop {
            let file = open_file(path)?;
            match file.try_lock() {
                Ok(()) => {
                    let lock = LockFile::new(file);
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
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(holder.as_bytes())?;
        self.file.sync_data()?;
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

/// False where others had it for all that time.
fn lock_patiently(mutex: &File) -> io::Result<bool> {
    for _ in 0..WRITE_LOOKS {
        match mutex.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => clock::block_for(WRITE_LOOK_MS),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

fn read_lock_text(file: &File) -> io::Result<String> {
    let mut text = Vec::new();
    file.take(4096).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

impl Drop for LockFile {
    fn drop(&mut self) {
        self.is_released.store(true, Ordering::Release);
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}
