//! Hosts behind a switch: what carried their traffic before a change has to carry it after, before
//! the change is confirmed. Whether the switch says that it is in sync proves nothing of that.
//! Hosts that do not pass their gate before, such as bare ones, prove nothing either way. Hosts that
//! passed it once in this run have to pass it before each later attempt: what they do not pass any
//! more may be our own change, or its rollback a moment ago.

use super::{ChangeStep, Halt, halt_with_problem};
use crate::context::RunEvent;
use crate::trouble;
use railwright_base::Reason;
use railwright_base::nodeset;
use railwright_state::NodeOutcome;
use railwright_state::run_status::NodeStatus;
use railwright_system::clock::{self, Deadline};
use std::time::Duration;

/// How long hosts may take to pass their gate again once a change of their switch was rolled back:
/// links, addresses and GIDs have to be there again.
const RECOVERY_LIMIT: Duration = Duration::from_secs(120);

impl ChangeStep<'_> {
    /// The hosts that are plugged into the switch, where there are any.
    pub(super) fn hosts_behind(&self) -> Option<Vec<String>> {
        let behind = self.shared.plan.rollout.hosts_behind(self.host);
        behind.filter(|hosts| self.is_switch() && !hosts.is_empty())
    }

    /// Asks which hosts that are plugged into the switch pass their gate as it is; those that do
    /// are remembered. False where nobody is.
    pub(super) async fn ask_behind(&mut self) -> Result<bool, Halt> {
        let Some(hosts) = self.hosts_behind() else {
            return Ok(false);
        };
        let failure = self.check_behind(&hosts).await;
        if let Some(why) = &failure
            && self.have_passed_once()
        {
            return Err(self.not_recovered(&hosts, why));
        }
        let passed = failure.is_none();
        self.tell_of_behind(&hosts, true, failure);
        self.behind = if passed { hosts } else { Vec::new() };
        Ok(true)
    }

    /// The automatic rollback of an earlier attempt is gone without an end that we know of:
    /// somebody else confirmed the change, or the switch kept it. Hosts that passed before it have
    /// to pass now.
    pub(super) async fn prove_kept_change(&self, token: &str) -> Result<(), Halt> {
        let Some(hosts) = self.hosts_behind() else {
            return Ok(());
        };
        let armed_rollback = self
            .earlier_status()
            .and_then(|node| node.armed_rollback.as_deref());
        if !self.have_passed_once() || armed_rollback != Some(token) {
            return Ok(());
        }
        match self.check_behind(&hosts).await {
            None => Ok(()),
            Some(why) => Err(self.unknown(format!(
                "its rollback is gone, so that somebody else has confirmed it or the switch kept \
                 it, and {} behind it passed their gate before it and do not pass it now: {why}",
                nodeset::fold_node_set(&hosts)
            ))),
        }
    }

    /// Why hosts do not pass their gate; nothing where they do. Who passed it once gets the time to
    /// recover, unless the run is to end.
    async fn check_behind(&self, hosts: &[String]) -> Option<String> {
        let limit = if self.have_passed_once() {
            RECOVERY_LIMIT
        } else {
            Duration::ZERO
        };
        let until = Deadline::after(limit);
        loop {
            let result = self.shared.context.gatekeeper.check(hosts, &[]).await;
            let failure = result.failure()?;
            if until.left().is_zero() || self.shared.is_ending() {
                return Some(failure);
            }
            clock::sleep_for(self.shared.context.patience.settle_poll).await;
        }
    }

    fn not_recovered(&self, hosts: &[String], why: &str) -> Halt {
        let hosts = nodeset::fold_node_set(hosts);
        let problem = trouble::hosts_not_recovered(&self.node.id, &hosts, why, &self.shared.next);
        let reason = format!("{hosts} behind it do not pass their gate any more: {why}");
        halt_with_problem(NodeOutcome::Failed { reason }, problem)
    }

    /// Whether the hosts behind the switch passed their gate in an earlier part of the run.
    fn have_passed_once(&self) -> bool {
        self.earlier_status().is_some_and(|node| node.hosts_passed)
    }

    /// What earlier parts of the run left of this step.
    fn earlier_status(&self) -> Option<&NodeStatus> {
        self.shared.earlier.nodes.get(&self.node.id)
    }

    /// Whether those pass it still; the error fits after "rolled back automatically:".
    pub(super) async fn still_in_service(&self, until: Deadline) -> Result<(), Reason> {
        let hosts = &self.behind;
        if hosts.is_empty() {
            return Ok(());
        }
        let checked = clock::await_with_timeout(
            until.left(),
            self.shared.context.gatekeeper.check(hosts, &[]),
        )
        .await;
        let failure = match checked {
            Some(result) => result.failure(),
            None => Some("the rollback timer expired".to_owned()),
        };
        self.tell_of_behind(hosts, false, failure.clone());
        let folded = nodeset::fold_node_set(hosts);
        match failure {
            None => Ok(()),
            Some(why) => Err(format!(
                "{folded} behind it passed their gate before the change, and not after it: {why}"
            )
            .into()),
        }
    }

    fn tell_of_behind(&self, hosts: &[String], before: bool, failure: Option<String>) {
        let hosts = nodeset::fold_node_set(hosts);
        (self.shared.sink)(RunEvent::BehindChecked {
            node: self.node.id.clone(),
            hosts,
            before,
            failure,
        });
    }
}
