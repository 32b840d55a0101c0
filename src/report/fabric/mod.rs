//! `verify fabric`: the whole fabric as one picture, in text and as SVG, then what is wrong in it,
//! folded; and the same as JSON.

pub mod document;
mod picture;
pub mod svg;
#[cfg(test)]
mod tests;
mod text;
pub mod words;

pub use picture::Picture;
pub use text::render_fabric_screen;

use railwright_verify::fabric::{DesiredFabricSettings, Report};

/// What was looked at.
#[derive(Debug, Clone, Copy)]
pub struct FabricSubject<'a> {
    /// The inventory, as it was named.
    pub inventory: &'a str,
    /// The file of recorded observations and when they were recorded, where no host was contacted.
    pub recorded: Option<(&'a str, &'a str)>,
    /// What the spec declares.
    pub desired: &'a DesiredFabricSettings,
    /// What came out.
    pub report: &'a Report,
}
