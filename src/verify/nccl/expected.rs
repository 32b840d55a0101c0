//! What a log is compared with.

use crate::flow::Flow;

/// The type of RDMA NIC of Alibaba Container Compute Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcsNic {
    /// Verbs see it: NCCL uses `mlx5` devices.
    Type1,
    /// Verbs do not see it: NCCL has `NCCL_IB_DISABLE=1`, and no line of `NET/IB` is to be
    /// expected.
    Type2,
    /// Nobody said; by the log.
    Unsaid,
}

/// What was seen of the rails of a job's hosts while it ran.
#[derive(Debug, Clone, PartialEq)]
pub enum ObservedRailTraffic {
    /// What passed, in so many seconds.
    Seen {
        /// By rail and host.
        flow: Flow,
        /// How long it was looked at.
        seconds: u64,
    },
    /// Nothing: why.
    Unseen(String),
}

/// What a log is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct NcclExpectations {
    /// What the NICs of one node carry together, in Gb/s.
    pub node_gbps: Option<f64>,
    /// Where that number comes from.
    pub source: String,
    /// The least share of it that the largest messages must reach, in percent.
    pub least_percent: u32,
    /// The log is of pods of Alibaba Container Compute Service.
    pub acs: Option<AcsNic>,
    /// Without GPUDirect nothing is proven.
    pub needs_gpudirect: bool,
    /// What passed over the rails of the job's hosts while it ran; nothing where nobody looked.
    pub traffic: Option<ObservedRailTraffic>,
    /// What the log is called; `-` for the standard input.
    pub log: String,
    /// The words by which a command that is suggested finds it: `--log job.log`, `nccl -i inv -n
    /// ml`.
    pub words: String,
}

impl NcclExpectations {
    /// A log of this name, found by these words, with no expected bandwidth or platform.
    pub fn of(log: impl Into<String>, words: impl Into<String>) -> Self {
        NcclExpectations {
            node_gbps: None,
            source: String::new(),
            least_percent: 80,
            acs: None,
            needs_gpudirect: false,
            traffic: None,
            log: log.into(),
            words: words.into(),
        }
    }
}
