//! One desired resource on one target, as a module made it from the spec.

use crate::json_fields::read_text_field;
use railwright_base::{Address, Digest, SourceLocation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// How much a change disturbs what runs on the target; ordered from nothing to reinstalling.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Disruption {
    /// Nobody notices.
    #[default]
    None,
    /// A service or a driver setting is read again.
    Reload,
    /// A service restarts.
    Restart,
    /// A link goes down for a moment.
    LinkBlip,
    /// The node has to be emptied first.
    Drain,
    /// The node reboots.
    Reboot,
    /// The node is switched off and on, by hand.
    PowerCycle,
    /// The node is installed anew, by hand.
    Reinstall,
}

impl Disruption {
    /// The word in the spec and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Disruption::None => "none",
            Disruption::Reload => "reload",
            Disruption::Restart => "restart",
            Disruption::LinkBlip => "link_blip",
            Disruption::Drain => "drain",
            Disruption::Reboot => "reboot",
            Disruption::PowerCycle => "power_cycle",
            Disruption::Reinstall => "reinstall",
        }
    }
}

/// One desired resource on one target. Only its place and its order are its own; what is desired
/// there is often equal on thousands of targets, and stored once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DesiredResource {
    /// Target, kind and name.
    pub address: Address,
    /// Resources of the same target that must be applied first.
    pub after: Vec<Address>,
    /// What is desired there.
    #[serde(flatten)]
    pub declaration: Arc<ResourceDeclaration>,
}

/// What is desired, without the target: equal for all that share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ResourceDeclaration {
    /// The resource kind's name; equal to `address.kind()` on hosts.
    pub kind: String,
    /// What is desired, in the kind's own fields, already checked by `ResourceKind::check`.
    pub body: Value,
    /// The module that made it, and the id of the resource in its manifest: `jumbo-mtu/link`; or
    /// the workload of the spec ([`of_workload`]).
    pub module: String,
    /// The values in the spec that this resource was made from, so that a change can name its line.
    pub places: Vec<SourceLocation>,
}

/// What modules are not called: they have the names of folders, without blanks.
const WORKLOAD: &str = "workload ";

/// What stands for the module of a resource that a workload of the spec makes.
pub fn of_workload(name: &str) -> String {
    format!("{WORKLOAD}{name}")
}

impl ResourceDeclaration {
    /// True where no module but a workload of the spec makes it.
    pub fn is_of_workload(&self) -> bool {
        self.module.starts_with(WORKLOAD)
    }

    /// Who declares it, without the part of it: `module jumbo-mtu`, `workload ray-rdma`.
    pub fn whose(&self) -> String {
        let name = self.module.split('/').next().unwrap_or_default();
        if self.is_of_workload() {
            name.to_owned()
        } else {
            format!("module {name}")
        }
    }

    /// Who declares it, with the part of it: `module jumbo-mtu/link`.
    pub fn whose_part(&self) -> String {
        if self.is_of_workload() {
            self.module.clone()
        } else {
            format!("module {}", self.module)
        }
    }
}

impl std::ops::Deref for DesiredResource {
    type Target = ResourceDeclaration;

    fn deref(&self) -> &ResourceDeclaration {
        &self.declaration
    }
}

impl DesiredResource {
    /// A resource of no module, that comes after nothing.
    pub fn of(address: Address, kind: impl Into<String>, body: Value) -> Self {
        let declaration = ResourceDeclaration {
            kind: kind.into(),
            body,
            module: String::new(),
            places: Vec::new(),
        };
        DesiredResource {
            address,
            after: Vec::new(),
            declaration: Arc::new(declaration),
        }
    }

    /// The digest of what is desired: kind and body, not where it was written.
    pub fn digest(&self) -> Digest {
        Digest::of(&(&self.kind, &self.body))
    }

    /// The resource that gives its netdev the name first, as `netdev_name/rail0`, where it comes
    /// after one.
    pub fn naming(&self) -> Option<String> {
        self.after
            .iter()
            .find(|after| after.kind() == "netdev_name")
            .map(|after| format!("netdev_name/{}", after.name()))
    }

    /// A text field of the body.
    pub fn text(&self, field: &str) -> Option<&str> {
        read_text_field(&self.body, field)
    }
}
