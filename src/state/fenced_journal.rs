//! A journal that only the holder of the cluster's lock writes. A run that slept (a laptop's lid,
//! SIGSTOP) while its lock was taken over, or whose folder was removed or replaced, meets it before
//! its next intent: nothing is done in the name of a record that could not be written.

use super::journal_writer::JournalStore;
use railwright_system::lock_file::LockToken;
use std::io;

/// The file of the lock is another one by now, or none: which of these it was cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's lock was taken over, or the state folder was removed or replaced")]
pub struct LockTakenOver;

/// A store that is written while the lock is held.
pub struct FencedJournalStore {
    store: Box<dyn JournalStore>,
    token: LockToken,
}

impl FencedJournalStore {
    /// Guards a store.
    pub fn new(store: Box<dyn JournalStore>, token: LockToken) -> Self {
        FencedJournalStore { store, token }
    }
}

impl JournalStore for FencedJournalStore {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.token.holds() {
            return Err(io::Error::other(LockTakenOver));
        }
        self.store.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.store.sync()
    }
}
