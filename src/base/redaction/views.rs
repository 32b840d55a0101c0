//! A text as it reads once what programs did to it on its way is undone, with the place of each
//! part in the text as it came. Making a view takes one pass.

use std::ops::Range;

/// A text with something undone.
pub(super) struct TextView {
    bytes: Vec<u8>,
    /// Where in the text each byte comes from, always at the boundary of a character; the text's
    /// length is the last.
    starts: Vec<usize>,
    is_joined: bool,
}

/// What stands for one escape.
enum UnescapedUnit {
    Byte(u8),
    Char(char),
}

/// Undoes the escape at the beginning of a text: what it stands for, and its length in bytes; none
/// where it is no escape.
type Undo = fn(&str) -> Option<(UnescapedUnit, usize)>;

impl TextView {
    /// Without white space, colons and the escapes of line ends: base64 and hexadecimal are written
    /// in lines and groups.
    pub(super) fn joined(text: &str) -> Self {
        let (mut bytes, mut starts) = (
            Vec::with_capacity(text.len()),
            Vec::with_capacity(text.len() + 1),
        );
        let mut rest = text.char_indices().peekable();
        while let Some((at, letter)) = rest.next() {
            let is_escaped_end = letter == '\\'
                && rest
                    .peek()
                    .is_some_and(|(_, next)| matches!(next, 'n' | 'r' | 't'));
            if is_escaped_end {
                rest.next();
            } else if !letter.is_whitespace() && letter != ':' {
                let mut buffer = [0; 4];
                for byte in letter.encode_utf8(&mut buffer).bytes() {
                    bytes.push(byte);
                    starts.push(at);
                }
            }
        }
        starts.push(text.len());
        TextView {
            bytes,
            starts,
            is_joined: true,
        }
    }

    /// With what a shell, JSON, a URL, a form or HTML escapes, each by itself; none where the text
    /// has no such escape.
    pub(super) fn unescaped(text: &str) -> impl Iterator<Item = Self> {
        let schemes: [(&[char], Undo); 4] = [
            (&['\\'], unescape_backslash),
            (&['%'], unescape_percent),
            (&['+', '%'], unescape_form),
            (&['&'], unescape_entity),
        ];
        let used = schemes
            .into_iter()
            .filter(move |(marks, _)| text.contains(marks[0]));
        let quoted = ["'\\'", "\"'", "$'"]
            .iter()
            .any(|quotes| text.contains(quotes))
            .then_some(text);
        used.map(move |(marks, undo)| TextView::undone(text, marks, undo))
            .chain(quoted.into_iter().map(TextView::unquoted))
    }

    fn undone(text: &str, marks: &[char], undo: Undo) -> Self {
        let mut view = TextView::as_long_as(text);
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            let undone = marks.contains(&letter).then(|| undo(&text[at..])).flatten();
            let (unescaped, length) =
                undone.unwrap_or((UnescapedUnit::Char(letter), letter.len_utf8()));
            view.put(unescaped, at);
            at += length;
        }
        view.starts.push(text.len());
        view
    }

    /// With the quotes of shells undone, which stand side by side in one word: `'it'\''s'`,
    /// `'it'"'"'s'` (dash), `'s'$'\303\274'` (coreutils).
    fn unquoted(text: &str) -> Self {
        let mut view = TextView::as_long_as(text);
        let (mut at, mut has_escapes) = (0, false);
        while let Some(letter) = text[at..].chars().next() {
            let rest = &text[at..];
            let (quotes, opened) = (count_quoted_apostrophes(rest), rest.starts_with("$'"));
            at += match letter {
                '\\' if has_escapes => {
                    let (unescaped, length) =
                        unescape_backslash(rest).unwrap_or((UnescapedUnit::Char(letter), 1));
                    view.put(unescaped, at);
                    length
                }
                '\'' if !has_escapes && rest.starts_with("'\\'") => {
                    view.put(UnescapedUnit::Char(letter), at);
                    3
                }
                '$' if !has_escapes && opened => {
                    has_escapes = true;
                    2
                }
                '\'' => {
                    has_escapes = false;
                    1
                }
                '"' if !has_escapes && quotes > 0 => {
                    (0..quotes).for_each(|_| view.put(UnescapedUnit::Char('\''), at));
                    quotes + 2
                }
                _ => {
                    view.put(UnescapedUnit::Char(letter), at);
                    letter.len_utf8()
                }
            };
        }
        view.starts.push(text.len());
        view
    }

    fn as_long_as(text: &str) -> Self {
        TextView {
            bytes: Vec::with_capacity(text.len()),
            starts: Vec::with_capacity(text.len() + 1),
            is_joined: false,
        }
    }

    fn put(&mut self, unescaped: UnescapedUnit, at: usize) {
        match unescaped {
            UnescapedUnit::Byte(byte) => self.push(&[byte], at),
            UnescapedUnit::Char(letter) => {
                self.push(letter.encode_utf8(&mut [0; 4]).as_bytes(), at)
            }
        }
    }

    fn push(&mut self, bytes: &[u8], at: usize) {
        self.bytes.extend_from_slice(bytes);
        self.starts.extend(std::iter::repeat_n(at, bytes.len()));
    }

    /// What is to be searched.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is to be searched of the text before this place.
    pub(super) fn before(&self, cut: usize) -> &[u8] {
        &self.bytes[..self.starts.partition_point(|start| *start < cut)]
    }

    /// Where these bytes stand in the text as it came.
    pub(super) fn place(&self, found: Range<usize>) -> Range<usize> {
        let end = match self.is_joined {
            true => found
                .end
                .checked_sub(1)
                .map_or(0, |last| self.starts[last] + 1),
            false => self.starts[found.end],
        };
        self.starts[found.start]..end
    }
}

