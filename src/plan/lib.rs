//! The plan: a three-way difference (last applied, desired, observed) made into a graph of nodes,
//! as bytes. Pure: the same inputs give the same bytes.
//!
//! `make` runs it all. Targets that nothing ties together are planned apart, in a `part` each, and
//! identical ones once (`equivalence`): `diff` says of each resource whether and why it changes; `select`
//! narrows; `pending_restarts` adds the restarts that a change leaves pending; `group` joins changes that go
//! out together (`rollback_reasons`: those that can cut our own connection); `order` puts edges and reboots
//! between them; `draft` makes nodes of them. `cluster_first` has the hosts wait for what a
//! Kubernetes cluster brings to them, `drains` empties its nodes before their hosts are disturbed.
//! Then `waves` takes the hosts of all parts in turn, by the rules of `policy`; `out_of_service`
//! says which hosts use up the budget whatever the plan does, `dropped` names what stays behind;
//! `by_hand` is what a run takes up once hosts were switched off and on; `content` is what the
//! plan's digest is made of, `file` how a plan is kept.

mod blocked;
mod brought;
pub mod by_hand;
pub mod cluster_first;
pub mod content;
pub mod diff;
mod draft;
mod drains;
mod dropped;
mod equivalence;
pub mod file;
pub mod group;
pub mod identity;
pub mod last_applied;
pub mod make;
pub mod model;
pub mod order;
mod out_of_service;
pub mod part;
mod pending_restarts;
pub mod policy;
mod rollback_reasons;
pub mod select;
mod switches_first;
pub mod waves;
mod work;

pub use blocked::BlockedReason;
pub use draft::join_actions;
pub use drains::ClusterNodes;
pub use identity::{IdentityFindings, ReinstalledHost};
pub use last_applied::{AppliedResource, LastApplied};
pub use make::{Header, PlanInputs, make_plan};
pub use model::{
    AttributeDifference, AutomaticRollback, ChangeReason, DroppedField, GateCoverage,
    HostsWithoutSsh, InventoryOrigin, Member, NodeKind, NotEmptied, Plan, PlanNode, PlannedDiff,
    UnknownFinding,
};
pub use out_of_service::{
    NOTHING_TO_CHECK, Outage, OutageCause, OutageCertainty, Outages, Unavailability, Unavailable,
    note_outage,
};
pub use policy::{DrainPolicy, RolloutPolicy};
pub use select::PlanSelection;
