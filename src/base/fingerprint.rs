//! The fingerprint of a certificate: SHA-256 over its DER form, written as OpenSSL does, in pairs
//! of digits with colons.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// How a fingerprint begins where it stands in the place of a file's path.
const PREFIX: &str = "sha256:";

/// The fingerprint of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these bytes of a certificate (DER).
    pub fn of(certificate: &[u8]) -> Self {
        Fingerprint(Sha256::digest(certificate).into())
    }

    /// What follows `sha256:`; nothing where the text is a path.
    pub fn digits_of(text: &str) -> Option<&str> {
        text.get(..PREFIX.len())
            .filter(|start| start.eq_ignore_ascii_case(PREFIX))
            .map(|_| &text[PREFIX.len()..])
    }

    /// From hexadecimal digits, in either case, with colons or without.
    pub fn parse(digits: &str) -> Option<Self> {
        let digits: Vec<u8> = digits
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()?;
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| (pair[0] << 4) | pair.get(1).copied().unwrap_or(0))
            .collect();
        (digits.len() == 64)
            .then(|| bytes.try_into().ok().map(Fingerprint))
            .flatten()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|byte| format!("{byte:02X}")).collect();
        write!(f, "{PREFIX}{}", pairs.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_is_written() {
        let one = Fingerprint::of(b"abc");
        // The digest of FIPS 180-4's example.
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::parse(digits), Some(one));
        let text = one.to_string();
        assert!(text.starts_with("sha256:BA:78:16:BF:"), "{text}");
        assert_eq!(
            Fingerprint::digits_of(&text).and_then(Fingerprint::parse),
            Some(one)
        );
        assert_eq!(Fingerprint::digits_of("certificates/sha256.pem"), None);
        for wrong in [
            "",
            "ba78",
            &digits[1..],
            &format!("{digits}00"),
            "é",
            &digits.replace('b', "g"),
        ] {
            assert_eq!(Fingerprint::parse(wrong), None, "{wrong}");
        }
    }
}
