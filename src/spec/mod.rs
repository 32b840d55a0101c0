//! The cluster spec: a folder of YAML files, read with a span for every value, decoded strictly.
//! Pure: bytes in, model and diagnostics out.

pub mod model;
