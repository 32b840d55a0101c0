//! Hosts that are out of service, by hand, by an earlier run or for reasons outside of it: the
//! slots they take, and what proves them.

use super::{Driven, plan, skipped, waits};
use crate::scheduler::Scheduler;
use crate::signal::{History, Limits, Signal};
use railwright_base::Target;
use railwright_plan::OutageCertainty;
use railwright_state::{NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn who_is_down_already_takes_a_slot() {
    let mut run = Driven::with(&["a1 a 0 - d", "b1 b 0 -", "c1 c 0 - d"], 1, &["c"]);
    assert_eq!(run.asked(), "b1");
    assert_eq!(run.done("b1").asked(), "end");
    assert_eq!(run.outcome("a1"), skipped(Skip::Budget));
    assert!(matches!(run.outcome("c1"), NodeOutcome::Unreachable { .. }));
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
    going_on_without(rebooted, &[])
}

/// Goes on while these hosts are not reached.
fn going_on_without(rebooted: &[&str], down: &[&str]) -> Driven {
    let done = ["aw", "g0", "bw", "cw", "g1"].map(str::to_owned).into();
    let rebooted = rebooted.iter().map(|host| Target::host(*host));
    let in_doubt = rebooted.clone();
    let history = History {
        done,
        out_of_service: rebooted.collect(),
        in_doubt: in_doubt
            .map(|host| (host, OutageCertainty::LeftInDoubt))
            .collect(),
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
        unreachable: down
            .iter()
            .map(|host| (Target::host(*host), "down".to_owned()))
            .collect(),
    });
    Driven { scheduler, last }
}

#[test]
fn a_power_cycle_takes_no_slot_and_its_host_is_out_until_a_gate_has_passed() {
    let mut run = going_on(&["a", "b", "c"]);
    assert_eq!(
        (run.asked().as_str(), run.scheduler.out_of_service().len()),
        ("ap", 3),
        "three are out by hand, and one may be"
    );
    assert_eq!(
        run.done("ap").asked(),
        "af",
        "those that may be back in service keep nobody waiting who is so too"
    );
    assert_eq!(run.done("af").asked(), "g2(a)");
    assert_eq!(run.answer("g2", &["a"], true).asked(), "bp cp");
    run.done("bp");
    assert_eq!(run.asked(), "bf");
    assert_eq!(
        run.done("cp").asked(),
        "",
        "b is disturbed, and c may serve"
    );
    assert_eq!(run.done("bf").asked(), "g3(b)");
    assert_eq!(run.answer("g3", &["b"], true).asked(), "cf");
    assert_eq!(run.done("cf").asked(), "g3(b,c)");
    assert_eq!(run.answer("g3", &["b", "c"], true).asked(), "end");
    assert_eq!(run.scheduler.out_of_service().len(), 0);
    let mut unseen = going_on(&["b"]);
    assert_eq!(
        (
            unseen.scheduler.out_of_service().len(),
            unseen.went_out("ap").scheduler.out_of_service().len()
        ),
        (1, 2),
        "it went out by hand under the run"
    );
    assert_eq!(unseen.done("ap").asked(), "af");
    let mut beside = going_on_without(&["a"], &["b"]);
    assert_eq!(beside.asked(), "ap");
    beside.done("ap");
    assert_eq!(
        beside.outcome("af"),
        skipped(Skip::Budget),
        "a may serve again, b is down, and one may be out"
    );
    let mut proven = going_on(&["b"]);
    assert_eq!(
        proven.done("ap").asked(),
        "end",
        "it passed a gate since it came back: it asks for room again, and there is none"
    );
}

