//! The scheduler against tables, and against random plans.

mod interleavings;
mod nodes;

use super::scheduler::Scheduler;
use super::signal::{History, Limits, SchedulerCommand, Signal};
use super::steps::{OnNode, ScheduledStep, StepRole};
use railwright_base::Target;
use railwright_state::{NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

/// A step: `id host wave after,after flags` where flags are `d` disruptive, `w` only in a window,
/// `h` held, `p` a power cycle by hand, `D` empties the host's node, `U` gives it back, `W` only
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
            held: flags.contains('h').then(|| "held".to_owned()),
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
        let hosts = |names: &[&str]| names.iter().map(|host| Target::host(*host)).collect();
        self.send(Signal::Looked {
            out: hosts(out),
            in_doubt: hosts(silent),
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
        "d is proven early, to free its slot for e"
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
        "what was finished is proven"
    );
    assert_eq!(run.answer("g0", &["b"], true).asked(), "end");
    assert_eq!(
        (run.outcome("c1"), run.outcome("d1")),
        (skipped(Skip::Budget), skipped(Skip::Budget))
    );
}

#[test]
fn who_is_down_already_takes_a_slot() {
    let mut run = Driven::with(&["a1 a 0 - d", "b1 b 0 -", "c1 c 0 - d"], 1, &["c"]);
    assert_eq!(run.asked(), "b1");
    assert_eq!(run.done("b1").asked(), "end");
    assert_eq!(run.outcome("a1"), skipped(Skip::Budget));
    assert!(matches!(run.outcome("c1"), NodeOutcome::Unreachable { .. }));
}

#[test]
fn held_steps_hold_what_needs_them_and_nothing_else() {
    let mut run = Driven::new(
        &["a1 a 0 - h", "a2 a 0 a1", "a3 a 0 -", "g0 gate:a 0 a3"],
        1,
    );
    assert_eq!(run.asked(), "a3");
    assert!(matches!(run.outcome("a2"), NodeOutcome::Held { .. }));
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
        run.scheduler.unavailable(),
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
        run.scheduler.unavailable(),
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
    assert_eq!(scheduler.unavailable(), 1);
}

/// `w` is what is written; `p` the power cycle, `f` what follows it, by host; a is the canary.
const POWER_CYCLES: &[&str] = &[
    "aw a 0 -",
    "g0 gate:a 0 aw",
    "bw b 1 g0",
    "cw c 1 g0",
    "g1 gate:b,c 1 bw,cw",
    "ap a 2 aw p",
    "af a 2 ap d",
    "g2 gate:a 2 af",
    "bp b 3 bw p",
    "bf b 3 bp,g2 d",
    "cp c 3 cw p",
    "cf c 3 cp,g2 d",
    "g3 gate:b,c 3 bf,cf",
];

/// Goes on after all was written; these hosts were found in another boot.
fn going_on(rebooted: &[&str]) -> Driven {
    let done = ["aw", "g0", "bw", "cw", "g1"].map(str::to_owned).into();
    let history = History {
        done,
        out_of_service: rebooted.iter().map(|host| Target::host(*host)).collect(),
        ..History::default()
    };
    let scheduler = Scheduler::new(
        plan(POWER_CYCLES),
        Limits {
            parallel: 8,
            max_unavailable: 1,
            failure_budget: 1,
            looks: false,
        },
        &history,
    );
    let (scheduler, last) = scheduler.step(Signal::Begin {
        unreachable: BTreeMap::new(),
    });
    Driven { scheduler, last }
}

fn waits() -> NodeOutcome {
    NodeOutcome::Held {
        reason: "by hand".to_owned(),
    }
}

#[test]
fn a_power_cycle_takes_no_slot_and_its_host_is_out_until_a_gate_has_passed() {
    let mut run = going_on(&["a", "b", "c"]);
    assert_eq!(
        (run.asked().as_str(), run.scheduler.unavailable()),
        ("ap", 3),
        "three are out by hand, and one may be"
    );
    assert_eq!(
        run.done("ap").asked(),
        "af",
        "what follows on a host that is out already puts nobody else out"
    );
    assert_eq!(run.done("af").asked(), "g2(a)");
    assert_eq!(run.answer("g2", &["a"], true).asked(), "bp cp");
    run.done("bp").done("cp").done("bf");
    assert_eq!(run.done("cf").asked(), "g3(b,c)");
    assert_eq!(run.answer("g3", &["b", "c"], true).asked(), "end");
    assert_eq!(run.scheduler.unavailable(), 0);
    let mut unseen = going_on(&["b"]);
    assert_eq!(
        (
            unseen.scheduler.unavailable(),
            unseen.went_out("ap").scheduler.unavailable()
        ),
        (1, 2),
        "it went out by hand under the run"
    );
    assert_eq!(unseen.done("ap").asked(), "af");
    let mut proven = going_on(&["b"]);
    assert_eq!(
        proven.done("ap").asked(),
        "end",
        "a gate has proven it since it came back: it asks for room again, and there is none"
    );
}

/// `f` was found as wished, so there is something that a gate could look at.
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
        NodeOutcome::Held {
            reason: "it needs g1, which is held".to_owned()
        }
    );
}

