//! Why a job did not go, from its log: symptoms as data, each with its layer, cause and next
//! command.
//!
//! `load` (the shipped symptoms, `modules/catalog/symptoms/*.yaml`, a file a layer) -> `marks`
//! (which of their words a log has, in one pass) -> `diagnose` (what holds, layer by layer: the
//! first broken layer has the first cause, and the rest follows from it or comes after it).
//! `ladder` is trials of the same traffic, each with one thing more. Nothing here reads a file:
//! bytes in, values out.

mod diagnose;
pub mod ladder;
mod layer;
mod load;
mod marks;
#[cfg(test)]
mod tests;

pub use diagnose::{Diagnosis, Doctor, SymptomFinding};
pub use layer::Layer;
pub use load::{OnAcs, SYMPTOMS_FOLDER, Symptom, SymptomCaseExpectations, load_symptoms};
