//! The gate of a rollout: proves a wave the way `verify` proves the fabric, and with NCCL's tests
//! where the spec asks for them.

use super::nccl::Nccl;
use railwright_apply::{GateResult, Gatekeeper};
use railwright_base::{Diagnostic, nodeset};
use railwright_transport::{BoxFuture, Connector};
use railwright_verify::nccl_run::run_nccl_checks;
use railwright_verify::result::CheckOutcome;
use railwright_verify::{self as verify, CheckVerdict, VerifyCheck, VerifyReport, VerifyRequest};
use std::sync::Arc;

/// Proves the hosts of a wave, with a partner from an earlier one where a pair needs it.
pub struct Gate {
    request: VerifyRequest,
    connector: Arc<dyn Connector>,
    nccl: Option<Nccl>,
}

impl Gate {
    /// A gate for this cluster, which also asks for NCCL's tests where the spec does.
    pub fn new(request: VerifyRequest, connector: Arc<dyn Connector>, nccl: Option<Nccl>) -> Self {
        Gate {
            request,
            connector,
            nccl,
        }
    }

    /// NCCL's tests of a wave that passed `verify`.
    async fn nccl(&self, hosts: &[String], proven: &[String]) -> VerifyReport {
        let inventory = &self.request.inventory;
        let empty = VerifyReport::of(inventory, hosts);
        let Some(nccl) = &self.nccl else { return empty };
        let works = match nccl.works(hosts, proven) {
            Ok(works) => works,
            Err(failure) => {
                let why = failure
                    .error
                    .diagnostics
                    .first()
                    .map_or(String::new(), |one| one.message.clone());
                let unknown = CheckOutcome::unknown("RW1306", why)
                    .next("railwright verify {inventory} --nccl");
                let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
                return VerifyReport {
                    results: vec![unknown.on(inventory, &names, None, VerifyCheck::Nccl(""))],
                    ..empty
                };
            }
        };
        let (results, figures) = run_nccl_checks(
            &*self.connector,
            inventory,
            works,
            &|_| {},
            std::future::pending(),
        )
        .await;
        VerifyReport {
            results,
            nccl: figures,
            ..empty
        }
    }

    fn shut(&self, hosts: &[String], reason: Option<String>, more: &str) -> Diagnostic {
        let reason = reason.unwrap_or_else(|| "a check could not be run".to_owned());
        let inventory = &self.request.inventory;
        Diagnostic::error(
            "RW0650",
            format!(
                "the gate did not let {} through: {reason}",
                nodeset::fold_node_set(hosts)
            ),
        )
        .effect(
            "these hosts may drop or slow RDMA traffic; the next wave is not started, so that no \
             more hosts get there",
        )
        .state("the hosts of this wave stay as they are now; hosts of later waves are untouched")
        .next(format!(
            "railwright verify {inventory}{more} shows every check"
        ))
        .next(format!("fix the cause, then railwright resume {inventory}"))
    }
}

impl Gatekeeper for Gate {
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async move {
            let result =
                verify::verify_wave(&*self.connector, &self.request, hosts, proven, &|_| {}).await;
            let mut checked = result.report.proven();
            if !result.passed {
                return GateResult {
                    problems: vec![self.shut(hosts, result.reason, "")],
                    checked,
                    failed: result.report.failed_alone(),
                };
            }
            let report = self.nccl(hosts, proven).await;
            checked.extend(report.proven());
            if report.verdict() != CheckVerdict::Passed {
                return GateResult {
                    problems: vec![self.shut(
                        hosts,
                        verify::describe_gate_failure(&report),
                        " --nccl",
                    )],
                    checked,
                    failed: report.failed_alone(),
                };
            }
            // What it could not prove, because nobody is there to run with, is reported and stops
            // nothing.
            GateResult {
                problems: report.diagnostics(),
                checked,
                ..GateResult::default()
            }
        })
    }
}
