//! What serde cannot say: ranges, references, and values that must agree with each other. One file
//! a family; each finding has its code, a caret, what it would mean for the fabric, and what to
//! write instead.
//!
//! Rules that look at the whole cluster run only when every file decoded: with a part missing they
//! would accuse what is right.

mod acceptance;
mod access;
mod addresses;
mod api;
mod fabric;
mod gate;
mod hardware;
mod kubernetes;
mod management;
mod naming;
mod node_fields;
mod nodes;
mod operation;
mod owners;
mod platform;
mod reached_switches;
mod supply;
mod switches;
mod waivers;
mod workloads;

pub use nodes::{bad_node_set, too_many_hosts};

use super::hosts::Host;
use super::model::Spec;
use super::tree::SpecTree;
use railwright_base::{Diagnostic, Severity};

/// All findings, in the order of the model.
pub fn check_spec_rules(
    spec: &Spec,
    hosts: &[Host],
    tree: &SpecTree,
    complete: bool,
) -> Vec<Diagnostic> {
    let mut checker = SpecChecker {
        tree,
        complete,
        findings: Vec::new(),
    };
    nodes::check_cluster_name(&mut checker, spec);
    fabric::check_fabric(&mut checker, &spec.fabric);
    access::check_access(&mut checker, spec);
    for (index, group) in spec.nodes.iter().enumerate() {
        hardware::check_node_group(&mut checker, index, group);
    }
    supply::check_repositories_and_secrets(&mut checker, spec);
    kubernetes::check_kubernetes_section(&mut checker, spec);
    node_fields::check_node_fields(&mut checker, spec);
    platform::check_platform(&mut checker, spec);
    switches::check_switch_groups(&mut checker, spec);
    reached_switches::check_reached_switches(&mut checker, spec);
    api::check_switch_apis(&mut checker, spec);
    operation::check_rollout_and_verify(&mut checker, spec);
    gate::check_gate_nccl_tests(&mut checker, spec);
    workloads::check_workloads(&mut checker, spec);
    if complete {
        nodes::check_hosts_in_two_groups(&mut checker, spec, hosts);
        nodes::check_kubernetes_nodes(&mut checker, spec, hosts);
        nodes::check_ranges_without_brackets(&mut checker, spec, hosts);
        access::check_shared_addresses(&mut checker, hosts);
        access::check_shared_switches(&mut checker, spec);
        let names = hosts.iter().map(|host| host.name.as_str());
        kubernetes::check_kubernetes_name(&mut checker, spec, "host", names);
        kubernetes::check_pools_of_hosts(&mut checker, spec, hosts);
        switches::check_switch_names(&mut checker, spec, hosts);
        owners::check_driver_owners(&mut checker, spec);
        addresses::check_rail_addresses(&mut checker, spec, hosts);
        // An entry that did not decode would shift the places of those after it.
        acceptance::check_acceptances(&mut checker, spec);
        acceptance::check_accepted_hosts(&mut checker, spec, hosts);
        waivers::check_waivers(&mut checker, spec, hosts);
        let reached = hosts.iter().filter(|host| host.ssh.is_some()).count();
        operation::check_budget(&mut checker, spec, reached);
        operation::check_waves(&mut checker, spec, reached);
        operation::check_domain(&mut checker, spec);
        gate::check_hosts(&mut checker, spec, hosts);
    }
    checker.findings
}

struct SpecChecker<'a> {
    tree: &'a SpecTree,
    /// False when a part of the files did not decode: then nothing may be blamed for being absent.
    complete: bool,
    findings: Vec<Diagnostic>,
}

impl SpecChecker<'_> {
    /// Adds a finding with its caret at a path; where the files leave the value to its default, at
    /// what is around it.
    fn find(&mut self, path: &str, label: &str, finding: Diagnostic) {
        let finding = self.pointed(path, label, finding);
        self.findings.push(finding);
    }

    /// Adds a finding with its caret, and one at the other place that it does not agree with.
    fn find_with(&mut self, path: &str, label: &str, other: (&str, &str), finding: Diagnostic) {
        let finding = self.pointed(path, label, finding);
        let finding = self.pointed(other.0, other.1, finding);
        self.findings.push(finding);
    }

    fn pointed(&self, path: &str, label: &str, finding: Diagnostic) -> Diagnostic {
        let mut around = path;
        loop {
            if let Some(location) = self.tree.find(around) {
                return finding.labelled(self.tree.label(location, label));
            }
            let Some(end) = around.rfind(['.', '[']) else {
                return finding;
            };
            around = &around[..end];
        }
    }
}

/// An error with what it means for the fabric and what to write instead.
fn new_spec_error(
    code: &'static str,
    message: impl Into<String>,
    effect: &str,
    fix: impl Into<String>,
) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        ..Diagnostic::error(code, message).effect(effect).next(fix)
    }
}

/// True for text that can stand in a file or a command of ours as one word: not empty, no white
/// space, no control characters, no quotes, and not to be taken for an option.
fn is_one_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '`' | '\\'))
}

/// True for letters, digits and `-`, starting with a letter or digit.
fn is_plain_name(text: &str, length_max: usize) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts_well
        && text.len() <= length_max
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// A user's text in a message: one line, bounded.
fn truncate_user_text(text: &str) -> String {
    railwright_base::text::one_line(text, 60)
}

#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod switch_tests;
#[cfg(test)]
mod tests;
