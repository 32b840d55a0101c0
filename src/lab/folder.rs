//! Where everything of a lab lies, and which ports it takes. Inventories refer to these names: they
//! do not change.

use super::Result;
use super::origin::claim_folder;
use railwright_base::{Diagnostic, text};
use railwright_system::lock_file::{LockAttempt, LockFile};
use railwright_system::{files, identity, process};
use std::path::{Path, PathBuf};

/// The first port of a lab: machine N listens at this plus N, the repository at this plus 80, the
/// API server at this plus 81, its store at the two after that, the kubelet of machine N at this
/// plus 84 plus N.
const FIRST_PORT: u16 = 27200;

/// The folder of a lab, and its ports on 127.0.0.1.
#[derive(Debug, Clone)]
pub struct LabFolder {
    root: PathBuf,
    first_port: u16,
}

impl LabFolder {
    /// `RAILWRIGHT_LAB_DIR` and `RAILWRIGHT_LAB_PORT`, else `.lab` in the current folder and 27200.
    pub fn from_environment() -> Result<Self> {
        let root = PathBuf::from(
            process::read_variable("RAILWRIGHT_LAB_DIR").unwrap_or_else(|| ".lab".to_owned()),
        );
        let first_port = match process::read_variable("RAILWRIGHT_LAB_PORT") {
            None => FIRST_PORT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|port| (1024..65400).contains(port))
                .ok_or_else(|| {
                    Diagnostic::error(
                        "RW0904",
                        format!(
                            "RAILWRIGHT_LAB_PORT is `{text}`, which is no first port for a lab"
                        ),
                    )
                    .next("unset RAILWRIGHT_LAB_PORT, or set it to a number from 1024 to 65399")
                })?,
        };
        files::make_folder(&root).map_err(|error| new_folder_error(&root, &error))?;
        let root = files::resolve_path(&root).map_err(|error| new_folder_error(&root, &error))?;
        claim_folder(&root)?;
        Ok(LabFolder { root, first_port })
    }

    /// The folder itself, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path inside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// The private key that every machine accepts for root.
    pub fn identity(&self) -> PathBuf {
        self.path("id")
    }

    /// The pinned host keys.
    pub fn known_hosts(&self) -> PathBuf {
        self.path("known_hosts")
    }

    /// The repository's public key, armoured.
    pub fn repository_key(&self) -> PathBuf {
        self.path("repository.asc")
    }

    /// What the repository serves.
    pub fn served(&self) -> PathBuf {
        self.path("repository")
    }

    /// Built disks and packages, by recipe; may be copied from lab to lab.
    pub fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// The folder of machine `number`, from 1.
    pub fn machine(&self, number: u8) -> PathBuf {
        self.path(&format!("machines/{}", machine_name(number)))
    }

    /// The SSH port of machine `number` on 127.0.0.1.
    pub fn ssh_port(&self, number: u8) -> u16 {
        self.first_port + u16::from(number)
    }

    /// The port of the package repository on 127.0.0.1.
    pub fn repository_port(&self) -> u16 {
        self.first_port + 80
    }

    /// The port of the API server on 127.0.0.1.
    pub fn api_port(&self) -> u16 {
        self.first_port + 81
    }

    /// The ports of the API server's store on 127.0.0.1, for clients and for peers.
    pub fn store_ports(&self) -> [u16; 2] {
        [self.first_port + 82, self.first_port + 83]
    }

    /// The port of the kubelet of machine `number`, on 127.0.0.1 and in the machine.
    pub fn kubelet_port(&self, number: u8) -> u16 {
        self.first_port + 84 + u16::from(number)
    }

    /// The kubeconfig of the cluster's administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubernetes/kubeconfig")
    }

    /// Only one command at a time works on a lab.
    pub fn lock(&self) -> Result<LockFile> {
        let path = self.path("lock");
        match LockFile::try_take(&path, &format_lock_holder())
            .map_err(|error| new_folder_error(&path, &error))?
        {
            LockAttempt::Taken(lock) => Ok(lock),
            LockAttempt::Held(other) => Err(Diagnostic::error(
                "RW0907",
                format!(
                    "{} is at work on the lab in {}",
                    describe_lock_holder(&other),
                    self.root.display()
                ),
            )
            .state("nothing was changed by this command")
            .next("wait for it, or end it; then run the command again")
            .into()),
        }
    }
}

/// What a lock of the lab says of who holds it.
pub fn format_lock_holder() -> String {
    format!(
        "process {} of {}",
        identity::read_process_id(),
        identity::find_user_name()
    )
}

/// Who holds a lock, by what it says.
pub fn describe_lock_holder(held: &str) -> String {
    if held.is_empty() {
        "another command".to_owned()
    } else {
        format!("another command ({})", text::one_line(held, 80))
    }
}

/// `node1` for 1.
pub fn machine_name(number: u8) -> String {
    format!("node{number}")
}

/// The fabric address of a machine.
pub fn fabric_ip(number: u8) -> String {
    format!("192.168.77.{number}")
}

/// The fabric address of a machine with its prefix length.
pub fn fabric_address(number: u8) -> String {
    format!("{}/24", fabric_ip(number))
}

/// The lab's folder cannot be read or written.
pub fn new_folder_error(path: &Path, error: &std::io::Error) -> Box<Diagnostic> {
    Diagnostic::error("RW0906", format!("{}: {error}", path.display()))
        .effect("the lab keeps its disks, keys and records there")
        .next(
            "fix the cause, or choose another folder with RAILWRIGHT_LAB_DIR; then run the \
             command again",
        )
        .into()
}
