//! What happens while hosts are read, for whoever shows progress.

/// One thing that happened. Hosts are named as in the spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservationEvent {
    /// It begins.
    Began {
        /// How many hosts will be read.
        hosts: usize,
    },
    /// A connection to this host is being made.
    Connecting {
        /// The host.
        host: String,
    },
    /// The host is connected and being read.
    Reading {
        /// The host.
        host: String,
    },
    /// The host answered; some of its answers may still be unknown.
    Answered {
        /// The host.
        host: String,
    },
    /// The host gave no answer.
    Failed {
        /// The host.
        host: String,
        /// Why, in one clean line.
        problem: String,
    },
    /// All hosts are through.
    Ended,
}
