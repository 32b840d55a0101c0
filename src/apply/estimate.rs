//! How long a run will likely take, by the journals of earlier ones: the median of each kind of
//! step, of a reboot, of a gate. Pure. Where there is nothing to go by it says so; a guess would
//! only look like knowledge.

use super::steps::{ScheduledStep, StepRole};
use jiff::Timestamp;
use railwright_base::Target;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// How long things took in earlier runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// Runs that something was learned from.
    pub runs: usize,
    /// Seconds by kind: `packages`, `link`, `reboot`, `gate`.
    took: BTreeMap<String, Vec<u64>>,
}

/// How long what is left will likely take.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Seconds, as far as there is something to go by.
    pub seconds: u64,
    /// Kinds of steps that were never seen: the estimate leaves them out.
    pub never_seen: BTreeSet<String>,
    /// How many earlier runs it is based on.
    pub runs: usize,
    /// How long a reboot takes with all that it proves, in seconds, where there is one to come and
    /// one was seen.
    pub reboot_s: Option<u64>,
}

/// A line of a journal, as far as a forecast goes by it.
#[derive(Deserialize)]
struct JournalTimingLine<'a> {
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow)]
    entry: LineEntry<'a>,
}

#[derive(Deserialize)]
struct LineEntry<'a> {
    #[serde(borrow)]
    record: Cow<'a, str>,
    #[serde(borrow, default)]
    node: Option<Cow<'a, str>>,
    #[serde(default)]
    outcome: Option<LineOutcome>,
    #[serde(default)]
    failure: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct LineOutcome {
    /// Only what was done has it.
    #[serde(default)]
    changed: bool,
}

/// The word that steps of the same kind share: that of the transaction, or of the resource.
pub fn extract_step_kind(node: &str) -> &str {
    let mut parts = node.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("gate"), ..) => "gate",
        (_, _, Some("transaction"), Some(word)) => word
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .trim_end_matches('-'),
        (_, _, Some(kind), _) => kind,
        _ => node,
    }
}

impl Past {
    /// Learns from a journal's bytes: from what was begun and done in one go. Only the few words
    /// that matter are read, and no line's seal: a forecast does not have to be true, and it has to
    /// be quick.
    pub fn learn(&mut self, journal: &[u8]) {
        let mut begun: BTreeMap<String, Timestamp> = BTreeMap::new();
        let mut learned = false;
        for line in journal.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<JournalTimingLine>(line) else {
                continue;
            };
            let (Ok(at), entry) = (line.at.parse::<Timestamp>(), line.entry) else {
                continue;
            };
            match (entry.record.as_ref(), entry.node) {
                ("node_started" | "gate_started", Some(node)) => {
                    begun.insert(node.into_owned(), at);
                }
                // What the pause of an interruption lies in says nothing of how long a step takes.
                ("run_resumed", _) => begun.clear(),
                ("node_finished" | "gate_checked", Some(node)) => {
                    let is_gate = entry.record == "gate_checked";
                    let done = (is_gate && entry.failure.is_none())
                        || entry.outcome.is_some_and(|outcome| outcome.changed);
                    let took = begun
                        .remove(node.as_ref())
                        .and_then(|from| u64::try_from(at.as_second() - from.as_second()).ok());
                    if let (Some(seconds), true) = (took, done) {
                        self.took
                            .entry(extract_step_kind(&node).to_owned())
                            .or_default()
                            .push(seconds);
                        learned = true;
                    }
                }
                _ => {}
            }
        }
        self.runs += usize::from(learned);
    }

    /// The median of a kind, in seconds.
    pub fn median(&self, kind: &str) -> Option<u64> {
        let mut took = self.took.get(kind)?.clone();
        took.sort_unstable();
        took.get(took.len() / 2).copied()
    }

    /// How long these steps will take that are not over: wave after wave, in each as long as its
    /// slowest host, or as the hosts need that have to take turns because only so many may be out
    /// of service. Nothing without a past.
    pub fn estimate(
        &self,
        steps: &[ScheduledStep],
        over: &dyn Fn(&ScheduledStep) -> bool,
        max_unavailable: usize,
        parallel: usize,
    ) -> Option<Estimate> {
        if self.runs == 0 {
            return None;
        }
        let mut never_seen = BTreeSet::new();
        let mut waves: BTreeMap<usize, Wave> = BTreeMap::new();
        let mut reboots = false;
        for step in steps
            .iter()
            .filter(|step| step.blocked.is_none() && !over(step))
        {
            let wave = waves.entry(step.wave).or_default();
            let kind = extract_step_kind(&step.id);
            let seconds = self.median(kind);
            if seconds.is_none() && step.role != StepRole::Barrier {
                never_seen.insert(kind.to_owned());
            }
            let seconds = seconds.unwrap_or_default();
            reboots |= kind == "reboot";
            match (&step.role, &step.target) {
                (StepRole::Gate(_), _) => wave.gate += seconds,
                (_, Some(target)) => {
                    let host = wave.hosts.entry(target).or_default();
                    host.0 += seconds;
                    host.1 |= step.disruptive;
                }
                _ => {}
            }
        }
        let seconds = waves
            .values()
            .map(|wave| wave.seconds(max_unavailable.max(1), parallel.max(1)))
            .sum();
        Some(Estimate {
            seconds,
            never_seen,
            runs: self.runs,
            reboot_s: if reboots { self.median("reboot") } else { None },
        })
    }
}

