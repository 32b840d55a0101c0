//! A folder of this machine that is somebody's root: an unpacked image, a mounted disk, a
//! repository. It is read as a program in it would see it: links are followed below it and never
//! out of it, what is no ordinary file is not opened, and nothing is read without an end.

use super::files;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// As many links as Linux follows (`MAXSYMLINKS`).
const LINKS_MAX: usize = 40;
/// Parts of a path, links put in their places.
const PARTS_MAX: usize = 512;

/// What all questions to a root may cost together: names, parts of paths that the kernel walks, and
/// files that are opened. An image with 100,000 names in its folder of libraries, which has two
/// ways to it, costs half of it.
const WORK_MAX: u64 = 500_000;
/// Names that an opened file costs as much as.
const OPENED: u64 = 20;
/// Bytes that are read of it, all together.
const BYTES_MAX: u64 = 64 << 20;

/// Such a folder.
#[derive(Debug, Clone)]
pub struct RootedFolder {
    root: PathBuf,
    work: Cell<u64>,
    bytes: Cell<u64>,
}

impl RootedFolder {
    /// The folder, which has to be one.
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        fs::read_dir(&root)?;
        Ok(RootedFolder {
            root,
            work: Cell::new(0),
            bytes: Cell::new(0),
        })
    }

    /// The first bytes of an ordinary file, at most `limit`; nothing where there is none.
    pub fn beginning(&self, path: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(limit.min(BYTES_MAX)).read_to_end(&mut bytes)?;
        spend_budget(
            &self.bytes,
            bytes.len() as u64,
            BYTES_MAX,
            "bytes of its files were read",
        )?;
        Ok(Some(bytes))
    }

    /// The names in a folder, sorted; an error beyond `limit` of them, nothing where there is no
    /// folder. Names that are no UTF-8 are left out.
    pub fn names(&self, path: &str, limit: usize) -> io::Result<Vec<String>> {
        let Some(folder) = self
            .resolve(path)
            .and_then(|found| found.map_or(Ok(None), is_folder))?
        else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            if names.len() >= limit {
                return Err(io::Error::other(format!(
                    "{path} holds more than {limit} names"
                )));
            }
            self.work(1)?;
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    /// Whether there is a folder.
    pub fn is_folder(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|found| {
            found.is_some_and(|found| fs::symlink_metadata(found).is_ok_and(|found| found.is_dir()))
        })
    }

    /// An ordinary file, opened; nothing where there is none.
    pub fn open_file(&self, path: &str) -> io::Result<Option<File>> {
        let Some(found) = self.resolve(path)? else {
            return Ok(None);
        };
        if !fs::symlink_metadata(&found).is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        self.work(OPENED)?;
        // Without links, whatever has come into its place since.
        files::open_beneath(&self.root, found.strip_prefix(&self.root).unwrap_or(&found)).map(Some)
    }

    /// The place of a path without links; nothing where there is none.
    fn resolve(&self, path: &str) -> io::Result<Option<PathBuf>> {
        let mut here: Vec<String> = Vec::new();
        let mut ahead: Vec<String> = split_path_reversed(path);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            here.push(part);
            if here.len() + ahead.len() > PARTS_MAX {
                return Err(io::Error::other(format!(
                    "{path} leads through too many folders"
                )));
            }
            // The kernel walks all of it.
            self.work(here.len() as u64)?;
            let place = self.place(&here);
            let metadata = match fs::symlink_metadata(&place) {
                Ok(metadata) => metadata,
                // To a program a path that is too long is as absent as one that is not there.
                Err(error) if is_nothing(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            if !metadata.is_symlink() {
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                // To a program it is as absent as what is not there.
                return Ok(None);
            }
            let Ok(target) = fs::read_link(&place)?.into_os_string().into_string() else {
                return Ok(None);
            };
            here.pop();
            if target.starts_with('/') {
                here.clear();
            }
            ahead.extend(split_path_reversed(&target));
        }
        Ok(Some(self.place(&here)))
    }

    fn work(&self, more: u64) -> io::Result<()> {
        spend_budget(
            &self.work,
            more,
            WORK_MAX,
            "names, parts of paths and files were looked at",
        )
    }

    fn place(&self, parts: &[String]) -> PathBuf {
        self.root.join(parts.join("/"))
    }
}

