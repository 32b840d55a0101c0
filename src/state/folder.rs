//! The folder beside the inventory in which railwright remembers: `.railwright/` unless the user
//! says otherwise. Everything in it is 0600 in folders of 0700, and it keeps itself out of git.

use super::journal::{self, Chain, Journal};
use super::journal_writer::{JournalStore, JournalWriter};
use super::{ClusterIdentity, ClusterState};
use railwright_base::{ClusterId, Diagnostic, Digest, SealKey, quote};
use railwright_plan::Plan;
use railwright_system::append_file::AppendFile;
use railwright_system::identity::ProcessIdentity;
use railwright_system::{clock, files};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Journals and plans beyond this are refused; 10,000 hosts of 60 steps stay below it.
const FILE_LIMIT_BYTES: u64 = 4 << 30;

/// The file with the key of the seals.
const SEAL_KEY: &str = "seal-key";

const HEARTBEAT: &str = "beat";

/// Stands between a run and its journal's file.
pub type Between = dyn Fn(Box<dyn JournalStore>) -> Box<dyn JournalStore> + Send + Sync;

/// The folder; nothing is read or made before it is asked for.
#[derive(Clone)]
pub struct StateFolder {
    root: PathBuf,
    between: Option<Arc<Between>>,
    process: Option<ProcessIdentity>,
}

impl fmt::Debug for StateFolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("StateFolder")
            .field(&self.root)
            .finish()
    }
}

