//! Random plans, worked off in every order in which their steps may end.

use crate::scheduler::Scheduler;
use crate::signal::{History, Limits, SchedulerCommand, Signal};
use crate::steps::{OnNode, ScheduledStep, StepRole};
use proptest::prelude::*;
use railwright_base::Target;
use railwright_plan::OutageCertainty;
use railwright_state::NodeOutcome;
use std::collections::{BTreeMap, BTreeSet};

/// Random plans: hosts in waves with gates between, chains on each host, some cross edges and
/// barriers.
fn generate_plans() -> impl Strategy<Value = (Vec<ScheduledStep>, Limits)> {
    let node = (
        0usize..6,
        any::<bool>(),
        0u8..20,
        proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
    );
    let limits = (1usize..4, 0usize..4, 1usize..4, any::<bool>());
    (
        proptest::collection::vec(node, 1..25),
        limits,
        proptest::collection::vec(0usize..3, 6),
        any::<bool>(),
    )
        .prop_map(
            |(nodes, (parallel, max_unavailable, failure_budget, looks), wave_of, with_gates)| {
                let mut steps: Vec<ScheduledStep> = Vec::new();
                for (n, (host, disruptive, special, after)) in nodes.into_iter().enumerate() {
                    let after: BTreeSet<usize> = after
                        .iter()
                        .filter(|_| n > 0)
                        .map(|i| i.index(n.max(1)))
                        .collect();
                    let target = Target::host(format!("h{host}"));
                    let (role, target) = if special == 0 {
                        (StepRole::Barrier, None)
                    } else {
                        (StepRole::Work, Some(target))
                    };
                    let blocked = (special == 1).then(|| "blocked".to_owned());
                    let step = ScheduledStep {
                        id: format!("n{n}"),
                        role,
                        target,
                        disruptive,
                        needs_window: disruptive && n % 2 == 0,
                        by_hand: !disruptive && special == 2,
                        on_node: None,
                        is_out: false,
                        waits: false,
                        canary: wave_of[host] == 0,
                        after: after.into_iter().collect(),
                        before: vec![],
                        wave: wave_of[host],
                        blocked,
                    };
                    steps.push(step);
                }
                for wave in 0..3 {
                    let hosts: BTreeSet<Target> = (0..6)
                        .filter(|h| wave_of[*h] == wave)
                        .map(|h| Target::host(format!("h{h}")))
                        .collect();
                    let after: Vec<usize> = (0..steps.len())
                        .filter(|n| {
                            steps[*n].target.as_ref().is_some_and(|t| hosts.contains(t))
                                && steps[*n].blocked.is_none()
                        })
                        .collect();
                    if with_gates && !after.is_empty() {
                        steps.push(ScheduledStep {
                            id: format!("gate{wave}"),
                            role: StepRole::Gate(hosts.clone()),
                            target: None,
                            disruptive: false,
                            needs_window: false,
                            by_hand: false,
                            on_node: None,
                            is_out: false,
                            waits: false,
                            canary: wave == 0,
                            after,
                            before: vec![],
                            wave,
                            blocked: None,
                        });
                        let (gate, model) = (steps.len() - 1, steps[steps.len() - 1].clone());
                        // Nodes with an even number are given back by a step.
                        let given_back = hosts
                            .into_iter()
                            .filter(|host| host.name.ends_with(['0', '2', '4']));
                        steps.extend(given_back.map(|host| ScheduledStep {
                            id: format!("{host}/uncordon"),
                            role: StepRole::Work,
                            target: Some(host),
                            on_node: Some(OnNode::GivesBack),
                            after: vec![gate],
                            canary: false,
                            ..model.clone()
                        }));
                    }
                }
                for n in 0..steps.len() {
                    steps[n].wave = steps[n]
                        .after
                        .iter()
                        .map(|b| steps[*b].wave)
                        .chain([steps[n].wave])
                        .max()
                        .unwrap_or(0);
                    for before in steps[n].after.clone() {
                        steps[before].before.push(n);
                    }
                }
                (
                    steps,
                    Limits {
                        parallel,
                        max_unavailable,
                        failure_budget,
                        looks,
                    },
                )
            },
        )
}

/// Who is out of service by an account of its own: the test does not ask the scheduler.
#[derive(Default)]
struct Account {
    disturbed: BTreeMap<Target, usize>,
    lost: BTreeSet<Target>,
    begun: BTreeSet<Target>,
    /// Out of service by nobody's doing here, as it was told last.
    outside: BTreeMap<Target, OutageCertainty>,
    /// That was asked, and is not answered.
    looking: bool,
    proven: BTreeSet<(usize, Target)>,
    paused: bool,
    closed: bool,
    expired: bool,
}

