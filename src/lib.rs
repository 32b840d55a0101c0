//! railwright: builds the RDMA rails of a GPU cluster, proves that they carry traffic, keeps them true.
pub mod base;
pub mod cli;
pub mod module;
pub mod plan;
pub mod report;
pub mod resource;
pub mod spec;
pub mod system;
pub mod transport;
