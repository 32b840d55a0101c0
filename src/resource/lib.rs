//! Resource kinds: pure, and unable to act. Given what is desired, a kind says what to *read*, how
//! to *decode* it, what *differs* per attribute and plane, and which *action* would fix it. One
//! folder a kind.
//!
//! The seam, in the order in which data flows: `DesiredResource` -> `ResourceKind::reads` ->
//! (`Read`s travel to the target, `ReadResults` come back) -> `ResourceKind::diff` ->
//! `ResourceDiff`, whose `Action`s travel to the target when the plan is applied. Reads and actions
//! are typed values of closed lists; `read` and `action_script` turn them into POSIX sh for a host,
//! `program` frames many reads as one program.
//!
//! **To add a kind**: its folder here (`sysctl` is a small one to begin from), its line in
//! `kind.rs`; a read it needs in `read.rs` (`is_quick` too), an action in `action.rs` and
//! `action_script.rs` and in the simulated host (`transport/sim/host.rs`); a record of it in the
//! table of `readability.rs`, bodies of it in `tests/hostile/bodies.rs`, a resource in the worlds of
//! the laws (`tests/fleet/laws/case.rs`), a story in `tests/kinds`; an entry in `docs/modules.md`. Where a wrong value could cut the connection:
//! `rollback_scope/mod.rs`.
//!
//! **To add a system of switches**: its folder below `switch` with what `SwitchOs` and
//! `SwitchConfiguration` ask, a variant of `SwitchSystem` (and in `ALL`) and one of `SwitchEdit`;
//! its entry in `modules/catalog/switch-system.yaml`, what `modules/switch-*` say of systems by
//! name, and a fake of it in `tests/fakes`. One with an API of its own has a kind of it
//! (`knowledge/spec/model/api.rs`) and a client in `transport/api`.

pub mod action;
mod action_script;
pub mod answers;
pub mod body;
pub mod bond;
pub mod command;
pub mod complaint;
pub mod configfs_value;
pub mod console_step;
pub mod counters;
pub mod desired_resource;
pub mod diff;
mod fact;
pub mod file;
pub mod firmware_setting;
pub mod hardware;
pub mod helm_release;
pub mod host;
pub mod interrupt_affinity;
mod joined_body;
pub mod json_fields;
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
mod merged_before;
pub mod names;
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
mod provenance;
pub mod rdma_link;
pub mod read;
pub mod readability;
pub mod reboot;
mod recorded;
pub mod redacted_diff;
pub mod rights;
pub mod rollback_scope;
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

pub use action::Action;
pub use answers::{AnswerStatus, ReadResult, ReadResults};
pub use desired_resource::{DesiredResource, Disruption, ResourceDeclaration, of_workload};
pub use diff::{Attribute, Hopeless, Lacking, ResourceDiff};
pub use fact::Fact;
pub use host::HostFacts;
pub use kind::{BodyError, ResourceKind, kind_named, list_resource_kinds};
pub use observation::{Observation, TargetObservation, TargetReadFailure};
pub use plane::{Plane, Planes, Reading};
pub use provenance::Provenance;
pub use read::Read;
pub use unlike::Unlike;
