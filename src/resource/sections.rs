//! The layout of an answer that holds several things: lines `== word rest` open a section, lines
//! that begin with `|` are its text. What a file or a program says always stands behind a `|`, so
//! that no content can forge a border.

/// Shell functions for a read's script: `text WORD FILE...` sends a file (nothing when it is not
/// there), `said WORD COMMAND...` sends what a program says on both streams, with its exit status
/// behind the word.
pub const SHELL: &str = concat!(
    super::rights::open_functions!(),
    r#"W=
text() { has "$2" || return 0; printf '\n== %s %s %s\n' "$1" "$(stat -c '%a %U %G' "$2" 2>/dev/null || echo '? ? ?')" "${2#"$R"}"; lined "$2"; }
said() { w=$1; shift; o=$(${W:-as} "$@" 2>&1); printf '\n== %s %s\n' "$w" $?; printf '%s\n' "$o" | sed 's/^/|/'; }
"#
);

/// One section of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// What it is: `networkd`, `pfc`.
    pub word: &'a str,
    /// What stands behind the word: an exit status, or mode, owner, group and path of a file.
    pub rest: &'a str,
    /// The text, one line after the other.
    pub lines: Vec<&'a str>,
}

impl Section<'_> {
    /// The text with line ends.
    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [*line, "\n"]).collect()
    }

    /// The path behind mode, owner and group of a `text` section.
    pub fn path(&self) -> &str {
        self.rest.splitn(4, ' ').nth(3).unwrap_or(self.rest)
    }

    /// The exit status of a `said` section.
    pub fn code(&self) -> Option<i32> {
        self.rest.trim().parse().ok()
    }

    /// The value of a line `key=value`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| {
            line.split_once('=')
                .filter(|(name, _)| *name == key)
                .map(|(_, value)| value)
        })
    }
}

/// The sections of an answer, in order; lines outside of any section are left out.
pub fn parse_sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("== ") {
            let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
            sections.push(Section {
                word,
                rest,
                lines: Vec::new(),
            });
        } else if let (Some(body), Some(section)) = (line.strip_prefix('|'), sections.last_mut()) {
            section.lines.push(body);
        }
    }
    sections
}

/// The first section of this word.
pub fn find_section<'a, 's>(sections: &'s [Section<'a>], word: &str) -> Option<&'s Section<'a>> {
    sections.iter().find(|section| section.word == word)
}

/// `path:text` of grep, where the path is the longest that is a file: names may have `:` in them,
/// too.
pub fn of_file(line: &str, is_file: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let places: Vec<usize> = line.match_indices(':').map(|(at, _)| at).collect();
    let at = places.into_iter().rev().find(|at| is_file(&line[..*at]))?;
    Some((&line[..at], &line[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_cannot_open_a_section() {
        let sections = parse_sections(
            "\n\
             == file 644 root root /etc/a b\n\
             |== file 644 root root /etc/shadow\n\
             |x=1\n\
             \n\
             == pfc 1\n\
             |Attribute read\n",
        );
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].path(), "/etc/a b");
        assert_eq!(sections[0].value("x"), Some("1"));
        assert_eq!(sections[1].code(), Some(1));
    }
}
