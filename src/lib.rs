//! railwright: builds the RDMA rails of a GPU cluster, proves that they carry traffic, keeps them
//! true.
//!
//! Data flows one way:
//!
//! ```text
//! inventories/*.yaml ─► spec ─► module, workload ─► resources ────────┐
//!            catalog ──────┴────► rules ─► findings, waivers ──────────┤
//!                                                                      ├─► plan ─► apply ─► journal, state
//! hosts, Kubernetes ─► transport ─► observe ─► observation (answers) ──┘             │
//!                                           last applied (state) ──┘                 ▼
//!                                                                         verify, drift, report
//! ```
//!
//! Each box is a crate of this workspace (`src/CRATE`, or a room of `src/knowledge`); what a crate
//! may use stands in its `Cargo.toml`, and the head of its `lib.rs` is a map of its files. Three
//! invariants, checked by `tests/tidy`:
//!
//! 1. `base`, `graph`, `resource`, `knowledge`, `workload` and `plan` are pure: bytes and values
//!    in, bytes and values out; no I/O, no async, no clock, no environment. The same inputs give
//!    the same bytes. One exception: templates read the processor time of their thread, and only to
//!    end a rendering that takes too long.
//! 2. Only `transport` talks to targets. Only `system` touches the clock, files and processes of
//!    this machine.
//! 3. Crates return values and emit events of their own; only `report` prints.
//!
//! The tour, from the ground up; a crate uses only crates above it in this list.
//!
//! - `base`: addresses, units, node-sets, digests, diagnostics, quoting.
//! - `graph`: directed graphs, with no word of the domain.
//! - `system`: clock, files (atomic), processes of this machine.
//! - `resource`: one folder a resource kind: what to read, how to compare it in three planes, which
//!   typed action fixes it.
//! - `knowledge`: everything that is data with sources, in rooms of its own:
//!   - `spec`: a folder of YAML with a span for every value, decoded strictly.
//!   - `catalog`: what the field knows of GPUs, NICs, instances and operating systems, as entries
//!     with sources.
//!   - `solve`: which releases go together: the rest is chosen by what the spec fixes, or the
//!     requirements that exclude each other are named.
//!   - `template`: Tera, sandboxed: the language of modules and rules, every name checked before
//!     anything is rendered.
//!   - `module`: manifests and templates, which make resources of the spec's facts.
//!   - `rules`: static checks across layers, as data: what breaks which, what is waived.
//!   - `translate`: commands of wiki pages as lines of the spec, as data; nothing is run.
//! - `workload`: jobs that use the fabric, as objects of Kubernetes with the reason of everything
//!   in them; those that stay are resources.
//! - `plan`: the three-way difference as a graph of nodes, with transactions, reboots, waves and
//!   gates.
//! - `state`: what was last applied, the journal and its fold, the cluster's lock.
//! - `transport`: SSH, this machine and API servers of Kubernetes, behind `Reader`, `Prober` and
//!   `Writer`.
//! - `observe`: one read per target.
//! - `verify`: checks of links, GIDs, MTU, marks and real RDMA traffic.
//! - `jobs`: `job`: jobs as they stand in a cluster: submitted, watched, deleted; `doctor`: why one
//!   did not go, from its log, layer by layer.
//! - `apply`: the scheduler (a pure state machine), the executor, reboots, gates, resume.
//! - `drift`: what is no longer as it was applied, by plane.
//! - `session`: an inventory, opened, observed and planned, as types: the program as a library.
//! - `report`: every screen, as text and JSON. `lab`: a small RDMA cluster of virtual machines.
//! - `cli`, of the program itself: one file a command.

pub mod cli;
