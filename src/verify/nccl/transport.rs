//! What carried the data between hosts: of each process, and of all of them.

use super::log::NcclLog;
use super::message::RdmaLinkLayer;
use super::process::NcclProcess;
use serde::Serialize;

/// What carries data between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// RDMA over InfiniBand.
    Infiniband,
    /// RDMA over Ethernet.
    Roce,
    /// RDMA; the log does not say over what.
    Verbs,
    /// TCP.
    Socket,
    /// A plugin of which the log does not say what it sends over.
    Plugin,
    /// Not the same everywhere.
    Mixed,
    /// The log does not tell.
    Unknown,
}

impl Transport {
    /// As people say it.
    pub fn word(self) -> &'static str {
        match self {
            Transport::Infiniband => "InfiniBand",
            Transport::Roce => "RoCE",
            Transport::Verbs => "RDMA",
            Transport::Socket => "TCP sockets",
            Transport::Plugin => "a plugin",
            Transport::Mixed => "mixed",
            Transport::Unknown => "unknown",
        }
    }

    /// Verbs carry the data.
    pub fn is_rdma(self) -> bool {
        matches!(
            self,
            Transport::Infiniband | Transport::Roce | Transport::Verbs
        )
    }
}

/// Of one process.
pub fn of_process(process: &NcclProcess) -> Transport {
    let (verbs, socket) = (process.uses_verbs(), process.uses_sockets());
    match (verbs, socket, process.plugin()) {
        (true, true, _) => Transport::Mixed,
        (true, false, _) => find_rdma_transport(process),
        (false, true, _) => Transport::Socket,
        (false, false, Some(_)) => Transport::Plugin,
        (false, false, None) => Transport::Unknown,
    }
}

fn find_rdma_transport(process: &NcclProcess) -> Transport {
    let (mut infiniband, mut roce) = (false, false);
    for (_, link) in &process.devices {
        match link {
            RdmaLinkLayer::Infiniband => infiniband = true,
            RdmaLinkLayer::Roce => roce = true,
        }
    }
    match (infiniband, roce) {
        (true, true) => Transport::Mixed,
        (true, false) => Transport::Infiniband,
        (false, true) => Transport::Roce,
        (false, false) => Transport::Verbs,
    }
}

/// Of all of them. Who tells nothing counts for nothing; a process that does not name its devices
/// goes with the others.
pub fn of_log(log: &NcclLog) -> Transport {
    // Where one says more, interfaces alone say nothing.
    let says_more = log
        .processes
        .iter()
        .any(|process| !process.has_interfaces_alone());
    let mut all = Vec::new();
    for process in &log.processes {
        let transport = of_process(process);
        let is_silent = says_more && process.has_interfaces_alone();
        if !is_silent && transport != Transport::Unknown {
            all.push(transport);
        }
    }
    all.sort_unstable();
    all.dedup();
    if all.iter().all(|transport| transport.is_rdma()) && all.len() > 1 {
        all.retain(|transport| *transport != Transport::Verbs);
    }
    match all[..] {
        [] => Transport::Unknown,
        [one] => one,
        _ => Transport::Mixed,
    }
}
