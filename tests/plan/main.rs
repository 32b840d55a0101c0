//! Plans of a made-up kind: a world of targets, stories, properties.

#![allow(clippy::unwrap_used)]

mod cluster_first;
mod drains;
mod properties;
mod stories;
mod switches_first;
mod world;
