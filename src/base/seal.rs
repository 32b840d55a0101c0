//! Keyed digests: how content that may hold a secret is distinguished without being kept. A plain
//! digest of a short secret can be guessed by trying; with a key that stays in the state folder it
//! cannot.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What every seal begins with.
const PREFIX: &str = "secret:hmac-sha256:";

/// What a screen shows in the place of a seal.
pub const VEIL: &str = "secret, not shown";

/// The key of one state folder. It has no `Debug` and is never serialised.
#[derive(Clone)]
pub struct SealKey {
    bytes: Vec<u8>,
}

impl SealKey {
    /// The key of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        SealKey {
            bytes: bytes.to_vec(),
        }
    }

    /// The seal of some content at some place; the place is part of it, so that the same secret in
    /// two files does not show as the same. It names its key, so that a seal of another state
    /// folder is not taken for a difference.
    pub fn seal(&self, place: &str, content: &[u8]) -> String {
        let name = self.mac(&[b"key"]);
        format!(
            "{PREFIX}{}:{}",
            &name[..8],
            self.mac(&[place.as_bytes(), content])
        )
    }

    /// Every part goes in with its length, so that no two lists of parts are the same bytes.
    fn mac(&self, parts: &[&[u8]]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.bytes).expect("HMAC takes a key of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        super::text::format_hex(&mac.finalize().into_bytes())
    }
}

/// True for a seal.
pub fn is_seal(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| {
        rest.len() == 73 && rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
    })
}

/// True when both were made with the same key, so that a difference between them says something.
pub fn has_same_seal_key(one: &str, other: &str) -> bool {
    is_seal(one) && is_seal(other) && one[..PREFIX.len() + 8] == other[..PREFIX.len() + 8]
}

/// The text, or what stands for it on a screen.
pub fn mask_seal(text: &str) -> &str {
    if is_seal(text) { VEIL } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_depends_on_key_place_and_content_and_names_its_key() {
        let (one, other) = (SealKey::new(b"one"), SealKey::new(b"other"));
        let seal = one.seal("/etc/a", b"x");
        assert_eq!(seal, one.seal("/etc/a", b"x"));
        assert!(is_seal(&seal) && !is_seal("x") && !is_seal(&seal[1..]));
        for different in [
            one.seal("/etc/a", b"y"),
            one.seal("/etc/b", b"x"),
            one.seal("/etc/", b"ax"),
        ] {
            assert!(different != seal && has_same_seal_key(&seal, &different));
        }
        assert!(
            !has_same_seal_key(&seal, &other.seal("/etc/a", b"x"))
                && !has_same_seal_key(&seal, "x")
        );
        assert_eq!((mask_seal(&seal), mask_seal("plain")), (VEIL, "plain"));
    }

    #[test]
    fn the_digest_is_that_of_rfc_4231() {
        // RFC 4231, test case 2, behind the framing of one part of 28 bytes.
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let plain: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(
            plain,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
