//! What is no longer as it was applied: per attribute and plane what is desired, what was applied
//! last, what is actual, and why they differ. Reads only; the comparison is pure.

pub mod accept;
pub mod age;
pub mod compare;
pub mod cordons;
pub mod finding;
pub mod outliers;
mod parts;

pub use compare::compute_drift;
pub use finding::{
    DriftAcceptance, DriftFinding, DriftReason, DriftReport, FindingAge, LastKnown, Occasion,
};
pub use outliers::Outlier;
