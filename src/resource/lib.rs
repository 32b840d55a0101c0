//! Resource kinds: pure, and unable to act. Given what is wanted, a kind says what to *read*, how
//! to *decode* it, what *differs* per attribute and plane, and which *action* would mend it. One
//! file a kind.
//!
//! The seam, in the order in which data flows: `Wish` -> `Kind::reads` -> (`Read`s travel to the
//! target, `Answers` come back) -> `Kind::assess` -> `Assessment`, whose `Action`s travel to the
//! target when the plan is applied. Reads and actions are typed values of closed lists; `render`
//! turns them into POSIX sh for a host, `program` frames many reads as one program.

pub mod action;
mod action_script;
pub mod answers;
pub mod assessment;
pub mod body;
pub mod bond;
pub mod command;
pub mod complaint;
pub mod configfs_value;
pub mod console_step;
pub mod counters;
pub mod diff;
mod fact;
pub mod fields;
pub mod file;
pub mod firmware_setting;
pub mod guard;
pub mod hardware;
pub mod helm_release;
pub mod host;
pub mod interrupt_affinity;
pub mod json_in_configmap;
pub mod keeper;
pub mod kernel_module;
pub mod kernel_module_build;
pub mod kernel_parameter;
pub mod kind;
pub mod kubernetes_job;
pub mod kubernetes_object;
pub mod kubernetes_state;
pub mod link;
pub mod link_ecn;
pub mod link_qos;
pub mod lldp;
pub mod netdev_name;
pub mod node_allocatable;
pub mod node_field;
pub mod node_probe;
pub mod observation;
pub mod package;
pub mod package_repository;
pub mod pci_setting;
pub mod plane;
pub mod platform_feature;
pub mod probe;
pub mod probe_job;
mod probe_machine;
mod probe_script;
pub mod program;
mod program_answers;
pub mod rdma_link;
pub mod read;
pub mod reboot;
mod recorded;
pub mod rights;
pub mod sections;
mod shared;
pub mod switch;
pub mod sysctl;
pub mod systemd_unit;
#[cfg(test)]
pub(crate) mod test_support;
pub mod traffic;
mod unlike;
pub mod vlan;
pub mod wish;

pub use action::Action;
pub use answers::{AnswerStatus, ReadResult, ReadResults};
pub use assessment::{Assessment, Attribute, Hopeless, Lacking};
pub use fact::Fact;
pub use host::HostFacts;
pub use kind::{BodyError, ResourceKind, kind_named, list_resource_kinds};
pub use observation::{Observation, TargetObservation, TargetReadFailure};
pub use plane::{Plane, Planes, Reading};
pub use read::Read;
pub use unlike::Unlike;
pub use wish::{DesiredResource, Disruption, Want, of_workload};
