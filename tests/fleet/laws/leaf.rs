//! What is wished of the ports of a leaf.

use crate::room::wish;
use crate::switches::{LEAF, port};
use railwright_resource::DesiredResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is wished of a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// With the smallest, nobody reaches the switch over the port.
    pub mtu: Option<u32>,
    /// With false, nobody reaches the switch over the port.
    pub up: Option<bool>,
    /// Its classes and marks, too.
    pub lossless: bool,
}

/// The wishes of the port with this number.
pub fn port_wishes(n: usize, wished: &Port) -> Vec<DesiredResource> {
    let mut all = Vec::new();
    let with = |mut body: Value| {
        (body["system"], body["port"]) = (json!("sonic"), json!(port(n)));
        body
    };
    let mut own = json!({});
    if let Some(mtu) = wished.mtu {
        own["mtu"] = json!(mtu);
    }
    if let Some(up) = wished.up {
        own["up"] = json!(up);
    }
    if own != json!({}) {
        all.push(wish(LEAF, "switch_port", with(own), &[]));
    }
    if wished.lossless {
        let classes = json!({ "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48 });
        all.push(wish(LEAF, "switch_qos", with(classes), &[]));
        let marks = json!({ "priority": 3, "min_bytes": 1_000_000, "max_bytes": 2_000_000, "probability_percent": 5 });
        all.push(wish(LEAF, "switch_ecn", with(marks), &[]));
    }
    all
}
