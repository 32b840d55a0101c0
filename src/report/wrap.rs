//! Text on a screen of 100 columns.

use crate::base::text::clean_line;
use unicode_width::UnicodeWidthStr as _;

/// The line above a group of entries.
pub fn rule(title: &str) -> String {
    format!("\n{title} {}\n", "-".repeat(96usize.saturating_sub(title.chars().count())))
}

/// A line that begins with `label` (its indentation with it), broken at spaces so that none is longer than `columns`;
/// the lines that follow begin under the text. What the text holds besides words and spaces is made visible.
pub fn labelled(label: &str, text: &str, columns: usize) -> String {
    let indent = label.width();
    format!("{label}{}\n", broken(clean_line(text).split(' '), indent, indent, columns))
}

/// Words that begin at column `begin`, broken before `columns`; the lines that follow begin at `indent`.
pub fn broken<'a>(words: impl Iterator<Item = &'a str>, begin: usize, indent: usize, columns: usize) -> String {
    let (mut out, mut column) = (String::new(), begin);
    for (place, word) in words.enumerate() {
        if place > 0 && column + 1 + word.width() > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.width();
    }
    out
}