#[test]
fn whoever_waits_for_a_power_cycle_keeps_only_itself_waiting_unless_it_is_a_canary() {
    let mut run = going_on(&["b"]);
    run.finish("ap", waits());
    assert_eq!(run.asked(), "bp cp", "the gate has nobody to prove");
    run.done("bp").finish("cp", waits());
    assert_eq!(
        (run.asked().as_str(), run.scheduler.unavailable()),
        ("end", 1)
    );
    assert_eq!(
        run.outcome("bf"),
        NodeOutcome::Held {
            reason: "it needs g2, which is held".to_owned()
        }
    );
    let mut run = going_on(&["a", "b"]);
    run.done("ap").done("af");
    run.answer("g2", &["a"], true)
        .done("bp")
        .finish("cp", waits());
    assert_eq!(run.done("bf").asked(), "g3(b)", "c is not proven with it");
    assert_eq!(run.answer("g3", &["b"], true).asked(), "end");
    assert_eq!(
        (run.outcome("g3"), run.outcome("cf")),
        (
            NodeOutcome::Done { changed: false },
            NodeOutcome::Held {
                reason: "it needs cp, which is held".to_owned()
            }
        )
    );
}

#[test]
fn who_else_is_out_of_service_is_asked_before_one_more_host_is_disturbed() {
    let lines = &[
        "a1 a 0 - d",
        "g0 gate:a 0 a1",
        "b1 b 1 g0 d",
        "g1 gate:b 1 b1",
    ];
    let begun = || {
        let limits = Limits {
            parallel: 8,
            max_unavailable: 1,
            failure_budget: 1,
            looks: true,
        };
        let (scheduler, last) =
            Scheduler::new(plan(lines), limits, &History::default()).step(Signal::Begin {
                unreachable: BTreeMap::new(),
            });
        let mut run = Driven { scheduler, last };
        assert_eq!(run.asked(), "look");
        assert_eq!(run.looked(&[]).asked(), "a1");
        assert_eq!(run.done("a1").asked(), "g0(a)", "a gate disturbs nobody");
        assert_eq!(
            run.answer("g0", &["a"], true).asked(),
            "look",
            "something happened since the last look"
        );
        run
    };
    let mut run = begun();
    assert_eq!(run.looked(&["z"]).asked(), "end");
    assert_eq!(
        (run.outcome("b1"), run.scheduler.unavailable()),
        (skipped(Skip::Budget), 1)
    );
    assert_eq!(
        begun().looked(&["b", "z"]).asked(),
        "b1",
        "who is out already takes no further slot"
    );
    assert_eq!(
        begun().looked_with_silent(&["b"], &["b"]).asked(),
        "b1",
        "nobody else is out"
    );
    assert_eq!(
        begun().looked_with_silent(&["b", "z"], &["b"]).asked(),
        "end",
        "it may be in service again when its step begins"
    );
    let mut abandoned = begun();
    assert_eq!(
        abandoned.send(Signal::Abandon).asked(),
        "end",
        "nobody waits for a look that nobody does any more"
    );
}

