//! What the files of sysctl.d set, in the order and with the precedence of systemd-sysctl
//! (sysctl.d(5)): files sort by name over all folders, a name in an earlier folder hides the same
//! name in a later one, the last assignment wins, and an explicit key wins over a pattern.

use crate::sections::of_file;
use std::collections::BTreeMap;

/// The folders, the strongest first.
pub const FOLDERS: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];

/// The files of sysctl.d on a host: each path with those of its lines that can concern a key.
#[derive(Debug, Clone, Default)]
pub struct SettingFiles {
    files: BTreeMap<String, Vec<String>>,
}

/// The assignment that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// White space made single.
    pub value: String,
    /// The file that it stands in.
    pub file: String,
}

impl SettingFiles {
    /// From the answer of `Read::Sysctl`.
    pub fn decode(out: &str) -> Self {
        let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in out.lines() {
            if let Some(path) = line.strip_prefix("file\t") {
                files.entry(path.to_owned()).or_default();
            } else if let Some((path, text)) = line
                .strip_prefix("line\t")
                .and_then(|rest| of_file(rest, |path| files.contains_key(path)))
            {
                files
                    .entry(path.to_owned())
                    .or_default()
                    .push(text.to_owned());
            }
        }
        SettingFiles { files }
    }

    /// These files with one of them replaced, to see what a write would lead to.
    pub fn with(&self, path: &str, content: &str) -> Self {
        let mut files = self.files.clone();
        files.insert(
            path.to_owned(),
            content.lines().map(str::to_owned).collect(),
        );
        SettingFiles { files }
    }

    /// These files without the one at the path.
    pub fn without(&self, path: &str) -> Self {
        SettingFiles {
            files: self
                .files
                .iter()
                .filter(|(name, _)| *name != path)
                .map(|(name, lines)| (name.clone(), lines.clone()))
                .collect(),
        }
    }

    /// The assignment that counts for the key (in path form, `net/ipv4/ip_forward`).
    pub fn effective(&self, key_path: &str) -> Option<Effective> {
        let (mut explicit, mut pattern, mut excluded) = (None, None, false);
        for (path, lines) in self.in_order() {
            for (name, value) in lines
                .iter()
                .filter_map(|line| parse_sysctl_assignment(line))
            {
                let found = value.map(|value| Effective {
                    value: normal_value(&value),
                    file: path.to_owned(),
                });
                match found {
                    None => excluded |= name == key_path,
                    Some(found) if name == key_path => explicit = Some(found),
                    Some(found) if matches_pattern(&name, key_path) => pattern = Some(found),
                    Some(_) => {}
                }
            }
        }
        explicit.or(pattern.filter(|_| !excluded))
    }

    fn in_order(&self) -> impl Iterator<Item = (&str, &[String])> {
        let mut by_name: BTreeMap<&str, (usize, &str, &[String])> = BTreeMap::new();
        for (path, lines) in &self.files {
            let Some((folder, name)) = path.rsplit_once('/') else {
                continue;
            };
            let rank = FOLDERS
                .iter()
                .position(|f| *f == folder)
                .unwrap_or(FOLDERS.len());
            match by_name.get(name) {
                Some((better, ..)) if *better <= rank => {}
                _ => {
                    by_name.insert(name, (rank, path, lines));
                }
            }
        }
        by_name.into_values().map(|(_, path, lines)| (path, lines))
    }
}

/// A key as a path below /proc/sys. As in sysctl.d(5): when the first separator is a slash the key
/// is a path already, else dots and slashes change places (`net.ipv4.conf.eth0/100.rp_filter`).
pub fn key_path(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('/') => key.to_owned(),
        _ => swap_dots_and_slashes(key),
    }
}

/// A key in the one spelling that names it, dots first: `net.ipv4.conf.eth0/100.rp_filter` for
/// `net/ipv4/conf/eth0.100/rp_filter` too.
pub fn key_name(key: &str) -> String {
    swap_dots_and_slashes(&key_path(key))
}

