//! Is this the host's key? The order of the checks: revoked beats everything; then a host
//! certificate of an authority that is pinned for the name; then a pinned key. There is no "accept
//! new": a key is pinned by a person, or the host is not talked to.

use super::known_hosts::{KnownHostNames, has_matching_pattern};
use railwright_base::text::one_line;
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Algorithm, Certificate, HashAlg, PublicKey, PublicKeyOrCertificate};

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownHostsMarker {
    /// A key of the host.
    Key,
    /// `@cert-authority`: a key that may certify the host's.
    Authority,
    /// `@revoked`: a key that is never to be trusted.
    Revoked,
}

/// One line that concerns a server.
#[derive(Debug)]
pub(super) struct PinnedLine {
    pub mark: KnownHostsMarker,
    pub file: String,
    pub number: u32,
    pub key: PublicKey,
}

/// All lines that concern one server.
#[derive(Debug)]
pub(super) struct HostKeyPins {
    pub names: KnownHostNames,
    /// The file to name when a key is not pinned.
    pub file: String,
    pub lines: Vec<PinnedLine>,
    /// Lines of its files that cannot be read, where none concerns it: `FILE:LINE`.
    pub malformed: Vec<String>,
}

/// What is to be said about the key that a server showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostKeyVerdict {
    /// It is the host's.
    Trusted,
    /// Nothing is pinned for the host.
    Unknown,
    /// Other keys are pinned for it.
    Changed { file: String, line: u32 },
    /// It is revoked.
    Revoked { file: String, line: u32 },
    /// A certificate of a pinned authority that does not hold.
    BadCertificate { reason: String },
}

impl HostKeyPins {
    /// Checks what the server proved to hold.
    pub fn check_key(&self, shown: &PublicKeyOrCertificate) -> HostKeyVerdict {
        let key = shown.public_key();
        let authority = shown
            .certificate()
            .map(|certificate| certificate.signature_key());
        for line in self.marked(KnownHostsMarker::Revoked) {
            let revoked = line.key.key_data();
            if revoked == key.key_data() || Some(revoked) == authority {
                return HostKeyVerdict::Revoked {
                    file: line.file.clone(),
                    line: line.number,
                };
            }
        }
        if let Some(certificate) = shown.certificate()
            && self
                .marked(KnownHostsMarker::Authority)
                .any(|line| line.key.key_data() == certificate.signature_key())
        {
            return match self.certificate_problem(certificate) {
                None => HostKeyVerdict::Trusted,
                Some(reason) => HostKeyVerdict::BadCertificate { reason },
            };
        }
        if self
            .marked(KnownHostsMarker::Key)
            .any(|line| line.key.key_data() == key.key_data())
        {
            return HostKeyVerdict::Trusted;
        }
        let same_algorithm = self
            .marked(KnownHostsMarker::Key)
            .find(|line| line.key.algorithm() == key.algorithm());
        match same_algorithm.or_else(|| self.marked(KnownHostsMarker::Key).next()) {
            Some(line) => HostKeyVerdict::Changed {
                file: line.file.clone(),
                line: line.number,
            },
            None => HostKeyVerdict::Unknown,
        }
    }

    fn marked(&self, mark: KnownHostsMarker) -> impl Iterator<Item = &PinnedLine> {
        self.lines.iter().filter(move |line| line.mark == mark)
    }

    fn certificate_problem(&self, certificate: &Certificate) -> Option<String> {
        if certificate.cert_type() != CertType::Host {
            return Some("it is a certificate for users, not for hosts".to_owned());
        }
        let principals = certificate.valid_principals();
        let names = [&self.names.host, &self.names.name];
        if !principals.is_empty()
            && !principals.iter().any(|principal| {
                names
                    .iter()
                    .any(|name| has_matching_pattern(principal, name))
            })
        {
            return Some(format!(
                "it is made out to {}",
                one_line(&principals.join(", "), 120)
            ));
        }
        if let Some((option, _)) = certificate.critical_options().iter().next() {
            return Some(format!(
                "it has the critical option {}",
                one_line(option, 60)
            ));
        }
        let authority = certificate.signature_key().fingerprint(HashAlg::Sha256);
        certificate
            .validate([&authority])
            .err()
            .map(|_| "its signature or its time of validity does not hold".to_owned())
    }

