//! Jobs that use the fabric: what runs of them in a cluster, how it stands and what keeps it.

pub mod live;
