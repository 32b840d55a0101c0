//! Renders one result as text or as JSON. Only this room prints; every screen reads well at 100
//! columns, without colour, with 1 host and with 1,000.
//!
//! A file or folder a screen. What they share: `diagnostic` (a problem, with caret and next
//! command), `value` (a reading in words), `text_difference` (`+` and `-` lines of a file),
//! `wrap` (100 columns), `document` (the names, versions and schemas of everything that is JSON),
//! `out` (the two streams).

pub mod apply;
pub mod cabling;
pub mod diagnostic;
pub mod document;
pub mod drift;
pub mod explanation;
pub mod fabric;
pub mod graph;
pub mod image;
pub mod job;
pub mod knowledge;
pub mod locks;
pub mod out;
pub mod out_of_service;
pub mod pair;
pub mod plan;
pub mod progress;
pub mod rbac;
pub mod rollout;
pub mod running_jobs;
pub mod sudoers;
pub mod take_over;
pub(crate) mod text_difference;
pub mod traffic;
pub mod translation;
pub mod unread;
pub mod value;
pub mod verify;
pub mod workload;
pub mod wrap;
pub mod yaml;