impl StateFolder {
    /// The folder at a path.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        StateFolder {
            root: root.into(),
            between: None,
            process: None,
        }
    }

    /// Writes the journals of this folder through something that may break.
    pub fn through(self, between: Arc<Between>) -> Self {
        StateFolder {
            between: Some(between),
            ..self
        }
    }

    /// Uses this folder as a process of this identity: of another machine, where one is simulated.
    pub fn used_by(self, process: ProcessIdentity) -> Self {
        StateFolder {
            process: Some(process),
            ..self
        }
    }

    /// Who uses it.
    pub fn process(&self) -> ProcessIdentity {
        self.process.clone().unwrap_or_else(ProcessIdentity::own)
    }

    /// The usual place for an inventory.
    pub fn beside(inventory: &Path) -> Self {
        StateFolder::at(inventory.join(".railwright"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// An ordinary file of it, reached without a link: nothing else is waited for or read.
    pub(super) fn read(&self, below: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let (around, below) = self.beneath(below.as_ref());
        files::read_beneath(around, &below, limit)
    }

    /// The folder around this one, and what is below it: the folder itself may not be a link either.
    fn beneath(&self, below: &Path) -> (&Path, PathBuf) {
        let (around, own) = (self.root.parent(), self.root.file_name());
        (
            around.unwrap_or(&self.root),
            own.map_or_else(PathBuf::new, PathBuf::from).join(below),
        )
    }

    /// The inventory that it lies in, as one word of a command that people are told to type.
    pub fn inventory(&self) -> String {
        let inventory = self
            .root
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        inventory.map_or_else(|| ".".to_owned(), quote::quote_path)
    }

    /// Makes the folder, hidden from git.
    pub fn prepare(&self) -> Result<(), Diagnostic> {
        self.make_folder().map_err(|error| self.unusable(&error))
    }

    fn make_folder(&self) -> io::Result<()> {
        files::make_private_folder(&self.root.join("runs"))?;
        let hidden = self.root.join(".gitignore");
        if !hidden.exists() {
            files::write_new(&hidden, b"*\n", 0o600)?;
        }
        Ok(())
    }

    /// The identity of the cluster: what the state remembers, else this id that a plan was made
    /// with, else a new one.
    pub fn identify(
        &self,
        state: &mut ClusterState,
        planned: Option<&ClusterId>,
        name: &str,
    ) -> Result<ClusterIdentity, Diagnostic> {
        state
            .identify(planned, name)
            .map_err(|error| self.unusable(&error))
    }

    /// The key of the seals of secrets; nothing while there was no need for one. It never leaves
    /// this folder.
    pub fn seal_key(&self) -> Result<Option<SealKey>, Diagnostic> {
        match self.read(SEAL_KEY, 4096) {
            Ok(bytes) if bytes.len() >= 32 => Ok(Some(SealKey::new(&bytes))),
            Ok(_) => Err(self.unusable(&io::Error::new(
                io::ErrorKind::InvalidData,
                "the file `seal-key` is too short",
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    /// Reads the key that seals, and makes it where none is there yet. Of two that make one at once,
    /// both get the one that was first.
    pub fn make_seal_key(&self) -> Result<SealKey, Diagnostic> {
        if let Some(key) = self.seal_key()? {
            return Ok(key);
        }
        self.prepare()?;
        self.write_seal_key()
            .map_err(|error| self.unusable(&error))?;
        match self.seal_key()? {
            Some(key) => Ok(key),
            None => Err(self.unusable(&io::Error::new(
                io::ErrorKind::NotFound,
                "the file `seal-key` is gone again",
            ))),
        }
    }

    fn write_seal_key(&self) -> io::Result<bool> {
        let fresh = format!("{}{}", clock::generate_nonce()?, clock::generate_nonce()?);
        files::write_new(&self.root.join(SEAL_KEY), fresh.as_bytes(), 0o600)
    }

    /// The highest fencing number given out; 0 when there was none.
    pub fn fence(&self) -> Result<u64, Diagnostic> {
        match self.read("fence", 64) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().parse().map_err(|_| {
                self.unusable(&io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the file `fence` holds no number",
                ))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    /// A fencing number that nobody was given before.
    pub fn next_fence(&self) -> Result<u64, Diagnostic> {
        // An older copy of the folder may have been put over a newer one.
        let latest_run = self
            .run_names()?
            .pop()
            .and_then(|name| run_number(&name))
            .unwrap_or_default();
        match self.fence()?.max(latest_run).checked_add(1) {
            Some(next) => self.raise_fence(next),
            None => Err(self.unusable(&io::Error::new(
                io::ErrorKind::InvalidData,
                "the file `fence` holds no number that can be raised",
            ))),
        }
    }

    /// Remembers a fencing number before it is used; it never goes down.
    fn raise_fence(&self, at_least: u64) -> Result<u64, Diagnostic> {
        let fence = at_least.max(self.fence()?);
        files::write_atomic(
            &self.root.join("fence"),
            fence.to_string().as_bytes(),
            0o600,
        )
        .map_err(|error| self.unusable(&error))?;
        Ok(fence)
    }

    /// The name of a new run: its fencing number, and a digest so that runs of two folders differ,
    /// and of one that was lost: hosts know steps by it.
    pub fn run_name(fence: u64, plan: &str, taking: &str) -> String {
        format!(
            "r{fence:04}-{}",
            Digest::of(&(plan, taking))
                .short()
                .get(..6)
                .unwrap_or_default()
        )
    }

    /// The newest run's name.
    pub fn newest_run(&self) -> Result<Option<String>, Diagnostic> {
        for name in self.run_names()?.into_iter().rev() {
            if self.is_begun(&name)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// All runs, the newest last.
    pub fn runs(&self) -> Result<Vec<String>, Diagnostic> {
        let mut runs = Vec::new();
        for name in self.run_names()? {
            if self.is_begun(&name)? {
                runs.push(name);
            }
        }
        Ok(runs)
    }

    /// The names of runs, also of those that were not begun after all, the newest last.
    fn run_names(&self) -> Result<Vec<String>, Diagnostic> {
        let names =
            files::names_in(&self.root.join("runs")).map_err(|error| self.unusable(&error))?;
        let mut runs: Vec<(u64, String)> = names
            .into_iter()
            .filter_map(|name| Some((run_number(&name)?, name)))
            .collect();
        runs.sort();
        Ok(runs.into_iter().map(|(_, name)| name).collect())
    }

    /// Whether the first record of this run stands in its journal, whole: one that ended before
    /// that did nothing, and hides no run before it.
    pub(super) fn is_begun(&self, run: &str) -> Result<bool, Diagnostic> {
        let (around, journal) = self.beneath(&below_runs(run, "journal.jsonl"));
        match files::read_first_line_beneath(around, &journal, FILE_LIMIT_BYTES) {
            Ok(line) => Ok(line.ends_with(b"\n")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    /// Makes the folder of a new run: a copy of its plan, and an empty journal.
    pub(super) fn make_run_folder(&self, run: &str, plan: &Plan) -> Result<AppendFile, Diagnostic> {
        self.make_run_files(run, plan)
            .map_err(|error| self.unusable(&error))
    }

    fn make_run_files(&self, run: &str, plan: &Plan) -> io::Result<AppendFile> {
        let folder = self.run_folder(run);
        files::make_private_folder(&folder)?;
        let plan = railwright_plan::file::serialize_plan(plan);
        files::write_atomic(&folder.join("plan.json"), &plan, 0o600)?;
        AppendFile::open(&folder.join("journal.jsonl"), None)
    }

    /// Opens a journal behind what was read of it, its torn end cut off. Nothing where it is another
    /// one by now.
    pub(super) fn open_journal(
        &self,
        run: &str,
        journal: &Journal,
    ) -> Result<Option<AppendFile>, Diagnostic> {
        if !journal.is_sound_part_of(&self.journal_bytes(run, FILE_LIMIT_BYTES)?) {
            return Ok(None);
        }
        let path = self.run_folder(run).join("journal.jsonl");
        AppendFile::open(&path, Some(journal.sound_bytes))
            .map(Some)
            .map_err(|error| self.unusable(&error))
    }

    /// The plan of a run, as it was begun.
    pub fn read_plan(&self, run: &str) -> Result<Plan, Diagnostic> {
        let bytes = self
            .read(below_runs(run, "plan.json"), FILE_LIMIT_BYTES)
            .map_err(|error| self.unusable(&error))?;
        railwright_plan::file::parse_plan_file(
            &self.run_folder(run).join("plan.json").display().to_string(),
            &bytes,
        )
    }

    /// The journal of a run; empty when the run has none yet.
    pub fn read_journal(&self, run: &str) -> Result<Journal, Diagnostic> {
        let path = self.run_folder(run).join("journal.jsonl");
        journal::parse_journal(
            &path.display().to_string(),
            &self.journal_bytes(run, FILE_LIMIT_BYTES)?,
        )
    }

    /// The bytes of a run's journal as they stand in its file, unless that is larger than `limit`.
    pub fn journal_bytes(&self, run: &str, limit: u64) -> Result<Vec<u8>, Diagnostic> {
        match self.read(below_runs(run, "journal.jsonl"), limit) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    /// Starts writing to a journal's store.
    pub(super) fn writer(
        &self,
        store: Box<dyn JournalStore>,
        chain: Chain,
    ) -> Result<JournalWriter, Diagnostic> {
        let store = match &self.between {
            Some(between) => between(store),
            None => store,
        };
        JournalWriter::start(store, chain).map_err(|error| self.unusable(&error))
    }

    /// The file of the latest heartbeat on this side: a note, the boot of this machine, and the
    /// second of it.
    pub(super) fn heartbeat_path(&self) -> PathBuf {
        self.root.join(HEARTBEAT)
    }

    /// What the latest heartbeat said; empty where there is none.
    pub(super) fn read_heartbeat(&self) -> String {
        String::from_utf8_lossy(&self.read(HEARTBEAT, 4096).unwrap_or_default()).into_owned()
    }

    pub(super) fn run_folder(&self, run: &str) -> PathBuf {
        self.root.join("runs").join(run)
    }

    /// The folder cannot be used.
    pub(super) fn unusable(&self, error: &io::Error) -> Diagnostic {
        Diagnostic::error(
            "RW0703",
            format!("the state folder cannot be used: {error}"),
        )
        .on(self.root.display().to_string())
        .effect(
            "without it railwright does not know what it applied, so it neither plans a removal \
             nor changes anything",
        )
        .state("nothing was changed")
        .next(
            "fix the folder: its owner, the space on its file system, whether that can be written \
             to",
        )
    }
}

/// A file of a run, below the folder.
pub(super) fn below_runs(run: &str, name: &str) -> PathBuf {
    ["runs", run, name].iter().collect()
}

/// The number in a run's name.
fn run_number(name: &str) -> Option<u64> {
    name.strip_prefix('r')?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_seals_is_made_once_and_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(root.path().join("state"));
        assert!(folder.seal_key().unwrap().is_none());
        assert!(!folder.path().exists(), "asking makes nothing");
        let seals: Vec<String> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| folder.make_seal_key().unwrap().seal("p", b"x")))
                .collect();
            makers
                .into_iter()
                .map(|maker| maker.join().unwrap())
                .collect()
        });
        assert!(
            seals
                .iter()
                .all(|seal| *seal == folder.seal_key().unwrap().unwrap().seal("p", b"x"))
        );
        let mode = std::fs::metadata(folder.path().join(SEAL_KEY))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(
            (
                mode & 0o777,
                std::fs::read_dir(folder.path()).unwrap().count()
            ),
            (0o600, 3),
            ".gitignore, runs, key"
        );
        std::fs::write(folder.path().join(SEAL_KEY), "short").unwrap();
        assert_eq!(folder.seal_key().err().unwrap().code, "RW0703");
    }

    #[test]
    fn runs_are_in_the_order_of_their_numbers_not_of_their_letters() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path().join("s"));
        assert_eq!(state.newest_run().unwrap(), None);
        for run in ["r0002-ffffff", "r10000-000000", "r9999-000000", "notes"] {
            std::fs::create_dir_all(state.run_folder(run)).unwrap();
            std::fs::write(state.run_folder(run).join("journal.jsonl"), "first\n").unwrap();
        }
        assert_eq!(
            state.newest_run().unwrap().as_deref(),
            Some("r10000-000000")
        );
    }

    #[test]
    fn what_has_no_first_record_is_no_run_and_hides_none() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path().join("s"));
        for (run, journal) in [
            ("r0001-aaaaaa", Some("first\n")),
            ("r0002-aaaaaa", Some("first\ntorn")),
            ("r0003-aaaaaa", Some("torn")),
            ("r0004-aaaaaa", Some("")),
            ("r0005-aaaaaa", None),
        ] {
            std::fs::create_dir_all(state.run_folder(run)).unwrap();
            if let Some(journal) = journal {
                std::fs::write(state.run_folder(run).join("journal.jsonl"), journal).unwrap();
            }
        }
        assert_eq!(state.newest_run().unwrap().as_deref(), Some("r0002-aaaaaa"));
        assert_eq!(state.runs().unwrap(), ["r0001-aaaaaa", "r0002-aaaaaa"]);
        assert_eq!(state.next_fence().unwrap(), 6, "its number was given out");
    }

    #[test]
    fn the_inventory_is_one_word_of_a_command() {
        for (folder, word) in [
            ("inv/.railwright", "inv"),
            (".railwright", "."),
            ("my inv/.railwright", "'my inv'"),
            ("prod;touch PWNED;#/.railwright", "'prod;touch PWNED;#'"),
        ] {
            assert_eq!(StateFolder::at(folder).inventory(), word);
        }
    }

    /// Whatever was put into its place since it was looked at.
    #[test]
    fn a_folder_that_is_a_link_is_not_read() {
        let world = tempfile::tempdir().unwrap();
        let at = |name: &str| world.path().join(name);
        std::fs::create_dir_all(at("elsewhere")).unwrap();
        std::fs::write(at("elsewhere/fence"), "41").unwrap();
        std::os::unix::fs::symlink("elsewhere", at(".railwright")).unwrap();
        assert_eq!(StateFolder::at(at("elsewhere")).fence().unwrap(), 41);
        assert!(StateFolder::at(at(".railwright")).fence().is_err());
    }

    #[test]
    fn a_fence_never_goes_down() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path());
        assert_eq!(state.raise_fence(7).unwrap(), 7);
        assert_eq!(state.raise_fence(3).unwrap(), 7);
        assert_eq!(state.next_fence().unwrap(), 8);
        std::fs::create_dir_all(state.run_folder("r0041-ffffff")).unwrap();
        assert_eq!(
            state.next_fence().unwrap(),
            42,
            "a run is there already that had it"
        );
        std::fs::write(folder.path().join("fence"), u64::MAX.to_string()).unwrap();
        assert_eq!(state.next_fence().unwrap_err().code, "RW0703");
    }
}
