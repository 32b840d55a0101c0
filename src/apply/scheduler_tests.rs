//! The scheduler against tables, and against random plans.

mod interleavings;
mod nodes;
mod out_of_service_tests;

use super::scheduler::Scheduler;
use super::signal::{History, Limits, SchedulerCommand, Signal};
use super::steps::{OnNode, ScheduledStep, StepRole};
use railwright_base::Target;
use railwright_plan::OutageCertainty;
use railwright_state::{NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

/// A step: `id host wave after,after flags` where flags are `d` disruptive, `w` only in a window,
/// `h` blocked, `p` a power cycle by hand, `D` empties the host's node, `U` gives it back, `W` only
/// waits; a host `gate:a,b` makes a gate, `-` a barrier, `kube` is a cluster.
fn plan(lines: &[&str]) -> Vec<ScheduledStep> {
    let mut steps: Vec<ScheduledStep> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let flags = words.get(4).copied().unwrap_or_default();
        let after: Vec<usize> = words[3]
            .split(',')
            .filter(|id| *id != "-")
            .map(|id| steps.iter().position(|s| s.id == id).unwrap())
            .collect();
        for before in &after {
            let n = steps.len();
            steps[*before].before.push(n);
        }
        let gate = words[1].strip_prefix("gate:");
        steps.push(ScheduledStep {
            id: words[0].to_owned(),
            role: match (gate, words[1]) {
                (Some(hosts), _) => StepRole::Gate(hosts.split(',').map(Target::host).collect()),
                (None, "-") => StepRole::Barrier,
                _ => StepRole::Work,
            },
            target: (gate.is_none() && words[1] != "-").then(|| {
                if words[1] == "kube" {
                    Target::kube("kube")
                } else {
                    Target::host(words[1])
                }
            }),
            disruptive: flags.contains(['d', 'D']),
            needs_window: flags.contains('w'),
            by_hand: flags.contains('p'),
            on_node: match flags {
                _ if flags.contains('D') => Some(OnNode::Empties),
                _ => flags.contains('U').then_some(OnNode::GivesBack),
            },
            is_out: false,
            waits: flags.contains('W'),
            canary: false,
            after,
            before: Vec::new(),
            wave: words[2].parse().unwrap(),
            blocked: flags.contains('h').then(|| "blocked".to_owned()),
        });
    }
    let by_hand = steps
        .iter()
        .filter(|step| step.by_hand)
        .map(|step| step.wave)
        .min();
    steps
        .iter_mut()
        .for_each(|step| step.canary = step.wave == 0 || Some(step.wave) == by_hand);
    steps
}

struct Driven {
    scheduler: Scheduler,
    last: Vec<SchedulerCommand>,
}

impl Driven {
    fn new(lines: &[&str], max_unavailable: usize) -> Self {
        Driven::with(lines, max_unavailable, &[])
    }

    fn with(lines: &[&str], max_unavailable: usize, unreachable: &[&str]) -> Self {
        let scheduler = Scheduler::new(
            plan(lines),
            Limits {
                parallel: 8,
                max_unavailable,
                failure_budget: max_unavailable,
                looks: false,
            },
            &History::default(),
        );
        let unreachable = unreachable
            .iter()
            .map(|host| (Target::host(*host), "down".to_owned()))
            .collect();
        let (scheduler, last) = scheduler.step(Signal::Begin { unreachable });
        Driven { scheduler, last }
    }

    fn send(&mut self, signal: Signal) -> &mut Self {
        let (scheduler, last) = self.scheduler.clone().step(signal);
        (self.scheduler, self.last) = (scheduler, last);
        self
    }

    fn number(&self, id: &str) -> usize {
        self.scheduler
            .steps()
            .iter()
            .position(|s| s.id == id)
            .unwrap()
    }

    fn finish(&mut self, id: &str, outcome: NodeOutcome) -> &mut Self {
        let step = self.number(id);
        self.send(Signal::Finished { step, outcome })
    }

    fn looked(&mut self, out: &[&str]) -> &mut Self {
        self.looked_with_silent(out, &[])
    }

    fn looked_with_silent(&mut self, out: &[&str], silent: &[&str]) -> &mut Self {
        let certainty = |host: &&str| match silent.contains(host) {
            true => OutageCertainty::Unknown,
            false => OutageCertainty::Certain,
        };
        let out = out
            .iter()
            .map(|host| (Target::host(*host), certainty(host)))
            .collect();
        self.send(Signal::Looked {
            out,
            may_serve: BTreeSet::new(),
        })
    }

    fn went_out(&mut self, id: &str) -> &mut Self {
        let step = self.number(id);
        self.send(Signal::WentOut { step })
    }

