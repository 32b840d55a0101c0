//! The journal of a run as text: one JSON object a line, each sealed with a checksum over itself
//! and the line before, so that a torn end differs from a broken middle. Pure; `journal_writer`
//! writes it.

mod entry;

pub use entry::{GateFailure, JournalEntry, MemberIntent};

use railwright_base::{Diagnostic, Digest};
use serde::{Deserialize, Serialize};

/// The format of journals; another major is refused.
pub const FORMAT_VERSION: &str = "4.0";

/// One line of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Counts from 1.
    pub sequence: u64,
    /// When, RFC 3339.
    pub at: String,
    /// What.
    pub entry: JournalEntry,
}

#[derive(Serialize, Deserialize)]
struct JournalLine {
    sequence: u64,
    at: String,
    entry: JournalEntry,
}

/// The end of the chain: what the next line is sealed with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chain {
    /// The last sequence number.
    pub sequence: u64,
    checksum: String,
}

const SEAL: &str = ",\"checksum\":\"";
const SEAL_LENGTH: usize = SEAL.len() + 64 + 2;

impl Chain {
    /// The next line, with its newline.
    pub fn seal(&mut self, at: String, entry: JournalEntry) -> String {
        self.sequence += 1;
        let line = JournalLine {
            sequence: self.sequence,
            at,
            entry,
        };
        let mut text = serde_json::to_string(&line)
            .expect("our own types have string keys and serialise without fail");
        text.pop();
        self.checksum = compute_line_checksum(&self.checksum, &text);
        format!("{text}{SEAL}{}\"}}\n", self.checksum)
    }

    /// Takes a line apart (without its newline) and moves on, if it is sound and follows the last
    /// one.
    fn open(&mut self, text: &str) -> Option<Record> {
        let cut = text
            .len()
            .checked_sub(SEAL_LENGTH)
            .filter(|cut| text.is_char_boundary(*cut))?;
        let (body, seal) = text.split_at(cut);
        let sum = seal.strip_prefix(SEAL)?.strip_suffix("\"}")?;
        if compute_line_checksum(&self.checksum, body) != sum {
            return None;
        }
        let line: JournalLine = serde_json::from_str(&format!("{body}}}")).ok()?;
        if line.sequence != self.sequence + 1 {
            return None;
        }
        *self = Chain {
            sequence: line.sequence,
            checksum: sum.to_owned(),
        };
        Some(Record {
            sequence: line.sequence,
            at: line.at,
            entry: line.entry,
        })
    }
}

fn compute_line_checksum(previous: &str, body: &str) -> String {
    Digest::of_bytes(format!("{previous}\n{body}").as_bytes()).to_string()
}

/// A journal that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// All sound records.
    pub records: Vec<Record>,
    /// Where the next record goes on.
    pub chain: Chain,
    /// The length of the sound part in bytes; what follows is torn.
    pub sound_bytes: u64,
}

impl Journal {
    /// Whether these bytes are what was read, with nothing after it but a line that is torn: every
    /// seal is one over all lines before it.
    pub fn is_sound_part_of(&self, bytes: &[u8]) -> bool {
        let sound_bytes = usize::try_from(self.sound_bytes).unwrap_or(usize::MAX);
        let Some((sound, rest)) = bytes.split_at_checked(sound_bytes) else {
            return false;
        };
        let seal = format!("{}\"}}\n", self.chain.checksum);
        (sound.is_empty() || sound.ends_with(seal.as_bytes())) && !rest.contains(&b'\n')
    }
}

/// Reads a journal. The last line may be torn, which leaves it without its newline: it was never
/// durable, so nothing was done in its name. Any line with its newline was written whole; one that
/// is broken is an error that names it.
pub fn parse_journal(file: &str, bytes: &[u8]) -> Result<Journal, Diagnostic> {
    let mut journal = Journal {
        records: Vec::new(),
        chain: Chain::default(),
        sound_bytes: 0,
    };
    let mut lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .enumerate()
        .peekable();
    while let Some((number, line)) = lines.next() {
        let whole = line.ends_with(b"\n");
        let text = std::str::from_utf8(line)
            .ok()
            .and_then(|text| text.strip_suffix('\n'));
        match text.and_then(|text| journal.chain.open(text)) {
            Some(record) => {
                if record.sequence == 1 {
                    check_first(file, &record)?;
                }
                journal.records.push(record);
                journal.sound_bytes += line.len() as u64;
            }
            None if !whole => break,
            None if lines.peek().is_none() => return Err(report_broken_end(file, number + 1)),
            None => return Err(report_broken_seal(file, number + 1)),
        }
    }
    Ok(journal)
}

