//! The desired state of the ports of a leaf.

use crate::room::resource;
use crate::switches::{LEAF, port};
use railwright_resource::DesiredResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The desired state of a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// With the smallest, nobody reaches the switch over the port.
    pub mtu: Option<u32>,
    /// With false, nobody reaches the switch over the port.
    pub up: Option<bool>,
    /// Its classes and marks, too.
    pub lossless: bool,
}

/// The resources of the port with this number.
pub fn port_resources(n: usize, desired: &Port) -> Vec<DesiredResource> {
    let mut all = Vec::new();
    let with = |mut body: Value| {
        (body["system"], body["port"]) = (json!("sonic"), json!(port(n)));
        body
    };
    let mut own = json!({});
    if let Some(mtu) = desired.mtu {
        own["mtu"] = json!(mtu);
    }
    if let Some(up) = desired.up {
        own["up"] = json!(up);
    }
    if own != json!({}) {
        all.push(resource(LEAF, "switch_port", with(own), &[]));
    }
    if desired.lossless {
        let classes = json!({ "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48 });
        all.push(resource(LEAF, "switch_qos", with(classes), &[]));
        let marks = json!({ "priority": 3, "min_bytes": 1_000_000, "max_bytes": 2_000_000, "probability_percent": 5 });
        all.push(resource(LEAF, "switch_ecn", with(marks), &[]));
    }
    all
}