    /// The algorithms to ask for, those on file first: a host that is pinned by its ECDSA key must
    /// not be met by its Ed25519 key first. RSA with SHA-1 is left out.
    pub fn algorithms(&self) -> Vec<Algorithm> {
        let usual = usual_algorithms();
        let (mut first, rest): (Vec<_>, Vec<_>) = usual.into_iter().partition(|algorithm| {
            self.marked(KnownHostsMarker::Key)
                .any(|line| same_family(&line.key.algorithm(), algorithm))
        });
        first.extend(rest);
        first
    }

    /// The certificate algorithms to ask for: none unless an authority is pinned for the host.
    pub fn certificate_algorithms(&self) -> Vec<Algorithm> {
        if self.marked(KnownHostsMarker::Authority).next().is_some() {
            usual_algorithms()
        } else {
            Vec::new()
        }
    }

    /// The line that would pin a key.
    pub fn line_for(&self, key: &PublicKey) -> String {
        let text = PublicKey::new(key.key_data().clone(), "")
            .to_openssh()
            .unwrap_or_default();
        format!("{} {}", self.names.pinned, text.trim())
    }
}

fn usual_algorithms() -> Vec<Algorithm> {
    use russh::keys::EcdsaCurve::{NistP256, NistP384, NistP521};
    let mut algorithms = vec![Algorithm::Ed25519];
    for curve in [NistP256, NistP384, NistP521] {
        algorithms.push(Algorithm::Ecdsa { curve });
    }
    for hash in [HashAlg::Sha512, HashAlg::Sha256] {
        algorithms.push(Algorithm::Rsa { hash: Some(hash) });
    }
    algorithms
}

