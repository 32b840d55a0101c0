//! How a sound document is bent.

use proptest::prelude::*;

/// What is put into a document in the place of something else.
pub const BAITS: [&str; 26] = [
    "\0",
    "\u{1b}[2J\u{1b}]0;x\u{7}",
    "\u{9b}31m",
    "\u{feff}",
    "\u{202e}txt.exe\u{2066}",
    "\r\n",
    "\r",
    "\u{2028}",
    "{{",
    "{{ cluster }}{% for %}",
    "&a [*a, *a]",
    "&a [&b [*b, *b, *b], *b]",
    "!!binary x",
    "999999999999999999999999",
    "-1",
    "1e999",
    "0x7fffffffffffffff",
    "18446744073709551616",
    "gpu[1-99999999]",
    "gpu[9-1,]",
    "r[1-999]n[1-999]p[1-999]",
    "\n\t- ",
    "null",
    "\"",
    "ä\u{301}\u{200d}",
    "@revoked * ssh-ed25519 \u{1b}[0m",
];

/// Bytes that stand in documents.
pub const COMMON: &[u8] = b"{}[]\"':,-|#&*!?%@`\\/ \t\n\r\0\x1b\xff\xc3\x28abgpu0129.=<>()";

/// One change.
#[derive(Debug, Clone)]
pub enum Bend {
    /// A bit of a byte.
    Flip(prop::sample::Index, u8),
    /// Everything from here on is gone.
    Cut(prop::sample::Index),
    /// So many bytes are replaced by a bait.
    Bait(prop::sample::Index, usize, usize),
    /// A piece comes again, so many times.
    Repeat(prop::sample::Index, usize, usize),
    /// A piece is nested so deep.
    Nest(prop::sample::Index, &'static str, usize),
    /// The number here becomes a huge one.
    Huge(prop::sample::Index),
    /// All line ends become those of Windows.
    Windows,
    /// It begins with a byte order mark.
    Mark,
}

impl Bend {
    /// Any of them.
    pub fn any() -> impl Strategy<Value = Bend> {
        let at = || any::<prop::sample::Index>();
        prop_oneof![
            3 => (at(), 0u8..8).prop_map(|(at, bit)| Bend::Flip(at, bit)),
            1 => at().prop_map(Bend::Cut),
            6 => (at(), 0usize..40, 0..BAITS.len()).prop_map(|(at, gone, bait)| Bend::Bait(at, gone, bait)),
            2 => (at(), 1usize..200, 2usize..20).prop_map(|(at, length, times)| Bend::Repeat(at, length, times)),
            1 => (at(), prop::sample::select(vec!["[", "{\"a\":", "- ", "(", "{a: "]), 1usize..3000)
                .prop_map(|(at, open, depth)| Bend::Nest(at, open, depth)),
            2 => at().prop_map(Bend::Huge),
            1 => Just(Bend::Windows),
            1 => Just(Bend::Mark),
        ]
    }
}

/// The document, bent.
pub fn bent(seed: &[u8], bends: &[Bend]) -> Vec<u8> {
    bends.iter().fold(seed.to_vec(), once)
}

fn once(mut bytes: Vec<u8>, bend: &Bend) -> Vec<u8> {
    let length = bytes.len();
    let place = |at: &prop::sample::Index| at.index(length.max(1)).min(length);
    match bend {
        Bend::Flip(at, bit) => {
            if let Some(byte) = bytes.get_mut(place(at)) {
                *byte ^= 1 << bit;
            }
        }
        Bend::Cut(at) => bytes.truncate(place(at)),
        Bend::Bait(at, gone, bait) => {
            let from = place(at);
            bytes.splice(from..(from + gone).min(length), BAITS[*bait].bytes());
        }
        Bend::Repeat(at, piece, times) => {
            let from = place(at);
            let again = bytes[from..(from + piece).min(length)].repeat(*times);
            bytes.splice(from..from, again);
        }
        Bend::Nest(at, open, depth) => {
            let from = place(at);
            bytes.splice(from..from, open.repeat(*depth).into_bytes());
        }
        Bend::Huge(at) => {
            let digit = (place(at)..length)
                .find(|at| bytes[*at].is_ascii_digit())
                .unwrap_or(length);
            bytes.splice(digit..digit, b"99999999999999999999".iter().copied());
        }
        Bend::Windows => {
            bytes = String::from_utf8_lossy(&bytes)
                .replace('\n', "\r\n")
                .into_bytes()
        }
        Bend::Mark => drop(bytes.splice(0..0, "\u{feff}".bytes())),
    }
    bytes
}
