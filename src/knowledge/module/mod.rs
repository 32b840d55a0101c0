//! Modules: folders of data that turn a spec into typed resources. They see the spec only, never
//! what was read of a host.
//!
//! The way of a module: `manifest` (as written) -> `compile` (every template read, every name
//! checked against the shape of `context`, `switch_context` or `cluster_context`) -> `desired` (for
//! each host: which modules apply, `parameters`, bodies rendered and checked by their kinds) ->
//! `merge` and `order` (one resource an address, what comes first). `shell_quoting` looks for
//! values that a shell could run; the language itself is the room `template`.

mod body;
mod cluster_context;
mod compile;
pub mod context;
mod desired;
mod findings;
mod kept;
mod manifest;
mod merge;
mod nic_owners;
mod order;
mod parameters;
mod secrets;
mod share;
mod shell_quoting;
mod shipped;
mod subject;
mod switch_context;
#[cfg(test)]
mod tests;

pub use compile::{Module, ModuleFiles, ModuleProblems, Modules, load_modules};
pub use context::Texts;
pub use desired::{
    DesiredState, HostModuleCheck, LeftOut, ResourceProvenance, compute_desired_state,
};
pub use manifest::{ModuleParameter, ParameterType};
pub use shipped::{collect_shipped_modules, shipped_cases};
