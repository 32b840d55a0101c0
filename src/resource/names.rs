//! Words, paths and names of netdevs that no shell, file or kernel takes for anything else.

/// An absolute path without `..`, control characters or a trailing slash.
pub fn is_clean_path(path: &str) -> bool {
    path.starts_with('/')
        && path.len() > 1
        && !path.ends_with('/')
        && !path.chars().any(char::is_control)
        && path
            .split('/')
            .skip(1)
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// A name of letters, digits and these further characters, not beginning with `-`.
pub fn is_word(text: &str, further: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || further.contains(c))
}

/// What the kernel takes as an interface name (`IFNAMSIZ` is 16 with the end mark), less what no
/// shell, udev rule or file name of ours should have to carry.
pub fn is_netdev(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@'))
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_their_place_are_not_clean() {
        assert!(is_clean_path("/etc/a b.conf"));
        for path in ["etc/a", "/", "/etc/", "/etc/../a", "/etc//a", "/a\nb", ""] {
            assert!(!is_clean_path(path), "{path:?}");
        }
    }
}
