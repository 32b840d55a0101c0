//! What is accepted for a while: findings that a waiver of the spec covers are listed apart; a
//! waiver that ended, or that covers nothing, is reported as well.

use super::evaluation::{RuleFinding, RulesReport};
use crate::spec::LoadedSpec;
use crate::spec::model::Waiver;
use railwright_base::suggest::find_nearest_word;
use railwright_base::{Diagnostic, nodeset};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A finding that is accepted for a while.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct WaivedFinding {
    /// The rule's code.
    pub code: String,
    /// What it says.
    pub message: String,
    /// The hosts that it is about, folded; not there for what concerns the cluster or a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// Why it is accepted.
    pub reason: String,
    /// Who accepted it.
    pub owner: String,
    /// The last day on which it is accepted.
    pub until: String,
}

/// The hosts on which a code is accepted on a day, whether or not anything is found there.
pub fn list_waived_hosts<'a>(loaded: &'a LoadedSpec, code: &str, today: &str) -> BTreeSet<&'a str> {
    let mut waived: BTreeSet<&str> = BTreeSet::new();
    for waiver in &loaded.spec.rules.waive {
        if !waiver.code.eq_ignore_ascii_case(code) || today > waiver.until.as_str() {
            continue;
        }
        let covered = hosts_of(waiver);
        for host in &loaded.hosts {
            if covered
                .as_ref()
                .is_none_or(|hosts| hosts.contains(&host.name))
            {
                waived.insert(&host.name);
            }
        }
    }
    waived
}

/// The waivers of a spec, and which of them covered something so far.
pub(super) struct Waivers<'a> {
    loaded: &'a LoadedSpec,
    today: &'a str,
    all: Vec<(usize, &'a Waiver, Option<BTreeSet<String>>)>,
    used: BTreeSet<usize>,
}

impl<'a> Waivers<'a> {
    pub(super) fn of(loaded: &'a LoadedSpec, today: &'a str) -> Self {
        let mut all = Vec::new();
        for (index, waiver) in loaded.spec.rules.waive.iter().enumerate() {
            all.push((index, waiver, hosts_of(waiver)));
        }
        Waivers {
            loaded,
            today,
            all,
            used: BTreeSet::new(),
        }
    }

    /// Adds findings to the report, those that are waived apart.
    pub(super) fn part(&mut self, found: Vec<RuleFinding>, evaluation: &mut RulesReport) {
        for finding in found {
            let code = finding.diagnostic.code.clone();
            let own = self
                .all
                .iter()
                .filter(|(_, waiver, _)| waiver.code.eq_ignore_ascii_case(&code));
            let mut left = Some(finding);
            for (index, waiver, hosts) in own {
                let Some(finding) = left.take() else { break };
                let (covered, rest) = split_finding(finding, hosts.as_ref());
                left = rest;
                let Some(covered) = covered else { continue };
                self.used.insert(*index);
                if self.today > waiver.until.as_str() {
                    left = Some(join_findings(covered, left));
                    continue;
                }
                evaluation.waived.push(WaivedFinding {
                    code: waiver.code.to_uppercase(),
                    message: covered.diagnostic.message,
                    nodes: covered.diagnostic.subject,
                    reason: waiver.reason.clone(),
                    owner: waiver.owner.clone(),
                    until: waiver.until.clone(),
                });
            }
            evaluation.findings.extend(left);
        }
    }

    /// What is to be said of the waivers themselves, once all is found; of codes that may still be
    /// found nothing is said to be unused.
    pub(super) fn notes(&self, codes: &BTreeSet<&str>, open: &BTreeSet<&str>) -> Vec<Diagnostic> {
        let mut notes = Vec::new();
        for (index, waiver, _) in &self.all {
            let is_used = self.used.contains(index);
            if is_used || !open.contains(waiver.code.to_uppercase().as_str()) {
                let note = check_waiver(self.loaded, codes, *index, waiver, is_used, self.today);
                notes.extend(note);
            }
        }
        notes
    }
}

