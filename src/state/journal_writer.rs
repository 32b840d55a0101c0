//! Writes a journal. One thread owns the file: whoever appends at the same time shares one sync
//! (group commit), so an intent costs a fraction of a disk write when many hosts are worked on. In
//! a runtime of one thread nobody appends at the same time, and whoever appends writes by itself: a
//! run in virtual time then goes the same way every time.

use super::fenced_folder::LockTakenOver;
use super::journal::{Chain, JournalEntry};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_system::append_file::AppendFile;
use railwright_system::clock;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// Where the bytes go: a file, or in tests something that breaks.
pub trait JournalStore: Send {
    /// Writes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all of it durable.
    fn sync(&mut self) -> io::Result<()>;
}

impl JournalStore for AppendFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        AppendFile::append(self, bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        AppendFile::sync(self)
    }
}

/// Why a record is not in the journal. After the first such error nothing more is written: a
/// journal with a hole would lie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The run has lost the cluster's lock, and with it the right to write.
    #[error("the journal could not be written: {0}")]
    LockTakenOver(LockTakenOver),
    /// The file, or the thread that writes it, failed.
    #[error("the journal could not be written: {0}")]
    NotWritten(String),
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(lost) => JournalError::LockTakenOver(*lost),
            None => JournalError::NotWritten(error.to_string()),
        }
    }
}

struct JournalWriteRequest {
    entry: JournalEntry,
    durable: Option<oneshot::Sender<Result<(), JournalError>>>,
}

/// The writing end; clones share the file.
#[derive(Clone)]
pub struct JournalWriter(JournalWriterBackend);

#[derive(Clone)]
enum JournalWriterBackend {
    Thread(Sender<JournalWriteRequest>),
    Here(Arc<Mutex<Pen>>),
}

impl JournalWriter {
    /// Starts the thread, where it has a use; it ends when the last clone is dropped.
    pub fn start(store: Box<dyn JournalStore>, chain: Chain) -> io::Result<Self> {
        let pen = Pen {
            store,
            chain,
            broken: None,
        };
        if Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::CurrentThread)
        {
            return Ok(JournalWriter(JournalWriterBackend::Here(Arc::new(
                Mutex::new(pen),
            ))));
        }
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write_all(pen, &receiver))?;
        Ok(JournalWriter(JournalWriterBackend::Thread(sender)))
    }

    /// Appends a record and returns when it is durable, with all that were appended before it.
    pub async fn commit(&self, entry: JournalEntry) -> Result<(), JournalError> {
        let sender = match &self.0 {
            JournalWriterBackend::Thread(sender) => sender,
            JournalWriterBackend::Here(pen) => return lock_journal_pen(pen).write([entry], true),
        };
        let (reply, answer) = oneshot::channel();
        let request = JournalWriteRequest {
            entry,
            durable: Some(reply),
        };
        // Without a writer the reply is dropped with the request, so there is no answer either.
        drop(sender.send(request));
        match answer.await {
            Ok(written) => written,
            Err(_) => Err(JournalError::NotWritten("its writer is gone".to_owned())),
        }
    }

    /// Appends a record that becomes durable with the next commit. Only for what a re-reading of
    /// the targets would show as well: its loss is found out by the commit after it.
    pub fn note(&self, entry: JournalEntry) {
        match &self.0 {
            JournalWriterBackend::Thread(sender) => drop(sender.send(JournalWriteRequest {
                entry,
                durable: None,
            })),
            JournalWriterBackend::Here(pen) => drop(lock_journal_pen(pen).write([entry], false)),
        }
    }
}

fn lock_journal_pen(pen: &Mutex<Pen>) -> MutexGuard<'_, Pen> {
    lock_ignoring_poison(pen)
}

/// The file, and the chain of what was written to it.
struct Pen {
    store: Box<dyn JournalStore>,
    chain: Chain,
    broken: Option<JournalError>,
}

impl Pen {
    fn write(
        &mut self,
        entries: impl IntoIterator<Item = JournalEntry>,
        durable: bool,
    ) -> Result<(), JournalError> {
        let text: String = entries
            .into_iter()
            .map(|entry| self.chain.seal(clock::read_current_time(), entry))
            .collect();
        if self.broken.is_none() {
            let written = self
                .store
                .append(text.as_bytes())
                .and_then(|()| if durable { self.store.sync() } else { Ok(()) });
            self.broken = written.err().map(JournalError::from);
        }
        self.broken.clone().map_or(Ok(()), Err)
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        let _ = self.store.sync();
    }
}

fn write_all(mut pen: Pen, requests: &Receiver<JournalWriteRequest>) {
    while let Ok(first) = requests.recv() {
        let mut waiting = Vec::new();
        let mut entries = Vec::new();
        for request in std::iter::once(first).chain(requests.try_iter()) {
            entries.push(request.entry);
            waiting.extend(request.durable);
        }
        let written = pen.write(entries, !waiting.is_empty());
        for reply in waiting {
            let _ = reply.send(written.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal;

    #[tokio::test(flavor = "multi_thread")]
    async fn many_writers_make_one_sound_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let writer = JournalWriter::start(
            Box::new(AppendFile::open(&path, None).unwrap()),
            Chain::default(),
        )
        .unwrap();
        writer.commit(JournalEntry::first_of("r")).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for fence in 0..50 {
            let writer = writer.clone();
            tasks.spawn(async move {
                writer.note(JournalEntry::LockTaken {
                    fence,
                    part: String::new(),
                });
                writer
                    .commit(JournalEntry::LockTaken {
                        fence,
                        part: String::new(),
                    })
                    .await
            });
        }
        while let Some(result) = tasks.join_next().await {
            result.unwrap().unwrap();
        }
        let read = journal::parse_journal("j", &std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read.records.len(), 101);
    }

    struct Full;
    impl JournalStore for Full {
        fn append(&mut self, _: &[u8]) -> io::Result<()> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_disk_is_told_to_whoever_commits() {
        broken().await;
    }

    #[tokio::test]
    async fn a_full_disk_is_told_where_there_is_one_thread() {
        broken().await;
    }

    async fn broken() {
        let writer = JournalWriter::start(Box::new(Full), Chain::default()).unwrap();
        assert!(
            writer
                .commit(JournalEntry::LockTaken {
                    fence: 1,
                    part: String::new()
                })
                .await
                .is_err()
        );
        assert!(
            writer
                .commit(JournalEntry::LockTaken {
                    fence: 2,
                    part: String::new()
                })
                .await
                .is_err()
        );
    }
}
