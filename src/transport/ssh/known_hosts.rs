//! Which lines of known_hosts files concern a server (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Our
//! own reading: russh's knows no patterns, authorities, revocations or tabs, and calls an
//! unreadable file empty.

use super::host_key_check::{HostKeyPins, KnownHostsMarker, PinnedLine};
use crate::TransportError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_system::files;
use russh::keys::PublicKey;
use russh::keys::ssh_key::known_hosts::HostPatterns;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::SplitWhitespace;
use std::sync::{Arc, Mutex, OnceLock};

/// A known_hosts file larger than this is refused.
const FILE_LIMIT: u64 = 64 << 20;

/// So many lines that cannot be read are named.
const MALFORMED_SHOWN: usize = 3;

/// known_hosts files that were read; each is read once for a connector.
#[derive(Default)]
pub(super) struct Files {
    read: Mutex<BTreeMap<PathBuf, Arc<KnownHosts>>>,
}

impl Files {
    /// What these files pin for a server. A file that the user named must be there.
    pub fn pins(
        &self,
        files: &[(PathBuf, bool)],
        names: &KnownHostNames,
    ) -> Result<HostKeyPins, TransportError> {
        let mut pins = HostKeyPins {
            names: names.clone(),
            file: files
                .first()
                .map(|(path, _)| path.display().to_string())
                .unwrap_or_default(),
            lines: Vec::new(),
            malformed: Vec::new(),
        };
        let mut read = Vec::new();
        for (path, named) in files {
            let file = self.file(path, *named)?;
            file.collect(&mut pins)?;
            read.push(file);
        }
        // Who is found does not need what could not be read.
        if pins.lines.is_empty() {
            pins.malformed = read
                .iter()
                .flat_map(|file| file.malformed())
                .take(MALFORMED_SHOWN)
                .cloned()
                .collect();
        }
        Ok(pins)
    }

    fn file(&self, path: &Path, named: bool) -> Result<Arc<KnownHosts>, TransportError> {
        let mut read = lock_ignoring_poison(&self.read);
        if let Some(known) = read.get(path) {
            return Ok(known.clone());
        }
        let text = match files::read_ordinary(path, FILE_LIMIT) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => String::new(),
            Err(error) => {
                return Err(TransportError::Local {
                    reason: format!(
                        "the known_hosts file {} cannot be read: {error}",
                        path.display()
                    )
                    .into(),
                });
            }
        };
        let known = Arc::new(KnownHosts::new(path.display().to_string(), text));
        read.insert(path.to_owned(), known.clone());
        Ok(known)
    }
}

/// The names under which a server may be pinned.
#[derive(Debug, Clone)]
pub(super) struct KnownHostNames {
    /// As known_hosts writes it: `host`, or `[host]:port` for another port than 22.
    pub pinned: String,
    /// The name in the spec, and the address without the port: valid for revocations and
    /// certificates, the name in the spec also for keys.
    pub name: String,
    pub host: String,
}

impl KnownHostNames {
    /// Of an address and port, or of an alias that replaces both.
    pub fn new(name: &str, host: &str, port: u16, alias: Option<&str>) -> Self {
        let host = alias.unwrap_or(host).to_lowercase();
        let pinned = if port == 22 || alias.is_some() {
            host.clone()
        } else {
            format!("[{host}]:{port}")
        };
        KnownHostNames {
            pinned,
            name: name.to_lowercase(),
            host,
        }
    }
}

/// One file; lines are taken apart when a host is looked up. A fleet has a line for every host, so
/// those that name theirs outright are found by name.
pub(super) struct KnownHosts {
    path: String,
    text: String,
    /// Where each line is in the text, in bytes.
    lines: Vec<Range<usize>>,
    /// Lines, by the names in lower case that stand in them.
    by_name: HashMap<String, Vec<usize>>,
    /// Lines that may concern anybody: patterns, hashes.
    of_any: Vec<usize>,
    /// The first lines that are none, once somebody asked.
    malformed: OnceLock<Vec<String>>,
}

