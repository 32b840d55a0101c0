//! Commits and trees of a repository, each believed only when its content has the hash that names
//! it.

use super::pack;
use crate::rooted::RootedFolder;
use flate2::read::ZlibDecoder;
use sha1::{Digest as _, Sha1};
use std::cell::Cell;
use std::io::Read;

/// A tree of 200,000 names.
const OBJECT_MAX_BYTES: u64 = 16 << 20;
/// What is unpacked for one answer, all together.
const UNPACKED_MAX_BYTES: u64 = 64 << 20;
/// Packs that are looked through.
const PACKS_MAX: usize = 2000;

/// The SHA-1 of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(pub [u8; 20]);

/// The kinds of objects that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitObjectKind {
    Commit,
    Tree,
    Blob,
}

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeEntry {
    pub kind: GitTreeEntryKind,
    pub id: Id,
}

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitTreeEntryKind {
    File,
    Folder,
    /// A symbolic link, whose target is its content.
    Link,
    /// The commit of a submodule.
    Submodule,
}

/// What may still be unpacked.
pub struct UnpackBudget(Cell<u64>);

/// The objects of a repository.
pub struct Objects<'a> {
    files: &'a RootedFolder,
    budget: UnpackBudget,
}

impl Id {
    /// From 40 hexadecimal digits.
    pub fn parse(digits: &str) -> Option<Self> {
        let mut id = [0; 20];
        let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        if digits.len() != 40 {
            return None;
        }
        for (byte, pair) in id.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Id(id))
    }

    /// The name of an object with this content.
    pub fn of(kind: GitObjectKind, content: &[u8]) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("{} {}\0", kind.word(), content.len()));
        hash.update(content);
        Id(hash.finalize().into())
    }

    fn digits(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl GitObjectKind {
    fn word(self) -> &'static str {
        match self {
            GitObjectKind::Commit => "commit",
            GitObjectKind::Tree => "tree",
            GitObjectKind::Blob => "blob",
        }
    }
}

impl UnpackBudget {
    /// So many bytes.
    pub fn of(bytes: u64) -> Self {
        UnpackBudget(Cell::new(bytes))
    }

    /// Exactly so many bytes that are unpacked from these; nothing where there are more or fewer,
    /// or too many in all.
    pub fn unpack(&self, packed: impl Read, size: u64) -> Option<Vec<u8>> {
        let bytes = self.up_to(packed, size)?;
        (bytes.len() as u64 == size).then_some(bytes)
    }

    fn up_to(&self, packed: impl Read, most: u64) -> Option<Vec<u8>> {
        let most = Some(most).filter(|most| *most <= OBJECT_MAX_BYTES && *most <= self.0.get())?;
        let mut bytes = Vec::new();
        let read = ZlibDecoder::new(packed)
            .take(most + 1)
            .read_to_end(&mut bytes);
        self.0.set(self.0.get().saturating_sub(bytes.len() as u64));
        read.ok()?;
        (bytes.len() as u64 <= most).then_some(bytes)
    }

    /// Takes so many bytes that are made of what was unpacked.
    pub fn spend(&self, bytes: u64) -> Option<()> {
        self.0.set(self.0.get().checked_sub(bytes)?);
        (bytes <= OBJECT_MAX_BYTES).then_some(())
    }
}

impl<'a> Objects<'a> {
    /// Those of the folder `.git`.
    pub fn new(files: &'a RootedFolder) -> Self {
        Objects {
            files,
            budget: UnpackBudget::of(UNPACKED_MAX_BYTES),
        }
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Id) -> Option<Id> {
        let content = self.content(commit, GitObjectKind::Commit)?;
        let digits = content.strip_prefix(b"tree ")?.get(..40)?;
        Id::parse(std::str::from_utf8(digits).ok()?)
    }

    /// The entries of a tree with their names.
    pub fn tree(&self, id: &Id) -> Option<Vec<(Vec<u8>, TreeEntry)>> {
        let content = self.content(id, GitObjectKind::Tree)?;
        let mut entries = Vec::new();
        let mut rest = &content[..];
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ')?;
            let end = space + rest[space..].iter().position(|byte| *byte == 0)?;
            let id = Id(rest.get(end + 1..end + 21)?.try_into().ok()?);
            let kind = match &rest[..space] {
                b"40000" => GitTreeEntryKind::Folder,
                b"120000" => GitTreeEntryKind::Link,
                b"160000" => GitTreeEntryKind::Submodule,
                mode if mode.starts_with(b"100") => GitTreeEntryKind::File,
                _ => return None,
            };
            entries.push((rest[space + 1..end].to_vec(), TreeEntry { kind, id }));
            rest = &rest[end + 21..];
        }
        Some(entries)
    }

    fn content(&self, id: &Id, kind: GitObjectKind) -> Option<Vec<u8>> {
        let content = match self.loose(id, kind)? {
            Some(content) => content,
            None => self.packed(id, kind)?,
        };
        (Id::of(kind, &content) == *id).then_some(content)
    }

    /// An object with a file of its own: `KIND SIZE`, a zero byte, the content; nothing where there
    /// is none.
    fn loose(&self, id: &Id, kind: GitObjectKind) -> Option<Option<Vec<u8>>> {
        let digits = id.digits();
        let Some(file) = self
            .files
            .open_file(&format!("objects/{}/{}", &digits[..2], &digits[2..]))
            .ok()?
        else {
            return Some(None);
        };
        let whole = self.budget.up_to(file, OBJECT_MAX_BYTES)?;
        let end = whole.iter().position(|byte| *byte == 0)?;
        let head = std::str::from_utf8(&whole[..end]).ok()?;
        (head == format!("{} {}", kind.word(), whole.len() - end - 1))
            .then(|| Some(whole[end + 1..].to_vec()))
    }

    fn packed(&self, id: &Id, kind: GitObjectKind) -> Option<Vec<u8>> {
        for name in self.files.names("objects/pack", PACKS_MAX).ok()? {
            let Some(stem) = name.strip_suffix(".idx") else {
                continue;
            };
            let index = self
                .files
                .open_file(&format!("objects/pack/{name}"))
                .ok()??;
            let Some(offset) = pack::find_object_offset(&index, id) else {
                continue;
            };
            let pack = self
                .files
                .open_file(&format!("objects/pack/{stem}.pack"))
                .ok()??;
            let (found, content) = pack::read_packed_object(&pack, &index, offset, &self.budget)?;
            return (found == kind).then_some(content);
        }
        None
    }
}