/// Adds to what was spent, up to a limit.
fn spend_budget(spent: &Cell<u64>, more: u64, limit: u64, what: &str) -> io::Result<()> {
    spent.set(spent.get().saturating_add(more));
    match spent.get() > limit {
        true => Err(io::Error::other(format!(
            "more than {limit} {what}, which is too many"
        ))),
        false => Ok(()),
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

fn is_folder(path: PathBuf) -> io::Result<Option<PathBuf>> {
    Ok(fs::symlink_metadata(&path)?.is_dir().then_some(path))
}

/// The parts of a path, the last one first.
fn split_path_reversed(path: &str) -> Vec<String> {
    path.split('/')
        .rev()
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A root, and beside it what is none of its business.
    fn world() -> (tempfile::TempDir, RootedFolder) {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("root");
        fs::create_dir_all(root.join("usr/lib/deep")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("usr/lib/a.so.1.2"), "inside").unwrap();
        fs::write(world.path().join("secret"), "outside").unwrap();
        let rooted = RootedFolder::open(&root).unwrap();
        (world, rooted)
    }

    fn text(rooted: &RootedFolder, path: &str) -> Option<String> {
        rooted
            .beginning(path, 100)
            .unwrap()
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn links_are_followed_below_the_root_alone() {
        let (world, rooted) = world();
        let (root, secret) = (world.path().join("root"), world.path().join("secret"));
        symlink("usr/lib", root.join("lib")).unwrap();
        symlink("/usr/lib/a.so.1.2", root.join("usr/lib/deep/absolute")).unwrap();
        symlink(
            "../../../../../../usr/lib/a.so.1.2",
            root.join("usr/lib/deep/upwards"),
        )
        .unwrap();
        symlink(&secret, root.join("etc/out")).unwrap();
        symlink("../../secret", root.join("etc/beside")).unwrap();
        symlink(world.path(), root.join("etc/above")).unwrap();
        symlink("loop", root.join("etc/loop")).unwrap();
        for path in [
            "/lib/a.so.1.2",
            "lib/deep/absolute",
            "/usr/lib/deep/upwards",
            "/usr/../../../lib/./a.so.1.2",
        ] {
            assert_eq!(text(&rooted, path).as_deref(), Some("inside"), "{path}");
        }
        for path in [
            "/etc/out",
            "/etc/beside",
            "/etc/above/secret",
            "/etc/loop",
            "/../secret",
            "/usr/lib/a.so.1.2/x",
            "/usr/lib",
            "/none",
        ] {
            assert_eq!(text(&rooted, path), None, "{path}");
        }
        assert_eq!(rooted.names("/lib", 10).unwrap(), ["a.so.1.2", "deep"]);
        assert_eq!(
            rooted.names("/etc/above", 10).unwrap(),
            Vec::<String>::new()
        );
    }

    #[test]
    fn nothing_is_waited_for_and_nothing_is_without_end() {
        let (world, rooted) = world();
        let root = world.path().join("root");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(root.join("etc/pipe"))
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(text(&rooted, "/etc/pipe"), None);
        assert_eq!(
            rooted.beginning("/usr/lib/a.so.1.2", 2).unwrap().unwrap(),
            b"in"
        );
        for n in 0..5 {
            fs::write(root.join(format!("etc/{n}")), "").unwrap();
        }
        assert!(rooted.names("/etc", 5).is_err(), "the pipe and five files");
        // Each link doubles the way.
        for n in 1..60 {
            symlink(format!("d{}/d{}", n - 1, n - 1), root.join(format!("d{n}"))).unwrap();
        }
        symlink("usr", root.join("d0")).unwrap();
        assert_eq!(text(&rooted, "/d59/x"), None);
        symlink("a".repeat(300), root.join("long")).unwrap();
        assert_eq!(text(&rooted, "/long"), None);
        assert!(RootedFolder::open(&root.join("usr/lib/a.so.1.2")).is_err());
    }

    #[test]
    fn all_questions_together_have_an_end() {
        let (world, rooted) = world();
        let deep = "d/".repeat(400);
        fs::create_dir_all(world.path().join("root").join(&deep)).unwrap();
        let asked = (0..1000).find_map(|n| rooted.beginning(&format!("/{deep}{n}"), 1).err());
        assert!(asked.is_some_and(|error| {
            error
                .to_string()
                .contains("more than 500000 names, parts of paths and files")
        }));
        let (world, rooted) = self::world();
        File::create(world.path().join("root/large"))
            .and_then(|file| file.set_len(BYTES_MAX))
            .unwrap();
        assert!(
            rooted
                .beginning("/large", 1 << 40)
                .is_ok_and(|bytes| bytes.is_some_and(|bytes| bytes.len() as u64 == BYTES_MAX))
        );
        assert!(rooted.beginning("/usr/lib/a.so.1.2", 1).is_err());
    }
}
