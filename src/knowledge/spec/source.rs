//! The user's files and their line tables: from a byte offset to line and column, and back to the
//! bytes of a line.

use std::ops::Range;

/// One file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path as the user gave it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// A file with its line table.
#[derive(Debug, Clone)]
pub struct SourceText {
    name: String,
    text: String,
    /// Where each line starts, in bytes. 32 bits are enough: the loader takes no more than 64 MiB.
    line_starts: Vec<u32>,
    /// How many characters stand before each block of bytes: a file of one line is not counted anew
    /// for every place in it.
    characters_before: Vec<u32>,
}

/// The bytes of a block.
const BLOCK: usize = 1024;

/// The bytes that start a character: counting them is right also where a text is cut inside of one.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}

impl SourceText {
    /// Notes where the lines start. `\n` ends a line, and `\r\n` with it.
    pub fn new(file: SourceFile) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(
            file.text
                .bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(at, _)| at as u32 + 1),
        );
        let blocks = file.text.as_bytes().chunks(BLOCK).scan(0, |before, block| {
            let here = *before;
            *before += count_characters(block) as u32;
            Some(here)
        });
        let characters_before = blocks.collect();
        SourceText {
            name: file.name,
            text: file.text,
            line_starts,
            characters_before,
        }
    }

    /// The path as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many lines there are.
    pub fn line_count(&self) -> usize {
        self.line_starts.len()
    }

    /// The line that holds a byte, from 0; an offset beyond the end belongs to the last line.
    pub fn line_of(&self, offset: usize) -> usize {
        self.line_starts
            .partition_point(|start| *start as usize <= offset)
            .saturating_sub(1)
    }

    /// The bytes of a line counted from 0, without its line break; empty when there is no such
    /// line.
    pub fn line_span(&self, line: usize) -> Range<usize> {
        let Some(start) = self.line_starts.get(line).map(|start| *start as usize) else {
            return self.text.len()..self.text.len();
        };
        let next = self
            .line_starts
            .get(line + 1)
            .map_or(self.text.len(), |next| *next as usize);
        start..start + self.text[start..next].trim_end_matches(['\n', '\r']).len()
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub fn line_column(&self, offset: usize) -> (u32, u32) {
        let line = self.line_of(offset);
        let start = self
            .line_starts
            .get(line)
            .map_or(0, |start| *start as usize);
        let column = self
            .characters_to(offset.min(self.text.len()))
            .saturating_sub(self.characters_to(start));
        (line as u32 + 1, column as u32 + 1)
    }

    /// How many characters start before a byte.
    fn characters_to(&self, offset: usize) -> usize {
        // Where the text ends with a block, its end is that of the last one.
        let block = (offset / BLOCK).min(self.characters_before.len().saturating_sub(1));
        let before = self
            .characters_before
            .get(block)
            .map_or(0, |before| *before as usize);
        before + count_characters(&self.text.as_bytes()[block * BLOCK..offset])
    }
}

/// All files that diagnostics may point into, by name.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<std::sync::Arc<SourceText>>,
}

impl Sources {
    /// Adds a file; a later one of the same name is not found any more.
    pub fn add(&mut self, source: std::sync::Arc<SourceText>) {
        self.files.push(source);
    }

    /// Takes over another's files.
    pub fn join(&mut self, other: &Sources) {
        self.files.extend(other.files.iter().cloned());
    }

    /// All files, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = &SourceText> {
        self.files.iter().map(AsRef::as_ref)
    }

    /// What stands in all of them.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.files().map(SourceText::text)
    }

    /// The file of this name.
    pub fn get(&self, name: &str) -> Option<&SourceText> {
        self.files
            .iter()
            .find(|source| source.name() == name)
            .map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns() {
        let source = SourceText::new(SourceFile {
            name: "a".into(),
            text: "ab\r\n\u{e9}\u{4e2d}x\n\nend".into(),
        });
        for (offset, place) in [
            (0, (1, 1)),
            (2, (1, 3)),
            (4, (2, 1)),
            (6, (2, 2)),
            (9, (2, 3)),
            (11, (3, 1)),
            (12, (4, 1)),
            (99, (4, 4)),
        ] {
            assert_eq!(source.line_column(offset), place, "{offset}");
        }
        assert_eq!(&source.text()[source.line_span(1)], "\u{e9}\u{4e2d}x");
        assert_eq!(source.line_span(0), 0..2);
        assert_eq!(source.line_span(7), 15..15);
        let long = "\u{4e2d}a".repeat(BLOCK);
        let source = SourceText::new(SourceFile {
            name: "a".into(),
            text: format!("x\n{long}\n{long}"),
        });
        for (offset, _) in long.char_indices() {
            let column = long[..offset].chars().count() as u32 + 1;
            let places =
                [offset + 2, offset + long.len() + 3].map(|offset| source.line_column(offset));
            assert_eq!(places, [(2, column), (3, column)], "{offset}");
        }
    }
}
