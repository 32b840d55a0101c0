//! Text on a screen of 100 columns.

use railwright_base::text::clean_line;
use unicode_width::UnicodeWidthStr as _;

/// The columns of a screen.
pub const COLUMNS: usize = 100;

/// The line above a group of entries.
pub fn render_heading(title: &str) -> String {
    format!(
        "\n{title} {}\n",
        "-".repeat(96usize.saturating_sub(title.chars().count()))
    )
}

/// A line that begins with `label` (its indentation with it), broken at spaces so that none is
/// longer than `columns`; the lines that follow begin under the text. What the text holds besides
/// words and spaces is made visible.
pub fn wrap_labelled_text(label: &str, text: &str, columns: usize) -> String {
    let label = clean_line(label);
    let indent = label.width();
    format!(
        "{label}{}\n",
        break_words(clean_line(text).split(' '), indent, indent, columns)
    )
}

/// A line `path value`. A path that is too long is broken after a dot, and a value that then does
/// not fit has a line of its own, as has one that would be broken behind a path that takes most of
/// the columns.
pub fn wrap_field_line(indent: &str, path: &str, value: &str, columns: usize) -> String {
    let path = clean_line(path);
    let together = wrap_labelled_text(&format!("{indent}{path} "), value, columns);
    let has_room = together.lines().count() == 1 || indent.width() + path.width() <= columns / 2;
    if has_room && together.lines().all(|line| line.width() <= columns) {
        return together;
    }
    let path = path.trim_end();
    let (mut out, mut column) = (indent.to_owned(), indent.width());
    for part in path.split_inclusive('.') {
        if column + part.width() > columns {
            out.push_str(&format!("\n{indent}  "));
            column = indent.width() + 2;
        }
        out.push_str(part);
        column += part.width();
    }
    let value = clean_line(value);
    if out.contains('\n') && column + 1 + value.width() <= columns {
        return format!("{out} {value}\n");
    }
    format!(
        "{out}\n{}",
        wrap_labelled_text(&format!("{indent}    "), &value, columns)
    )
}

/// Words that begin at column `begin`, broken before `columns`; the lines that follow begin at
/// `indent`. A list without spaces that has no room on a line of its own is broken after its
/// commas.
pub fn break_words<'a>(
    words: impl Iterator<Item = &'a str>,
    begin: usize,
    indent: usize,
    columns: usize,
) -> String {
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
        let parts: Vec<&str> = if indent + word.width() <= columns {
            vec![word]
        } else {
            word.split_inclusive(',').collect()
        };
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 && column + part.width() > columns {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            }
            out.push_str(part);
            column += part.width();
        }
    }
    out
}

/// A page of plain text, paragraph by paragraph: one with a line that is too long is filled again.
/// Lists, tables and what is indented stand as they are written, broken only where a line is too
/// long.
pub fn wrap_text_page(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for (n, block) in text.trim_end().split("\n\n").enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let fits = block.lines().all(|line| line.width() <= columns);
        let is_prose = block
            .lines()
            .all(|line| line.starts_with(|c: char| !c.is_whitespace() && !"-*|>`#".contains(c)));
        match (fits, is_prose) {
            (true, _) => out.push_str(&format!("{block}\n")),
            (false, true) => out.push_str(&format!(
                "{}\n",
                break_words(block.split_whitespace(), 0, 0, columns)
            )),
            (false, false) => {
                for line in block.lines() {
                    out.push_str(&wrap_list_item(line, columns));
                    out.push('\n');
                }
            }
        }
    }
    out
}

/// A line of a list, what does not fit below its text.
fn wrap_list_item(line: &str, columns: usize) -> String {
    let indent = line.len() - line.trim_start_matches([' ', '-', '*']).len();
    if line.width() <= columns || line.starts_with('|') {
        return line.to_owned();
    }
    format!(
        "{}{}",
        &line[..indent],
        break_words(line[indent..].split(' '), indent, indent, columns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_broken_after_a_dot_and_a_long_value_follows() {
        assert_eq!(
            wrap_field_line("  ", "spec.image", "a:1", 16),
            "  spec.image a:1\n"
        );
        assert_eq!(
            wrap_field_line("  ", "spec.image", "registry:1", 16),
            "  spec.image\n      registry:1\n"
        );
        assert_eq!(
            wrap_field_line("  ", "spec.template.metadata.name", "a", 16),
            "  spec.template.\n    metadata.\n    name a\n"
        );
        assert_eq!(
            wrap_field_line("  ", "spec.image ", "a:1 -> a:2", 20),
            "  spec.image\n      a:1 -> a:2\n",
            "not a word a line"
        );
        assert_eq!(
            wrap_field_line("  ", "image ", "a:1 -> a:2 or so", 20),
            "  image  a:1 -> a:2\n         or so\n"
        );
    }

    #[test]
    fn a_list_that_fills_more_than_a_line_is_broken_after_a_comma() {
        assert_eq!(
            wrap_labelled_text("  on ", "a n[01,03-05,07,09-11] b", 16),
            "  on a\n     n[01,03-05,\n     07,09-11] b\n"
        );
        assert_eq!(wrap_labelled_text("a\nb ", "x", 16), "a\u{fffd}b x\n");
        assert_eq!(
            wrap_labelled_text("  on ", "n[01,03] b", 16),
            "  on n[01,03] b\n"
        );
    }

    #[test]
    fn a_page_is_filled_where_it_is_too_wide_and_nowhere_else() {
        let text = "title\n\
                    \n\
                    short\n\
                    lines stay\n\
                    \n\
                    this one is\n\
                    far too long for it\n\
                    \n\
                    - an item that is long\n\
                    - b\n";
        assert_eq!(
            wrap_text_page(text, 12),
            "title\n\
             \n\
             short\n\
             lines stay\n\
             \n\
             this one is\n\
             far too long\n\
             for it\n\
             \n\
             - an item\n  that is\n  long\n\
             - b\n"
        );
    }
}
