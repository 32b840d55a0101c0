//! What railwright remembers: what was last applied (and what was there before), the journal of
//! each run and its fold, and the locks. On our side it lives in a folder beside the inventory, on
//! each host in `/var/lib/railwright`.
//!
//! The folder: `folder` opens it, `last_applied_file` is `state.json` in it, `lock` holds off a
//! second run on this side, `fenced_folder` writes only while it is held, `sightings` is
//! `drift.json`. A run: `journal` is its text, `journal_writer` writes it, `run_status` folds it,
//! `absorb` takes it into what is remembered, `order` stops or pauses it. A host: `host_record` is
//! what it keeps of itself; `recognition` decides whose it is and which machine, `renames` follows
//! it to another name, `outages`, `run_outages` and `power_cycles` say whether it is out of
//! service.

mod absorb;
pub mod fenced_folder;
pub mod folder;
pub mod host_record;
pub mod identity_conflict;
pub mod journal;
pub mod journal_writer;
pub mod last_applied_file;
pub mod lineage;
pub mod listing;
pub mod lock;
pub mod order;
pub mod outages;
pub mod outcome;
mod power_cycles;
pub mod recognition;
#[cfg(test)]
mod recognition_tests;
mod renames;
pub mod run_outages;
pub mod run_status;
pub mod sightings;

pub use fenced_folder::FencedFolder;
pub use folder::StateFolder;
pub use host_record::{HostRecord, TakeOver, TargetRecord};
pub use identity_conflict::IdentityConflict;
pub use journal::{JournalEntry, Record};
pub use journal_writer::JournalWriter;
pub use last_applied_file::ClusterState;
pub use lineage::Lineage;
pub use lock::{ClusterLock, LocalLock, LockHolder};
pub use order::{OrderKind, RunOrder};
pub use outcome::{NodeOutcome, Skip};
pub use recognition::{ClusterIdentity, Recognition, TargetIdentity};
pub use run_status::RunStatus;
