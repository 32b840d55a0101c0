//! Hosts behind a switch: what carried their traffic before a change has to carry it after, before
//! the change is confirmed. Whether the switch says that it is in sync proves nothing of that.
//! Hosts that do not pass their gate before, such as bare ones, prove nothing either way.

use super::ChangeStep;
use crate::context::RunEvent;
use railwright_base::nodeset;
use railwright_system::clock::{self, Deadline};

impl ChangeStep<'_> {
    /// Asks which hosts that are plugged into the switch pass their gate as it is; those that do
    /// are remembered. False where nobody is.
    pub(super) async fn ask_behind(&mut self) -> bool {
        let behind = self.shared.plan.rollout.hosts_behind(self.host);
        let Some(hosts) = behind.filter(|hosts| self.is_switch() && !hosts.is_empty()) else {
            return false;
        };
        let failure = self
            .shared
            .context
            .gatekeeper
            .check(&hosts, &[])
            .await
            .failure();
        let passed = failure.is_none();
        self.tell_of_behind(&hosts, true, failure);
        self.behind = if passed { hosts } else { Vec::new() };
        true
    }

    /// Whether those pass it still; the error fits after "rolled back by its guard:".
    pub(super) async fn still_in_service(&self, until: Deadline) -> Result<(), String> {
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
            None => Some("the guard's time came to its end".to_owned()),
        };
        self.tell_of_behind(hosts, false, failure.clone());
        let folded = nodeset::fold_node_set(hosts);
        match failure {
            None => Ok(()),
            Some(why) => Err(format!(
                "{folded} behind it passed their gate before the change, and not after it: {why}"
            )),
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
