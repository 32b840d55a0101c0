//! Which lines of known_hosts files concern a server (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Our own reading: russh's
//! knows no patterns, authorities, revocations or tabs, and calls an unreadable file empty.

use super::pins::{Mark, PinnedLine, Pins};
use crate::system::files;
use crate::transport::TransportError;
use hmac::{Hmac, KeyInit as _, Mac as _};
use russh::keys::PublicKey;
use russh::keys::ssh_key::known_hosts::HostPatterns;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A known_hosts file larger than this is refused.
const FILE_LIMIT: u64 = 64 << 20;

/// known_hosts files that were read; each is read once for a connector.
#[derive(Default)]
pub(super) struct Files {
    read: Mutex<BTreeMap<PathBuf, Arc<KnownHosts>>>,
}

impl Files {
    /// What these files pin for a server. A file that the user named must be there.
    pub fn pins(&self, files: &[(PathBuf, bool)], names: &Names) -> Result<Pins, TransportError> {
        let mut pins = Pins {
            names: names.clone(),
            file: files.first().map(|(path, _)| path.display().to_string()).unwrap_or_default(),
            lines: Vec::new(),
        };
        for (path, named) in files {
            self.file(path, *named)?.collect(&mut pins)?;
        }
        Ok(pins)
    }

    fn file(&self, path: &Path, named: bool) -> Result<Arc<KnownHosts>, TransportError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(path) {
            return Ok(known.clone());
        }
        let text = match files::read_limited(path, FILE_LIMIT) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => String::new(),
            Err(error) => {
                return Err(TransportError::Local { reason: format!("the known_hosts file {} cannot be read: {error}", path.display()) });
            }
        };
        let known = Arc::new(KnownHosts { path: path.display().to_string(), text });
        read.insert(path.to_owned(), known.clone());
        Ok(known)
    }
}

/// The names under which a server may be pinned.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// As known_hosts writes it: `host`, or `[host]:port` for another port than 22.
    pub pinned: String,
    /// The name in the spec, and the address without the port: valid for revocations and certificates, the name in the
    /// spec also for keys.
    pub name: String,
    pub host: String,
}

impl Names {
    /// Of an address and port, or of an alias that replaces both.
    pub fn new(name: &str, host: &str, port: u16, alias: Option<&str>) -> Self {
        let host = alias.unwrap_or(host).to_lowercase();
        let pinned = if port == 22 || alias.is_some() { host.clone() } else { format!("[{host}]:{port}") };
        Names { pinned, name: name.to_lowercase(), host }
    }
}

/// One file; lines are taken apart when a host is looked up.
pub(super) struct KnownHosts {
    pub path: String,
    pub text: String,
}

impl KnownHosts {
    /// Adds the lines that concern the server of `pins`.
    pub fn collect(&self, pins: &mut Pins) -> Result<(), TransportError> {
        for (index, line) in self.text.lines().enumerate() {
            let mut fields = line.split_whitespace();
            let Some(first) = fields.next().filter(|field| !field.starts_with('#')) else { continue };
            let (mark, patterns) = match first {
                "@cert-authority" => (Mark::Authority, fields.next()),
                "@revoked" => (Mark::Revoked, fields.next()),
                other if other.starts_with('@') => continue,
                other => (Mark::Key, Some(other)),
            };
            let Some(patterns) = patterns else { continue };
            if !concerns(patterns, &pins.names, mark) {
                continue;
            }
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let key = match (fields.next(), fields.next()) {
                (Some(algorithm), Some(base64)) => PublicKey::from_openssh(&format!("{algorithm} {base64}")).ok(),
                _ => None,
            };
            match key {
                Some(key) => pins.lines.push(PinnedLine { mark, file: self.path.clone(), number, key }),
                // A revocation that cannot be read must not be passed over; a key of an algorithm that we do not know can.
                None if mark == Mark::Revoked => {
                    let reason = format!("{}:{number}: the key of this @revoked line cannot be read", self.path);
                    return Err(TransportError::Local { reason });
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Whether a list of patterns holds for a server. A negated pattern that matches takes the line out, except for a
/// revocation of the bare host.
fn concerns(patterns: &str, names: &Names, mark: Mark) -> bool {
    let wanted: &[&str] = match mark {
        Mark::Key => &[&names.pinned, &names.name],
        Mark::Authority => &[&names.pinned, &names.name],
        Mark::Revoked => &[&names.pinned, &names.name, &names.host],
    };
    wanted.iter().any(|name| matches(patterns, name))
}

/// Whether a list of patterns, separated by commas, holds for a name in lower case.
pub(super) fn matches(patterns: &str, name: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',').filter(|pattern| !pattern.is_empty()) {
        if pattern.starts_with("|1|") {
            found |= hashed(pattern, name);
        } else if let Some(negated) = pattern.strip_prefix('!') {
            if glob(negated.to_lowercase().as_bytes(), name.as_bytes()) {
                return false;
            }
        } else {
            found |= glob(pattern.to_lowercase().as_bytes(), name.as_bytes());
        }
    }
    found
}

/// `|1|salt|hash`: HMAC-SHA1 of the name with the salt as key (ssh-keygen -H).
fn hashed(pattern: &str, name: &str) -> bool {
    let Ok(HostPatterns::HashedName { salt, hash }) = pattern.parse() else { return false };
    let Ok(mac) = Hmac::<sha1::Sha1>::new_from_slice(&salt) else { return false };
    mac.chain_update(name.as_bytes()).verify_slice(&hash).is_ok()
}

/// `*` and `?`, without recursion, so that a hostile pattern costs no more than the product of both lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
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

    proptest! {
        #[test]
        fn a_star_matches_everything_and_a_name_itself(name in "[a-z0-9.:\\[\\]-]{1,20}") {
            prop_assert!(glob(b"*", name.as_bytes()));
            prop_assert!(glob(name.as_bytes(), name.as_bytes()));
            let longer = format!("{name}x");
            prop_assert!(!glob(longer.as_bytes(), name.as_bytes()));
        }
    }
}
