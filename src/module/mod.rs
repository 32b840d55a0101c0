//! Modules: folders of data that turn a spec into typed wishes. They see the spec only, never what a host said.
//!
//! The way of a module: `manifest` (as written) -> `compile` (every template read, every name checked against the shape
//! of `context`) -> `desired` (for each host: which modules apply, `parameters`, bodies rendered and checked by their
//! kinds) -> `merge` and `order` (one wish an address, what comes first). `engine` is Tera held in, `bounded` its end;
//! `names`, `growth`, `shape`, `token` and `shell_quoting` are the lint.

mod body;
mod bounded;
mod compile;
pub mod context;
mod desired;
mod engine;
mod growth;
mod manifest;
mod merge;
mod names;
mod order;
mod parameters;
mod secrets;
mod shape;
mod shell_quoting;
mod shipped;
mod token;

pub use compile::{Module, ModuleFiles, ModuleProblems, Modules, load};
pub use context::Texts;
pub use desired::{Check, Desired, Why, desired};
pub use manifest::{Parameter, ParameterType};
pub use shipped::shipped;