/// What of a finding a waiver for these hosts covers, and what it leaves.
fn split_finding(
    finding: RuleFinding,
    hosts: Option<&BTreeSet<String>>,
) -> (Option<RuleFinding>, Option<RuleFinding>) {
    let Some(hosts) = hosts else {
        return (Some(finding), None);
    };
    let (covered, left): (Vec<String>, Vec<String>) = finding
        .hosts
        .iter()
        .cloned()
        .partition(|host| hosts.contains(host));
    match (covered.is_empty(), left.is_empty()) {
        (true, _) => (None, Some(finding)),
        (false, true) => (Some(finding), None),
        (false, false) => (
            Some(set_finding_hosts(finding.clone(), covered)),
            Some(set_finding_hosts(finding, left)),
        ),
    }
}

fn join_findings(covered: RuleFinding, left: Option<RuleFinding>) -> RuleFinding {
    let Some(left) = left else { return covered };
    let hosts = covered.hosts.iter().chain(&left.hosts).cloned().collect();
    set_finding_hosts(left, hosts)
}

fn set_finding_hosts(finding: RuleFinding, hosts: Vec<String>) -> RuleFinding {
    let diagnostic = finding.diagnostic.on(nodeset::fold_node_set(&hosts));
    RuleFinding { diagnostic, hosts }
}

/// The hosts that a waiver names; nothing stands for all of them.
fn hosts_of(waiver: &Waiver) -> Option<BTreeSet<String>> {
    match waiver.nodes.as_deref()? {
        "*" => None,
        nodes => {
            let names = nodeset::expand_node_set(nodes).unwrap_or_default();
            Some(names.into_iter().collect())
        }
    }
}

fn check_waiver(
    loaded: &LoadedSpec,
    codes: &BTreeSet<&str>,
    index: usize,
    waiver: &Waiver,
    used: bool,
    today: &str,
) -> Option<Diagnostic> {
    let ended = today > waiver.until.as_str();
    let (key, label, diagnostic) = if !codes.contains(waiver.code.to_uppercase().as_str()) {
        let error = new_unknown_code_error(&waiver.code, codes);
        ("code", "no such rule", error)
    } else if used && ended {
        ("until", "the last day", new_ended_warning(waiver))
    } else if !used {
        let warning = new_unused_warning(waiver);
        ("code", "nothing breaks this rule", warning)
    } else {
        return None;
    };
    let label = loaded.label(&format!("rules.waive[{index}].{key}"), label);
    Some(match label {
        Some(label) => diagnostic.labelled(label),
        None => diagnostic,
    })
}

/// A waiver's code as messages show it.
fn show_code(code: &str) -> String {
    railwright_base::text::one_line(code, 20)
}

fn new_unknown_code_error(code: &str, codes: &BTreeSet<&str>) -> Diagnostic {
    let next = match find_nearest_word(&code.to_uppercase(), codes.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`railwright rules` lists them".to_owned(),
    };
    let message = format!("there is no rule `{}` to waive", show_code(code));
    Diagnostic::error("RW0131", message)
        .effect("nothing is waived by it, and what it is meant for counts")
        .next(next)
}

fn new_ended_warning(waiver: &Waiver) -> Diagnostic {
    let code = show_code(&waiver.code);
    let message = format!("the waiver of {code} ended on {}", waiver.until);
    Diagnostic::warning("RW0131", message)
        .effect("the rule counts again")
        .next("fix what it says, or accept it for longer")
}

fn new_unused_warning(waiver: &Waiver) -> Diagnostic {
    let next = match waiver.nodes {
        Some(_) => {
            "remove it, or correct `nodes`; a rule about the whole cluster is waived without \
             `nodes`"
        }
        None => "remove it",
    };
    let message = format!("the waiver of {} waives nothing", show_code(&waiver.code));
    Diagnostic::warning("RW0131", message)
        .effect("it would hide a finding that comes later")
        .next(next)
}
