//! The environment of this process: read here, handed on as values.

use std::path::PathBuf;

/// A variable that is set and not empty.
pub fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The user's home folder.
pub fn find_home_folder() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}