#[test]
fn whoever_waits_for_a_power_cycle_keeps_only_itself_waiting_unless_it_is_a_canary() {
    let mut run = going_on(&["b"]);
    run.finish("ap", waits());
    assert_eq!(run.asked(), "bp cp", "the gate has nobody to prove");
    run.done("bp").finish("cp", waits());
    assert_eq!(
        (run.asked().as_str(), run.scheduler.out_of_service().len()),
        ("end", 1)
    );
    assert_eq!(
        run.outcome("bf"),
        NodeOutcome::Blocked {
            reason: "it needs g2, which is blocked".to_owned()
        }
    );
    let mut run = going_on(&["a", "b"]);
    run.done("ap").done("af");
    run.answer("g2", &["a"], true)
        .done("bp")
        .finish("cp", waits());
    assert_eq!(run.done("bf").asked(), "g3(b)", "c is not checked with it");
    assert_eq!(run.answer("g3", &["b"], true).asked(), "end");
    assert_eq!(
        (run.outcome("g3"), run.outcome("cf")),
        (
            NodeOutcome::Done { changed: false },
            NodeOutcome::Blocked {
                reason: "it needs cp, which is blocked".to_owned()
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
        (run.outcome("b1"), run.scheduler.out_of_service().len()),
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
            out_of_service: left.clone(),
            in_doubt: hosts(in_doubt)
                .into_iter()
                .map(|host| (host, OutageCertainty::LeftInDoubt))
                .collect(),
            ..History::default()
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
        "who is out for certain is fixed whatever the budget says"
    );
    let mut run = begun(&["b", "c"]);
    assert_eq!(run.asked(), "a1", "a is out for certain");
    assert_eq!(
        (
            run.done("a1").asked().as_str(),
            run.scheduler.out_of_service().len()
        ),
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
        (run.asked().as_str(), run.scheduler.out_of_service().len()),
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
        run.scheduler.out_of_service().len(),
        2,
        "nobody proves z in this run"
    );
}

/// Another run, or somebody by hand, may have given it back since.
/// Nobody may have given it back: its node was never cordoned.
#[test]
fn a_host_that_a_run_disturbed_and_that_may_serve_again_takes_room() {
    let hosts = |names: &[&str]| -> BTreeSet<Target> {
        names.iter().map(|name| Target::host(*name)).collect()
    };
    let history = History {
        out_of_service: hosts(&["a", "b"]),
        in_doubt: [(Target::host("b"), OutageCertainty::LeftInDoubt)].into(),
        ..History::default()
    };
    let limits = Limits {
        parallel: 8,
        max_unavailable: 1,
        failure_budget: 1,
        looks: true,
    };
    let unreachable = BTreeMap::new();
    let (scheduler, last) =
        Scheduler::new(plan(&["b1 b 0 - d"]), limits, &history).step(Signal::Begin { unreachable });
    let mut run = Driven { scheduler, last };
    assert_eq!(run.asked(), "look");
    run.send(Signal::Looked {
        out: BTreeMap::new(),
        may_serve: hosts(&["a", "b"]),
    });
    assert_eq!(run.outcome("b1"), skipped(Skip::Budget));
}

#[test]
fn a_host_that_an_earlier_part_disturbed_and_that_serves_again_needs_room() {
    let begun = |looks: bool| {
        let history = History {
            out_of_service: [Target::host("a")].into(),
            ..History::default()
        };
        let limits = Limits {
            parallel: 8,
            max_unavailable: 1,
            failure_budget: 1,
            looks,
        };
        let (scheduler, last) =
            Scheduler::new(plan(&["a1 a 0 - d", "a2 a 0 a1 d"]), limits, &history).step(
                Signal::Begin {
                    unreachable: BTreeMap::new(),
                },
            );
        Driven { scheduler, last }
    };
    let looked = |may_serve: &[&str], out: &[&str]| {
        let hosts = |names: &[&str]| -> BTreeSet<Target> {
            names.iter().map(|name| Target::host(*name)).collect()
        };
        let mut run = begun(true);
        assert_eq!(
            run.asked(),
            "look",
            "who is out is not known by the past alone"
        );
        let out = hosts(out).into_iter();
        run.send(Signal::Looked {
            out: out.map(|host| (host, OutageCertainty::Certain)).collect(),
            may_serve: hosts(may_serve),
        });
        run
    };
    assert_eq!(looked(&[], &["z"]).asked(), "a1", "it is out for certain");
    assert_eq!(looked(&["a"], &[]).asked(), "a1", "there is room");
    let run = looked(&["a"], &["z"]);
    assert_eq!(run.asked(), "end");
    assert_eq!(run.outcome("a1"), skipped(Skip::Budget));
    let mut run = looked(&["a"], &[]);
    assert_eq!(
        run.done("a1").asked(),
        "a2",
        "this part has disturbed it, and nobody gives it back meanwhile"
    );
}
