//! How an action says why it failed: an exit status of a short list, and one sentence on stderr
//! behind a mark, so that the one on call reads `the package manager is locked by pid 4711 (apt)`
//! and not four hundred lines of a tool.

use railwright_base::text::one_line;

/// Something that the action needs is not there: a package, a kernel setting, kernel headers, a
/// revision.
pub const MISSING: i32 = 66;
/// A tool or service that the action needs is not on the host.
pub const UNAVAILABLE: i32 = 69;
/// Another program holds the lock; trying again later may do.
pub const LOCKED: i32 = 75;
/// A program was killed before its end, by somebody or for want of memory.
pub const KILLED: i32 = 71;
/// Something else would go with it.
pub const OF_OTHERS: i32 = 78;
/// What came is not what was promised: a checksum, a signature, a revision.
pub const NOT_TRUSTED: i32 = 77;
/// On the way to a file there is what another user than root can make.
pub const NOT_ROOTS: i32 = 79;

/// The shell function `say STATUS SENTENCE`: writes the sentence behind the mark and leaves with
/// the status.
pub const SAY: &str =
    "say() { s=$1; shift; printf 'railwright: %s\\n' \"$*\" >&2; exit \"$s\"; }\n";

/// The sentence in an action's standard error, if it left one.
pub fn find_failure_message(stderr: &str) -> Option<String> {
    stderr
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("railwright: "))
        .map(|sentence| one_line(sentence, 400))
}

/// What an exit status of the list means, in words.
pub fn status_word(code: i32) -> Option<&'static str> {
    match code {
        MISSING => Some("something that it needs is not there"),
        UNAVAILABLE => Some("a tool that it needs is not on the host"),
        LOCKED => Some("another program holds the lock"),
        KILLED => Some("a program that it ran was killed"),
        OF_OTHERS => Some("something else would go with it"),
        NOT_TRUSTED => Some("what came is not what was promised"),
        NOT_ROOTS => Some("root does not follow what another user can make"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sentence_counts_and_is_clean() {
        let stderr =
            "E: noise\nrailwright: first\nmore\nrailwright: locked by pid 7 (a\u{1b}[31mpt)\n";
        assert_eq!(
            find_failure_message(stderr).as_deref(),
            Some("locked by pid 7 (a\u{fffd}[31mpt)")
        );
        assert_eq!(find_failure_message("E: nothing of ours"), None);
    }
}
