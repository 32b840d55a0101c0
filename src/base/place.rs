//! A place in a file that the user wrote.

use serde::{Deserialize, Serialize};

/// Where in the user's files a value stands; lines and columns count from 1, columns in characters.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct SourceLocation {
    /// The file's path as the user gave it, below the inventory.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The path of the value in the spec, such as `fabric.mtu`.
    pub path: String,
}

impl std::fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
