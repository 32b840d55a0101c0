//! Files of this machine: read with a limit, written atomically, 0600 unless said otherwise.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path};

/// Whether it is a file without a byte.
pub fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

/// The whole file, refused beyond `limit` bytes.
pub fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, path, limit)
}

/// The whole of an ordinary file, refused beyond `limit` bytes. A pipe could keep us waiting, and a
/// device has no end, so both are refused.
pub fn read_ordinary(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_ordinary(path)?, path, limit)
}

/// Opens such a file.
pub fn open_ordinary(path: &Path) -> io::Result<File> {
    require_ordinary_file(
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)?,
    )
}

/// The whole of an ordinary file below a folder, refused beyond `limit` bytes. No part of the way
/// from there may be a link: whoever can write there may put one in its place at any moment.
pub fn read_beneath(folder: &Path, below: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_beneath(folder, below)?, below, limit)
}

/// The first line of an ordinary file below a folder, reached without a link: with its newline,
/// unless the file, or so many bytes of it, end before that.
pub fn read_first_line_beneath(folder: &Path, below: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(open_beneath(folder, below)?.take(limit)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Opens an ordinary file below a folder, no link followed.
pub fn open_beneath(folder: &Path, below: &Path) -> io::Result<File> {
    const FOLDER: OFlags = OFlags::PATH
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);
    const FILE: OFlags = OFlags::RDONLY
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);
    let mut here = None;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let flags = if parts.peek().is_some() { FOLDER } else { FILE };
        here = Some(match &here {
            None => openat(CWD, folder.join(name), flags, Mode::empty())?,
            Some(above) => openat(above, name, flags, Mode::empty())?,
        });
    }
    require_ordinary_file(File::from(here.ok_or(io::ErrorKind::InvalidInput)?))
}

/// What was opened is looked at, and not what may have come into its place.
fn require_ordinary_file(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no ordinary file",
        )),
    }
}

fn read_all(file: File, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("{} is larger than {limit} bytes", path.display()),
        ));
    }
    Ok(bytes)
}

/// A file of any size piece by piece, as it comes; `-` is the standard input. A folder is an error.
pub fn stream_file(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let from = if path == Path::new("-") {
        Path::new("/dev/stdin")
    } else {
        path
    };
    let mut file = File::open(from)?;
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => each(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The whole of a file that is to hold a JSON object, refused beyond `limit` bytes. Of one that does
/// not begin as one, or never ends (`/dev/zero`), no more is read.
pub fn read_object(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    const BEGINNING: u64 = 4096;
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(limit + 1);
    (&mut file).take(BEGINNING).read_to_end(&mut bytes)?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it does not begin with `{`",
        ));
    }
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("{} is larger than {limit} bytes", path.display()),
        ));
    }
    Ok(bytes)
}

/// What a person asked for: [`write_atomic`], but what is no file (`/dev/null`, a pipe) is written
/// to and stays. For root a rename would put a file in its place. Only for a path of the command
/// line: an inventory may hold a device that is a disk.
pub fn write_given(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    write_atomic(path, bytes, mode)
}

/// Temporary file in the same folder, mode set at creation, fsync, rename, fsync of the folder: a
/// reader sees the old file or the new one, and after a power cut it is one of the two. What was
/// there is never opened, whatever it is.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (folder, temporary) = prepare_temporary_path(path)?;
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Whether [`write_given`] could write there now: a file beside it comes and goes. What is no file
/// is not opened, which could block.
pub fn can_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    let (_, temporary) = prepare_temporary_path(path)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    fs::remove_file(&temporary)
}

/// The folder of a file, and the one beside it that is renamed to it.
fn prepare_temporary_path(path: &Path) -> io::Result<(&Path, std::path::PathBuf)> {
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
    let temporary = folder.join(format!(
        ".{}.{}.tmp",
        name.to_string_lossy(),
        std::process::id()
    ));
    let _ = fs::remove_file(&temporary);
    Ok((folder, temporary))
}

/// Writes a file that must not be there yet; false when it is. It appears with its whole content or
/// not at all.
pub fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<bool> {
    let temporary = path.with_extension(format!("{}.tmp", super::clock::generate_nonce()?));
    let write = || -> io::Result<bool> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => linked.map(|()| true),
        }
    };
    let written = write();
    let _ = fs::remove_file(&temporary);
    written
}

