//! The layers between a job and the wire, in the order in which they are walked: what is broken
//! below breaks what is above.

use serde::{Deserialize, Serialize};

/// A layer.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The machine: GPUs, PCIe, IOMMU.
    Host,
    /// Kernel modules.
    Driver,
    /// RDMA devices and their ports.
    Nic,
    /// Device plugins and operators.
    Plugin,
    /// What nodes offer and what the scheduler makes of it.
    Node,
    /// What the pod was given.
    Pod,
    /// What the image brings.
    Image,
    /// Variables and arguments.
    Environment,
    /// What happens between hosts.
    Fabric,
}

impl Layer {
    /// All of them in order.
    pub const ALL: [Layer; 9] = [
        Layer::Host,
        Layer::Driver,
        Layer::Nic,
        Layer::Plugin,
        Layer::Node,
        Layer::Pod,
        Layer::Image,
        Layer::Environment,
        Layer::Fabric,
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Layer::Host => "host",
            Layer::Driver => "driver",
            Layer::Nic => "nic",
            Layer::Plugin => "plugin",
            Layer::Node => "node",
            Layer::Pod => "pod",
            Layer::Image => "image",
            Layer::Environment => "environment",
            Layer::Fabric => "fabric",
        }
    }
}
