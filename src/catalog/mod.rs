//! What the field knows of hardware and systems, as data with sources: GPUs, NICs, instances, operating systems, and what
//! Alibaba Container Compute Service offers.

pub mod rows;
