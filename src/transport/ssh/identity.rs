//! Private keys on disk: what can be offered, and why another cannot.

use railwright_system::{descriptors, files};
use russh::keys::{Certificate, PrivateKey, PublicKey};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A key file larger than this is none.
const FILE_LIMIT: u64 = 1 << 20;

/// What a key file gives.
pub(super) enum Secret {
    /// A key that can sign.
    Ready(Arc<PrivateKey>),
    /// It is encrypted; only an agent can sign with it.
    Encrypted,
    /// It is not there; an error only when the user named it.
    Absent,
    /// It cannot be opened now: no descriptor is left.
    NoDescriptors,
    /// It cannot be read; why.
    Broken(String),
}

/// One key file with what lies beside it.
pub(super) struct Identity {
    /// The path, for messages.
    pub path: PathBuf,
    /// The private half.
    pub secret: Secret,
    /// The public half, where it is known: from the file itself, or from `.pub` beside it.
    pub public: Option<PublicKey>,
    /// The OpenSSH certificate beside it (`-cert.pub`).
    pub certificate: Option<Certificate>,
}

/// Reads a key file, `.pub` and `-cert.pub`.
pub(super) fn load_identity(path: &Path) -> Identity {
    let certificate =
        read_beside(path, "-cert.pub").and_then(|text| Certificate::from_openssh(text.trim()).ok());
    let beside_public =
        read_beside(path, ".pub").and_then(|text| PublicKey::from_openssh(text.trim()).ok());
    let (secret, own) = decode_read(read_key_file(path));
    Identity {
        path: path.to_owned(),
        secret,
        public: own.or(beside_public),
        certificate,
    }
}

/// The file that lies beside a key, with this behind its name.
fn read_beside(path: &Path, suffix: &str) -> Option<String> {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    read_key_file(Path::new(&name)).ok()
}

fn decode_read(text: std::io::Result<String>) -> (Secret, Option<PublicKey>) {
    match text {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (Secret::Absent, None),
        Err(error) if descriptors::are_used_up(&error) => (Secret::NoDescriptors, None),
        Err(error) => (Secret::Broken(error.to_string()), None),
        Ok(text) => decode_private_key(&text),
    }
}

fn decode_private_key(text: &str) -> (Secret, Option<PublicKey>) {
    // The OpenSSH format carries the public half in the clear, also when the private half is
    // encrypted.
    if let Ok(key) = PrivateKey::from_openssh(text)
        && key.is_encrypted()
    {
        return (Secret::Encrypted, Some(key.public_key().clone()));
    }
    match russh::keys::decode_secret_key(text, None) {
        Ok(key) => {
            let public = key.public_key().clone();
            (Secret::Ready(Arc::new(key)), Some(public))
        }
        Err(russh::keys::Error::KeyIsEncrypted) => (Secret::Encrypted, None),
        Err(_) if text.contains("ENCRYPTED") => (Secret::Encrypted, None),
        Err(error) => (Secret::Broken(error.to_string()), None),
    }
}

fn read_key_file(path: &Path) -> std::io::Result<String> {
    files::read_ordinary(path, FILE_LIMIT).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_could_not_be_opened_is_no_bad_key() {
        for errno in [23, 24] {
            assert!(
                matches!(
                    decode_read(Err(std::io::Error::from_raw_os_error(errno))).0,
                    Secret::NoDescriptors
                ),
                "{errno}"
            );
        }
        assert!(matches!(
            decode_read(Err(std::io::Error::from_raw_os_error(2))).0,
            Secret::Absent
        ));
        assert!(matches!(
            decode_read(Err(std::io::Error::from_raw_os_error(13))).0,
            Secret::Broken(_)
        ));
    }

    #[test]
    fn a_pipe_is_no_key_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(matches!(load_identity(&pipe).secret, Secret::Broken(_)));
    }
}
