//! The gate of a rollout: proves a wave the way `verify` proves the fabric.

use crate::apply::{GateResult, Gatekeeper};
use crate::base::Diagnostic;
use crate::transport::{BoxFuture, Connector};
use crate::verify::{self, VerifyRequest};
use std::sync::{Arc, Mutex};

/// Proves the hosts of a wave, with a partner from an earlier one where a pair needs it.
pub struct Gate {
    request: VerifyRequest,
    connector: Arc<dyn Connector>,
    /// Hosts that passed earlier in this run.
    done: Mutex<Vec<String>>,
}

impl Gate {
    /// A gate with nobody through it yet.
    pub fn new(request: VerifyRequest, connector: Arc<dyn Connector>) -> Self {
        Gate { request, connector, done: Mutex::default() }
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Gatekeeper for Gate {
    fn check<'a>(&'a self, hosts: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async move {
            let done = self.done().clone();
            let result = verify::gate(&*self.connector, &self.request, hosts, &done, &|_| {}).await;
            if result.passed {
                self.done().extend(hosts.iter().cloned());
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
