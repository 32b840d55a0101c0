//! One read per host, all at once but bounded. A broken or slow host costs itself only, and the
//! result does not depend on who answered first.

pub mod crowd;
mod event;
mod hosts;
pub mod identity;
pub mod sealed;

pub use event::ObservationEvent;
pub use hosts::{DEFAULT_PARALLEL, HostRequest, observe_host, observe_hosts};
