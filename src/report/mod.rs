//! The same result as text or JSON. Only this room prints; every screen reads well at 100 columns and without colour.

pub mod diagnostic;
pub mod out;
