//! Modules: folders of data that turn a spec into typed wishes.
pub mod engine;
pub mod names;
pub mod shape;
pub mod shell_quoting;
pub mod token;
