//! Journeys at the seam of the command line, as transcripts. One binary for all of them: linking is what costs.

// A journey that cannot go on stops where it is; that is what `unwrap` says here.
#![allow(clippy::unwrap_used)]

mod documents;
mod plans;
mod support;
mod validate;
