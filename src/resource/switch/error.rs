//! Why a switch cannot be brought to what is desired of one of its ports.

use std::fmt;

/// Why a configuration cannot be decoded, or no edits lead to the desired setting. The text says
/// what to do about it where somebody can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchError {
    /// A setting of others, of the port or of the whole switch, stands in the way.
    Conflict(String),
    /// What the switch has makes no sense, so nobody knows what an edit would come to.
    Unreadable(String),
    /// The system has no such setting, or does not take this value of it.
    Unsupported(String),
}

impl SwitchError {
    /// The text is no configuration.
    pub fn unreadable_configuration() -> Self {
        SwitchError::Unreadable("the configuration makes no sense".to_owned())
    }
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::Conflict(why)
            | SwitchError::Unreadable(why)
            | SwitchError::Unsupported(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SwitchError {}
