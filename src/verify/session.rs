//! One host during a run: its connection, what it said of its rails, the ends that traffic can use.

use super::gid::Endpoint;
use super::hardware::VerifyHardwareFacts;
use super::rail_facts::RailFacts;
use super::request::{ExpectedRail, VerifyHost};
use super::result::CheckOutcome;
use railwright_base::Reason;
use railwright_resource::probe::Probe;
use railwright_transport::{ExecutionOutcome, Prober};
use std::collections::BTreeMap;

/// An answer of a host that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOutput {
    /// The exit status.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// A connected host.
pub struct HostSession<'a> {
    /// What the spec says of it.
    pub host: &'a VerifyHost,
    /// The connection.
    pub prober: Prober,
    /// What it said of its rails.
    pub facts: RailFacts,
    /// What it said of its hardware.
    pub hardware: VerifyHardwareFacts,
    /// Ends that traffic can use, by rail.
    pub endpoints: BTreeMap<u32, Endpoint>,
}

impl HostSession<'_> {
    /// The host's name.
    pub fn name(&self) -> &str {
        self.host.name()
    }

    /// What the spec says of a rail.
    pub fn rail(&self, rail: u32) -> Option<&ExpectedRail> {
        self.host.rails.iter().find(|r| r.rail == rail)
    }

    /// One probe; an error is the reason why nothing is known.
    pub async fn ask(&self, probe: &Probe) -> Result<ProbeOutput, Reason> {
        run_probe(&self.prober, probe).await
    }
}

/// One probe on a connection.
pub async fn run_probe(prober: &Prober, probe: &Probe) -> Result<ProbeOutput, Reason> {
    match prober.probe(probe).await {
        Ok(ExecutionOutcome::Ended {
            code,
            stdout,
            stderr,
        }) => Ok(ProbeOutput {
            code,
            out: stdout,
            err: stderr,
        }),
        Ok(ExecutionOutcome::Unknown { reason }) => Err(reason),
        Err(error) => Err(error.to_string().into()),
    }
}

/// No answer: the outcome is unknown, never failed.
pub fn outcome_from_lost_host(reason: &Reason) -> CheckOutcome {
    CheckOutcome::unknown("RW0801", reason.as_words())
        .effect(
            "nothing is known of this host; test traffic that we started there is ended by the \
             host itself",
        )
        .next("railwright verify {inventory}")
}
