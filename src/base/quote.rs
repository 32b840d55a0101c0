//! The one quoting function. Every value that reaches a shell passes here, and nowhere else.

/// A value as one word of POSIX sh, always in single quotes, so that no character of it is ever read by a shell.
/// NUL cannot be written in a shell word at all: it is dropped, because no path or value of ours may hold one.
pub fn sh(value: &str) -> String {
    let clean: String = value.chars().filter(|c| *c != '\0').collect();
    let mut out = String::with_capacity(clean.len() + 2);
    out.push('\'');
    out.push_str(&clean.replace('\'', r"'\''"));
    out.push('\'');
    out
}

/// Words joined to one command line.
pub fn sh_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(sh).collect::<Vec<_>>().join(" ")
}