#[derive(Default)]
struct Wave<'a> {
    /// Seconds, and whether it leaves service, by host.
    hosts: BTreeMap<&'a Target, (u64, bool)>,
    gate: u64,
}

impl Wave<'_> {
    fn seconds(&self, max_unavailable: usize, parallel: usize) -> u64 {
        let slowest = self
            .hosts
            .values()
            .map(|(seconds, _)| *seconds)
            .max()
            .unwrap_or_default();
        let all: u64 = self.hosts.values().map(|(seconds, _)| seconds).sum();
        let out: Vec<u64> = self
            .hosts
            .values()
            .filter(|(_, out)| *out)
            .map(|(seconds, _)| *seconds)
            .collect();
        // Whoever waits for a slot waits for a gate as well.
        let rounds = out.len().div_ceil(max_unavailable).max(1) as u64;
        let in_turn = out.iter().sum::<u64>().div_ceil(max_unavailable as u64);
        slowest.max(in_turn).max(all.div_ceil(parallel as u64)) + self.gate * rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_base::Digest;
    use railwright_state::journal::Chain;
    use railwright_state::{JournalEntry, NodeOutcome};

    fn started(node: &str) -> JournalEntry {
        let (node, token, actions) = (node.to_owned(), String::new(), Digest::of(&0));
        JournalEntry::NodeStarted {
            node,
            host: None,
            drains: false,
            disruptive: false,
            attempt: 1,
            token,
            actions,
            members: vec![],
            boot_id: None,
        }
    }

    fn finished(node: &str, changed: bool) -> JournalEntry {
        JournalEntry::NodeFinished {
            node: node.to_owned(),
            host: None,
            outcome: NodeOutcome::Done { changed },
            applied: vec![],
            removed: vec![],
        }
    }

    fn journal(entries: Vec<(i64, JournalEntry)>) -> Vec<u8> {
        let mut chain = Chain::default();
        let line = |(second, entry)| {
            chain.seal(
                Timestamp::from_second(1_700_000_000 + second)
                    .unwrap()
                    .to_string(),
                entry,
            )
        };
        entries
            .into_iter()
            .map(line)
            .collect::<String>()
            .into_bytes()
    }

    fn past() -> Past {
        let mut past = Past::default();
        let reboots = [200, 240, 900]
            .into_iter()
            .zip(["a", "b", "c"])
            .flat_map(|(took, host)| {
                let node = format!("host/{host}/reboot");
                [(0, started(&node)), (took, finished(&node, true))]
            });
        past.learn(&journal(reboots.collect()));
        let packages = "host/a/transaction/packages-2";
        let hosts = || vec!["a".to_owned()];
        past.learn(&journal(vec![
            (0, started(packages)),
            (50, finished(packages, true)),
            (50, started("host/a/file/x")),
            (51, finished("host/a/file/x", false)),
            (
                60,
                JournalEntry::GateStarted {
                    node: "gate/0".to_owned(),
                    hosts: hosts(),
                },
            ),
            (
                80,
                JournalEntry::GateChecked {
                    node: "gate/0".to_owned(),
                    hosts: hosts(),
                    failure: None,
                },
            ),
        ]));
        past.learn(&journal(vec![(
            0,
            JournalEntry::LockTaken {
                fence: 1,
                part: String::new(),
            },
        )]));
        past
    }

    fn step(id: &str, host: &str, wave: usize, disruptive: bool) -> ScheduledStep {
        ScheduledStep {
            id: id.to_owned(),
            role: if host.is_empty() {
                StepRole::Gate(BTreeSet::new())
            } else {
                StepRole::Work
            },
            target: (!host.is_empty()).then(|| Target::host(host)),
            disruptive,
            needs_window: false,
            by_hand: false,
            on_node: None,
            is_out: false,
            waits: false,
            canary: wave == 0,
            after: vec![],
            before: vec![],
            wave,
            blocked: None,
        }
    }

    #[test]
    fn medians_are_by_kind_and_only_of_what_was_done() {
        let past = past();
        assert_eq!(
            (
                past.median("reboot"),
                past.median("packages"),
                past.median("gate"),
                past.median("file")
            ),
            (Some(240), Some(50), Some(20), None)
        );
        assert_eq!(
            past.runs, 2,
            "a journal that nothing can be learned from is none"
        );
        assert_eq!(
            [
                extract_step_kind("host/a/link/ens4"),
                extract_step_kind("host/a/transaction/boot_loader"),
                extract_step_kind("gate/12")
            ],
            ["link", "boot_loader", "gate"]
        );
        let mut interrupted = Past::default();
        let resumed = JournalEntry::RunResumed {
            who: String::new(),
            machine: String::new(),
            process: 0,
            redo: vec![],
            accept: vec![],
            last_order: None,
        };
        interrupted.learn(&journal(vec![
            (0, started("host/a/link/x")),
            (9999, resumed),
            (10_000, finished("host/a/link/x", true)),
        ]));
        assert_eq!(interrupted, Past::default());
        interrupted.learn(b"\n{\"at\":1}\n\xff{{{\n{\"sequence\":1,\"at\":\"t\",\"entry\":{\"record\":\"node_started\"");
        assert_eq!(
            interrupted,
            Past::default(),
            "what is torn or hostile says nothing"
        );
    }

    #[test]
    fn an_estimate_goes_wave_by_wave_and_takes_turns_where_the_budget_says_so() {
        let mut steps = vec![
            step("host/a/reboot", "a", 0, true),
            step("gate/0", "", 0, false),
        ];
        for host in ["b", "c", "d", "e"] {
            steps.push(step(
                &format!("host/{host}/transaction/packages"),
                host,
                1,
                false,
            ));
            steps.push(step(&format!("host/{host}/reboot"), host, 1, true));
        }
        steps.push(step("gate/1", "", 1, false));
        let none = |_: &ScheduledStep| false;
        let seconds = |max_unavailable| {
            past()
                .estimate(&steps, &none, max_unavailable, 32)
                .unwrap()
                .seconds
        };
        assert_eq!(seconds(4), 240 + 20 + 290 + 20);
        assert_eq!(seconds(2), 240 + 20 + 2 * 290 + 2 * 20);
        assert_eq!(
            past().estimate(&steps, &none, 4, 1).unwrap().seconds,
            240 + 20 + 4 * 290 + 20
        );
        let left = past()
            .estimate(&steps, &|step| step.wave == 0, 4, 32)
            .unwrap();
        assert_eq!(
            (left.seconds, left.reboot_s, left.runs),
            (310, Some(240), 2)
        );
        steps.push(step("host/b/link/x", "b", 1, true));
        assert_eq!(
            past().estimate(&steps, &none, 4, 32).unwrap().never_seen,
            ["link".to_owned()].into()
        );
        assert_eq!(Past::default().estimate(&steps, &none, 4, 32), None);
    }
}
