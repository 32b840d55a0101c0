//! What the templates of a module for switches can name. The type is the language, as of hosts.

use super::context::secret_marks;
use crate::catalog::{Catalog, EcnNumbers, switch_numbers};
use crate::spec::model::{Fabric, SwitchRole, WatchdogTimes};
use crate::spec::{LoadedSpec, SwitchNode};
use crate::template::shape::ContextShape;
use railwright_resource::switch::SwitchSystem;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that a template of a module for switches can name, besides the module's own parameters.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SwitchContext {
    /// The cluster's name.
    pub cluster: String,
    /// The fabric, as the spec has it; what the spec leaves out is not there.
    pub fabric: Fabric,
    /// This switch.
    pub switch: SwitchNames,
    /// Each secret of the spec, as a mark that is filled in on the way to the switch.
    pub secrets: BTreeMap<String, String>,
}

/// One switch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SwitchNames {
    /// Its name.
    pub name: String,
    /// The system: `sonic`, `cumulus`, `eos`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<SwitchSystem>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<SwitchRole>,
    /// The MTU of its ports in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The longest cable at these ports in metres, or that of the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_length_m: Option<u16>,
    /// From where on packets are marked: as the spec says, else as chosen for the speed of the
    /// ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnNumbers>,
    /// The watchdog of PFC: as the spec says, else as the system's own command has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<WatchdogTimes>,
    /// The ports of the fabric.
    pub ports: Arc<[String]>,
}

/// The shape of `SwitchContext`.
pub fn build_switch_shape() -> ContextShape {
    ContextShape::of_schema(schemars::schema_for!(SwitchContext).as_value())
}

/// What templates can name for one switch.
pub fn build_switch_context(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    switch: &SwitchNode,
) -> SwitchContext {
    let group = &loaded.spec.switches[switch.group];
    let numbers = switch_numbers(group, &loaded.spec.fabric, catalog);
    SwitchContext {
        cluster: loaded.spec.cluster.clone(),
        fabric: loaded.spec.fabric.clone(),
        switch: SwitchNames {
            name: switch.name.clone(),
            os: group.os,
            model: group.model.clone(),
            role: group.role,
            mtu: group.mtu,
            cable_length_m: group
                .cable_length_m
                .or_else(|| loaded.spec.fabric.lossless.as_ref()?.cable_length_m),
            ecn: numbers.ecn,
            watchdog: numbers.watchdog,
            ports: Arc::clone(&switch.ports),
        },
        secrets: secret_marks(loaded),
    }
}

/// The path in the spec of a path of names.
pub fn spec_path(switch: &SwitchNode, path: &[String]) -> String {
    let group = format!("switches[{}]", switch.group);
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["switch", "ports", ..] => format!("{group}.ports"),
        ["switch", rest @ ..] => rest
            .iter()
            .fold(group, |path, word| format!("{path}.{word}")),
        words => words.join("."),
    }
}
