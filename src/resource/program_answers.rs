//! The output of a program of reads taken apart into answers: by borders that nobody but us can
//! write, whatever stands between.

use super::program::SECTION_LIMIT_BYTES;
use super::{AnswerStatus, Read, ReadResult, ReadResults, rights};
use std::collections::BTreeMap;

/// What is kept of each thing that a section lacks.
const LACK_LIMIT_BYTES: usize = 2048;

/// The answers in a program's output. Sections that never began or never ended are `CutOff`; of two
/// with the same key the first that ended counts.
pub fn parse_program_answers(reads: &[Read], nonce: &str, output: &[u8]) -> ReadResults {
    let begin = format!("\n@{nonce} begin ").into_bytes();
    let end = format!("\n@{nonce} end ").into_bytes();
    let denied = format!("\n@{nonce} denied ").into_bytes();
    let mut answers = ReadResults::default();
    let mut open: BTreeMap<Vec<u8>, String> = reads
        .iter()
        .map(|read| (border_key(read).into_bytes(), read.key()))
        .collect();
    for key in open.values() {
        answers.insert(
            key.clone(),
            ReadResult {
                status: AnswerStatus::CutOff,
                out: String::new(),
            },
        );
    }
    let mut rest = output;
    while let Some(start) = find_subslice(rest, &begin) {
        rest = &rest[start + begin.len()..];
        let Some(line) = find_subslice(rest, b"\n") else {
            break;
        };
        let Some(key) = open.get(&rest[..line]) else {
            continue;
        };
        let body = &rest[line + 1..];
        let section = &body[..find_subslice(body, &begin).unwrap_or(body.len())];
        let answer = parse_section_answer(section, &end, &denied);
        let has_ended = answer.status != AnswerStatus::CutOff;
        answers.insert(key.clone(), answer);
        if has_ended {
            open.remove(&rest[..line]);
        }
    }
    answers
}

/// A key as it stands in a border: one line, whatever is in the read.
pub(super) fn border_key(read: &Read) -> String {
    read.key()
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

fn parse_section_answer(section: &[u8], end: &[u8], denied: &[u8]) -> ReadResult {
    let lacks = collect_denied_lines(section, denied);
    if !lacks.is_empty() {
        return rights::build_denied_answer(&lacks);
    }
    let Some(at) = find_subslice(section, end) else {
        let shown = &section[..section.len().min(SECTION_LIMIT_BYTES)];
        return ReadResult {
            status: AnswerStatus::CutOff,
            out: String::from_utf8_lossy(shown).into_owned(),
        };
    };
    let tail = String::from_utf8_lossy(&section[at + end.len()..]);
    let status = match tail
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .parse::<i32>()
    {
        _ if at > SECTION_LIMIT_BYTES => AnswerStatus::TooLong,
        Ok(124 | 137) => AnswerStatus::TimedOut,
        Ok(code) => AnswerStatus::Exit(code),
        Err(_) => AnswerStatus::CutOff,
    };
    ReadResult {
        status,
        out: String::from_utf8_lossy(&section[..at.min(SECTION_LIMIT_BYTES)]).into_owned(),
    }
}

/// What a section said that it lacks. However little is missing, the rest of the answer is not the
/// whole.
fn collect_denied_lines(section: &[u8], denied: &[u8]) -> Vec<String> {
    let (mut lacks, mut rest) = (Vec::new(), section);
    while let Some(at) = find_subslice(rest, denied) {
        rest = &rest[at + denied.len()..];
        let line = &rest[..find_subslice(rest, b"\n").unwrap_or(rest.len())];
        lacks.push(String::from_utf8_lossy(&line[..line.len().min(LACK_LIMIT_BYTES)]).into_owned());
    }
    lacks
}

/// Where `needle` begins in `hay`. Borders begin with a line feed, so a jump from one to the next
/// is enough.
fn find_subslice(hay: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(step) = hay[from..].iter().position(|byte| *byte == first) {
        if hay[from + step..].starts_with(needle) {
            return Some(from + step);
        }
        from += step + 1;
    }
    None
}
