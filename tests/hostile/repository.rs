//! The door of a git repository: its files are read to tell which commit a spec is of. Each input
//! stands in the place of each of them.

use railwright_base::WorkTreeState;
use railwright_plan::InventoryOrigin;
use railwright_system::git::{self, ReadFile};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

const SPEC: &[u8] = b"cluster: c\n";

/// A repository, and those of its files that are read.
struct Repository {
    top: PathBuf,
    files: Vec<PathBuf>,
}

fn repository() -> &'static Mutex<Repository> {
    static REPOSITORY: OnceLock<Mutex<Repository>> = OnceLock::new();
    REPOSITORY.get_or_init(|| {
        // Nothing ends what a test binary keeps for all of its tests, so the next run clears it
        // away.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-repository");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let top = fs::canonicalize(folder).unwrap();
        git(&top, &["init", "-q", "-b", "main"]);
        for number in 0..20 {
            fs::write(top.join(format!("{number}.yaml")), format!("{number}")).unwrap();
            git(&top, &["add", "-A"]);
            git(&top, &["commit", "-qm", "round"]);
        }
        git(&top, &["repack", "-adfq"]);
        git(&top, &["pack-refs", "--all"]);
        fs::write(top.join("c.yaml"), SPEC).unwrap();
        git(&top, &["add", "-A"]);
        git(&top, &["commit", "-qm", "last"]);
        let head = fs::read_to_string(top.join(".git/refs/heads/main")).unwrap();
        let loose = format!("objects/{}/{}", &head[..2], head[2..].trim());
        let packed = fs::read_dir(top.join(".git/objects/pack"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let packed = packed.filter(|path| {
            path.extension()
                .is_some_and(|end| end == "pack" || end == "idx")
        });
        let named = ["HEAD", "refs/heads/main", "packed-refs", &*loose]
            .map(|name| top.join(".git").join(name));
        let files: Vec<PathBuf> = named.into_iter().chain(packed).collect();
        for file in &files {
            // Objects are read-only, for everybody but root.
            let bytes = fs::read(file).unwrap();
            fs::remove_file(file).unwrap();
            fs::write(file, bytes).unwrap();
        }
        Mutex::new(Repository { top, files })
    })
}

fn git(folder: &Path, words: &[&str]) {
    let identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ];
    let done = Command::new("git")
        .current_dir(folder)
        .env("HOME", folder)
        .args(identity)
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Each file as git wrote it.
pub fn seeds() -> Vec<Vec<u8>> {
    let repository = repository().lock().unwrap_or_else(PoisonError::into_inner);
    repository
        .files
        .iter()
        .map(|file| fs::read(file).unwrap())
        .collect()
}

/// What is said of the spec with these bytes in the place of each file.
pub fn open(bytes: &[u8]) -> Result<Vec<String>, String> {
    let repository = repository().lock().unwrap_or_else(PoisonError::into_inner);
    let mut screens = Vec::new();
    for file in &repository.files {
        let whole = fs::read(file).unwrap();
        fs::write(file, bytes).unwrap();
        let other = ReadFile {
            path: "c.yaml",
            bytes: b"cluster: other\n",
        };
        let found = git::read_revision(&repository.top, &[other], &|_| false);
        fs::write(file, whole).unwrap();
        if found.commit.is_some() && found.state == WorkTreeState::AsCommitted {
            return Err(format!(
                "a spec that was never committed counts as that of {found:?}"
            ));
        }
        screens.push(
            InventoryOrigin {
                path: "inv".to_owned(),
                commit: found.commit,
                dirty: found.state,
            }
            .words(),
        );
    }
    Ok(screens)
}
