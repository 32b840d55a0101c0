//! The only room that touches the clock, files, processes and randomness of this machine. The pure
//! rooms may not name it.

pub mod append_file;
pub mod background;
pub mod ceiling;
pub mod clock;
pub mod descriptors;
pub mod environment;
pub mod fed;
pub mod files;
pub mod folder;
pub mod git;
pub mod identity;
pub mod lock_file;
pub mod process;
pub mod rooted;
pub mod signals;
pub mod terminal;
