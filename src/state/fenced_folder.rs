//! A state folder that only the holder of the cluster's lock writes. A command that slept (a
//! laptop's lid, SIGSTOP) while its lock was taken over, or whose folder was removed or replaced,
//! finds out with its next write: what the folder holds by then stays as it is, and nothing is done
//! in the name of a record that could not be written.

use super::folder::StateFolder;
use super::journal::{Chain, Journal};
use super::journal_writer::{JournalStore, JournalWriter};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_plan::Plan;
use railwright_system::append_file::AppendFile;
use railwright_system::lock_file::LockToken;
use railwright_system::{clock, files, identity};
use std::io;

/// The file of the lock is another one by now, or none: which of these it was is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's lock was taken over, or the state folder was removed or replaced")]
pub struct LockTakenOver;

impl LockTakenOver {
    /// What to do about it.
    pub const NEXT: &str = "see what .railwright holds now: after a take-over its newest journal \
                            has the reason; where the folder was removed or replaced, put the \
                            right one back";
}

/// A state folder, for the holder of its lock. Its copies write nothing either once the lock was
/// let go.
#[derive(Debug, Clone)]
pub struct FencedFolder {
    folder: StateFolder,
    token: LockToken,
}

impl FencedFolder {
    /// The folder of the lock that has this token.
    pub(super) fn new(folder: &StateFolder, token: LockToken) -> Self {
        FencedFolder {
            folder: folder.clone(),
            token,
        }
    }

    /// Writes into the folder while the lock is held.
    pub(super) fn write<T>(
        &self,
        write: impl FnOnce(&StateFolder) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let written = self.token.while_held(|| write(&self.folder));
        match written.map_err(|error| self.folder.unusable(&error))? {
            Some(written) => written,
            None => Err(report_not_ours(&self.folder, LockTakenOver.to_string())),
        }
    }

    /// A heartbeat; one that cannot be given is not worth ending a run for.
    pub fn beat(&self, note: &str) {
        let text = format!(
            "{}\n{}\n{}\n",
            one_line(note, 60),
            identity::boot_id(),
            clock::uptime_s().unwrap_or_default()
        );
        let path = self.folder.heartbeat_path();
        let _ = self
            .token
            .while_held(|| files::write_atomic(&path, text.as_bytes(), 0o600));
    }

    /// Begins the journal of a new run, with a copy of its plan beside it.
    pub fn begin_run(&self, run: &str, plan: &Plan) -> Result<JournalWriter, Diagnostic> {
        let begun = self
            .write(|folder| folder.make_run_folder(run, plan))
            .and_then(|journal| self.start_writer(journal, Chain::default()));
        if begun.is_err() {
            self.discard_run(run);
        }
        begun
    }

    /// Goes on with a journal that was read; its torn end is cut off, and nothing else of it.
    pub fn continue_run(&self, run: &str, journal: &Journal) -> Result<JournalWriter, Diagnostic> {
        let file = self.write(|folder| match folder.open_journal(run, journal)? {
            Some(file) => Ok(file),
            None => Err(report_not_ours(
                folder,
                format!("the journal of run {run} was written to or replaced since it was read"),
            )),
        })?;
        self.start_writer(file, journal.chain.clone())
    }

    /// Takes a run away that was begun just now and of which nothing was done: its records could
    /// not be written. Once the lock is another's, it is another's too, unless it has no record.
    pub fn discard_run(&self, run: &str) {
        let path = self.folder.run_folder(run);
        let removed = self.token.while_held(|| files::remove_path(&path));
        if !matches!(removed, Ok(Some(_))) && matches!(self.folder.is_begun(run), Ok(false)) {
            let _ = files::remove_path(&path);
        }
    }

    fn start_writer(&self, file: AppendFile, chain: Chain) -> Result<JournalWriter, Diagnostic> {
        let store = FencedJournalStore {
            store: Box::new(file),
            token: self.token.clone(),
        };
        self.folder.writer(Box::new(store), chain)
    }
}

/// A journal that is written while the lock is held.
struct FencedJournalStore {
    store: Box<dyn JournalStore>,
    token: LockToken,
}

