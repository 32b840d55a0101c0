//! Keys of a lab, made once and kept: the SSH key that root accepts, a host key for each machine,
//! the repository's key.

use super::folder::{LabFolder, machine_name, new_folder_error};
use super::{MOST_MACHINES, Result};
use railwright_base::{Diagnostic, text};
use railwright_system::{files, process::Program};
use std::path::Path;

/// Makes what is missing: `id`, a host key for every possible machine, and `known_hosts` that pins
/// all of them. All at once, so that `known_hosts` never changes when machines are added.
pub fn prepare_keys(folder: &LabFolder) -> Result<()> {
    make_ssh_key(&folder.identity(), "railwright-lab")?;
    let mut pinned = String::new();
    let keys = folder.path("host-keys");
    files::make_folder(&keys).map_err(|error| new_folder_error(&keys, &error))?;
    for number in 1..=MOST_MACHINES {
        let key = host_key(folder, number);
        make_ssh_key(&key, &machine_name(number))?;
        pinned.push_str(&format!(
            "[127.0.0.1]:{} {}\n",
            folder.ssh_port(number),
            public_key(&key)?
        ));
    }
    files::write_atomic(&folder.known_hosts(), pinned.as_bytes(), 0o644)
        .map_err(|error| new_folder_error(&folder.known_hosts(), &error))
}

/// The private host key of a machine.
pub fn host_key(folder: &LabFolder, number: u8) -> std::path::PathBuf {
    folder.path("host-keys").join(machine_name(number))
}

/// Type and key of a key's public half, without the comment.
fn public_key(private: &Path) -> Result<String> {
    let path = private.with_extension("pub");
    let bytes =
        files::read_limited(&path, 4096).map_err(|error| new_folder_error(&path, &error))?;
    let line = String::from_utf8_lossy(&bytes).into_owned();
    Ok(line
        .split_whitespace()
        .take(2)
        .collect::<Vec<_>>()
        .join(" "))
}

fn make_ssh_key(path: &Path, comment: &str) -> Result<()> {
    if files::is_present(path) && files::is_present(&path.with_extension("pub")) {
        return Ok(());
    }
    files::remove_path(path).map_err(|error| new_folder_error(path, &error))?;
    let keygen = Program::new("ssh-keygen")
        .arguments(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"]);
    expect_success("ssh-keygen", &keygen.argument(path.to_string_lossy()), b"").map(|_| ())
}

/// Runs a short program; its standard output, or a diagnostic with the end of what it said.
pub fn expect_success(what: &str, program: &Program, input: &[u8]) -> Result<Vec<u8>> {
    let failed = |why: String| {
        Diagnostic::error(
            "RW0908",
            format!("{what} failed: {}", text::one_line(&why, 300)),
        )
        .effect("the machines accept only pinned keys and signed packages")
        .next("fix the cause, then run `railwright lab up` again")
    };
    let output = program
        .output_of(input)
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()).into())
}

/// A keyring for one use: gpg's agent keeps sockets beside its keys, and a lab's own path may be
/// too long for those.
pub struct Keyring {
    home: std::path::PathBuf,
}

impl Keyring {
    /// Opens the lab's signing key, made at the first use.
    pub fn open(folder: &LabFolder) -> Result<Self> {
        let home = files::temporary_folder("railwright-gpg")
            .map_err(|error| new_folder_error(Path::new("the temporary folder"), &error))?;
        let keyring = Keyring { home };
        let secret = folder.path("repository.key");
        if files::is_present(&secret) && files::is_present(&folder.repository_key()) {
            let bytes = files::read_limited(&secret, 1 << 16)
                .map_err(|error| new_folder_error(&secret, &error))?;
            keyring.gpg(&["--import"], &bytes)?;
            return Ok(keyring);
        }
        keyring.gpg(
            &[
                "--passphrase",
                "",
                "--quick-generate-key",
                "railwright lab (made on this computer)",
                "ed25519",
                "sign",
                "never",
            ],
            b"",
        )?;
        let private = keyring.gpg(&["--armor", "--export-secret-keys"], b"")?;
        let public = keyring.gpg(&["--armor", "--export"], b"")?;
        files::write_atomic(&secret, &private, 0o600)
            .map_err(|error| new_folder_error(&secret, &error))?;
        files::write_atomic(&folder.repository_key(), &public, 0o644)
            .map_err(|error| new_folder_error(&folder.repository_key(), &error))?;
        Ok(keyring)
    }

    /// `text` with its signature around it (InRelease).
    pub fn sign_around(&self, text: &[u8]) -> Result<Vec<u8>> {
        self.gpg(&["--armor", "--clearsign"], text)
    }

    /// The signature alone (Release.gpg).
    pub fn sign_apart(&self, text: &[u8]) -> Result<Vec<u8>> {
        self.gpg(&["--armor", "--detach-sign"], text)
    }

    fn gpg(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let program = Program::new("gpg")
            .arguments(["--batch", "--quiet", "--no-tty", "--homedir"])
            .argument(self.home.to_string_lossy());
        expect_success("gpg", &program.arguments(arguments.iter().copied()), input)
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        // gpg has started an agent for this folder; nothing else would end it.
        let end = Program::new("gpgconf")
            .argument("--homedir")
            .argument(self.home.to_string_lossy());
        let _ = end.arguments(["--kill", "all"]).output();
        let _ = files::remove_path(&self.home);
    }
}
