//! A stream of bytes as lines, however it is split: each cut at a limit, without what a terminal
//! takes for commands. One line is kept, so a log of any size needs the same memory.

use memchr::{memchr2, memchr3};
use std::borrow::Cow;

/// The longest line that is looked at, in bytes; what follows in it is passed over. Lines of NCCL
/// end below 2 KiB (`src/debug.cc` of NVIDIA/nccl formats into a buffer of 2048 bytes in the
/// releases before 2.27), stack traces of frameworks are longer.
pub const LINE_MAX: usize = 16 << 10;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// One line: its number from 1 and its text. A progress bar writes many texts into one line (`\r`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// From 1, as editors count.
    pub number: u64,
    /// Without line end, ANSI sequences and NUL; bytes that are not UTF-8 are replaced.
    pub text: &'a str,
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
pub struct LogLineSplitter {
    held: Vec<u8>,
    is_too_long: bool,
    ended: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Lines that were cut at `LINE_MAX`.
    pub cut: u64,
}

impl LogLineSplitter {
    /// Takes the next bytes; every line that ends in them is emitted. Empty lines are counted and
    /// not emitted.
    pub fn feed(&mut self, mut chunk: &[u8], each: &mut impl FnMut(LogLine<'_>)) {
        self.bytes += chunk.len() as u64;
        while let Some(at) = memchr2(b'\n', b'\r', chunk) {
            let (line, rest) = chunk.split_at(at);
            if self.held.is_empty() {
                let whole = &line[..line.len().min(LINE_MAX)];
                self.cut += u64::from(whole.len() < line.len());
                emit_line(whole, self.ended + 1, each);
            } else {
                self.hold(line);
                self.tell_held(each);
            }
            self.ended += u64::from(rest.first() == Some(&b'\n'));
            chunk = rest.get(1..).unwrap_or_default();
        }
        self.hold(chunk);
    }

    /// The stream is over: a last line without a line end is emitted too. Gives back how many lines
    /// there were.
    pub fn end(&mut self, each: &mut impl FnMut(LogLine<'_>)) -> u64 {
        let open = u64::from(!self.held.is_empty());
        self.tell_held(each);
        self.ended + open
    }

    fn hold(&mut self, part: &[u8]) {
        let room = LINE_MAX - self.held.len();
        self.is_too_long |= part.len() > room;
        self.held.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn tell_held(&mut self, each: &mut impl FnMut(LogLine<'_>)) {
        self.cut += u64::from(self.is_too_long);
        self.is_too_long = false;
        emit_line(&self.held, self.ended + 1, each);
        self.held.clear();
    }
}

fn emit_line(bytes: &[u8], number: u64, each: &mut impl FnMut(LogLine<'_>)) {
    let plain = strip_control_sequences(bytes);
    if !plain.is_empty() {
        each(LogLine {
            number,
            text: &String::from_utf8_lossy(&plain),
        });
    }
}

/// Without escape sequences, NUL and backspace.
fn strip_control_sequences(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr3(ESCAPE, 0, 8, bytes) else {
        return Cow::Borrowed(bytes);
    };
    let mut out = bytes[..first].to_vec();
    let mut rest = &bytes[first..];
    while let Some((byte, after)) = rest.split_first() {
        rest = match *byte {
            ESCAPE => after_sequence(after),
            0 | 8 => after,
            other => {
                out.push(other);
                after
            }
        };
    }
    Cow::Owned(out)
}

/// What follows an escape sequence (ECMA-48, 5.4): a control sequence ends with a byte of
/// 0x40..=0x7e, a string with BEL or ESC `\`.
fn after_sequence(rest: &[u8]) -> &[u8] {
    match rest.split_first() {
        Some((b'[', parameters)) => {
            let end = parameters
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(&[], |end| &parameters[end + 1..])
        }
        Some((b']' | b'P' | b'_' | b'^', text)) => match memchr2(BELL, ESCAPE, text) {
            Some(end) => text[end + 1..]
                .strip_prefix(b"\\")
                .unwrap_or(&text[end + 1..]),
            None => &[],
        },
        Some((_, after)) => after,
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(chunks: &[&[u8]]) -> (Vec<(u64, String)>, u64, u64) {
        let (mut lines, mut told) = (LogLineSplitter::default(), Vec::new());
        let mut each = |line: LogLine<'_>| told.push((line.number, line.text.to_owned()));
        chunks.iter().for_each(|chunk| lines.feed(chunk, &mut each));
        let count = lines.end(&mut each);
        (told, count, lines.cut)
    }

    #[test]
    fn lines_are_numbered_as_editors_do() {
        let (told, count, _) = of(&[b"one\r\n\ntwo\rtwo again\nthree"]);
        let told: Vec<(u64, &str)> = told
            .iter()
            .map(|(number, text)| (*number, text.as_str()))
            .collect();
        assert_eq!(
            (told, count),
            (
                vec![(1, "one"), (3, "two"), (3, "two again"), (4, "three")],
                4
            )
        );
    }

    #[test]
    fn commands_to_a_terminal_are_gone_and_what_is_no_text_is_replaced() {
        let (told, ..) =
            of(&[b"\x1b[1;31mNCCL\x1b[0m WARN\0 \x1b]0;title\x07x\x1b]8;;a\x1b\\y \xff\x1b[3"]);
        assert_eq!(told[0].1, "NCCL WARN xy \u{fffd}");
    }

    #[test]
    fn a_line_without_end_is_cut_and_costs_its_limit() {
        let long = vec![b'a'; LINE_MAX + 1];
        let (mut lines, mut told) = (LogLineSplitter::default(), Vec::new());
        for _ in 0..100 {
            lines.feed(&long, &mut |line: LogLine<'_>| told.push(line.text.len()));
        }
        lines.feed(b"\nnext\n", &mut |line: LogLine<'_>| {
            told.push(line.text.len())
        });
        assert_eq!(
            (told, lines.cut, lines.held.capacity() <= 2 * LINE_MAX),
            (vec![LINE_MAX, 4], 1, true)
        );
    }

    proptest! {
        #[test]
        fn the_same_lines_however_the_stream_is_split(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(ESCAPE), Just(b'['), Just(0u8), any::<u8>()], 0..400),
            places in prop::collection::vec(0usize..400, 0..6),
        ) {
            let mut places: Vec<usize> = places.into_iter().map(|place| place.min(bytes.len())).collect();
            places.sort_unstable();
            let (mut chunks, mut from) = (Vec::new(), 0);
            for place in places {
                chunks.push(&bytes[from..place]);
                from = place;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(of(&chunks), of(&[&bytes]));
        }
    }
}
