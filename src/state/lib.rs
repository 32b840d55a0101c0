//! What railwright remembers: what was last applied (and what was there before), the journal of
//! each run and its fold, and the locks. On our side it lives in a folder beside the inventory, on
//! each host in `/var/lib/railwright`.

mod absorb;
pub mod fenced_journal;
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
