//! Content addresses: SHA-256 over bytes or over JSON (maps sorted, no white space).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest in lower-case hexadecimal, 64 characters.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Digest(super::text::format_hex(&Sha256::digest(bytes)))
    }

    /// The digest of a value's JSON: our types keep their maps sorted and their fields in order, so
    /// the bytes depend on the value alone. Nothing of it is held in memory: a plan of 10,000 hosts
    /// would need gigabytes.
    pub fn of(value: &impl Serialize) -> Self {
        let mut hash = Hash(Sha256::new());
        serde_json::to_writer(&mut hash, value)
            .expect("our own types have string keys and serialise without fail");
        Digest::of_hash(hash.0)
    }

    /// The digest of what a hash took in.
    pub fn of_hash(hash: Sha256) -> Self {
        Digest(super::text::format_hex(&hash.finalize()))
    }

    /// All 64 characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 characters, for screens.
    pub fn short(&self) -> &str {
        // One that was read from a file may be any text.
        self.0.get(..12).unwrap_or(&self.0)
    }
}

struct Hash(Sha256);

impl std::io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_from_a_file_may_be_any_text() {
        let odd: Digest = serde_json::from_str(&format!("\"a{}\"", "é".repeat(9))).unwrap();
        assert_eq!(odd.short(), odd.as_str());
        assert_eq!(Digest::of(&0).short().len(), 12);
    }
}
