//! Long text on a screen of 100 columns.

use crate::base::text::clean_line;

/// A line that begins with `label` (its indentation with it), broken at spaces so that none is longer than `columns`;
/// the lines that follow begin under the text. What the text holds besides words and spaces is made visible.
pub fn labelled(label: &str, text: &str, columns: usize) -> String {
    let indent = label.chars().count();
    let mut out = label.to_owned();
    let mut column = indent;
    for (place, word) in clean_line(text).split(' ').enumerate() {
        let width = word.chars().count();
        if place > 0 && column + 1 + width > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}