impl Account {
    /// Hosts that passed a gate are back, unless a step gives them back that is not over.
    fn passed(
        &mut self,
        steps: &[ScheduledStep],
        over: &BTreeMap<usize, NodeOutcome>,
        gate: usize,
        hosts: &BTreeSet<Target>,
    ) {
        let waits = |host: &Target| {
            let mut own = (0..steps.len()).filter(|n| {
                steps[*n].after.contains(&gate) && steps[*n].target.as_ref() == Some(host)
            });
            own.any(|n| steps[n].on_node == Some(OnNode::GivesBack) && !over.contains_key(&n))
        };
        self.disturbed
            .retain(|host, _| !hosts.contains(host) || waits(host));
        self.proven
            .extend(hosts.iter().map(|host| (gate, host.clone())));
    }

    /// A host that no gate proves is back when all its steps are over.
    fn through(
        &mut self,
        steps: &[ScheduledStep],
        over: &BTreeMap<usize, NodeOutcome>,
        step: usize,
    ) {
        let Some(target) = &steps[step].target else {
            return;
        };
        let gated = steps
            .iter()
            .any(|s| matches!(&s.role, StepRole::Gate(hosts) if hosts.contains(target)));
        if !gated
            && (0..steps.len())
                .filter(|n| steps[*n].target.as_ref() == Some(target))
                .all(|n| over.contains_key(&n))
        {
            self.disturbed.remove(target);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn every_interleaving_keeps_the_edges_and_the_budget_and_ends(
        (steps, limits) in generate_plans(), choices in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..24), 1..200)
    ) {
        let (mut scheduler, commands) =
            Scheduler::new(steps.clone(), limits, &History::default()).step(Signal::Begin { unreachable: BTreeMap::new() });
        let (mut running, mut account, mut ended) = (Vec::new(), Account::default(), 0);
        let mut over: BTreeMap<usize, NodeOutcome> = BTreeMap::new();
        let mut queue = commands;
        let mut choices = choices.into_iter().cycle();
        let mut turns = 0;
        loop {
            for command in queue.drain(..) {
                match command {
                    SchedulerCommand::Run { step } => {
                        let target = steps[step].target.clone().unwrap();
                        let gives_back = steps[step].on_node == Some(OnNode::GivesBack);
                        let is_proven = |b: usize| gives_back && account.proven.contains(&(b, target.clone()));
                        prop_assert!(steps[step].after.iter().all(|b| over.get(b).is_some_and(|o| o.is_done()) || is_proven(*b)), "an edge was jumped");
                        prop_assert!(
                            account.lost.len() < limits.failure_budget || account.begun.contains(&target),
                            "{} lost of {}, and yet another host was begun", account.lost.len(), limits.failure_budget
                        );
                        account.begun.insert(target);
                        prop_assert!(!account.paused && (!account.expired || gives_back), "a pause or the deadline began something");
                        prop_assert!(!account.closed || !steps[step].needs_window, "begun outside of a window");
                        if steps[step].disruptive {
                            let host = steps[step].target.clone().unwrap();
                            let seen = account.outside.get(&host).copied();
                            let is_out = account.lost.contains(&host) || seen == Some(OutageCertainty::Certain);
                            let added = !account.disturbed.contains_key(&host) && !is_out;
                            account.disturbed.entry(host).or_insert(step);
                            // Those that may carry jobs all the same, for one reason, do not keep each other waiting.
                            let may_serve = matches!(seen, Some(OutageCertainty::LeftInDoubt | OutageCertainty::Cordoned | OutageCertainty::NotReady));
                            let counts = |certainty: &OutageCertainty| !may_serve || Some(*certainty) != seen;
                            let outside = account.outside.iter().filter(|(_, certainty)| counts(certainty)).map(|(host, _)| host);
                            let out = account.disturbed.keys().chain(&account.lost).chain(outside).collect::<BTreeSet<_>>().len();
                            prop_assert!(!added || out <= limits.max_unavailable, "{out} out of service of {}", limits.max_unavailable);
                        }
                        prop_assert!(!running.iter().any(|(r, _): &(usize, BTreeSet<Target>)| steps[*r].target == steps[step].target), "two on one target");
                        running.push((step, BTreeSet::new()));
                    }
                    SchedulerCommand::Check { step, hosts } => running.push((step, hosts)),
                    SchedulerCommand::Settle { step, outcome } => {
                        prop_assert!(over.insert(step, outcome).is_none(), "settled twice");
                        running.retain(|(r, _)| *r != step);
                        account.through(&steps, &over, step);
                    }
                    SchedulerCommand::Look => {
                        prop_assert!(limits.looks && !account.looking, "asked twice at once");
                        account.looking = true;
                    }
                    SchedulerCommand::End => ended += 1,
                }
            }
            prop_assert!(running.len() <= limits.parallel);
            turns += 1;
            prop_assert!(turns < 2000, "it does not end");
            if running.is_empty() && ended > 0 {
                break;
            }
            prop_assert!(!running.is_empty() || account.paused || account.looking, "nothing runs, nothing ended, and nobody said to wait");
            let (pick, luck) = choices.next().unwrap();
            if account.looking && (running.is_empty() || luck % 3 == 0) {
                let hosts: Vec<&Target> = steps.iter().filter_map(ScheduledStep::host).collect();
                let some = (0..usize::from(luck % 4)).filter_map(|n| hosts.get((pick.index(steps.len()) + n) % hosts.len().max(1)));
                let certainties = [OutageCertainty::Cordoned, OutageCertainty::Unknown, OutageCertainty::Certain, OutageCertainty::NotReady, OutageCertainty::LeftInDoubt];
                let some = some.enumerate().map(|(n, host)| ((*host).clone(), certainties[(n + usize::from(luck)) % 5]));
                (account.looking, account.outside) = (false, some.collect());
                let looked = Signal::Looked { out: account.outside.clone(), may_serve: BTreeSet::new() };
                let (next, commands) = scheduler.step(looked);
                (scheduler, queue) = (next, commands);
                continue;
            }
            if account.paused && (running.is_empty() || luck == 22) {
                account.paused = false;
                let (next, commands) = scheduler.step(Signal::Continue);
                (scheduler, queue) = (next, commands);
                continue;
            }
            if luck == 22 && turns % 3 == 0 {
                let signal = match turns % 4 {
                    0 => Signal::Expire,
                    1 => Signal::Close,
                    _ => Signal::Pause,
                };
                match signal {
                    Signal::Expire => account.expired = true,
                    Signal::Close => account.closed = true,
                    _ => account.paused = true,
                }
                let (next, commands) = scheduler.step(signal);
                (scheduler, queue) = (next, commands);
                continue;
            }
            if luck == 23 && turns % 7 == 0 {
                let signal = if turns % 2 == 0 { Signal::Interrupt } else { Signal::Abandon };
                let (next, commands) = scheduler.step(signal);
                (scheduler, queue) = (next, commands);
                continue;
            }
            let (step, hosts) = running.swap_remove(pick.index(running.len()));
            let signal = if matches!(steps[step].role, StepRole::Gate(_)) {
                if luck > 1 { account.passed(&steps, &over, step, &hosts); }
                Signal::GateAnswered { step, hosts, problem: (luck <= 1).then(|| "bad".to_owned()) }
            } else {
                let outcome = match luck {
                    0 => NodeOutcome::Failed { reason: String::new() },
                    1 => NodeOutcome::Unknown { reason: String::new() },
                    2 => NodeOutcome::Stale { reason: String::new() },
                    3..6 if steps[step].by_hand => NodeOutcome::Blocked { reason: String::new() },
                    _ => NodeOutcome::Done { changed: luck % 2 == 0 },
                };
                if outcome.is_loss() { account.lost.extend(steps[step].target.clone()); }
                if matches!(outcome, NodeOutcome::Stale { .. }) { account.disturbed.retain(|_, by| *by != step); }
                if steps[step].by_hand && outcome == (NodeOutcome::Done { changed: true }) && luck >= 12 {
                    account.disturbed.entry(steps[step].target.clone().unwrap()).or_insert(step);
                    let (next, commands) = scheduler.step(Signal::WentOut { step });
                    (scheduler, queue) = (next, commands);
                }
                over.insert(step, outcome.clone());
                if outcome.is_done() && steps[step].on_node.is_some() { account.disturbed.remove(steps[step].target.as_ref().unwrap()); }
                account.through(&steps, &over, step);
                Signal::Finished { step, outcome }
            };
            let (next, commands) = scheduler.step(signal);
            scheduler = next;
            queue.extend(commands);
        }
        prop_assert_eq!(ended, 1);
        prop_assert!(scheduler.outcomes().all(|(_, outcome)| outcome.is_some()), "something is left without an outcome");
    }
}
