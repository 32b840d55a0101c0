//! The language of modules and rules: Tera, confined. `snippet` is one template and its place in
//! the author's file; `engine` renders (one instance a file of templates, typed results, values
//! quoted in shell templates) with `filters`; `template_error` says what is wrong of one.
//! `output_limit` bounds what is written, `work` what is done: each turn of a loop is charged
//! against `WORK_MAX` before it is taken, by what `counted` puts into the text. `names`, `growth`,
//! `shape` and `token` are the lint: every name is checked against the shape of its context before
//! anything is rendered.

mod counted;
pub mod engine;
mod filters;
mod growth;
pub mod names;
mod output_limit;
pub mod shape;
pub mod snippet;
pub mod template_error;
pub mod token;
mod work;
