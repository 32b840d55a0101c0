//! One read per host, all at once but bounded. A broken or slow host costs itself only, and the result does not depend on
//! who answered first.

pub mod crowd;
mod event;
mod hosts;
pub mod identity;
pub mod sealed;

pub use event::Event;
pub use hosts::{DEFAULT_PARALLEL, HostRequest, observe, observe_host};
