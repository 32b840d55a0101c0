//! Everything that is data with sources: spec, catalogue, releases, templates, modules, rules,
//! translations. Pure.

pub mod catalog;
pub mod module;
pub mod rules;
pub mod shipped;
pub mod solve;
pub mod spec;
pub mod template;
pub mod translate;
