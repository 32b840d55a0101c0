//! The language of modules and rules: Tera, held in. `engine` renders (one instance a file of
//! templates, typed results, values quoted in shell templates, errors at the author's own bytes)
//! with `filters`, `bounded` is its end and `work` its budget, which `counted` puts into the text;
//! `names`, `growth`, `shape` and `token` are the lint: every name is checked against the shape of
//! its context before anything is rendered.

mod bounded;
mod counted;
pub mod engine;
mod filters;
mod growth;
pub mod names;
pub mod shape;
pub mod token;
mod work;