    fn done(&mut self, id: &str) -> &mut Self {
        self.finish(id, NodeOutcome::Done { changed: true })
    }

    fn fail(&mut self, id: &str) -> &mut Self {
        self.finish(
            id,
            NodeOutcome::Failed {
                reason: "x".to_owned(),
            },
        )
    }

    fn answer(&mut self, id: &str, hosts: &[&str], passed: bool) -> &mut Self {
        let hosts = hosts.iter().map(|h| Target::host(*h)).collect();
        let step = self.number(id);
        self.send(Signal::GateAnswered {
            step,
            hosts,
            problem: (!passed).then(|| "slow".to_owned()),
        })
    }

    /// What was asked for last: `a b` for steps, `gate(a,b)` for gates, `end`.
    fn asked(&self) -> String {
        let steps = self.scheduler.steps();
        let words = self.last.iter().filter_map(|command| match command {
            SchedulerCommand::Run { step } => Some(steps[*step].id.clone()),
            SchedulerCommand::Check { step, hosts } => Some(format!(
                "{}({})",
                steps[*step].id,
                hosts.iter().map(|h| &*h.name).collect::<Vec<_>>().join(",")
            )),
            SchedulerCommand::End => Some("end".to_owned()),
            SchedulerCommand::Look => Some("look".to_owned()),
            SchedulerCommand::Settle { .. } => None,
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn outcome(&self, id: &str) -> NodeOutcome {
        self.scheduler
            .outcomes()
            .find(|(step, _)| step.id == id)
            .unwrap()
            .1
            .unwrap()
            .clone()
    }
}

fn skipped(because: Skip) -> NodeOutcome {
    NodeOutcome::Skipped { because }
}

const TWO_WAVES: &[&str] = &[
    "a1 a 0 - d",
    "a2 a 0 a1",
    "g0 gate:a 0 a2",
    "b1 b 1 g0 d",
    "c1 c 1 g0 d",
    "g1 gate:b,c 1 b1,c1",
];

#[test]
fn waves_follow_each_other_through_gates() {
    let mut run = Driven::new(TWO_WAVES, 2);
    assert_eq!(run.asked(), "a1");
    assert_eq!(run.done("a1").asked(), "a2");
    assert_eq!(run.done("a2").asked(), "g0(a)");
    assert_eq!(run.answer("g0", &["a"], true).asked(), "b1 c1");
    run.done("b1");
    assert_eq!(run.done("c1").asked(), "g1(b,c)");
    assert_eq!(run.answer("g1", &["b", "c"], true).asked(), "end");
}

#[test]
fn a_failed_canary_stops_the_rollout_without_asking_its_gate() {
    let mut run = Driven::new(TWO_WAVES, 2);
    assert_eq!(run.fail("a1").asked(), "end");
    assert_eq!(
        run.outcome("a2"),
        skipped(Skip::Target { node: "a1".into() })
    );
    assert_eq!(run.outcome("b1"), skipped(Skip::Gate { node: "g0".into() }));
}

#[test]
fn a_failed_gate_stops_the_rollout() {
    let mut run = Driven::new(TWO_WAVES, 2);
    run.done("a1").done("a2");
    assert_eq!(run.answer("g0", &["a"], false).asked(), "end");
    assert!(matches!(run.outcome("g0"), NodeOutcome::Failed { .. }));
    assert_eq!(run.outcome("c1"), skipped(Skip::Gate { node: "g0".into() }));
}

#[test]
fn a_failure_after_the_canary_costs_a_slot_and_a_used_up_budget_stops() {
    let mut lines = TWO_WAVES.to_vec();
    lines.extend([
        "d1 d 2 g1 d",
        "e1 e 2 g1 d",
        "g2 gate:d,e 2 d1,e1",
        "f1 f 3 g2",
    ]);
    let mut run = Driven::new(&lines, 2);
    run.done("a1")
        .done("a2")
        .answer("g0", &["a"], true)
        .fail("b1");
    assert_eq!(run.done("c1").asked(), "g1(c)");
    assert_eq!(
        run.answer("g1", &["c"], true).asked(),
        "d1",
        "one slot is b's"
    );
    assert_eq!(
        run.done("d1").asked(),
        "g2(d)",
        "the gate of d runs early, to free its slot for e"
    );
    assert_eq!(run.answer("g2", &["d"], true).asked(), "e1");
    assert_eq!(run.fail("e1").asked(), "g2(d)");
    assert_eq!(run.answer("g2", &["d"], true).asked(), "end");
    assert_eq!(run.outcome("f1"), skipped(Skip::Budget));
}

#[test]
fn with_the_failure_budget_used_up_hosts_that_were_begun_are_finished_and_no_other_is_begun() {
    let lines = &[
        "a1 a 0 -",
        "b1 b 0 - d",
        "b2 b 0 b1 d",
        "c1 c 0 - d",
        "g0 gate:a,b,c 0 a1,b2,c1",
        "d1 d 1 g0",
    ];
    let limits = Limits {
        parallel: 2,
        max_unavailable: 3,
        failure_budget: 1,
        looks: false,
    };
    let (scheduler, last) =
        Scheduler::new(plan(lines), limits, &History::default()).step(Signal::Begin {
            unreachable: BTreeMap::new(),
        });
    let mut run = Driven { scheduler, last };
    assert_eq!(run.asked(), "a1 b1", "two at a time");
    assert_eq!(run.fail("a1").asked(), "");
    assert_eq!(run.done("b1").asked(), "b2", "b was begun, and is finished");
    assert_eq!(
        run.done("b2").asked(),
        "g0(b)",
        "what was finished is checked by its gate"
    );
    assert_eq!(run.answer("g0", &["b"], true).asked(), "end");
    assert_eq!(
        (run.outcome("c1"), run.outcome("d1")),
        (skipped(Skip::Budget), skipped(Skip::Budget))
    );
}

#[test]
fn blocked_steps_block_what_needs_them_and_nothing_else() {
    let mut run = Driven::new(
        &["a1 a 0 - h", "a2 a 0 a1", "a3 a 0 -", "g0 gate:a 0 a3"],
        1,
    );
    assert_eq!(run.asked(), "a3");
    assert!(matches!(run.outcome("a2"), NodeOutcome::Blocked { .. }));
    assert_eq!(run.done("a3").asked(), "g0(a)");
}

#[test]
fn a_barrier_leaves_the_lost_behind() {
    let lines = &[
        "a1 a 0 -",
        "b1 b 0 -",
        "x - 0 a1,b1",
        "a2 a 0 x",
        "b2 b 0 x",
    ];
    let mut run = Driven::new(lines, 2);
    run.fail("a1");
    assert_eq!(run.done("b1").asked(), "b2");
    assert_eq!(
        run.outcome("a2"),
        skipped(Skip::Target { node: "a1".into() })
    );
    let mut run = Driven::new(lines, 1);
    run.fail("a1");
    assert_eq!(
        run.done("b1").asked(),
        "end",
        "the budget has no room for it"
    );
}

#[test]
fn a_stale_host_is_left_alone_and_is_not_out_of_service() {
    let mut run = Driven::new(&["a1 a 0 -", "a2 a 0 -", "b1 b 0 - d"], 1);
    assert_eq!(run.asked(), "a1 b1");
    run.done("b1").finish(
        "a1",
        NodeOutcome::Stale {
            reason: "moved".into(),
        },
    );
    assert_eq!(
        run.outcome("a2"),
        skipped(Skip::Target { node: "a1".into() })
    );
    assert_eq!(
        run.scheduler.out_of_service().len(),
        0,
        "b has no gate and is through"
    );
    let mut run = Driven::new(
        &[
            "a1 a 0 - d",
            "b1 b 0 - d",
            "g0 gate:a,b 0 a1,b1",
            "c1 c 1 -",
        ],
        1,
    );
    assert_eq!(
        run.finish(
            "a1",
            NodeOutcome::Stale {
                reason: "moved".into()
            }
        )
        .asked(),
        "b1"
    );
}

#[test]
fn the_first_interrupt_waits_for_what_runs_and_the_second_does_not() {
    let mut run = Driven::new(TWO_WAVES, 2);
    assert_eq!(run.send(Signal::Interrupt).asked(), "");
    assert_eq!(run.done("a1").asked(), "end");
    assert_eq!(run.outcome("a2"), skipped(Skip::Interrupted));
    let mut run = Driven::new(TWO_WAVES, 2);
    run.send(Signal::Interrupt);
    assert_eq!(run.send(Signal::Abandon).asked(), "end");
    assert!(matches!(run.outcome("a1"), NodeOutcome::Unknown { .. }));
}

#[test]
fn when_the_window_closes_what_runs_is_finished_and_proven_and_the_rest_waits_for_the_next() {
    let lines = &[
        "a1 a 0 - d",
        "a2 a 0 a1 dw",
        "b1 b 0 - d",
        "g0 gate:a,b 0 a2,b1",
        "c1 c 1 g0 dw",
        "c2 c 1 g0",
    ];
    let mut run = Driven::new(lines, 2);
    assert_eq!(run.asked(), "a1 b1");
    assert_eq!(run.send(Signal::Close).asked(), "");
    assert_eq!(run.done("a1").asked(), "");
    assert_eq!(
        run.done("b1").asked(),
        "g0(b)",
        "b is through, a is half done"
    );
    assert_eq!(run.answer("g0", &["b"], true).asked(), "end");
    assert_eq!(
        ["a2", "g0", "c1", "c2"].map(|id| run.outcome(id)),
        [(); 4].map(|()| skipped(Skip::Window))
    );
    assert_eq!(
        run.scheduler.out_of_service().len(),
        1,
        "a is out of service until the run is resumed"
    );
    let early = |lines: &[&str]| {
        let limits = Limits {
            parallel: 8,
            max_unavailable: 1,
            failure_budget: 1,
            looks: false,
        };
        let (scheduler, commands) =
            Scheduler::new(plan(lines), limits, &History::default()).step(Signal::Close);
        assert_eq!(commands, [], "nothing is settled before the beginning");
        let (scheduler, last) = scheduler.step(Signal::Begin {
            unreachable: BTreeMap::new(),
        });
        Driven { scheduler, last }.asked()
    };
    assert_eq!(
        (early(&["a1 a 0 - dw"]), early(&["a1 a 0 - d"])),
        ("end".to_owned(), "a1".to_owned())
    );
    let mut run = Driven::new(&["a1 a 0 - dw", "a2 a 0 a1"], 1);
    run.send(Signal::Close);
    assert_eq!(
        run.done("a1").asked(),
        "a2",
        "what runs is finished, and nothing else needs a window"
    );
    assert_eq!(run.done("a2").asked(), "end");
}

#[test]
fn the_deadline_leaves_everything_that_is_not_begun() {
    let mut run = Driven::new(TWO_WAVES, 2);
    run.send(Signal::Expire);
    assert_eq!(run.done("a1").asked(), "end");
    assert_eq!(
        (run.outcome("a2"), run.outcome("b1")),
        (skipped(Skip::Deadline), skipped(Skip::Deadline))
    );
}

#[test]
fn a_pause_starts_nothing_and_ends_nothing() {
    let mut run = Driven::new(TWO_WAVES, 2);
    run.send(Signal::Pause);
    assert_eq!(run.done("a1").asked(), "", "it waits");
    assert_eq!(run.send(Signal::Continue).asked(), "a2");
    run.send(Signal::Pause);
    run.done("a2");
    assert_eq!(
        run.send(Signal::Interrupt).asked(),
        "end",
        "an abort needs no continue"
    );
}

#[test]
fn what_an_earlier_part_of_the_run_did_is_not_done_again() {
    let history = History {
        done: ["a1".to_owned()].into(),
        out_of_service: [Target::host("a")].into(),
        ..History::default()
    };
    let scheduler = Scheduler::new(
        plan(TWO_WAVES),
        Limits {
            parallel: 8,
            max_unavailable: 1,
            failure_budget: 1,
            looks: false,
        },
        &history,
    );
    let (scheduler, commands) = scheduler.step(Signal::Begin {
        unreachable: BTreeMap::new(),
    });
    assert_eq!(commands, [SchedulerCommand::Run { step: 1 }]);
    assert_eq!(scheduler.out_of_service().len(), 1);
}

fn waits() -> NodeOutcome {
    NodeOutcome::Blocked {
        reason: "by hand".to_owned(),
    }
}

/// `f` was in sync, so there is something that a gate could look at.
const FOUND: &[&str] = &[
    "aw a 0 -",
    "f b 0 -",
    "g0 gate:a 0 aw",
    "bw b 1 g0",
    "g1 gate:b 1 bw",
    "cw c 2 g1 d",
    "g2 gate:c 2 cw",
];

#[test]
fn a_gate_that_was_not_passed_stops_all_waves_after_it_not_the_next_alone() {
    let mut run = Driven::new(FOUND, 3);
    run.done("f").finish(
        "aw",
        NodeOutcome::Stale {
            reason: "it was changed".to_owned(),
        },
    );
    assert_eq!(run.asked(), "end");
    let skipped = |node: &str| NodeOutcome::Skipped {
        because: Skip::Gate {
            node: node.to_owned(),
        },
    };
    assert_eq!(
        (run.outcome("bw"), run.outcome("g1"), run.outcome("cw")),
        (skipped("g0"), skipped("g0"), skipped("g1"))
    );
    let mut waits_for_somebody = Driven::new(FOUND, 3);
    waits_for_somebody.done("f").finish("aw", waits());
    assert_eq!(waits_for_somebody.asked(), "end");
    assert_eq!(
        waits_for_somebody.outcome("cw"),
        NodeOutcome::Blocked {
            reason: "it needs g1, which is blocked".to_owned()
        }
    );
}