impl KnownHosts {
    /// A file by its name for messages, and its text.
    pub fn new(path: String, text: String) -> Self {
        let (mut lines, mut by_name, mut of_any) =
            (Vec::new(), HashMap::<String, Vec<usize>>::new(), Vec::new());
        let mut begin = 0;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            lines.push(begin..begin + line.len());
            begin += line.len();
            let Some((_, patterns, _)) = parse_known_hosts_line(line) else {
                continue;
            };
            if patterns.contains(['*', '?', '!', '|']) {
                of_any.push(index);
                continue;
            }
            for name in patterns.split(',') {
                by_name.entry(name.to_lowercase()).or_default().push(index);
            }
        }
        KnownHosts {
            path,
            text,
            lines,
            by_name,
            of_any,
            malformed: OnceLock::new(),
        }
    }

    /// The first lines that say nothing of any host, as `FILE:LINE`. They are not quoted: the file
    /// may be any.
    fn malformed(&self) -> &[String] {
        self.malformed.get_or_init(|| {
            let lines = self
                .text
                .lines()
                .enumerate()
                .filter(|(_, line)| is_malformed(line));
            lines
                .map(|(index, _)| format!("{}:{}", self.path, index + 1))
                .take(MALFORMED_SHOWN)
                .collect()
        })
    }

    /// Adds the lines that concern the server of `pins`.
    pub fn collect(&self, pins: &mut HostKeyPins) -> Result<(), TransportError> {
        let named = [&pins.names.pinned, &pins.names.name, &pins.names.host]
            .into_iter()
            .filter_map(|name| self.by_name.get(name));
        let may_concern: BTreeSet<usize> = named.chain([&self.of_any]).flatten().copied().collect();
        for index in may_concern {
            let line = &self.text[self.lines[index].clone()];
            let Some((mark, patterns, mut fields)) = parse_known_hosts_line(line) else {
                continue;
            };
            if !is_line_for_server(patterns, &pins.names, mark) {
                continue;
            }
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let key = match (fields.next(), fields.next()) {
                (Some(algorithm), Some(base64)) => {
                    PublicKey::from_openssh(&format!("{algorithm} {base64}")).ok()
                }
                _ => None,
            };
            match key {
                Some(key) => pins.lines.push(PinnedLine {
                    mark,
                    file: self.path.clone(),
                    number,
                    key,
                }),
                // A revocation that cannot be read must not be passed over; a key of an algorithm
                // that we do not know can.
                None if mark == KnownHostsMarker::Revoked => {
                    let reason = format!(
                        "{}:{number}: the key of this @revoked line cannot be read",
                        self.path
                    );
                    return Err(TransportError::Local {
                        reason: reason.into(),
                    });
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// What a line says, its list of patterns, and the words after that; nothing of a comment or a mark
/// that we do not know.
fn parse_known_hosts_line(line: &str) -> Option<(KnownHostsMarker, &str, SplitWhitespace<'_>)> {
    let mut fields = line.split_whitespace();
    let first = fields.next().filter(|field| !field.starts_with('#'))?;
    let (mark, patterns) = match first {
        "@cert-authority" => (KnownHostsMarker::Authority, fields.next()?),
        "@revoked" => (KnownHostsMarker::Revoked, fields.next()?),
        other if other.starts_with('@') => return None,
        other => (KnownHostsMarker::Key, other),
    };
    Some((mark, patterns, fields))
}

/// True for a line that is neither empty, nor a comment, nor names hosts and a key. A key of an
/// algorithm that we do not know is one: its bytes begin with the name of the algorithm (RFC 4253,
/// section 6.6).
fn is_malformed(line: &str) -> bool {
    if matches!(line.trim().chars().next(), None | Some('#')) {
        return false;
    }
    let Some((_, _, mut fields)) = parse_known_hosts_line(line) else {
        return true;
    };
    let (Some(algorithm), Some(key)) = (fields.next(), fields.next()) else {
        return true;
    };
    let Ok(bytes) = STANDARD.decode(key) else {
        return true;
    };
    let length = u32::try_from(algorithm.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes();
    bytes
        .strip_prefix(&length)
        .is_none_or(|rest| !rest.starts_with(algorithm.as_bytes()))
}

/// Whether a list of patterns holds for a server. A negated pattern that matches takes the line
/// out, except for a revocation of the bare host.
fn is_line_for_server(patterns: &str, names: &KnownHostNames, mark: KnownHostsMarker) -> bool {
    let desired: &[&str] = match mark {
        KnownHostsMarker::Key => &[&names.pinned, &names.name],
        KnownHostsMarker::Authority => &[&names.pinned, &names.name],
        KnownHostsMarker::Revoked => &[&names.pinned, &names.name, &names.host],
    };
    desired
        .iter()
        .any(|name| has_matching_pattern(patterns, name))
}

/// Whether a list of patterns, separated by commas, holds for a name in lower case.
pub(super) fn has_matching_pattern(patterns: &str, name: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',').filter(|pattern| !pattern.is_empty()) {
        if pattern.starts_with("|1|") {
            found |= is_hashed_name_of(pattern, name);
        } else if let Some(negated) = pattern.strip_prefix('!') {
            if is_glob_match(negated.to_lowercase().as_bytes(), name.as_bytes()) {
                return false;
            }
        } else {
            found |= is_glob_match(pattern.to_lowercase().as_bytes(), name.as_bytes());
        }
    }
    found
}

/// `|1|salt|hash`: HMAC-SHA1 of the name with the salt as key (ssh-keygen -H).
fn is_hashed_name_of(pattern: &str, name: &str) -> bool {
    let Ok(HostPatterns::HashedName { salt, hash }) = pattern.parse() else {
        return false;
    };
    let Ok(mac) = Hmac::<sha1::Sha1>::new_from_slice(&salt) else {
        return false;
    };
    mac.chain_update(name.as_bytes())
        .verify_slice(&hash)
        .is_ok()
}

/// `*` and `?`, without recursion, so that a hostile pattern costs no more than the product of both
/// lengths.
fn is_glob_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut retry) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (p, t) = (after, from + 1);
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
    use proptest::prelude::*;

    #[test]
    fn lines_that_are_none_are_named() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
        let unknown = "odd AAAAA29kZAAAAAA=";
        let text = format!(
            "# a comment\n\
             \n\
             a {key}\n\
             b {unknown} note\n\
             {key}\n\
             a ssh-ed25519\n\
             @odd a {key}\n\
             @revoked a {key}\n\
             [a]:1,b {key}\n\
             c {}\n",
            &key[..40]
        );
        assert_eq!(
            KnownHosts::new("kh".to_owned(), text).malformed(),
            ["kh:5", "kh:6", "kh:7"]
        );
        let cut = KnownHosts::new(
            "kh".to_owned(),
            format!("a {key}\na {}x", &key[..key.len() - 20]),
        );
        assert_eq!(
            cut.malformed(),
            ["kh:2"],
            "a key that was cut off while it was copied"
        );
    }

    proptest! {
        #[test]
        fn a_star_matches_everything_and_a_name_itself(name in "[a-z0-9.:\\[\\]-]{1,20}") {
            prop_assert!(is_glob_match(b"*", name.as_bytes()));
            prop_assert!(is_glob_match(name.as_bytes(), name.as_bytes()));
            let longer = format!("{name}x");
            prop_assert!(!is_glob_match(longer.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn the_lines_found_are_those_that_looking_at_all_of_them_finds(
            of in proptest::collection::vec(("(|# |@revoked |@cert-authority |@odd )", "[aAb*?!,]{1,4}|\\[a\\]:2222(,b)?"), 0..12),
            name in "[ab]{1,2}",
            port in prop_oneof![Just(22u16), Just(2222)],
        ) {
            let key = "ssh-ed25519 \
                       AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
            let text: String = of.iter().map(|(mark, patterns)| format!("{mark}{patterns} {key}\n")).collect();
            let names = KnownHostNames::new("b", &name, port, None);
            let all = text.lines().enumerate().filter(|(_, line)| parse_known_hosts_line(line).is_some_and(|(mark, patterns, _)| is_line_for_server(patterns, &names, mark)));
            let all: Vec<u32> = all.map(|(index, _)| u32::try_from(index + 1).unwrap()).collect();
            let mut pins = HostKeyPins { names, file: String::new(), lines: Vec::new(), malformed: Vec::new() };
            KnownHosts::new("kh".to_owned(), text).collect(&mut pins).unwrap();
            prop_assert_eq!(pins.lines.iter().map(|line| line.number).collect::<Vec<_>>(), all);
        }
    }
}