fn same_family(pinned: &Algorithm, offered: &Algorithm) -> bool {
    match (pinned, offered) {
        (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
        (pinned, offered) => pinned == offered,
    }
}

#[cfg(test)]
mod tests {
    use super::super::known_hosts::KnownHosts;
    use super::*;
    use crate::TransportError;
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use proptest::prelude::*;
    use russh::keys::ssh_key::known_hosts::HostPatterns;

    const A: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const B: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1Aq3tbSMxQ3c7Cn8rIJpTHdPNZlzEkqfWBpvJ2rmbT";
    const P: &str = "ecdsa-sha2-nistp256 \
                     AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHwf2HMM5TRXvo2SQJjsNkiDD5KqiiNjrGVv3UUh+mMT5RHxiRtOnlqvjhQtBq0VpmpCV/PwUdhOig4vkbqAcEc=";

    fn pins(text: &str, host: &str, port: u16) -> Result<HostKeyPins, TransportError> {
        let names = KnownHostNames::new("gpu-001", host, port, None);
        let mut pins = HostKeyPins {
            names,
            file: "kh".to_owned(),
            lines: Vec::new(),
            malformed: Vec::new(),
        };
        KnownHosts::new("kh".to_owned(), text.to_owned())
            .collect(&mut pins)
            .map(|()| pins)
    }

    fn evaluate(text: &str, host: &str, port: u16, shown: &str) -> HostKeyVerdict {
        pins(text, host, port)
            .unwrap()
            .check_key(&PublicKey::from_openssh(shown).unwrap().into())
    }

    fn changed(line: u32) -> HostKeyVerdict {
        HostKeyVerdict::Changed {
            file: "kh".to_owned(),
            line,
        }
    }

    fn revoked(line: u32) -> HostKeyVerdict {
        HostKeyVerdict::Revoked {
            file: "kh".to_owned(),
            line,
        }
    }

    #[test]
    fn goes_by_the_file() {
        for (text, host, port, shown, verdict) in [
            (format!("h {A}"), "h", 22, A, HostKeyVerdict::Trusted),
            (
                format!("H,other {A} a comment"),
                "h",
                22,
                A,
                HostKeyVerdict::Trusted,
            ),
            (
                format!("gpu-001 {A}"),
                "10.0.0.9",
                2222,
                A,
                HostKeyVerdict::Trusted,
            ),
            (
                format!("\th\t{}", A.replace(' ', "\t")),
                "h",
                22,
                A,
                HostKeyVerdict::Trusted,
            ),
            (
                format!("[h]:2222 {A}"),
                "h",
                2222,
                A,
                HostKeyVerdict::Trusted,
            ),
            (format!("[h]:2222 {A}"), "h", 22, A, HostKeyVerdict::Unknown),
            (format!("h {A}"), "h", 2222, A, HostKeyVerdict::Unknown),
            (
                format!("*.lab {A}"),
                "n1.lab",
                22,
                A,
                HostKeyVerdict::Trusted,
            ),
            (
                format!("n?.lab {A}"),
                "n1.lab",
                22,
                A,
                HostKeyVerdict::Trusted,
            ),
            (
                format!("*.lab,!n1.lab {A}"),
                "n1.lab",
                22,
                A,
                HostKeyVerdict::Unknown,
            ),
            (
                format!("!n1.lab,*.lab {A}"),
                "n1.lab",
                22,
                A,
                HostKeyVerdict::Unknown,
            ),
            (format!("# h {A}\n\nh {A}"), "h", 22, B, changed(3)),
            (format!("h {A}\nh {B}"), "h", 22, B, HostKeyVerdict::Trusted),
            (format!("h {P}"), "h", 22, A, changed(1)),
            (format!("h {P}\nh {A}"), "h", 22, B, changed(2)),
            (format!("@revoked * {A}\nh {A}"), "h", 22, A, revoked(1)),
            (format!("h {A}\n@revoked\th\t{A}"), "h", 2222, A, revoked(2)),
            (
                format!("h {A}\n@revoked other {A}"),
                "h",
                22,
                A,
                HostKeyVerdict::Trusted,
            ),
            (
                format!("@cert-authority * {A}"),
                "h",
                22,
                A,
                HostKeyVerdict::Unknown,
            ),
            (
                format!("@new h {A}\nh garbage\nh ssh-new AAAA\nh {A}"),
                "h",
                22,
                A,
                HostKeyVerdict::Trusted,
            ),
            (String::new(), "h", 22, A, HostKeyVerdict::Unknown),
        ] {
            assert_eq!(
                evaluate(&text, host, port, shown),
                verdict,
                "{text} for {host}:{port}"
            );
        }
    }

    #[test]
    fn knows_hashed_names() {
        // ssh-keygen -H of a file with `gpu-077` and `[10.0.0.5]:2222`.
        let line = |name: &str, salt: &[u8]| {
            let hash = Hmac::<sha1::Sha1>::new_from_slice(salt)
                .unwrap()
                .chain_update(name.as_bytes())
                .finalize()
                .into_bytes();
            HostPatterns::HashedName {
                salt: salt.to_vec(),
                hash: hash.into(),
            }
            .to_string()
        };
        let text = format!(
            "{} {A}\n{} {B}",
            line("h", b"0123456789abcdefghij"),
            line("[h]:2222", b"abcdefghij0123456789")
        );
        assert_eq!(evaluate(&text, "h", 22, A), HostKeyVerdict::Trusted);
        assert_eq!(evaluate(&text, "h", 2222, B), HostKeyVerdict::Trusted);
        assert_eq!(evaluate(&text, "h", 2222, A), changed(2));
        assert_eq!(evaluate(&text, "i", 22, A), HostKeyVerdict::Unknown);
    }

    #[test]
    fn a_revocation_that_cannot_be_read_is_no_silence() {
        let error = pins("@revoked h ssh-ed25519 AAAA", "h", 22).unwrap_err();
        assert!(error.to_string().contains("kh:1"), "{error}");
        assert!(pins("@revoked other ssh-ed25519 AAAA", "h", 22).is_ok());
    }

    #[test]
    fn asks_first_for_the_algorithms_on_file() {
        assert_eq!(
            pins(&format!("h {P}"), "h", 22).unwrap().algorithms()[0].to_string(),
            "ecdsa-sha2-nistp256"
        );
        assert_eq!(
            pins("", "h", 22).unwrap().algorithms()[0],
            Algorithm::Ed25519
        );
        assert!(
            pins(&format!("h {A}"), "h", 22)
                .unwrap()
                .certificate_algorithms()
                .is_empty()
        );
        assert!(
            !pins(&format!("@cert-authority h {A}"), "h", 22)
                .unwrap()
                .certificate_algorithms()
                .is_empty()
        );
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "[@!|*?\\[\\]:,#a-zA-Z0-9 \t\n]{0,120}", host in "[a-z*?!.]{0,8}") {
            let _ = pins(&text, &host, 22);
        }
    }
}
