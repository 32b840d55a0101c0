//! `railwright schema`: the JSON Schema of the spec, for editors.

use super::Exit;
use crate::report::out;

/// Print the JSON Schema of the spec, for editors
#[derive(Debug, clap::Args)]
pub struct Schema {}

/// Prints it.
pub fn run() -> Exit {
    out::print(&crate::spec::schema::schema());
    Exit::Done
}