fn check_first(file: &str, record: &Record) -> Result<(), Diagnostic> {
    let JournalEntry::RunStarted {
        format_version,
        tool,
        ..
    } = &record.entry
    else {
        return Err(report_broken_seal(file, 1));
    };
    if format_version.split('.').next() == FORMAT_VERSION.split('.').next() {
        return Ok(());
    }
    Err(Diagnostic::error(
        "RW0706",
        format!("the journal has format {format_version}, this railwright reads {FORMAT_VERSION}"),
    )
    .on(file)
    .effect("what the run did to the fabric can only be told by the railwright that wrote it")
    .state("nothing was changed now")
    .next(format!("use railwright {tool} or newer")))
}

fn report_broken_seal(file: &str, line: usize) -> Diagnostic {
    report_broken_line(
        file,
        format!("line {line} of the journal does not carry the seal that it was written with"),
    )
}

/// A write that was cut short leaves no newline, so this is none: dropping the line could hide what
/// was done in its name.
fn report_broken_end(file: &str, line: usize) -> Diagnostic {
    let what =
        "the last line of the journal was written whole and does not carry its seal any more";
    report_broken_line(
        file,
        format!("{what} (line {line}): it is not a write that was cut short"),
    )
}

fn report_broken_line(file: &str, message: String) -> Diagnostic {
    Diagnostic::error("RW0705", message)
        .on(file)
        .effect("which steps of the run took effect cannot be told from it")
        .state("the targets are as the run left them; nothing was changed now")
        .next(
            "restore the file from a copy, or move the run's folder away and make a new plan: it \
             reads every target anew",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: u64) -> (Vec<String>, Chain) {
        let mut chain = Chain::default();
        let mut out = vec![chain.seal("t".to_owned(), JournalEntry::first_of("r1"))];
        for fence in 1..count {
            out.push(chain.seal(
                "t".to_owned(),
                JournalEntry::LockTaken {
                    fence,
                    part: String::new(),
                },
            ));
        }
        (out, chain)
    }

    #[test]
    fn what_is_sealed_is_read_and_goes_on_where_it_ended() {
        let (lines, chain) = lines(4);
        let text = lines.concat();
        let journal = parse_journal("j", text.as_bytes()).unwrap();
        assert_eq!(journal.records.len(), 4);
        assert_eq!(
            (journal.chain, journal.sound_bytes),
            (chain, text.len() as u64)
        );
    }

    #[test]
    fn a_torn_end_is_dropped_at_every_length() {
        let (lines, _) = lines(3);
        let sound = lines[..2].concat();
        for cut in 0..lines[2].len() {
            let journal =
                parse_journal("j", format!("{sound}{}", &lines[2][..cut]).as_bytes()).unwrap();
            assert_eq!(
                (journal.records.len(), journal.sound_bytes),
                (2, sound.len() as u64),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_broken_middle_is_named() {
        let (mut lines, _) = lines(4);
        lines[1] = lines[1].replace("\"fence\":1", "\"fence\":7");
        assert!(
            parse_journal("j", lines.concat().as_bytes())
                .unwrap_err()
                .message
                .starts_with("line 2 ")
        );
        lines.remove(1);
        assert!(
            parse_journal("j", lines.concat().as_bytes())
                .unwrap_err()
                .message
                .starts_with("line 2 "),
            "a line was taken out"
        );
    }

    #[test]
    fn a_broken_last_line_with_its_newline_is_not_a_torn_one() {
        let (mut lines, _) = lines(3);
        lines[2] = lines[2].replace("\"fence\":2", "\"fence\":7");
        let said = parse_journal("j", lines.concat().as_bytes()).unwrap_err();
        assert!(
            said.code == "RW0705"
                && said.message.starts_with("the last line ")
                && said.message.contains("(line 3)"),
            "{}",
            said.message
        );
        assert_eq!(
            parse_journal("j", lines.concat().trim_end().as_bytes())
                .unwrap()
                .records
                .len(),
            2,
            "without it, it is torn"
        );
        assert_eq!(
            parse_journal(
                "j",
                [lines[..2].concat().as_bytes(), b"\xff\n"]
                    .concat()
                    .as_slice()
            )
            .unwrap_err()
            .code,
            "RW0705"
        );
    }

    #[test]
    fn a_newer_format_is_refused() {
        let mut chain = Chain::default();
        let (first, _) = lines(1);
        let mut entry = parse_journal("j", first[0].as_bytes())
            .unwrap()
            .records
            .remove(0)
            .entry;
        if let JournalEntry::RunStarted { format_version, .. } = &mut entry {
            *format_version = "5.0".to_owned();
        }
        assert_eq!(
            parse_journal("j", chain.seal("t".to_owned(), entry).as_bytes())
                .unwrap_err()
                .code,
            "RW0706"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = parse_journal("j", &bytes);
        }
    }
}