/// A package step of three hosts broke off with the connection: they count as out of service, and
/// carry jobs all the same.
#[test]
fn hosts_that_may_be_in_service_all_the_same_are_disturbed_within_the_budget() {
    let lines = &[
        "a1 a 0 - d",
        "b1 b 0 - d",
        "c1 c 0 - d",
        "d1 d 0 - d",
        "g0 gate:a,b,c,d 0 a1,b1,c1,d1",
    ];
    let hosts = |names: &[&str]| {
        names
            .iter()
            .map(|host| Target::host(*host))
            .collect::<BTreeSet<_>>()
    };
    let left = hosts(&["a", "b", "c"]);
    let limits = Limits {
        parallel: 8,
        max_unavailable: 1,
        failure_budget: 8,
        looks: false,
    };
    let looked = |in_doubt: &[&str], unreachable: &[&str], looks: bool| {
        let history = History {
            done: BTreeSet::new(),
            out_of_service: left.clone(),
            in_doubt: hosts(in_doubt),
        };
        let unreachable = unreachable
            .iter()
            .map(|host| (Target::host(*host), "down".to_owned()))
            .collect();
        let limits = Limits { looks, ..limits };
        let (scheduler, last) =
            Scheduler::new(plan(lines), limits, &history).step(Signal::Begin { unreachable });
        Driven { scheduler, last }
    };
    let begun = |in_doubt: &[&str]| looked(in_doubt, &[], false);
    assert_eq!(
        begun(&[]).asked(),
        "a1 b1 c1",
        "who is out for certain is mended whatever the budget says"
    );
    let mut run = begun(&["b", "c"]);
    assert_eq!(run.asked(), "a1", "a is out for certain");
    assert_eq!(
        (run.done("a1").asked().as_str(), run.scheduler.unavailable()),
        ("g0(a)", 3)
    );
    assert_eq!(
        run.answer("g0", &["a"], true).asked(),
        "b1",
        "c keeps b not waiting, b does c"
    );
    assert_eq!(run.done("b1").asked(), "g0(b)");
    assert_eq!(
        run.answer("g0", &["b"], true).asked(),
        "c1",
        "d has to wait for all that count"
    );
    assert_eq!(
        (
            run.done("c1").asked().as_str(),
            run.answer("g0", &["c"], true).asked().as_str()
        ),
        ("g0(c)", "d1")
    );
    // Who is down by now, or fails again, is in doubt no longer.
    let all = ["a", "b", "c"];
    assert_eq!(looked(&all, &["c"], false).asked(), "end", "c is down");
    assert_eq!(looked(&all, &[], true).asked(), "look");
    assert_eq!(looked(&all, &[], true).looked(&[]).asked(), "a1");
    assert_eq!(
        looked(&all, &[], true)
            .looked_with_silent(&["c"], &["c"])
            .asked(),
        "c1",
        "c alone is silent, and answers again"
    );
    assert_eq!(
        looked(&all, &[], true)
            .looked_with_silent(&["b", "c"], &["b", "c"])
            .asked(),
        "end"
    );
}

#[test]
fn what_an_earlier_run_left_out_of_service_is_proven_first_though_it_has_no_steps() {
    let lines = &["g0 gate:a 0 -", "b1 b 1 g0 d", "g1 gate:b 1 b1"];
    let begun = || {
        let history = History {
            done: BTreeSet::new(),
            out_of_service: [Target::host("a"), Target::host("z")].into(),
            ..History::default()
        };
        let limits = Limits {
            parallel: 8,
            max_unavailable: 2,
            failure_budget: 2,
            looks: false,
        };
        let (scheduler, last) = Scheduler::new(plan(lines), limits, &history).step(Signal::Begin {
            unreachable: BTreeMap::new(),
        });
        Driven { scheduler, last }
    };
    let mut run = begun();
    assert_eq!(
        (run.asked().as_str(), run.scheduler.unavailable()),
        ("g0(a)", 2)
    );
    assert_eq!(run.answer("g0", &["a"], false).asked(), "end");
    assert_eq!(
        run.outcome("b1"),
        skipped(Skip::Gate {
            node: "g0".to_owned()
        })
    );
    let mut run = begun();
    assert_eq!(run.answer("g0", &["a"], true).asked(), "b1");
    assert_eq!(
        run.scheduler.unavailable(),
        2,
        "nobody proves z in this run"
    );
}
