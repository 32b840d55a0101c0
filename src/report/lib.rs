//! Renders one result as text or as JSON. Only this room prints; every screen reads well at 100
//! columns, without colour, with 1 host and with 1,000.

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
pub mod traffic;
pub mod translation;
pub mod unread;
pub mod value;
pub mod verify;
pub mod workload;
pub mod wrap;
pub mod yaml;