/// Dots and slashes in each other's place.
fn swap_dots_and_slashes(key: &str) -> String {
    key.chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect()
}

/// White space made single: the kernel prints tabs between the numbers of a list.
pub fn normal_value(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `key = value`; no value for `-key`, which takes the key out of patterns.
fn parse_sysctl_assignment(line: &str) -> Option<(String, Option<String>)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    match line.split_once('=') {
        Some((key, value)) => Some((
            key_path(key.trim().trim_start_matches('-')),
            Some(value.trim().to_owned()),
        )),
        None => line
            .strip_prefix('-')
            .map(|key| (key_path(key.trim()), None)),
    }
}

/// `*` and `?` within one path component; nothing else is needed for the names below /proc/sys.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    let (patterns, parts): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    pattern.contains(['*', '?'])
        && patterns.len() == parts.len()
        && patterns
            .iter()
            .zip(&parts)
            .all(|(pattern, part)| matches_part(pattern.as_bytes(), part.as_bytes()))
}

fn matches_part(pattern: &[u8], part: &[u8]) -> bool {
    let (mut p, mut s, mut star) = (0, 0, None);
    while s < part.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, s));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == part[s] => {
                p += 1;
                s += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    s = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> SettingFiles {
        files
            .iter()
            .fold(SettingFiles::default(), |all, (path, content)| {
                all.with(path, content)
            })
    }

    #[test]
    fn the_rules_of_the_manual_page() {
        let rp = "net/ipv4/conf/eth0/rp_filter";
        for (name, set, value) in [
            (
                "last name wins",
                files(&[
                    ("/etc/sysctl.d/10-a.conf", "net.ipv4.conf.eth0.rp_filter=1"),
                    (
                        "/usr/lib/sysctl.d/50-b.conf",
                        "net.ipv4.conf.eth0.rp_filter = 2",
                    ),
                ]),
                Some("2"),
            ),
            (
                "etc hides usr",
                files(&[
                    ("/etc/sysctl.d/50-b.conf", ""),
                    (
                        "/usr/lib/sysctl.d/50-b.conf",
                        "net/ipv4/conf/eth0/rp_filter=2",
                    ),
                ]),
                None,
            ),
            (
                "pattern",
                files(&[(
                    "/usr/lib/sysctl.d/50-default.conf",
                    "net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter",
                )]),
                Some("2"),
            ),
            (
                "explicit beats a later pattern",
                files(&[
                    ("/etc/sysctl.d/1.conf", "-net.ipv4.conf.eth0.rp_filter=0"),
                    ("/etc/sysctl.d/2.conf", "net.ipv4.conf.*.rp_filter=2"),
                ]),
                Some("0"),
            ),
            (
                "excluded",
                files(&[(
                    "/etc/sysctl.d/1.conf",
                    "net.ipv4.conf.*.rp_filter=2\n-net.ipv4.conf.eth0.rp_filter",
                )]),
                None,
            ),
            (
                "comments",
                files(&[(
                    "/etc/sysctl.d/1.conf",
                    "#net.ipv4.conf.eth0.rp_filter=2\n; x",
                )]),
                None,
            ),
        ] {
            assert_eq!(
                set.effective(rp).map(|e| e.value).as_deref(),
                value,
                "{name}"
            );
        }
    }

    #[test]
    fn keys_become_paths_as_the_manual_page_says() {
        for (key, path) in [
            ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
            (
                "net/ipv4/conf/enp3s0.200/forwarding",
                "net/ipv4/conf/enp3s0.200/forwarding",
            ),
            (
                "net.ipv4.conf.enp3s0/200.forwarding",
                "net/ipv4/conf/enp3s0.200/forwarding",
            ),
        ] {
            assert_eq!(key_path(key), path);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_answer_panics(out in "(file\t|line\t|/etc/sysctl.d/a.conf|:|=|[*?a./-]|\n){0,40}") {
            let _ = SettingFiles::decode(&out).effective("a/b");
        }
    }
}
