//! The gate of a rollout: proves a wave the way `verify` proves the fabric.

use crate::apply::{GateResult, Gatekeeper};
use crate::base::Diagnostic;
use crate::transport::{BoxFuture, Connector};
use crate::verify::{self, VerifyRequest};
use std::sync::Arc;

/// Proves the hosts of a wave, with a partner from an earlier one where a pair needs it.
pub struct Gate {
    request: VerifyRequest,
    connector: Arc<dyn Connector>,
}

impl Gate {
    /// A gate for this cluster.
    pub fn new(request: VerifyRequest, connector: Arc<dyn Connector>) -> Self {
        Gate { request, connector }
    }
}

impl Gatekeeper for Gate {
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async move {
            let result = verify::gate(&*self.connector, &self.request, hosts, proven, &|_| {}).await;
            if result.passed {
                return GateResult::default();
            }
            let reason = result.reason.unwrap_or_else(|| "a check could not be carried out".to_owned());
            let inventory = &self.request.inventory;
            let problem =
                Diagnostic::error("RW0650", format!("the gate did not let {} through: {reason}", crate::base::nodeset::fold(hosts)))
                    .effect("these hosts may drop or slow RDMA traffic; the next wave is not started, so that no more hosts get there")
                    .state("the hosts of this wave stay as they are now; hosts of later waves are untouched")
                    .next(format!("railwright verify {inventory} shows every check"))
                    .next(format!("mend the cause, then railwright resume {inventory}"));
            GateResult { problems: vec![problem] }
        })
    }
}
