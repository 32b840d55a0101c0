//! The lab: a small RDMA cluster of virtual machines on this computer, with no hardware.
//!
//! Real: QEMU machines with their own boot loader, kernel, systemd, sshd with PAM, and a signed
//! package repository. Fake, and named so wherever it shows: the ConnectX-6 in each machine
//! (`assets/fakecx`, a kernel module with real kernel interfaces above Soft-RoCE; settings are
//! kept, never enforced) and the source of nv_peer_mem that is served.
//!
//! A reader's way: [`folder`] says where everything lies, [`recipe`] what the machines are made of,
//! [`image`] builds it once, [`repository`] and [`server`] offer packages, [`machine`] is one QEMU,
//! [`kubernetes`] makes them nodes of a cluster, [`up`], [`reset`] and [`down`] are the commands.

mod accelerator;
mod assets;
mod down;
mod event;
mod folder;
mod guest;
mod image;
mod keys;
mod kubernetes;
mod logged;
mod machine;
mod monitor;
mod origin;
mod programs;
mod recipe;
mod repository;
mod reset;
mod server;
mod sources;
mod state;
mod status;
mod switch;
mod tarball;
mod up;

pub use down::stop_lab;
pub use event::{LabEvent, LabStep, Listener};
pub use folder::LabFolder;
pub use guest::{number_of, ssh_program};
pub use kubernetes::build_kubectl_program;
pub use recipe::{Flavour, Network};
pub use reset::reset_lab;
pub use server::serve_repository;
pub use state::LabState;
pub use status::{LabStatus, MachineStatus, read_lab_status};
pub use switch::run_switch;
pub use up::{Came, LabRequest, bring_up_lab};

use railwright_base::Diagnostic;

/// What a step of the lab gives, or the diagnostic for whoever started it. Boxed: a diagnostic is
/// large.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// The most machines of one lab: ports and addresses are laid out for these.
pub const MOST_MACHINES: u8 = 16;

/// `1..=machines` when a lab can have so many.
fn machine_range(machines: u8) -> Option<std::ops::RangeInclusive<u8>> {
    (1..=MOST_MACHINES)
        .contains(&machines)
        .then_some(1..=machines)
}

/// The repository's address in every machine; nothing else of this computer can be reached there.
pub const HOST_AS_SEEN_FROM_MACHINES: &str = "10.0.2.2";
