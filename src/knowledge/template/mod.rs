//! The language of modules and rules: Tera, held in. `engine` renders (one instance a file of
//! templates, typed results, values quoted in shell templates, errors at the author's own bytes)
//! with `filters`; `output_limit` bounds what it writes, `work` what it does: each turn of a loop
//! is charged against `WORK_MAX` before it is taken, by what `counted` puts into the text; `names`,
//! `growth`, `shape` and `token` are the lint: every name is checked against the shape of its
//! context before anything is rendered.

mod counted;
pub mod engine;
mod filters;
mod growth;
pub mod names;
mod output_limit;
pub mod shape;
pub mod token;
mod work;
