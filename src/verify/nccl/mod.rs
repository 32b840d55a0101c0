//! Logs of jobs that use NCCL: what they tell of the fabric, and whether that proves that RDMA was
//! used.
//!
//! `lines` (a stream as lines) -> `speaker` (who says a line) -> `message` (one event of NCCL),
//! `nccl_tests_table` (tables of nccl-tests), `json` (the same as an object), `traffic` (counters of the
//! rails), `training`, `steps`, `interface` and `failure` -> `log` (all of it, in a memory that
//! does not grow) -> `evaluation` (with `bandwidth_check` and `progress`). `decoder` holds them together,
//! and `compare` sets two logs side by side (`same_job`: whether they are of the same job;
//! `operation`: what a table measured). Nothing here reads a file: bytes in, values out.

mod bandwidth_check;
pub mod compare;
pub mod decoder;
pub mod devices;
pub mod direct;
pub mod evaluation;
mod expected;
pub mod failure;
pub mod interface;
mod json;
pub mod lines;
pub mod log;
pub mod message;
pub mod nccl_tests_table;
pub mod operation;
pub mod process;
mod progress;
mod same_job;
#[cfg(any(test, feature = "samples"))]
#[allow(
    clippy::unwrap_used,
    reason = "a sample that cannot be made stops its test"
)]
pub mod samples;
mod speaker;
pub mod steps;
#[cfg(test)]
mod tests;
mod traffic;
pub mod training;
pub mod transport;
#[cfg(test)]
mod transport_tests;

pub use decoder::NcclLogDecoder;
pub use evaluation::{Aspect, JobVerdict, NcclProof, check_nccl_log};
pub use expected::{AcsNic, NcclExpectations, ObservedRailTraffic};
pub use log::NcclLog;
use railwright_base::nodeset;
use railwright_base::text::{one_line, start_of};

/// A text of a log as it is kept: one line of a length that nobody can blow up, without what would
/// change how it is shown.
fn truncate_log_text(text: &str) -> String {
    const KEPT_MAX: usize = 240;
    one_line(start_of(text, 4 * KEPT_MAX), KEPT_MAX)
}

/// Names of hosts or devices as a node-set. A log can be anybody's: what is no plain name, or holds
/// more numbers than a name that counts on, is shown as it is, so that folding stays cheap and the
/// brackets of a node-set are ours.
fn fold_log_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let (plain, odd): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| is_foldable_name(name));
    let folded = nodeset::fold_node_set(&plain);
    let mut parts = vec![folded.as_str()];
    parts.extend(odd);
    parts.retain(|part| !part.is_empty());
    parts.join(",")
}

fn is_foldable_name(name: &str) -> bool {
    const NUMBERS_MAX: usize = 8;
    let runs = name.split(|c: char| !c.is_ascii_digit());
    let numbers = runs.filter(|run| !run.is_empty()).count();
    nodeset::is_plain(name) && numbers <= NUMBERS_MAX
}
