//! Against repositories that git itself makes, and against repositories that somebody made to be
//! read.

use super::*;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

const SPEC: &str = "cluster: c\n";
const MODULE: &str = "module: m\n";

struct Repo(tempfile::TempDir);

impl Repo {
    /// An inventory below the top, committed.
    fn new() -> Self {
        let repo = Repo(tempfile::tempdir().unwrap());
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("inv/c.yaml", SPEC)
            .write("inv/modules/m/module.yaml", MODULE)
            .write("readme", "");
        repo.commit("first");
        repo
    }

    fn top(&self) -> PathBuf {
        std::fs::canonicalize(self.0.path()).unwrap()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn git(&self, words: &[&str]) -> String {
        let set = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "protocol.file.allow=always",
        ];
        let done = Command::new("git")
            .current_dir(self.0.path())
            .env("HOME", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(set)
            .args(words)
            .output()
            .unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Of the inventory with these files read.
    fn of(&self, files: &[(&str, &str)]) -> GitRevision {
        let files: Vec<ReadFile<'_>> = files
            .iter()
            .map(|(path, text)| ReadFile {
                path,
                bytes: text.as_bytes(),
            })
            .collect();
        read_revision(&self.top().join("inv"), &files, &is_read)
    }

    /// Of the files that were committed first.
    fn unchanged(&self) -> GitRevision {
        self.of(&[("c.yaml", SPEC), ("modules/m/module.yaml", MODULE)])
    }

    fn is(&self, state: WorkTreeState) -> GitRevision {
        GitRevision {
            commit: Some(self.head()),
            state,
        }
    }
}

fn is_read(tracked: &TrackedPath<'_>) -> bool {
    match tracked.is_folder {
        true => tracked.path.starts_with("modules"),
        false => tracked.path.ends_with(".yaml"),
    }
}

use WorkTreeState::{AsCommitted, Changed, Unknown};

#[test]
fn loose_objects_tell_what_changed() {
    let repo = Repo::new();
    assert_eq!(repo.unchanged(), repo.is(AsCommitted));
    let module = ("modules/m/module.yaml", MODULE);
    for (files, why) in [
        (&[("c.yaml", "cluster: d\n"), module][..], "another content"),
        (&[("c.yaml", SPEC)], "a module is gone"),
        (&[module], "a spec file is gone"),
        (
            &[("c.yaml", SPEC), module, ("d.yaml", "")],
            "a spec file that was never committed",
        ),
        (
            &[("c.yaml", SPEC), module, ("modules/n/module.yaml", "")],
            "a module that was never committed",
        ),
        (
            &[("c.yaml", SPEC), ("modules/m", "")],
            "a file in place of a folder",
        ),
        (&[("c.yaml/x", SPEC), module], "a folder in place of a file"),
    ] {
        assert_eq!(repo.of(files), repo.is(Changed), "{why}");
    }
    // What is not read does not count, committed or not.
    repo.write("inv/notes", "").write("other", "");
    assert_eq!(repo.unchanged(), repo.is(AsCommitted));
    // A folder of which the commit has nothing.
    std::fs::create_dir(repo.0.path().join("new")).unwrap();
    assert_eq!(
        read_revision(
            &repo.top().join("new"),
            &[ReadFile {
                path: "c.yaml",
                bytes: b""
            }],
            &is_read
        )
        .state,
        Changed
    );
    // Whether somebody added it already says nothing: it is not committed.
    repo.write("inv/c.yaml", "cluster: e\n").git(&["add", "-A"]);
    assert_eq!(
        repo.of(&[("c.yaml", "cluster: e\n"), module]),
        repo.is(Changed)
    );
}

#[test]
fn heads_of_all_forms_are_followed() {
    let repo = Repo::new();
    let first = repo.unchanged();
    repo.git(&["pack-refs", "--all"]);
    assert!(!repo.0.path().join(".git/refs/heads/main").exists());
    assert_eq!(repo.unchanged(), first, "packed references");
    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(repo.unchanged(), first, "no branch");
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    assert_eq!(repo.unchanged(), first, "an alias");
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/none"]);
    assert_eq!(
        repo.unchanged(),
        GitRevision {
            commit: None,
            state: Changed
        },
        "nothing is committed"
    );
    std::fs::create_dir(repo.0.path().join(".git/reftable")).unwrap();
    let unknown = GitRevision {
        commit: None,
        state: Unknown,
    };
    assert_eq!(repo.unchanged(), unknown, "references in tables");
    for head in [
        "ref: ../../etc/passwd",
        "ref: refs/heads/none/../../../config",
        "no id",
        "",
        "ref: HEAD",
    ] {
        repo.write(".git/HEAD", head);
        assert_eq!(repo.unchanged(), unknown, "{head}");
    }
    repo.write(".git/HEAD", "ref: refs/heads/loop")
        .write(".git/refs/heads/loop", "ref: refs/heads/loop");
    assert_eq!(repo.unchanged(), unknown, "a circle");
    let none = tempfile::tempdir().unwrap();
    assert_eq!(
        read_revision(&std::fs::canonicalize(none.path()).unwrap(), &[], &is_read),
        GitRevision::default()
    );
}

/// Trees of many names are kept as differences from each other, which name their base by its place
/// or by its id.
#[test]
fn packs_are_read_with_differences_of_both_kinds() {
    for by_place in ["true", "false"] {
        let repo = Repo::new();
        for round in 0..30 {
            for number in 0..40 {
                let text = if number == round {
                    format!("{round}")
                } else {
                    number.to_string()
                };
                repo.write(&format!("inv/modules/m/{number}.yaml"), text);
            }
            repo.write(&format!("inv/modules/m/round-{round}.yaml"), "");
            repo.commit("round");
        }
        repo.git(&["checkout", "-q", "HEAD~15"]);
        // Each thread begins with a whole tree of its own, and this one may be it.
        let by_place = format!("repack.useDeltaBaseOffset={by_place}");
        repo.git(&[
            "-c",
            &by_place,
            "-c",
            "pack.threads=1",
            "repack",
            "-adfq",
            "--depth=50",
        ]);
        repo.git(&["prune"]);
        let pack = std::fs::read_dir(repo.0.path().join(".git/objects/pack"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let index = pack
            .into_iter()
            .find(|path| path.extension().is_some_and(|end| end == "idx"))
            .unwrap();
        let tree = repo.git(&["rev-parse", "HEAD:inv/modules/m"]);
        let listed = repo.git(&["verify-pack", "-v", index.to_str().unwrap()]);
        let line = listed.lines().find(|line| line.starts_with(&tree)).unwrap();
        assert_eq!(
            line.split_whitespace().count(),
            7,
            "the tree is a difference: {line}"
        );
        let texts: Vec<(String, String)> = (0..40)
            .map(|number| {
                (
                    format!("modules/m/{number}.yaml"),
                    if number == 14 {
                        "14".to_owned()
                    } else {
                        number.to_string()
                    },
                )
            })
            .chain((0..15).map(|round| (format!("modules/m/round-{round}.yaml"), String::new())))
            .chain([
                ("c.yaml".to_owned(), SPEC.to_owned()),
                ("modules/m/module.yaml".to_owned(), MODULE.to_owned()),
            ])
            .collect();
        let files: Vec<(&str, &str)> = texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        assert_eq!(repo.of(&files), repo.is(AsCommitted));
        assert_eq!(repo.of(&files[1..]), repo.is(Changed));
        let head = repo.head();
        assert!(
            !repo
                .0
                .path()
                .join(".git/objects")
                .join(&head[..2])
                .join(&head[2..])
                .exists(),
            "it is packed"
        );
    }
}

#[test]
fn what_git_may_have_written_otherwise_is_not_known() {
    let repo = Repo::new();
    let module = ("modules/m/module.yaml", MODULE);
    assert_eq!(
        repo.of(&[("c.yaml", "cluster: c\r\n"), module]),
        repo.is(Unknown),
        "line ends alone"
    );
    let other = [("c.yaml", "cluster: d\n"), module];
    for (file, text, state) in [
        (".gitattributes", "*.png binary\n", Changed),
        (".gitattributes", "*.yaml filter=secret\n", Unknown),
        ("inv/.gitattributes", "* text=auto\n", Unknown),
        ("inv/modules/.gitattributes", "* filter=x\n", Changed),
        (
            ".git/info/attributes",
            "* working-tree-encoding=UTF-16\n",
            Unknown,
        ),
    ] {
        repo.write(file, text);
        assert_eq!(repo.of(&other), repo.is(state), "{file} {text}");
        assert_eq!(
            repo.unchanged(),
            repo.is(AsCommitted),
            "the content is the commit's, whatever may be written"
        );
        std::fs::remove_file(repo.0.path().join(file)).unwrap();
    }
}

#[test]
fn what_lies_in_other_places_is_not_followed() {
    let unknown = GitRevision {
        commit: None,
        state: Unknown,
    };
    let repo = Repo::new();
    repo.git(&["worktree", "add", "-q", "--detach", "linked"]);
    let files = [ReadFile {
        path: "c.yaml",
        bytes: SPEC.as_bytes(),
    }];
    assert_eq!(
        read_revision(&repo.top().join("linked/inv"), &files, &is_read),
        unknown,
        "a linked work tree"
    );
    let away = Repo::new();
    std::fs::rename(away.top().join(".git"), away.top().join("real")).unwrap();
    symlink("real", away.top().join(".git")).unwrap();
    assert_eq!(
        read_revision(&away.top().join("inv"), &files, &is_read),
        unknown,
        "a link"
    );
    let objects = Repo::new();
    let commit = Some(objects.head());
    let moved = tempfile::tempdir().unwrap();
    std::fs::rename(
        objects.top().join(".git/objects"),
        moved.path().join("objects"),
    )
    .unwrap();
    symlink(
        moved.path().join("objects"),
        objects.top().join(".git/objects"),
    )
    .unwrap();
    assert_eq!(
        objects.unchanged(),
        GitRevision {
            commit,
            state: Unknown
        },
        "objects elsewhere"
    );
    let linked = Repo::new();
    symlink("c.yaml", linked.top().join("inv/d.yaml")).unwrap();
    linked.commit("link");
    let read = [
        ("c.yaml", SPEC),
        ("d.yaml", SPEC),
        ("modules/m/module.yaml", MODULE),
    ];
    assert_eq!(linked.of(&read), linked.is(Unknown), "a link of the commit");
    let outer = Repo::new();
    outer.git(&[
        "submodule",
        "add",
        "-q",
        repo.top().to_str().unwrap(),
        "sub",
    ]);
    outer.commit("submodule");
    assert_eq!(
        read_revision(&outer.top().join("sub/inv"), &files, &is_read),
        unknown,
        "a submodule"
    );
    // A folder that git itself would take for a bare repository is a folder of the repository
    // around it.
    let bare = Repo::new();
    bare.git(&["clone", "-q", "--bare", ".git", "twin.git"]);
    for name in ["HEAD", "config", "objects", "refs"] {
        std::fs::rename(
            bare.top().join("twin.git").join(name),
            bare.top().join("inv").join(name),
        )
        .unwrap();
    }
    std::fs::remove_dir_all(bare.top().join("twin.git")).unwrap();
    bare.commit("a repository in the repository");
    assert_eq!(bare.unchanged(), bare.is(AsCommitted));
    let alone = tempfile::tempdir().unwrap();
    std::fs::rename(bare.top().join("inv"), alone.path().join("inv")).unwrap();
    assert_eq!(
        read_revision(
            &std::fs::canonicalize(alone.path()).unwrap().join("inv"),
            &files,
            &is_read
        ),
        GitRevision::default()
    );
}

/// One byte of any file of the repository is another: what is said of the files may become unknown,
/// never wrong, and nothing panics or runs on.
#[test]
fn a_broken_repository_never_says_what_is_not_so() {
    let repo = Repo::new();
    for number in 0..20 {
        repo.write("inv/c.yaml", format!("{number}"))
            .commit("round");
    }
    repo.write("inv/c.yaml", SPEC).commit("last");
    repo.git(&["repack", "-adfq"]);
    repo.git(&["prune-packed"]);
    let head = repo.head();
    let pack = repo.top().join(".git/objects/pack");
    let files: Vec<PathBuf> = std::fs::read_dir(pack)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let of_readers = files.iter().filter(|path| {
        path.extension()
            .is_some_and(|end| end == "idx" || end == "pack")
    });
    for file in of_readers {
        let whole = std::fs::read(file).unwrap();
        let mut permissions = std::fs::metadata(file).unwrap().permissions();
        #[allow(
            clippy::permissions_set_readonly_false,
            reason = "a file of this test alone"
        )]
        permissions.set_readonly(false);
        std::fs::set_permissions(file, permissions).unwrap();
        let step = (whole.len() / 700).max(1);
        for at in (0..whole.len()).step_by(step) {
            let mut broken = whole.clone();
            broken[at] ^= 1 << (at % 8) | 0x80;
            std::fs::write(file, &broken).unwrap();
            let found = repo.unchanged();
            assert!(
                found.commit.as_ref() == Some(&head) && found.state != Changed,
                "{}: {at}: {found:?}",
                file.display()
            );
            std::fs::write(file, &whole[..at]).unwrap();
            assert_ne!(
                repo.unchanged().state,
                Changed,
                "{} ends at {at}",
                file.display()
            );
        }
        std::fs::write(file, &whole).unwrap();
    }
    assert_eq!(repo.unchanged(), repo.is(AsCommitted));
}

#[test]
fn an_object_that_unpacks_without_end_is_given_up() {
    let repo = Repo::new();
    let digits = "ab".repeat(20);
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"commit 268435456\0tree ").unwrap();
    let zeros = vec![0; 1 << 20];
    (0..256).for_each(|_| packed.write_all(&zeros).unwrap());
    repo.write(
        &format!(".git/objects/ab/{}", &digits[2..]),
        packed.finish().unwrap(),
    )
    .write(".git/HEAD", &digits);
    assert_eq!(
        repo.unchanged(),
        GitRevision {
            commit: Some(digits),
            state: Unknown
        }
    );
}