/// How many stand within double quotes here, and nothing besides.
fn count_quoted_apostrophes(text: &str) -> usize {
    let inner = text.strip_prefix('"').unwrap_or_default();
    let after = inner.trim_start_matches('\'');
    if after.starts_with('"') {
        inner.len() - after.len()
    } else {
        0
    }
}

fn hex_byte(digits: Option<&str>) -> Option<u8> {
    let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// The escapes of `printf %q` and `$'...'` of bash (ANSI-C quoting in its manual) and of JSON (RFC
/// 8259, section 7). A backslash before `...` escapes nothing: the text was cut off after it.
fn unescape_backslash(text: &str) -> Option<(UnescapedUnit, usize)> {
    let letter = text[1..]
        .chars()
        .next()
        .filter(|_| !text[1..].starts_with("..."))?;
    let control = |byte| Some((UnescapedUnit::Byte(byte), 2));
    let other = Some((UnescapedUnit::Char(letter), 1 + letter.len_utf8()));
    match letter {
        'n' => control(b'\n'),
        'r' => control(b'\r'),
        't' => control(b'\t'),
        'a' => control(7),
        'b' => control(8),
        'v' => control(11),
        'f' => control(12),
        'e' | 'E' => control(27),
        'x' => hex_byte(text.get(2..4))
            .map(|byte| (UnescapedUnit::Byte(byte), 4))
            .or(other),
        'u' => unescape_unicode(text).or(other),
        '0'..='7' => text
            .get(1..4)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
            .map(|byte| (UnescapedUnit::Byte(byte), 4))
            .or(other),
        _ => other,
    }
}

/// `\uXXXX`, of which two make a character beyond the first 65,536.
fn unescape_unicode(text: &str) -> Option<(UnescapedUnit, usize)> {
    let unit = |at: usize| {
        Some(u16::from_be_bytes([
            hex_byte(text.get(at..at + 2))?,
            hex_byte(text.get(at + 2..at + 4))?,
        ]))
    };
    let first = unit(2)?;
    if let Some(letter) = char::from_u32(first.into()) {
        return Some((UnescapedUnit::Char(letter), 6));
    }
    let second = text
        .get(6..8)
        .filter(|mark| *mark == "\\u")
        .and_then(|_| unit(8))?;
    let letter = char::decode_utf16([first, second]).next()?.ok()?;
    Some((UnescapedUnit::Char(letter), 12))
}

/// RFC 3986, section 2.1.
fn unescape_percent(text: &str) -> Option<(UnescapedUnit, usize)> {
    hex_byte(text.get(1..3)).map(|byte| (UnescapedUnit::Byte(byte), 3))
}

/// A byte that a form escapes, where a blank is a plus (URL Standard, section 5.1).
fn unescape_form(text: &str) -> Option<(UnescapedUnit, usize)> {
    if text.starts_with('+') {
        Some((UnescapedUnit::Byte(b' '), 1))
    } else {
        unescape_percent(text)
    }
}

/// The references that programs write for what HTML and XML reserve (HTML, section 13.1.4).
fn unescape_entity(text: &str) -> Option<(UnescapedUnit, usize)> {
    let end = text.bytes().take(10).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let letter = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let digits = name.strip_prefix('#')?;
            let hex = digits.strip_prefix(['x', 'X']);
            let number = hex.map_or_else(
                || digits.parse().ok(),
                |digits| u32::from_str_radix(digits, 16).ok(),
            )?;
            char::from_u32(number)?
        }
    };
    Some((UnescapedUnit::Char(letter), end + 1))
}
