//! What a run did becomes part of what is remembered.

use super::ClusterState;
use super::run_outages::OutageMark;
use super::run_status::{NodeStatus, RunStatus};
use railwright_plan::note_outage;
use std::collections::BTreeMap;

impl RunStatus {
    /// Puts what the run applied and removed over a state that knows it as far as `earlier`: what
    /// was forgotten since is not brought back. Where the run was not begun with this state,
    /// the targets' own records are newer than what is made of both.
    pub fn absorb_into(&self, state: &mut ClusterState, earlier: &RunStatus) {
        let after = earlier.sequence;
        let is_continued = after > 0 || self.state_serial == state.serial;
        self.absorb_host_service(state, earlier);
        self.absorb_resources(state, after);
        if is_continued {
            self.absorb_host_records(state, after);
        }
        if after == 0 || state.cluster.is_none() {
            state.cluster = self.cluster.clone().or(state.cluster.take());
        }
    }

    /// Takes over which machines the hosts are, and which of them are out of service.
    fn absorb_host_service(&self, state: &mut ClusterState, earlier: &RunStatus) {
        let after = earlier.sequence;
        for (host, (machine, sequence)) in &self.machines {
            if *sequence > after {
                state.settle_machine(host, machine);
            }
        }
        for (host, sequence) in &self.proven {
            if *sequence > after {
                state.end_outage(host, self.boot_at(host, *sequence));
            }
        }
        for (host, sequence) in &self.returned {
            if *sequence > after {
                state.return_to_service(host);
            }
        }
        let outages = self.outages();
        self.forget_ended(earlier, &outages, state);
        for (host, mark) in outages {
            if mark.sequence > after {
                note_outage(&mut state.outages, host.to_owned(), mark.outage(&self.run));
            }
        }
    }

    fn absorb_resources(&self, state: &mut ClusterState, after: u64) {
        let resources = &mut state.last_applied.resources;
        let nodes = self.nodes.values().filter(|node| node.finished > after);
        let mut nodes: Vec<&NodeStatus> = nodes.collect();
        // What a step left to the reboot is forgotten by the reboot.
        nodes.sort_by_key(|node| node.finished);
        for node in nodes {
            for (address, applied) in &node.applied {
                resources.insert(address.clone(), applied.clone());
            }
            for address in &node.removed {
                resources.remove(address);
            }
        }
    }

    /// Takes over what was written to the hosts' own records, and which hosts' records are behind.
    fn absorb_host_records(&self, state: &mut ClusterState, after: u64) {
        for (host, written) in &self.host_records {
            if written.sequence > after {
                let lineage = state.lineages.entry(host.clone()).or_default();
                lineage.add(written.write.clone());
            }
        }
        for host in self.behind(after) {
            let lineage = state.lineages.entry(host).or_default();
            lineage.note_behind(&self.by(), self.sequence);
        }
    }

    /// What was under way when the run was cut off, and was remembered as an outage then, may have
    /// been done since. What a part of the run in another folder left is not in this journal, and
    /// stays.
    fn forget_ended(
        &self,
        earlier: &RunStatus,
        outages: &BTreeMap<&str, OutageMark>,
        state: &mut ClusterState,
    ) {
        for (host, mark) in earlier.outages() {
            if outages.contains_key(host) {
                continue;
            }
            let ended = mark.outage(&self.run);
            let machine = earlier.machines.get(host).map(|(machine, _)| machine);
            state.outages.retain(|name, outage| {
                let is_of_machine = machine.is_some() && state.machines.get(name) == machine;
                *outage != ended || name != host && !is_of_machine
            });
            state
                .machine_outages
                .retain(|of, outage| *outage != ended || Some(of) != machine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_status::fold_journal_records;
    use crate::{JournalEntry, NodeOutcome};
    use railwright_base::{Address, Digest};
    use railwright_plan::AppliedResource;

    #[test]
    fn resources_of_any_target_pass_through_unchanged() {
        use crate::journal::{self, Chain};
        let applied = AppliedResource {
            kind: "made_up".to_owned(),
            body: serde_json::json!({ "deep": [1.5, { "text": "a\nb" }] }),
            digest: Digest::of(&1),
            module: "m/x".to_owned(),
            places: Vec::new(),
            after: Vec::new(),
            before: serde_json::json!({ "was": null }),
            adopted: true,
            unfinished: false,
            begun: vec![],
            run: "r".to_owned(),
            at: "t".to_owned(),
        };
        let addresses = [
            "kube/prod/DaemonSet.apps/kube-system/rdma",
            "switch/leaf1/port/Ethernet1%2F1",
            "host/a/file/%2Fx",
        ];
        let applied: Vec<(Address, AppliedResource)> = addresses
            .iter()
            .map(|text| (text.parse().unwrap(), applied.clone()))
            .collect();
        let finished = JournalEntry::NodeFinished {
            node: "n".to_owned(),
            host: None,
            outcome: NodeOutcome::Done { changed: true },
            applied: applied.clone(),
            removed: vec!["switch/leaf2/port/Ethernet1".parse().unwrap()],
        };
        let mut chain = Chain::default();
        let text = chain.seal("t".to_owned(), JournalEntry::first_of("r"))
            + &chain.seal("t".to_owned(), finished);
        let mut state = ClusterState::default();
        state.last_applied.resources.insert(
            "switch/leaf2/port/Ethernet1".parse().unwrap(),
            applied[0].1.clone(),
        );
        fold_journal_records(
            &journal::parse_journal("j", text.as_bytes())
                .unwrap()
                .records,
        )
        .absorb_into(&mut state, &RunStatus::default());
        assert_eq!(
            state
                .last_applied
                .resources
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            applied.into_iter().collect()
        );
    }
}
