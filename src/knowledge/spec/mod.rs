//! The user's spec: a folder of YAML files, read with a span for every value, decoded strictly.
//! Pure: bytes in, model and diagnostics out.
//!
//! `source` (files and lines) -> `yaml` (arena of nodes with bytes) -> `tree` (files joined, paths)
//! -> `decode` (plain structs of `model`) -> `hosts` (groups unfolded) -> `rules` (what serde
//! cannot say); `load` is the whole way. `cabling` is a table of its own, which comes last.

pub mod acceptance;
pub mod cabling;
pub mod decode;
pub mod hosts;
pub mod load;
pub mod model;
pub mod nccl;
pub mod pools;
pub mod rollout;
mod rules;
pub mod schema;
pub mod source;
pub mod switches;
mod tree;
pub mod window;
pub mod yaml;

pub use hosts::{Host, HostSsh, Rail};
pub use load::{LoadedSpec, Problems, load_case_spec, load_spec, problems_of_rest};
pub use model::Spec;
pub use source::{SourceFile, SourceText, Sources};
pub use switches::{SwitchApi, SwitchNode, SwitchReach};
