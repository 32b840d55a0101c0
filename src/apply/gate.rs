//! What proves that hosts are in service again. The checks themselves live in `verify`.

use crate::transport::{BoxFuture, Connector};
use crate::verify::gate::gate;
use crate::verify::request::VerifyRequest;
use crate::verify::result::VerifyReport;
use std::sync::Arc;

/// What a gate found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateResult {
    /// Why it did not pass, in one line; nothing when it did.
    pub problem: Option<String>,
    /// Every check, where there were any.
    pub report: Option<VerifyReport>,
}

/// Checks hosts.
pub trait Gatekeeper: Send + Sync {
    /// Are these hosts in service? Only hosts that are done are given; `proven` are those that passed before, to pair
    /// with.
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult>;
}

/// Checks links, GIDs, MTU, marks and real RDMA traffic.
pub struct FunctionalGate {
    /// Opens connections.
    pub connector: Arc<dyn Connector>,
    /// All hosts of the cluster, and what is expected of them.
    pub request: VerifyRequest,
}

impl Gatekeeper for FunctionalGate {
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async move {
            let found = gate(self.connector.as_ref(), &self.request, hosts, proven, &|_| {}).await;
            let reason = found.reason.unwrap_or_else(|| "not everything could be proven".to_owned());
            GateResult { problem: (!found.passed).then_some(reason), report: Some(found.report) }
        })
    }
}