impl JournalStore for FencedJournalStore {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.token.while_held(|| self.store.append(bytes))? {
            Some(appended) => appended,
            None => Err(io::Error::other(LockTakenOver)),
        }
    }
    fn sync(&mut self) -> io::Result<()> {
        self.store.sync()
    }
}

fn report_not_ours(folder: &StateFolder, what: String) -> Diagnostic {
    Diagnostic::error("RW0709", what)
        .on(folder.path().display().to_string())
        .effect(
            "what this command read there is not what is known now: written over it, what was done \
             since would be forgotten",
        )
        .state("this command wrote nothing there any more")
        .next(LockTakenOver::NEXT)
        .next(format!(
            "then a new plan: railwright plan {}",
            folder.inventory()
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::JournalEntry;
    use crate::{ClusterLock, ClusterState, JournalWriter};
    use railwright_base::Digest;
    use railwright_plan::{InventoryOrigin, RolloutPolicy};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::path::Path;

    fn plan() -> Plan {
        let plan = json!({
            "format_version": "1.0",
            "made_by": "test",
            "cluster": "c",
            "inventory": InventoryOrigin::default(),
            "spec_digest": Digest::of(&0),
            "modules": {},
            "state_digest": Digest::of(&0),
            "observed_at": "",
            "narrowed": [],
            "rollout": RolloutPolicy::default(),
            "nodes": [],
            "unchanged": {},
            "unknown": [],
            "digest": "",
        });
        serde_json::from_value(plan).unwrap()
    }

    /// All files below a folder, but those of the lock itself.
    fn files_below(path: &Path) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                files.insert(name.clone(), String::new());
                for (below, text) in files_below(&entry.path()) {
                    files.insert(format!("{name}/{below}"), text);
                }
            } else if !name.starts_with("lock") {
                files.insert(name, std::fs::read_to_string(entry.path()).unwrap());
            }
        }
        files
    }

    async fn commit(writer: &JournalWriter, fence: u64) {
        let part = String::new();
        let entry = JournalEntry::LockTaken { fence, part };
        writer.commit(entry).await.unwrap();
    }

    /// A folder with one run of two records.
    async fn folder_with_a_run() -> (tempfile::TempDir, StateFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path().join("state"));
        let lock = ClusterLock::take(&folder, "apply").unwrap();
        ClusterState::default().store(lock.folder()).unwrap();
        let writer = lock.folder().begin_run("r0001-aaaaaa", &plan());
        let writer = writer.unwrap();
        let first = JournalEntry::first_of("r0001-aaaaaa");
        writer.commit(first).await.unwrap();
        commit(&writer, 1).await;
        (temporary, folder)
    }

    /// Everything that a command writes while it has the lock.
    type Write = fn(&FencedFolder, &Journal) -> Result<(), Diagnostic>;

    const WRITES: [(&str, Write); 4] = [
        ("state.json", |folder, _| {
            ClusterState::default().store(folder)
        }),
        ("a new run", |folder, _| {
            folder.begin_run("r0009-bbbbbb", &plan()).map(drop)
        }),
        ("the run that is resumed", |folder, journal| {
            folder.continue_run("r0001-aaaaaa", journal).map(drop)
        }),
        ("the fence", |folder, _| {
            folder.write(StateFolder::next_fence).map(drop)
        }),
    ];

    #[tokio::test]
    async fn what_is_written_without_the_lock_is_refused_and_changes_nothing() {
        type Loss = fn(ClusterLock, &StateFolder) -> Option<ClusterLock>;
        let losses: [(&str, Loss); 3] = [
            ("taken over", |lock, folder| {
                let (thief, _) = ClusterLock::take_away(folder, "lock steal", true).unwrap();
                drop(lock);
                Some(thief)
            }),
            ("let go", |lock, _| {
                drop(lock);
                None
            }),
            ("removed", |lock, folder| {
                std::fs::remove_file(folder.path().join("lock")).unwrap();
                drop(lock);
                None
            }),
        ];
        for (what, write) in WRITES {
            let (_temporary, folder) = folder_with_a_run().await;
            let lock = ClusterLock::take(&folder, "resume").unwrap();
            let journal = folder.read_journal("r0001-aaaaaa").unwrap();
            let before = files_below(folder.path());
            write(lock.folder(), &journal).unwrap();
            let is_changed = files_below(folder.path()) != before;
            assert_eq!(is_changed, what != "the run that is resumed", "{what}");
        }
        for (loss, lose) in losses {
            for (what, write) in WRITES {
                let (_temporary, folder) = folder_with_a_run().await;
                let lock = ClusterLock::take(&folder, "resume").unwrap();
                let fenced = lock.folder().clone();
                let journal = folder.read_journal("r0001-aaaaaa").unwrap();
                let _thief = lose(lock, &folder);
                let before = files_below(folder.path());
                let refused = write(&fenced, &journal).unwrap_err();
                assert_eq!(refused.code, "RW0709", "{loss}: {what}");
                fenced.beat("late");
                fenced.discard_run("r0001-aaaaaa");
                assert_eq!(files_below(folder.path()), before, "{loss}: {what}");
            }
        }
    }

    #[tokio::test]
    async fn a_run_that_cannot_be_begun_leaves_no_folder() {
        let (_temporary, folder) = folder_with_a_run().await;
        let path = folder.run_folder("r0002-bbbbbb");
        // Its plan cannot be written.
        std::fs::create_dir_all(path.join("plan.json/in-the-way")).unwrap();
        let lock = ClusterLock::take(&folder, "apply").unwrap();
        let refused = lock.folder().begin_run("r0002-bbbbbb", &plan());
        assert_eq!(refused.err().unwrap().code, "RW0703");
        assert!(!path.exists());
        assert_eq!(folder.newest_run().unwrap().unwrap(), "r0001-aaaaaa");
    }

    #[tokio::test]
    async fn the_lock_is_not_taken_over_in_the_middle_of_a_write() {
        let (_temporary, folder) = folder_with_a_run().await;
        let lock = ClusterLock::take(&folder, "apply").unwrap();
        let mut thief = None;
        let held = lock.folder().write(|folder| {
            let (folder, begun) = (
                folder.clone(),
                std::sync::Arc::new(std::sync::Barrier::new(2)),
            );
            let begins = begun.clone();
            thief = Some(std::thread::spawn(move || {
                begins.wait();
                ClusterLock::take_away(&folder, "lock steal", true).map(|(lock, _)| lock)
            }));
            begun.wait();
            clock::block_for(200);
            Ok(lock.folder().token.while_held(|| ()).unwrap())
        });
        assert_eq!(held.unwrap(), Some(()));
        let thief = thief.unwrap().join().unwrap().unwrap();
        assert!(lock.folder().token.while_held(|| ()).unwrap().is_none());
        drop(thief);
    }

    #[tokio::test]
    async fn a_journal_that_is_another_than_was_read_is_never_cut() {
        const RUN: &str = "r0001-aaaaaa";
        let (_temporary, folder) = folder_with_a_run().await;
        let path = folder.run_folder(RUN).join("journal.jsonl");
        let lock = ClusterLock::take(&folder, "resume").unwrap();
        let journal = folder.read_journal(RUN).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let first_line = text.split_inclusive('\n').next().unwrap();
        let (seal, end) = text.split_at(text.len() - 4);
        let other_digit = if end.starts_with('0') { '1' } else { '0' };
        let of_another = format!("{seal}{other_digit}{}", &end[1..]);
        for (now, is_read) in [
            (text.clone(), true),
            (format!("{text}{{\"sequence\":3,"), true),
            (format!("{text}{{}}\n"), false),
            (format!("{text}{{}}\n{{\"sequence\""), false),
            (first_line.to_owned(), false),
            (of_another, false),
            (String::new(), false),
        ] {
            std::fs::write(&path, &now).unwrap();
            let continued = lock.folder().continue_run(RUN, &journal);
            assert_eq!(continued.is_ok(), is_read, "{now}");
            let left = if is_read { &now[..text.len()] } else { &now };
            assert_eq!(std::fs::read_to_string(&path).unwrap(), left);
        }
    }
}
