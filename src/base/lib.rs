//! Words that every room shares: addresses, units, digests, diagnostics, quoting.
//! Pure: no I/O, no clock, no environment, and not a word of any one resource kind.

pub mod address;
pub mod bounded_json;
pub mod diagnostic;
pub mod digest;
pub mod fingerprint;
pub mod identifier;
pub mod json_pointer;
pub mod login_name;
pub mod mutex;
pub mod nodeset;
pub mod place;
pub mod quote;
pub mod reason;
pub mod redaction;
pub mod revision;
pub mod seal;
pub mod secret;
pub mod shared;
pub mod suggest;
pub mod text;
pub mod units;
pub mod version;

pub use address::{Address, Target, TargetKind};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use digest::Digest;
pub use fingerprint::Fingerprint;
pub use identifier::{ClusterId, MachineId};
pub use place::SourceLocation;
pub use reason::Reason;
pub use redaction::Redaction;
pub use revision::{GitRevision, WorkTreeState};
pub use seal::SealKey;
