//! An inventory on its way to a plan, each step a type: an [`Inventory`] that was read and is
//! valid, a [`Session`] with the resources that it desires, [`ObservedTargets`] with what was read
//! from the targets, and the plan that comes of both. Nothing here prints, asks a person, or
//! changes a target; the command line is one user of it, a program of yours another
//! (`examples/plan_inventory.rs`).

mod cabling_file;
mod carried_secrets;
pub mod desired;
mod error;
mod inventory;
pub mod inventory_file;
mod knowledge;
mod missing_files;
mod observed;
mod open;
mod origin;
mod planned;
mod recording;
pub mod secrets;
mod session;
mod signing_keys;
mod source_files;
mod unread_records;
mod workloads;

pub use error::{SessionError, describe_file_error};
pub use inventory::{Inventory, read_inventory, read_uncabled};
pub use knowledge::Knowledge;
pub use observed::{ObservationRequest, ObservedTargets};
pub use open::{ObservationSource, SessionRequest, SigningKeys};
pub use planned::OpenRun;
pub use recording::read_recording;
pub use session::Session;