/// Makes a folder and those above it, 0700 where they are new.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Whether a file or a folder belongs to this user.
pub fn is_own(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.uid() == fs::metadata("/proc/self")?.uid())
}

/// The number that the file system has for it.
pub fn inode_of(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.ino())
}

/// Makes a folder and those above it; one that is there is no error.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Removes a file or a whole folder; one that is not there is no error.
pub fn remove_path(path: &Path) -> io::Result<()> {
    let done = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The names in a folder, sorted; a folder that is not there is empty. Names that are not UTF-8 are
/// left out.
pub fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// The last `limit` bytes of a file as text; what is not UTF-8 is replaced.
pub fn read_file_tail(path: &Path, limit: u64) -> io::Result<String> {
    use std::io::Seek as _;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A second name for a file, or a copy of it where the file system has no hard links.
pub fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    remove_path(to)?;
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(|_| ()))
}

/// Moves a file or folder within one file system.
pub fn rename_path(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Whether something is there, link targets not followed.
pub fn is_present(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The path with all links resolved; it must exist.
pub fn resolve_path(path: &Path) -> io::Result<std::path::PathBuf> {
    fs::canonicalize(path)
}

/// A fresh folder of this process alone, 0700, in the system's folder for temporary files; the
/// caller removes it.
pub fn temporary_folder(prefix: &str) -> io::Result<std::path::PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let nonce = super::clock::generate_nonce()?;
    let path = std::env::temp_dir().join(format!("{prefix}-{}", &nonce[..12]));
    fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// Whether a device or file can be opened for reading and writing.
pub fn opens_for_writing(path: &Path) -> bool {
    OpenOptions::new().read(true).write(true).open(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt as _;

    /// A pipe, and no device of this machine: the test is root where a rename would work.
    #[test]
    fn what_is_no_file_is_written_to_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_given(&pipe, b"one", 0o600).unwrap();
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "one");
        write_given(&folder.path().join("file"), b"two", 0o600).unwrap();
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"two");
    }

    /// A writer that opened the pipe would wait for a reader, for ever.
    #[test]
    fn what_is_kept_takes_the_place_of_what_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        // Whoever reads it, so that a write into it would come to an end here.
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&pipe)
            .unwrap();
        write_atomic(&pipe, b"one", 0o600).unwrap();
        assert!(fs::symlink_metadata(&pipe).unwrap().is_file());
        assert_eq!(fs::read(&pipe).unwrap(), b"one");
        drop(reader);
    }

    /// Whatever is put into the place of a part of the way after somebody looked at it.
    #[test]
    fn what_lies_beneath_is_an_ordinary_file_without_a_link_on_the_way() {
        use std::os::unix::fs::symlink;
        let world = tempfile::tempdir().unwrap();
        let at = |name: &str| world.path().join(name);
        fs::create_dir_all(at("in/deep")).unwrap();
        fs::create_dir(at("out")).unwrap();
        fs::write(at("in/deep/file"), "ours").unwrap();
        fs::write(at("out/file"), "foreign").unwrap();
        symlink("../out", at("in/folder")).unwrap();
        symlink("../out/file", at("in/link")).unwrap();
        symlink("deep/file", at("in/inner")).unwrap();
        symlink("in", at("root")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("in/pipe"))
                .status()
                .unwrap()
                .success()
        );
        let read = |folder: &str, below: &str| read_beneath(&at(folder), Path::new(below), 10);
        assert_eq!(read("in", "deep/file").unwrap(), b"ours");
        assert_eq!(
            read("in", "deep/none").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        for below in [
            "folder/file",
            "link",
            "inner",
            "pipe",
            "deep",
            "",
            "../out/file",
            "/etc/passwd",
        ] {
            assert!(read("in", below).is_err(), "{below}");
        }
        assert_eq!(
            read("root", "deep/file").unwrap(),
            b"ours",
            "the way to the folder is not looked at"
        );
        assert!(read("", "root/deep/file").is_err());
        // Opened as others open it, a pipe waits for somebody who writes, for ever.
        assert!(
            read_ordinary(&at("in/pipe"), 10).is_err()
                && read_ordinary(Path::new("/dev/zero"), 10).is_err()
        );
        assert!(crate::lock_file::LockFile::is_held(&at("in/pipe")).is_err());
    }
}
